//! What is read of memory that is made up, in the layout of a shipped profile.

use ompd_layout::Layout;
use test_programs::{ChangedTarget, thread_at};

use super::*;
use crate::bind::SizeOf;
use crate::handmade;
use crate::kmp::{PROFILES, origins, schema};
use crate::owner::OwnCode;

mod locks;
mod loops;
mod waits;

const VARIABLES: [&str; 5] =
    [schema::THREADS, schema::ALL_NTH, schema::THREADS_CAPACITY, schema::LOCK_TABLE, schema::CANCEL];
/// Bytes from what `pthread_self` returns to the thread pointer.
const PTHREAD: u64 = 0;

/// A process with libomp of LLVM 19.
type Made = handmade::Made<Kmp>;

impl Made {
    fn new() -> Made {
        let profile =
            PROFILES.all().classes.iter().find(|class| class.name.starts_with("libomp 19")).expect("a profile");
        let mut facts = profile.facts.clone();
        facts.globals.clear();
        let mut made = Made::of("libomp.so.5", facts, &VARIABLES, |target, module, layout, info| {
            let own_code = OwnCode::of(module, origins().names, origins().profiles);
            Kmp { lists_of_teams: Some(false), ..Kmp::bind(target, module, layout, info, own_code) }
        });
        let table = made.zeros(8 * 16);
        made.write(made.variable(schema::THREADS), table.0, 8);
        made.write(made.variable(schema::THREADS_CAPACITY), 16, 4);
        made
    }

    /// The table of threads.
    fn table(&self) -> Addr {
        self.target.read_ptr(self.variable(schema::THREADS)).expect("the table")
    }

    fn made(&mut self, size: impl Fn(&schema::Structs) -> SizeOf) -> Addr {
        let size = size(&self.runtime.structs).get().expect("a size");
        self.zeros(size)
    }

    /// Sets a field of a struct.
    fn set(&mut self, of: Addr, slot: impl Fn(&schema::Structs) -> Slot, value: u64) {
        let field = slot(&self.runtime.structs).field().expect("a field");
        self.write(of.offset(field.offset), value, field.size);
    }

    /// Threads from LWP 1 on that execute the program, and the team of which they are the members.
    fn team(&mut self, size: u64) -> Addr {
        let team = self.made(|s| s.team.size);
        let members = self.zeros(8 * size);
        for number in 0..size {
            let gtid = self.target.threads.len() as u64;
            let thread = self.made(|s| s.info.size);
            let task = self.made(|s| s.taskdata.size);
            let mut executes = thread_at(gtid as i32 + 1, Addr(0x1000), Addr(0x7000));
            executes.pointer = Some(Addr(0x4000 + 64 * gtid));
            self.target.threads.push(executes);
            self.set(thread, |s| s.info.ds_gtid, gtid);
            self.set(thread, |s| s.info.ds_tid, number);
            self.set(thread, |s| s.info.ds_thread, 0x4000 + 64 * gtid - PTHREAD);
            self.set(thread, |s| s.info.team, team.0);
            self.set(thread, |s| s.info.current_task, task.0);
            self.set(task, |s| s.taskdata.team, team.0);
            let (table, all) = (self.table(), self.variable(schema::ALL_NTH));
            self.write(table.offset(8 * gtid), thread.0, 8);
            self.write(members.offset(8 * number), thread.0, 8);
            self.write(all, gtid + 1, 4);
        }
        let loops = self.runtime.structs.disp.size.get().expect("a size");
        let loops = self.zeros(size * loops);
        self.set(team, |s| s.team.dispatch, loops.0);
        self.set(team, |s| s.team.threads, members.0);
        self.set(team, |s| s.team.nproc, size);
        self.set(team, |s| s.team.level, 1);
        self.set(team, |s| s.team.active_level, u64::from(size > 1));
        self.set(team, |s| s.team.serialized, u64::from(size == 1));
        team
    }

    /// The descriptor of a thread.
    fn thread(&self, lwp: i32) -> Addr {
        self.target.read_ptr(self.table().offset(8 * (lwp as u64 - 1))).expect("a thread")
    }

    fn snapshot(&self) -> RawSnapshot {
        let (found, check) = self.checked();
        assert_eq!(check.failure(), None);
        found
    }

    fn checked(&self) -> (RawSnapshot, SelfCheck) {
        snapshot(&self.runtime, &ChangedTarget::new(&self.target).with_pthread_distance(Some(PTHREAD)))
    }
}

