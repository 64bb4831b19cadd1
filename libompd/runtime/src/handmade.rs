//! Processes of one runtime made by hand, for the tests of what is read, judged and merged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ompd_layout::Origin;
use ompd_process::{Addr, Arch, ElfFile, Module, TargetKind};
use test_programs::{FakeTarget, elf};

use crate::model::*;
use crate::os::{Blocked, OsState, OsThread, Signals};

/// Asleep in the kernel.
pub(crate) const FUTEX: Blocked = Blocked::Futex(Addr(0x1000));
pub(crate) const WHY: Common = Common::NotRead;

pub(crate) fn fact<T>(value: T) -> Fact<T> {
    Fact::known(value, Origin::Dwarf)
}

/// A process of one runtime, whose threads are numbered from 1 in the order in which they are added.
pub(crate) struct Process {
    pub(crate) snapshot: RawSnapshot,
    pub(crate) os: OsState,
}

impl Process {
    pub(crate) fn new() -> Process {
        let instance = InstanceInfo {
            family: "gomp",
            product: "GNU libgomp",
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
        let os = OsState { threads: Vec::new(), signals: Signals::Handled(0), shared: BTreeMap::new() };
        Process { snapshot, os }
    }

    /// A thread of which no runtime knows.
    pub(crate) fn foreign(&mut self, blocked: Blocked) -> i32 {
        let lwp = i32::try_from(self.os.threads.len()).expect("a few threads") + 1;
        self.os.threads.push(OsThread::new(lwp, blocked));
        lwp
    }

    /// The next member of a team, with its implicit task.
    pub(crate) fn member(&mut self, team: TeamId, blocked: Blocked, wait: Option<Wait>) -> i32 {
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
    pub(crate) fn idle(&mut self, blocked: Blocked, over: Fact<bool>) -> i32 {
        let lwp = self.foreign(blocked);
        let wait = Wait { over, ..Wait::new(WaitKind::Pool, Addr::NULL, Origin::Dwarf) };
        self.thread(lwp, None, None, Some(wait));
        lwp
    }

    pub(crate) fn thread(&mut self, lwp: i32, team: Option<TeamId>, member: Option<(u32, TaskId)>, wait: Option<Wait>) {
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

    pub(crate) fn team(&mut self) -> TeamId {
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

    pub(crate) fn task(&mut self, team: TeamId, kind: TaskKind, state: TaskState) -> TaskId {
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

    pub(crate) fn lock(&mut self, owner: Fact<Option<Owner>>) -> LockId {
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
    pub(crate) fn turn(&mut self, team: TeamId, number: u32) {
        self.snapshot.recorded.loops.push(Loop {
            team,
            kind: Fact::unknown(WHY),
            schedule: Fact::unknown(WHY),
            chunk: Fact::unknown(WHY),
            iterations: Fact::unknown(WHY),
            handed_out: Fact::unknown(WHY),
            next: Fact::unknown(WHY),
            end: Fact::unknown(WHY),
            step: Fact::unknown(WHY),
            completed: Fact::unknown(WHY),
            members: vec![0, 1],
            shares: Vec::new(),
            ordered_turn: fact(Some(number)),
            doacross: fact(None),
        });
    }

    pub(crate) fn handle(&mut self, signals: Signals) {
        self.os.signals = signals;
    }
}

/// A wait that had not ended at the stop, of a thread that sleeps.
pub(crate) fn wait(kind: WaitKind, team: TeamId) -> Option<Wait> {
    let asleep = Some(true);
    Some(Wait { team: Some(team), over: fact(false), asleep, ..Wait::new(kind, Addr::NULL, Origin::Dwarf) })
}

pub(crate) fn spins(wait: Option<Wait>) -> Option<Wait> {
    wait.map(|wait| Wait { asleep: Some(false), ..wait })
}

pub(crate) fn by_stack(wait: Option<Wait>) -> Option<Wait> {
    spins(wait).map(|wait| Wait { origin: Origin::Stack, ..wait })
}

pub(crate) fn locked(lock: LockId) -> Option<Wait> {
    let wait = Wait::new(WaitKind::Lock, Addr::NULL, Origin::Dwarf);
    Some(Wait { lock: Some(lock), over: fact(false), asleep: Some(true), ..wait })
}

/// A process on x86-64 whose memory is made up.
pub(crate) struct Heap {
    pub(crate) target: FakeTarget,
    next: u64,
}

impl Heap {
    pub(crate) fn new() -> Heap {
        Heap { target: FakeTarget::new(TargetKind::Core, Arch::X86_64), next: 0x10_0000 }
    }

    /// Memory full of zeros.
    pub(crate) fn zeros(&mut self, bytes: u64) -> Addr {
        let at = self.next;
        self.next += bytes.next_multiple_of(64) + 64;
        self.target.memory.push((Addr(at), vec![0; bytes as usize]));
        Addr(at)
    }

    pub(crate) fn write(&mut self, at: Addr, value: u64, bytes: u64) {
        let skip = |start: &Addr| at.0.checked_sub(start.0);
        let mut memory = self.target.memory.iter_mut();
        let holds = |(start, of): &&mut (Addr, Vec<u8>)| skip(start).is_some_and(|skip| skip < of.len() as u64);
        let (start, of) = memory.find(holds).expect("memory");
        let from = (at.0 - start.0) as usize;
        of[from..from + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
    }
}

/// A library with these symbols, each with its address and size: of functions where `functions` is set, otherwise of variables.
pub(crate) fn with_symbols(symbols: &[(&str, u64, u64)], functions: bool) -> Module {
    let mut strings = vec![0];
    let mut table = vec![0; 24];
    for (name, at, size) in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        // STT_FUNC or STT_OBJECT, STB_GLOBAL, of section 1
        table.extend([if functions { 0x12 } else { 0x11 }, 0, 1, 0]);
        table.extend([*at, *size].map(u64::to_le_bytes).concat());
        strings.extend(name.bytes().chain([0]));
    }
    let bytes = elf(&[(".text", 0x1000, &[0x90; 0x1000]), (".symtab", 0, &table), (".strtab", 0, &strings)]);
    let file = ElfFile::from_bytes("a file", bytes).expect("a file");
    let ranges = vec![Range { start: 0x1000, end: 0x2000 }];
    Module { path: "/lib/libmade.so".to_owned(), bias: 0, ranges, build_id: None, file: Ok(Arc::new(file)) }
}
