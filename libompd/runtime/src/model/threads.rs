//! Threads and their states.

use std::ops::Deref;

use ompd_layout::Origin;
use ompd_process::Addr;

use crate::entry::Construct;

use super::{Common, Fact, Icvs, Placement, Reason, Site, State, TaskId, Team, TeamId, Wait};

/// What a thread is to this runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An initial thread: a thread the program made itself, which encountered OpenMP.
    Initial,
    /// A thread the runtime made, at present a member of a team.
    Worker,
    /// A thread the runtime made, waiting for its next region.
    IdleWorker,
}

impl Role {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Role::Initial => "initial",
            Role::Worker => "worker",
            Role::IdleWorker => "idle worker",
        }
    }
}

/// One OpenMP thread as its runtime instance has it.
#[derive(Debug, Clone)]
pub struct RawThread {
    /// Kernel thread id; `None` for a thread the runtime lists but the process no longer has (after `fork`).
    pub lwp: Option<i32>,
    /// Address of the runtime's own descriptor (`gomp_thread`, `kmp_info`).
    pub descriptor: Addr,
    /// The runtime's global number of the thread, where it has one (`gtid` of libomp).
    pub gtid: Option<u32>,
    /// What it is to the runtime.
    pub role: Fact<Role>,
    /// Number within its innermost team (`omp_get_thread_num`).
    pub thread_num: Fact<u32>,
    /// Innermost team; `Known(None)` outside all parallel regions and for idle workers.
    pub team: Fact<Option<TeamId>>,
    /// Task it executes now.
    pub task: Fact<TaskId>,
    /// What it waits for, as far as memory and registers show; `Known(None)`: it is not blocked in the runtime.
    pub wait: Fact<Option<Wait>>,
    /// It executes the runtime's code, looks at no word that it waits for, and its task waits for no other.
    pub at_work: bool,
    /// Control variables in force for the task it executes.
    pub icvs: Icvs,
    /// Where it is to run.
    pub placement: Placement,
    /// What an OMPT tool has filed with it; 0 where there is no tool, or it has filed nothing.
    pub tool_data: Fact<u64>,
    /// Of an initial thread: what an OMPT tool has filed with the implicit parallel region around all others of its contention group.
    pub outermost_tool_data: Fact<u64>,
    /// What the runtime itself says it does, where it keeps that: while an OMPT tool is active.
    pub ompt_state: Fact<OmptState>,
}

/// One OpenMP thread of one runtime instance: as it was read, and what it waits for by all evidence.
#[derive(Debug, Clone)]
pub struct Thread {
    pub(crate) raw: RawThread,
    /// What it waits for, if it waits for something of the runtime's; `Known(None)`: it is not blocked in the runtime.
    pub wait: Fact<Option<Wait>>,
    /// Set if it executes code of the runtime and waits for nothing, as its stack shows.
    pub in_runtime: Option<InRuntime>,
    /// What it has begun on a device and not ended, as far as a companion has recorded it.
    pub on_device: Option<OnDevice>,
}

/// What a thread executes code of a runtime for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InRuntime {
    /// The construct for which the program has called the runtime.
    Call(Construct),
    /// A task that it executes at the end of a region or at a barrier: it is about to begin, or has just ended.
    Task,
}

/// What a thread has begun on a device and not ended: a construct, an operation, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDevice {
    /// The construct; `None`: the operation is of none, or its begin was overwritten.
    pub construct: Option<DeviceConstruct>,
    /// The operation that the construct waits for.
    pub operation: Option<DeviceOperation>,
}

/// A construct that is executed on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceConstruct {
    /// Its number in `ompt_target_t`.
    pub kind: u16,
    /// Number of the device.
    pub device: i32,
    /// The call of the runtime.
    pub called: Option<Site>,
}

/// An operation on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOperation {
    /// What it does.
    pub kind: DeviceOperationKind,
    /// The call of the runtime.
    pub called: Option<Site>,
}

/// What an operation on a device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceOperationKind {
    /// It allocates, moves or gives back data.
    Data {
        /// Its number in `ompt_target_data_op_t`.
        number: u16,
        /// Bytes; `None`: 4 GiB or more.
        bytes: Option<u32>,
    },
    /// A kernel is submitted.
    Submit {
        /// Teams that were requested.
        teams: u32,
    },
}

impl Deref for Thread {
    type Target = RawThread;

    fn deref(&self) -> &RawThread {
        &self.raw
    }
}

impl From<RawThread> for Thread {
    /// The thread with no other evidence than what was read.
    fn from(raw: RawThread) -> Thread {
        Thread { wait: raw.wait.clone(), in_runtime: None, on_device: None, raw }
    }
}

