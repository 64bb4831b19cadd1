//! Turns: how many processes are read at once, while others wait for their next look.

use std::sync::{Condvar, Mutex, PoisonError};

/// A number of looks that may be taken at once. Where there are as many as processors, no stopped process waits for one.
#[derive(Debug)]
pub struct Turns {
    free: Mutex<usize>,
    given_back: Condvar,
}

impl Turns {
    /// So many at once, one at least.
    pub fn of(count: usize) -> Turns {
        Turns { free: Mutex::new(count.max(1)), given_back: Condvar::new() }
    }

    /// Waits for a turn, which lasts until it is dropped.
    pub(crate) fn take(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.given_back.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Turn(self)
    }
}

/// A turn that was taken.
#[derive(Debug)]
pub(crate) struct Turn<'t>(&'t Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Turns;

    #[test]
    fn no_more_have_a_turn_than_there_are() {
        let (turns, now, most) = (Turns::of(2), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _turn = turns.take();
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
    }
}
