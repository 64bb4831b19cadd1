//! What threads wait for at barriers, and whether it has happened.

use ompd_process::{Arch, Syscall};

use super::*;

/// A team of three whose threads have been to barriers of each kind 64 times.
struct Barrier {
    made: Made,
    team: Addr,
}

const PASSED: u64 = 64 * BARRIER_BUMP;
/// What is added to a thread's word once it has arrived.
const BARRIER_BUMP: u64 = 4;
/// `flag_type` of a flag with a word of 64 bits.
const FLAG64: u64 = 1;

impl Barrier {
    fn new() -> Barrier {
        let mut made = Made::new();
        let team = made.team(3);
        let mut all = Barrier { made, team };
        for which in BARRIERS {
            for lwp in 1..=3 {
                all.arrive(lwp, which, PASSED);
            }
            let shared = all.shared(which);
            all.made.set(shared, |s| s.balign.arrived, PASSED);
        }
        all
    }

    /// What a thread has of one kind of barrier.
    fn state(&self, lwp: i32, which: Barriers) -> Addr {
        let s = &self.made.runtime.structs;
        let all = self.made.thread(lwp).offset(s.info.bar.offset().expect("a field"));
        all.offset(which as u64 * s.bstate.size.get().expect("a size"))
    }

    /// What the team has of it.
    fn shared(&self, which: Barriers) -> Addr {
        let s = &self.made.runtime.structs;
        let all = self.team.offset(s.team.bar.offset().expect("a field"));
        all.offset(which as u64 * s.balign.size.get().expect("a size"))
    }

    fn arrive(&mut self, lwp: i32, which: Barriers, count: u64) {
        let state = self.state(lwp, which);
        self.made.set(state, |s| s.bstate.arrived, count);
    }

    fn word(&self, lwp: i32, which: Barriers, slot: impl Fn(&schema::Structs) -> Slot) -> Addr {
        self.state(lwp, which).offset(slot(&self.made.runtime.structs).offset().expect("a field"))
    }

    fn go(&self, lwp: i32, which: Barriers) -> Addr {
        self.word(lwp, which, |s| s.bstate.go)
    }

    fn arrived(&self, lwp: i32, which: Barriers) -> Addr {
        self.word(lwp, which, |s| s.bstate.arrived)
    }

    /// The thread sleeps on a word, as a flag on its stack says.
    fn sleeps(&mut self, lwp: i32, word: Addr) {
        let flag = self.made.made(|s| s.flag64.size);
        self.made.set(flag, |s| s.flag64.loc, word.0);
        let thread = self.made.thread(lwp);
        self.made.set(thread, |s| s.info.sleep_loc, flag.0);
        self.made.set(thread, |s| s.info.sleep_loc_type, FLAG64);
    }

    /// What a thread waits for: what, on which word, and whether that is over.
    fn wait(&self, lwp: i32) -> Option<(WaitKind, Addr, Option<bool>)> {
        let found = self.made.snapshot();
        let wait = found.threads[lwp as usize - 1].wait.value().cloned().flatten()?;
        Some((wait.kind, wait.object, wait.over.get()))
    }
}

#[test]
fn worker_has_arrived_at_the_barrier_of_which_its_word_is_ahead_of_the_teams() {
    for (which, kind) in [
        (Barriers::Plain, WaitKind::Barrier),
        (Barriers::Reduction, WaitKind::Barrier),
        (Barriers::ForkJoin, WaitKind::RegionEnd),
    ] {
        let mut at = Barrier::new();
        assert_eq!(at.wait(2), None);
        // Two bits of the word are flags.
        at.arrive(2, which, PASSED + 3);
        assert_eq!(at.wait(2), None);
        at.arrive(2, which, PASSED + BARRIER_BUMP);
        assert_eq!(at.wait(2), Some((kind, at.arrived(2, which), Some(false))));
        // Its own word lets it go on.
        at.made.write(at.go(2, which), BARRIER_BUMP, 8);
        assert_eq!(at.wait(2).and_then(|(.., over)| over), Some(true));
        at.made.write(at.go(2, which), 3, 8);
        assert_eq!(at.wait(2).and_then(|(.., over)| over), Some(false), "those bits are flags as well");
        // Another one's word does.
        let state = at.state(2, which);
        at.made.set(state, |s| s.bstate.wait_flag, 1);
        assert_eq!(at.wait(2).and_then(|(.., over)| over), None);
    }
}

#[test]
fn what_a_thread_waits_for_in_a_call_by_which_the_runtime_does_not_wait_is_unknown() {
    let wait = |call: Option<&str>| {
        let mut at = Barrier::new();
        at.arrive(2, Barriers::Plain, PASSED + BARRIER_BUMP);
        let number = call.map(|name| Arch::X86_64.machine.call_number(name).expect("a number"));
        let call = number.map(|number| Syscall { number, args: [0; 6], begun: true });
        at.made.target.threads[1].registers.as_mut().expect("registers").syscall = call;
        at.made.snapshot().threads.remove(1).wait
    };
    for call in [None, Some("futex"), Some("sched_yield"), Some("restart_syscall")] {
        let found = wait(call).value().cloned().flatten().map(|wait| wait.kind);
        assert_eq!(found, Some(WaitKind::Barrier), "{call:?}");
    }
    for call in ["nanosleep", "write"] {
        assert_eq!(wait(Some(call)), Fact::unknown(Common::InOtherCall), "{call}");
    }
}

