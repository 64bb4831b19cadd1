//! The plugins in debuggers that serve an editor: by the Debug Adapter Protocol, and by GDB/MI.

mod common;
mod dap;
mod mi;
mod transcripts;
