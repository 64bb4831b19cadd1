//! What all parts of the truth are made of.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An address in the program, written as a hex string.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").ok_or_else(|| de::Error::custom("an address begins with 0x"))?;
        u64::from_str_radix(digits, 16).map(Address).map_err(de::Error::custom)
    }
}

/// What a thread is about to wait for when it is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// `omp_set_lock`.
    Lock,
    /// `omp_set_nest_lock`.
    NestLock,
    /// Entry of a named critical section.
    Critical,
    /// An explicit barrier.
    Barrier,
    /// `taskwait`.
    Taskwait,
    /// The end of a `taskgroup`.
    Taskgroup,
    /// `nanosleep`, called again and again by the program.
    Sleep,
    /// `read` on a pipe, called by the program.
    Pipe,
    /// Nothing: parked by the runtime, in no region.
    Idle,
    /// Its turn in an ordered region.
    Ordered,
    /// Something the program looks at in a loop around `sched_yield`.
    Yield,
    /// `pthread_join`, or the like of another language.
    Join,
    /// `pthread_mutex_lock`.
    Mutex,
    /// In a system call of the program's own, whichever it is.
    Other,
    /// For the event of its own task, which is not deferred.
    Event,
}

impl Wait {
    /// Whether a thread that waits so may never go to sleep; `kmp`: in a runtime of the LLVM family, where even a
    /// barrier looks for tasks as long as one is unfinished.
    pub fn may_spin(self, kmp: bool) -> bool {
        match self {
            Wait::Yield => true,
            Wait::Sleep | Wait::Pipe | Wait::Idle | Wait::Join | Wait::Mutex | Wait::Other | Wait::Event => false,
            Wait::Lock
            | Wait::NestLock
            | Wait::Critical
            | Wait::Barrier
            | Wait::Taskwait
            | Wait::Taskgroup
            | Wait::Ordered => kmp,
        }
    }
}

/// The kind of the task a thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Of the initial thread, outside any region.
    Initial,
    /// Of a member of a team.
    Implicit,
    /// Made by a `task` construct.
    Explicit,
}

/// The kind of a `Lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// `omp_lock_t`.
    Lock,
    /// `omp_nest_lock_t`.
    NestLock,
    /// A named critical section.
    Critical,
}
