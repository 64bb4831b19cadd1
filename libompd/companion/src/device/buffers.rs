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
    let take = |from: u32, least: usize| {
        ALL.iter().find(|buffer| {
            buffer.size.load(Relaxed) >= least && buffer.state.compare_exchange(from, CHANGING, AcqRel, Relaxed).is_ok()
        })
    };
    // One that is large enough; a place for one; one that is too small, in whose place there will be another.
    let buffer = take(OURS, size).or_else(|| take(EMPTY, 0)).or_else(|| take(OURS, 0))?;
    if buffer.size.load(Relaxed) < size {
        buffer.unmap();
        if !buffer.map(size) {
            buffer.state.store(EMPTY, Release);
            return None;
        }
    }
    buffer.owner.store(owner, Relaxed);
    let lent = (buffer.at.load(Relaxed), buffer.size.load(Relaxed));
    buffer.state.store(OUT, Release);
    Some(lent)
}

impl Buffer {
    /// Gets memory. Only for who has changed the state to `CHANGING`.
    fn map(&self, size: usize) -> bool {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever the kernel likes.
        let at = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return false;
        }
        self.at.store(at, Relaxed);
        self.size.store(size, Relaxed);
        true
    }

    /// Gives the memory back to the kernel, if there is any. Only for who has changed the state to `CHANGING`.
    fn unmap(&self) {
        let (at, size) = (self.at.swap(null_mut(), Relaxed), self.size.swap(0, Relaxed));
        if !at.is_null() {
            // SAFETY: it was mapped by `map` with this size, and nobody else has it.
            unsafe { libc::munmap(at, size) };
        }
    }
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
            buffer.unmap();
            buffer.state.store(EMPTY, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_what_is_recommended_within_reason() {
        let sizes = [0, 1, 4096, 4097, usize::MAX].map(size_for);
        assert_eq!(sizes, [SIZE, LEAST, LEAST, 2 * LEAST, MOST]);
    }

    #[test]
    fn a_buffer_is_lent_to_one_at_a_time() {
        let lend_and_check = |owner: usize| {
            for round in 0..20_000 {
                // There are more of them than threads.
                let (at, size) = lend(owner, LEAST).expect("a buffer");
                assert!(size >= LEAST && size_of_lent(owner, at) == Some(size));
                assert_eq!(size_of_lent(owner + 1, at), None, "it is another one's as well");
                let mark = (owner << 32) + round;
                // SAFETY: it is as large, and nobody else has it: which is what is tested.
                let there = unsafe {
                    at.cast::<usize>().write_volatile(mark);
                    std::thread::yield_now();
                    at.cast::<usize>().read_volatile()
                };
                assert_eq!(there, mark);
                assert!(take_back(owner, at) && !take_back(owner, at));
            }
            assert_eq!(lent_to(owner), 0);
        };
        std::thread::scope(|scope| {
            for owner in [2, 4, 6, 8] {
                scope.spawn(move || lend_and_check(owner));
            }
        });
        // There are so many and no more.
        let lent: Vec<_> = std::iter::from_fn(|| lend(100, LEAST)).take(BUFFERS + 1).collect();
        assert_eq!(lent.len(), BUFFERS);
        assert!(lent.iter().all(|(at, _)| take_back(100, *at)));
        // Those that are too small are in nobody's way.
        let (at, size) = lend(100, MOST).expect("a large one");
        assert_eq!((size, size_of_lent(100, at)), (MOST, Some(MOST)));
        assert!(take_back(100, at));
        // No memory is lost: neither that of one that was too small, nor that of the others at the end.
        let is_mapped = |at: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
            maps.lines().any(|line| {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let hex = |text| usize::from_str_radix(text, 16).expect("an address");
                range.is_some_and(|(from, to)| (hex(from)..hex(to)).contains(&at))
            })
        };
        let large = at as usize;
        let mut addresses: Vec<usize> = lent.iter().map(|(at, _)| *at as usize).collect();
        let has_memory = |at: &usize| ALL.iter().any(|buffer| buffer.at.load(Relaxed) as usize == *at);
        let replaced: Vec<usize> = addresses.iter().copied().filter(|at| !has_memory(at)).collect();
        assert_eq!(replaced.len(), 1);
        assert!(is_mapped(large) && (replaced[0].wrapping_sub(large) < MOST || !is_mapped(replaced[0])));
        release();
        assert!(ALL.iter().all(|buffer| buffer.state.load(Acquire) == EMPTY));
        addresses.push(large);
        assert!(!addresses.into_iter().any(is_mapped));
    }
}
