//! Snapshots made by hand, for tests of what is made of them.

use std::collections::BTreeMap;

use ompd_layout::Origin;
use ompd_process::Addr;

use crate::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use crate::model::*;
use crate::os::{Blocked, OsState, OsThread, Signals};

/// A thread sleeps on a word that no other process has.
pub const FUTEX: Blocked = Blocked::Futex(Addr(0x1000));
/// Why a value is unknown that a sample does not need.
pub const WHY: Common = Common::NotRead;

/// A value that was read.
pub fn fact<T>(value: T) -> Fact<T> {
    Fact::known(value, Origin::Dwarf)
}

/// A process of one runtime, whose threads are numbered from 1 in the order in which they are added.
#[derive(Debug, Clone)]
pub struct Process {
    /// What its runtime has.
    pub snapshot: RawSnapshot,
    /// What its threads were blocked in.
    pub os: OsState,
}

impl Default for Process {
    fn default() -> Process {
        Process::new()
    }
}

impl Process {
    /// A process without threads.
    pub fn new() -> Process {
        let instance = InstanceInfo {
            family: "sample",
            product: "a runtime",
            path: String::new(),
            file: None,
            base: Addr::NULL,
            reports_from: None,
            build_id: None,
            needed_by: None,
            origins: Vec::new(),
            layout: Vec::new(),
            missing: Vec::new(),
            issues: Vec::new(),
        };
        let snapshot = RawSnapshot {
            instance,
            threads: Vec::new(),
            teams: Vec::new(),
            tasks: Vec::new(),
            locks: Vec::new(),
            recorded: Recorded::default(),
            issues: Vec::new(),
        };
        let os = OsState {
            threads: Vec::new(),
            signals: Signals::Handled(0),
            outsiders: Vec::new(),
            shared: BTreeMap::new(),
        };
        Process { snapshot, os }
    }

    /// A thread of which no runtime knows. What it gives is the thread id.
    pub fn foreign(&mut self, blocked: Blocked) -> i32 {
        let lwp = i32::try_from(self.os.threads.len()).expect("a few threads") + 1;
        self.os.threads.push(OsThread::new(lwp, blocked));
        lwp
    }

    /// The next member of a team, with its implicit task.
    pub fn member(&mut self, team: TeamId, blocked: Blocked, wait: Option<Wait>) -> i32 {
        let lwp = self.foreign(blocked);
        let members = &mut self.snapshot.teams[team.0].members;
        members.push(Some(lwp));
        let number = u32::try_from(members.len()).expect("a few members") - 1;
        let task = self.task(team, TaskKind::Implicit, TaskState::Running);
        self.snapshot.tasks[task.0].thread = Some(lwp);
        self.thread(lwp, Some(team), Some((number, task)), wait);
        lwp
    }

    /// A worker without a region.
    pub fn idle(&mut self, blocked: Blocked, over: Fact<bool>) -> i32 {
        let lwp = self.foreign(blocked);
        let wait = Wait { over, ..Wait::new(WaitKind::Pool, Addr::NULL, Origin::Dwarf) };
        self.thread(lwp, None, None, Some(wait));
        lwp
    }

    fn thread(&mut self, lwp: i32, team: Option<TeamId>, member: Option<(u32, TaskId)>, wait: Option<Wait>) {
        self.snapshot.threads.push(RawThread {
            lwp: Some(lwp),
            descriptor: Addr::NULL,
            gtid: None,
            role: Fact::unknown(WHY),
            thread_num: member.map_or(Fact::unknown(WHY), |(number, _)| fact(number)),
            team: fact(team),
            task: member.map_or(Fact::unknown(WHY), |(_, task)| fact(task)),
            wait: fact(wait),
            at_work: false,
            icvs: Icvs::unknown(WHY),
            placement: Placement::unknown(WHY),
            tool_data: Fact::unknown(WHY),
            outermost_tool_data: Fact::unknown(WHY),
            ompt_state: Fact::unknown(WHY),
        });
    }