#[test]
fn members_of_a_team_have_their_numbers() {
    let mut made = Made::new();
    made.team(3);
    let found = made.snapshot();
    assert_eq!(found.issues, []);
    let [team] = &found.teams[..] else { panic!("one team") };
    assert_eq!((team.size.get(), team.level.get(), team.active_level.get()), (Some(3), Some(1), Some(1)));
    assert_eq!((team.parent.get(), team.serialized.get()), (Some(None), Some(false)));
    assert_eq!(team.members, [Some(1), Some(2), Some(3)]);
    let numbers: Vec<_> = found.threads.iter().map(|t| (t.lwp, t.gtid, t.thread_num.get(), t.team.flat())).collect();
    let member = |lwp: i32| (Some(lwp), Some(lwp as u32 - 1), Some(lwp as u32 - 1), Some(TeamId(0)));
    assert_eq!(numbers, [1, 2, 3].map(member));
}

#[test]
fn serialized_regions_nested_in_each_other_share_a_team() {
    let mut made = Made::new();
    let team = made.team(1);
    made.set(team, |s| s.team.serialized, 3);
    made.set(team, |s| s.team.level, 4);
    let found = made.snapshot();
    let regions: Vec<_> = found.teams.iter().map(|team| (team.level.get(), team.parent.get())).collect();
    let nested = [(Some(2), Some(None)), (Some(3), Some(Some(TeamId(0)))), (Some(4), Some(Some(TeamId(1))))];
    assert_eq!(regions, nested);
    assert!(found.teams.iter().all(|team| team.serialized.get() == Some(true) && team.members == [Some(1)]));
    assert_eq!(found.threads[0].team.flat(), Some(TeamId(2)));
}

#[test]
fn worker_that_is_no_member_of_its_team_any_more_is_idle() {
    let of = |change: fn(&mut Made)| {
        let mut made = Made::new();
        made.team(3);
        change(&mut made);
        let found = made.snapshot();
        found.threads[2].wait.value().cloned().flatten().map(|wait| wait.kind)
    };
    assert_eq!(of(|_| ()), None);
    let pool = Some(WaitKind::Pool);
    assert_eq!(of(|made| made.set(made.thread(3), |s| s.info.in_pool, 1)), pool);
    assert_eq!(of(|made| made.set(made.thread(3), |s| s.info.ds_tid, 1)), pool, "another one has its place");
    assert_eq!(of(|made| made.set(made.thread(3), |s| s.info.ds_tid, 3)), pool, "the team is smaller");
    assert_eq!(of(|made| made.set(made.thread(3), |s| s.info.team, 0)), pool);
    // Thread 0 has gone back to the enclosing team.
    assert_eq!(of(|made| made.set(made.thread(1), |s| s.info.team, 0)), pool);
}

#[test]
fn table_that_has_fewer_threads_than_the_runtime_counts_is_an_issue() {
    let issues = |change: fn(&mut Made)| {
        let mut made = Made::new();
        made.team(3);
        change(&mut made);
        let (found, check) = made.checked();
        (found.threads.len(), found.issues.len(), check.failure().is_some())
    };
    assert_eq!(issues(|_| ()), (3, 0, false));
    assert_eq!(issues(|made| made.write(made.variable(schema::ALL_NTH), 4, 4)), (3, 1, false));
    // A hole in the table is none.
    let hole = |made: &mut Made| {
        made.set(made.thread(3), |s| s.info.ds_gtid, 7);
        made.write(made.table().offset(8 * 7), made.thread(3).0, 8);
        made.write(made.table().offset(8 * 2), 0, 8);
    };
    assert_eq!(issues(hole), (3, 0, false));
    let (threads, found, failed) = issues(|made| made.set(made.thread(2), |s| s.info.ds_gtid, 5));
    assert_eq!((threads, failed), (1, true), "no thread has another's index");
    assert!(found > 0);
    // Where entries do not tell their numbers, one that is there twice ends the table.
    let twice = |made: &mut Made| {
        made.runtime.structs.info.ds_gtid =
            Slot::bind(&Layout::default(), "kmp_base_info", "th_info.ds.ds_gtid", "ds_gtid");
        let first = made.thread(1).0;
        made.write(made.table().offset(8 * 3), first, 8);
        made.write(made.table().offset(8 * 4), first, 8);
        made.write(made.variable(schema::ALL_NTH), 5, 4);
    };
    let (threads, found, _) = issues(twice);
    assert_eq!((threads, found), (3, 1));
}

#[test]
fn psource_with_and_without_debug_info() {
    let line = parse_psource(";solve.c;main;17;17;;").expect("a position");
    assert_eq!((line.file.as_str(), line.function.as_str(), line.line), ("solve.c", "main", 17));
    assert_eq!(parse_psource(";unknown;unknown;0;0;;"), None);
    assert_eq!(parse_psource("garbage"), None);
    assert_eq!(parse_psource(""), None);
}
