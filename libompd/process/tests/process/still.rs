//! Reading a process while its threads sleep: whatever wakes in the meantime is noticed.

use std::collections::BTreeSet;
use std::process::Command;

use nix::time::{ClockId, clock_gettime};
use ompd_process::{Addr, Live, OpenOptions, Pause, Target, TargetExt};

use crate::support::{self, Subject};

/// As in waker.c.
const LOGS: usize = 7;
const ENTRIES: usize = 512;
const LOG_WORDS: usize = 1 + 2 * ENTRIES;

/// How often is looked: 10,000 times take half a minute (`LOOKS=10000`).
fn looks() -> usize {
    std::env::var("LOOKS").ok().and_then(|looks| looks.parse().ok()).unwrap_or(2_000)
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// Times at which a thread of the program was awake: from when to when, the last one perhaps without an end.
fn awake(live: &Live, at: Addr, since: u64) -> Vec<(u64, u64)> {
    let bytes = live.read_vec(at, (8 * LOGS * LOG_WORDS) as u64).expect("the log");
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("a word"))).collect();
    let mut all = Vec::new();
    for log in words.chunks_exact(LOG_WORDS) {
        let count = log[0] as usize;
        // Those that overwrite others while this is read are newer than all that is asked for.
        for entry in (count.saturating_sub(ENTRIES / 4)..count).map(|n| &log[1 + 2 * (n % ENTRIES)..][..2]) {
            let end = if entry[1] == 0 { u64::MAX } else { entry[1] };
            // Zeros are an entry that is about to be used for the first time.
            if end >= since && entry[0] != 0 {
                all.push((entry[0], end));
            }
        }
    }
    all
}

/// Looks of each kind that are needed to tell anything, and how often it is looked at most for them, in times of [`looks`].
const ENOUGH: usize = 5;
const PATIENCE: usize = 50;

#[derive(Debug)]
struct Seen {
    still: usize,
    moved: usize,
    held: usize,
    /// Looks that were told to be of one moment though a thread was awake.
    torn: Vec<String>,
}

/// Looks at a process whose threads wake at random times, and compares with what it wrote down. On a busy machine few looks are of
/// the kind that is wanted: `enough` says whether these are.
fn attack(pause: Pause, looks: usize, enough: impl Fn(&Seen) -> bool) -> Seen {
    let program = support::compile("waker.c", &format!("waker-{pause:?}"), &[]);
    let subject = Subject::spawn(Command::new(program).arg("1"));
    let mut live = Live::open(subject.pid(), &OpenOptions { pause, ..OpenOptions::default() }).expect("open");
    let log = Addr(subject.known.0);
    let mut seen = Seen { still: 0, moved: 0, held: 0, torn: Vec::new() };
    for look in 0..PATIENCE * looks {
        if look >= looks && enough(&seen) {
            break;
        }
        let read = |live: &Live| {
            let begun = now();
            // As long as the smallest of real looks.
            for page in 0..14 {
                live.read(log.offset(4096 * page), &mut [0; 64]).expect("a page of the process");
            }
            (begun, now())
        };
        let Some(look) = live.read_still(&BTreeSet::new(), read).expect("look") else { continue };
        if !look.moved.is_empty() {
            seen.moved += 1;
            continue;
        }
        seen.still += 1;
        seen.held += usize::from(look.stopped > 0);
        let (begun, ended) = look.found;
        let during: Vec<(u64, u64)> =
            awake(&live, log, begun).into_iter().filter(|(from, to)| *from < ended && begun < *to).collect();
        // One that was stopped was awake before and is awake afterwards.
        let spans = during.iter().filter(|(from, to)| *from <= begun && ended <= *to).count();
        if spans < during.len() || spans > look.stopped {
            seen.torn.push(format!("{begun}..{ended}, {} stopped: awake {during:?}", look.stopped));
        }
    }
    seen
}

#[test]
fn who_wakes_for_microseconds_is_never_told_as_asleep() {
    let looks = looks();
    // Both happen often enough to tell.
    let enough = |seen: &Seen| seen.still >= ENOUGH && seen.moved >= ENOUGH;
    let seen = attack(Pause::Never, looks, enough);
    assert!(seen.torn.is_empty(), "{} of {looks}: {:#?}", seen.torn.len(), seen.torn.first());
    assert_eq!(seen.held, 0);
    assert!(enough(&seen), "{seen:?}");
}

#[test]
fn who_wakes_while_others_are_stopped_is_never_told_as_asleep() {
    let looks = looks() / 4;
    let enough = |seen: &Seen| seen.held >= ENOUGH && seen.still >= ENOUGH;
    let seen = attack(Pause::Auto, looks, enough);
    assert!(seen.torn.is_empty(), "{} of {looks}: {:#?}", seen.torn.len(), seen.torn.first());
    assert!(enough(&seen), "{seen:?}");
}

/// The register that stepper.c uses, by its DWARF number (psABI, figure 3.36).
#[cfg(target_arch = "x86_64")]
const RBX: u16 = 3;

