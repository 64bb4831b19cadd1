//! What a companion has left in a process, by blocks that are made up.

use ompd_process::{Arch, TargetKind};
use ompt_record::block::{CHANGING, Creation, Header, Held, MAGIC, Ring, Shape, State, VERSION};
use ompt_record::event::Event;
use test_programs::{ChangedTarget, FakeTarget, thread_at};

use super::*;
use crate::model::{Fact, TaskKind, TaskState};
use crate::samples::{Process, WHY, fact};

/// The word that tells where the block is, and the block.
const WORD: u64 = 0x800;
const BLOCK: u64 = 0x1_0000;
/// The process by the companion's own account, and what lies between `pthread_self()` and thread pointers.
const PID: u64 = 40;
const DISTANCE: u64 = 0x100;

/// A process with threads 1 and 2, and a block with a ring of each.
struct Companion {
    header: Header<u64>,
    rings: [Ring<u64>; 2],
    held: Vec<(u64, Held<u64>)>,
    tasks: Vec<Creation<u64>>,
    events: Vec<Event>,
    stops: [u64; 2],
    target: FakeTarget,
}

impl Companion {
    fn new() -> Companion {
        let header = Header {
            magic_first: MAGIC[0],
            magic_second: MAGIC[1],
            version: VERSION,
            address: BLOCK,
            rings: 2,
            events: 128,
            regions: 64,
            tasks: 64,
            rings_used: 2,
            pid: PID,
            state: State::Recording as u64,
            epoch: 1,
            ..Header::default()
        };
        let ring =
            |lwp| Ring { state: RingState::Used as u64, id: lwp + 10, lwp, pthread: lwp << 12, ..Ring::default() };
        let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
        target.process.pid = Some(PID as i32);
        for lwp in [1, 2] {
            let mut thread = thread_at(lwp, Addr(0x40), Addr(0x7000));
            thread.pointer = Some(Addr(((lwp as u64) << 12) + DISTANCE));
            target.threads.push(thread);
        }
        // What locks hold: their variables.
        target.memory.push((Addr(0x500), [5u32, 6, 7, 8].map(u32::to_le_bytes).concat()));
        let (held, tasks, events) = (Vec::new(), Vec::new(), Vec::new());
        Companion { header, rings: [1, 2].map(ring), held, tasks, events, stops: [0; 2], target }
    }

    /// The thread of a ring has the lock at this address, of this kind.
    fn holds(&mut self, ring: u64, wait_id: u64, kind: u64) {
        let epoch = self.header.epoch;
        self.held.push((ring, Held { wait_id, codeptr_ra: 0x1234, kind, epoch, ..Held::default() }));
    }

    /// The thread of the first ring has met this.
    fn event(&mut self, kind: u8, endpoint: u8) {
        let position = self.events.len() as u64;
        self.events.push(Event { position, kind, endpoint, codeptr_ra: position + 1, ..Event::default() });
        self.rings[0].head = position + 1;
    }