impl Thread {
    /// Its state (OpenMP 5.2, section 19.4.4.27): that of its wait, or whether it works inside a region of `teams`.
    pub fn state(&self, teams: &[Team]) -> Fact<State> {
        match (&self.wait, &self.role) {
            (Fact::Known { value: Some(wait), .. }, _) => wait.kind.state_fact(wait.origin),
            (Fact::Known { value: None, origin }, _) if self.in_runtime.is_some() => {
                Fact::known(State::Overhead, *origin)
            }
            (_, Fact::Known { value: Role::IdleWorker, origin }) => Fact::known(State::Idle, *origin),
            (Fact::Known { value: None, origin }, _) => working(&self.team, teams, *origin),
            (Fact::Unknown { why: Reason::Common(Common::InTaskyield) }, _) => Fact::unknown(Common::StateInTaskyield),
            (Fact::Unknown { why }, _) => Fact::unknown(why),
        }
    }
}

/// The state of a thread that does not wait: inside or outside a region of more than one thread.
fn working(team: &Fact<Option<TeamId>>, teams: &[Team], origin: Origin) -> Fact<State> {
    match team {
        Fact::Known { value: None, .. } => Fact::known(State::WorkSerial, origin),
        Fact::Known { value: Some(id), .. } => match teams.get(id.0).and_then(|t| t.active_level.get()) {
            Some(0) => Fact::known(State::WorkSerial, origin),
            Some(_) => Fact::known(State::WorkParallel, origin),
            None => Fact::unknown(Common::ActiveLevelUnknown),
        },
        Fact::Unknown { why } => Fact::unknown(why),
    }
}

/// A state as `ompt_get_state` tells it. Runtimes keep less than can be derived: libomp 14 does not change it in `taskwait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OmptState {
    /// Its number, of OpenMP 5.x (`ompt_state_t`).
    pub number: u32,
    /// What it waits for (`ompt_wait_id_t`); means something in states of waiting for a mutex only.
    pub wait_id: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RuntimeSnapshot, WaitKind};
    use crate::os::Blocked;
    use crate::samples::{Process, WHY, fact, wait};

    /// The state of the only member of a team.
    fn state(change: impl Fn(&mut RuntimeSnapshot)) -> Fact<State> {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, Blocked::No, None);
        let mut snapshot = p.snapshot.into();
        change(&mut snapshot);
        snapshot.threads[0].state(&snapshot.teams)
    }

    #[test]
    fn thread_that_waits_for_nothing_works_in_parallel_if_a_region_around_it_is_active() {
        assert_eq!(state(|_| ()), fact(State::WorkParallel));
        let with_level = |level| state(|s| s.teams[0].raw.active_level = fact(level));
        assert_eq!(with_level(2), fact(State::WorkParallel));
        assert_eq!(with_level(0), fact(State::WorkSerial));
        assert_eq!(state(|s| s.threads[0].raw.team = fact(None)), fact(State::WorkSerial));
        let unknown = state(|s| s.teams[0].raw.active_level = Fact::unknown(WHY));
        assert_eq!(unknown, Fact::unknown(Common::ActiveLevelUnknown));
        assert_eq!(state(|s| s.threads[0].raw.team = Fact::unknown(WHY)), Fact::unknown(WHY));
    }

    #[test]
    fn state_of_a_thread_that_waits_is_that_of_its_wait() {
        let waits = |kind| state(|s| s.threads[0].wait = fact(wait(kind, TeamId(0))));
        assert_eq!(waits(WaitKind::RegionEnd), fact(State::WaitBarrierImplicitParallel));
        assert_eq!(waits(WaitKind::Mutex), fact(State::WaitMutex));
        assert_eq!(waits(WaitKind::Pool), fact(State::Idle));
        assert_eq!(waits(WaitKind::Dependences).value(), None, "no state of OMPT is for these alone");
    }

    #[test]
    fn state_of_a_thread_in_the_runtime_is_overhead_or_idle_or_unknown() {
        assert_eq!(state(|s| s.threads[0].in_runtime = Some(InRuntime::Task)), fact(State::Overhead));
        let idle = |wait: Fact<Option<Wait>>| {
            state(|s| {
                s.threads[0].raw.role = fact(Role::IdleWorker);
                s.threads[0].wait = wait.clone();
            })
        };
        assert_eq!(idle(Fact::unknown(WHY)), fact(State::Idle));
        assert_eq!(idle(fact(None)), fact(State::Idle));
        assert_eq!(state(|s| s.threads[0].wait = Fact::unknown(WHY)), Fact::unknown(WHY));
        let yields = state(|s| s.threads[0].wait = Fact::unknown(Common::InTaskyield));
        assert_eq!(yields, Fact::unknown(Common::StateInTaskyield));
    }
}
