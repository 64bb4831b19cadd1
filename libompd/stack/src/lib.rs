//! The stacks of a stopped process as its source reads.
//!
//! A thread of an OpenMP program that waits mostly executes code of the runtime. The rest is code the compiler made of
//! constructs. The stack of a worker ends where the thread began, but the source continues in the thread that opened
//! the region. [`Stacks::capture`] copies what is needed while the process is stopped. [`Report::of`] does everything
//! else when it runs again. It follows each stack by call frame information, and finds source lines and inlined
//! functions. It joins the stacks where regions were opened and tasks generated.
//!
//! What is proven is kept apart from what is not. A frame needs call frame information. A continuation needs the
//! runtime's own account of its regions and tasks to agree with the calls on the stacks. Otherwise the stack ends with
//! the reason.

mod bytes;
mod call_sites;
mod calls;
mod capture;
mod cfi;
mod code;
mod counts;
mod debug;
pub mod fold;
mod frame;
mod image;
mod levels;
mod lines;
mod locals;
mod lock_calls;
mod logical;
mod names;
mod outlined;
mod physical;
mod process;
mod python;
mod reader;
mod report;
mod stitch;
mod unwind;
mod waiting;

pub use calls::prepare;
pub use capture::Stacks;
pub use code::{Code, CodePlace};
pub use frame::{Backtrace, End, Frame, RegisterSet};
pub use image::Cache;
pub use locals::{FrameVariables, Locals, Variable};
pub use lock_calls::LockCall;
pub use logical::{Construct, InCall, Language, LogicalFrame, LogicalStack, Via};
pub use names::source_name;
pub use ompd_python::{Interpreter, LayoutOrigin};
pub use outlined::container;
pub use python::{Gil, GilHolder, Python};
pub use report::{Report, TaskFrames, Unwound};
