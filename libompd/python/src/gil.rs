//! The global interpreter lock: who holds it, and where threads sleep that wait for it.

use std::collections::HashSet;

use ompd_process::{Addr, Target, TargetExt};

use crate::Unknown;
use crate::layout::Layout;

/// A GIL; interpreters may share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gil {
    /// Where it is.
    pub at: Addr,
    /// Whether a thread holds it, and which.
    pub state: Result<GilState, Unknown>,
    /// Where the futexes are on which threads sleep that wait for it: first address and the one past the end.
    pub(crate) sleeping: (Addr, Addr),
}

/// Who holds a GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GilState {
    /// No thread.
    Free,
    /// The thread with this `PyThreadState`.
    HeldBy(Addr),
}

impl Gil {
    /// The GIL at `at`; `threads` are all thread states of the interpreter's process.
    pub(crate) fn read(target: &dyn Target, layout: &Layout, at: Addr, threads: &HashSet<Addr>) -> Gil {
        let range = layout.gil.sleeping();
        let sleeping = (at.offset(range.start), at.offset(range.end));
        Gil { at, state: state(target, layout, at, threads), sleeping }
    }

    /// True if a thread that sleeps on the futex at `futex` waits for this GIL.
    pub fn is_waited_for_at(&self, futex: Addr) -> bool {
        self.state.is_ok() && self.sleeping.0 <= futex && futex < self.sleeping.1
    }
}

fn state(target: &dyn Target, layout: &Layout, at: Addr, threads: &HashSet<Addr>) -> Result<GilState, Unknown> {
    if layout.free_threaded {
        return Err(Unknown::FreeThreaded);
    }
    let not = Unknown::Not { what: "GIL", at };
    let locked = target.read_u32(at.offset(layout.gil.locked))?;
    let holder = target.read_ptr(at.offset(layout.gil.last_holder))?;
    match locked {
        0 => Ok(GilState::Free),
        1 if threads.contains(&holder) => Ok(GilState::HeldBy(holder)),
        _ => Err(not),
    }
}