    fn target(&self) -> FakeTarget {
        let shape = Shape::new(2, 128, 64, 64).expect("a block");
        let mut block = vec![0; shape.size() as usize];
        let mut put = |at: u64, words: &mut dyn Iterator<Item = u64>| {
            for (at, word) in (at as usize..).step_by(8).zip(words) {
                block[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        };
        put(0, &mut self.header.words().copied());
        for task in &self.tasks {
            put(shape.tasks_at() + task.id % 64 * size_of::<Creation>() as u64, &mut task.words().copied());
        }
        for (ring, index) in self.rings.iter().zip(0..) {
            put(shape.ring_at(index), &mut ring.words().copied());
            put(shape.ring_at(index) + in_ring::STOP_AT, &mut [self.stops[index as usize]].into_iter());
        }
        for ((ring, held), place) in self.held.iter().zip(0..) {
            let at = shape.ring_at(*ring) + in_ring::HELD_AT + place * size_of::<Held>() as u64;
            put(at, &mut held.words().copied());
        }
        for event in &self.events {
            put(shape.ring_at(0) + in_ring::EVENTS_AT + event.position % 128 * 64, &mut event.words().into_iter());
        }
        let mut target = self.target.clone();
        target.memory.push((Addr(WORD), BLOCK.to_le_bytes().to_vec()));
        target.memory.push((Addr(BLOCK), block));
        target
    }

    /// What it remembers where threads can be told by their pointers, or only by their ids.
    fn remembered(&self, distance: Option<u64>) -> Remembered {
        let target = self.target();
        let target = ChangedTarget::new(&target).with_pthread_distance(distance);
        Remembered::read(&target, &[Addr(WORD)], &[self.snapshot()])
    }

    /// A runtime with a lock, and with tasks 1 to 3 by what is filed with them: the last was not filed.
    fn snapshot(&self) -> RawSnapshot {
        let mut p = Process::new();
        p.lock(fact(None));
        let team = p.team();
        for data in [fact(1), fact(2), fact(0), Fact::unknown(WHY)] {
            let task = p.task(team, TaskKind::Explicit, TaskState::Ready);
            p.snapshot.tasks[task.0].tool_data = data;
        }
        p.snapshot
    }
}

/// The variable and the thread of the lock at an address.
fn holder(remembered: &Remembered, at: u64) -> Option<(u64, i32)> {
    remembered.holder(Addr(at), None).map(|(variable, holder)| (variable.0, holder.lwp))
}

#[test]
fn locks_have_the_threads_whose_rings_name_them() {
    let mut c = Companion::new();
    c.holds(0, 0x500, 1);
    c.holds(1, 0x504, 3);
    for distance in [Some(DISTANCE), None] {
        let found = c.remembered(distance);
        assert_eq!(holder(&found, 0x500), Some((0x500, 1)));
        assert_eq!(holder(&found, 0x504), Some((0x504, 2)));
        assert_eq!(holder(&found, 0x508), None);
        assert!(found.trouble().is_none());
        let (_, holder) = found.holder(Addr(0x500), None).expect("a holder");
        assert_eq!((holder.codeptr_ra, holder.disputed), (0x1234, false));
    }
}

#[test]
fn lock_that_two_threads_are_said_to_have_is_disputed() {
    let mut c = Companion::new();
    c.holds(0, 0x500, 1);
    c.holds(1, 0x500, 1);
    let (_, holder) = c.remembered(None).holder(Addr(0x500), None).expect("a holder");
    assert!(holder.disputed);
}

#[test]
fn lock_of_the_runtime_is_found_by_what_its_variable_holds() {
    // ompt_mutex_lock, test_lock, nest_lock, test_nest_lock; critical
    for (kind, has_variable) in [(1, true), (2, true), (3, true), (4, true), (0, false), (5, false)] {
        let mut c = Companion::new();
        c.holds(0, 0x504, kind);
        let found = c.remembered(None);
        let by_word = found.holder(Addr(0x9000), Some(6)).map(|(variable, holder)| (variable.0, holder.lwp));
        assert_eq!(by_word, has_variable.then_some((0x504, 1)), "{kind}");
        assert!(found.holder(Addr(0x9000), Some(7)).is_none());
        assert!(found.holder(Addr(0x504), Some(7)).is_some(), "by its address");
    }
}

#[test]
fn locks_held_before_a_pause_or_changed_at_the_stop_are_not_remembered() {
    let held = |change: fn(&mut Companion)| {
        let mut c = Companion::new();
        c.holds(0, 0x500, 1);
        change(&mut c);
        holder(&c.remembered(None), 0x500).is_some()
    };
    assert!(held(|_| ()));
    assert!(held(|c| (c.header.epoch, c.held[0].1.epoch) = (3, 3)));
    assert!(!held(|c| c.header.epoch = 2), "it may have been let go of unseen");
    assert!(!held(|c| c.header.state = State::Paused as u64));
    assert!(!held(|c| c.held[0].1.wait_id = CHANGING));
    assert!(!held(|c| c.rings[0].state = RingState::Ended as u64));
    assert!(!held(|c| c.rings[0].lwp = u64::MAX));
}

#[test]
fn threads_of_a_container_are_told_by_their_pointers() {
    let of = |distance, change: fn(&mut Companion)| {
        let mut c = Companion::new();
        c.holds(1, 0x500, 1);
        change(&mut c);
        let found = c.remembered(distance);
        (holder(&found, 0x500).map(|(_, lwp)| lwp), found.trouble().cloned())
    };
    let inside = |c: &mut Companion| {
        c.header.pid = 1;
        c.rings[1].lwp = 7;
    };
    assert_eq!(of(Some(DISTANCE), inside), (Some(2), None));
    let trouble = Some(Trouble::CompanionNamespace { pid: 1 });
    assert_eq!(of(None, inside), (None, trouble.clone()));
    let without_pointers = |c: &mut Companion| {
        c.header.pid = 1;
        c.target.threads.iter_mut().for_each(|thread| thread.pointer = None);
    };
    assert_eq!(of(Some(DISTANCE), without_pointers), (None, trouble));
    // In one namespace both have to agree: the memory of a thread that ended may be another's.
    assert_eq!(of(Some(DISTANCE), |c| c.rings[1].lwp = 7), (None, None));
    assert_eq!(of(Some(DISTANCE), |c| c.rings[1].pthread = 7), (None, None));
    assert_eq!(of(None, |c| c.rings[1].lwp = 7), (Some(7), None), "nothing says otherwise");
    assert_eq!(of(None, |c| c.target.process.pid = None), (Some(2), None), "the process is not known");
}

#[test]
fn places_where_tasks_were_generated_are_found_by_their_numbers() {
    let mut c = Companion::new();
    c.tasks.push(Creation { id: 1, codeptr_ra: 0x77, ..Creation::default() });
    c.tasks.push(Creation { id: 2 + 64, codeptr_ra: 0x88, ..Creation::default() });
    let found = c.remembered(None);
    assert_eq!(found.creation(1).map(|of| of.codeptr_ra), Some(0x77));
    assert_eq!(found.creation(2), None, "its place was given to another one");
    assert_eq!(found.creation(0), None);
}

/// What thread 1 has begun on a device: the places of construct and operation in the code.
fn on_device(c: &Companion) -> Option<(Option<u64>, Option<u64>)> {
    let found = c.remembered(None).unfinished(1)?;
    Some((found.construct.map(|of| of.codeptr_ra), found.operation.map(|of| of.codeptr_ra)))
}

/// Callback 8 (`ompt_callback_target`) is reported, though not each time.
fn reports_some(c: &mut Companion) {
    c.header.results_first = 3 << (7 * 4);
}

#[test]
fn construct_that_a_thread_has_begun_on_a_device_is_remembered() {
    const TARGET: u8 = 8;
    const DATA: u8 = 9;
    let with = |events: &[(u8, u8)], change: fn(&mut Companion)| {
        let mut c = Companion::new();
        reports_some(&mut c);
        events.iter().for_each(|(kind, endpoint)| c.event(*kind, *endpoint));
        change(&mut c);
        on_device(&c)
    };
    let begun = &[(TARGET, 1), (DATA, 1)][..];
    assert_eq!(with(begun, |_| ()), Some((Some(1), Some(2))));
    assert_eq!(with(&[(TARGET, 1), (TARGET, 2)], |_| ()), None, "it has ended");
    // What ended while the companion paused would seem to go on.
    assert_eq!(with(begun, |c| c.header.epoch = 2), None);
    assert_eq!(with(begun, |c| c.header.state = State::Paused as u64), None);
    assert_eq!(with(begun, |c| c.header.results_first = 0), None, "the runtime has no device");
    assert_eq!(with(begun, |c| c.rings[0].state = RingState::Ended as u64), None);
    // The construct began before all of the last few events.
    let mut many = vec![(TARGET, 1)];
    many.extend([(6, 0); 100]);
    many.push((DATA, 1));
    assert_eq!(with(&many, |_| ()), Some((Some(1), Some(102))));
}

#[test]
fn threads_at_stop_points_are_those_whose_rings_name_one() {
    let mut c = Companion::new();
    let at = |c: &Companion| {
        let target = c.target();
        let found = at_stop_points(&target, &[Addr(WORD)]).expect("a companion").expect("it can be read");
        assert_eq!(found.runtime, None);
        found.threads
    };
    assert_eq!(at(&c), []);
    for (number, event) in [
        (1, StopEvent::ParallelBegin),
        (2, StopEvent::ParallelEnd),
        (3, StopEvent::TaskBegin),
        (4, StopEvent::TaskEnd),
        (5, StopEvent::ThreadBegin),
        (6, StopEvent::ThreadEnd),
    ] {
        c.stops = [0, number];
        assert_eq!(at(&c), [AtStopPoint { event, id: 12, lwp: Some(2) }]);
    }
    c.rings[1].lwp = u64::MAX;
    assert_eq!(at(&c), [AtStopPoint { event: StopEvent::ThreadEnd, id: 12, lwp: None }]);
    c.rings[1].state = RingState::Ended as u64;
    assert_eq!(at(&c), []);
}

#[test]
fn companion_that_has_not_begun_is_none_and_one_that_cannot_be_read_is_trouble() {
    let mut target = Companion::new().target();
    target.memory.push((Addr(0x900), vec![0; 8]));
    target.memory.push((Addr(0x908), 0x44u64.to_le_bytes().to_vec()));
    let of = |words: &[u64]| {
        let words: Vec<Addr> = words.iter().copied().map(Addr).collect();
        let remembered = Remembered::read(&target, &words, &[]);
        (find(&target, &words).map(|found| found.is_ok()), remembered.trouble().is_some())
    };
    assert_eq!(of(&[]), (None, false));
    assert_eq!(of(&[0x900]), (None, false));
    // Two are linked in, and the runtime has started one of them.
    assert_eq!(of(&[0x900, WORD]), (Some(true), false));
    assert_eq!(of(&[0x910]), (Some(false), true), "the word cannot be read");
    assert_eq!(of(&[0x908]), (Some(false), true), "there is no block");
    assert!(at_stop_points(&target, &[Addr(0x900)]).is_none());
    assert!(at_stop_points(&target, &[Addr(0x908)]).is_some_and(|found| found.is_err()));
}

#[test]
fn words_longer_than_one_read_are_whole() {
    let bytes = memory::MAX_READ + 64;
    let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    target.memory.push((Addr(0x1000), (0..bytes / 8).flat_map(u64::to_le_bytes).collect()));
    let found = Words::of_running(&target).words(0x1000, (bytes / 8) as usize).expect("it is there");
    assert!(found.into_iter().eq(0..bytes / 8));
}
