//! The Python frames of a stopped process.
//!
//! CPython executes a Python function in its interpreter loop: the stack of a thread shows the loop, and the interpreter's
//! memory shows the functions. [`Snapshot::read`] reads them from a stopped process or a core, with the thread that holds the
//! global interpreter lock (GIL).
//!
//! [`Layout`] has the offsets of CPython 3.8 to 3.12; 3.13 and 3.14 describe themselves in the process. Every object that is read
//! names its type, whose address the interpreter exports: a wrong offset gives an error, and never a wrong frame. Each call of
//! the loop comes with an address that lies in the stack frame of that call, where the version has one ([`Call::anchor`]).

#![forbid(unsafe_code)]

mod code;
mod fields;
mod gil;
mod interpreter;
mod layout;
mod lines;
mod read;

pub use code::Code;
pub use gil::{Gil, GilState};
pub use interpreter::{Interpreter, Version};
pub use layout::{Chain, GilPlace, Layout, LayoutOrigin};
pub use lines::Table;
pub use read::{Call, PythonFrame, PythonThread, Runtime, Snapshot};

use ompd_process::{Addr, ReadError};

/// Why something of an interpreter is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    /// Neither the file's name nor what it exports says which version it is.
    #[error("the version of CPython is unknown: neither the name of its file nor its memory says it")]
    Version,
    /// A version whose structs are not known.
    #[error("the layout of CPython {0} is unknown")]
    Layout(Version),
    /// Structs are known for 64-bit processes only.
    #[error("the layout of CPython in 32-bit processes is unknown")]
    Width,
    /// The interpreter does not export the type that objects are recognised by.
    #[error("it does not export {0}")]
    Type(&'static str),
    /// The process could not be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// What lies there is not what has to.
    #[error("there is no {what} at {at}")]
    Not {
        /// What has to be there.
        what: &'static str,
        /// Its address.
        at: Addr,
    },
    /// There is more of it than is read while the process is stopped.
    #[error("there are more than {limit} {what}, and no more are read")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many are read.
        limit: usize,
    },
    /// The process could be held no longer.
    #[error("the time for which the process may be held (--max-pause) was over")]
    Late,
    /// The build has no GIL, or one that it enables while it runs.
    #[error("this is a free-threaded build of CPython")]
    FreeThreaded,
}