    /// A team at level 1, without members.
    pub fn team(&mut self) -> TeamId {
        self.snapshot.teams.push(RawTeam {
            descriptor: Addr::NULL,
            size: Fact::unknown(WHY),
            level: fact(1),
            active_level: fact(1),
            parent: fact(None),
            primary_num: fact(0),
            serialized: fact(false),
            function: Fact::unknown(WHY),
            location: Fact::unknown(WHY),
            members: Vec::new(),
            barrier: Fact::unknown(WHY),
            tool_data: Fact::unknown(WHY),
        });
        TeamId(self.snapshot.teams.len() - 1)
    }

    /// A tied task of a team, without children.
    pub fn task(&mut self, team: TeamId, kind: TaskKind, state: TaskState) -> TaskId {
        self.snapshot.tasks.push(RawTask {
            kind: fact(kind),
            state: fact(state),
            team: fact(Some(team)),
            generating: fact(None),
            tied: fact(true),
            priority: fact(0),
            event: fact(None),
            taskgroup: fact(None),
            unfinished_children: fact(0),
            ..RawTask::unknown(Addr::NULL, WHY)
        });
        TaskId(self.snapshot.tasks.len() - 1)
    }

    /// A lock with this owner.
    pub fn lock(&mut self, owner: Fact<Option<Owner>>) -> LockId {
        self.snapshot.locks.push(RawLock {
            object: Addr::NULL,
            kind: fact(LockKind::Lock),
            name: None,
            location: None,
            owner,
            held: fact(true),
            variable_word: None,
            wait_id: None,
            depth: None,
            waiters: Vec::new(),
            queued: false,
        });
        LockId(self.snapshot.locks.len() - 1)
    }

    /// A loop of a team, in whose `ordered` region it is the turn of this member.
    pub fn turn(&mut self, team: TeamId, number: u32) {
        self.snapshot.recorded.loops.push(Loop {
            members: vec![0, 1],
            ordered_turn: fact(Some(number)),
            doacross: fact(None),
            ..Loop::unknown(team, WHY)
        });
    }

    /// So many nested levels may be active for a thread, and so many are.
    pub fn allow(&mut self, lwp: i32, most: u64, active: u64) {
        let mut threads = self.snapshot.threads.iter_mut();
        let thread = threads.find(|thread| thread.lwp == Some(lwp)).expect("a thread of the runtime");
        thread.icvs.values.set(&MAX_ACTIVE_LEVELS, fact(IcvValue::Count(most)));
        thread.icvs.values.set(&ACTIVE_LEVELS, fact(IcvValue::Count(active)));
    }

    /// The process has handlers for these signals.
    pub fn handle(&mut self, signals: Signals) {
        self.os.signals = signals;
    }
}

/// A wait that had not ended at the stop, of a thread that sleeps.
pub fn wait(kind: WaitKind, team: TeamId) -> Option<Wait> {
    let asleep = Some(true);
    Some(Wait { team: Some(team), over: fact(false), asleep, ..Wait::new(kind, Addr::NULL, Origin::Dwarf) })
}

/// The same of a thread that does not sleep.
pub fn spins(wait: Option<Wait>) -> Option<Wait> {
    wait.map(|wait| Wait { asleep: Some(false), ..wait })
}

/// The same of a thread that yields the processor, as its stack alone shows.
pub fn by_stack(wait: Option<Wait>) -> Option<Wait> {
    spins(wait).map(|wait| Wait { origin: Origin::Stack, ..wait })
}

/// The wait of a thread that sleeps until it has a lock.
pub fn locked(lock: LockId) -> Option<Wait> {
    let wait = Wait::new(WaitKind::Lock, Addr::NULL, Origin::Dwarf);
    Some(Wait { lock: Some(lock), over: fact(false), asleep: Some(true), ..wait })
}
