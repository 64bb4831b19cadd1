//! Whether standard output was closed when the program was started.

#![allow(
    unsafe_code,
    reason = "nothing else runs before Rust's runtime, which opens /dev/null in place of closed descriptors"
)]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: takes plain numbers, and only asks.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// The C library calls what is here before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Standard output was closed: what is written to it is lost.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
