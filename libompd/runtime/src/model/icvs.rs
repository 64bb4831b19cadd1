//! Internal control variables.

use std::fmt;

use super::Fact;

/// Loop schedules of `run-sched-var`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Kind, by the number of `omp_sched_t` (1 static, 2 dynamic, 3 guided, 4 auto; others are the runtime's own).
    pub kind: u32,
    /// The `monotonic` modifier is set.
    pub monotonic: bool,
    /// Chunk size; 0 where none was given.
    pub chunk: i64,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.monotonic {
            f.write_str("monotonic:")?;
        }
        match self.kind {
            1 => f.write_str("static")?,
            2 => f.write_str("dynamic")?,
            3 => f.write_str("guided")?,
            4 => f.write_str("auto")?,
            other => write!(f, "kind {other}")?,
        }
        if self.chunk > 0 { write!(f, ",{}", self.chunk) } else { Ok(()) }
    }
}

/// Values of `bind-var` (`omp_proc_bind_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcBind(pub u32);

impl fmt::Display for ProcBind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("false"),
            1 => f.write_str("true"),
            2 => f.write_str("primary"),
            3 => f.write_str("close"),
            4 => f.write_str("spread"),
            other => write!(f, "kind {other}"),
        }
    }
}

/// Internal control variables in force for one thread's current task.
#[derive(Debug, Clone)]
pub struct Icvs {
    /// `nthreads-var` (`omp_get_max_threads`).
    pub nthreads: Fact<u64>,
    /// `dyn-var` (`omp_get_dynamic`).
    pub dynamic: Fact<bool>,
    /// `run-sched-var` (`omp_get_schedule`).
    pub schedule: Fact<Schedule>,
    /// `max-active-levels-var` (`omp_get_max_active_levels`).
    pub max_active_levels: Fact<u64>,
    /// `thread-limit-var`; `None`: no limit is set.
    pub thread_limit: Fact<Option<u64>>,
    /// `bind-var` (`omp_get_proc_bind`).
    pub bind: Fact<ProcBind>,
    /// `levels-var` (`omp_get_level`).
    pub levels: Fact<u32>,
    /// `active-levels-var` (`omp_get_active_level`).
    pub active_levels: Fact<u32>,
}

impl Icvs {
    /// All unknown, for one reason.
    pub fn unknown(why: &str) -> Self {
        Icvs {
            nthreads: Fact::unknown(why),
            dynamic: Fact::unknown(why),
            schedule: Fact::unknown(why),
            max_active_levels: Fact::unknown(why),
            thread_limit: Fact::unknown(why),
            bind: Fact::unknown(why),
            levels: Fact::unknown(why),
            active_levels: Fact::unknown(why),
        }
    }
}