#[test]
fn primary_waits_for_the_thread_on_whose_word_it_sleeps() {
    for (which, kind) in [(Barriers::Plain, WaitKind::Barrier), (Barriers::ForkJoin, WaitKind::RegionEnd)] {
        let mut at = Barrier::new();
        let word = at.arrived(3, which);
        at.sleeps(1, word);
        assert_eq!(at.wait(1), Some((kind, word, Some(false))));
        at.arrive(3, which, PASSED + BARRIER_BUMP);
        assert_eq!(at.wait(1), Some((kind, word, Some(true))));
    }
}

#[test]
fn worker_that_gathers_waits_for_the_thread_on_whose_word_it_sleeps() {
    let mut at = Barrier::new();
    let word = at.arrived(3, Barriers::Plain);
    at.sleeps(2, word);
    assert_eq!(at.wait(2), Some((WaitKind::Barrier, word, Some(false))));
    at.arrive(3, Barriers::Plain, PASSED + BARRIER_BUMP);
    assert_eq!(at.wait(2), Some((WaitKind::Barrier, word, Some(true))));
}

#[test]
fn worker_that_has_arrived_nowhere_and_sleeps_on_its_own_word_waits_for_the_region() {
    let mut at = Barrier::new();
    let word = at.go(2, Barriers::ForkJoin);
    at.sleeps(2, word);
    assert_eq!(at.wait(2), Some((WaitKind::RegionStart, word, Some(false))));
    at.made.write(word, BARRIER_BUMP, 8);
    assert_eq!(at.wait(2), Some((WaitKind::RegionStart, word, Some(true))));
    // For the primary the words are those of the region around.
    let mut at = Barrier::new();
    let word = at.go(1, Barriers::ForkJoin);
    at.sleeps(1, word);
    assert_eq!(at.wait(1).map(|(kind, ..)| kind), Some(WaitKind::RegionEnd));
}

#[test]
fn barrier_of_which_the_team_has_caught_up_is_not_over_while_tasks_are_left() {
    let of = |change: fn(&mut Barrier)| {
        let mut at = Barrier::new();
        let word = at.go(2, Barriers::Plain);
        at.sleeps(2, word);
        change(&mut at);
        let (kind, object, over) = at.wait(2).expect("a wait");
        assert_eq!((kind, object), (WaitKind::Barrier, word));
        over
    };
    assert_eq!(of(|_| ()), None, "whether it is let go is not known");
    let with_child = of(|at| {
        // The task that met the construct.
        let parent = at.made.made(|s| s.taskdata.size);
        let current = at.made.runtime.structs.info.current_task.offset().expect("a field");
        let task = at.made.target.read_ptr(at.made.thread(3).offset(current)).expect("a task");
        at.made.set(task, |s| s.taskdata.parent, parent.0);
        at.made.set(task, |s| s.taskdata.incomplete_children, 1);
    });
    assert_eq!(with_child, Some(false));
    // The primary sleeps until the last task is over.
    let primary = |left: u64| {
        let mut at = Barrier::new();
        let word = at.go(2, Barriers::Plain);
        at.sleeps(2, word);
        let queues = at.made.made(|s| s.task_team.size);
        at.made.set(queues, |s| s.task_team.unfinished, left);
        let thread = at.made.thread(1);
        at.made.set(thread, |s| s.info.task_team, queues.0);
        let unfinished = at.made.runtime.structs.task_team.unfinished.offset().expect("a field");
        at.sleeps(1, queues.offset(unfinished));
        (at.wait(1).map(|(kind, _, over)| (kind, over)), at.wait(2).and_then(|(.., over)| over))
    };
    assert_eq!(primary(2), (Some((WaitKind::BarrierTasks, Some(false))), Some(false)));
    assert_eq!(primary(0), (Some((WaitKind::BarrierTasks, Some(true))), None));
}

#[test]
fn word_that_is_no_barriers_is_unknown() {
    let mut at = Barrier::new();
    let word = at.made.zeros(8);
    at.sleeps(2, word);
    let found = at.made.snapshot();
    assert_eq!(found.threads[1].wait, Fact::unknown(crate::kmp::reason::Own::UnknownWord));
    let thread = at.made.thread(2);
    at.made.set(thread, |s| s.info.sleep_loc_type, 9);
    let found = at.made.snapshot();
    assert_eq!(found.threads[1].wait, Fact::unknown(crate::kmp::reason::Own::UnknownFlagKind { kind: 9 }));
}