#[cfg(target_arch = "x86_64")]
#[test]
fn registers_of_a_stop_are_of_the_moment_of_what_was_read_before_it() {
    let program = support::compile("stepper.c", "stepper", &[]);
    let subject = Subject::spawn(&mut Command::new(program));
    let word = Addr(subject.known.0);
    let mut live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    let wanted = BTreeSet::from([subject.pid()]);
    let (mut same, mut others) = ([0; 3], 0);
    // The word is read as a part of its page, ahead, or past what is kept.
    let read = |live: &Live, way: usize| match way {
        0 => live.read_u64(word).expect("a word"),
        1 => {
            live.prefetch(&[(word, 4)]);
            live.prefetch(&[(word, 8)]);
            live.read_u64(word).expect("a word")
        }
        _ => u64::from_le_bytes(live.read_ranges(&[(word, 8)]).0.try_into().expect("a word")),
    };
    for look in 0..PATIENCE * looks() {
        if same.iter().sum::<usize>() >= looks() / 4 && others >= ENOUGH {
            break;
        }
        let way = look % same.len();
        let Some(mut still) = live.read_still(&BTreeSet::new(), |live| read(live, way)).expect("look") else {
            continue;
        };
        if still.stops > 0 || !still.moved.is_empty() {
            continue;
        }
        // What else was copied counts too.
        let is_same = look % 10 != 9;
        let counts = live.add_registers(&mut still, &wanted, |_, _| is_same).expect("a stop");
        assert!(is_same || !counts);
        if !counts {
            others += usize::from(is_same);
            continue;
        }
        same[way] += 1;
        assert_eq!((still.stops, still.stopped), (1, 1));
        let thread = live.threads().iter().find(|thread| thread.lwp == subject.pid()).expect("the thread");
        let registers = thread.registers.as_ref().expect("registers");
        assert_eq!(registers.get(RBX), Some(still.found), "{same:?}");
        // A second stop of the same look is not made.
        assert!(!live.add_registers(&mut still, &wanted, |_, _| true).expect("no stop"));
        assert_eq!(still.stops, 1);
    }
    assert!(
        same.iter().all(|same| *same >= ENOUGH) && others >= ENOUGH,
        "{same:?} looks of one moment, {others} others"
    );
}

#[test]
fn thread_pointers_and_calls_of_sleepers_are_those_of_a_stop() {
    // Many threads are asked by several of ours.
    for count in ["5", "350"] {
        let subject = Subject::start(&["threads", count]);
        let mut live =
            Live::open(subject.pid(), &OpenOptions { pause: Pause::Never, ..OpenOptions::default() }).expect("open");
        let look = |live: &Live| live.read_vec(Addr(subject.known.0), subject.known.1).expect("known data");
        // A waiter that has said it is ready may not sleep yet.
        let mut looks = (0..100).map(|_| live.read_still(&BTreeSet::new(), look).expect("look").expect("no stop"));
        let read = looks.find(|read| read.moved.len() == 1).expect("the waiters sleep");
        drop(looks);
        assert_eq!((read.found, read.stopped), (subject.known_bytes(), 0));
        let mut stopped = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
        stopped.stop().expect("stop");
        assert_eq!(subject.waiters.len().to_string(), count);
        for waiter in &subject.waiters {
            let of = |live: &Live| live.threads().iter().find(|t| t.lwp == waiter.tid).expect("thread").clone();
            let (thread, all) = (of(&live), of(&stopped));
            assert_eq!((thread.name.as_deref(), all.name.as_deref()), (Some("waiter"), Some("waiter")));
            assert_eq!(thread.thread_pointer(), Some(Addr(waiter.pthread)));
            let (own, all) = (thread.registers.expect("registers"), all.registers.expect("registers"));
            assert_eq!((own.pc, own.sp, own.syscall), (all.pc, all.sp, all.syscall));
        }
        stopped.resume();
        // Its id need not be the largest: ids begin anew.
        let waits = |lwp: i32| lwp == subject.pid() || subject.waiters.iter().any(|waiter| waiter.tid == lwp);
        let others: Vec<i32> = live.threads().iter().map(|thread| thread.lwp).filter(|lwp| !waits(*lwp)).collect();
        assert_eq!(read.moved, others);
        assert!(!live.is_still());
    }
}

#[test]
fn call_that_a_stop_ends_is_not_ended_even_if_registers_are_wanted() {
    let program = support::compile("epoll.c", "epoll", &[]);
    let mut subject = Subject::spawn(&mut Command::new(program));
    let mut live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    let wanted = BTreeSet::from([subject.pid()]);
    let read = loop {
        // It may be on its way to sleep.
        match live.read_still(&wanted, |_| ()).expect("look") {
            Some(read) if read.stopped == 0 => break read,
            _ => std::thread::yield_now(),
        }
    };
    assert!(read.moved.is_empty() && !live.may_be_stopped(subject.pid()));
    assert_eq!(subject.ask(b'x'), 1);
}
