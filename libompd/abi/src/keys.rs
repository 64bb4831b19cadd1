//! Which thread, region or task a handle stands for.

use ompd_process::Addr;

/// Which runtime of a process: the address of its module.
pub(crate) type RuntimeKey = Addr;

/// A thread. A later thread may get its descriptor. The kernel thread id tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) runtime: RuntimeKey,
    pub(crate) descriptor: Addr,
    /// Kernel thread id; `None` where it was not known.
    pub(crate) lwp: Option<i32>,
}

/// A parallel region. Serialized regions nested in each other may share a descriptor, and so may regions that follow each other.
/// If they also have the same level and size, nothing that runtimes keep tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegionKey {
    /// What an initial thread executes outside of all others: the implicit parallel region of one thread that surrounds the program (OpenMP
    /// 5.2, section 1.3).
    Outermost(ThreadKey),
    /// A region of a parallel construct.
    Team { runtime: RuntimeKey, descriptor: Addr, level: u32, size: Option<u32> },
}

impl RegionKey {
    pub(crate) fn runtime(self) -> RuntimeKey {
        match self {
            RegionKey::Outermost(thread) => thread.runtime,
            RegionKey::Team { runtime, .. } => runtime,
        }
    }
}

/// A task, as long as its runtime keeps its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskKey {
    pub(crate) runtime: RuntimeKey,
    pub(crate) descriptor: Addr,
}
