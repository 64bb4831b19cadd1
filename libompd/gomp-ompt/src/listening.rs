//! Whether a tool listens.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Release};

/// How far the tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Tool {
    /// Nobody has called the runtime yet.
    Unknown,
    /// It is being searched and initialised.
    Starting,
    /// There is none, or it has ended.
    None,
    /// It listens.
    Recording,
}

static STATE: AtomicU8 = AtomicU8::new(Tool::Unknown as u8);

/// How far the tool is.
pub fn tool() -> Tool {
    match STATE.load(Acquire) {
        0 => Tool::Unknown,
        1 => Tool::Starting,
        2 => Tool::None,
        _ => Tool::Recording,
    }
}

/// Whether a tool listens.
pub fn is_recording() -> bool {
    STATE.load(Acquire) == Tool::Recording as u8
}

/// It comes to another state.
pub fn becomes(state: Tool) {
    STATE.store(state as u8, Release);
}

/// The search begins, if it has not yet.
pub fn begins_search() -> bool {
    STATE.compare_exchange(Tool::Unknown as u8, Tool::Starting as u8, Acquire, Acquire).is_ok()
}
