//! What is known of a thread outside of OpenMP.

use std::sync::Arc;

/// What one thread does outside of OpenMP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Kernel thread id.
    pub lwp: i32,
    /// The library function it is in.
    pub call: Option<Call>,
    /// What it waits for.
    pub wait: Option<OutsideWait>,
}

/// A library function that the program has called and that has not returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name as the source has it (text of the target).
    pub function: Arc<str>,
    /// The innermost code of the program, which called it.
    pub site: Option<CallSite>,
}

/// Code of the program. All texts are the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// File, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Function; of the body of a construct the one that contains the construct.
    pub function: Option<Arc<str>>,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutsideWait {
    /// The end of a system call of which nothing more is known.
    SystemCall {
        /// Its name, or `number N` where it has none.
        name: String,
    },
}
