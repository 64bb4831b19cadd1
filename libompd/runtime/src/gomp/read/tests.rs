//! What is read of memory that is made up, in the layout of a shipped profile.

use ompd_layout::Origin;
use ompd_process::{Addr, Arch, Syscall};
use test_programs::thread_at;

use super::*;
use crate::bind::{SizeOf, Slot};
use crate::gomp::{PROFILES, origins, schema};
use crate::handmade;
use crate::owner::OwnCode;

mod loops;
mod places;
mod pools;
mod set_aside;
mod tasks;
mod waits;

/// Bytes from the thread's data to the thread pointer.
const BELOW: u64 = 0x40;
const VARIABLES: [&str; 8] = [
    schema::GLOBAL_ICV,
    schema::DEFAULT_LOCK,
    schema::ATOMIC_LOCK,
    schema::CANCEL,
    schema::PLACES,
    schema::PLACES_LEN,
    schema::AVAILABLE_CPUS,
    schema::DEF_ALLOCATOR,
];

/// A process with libgomp of GCC 13 to 16.
type Made = handmade::Made<Gomp>;

impl Made {
    fn new() -> Made {
        let profile = PROFILES.all().classes.iter().find(|class| class.name.contains("class G")).expect("a profile");
        let mut facts = profile.facts.clone();
        facts.globals = [(schema::TLS_DISTANCE.to_owned(), BELOW.wrapping_neg())].into();
        Made::of("libgomp.so.1", facts, &VARIABLES, |_, module, layout, info| {
            let own_code = OwnCode::of(module, origins().names, origins().profiles);
            Gomp::bind(module, &layout, info, own_code)
        })
    }

    fn made(&mut self, size: SizeOf) -> Addr {
        self.zeros(size.get().expect("a size"))
    }

    /// Sets a field of a struct.
    fn set(&mut self, of: Addr, slot: impl Fn(&schema::Structs) -> Slot, value: u64) {
        let field = slot(&self.runtime.structs).field().expect("a field");
        self.write(of.offset(field.offset), value, field.size);
    }

    fn addr_of(&self, of: Addr, slot: impl Fn(&schema::Structs) -> Slot) -> Addr {
        of.offset(slot(&self.runtime.structs).offset().expect("a field"))
    }

    /// Threads from LWP 1 on that execute the program, and the team of which they are the members.
    fn team(&mut self, size: u64) -> Addr {
        let task = self.runtime.structs.task.size.get().expect("a size");
        let first = self.runtime.structs.team.implicit_task.offset().expect("a field");
        let team = self.zeros(first + size * (task + 8));
        let pool = self.made(self.runtime.structs.pool.size);
        let workers = self.zeros(8 * size);
        let releases = team.offset(first + size * task);
        for number in 0..size {
            let thread = self.made(self.runtime.structs.thread.size);
            let lwp = self.target.threads.len() as i32 + 1;
            let mut executes = thread_at(lwp, Addr(0x1000), Addr(0x7000));
            executes.pointer = Some(thread.offset(BELOW));
            self.target.threads.push(executes);
            let own = team.offset(first + number * task);
            self.set(thread, |s| s.thread.team, team.0);
            self.set(thread, |s| s.thread.team_id, number);
            self.set(thread, |s| s.thread.level, 1);
            self.set(thread, |s| s.thread.active_level, u64::from(size > 1));
            self.set(thread, |s| s.thread.task, own.0);
            self.set(thread, |s| s.thread.thread_pool, pool.0);
            let release = self.addr_of(thread, |s| s.thread.release);
            let release = if number == 0 { self.addr_of(team, |s| s.team.master_release) } else { release };
            self.write(releases.offset(8 * number), release.0, 8);
            self.write(workers.offset(8 * number), thread.0, 8);
        }
        self.set(pool, |s| s.pool.threads, workers.0);
        self.set(pool, |s| s.pool.threads_used, size);
        self.set(team, |s| s.team.nthreads, size);
        self.set(team, |s| s.team.barrier_total, size);
        self.set(team, |s| s.team.barrier_awaited, size);
        self.set(team, |s| s.team.barrier_awaited_final, size);
        self.set(team, |s| s.team.ordered_release, releases.0);
        team
    }

