//! States of threads as OMPT numbers them.

/// Thread states, by their OMPT 5.x numbers (OpenMP 5.2, section 19.4.4.27).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Executing outside all parallel regions.
    WorkSerial = 0x000,
    /// Executing inside a parallel region.
    WorkParallel = 0x001,
    /// At a barrier whose kind is not known.
    WaitBarrier = 0x010,
    /// At the barrier that ends a parallel region.
    WaitBarrierImplicitParallel = 0x011,
    /// In a `taskwait`.
    WaitTaskwait = 0x020,
    /// At the end of a `taskgroup`.
    WaitTaskgroup = 0x021,
    /// At a barrier the implementation needs.
    WaitBarrierImplementation = 0x015,
    /// For a lock, critical or atomic: which of them is not known.
    WaitMutex = 0x040,
    /// For an `omp_lock_t` or `omp_nest_lock_t`.
    WaitLock = 0x041,
    /// For a `critical`.
    WaitCritical = 0x042,
    /// For an `atomic`.
    WaitAtomic = 0x043,
    /// For its turn in an `ordered`.
    WaitOrdered = 0x044,
    /// Waiting for work outside all regions.
    Idle = 0x100,
    /// Executing runtime code.
    Overhead = 0x101,
}

impl State {
    /// The OMPT number.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The OMPT name without `ompt_state_`.
    pub fn name(self) -> &'static str {
        match self {
            State::WorkSerial => "work_serial",
            State::WorkParallel => "work_parallel",
            State::WaitBarrier => "wait_barrier",
            State::WaitBarrierImplicitParallel => "wait_barrier_implicit_parallel",
            State::WaitBarrierImplementation => "wait_barrier_implementation",
            State::WaitTaskwait => "wait_taskwait",
            State::WaitTaskgroup => "wait_taskgroup",
            State::WaitMutex => "wait_mutex",
            State::WaitLock => "wait_lock",
            State::WaitCritical => "wait_critical",
            State::WaitAtomic => "wait_atomic",
            State::WaitOrdered => "wait_ordered",
            State::Idle => "idle",
            State::Overhead => "overhead",
        }
    }
}
