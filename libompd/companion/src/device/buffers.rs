//! The buffers that devices write their records into: few, of the kernel's memory, and used again.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

/// Buffers of all devices at a time.
const BUFFERS: usize = 16;

/// Bytes of a buffer where the device recommends nothing.
pub const SIZE: usize = 64 << 10;
/// What a recommendation is followed in.
const LEAST: usize = 4 << 10;
const MOST: usize = 1 << 20;

/// A place for a buffer.
struct Buffer {
    state: AtomicU32,
    at: AtomicPtr<c_void>,
    size: AtomicUsize,
    /// The slot of the device that has it.
    owner: AtomicUsize,
}

/// There is no memory.
const EMPTY: u32 = 0;
/// There is memory, and it is ours.
const OURS: u32 = 1;
/// A device has it.
const OUT: u32 = 2;
/// Between two of the others.
const CHANGING: u32 = 3;

static ALL: [Buffer; BUFFERS] = [const {
    Buffer {
        state: AtomicU32::new(EMPTY),
        at: AtomicPtr::new(null_mut()),
        size: AtomicUsize::new(0),
        owner: AtomicUsize::new(0),
    }
}; BUFFERS];

/// A size near the one that is recommended, in whole pages.
pub fn size_for(recommended: usize) -> usize {
    let wanted = if recommended == 0 { SIZE } else { recommended };
    wanted.clamp(LEAST, MOST).next_multiple_of(LEAST)
}

/// Lends a device a buffer of at least this size; `None` if there is none left.
pub fn lend(owner: usize, size: usize) -> Option<(*mut c_void, usize)> {
    let take = |from: u32| {
        let fits = |buffer: &&Buffer| {
            (from == EMPTY || buffer.size.load(Relaxed) >= size)
                && buffer.state.compare_exchange(from, CHANGING, AcqRel, Relaxed).is_ok()
        };
        ALL.iter().find(fits)
    };
    let buffer = match take(OURS) {
        Some(buffer) => buffer,
        None => {
            let buffer = take(EMPTY)?;
            // SAFETY: a new mapping, wherever the kernel likes.
            let at = unsafe {
                libc::mmap(
                    null_mut(),
                    size,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            };
            if at == libc::MAP_FAILED {
                buffer.state.store(EMPTY, Release);
                return None;
            }
            buffer.at.store(at, Relaxed);
            buffer.size.store(size, Relaxed);
            buffer
        }
    };
    buffer.owner.store(owner, Relaxed);
    let lent = (buffer.at.load(Relaxed), buffer.size.load(Relaxed));
    buffer.state.store(OUT, Release);
    Some(lent)
}

/// How many a device has.
pub fn lent_to(owner: usize) -> usize {
    let has = |buffer: &&Buffer| buffer.state.load(Acquire) == OUT && buffer.owner.load(Relaxed) == owner;
    ALL.iter().filter(has).count()
}

/// The size of a buffer that a device has; `None` if it has none at this address.
pub fn size_of_lent(owner: usize, at: *mut c_void) -> Option<usize> {
    find(owner, at).map(|buffer| buffer.size.load(Relaxed))
}

/// A device gives a buffer back. Returns whether it had it.
pub fn take_back(owner: usize, at: *mut c_void) -> bool {
    find(owner, at).is_some_and(|buffer| buffer.state.compare_exchange(OUT, OURS, AcqRel, Relaxed).is_ok())
}

fn find(owner: usize, at: *mut c_void) -> Option<&'static Buffer> {
    ALL.iter().find(|buffer| {
        buffer.state.load(Acquire) == OUT
            && buffer.owner.load(Relaxed) == owner
            && std::ptr::eq(buffer.at.load(Relaxed), at)
    })
}

/// Gives the memory of all buffers that no device has back to the kernel.
pub fn release() {
    for buffer in &ALL {
        if buffer.state.compare_exchange(OURS, CHANGING, AcqRel, Relaxed).is_ok() {
            let (at, size) = (buffer.at.swap(null_mut(), Relaxed), buffer.size.swap(0, Relaxed));
            // SAFETY: it was mapped by `lend` with this size, and nobody else has it.
            unsafe { libc::munmap(at, size) };
            buffer.state.store(EMPTY, Release);
        }
    }
}