    /// The data of a thread.
    fn data(&self, lwp: i32) -> Addr {
        self.target.threads[lwp as usize - 1].pointer.expect("a pointer").back(BELOW)
    }

    /// A thread sleeps in a call of the runtime on a word while that has this value.
    fn sleeps(&mut self, lwp: i32, word: Addr, value: u32) {
        const PRIVATE: u64 = 128;
        let number = Arch::X86_64.machine.call_number("futex").expect("a number");
        let registers = self.target.threads[lwp as usize - 1].registers.as_mut().expect("registers");
        registers.pc = handmade::CODE;
        let args = [word.0, PRIVATE, value.into(), 0, 0, 0];
        registers.syscall = Some(Syscall { number, args, begun: true });
    }

    fn snapshot(&self) -> RawSnapshot {
        let (found, check) = snapshot(&self.runtime, &self.target);
        assert_eq!(check.failure(), None);
        found
    }
}

#[test]
fn members_of_a_team_have_their_numbers_and_implicit_tasks() {
    let mut made = Made::new();
    made.team(3);
    let found = made.snapshot();
    assert_eq!(found.issues, []);
    let [team] = &found.teams[..] else { panic!("one team") };
    assert_eq!((team.size.get(), team.level.get(), team.active_level.get()), (Some(3), Some(1), Some(1)));
    assert_eq!((team.parent.get(), team.serialized.get()), (Some(None), Some(false)));
    assert_eq!(team.members, [Some(1), Some(2), Some(3)]);
    let numbers: Vec<_> = found.threads.iter().map(|t| (t.lwp, t.thread_num.get(), t.team.flat())).collect();
    assert_eq!(numbers, [1, 2, 3].map(|lwp: i32| (Some(lwp), Some(lwp as u32 - 1), Some(TeamId(0)))));
    let roles: Vec<_> = found.threads.iter().map(|t| t.role.get()).collect();
    assert_eq!(roles, [Some(Role::Initial), Some(Role::Worker), Some(Role::Worker)]);
    for thread in &found.threads {
        let task = thread.task.get().and_then(|id| found.task(id)).expect("its task");
        assert_eq!((task.kind.get(), task.thread), (Some(TaskKind::Implicit), thread.lwp));
        assert_eq!(thread.wait, Fact::known(None, Origin::Registers), "it executes the program");
    }
}

#[test]
fn team_of_one_thread_is_serialized() {
    let mut made = Made::new();
    made.team(1);
    let team = made.snapshot().teams.remove(0);
    assert_eq!((team.serialized.get(), team.active_level.get()), (Some(true), Some(0)));
}

#[test]
fn thread_whose_place_in_the_team_another_has_is_in_no_team() {
    let mut made = Made::new();
    let team = made.team(3);
    // The memory of the team has another one by now, to which thread 3 does not belong.
    let releases = made.target.read_ptr(made.addr_of(team, |s| s.team.ordered_release)).expect("a pointer");
    made.write(releases.offset(16), 0x1234, 8);
    let found = made.snapshot();
    assert_eq!(found.teams[0].members, [Some(1), Some(2), None]);
    assert_eq!(found.threads[2].team.value(), None);
    assert_eq!(found.threads[2].wait.value(), None);
}

#[test]
fn team_that_breaks_what_every_team_keeps_to_is_not_used() {
    type Field = fn(&schema::Structs) -> Slot;
    let broken: [(Field, u64); 3] =
        [(|s| s.team.barrier_total, 4), (|s| s.team.ordered_release, 0x10), (|s| s.team.nthreads, 0)];
    for (slot, value) in broken {
        let mut made = Made::new();
        let team = made.team(3);
        made.set(team, slot, value);
        let (found, check) = snapshot(&made.runtime, &made.target);
        assert!(check.failure().is_some() || found.teams.is_empty(), "{value}");
        assert!(!found.issues.is_empty(), "{value}");
    }
}
