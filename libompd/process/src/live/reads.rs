//! Reads of other processes that do not end.
//!
//! A page may have to come from somewhere else: another process supplies it (userfaultfd(2)), or a server has the file. The kernel
//! lets a reader sleep until then. Only a signal that kills it wakes it before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The reads of each memory that is open.
static ALL: Mutex<Vec<Weak<AtomicU64>>> = Mutex::new(Vec::new());

/// Counts the reads of one memory: begins and ends, so that the number is odd during a read.
#[derive(Debug)]
pub(super) struct Reads(Arc<AtomicU64>);

impl Reads {
    pub fn new() -> Reads {
        let count = Arc::new(AtomicU64::new(0));
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&count));
        Reads(count)
    }

    /// Does a read, and counts it.
    pub fn count<T>(&self, read: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::Relaxed);
        let done = read();
        self.0.fetch_add(1, Ordering::Relaxed);
        done
    }
}

/// Finds out whether a read of this program does not end. To be asked from time to time.
#[derive(Debug, Default)]
pub struct ReadWatch {
    /// Counts that were odd, by the address of the counter, and since when.
    seen: HashMap<usize, (u64, Instant)>,
}

impl ReadWatch {
    /// For how long the longest read has been seen to take.
    pub fn longest(&mut self) -> Duration {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.longest_of(&all, Instant::now())
    }

    fn longest_of(&mut self, all: &[Weak<AtomicU64>], now: Instant) -> Duration {
        let all = all.iter().filter_map(Weak::upgrade);
        let counts = all.map(|of| (Arc::as_ptr(&of) as usize, of.load(Ordering::Relaxed)));
        let known = |of: usize, count: u64| self.seen.get(&of).filter(|seen| seen.0 == count).map(|seen| seen.1);
        let reading = counts.filter(|(_, count)| count % 2 == 1);
        self.seen = reading.map(|(of, count)| (of, (count, known(of, count).unwrap_or(now)))).collect();
        self.seen.values().map(|(_, since)| now.duration_since(*since)).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_as_long_as_it_was_seen() {
        let (one, other) = (Reads::new(), Reads::new());
        let all = [&one, &other].map(|reads| Arc::downgrade(&reads.0));
        let mut watch = ReadWatch::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let within = one.count(|| {
            watch.longest_of(&all, at(1));
            other.count(|| ());
            watch.longest_of(&all, at(6))
        });
        assert_eq!(within, Duration::from_secs(5));
        // Another one of the same memory is not the same read.
        assert_eq!(one.count(|| watch.longest_of(&all, at(9))), Duration::ZERO);
        drop((one, other));
        assert_eq!((watch.longest_of(&all, at(12)), watch.seen.len()), (Duration::ZERO, 0));
    }
}
