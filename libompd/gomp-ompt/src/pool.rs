//! Records that are used again. Each thread keeps some for itself, and what is more all threads share.

use std::cell::UnsafeCell;
use std::sync::{Mutex, PoisonError};

/// The records that all threads share.
#[derive(Debug)]
pub struct Pool<T: 'static>(Mutex<Vec<&'static T>>);

/// The records that a thread keeps.
pub struct Own<T: 'static> {
    kept: UnsafeCell<([Option<&'static T>; MOST], usize)>,
}

/// More than this many records a thread gives to all.
const MOST: usize = 64;

impl<T> std::fmt::Debug for Own<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

impl<T> Own<T> {
    /// None.
    pub const fn new() -> Own<T> {
        Own { kept: UnsafeCell::new(([const { None }; MOST], 0)) }
    }
}

impl<T: Sync> Pool<T> {
    /// An empty one.
    pub const fn new() -> Pool<T> {
        Pool(Mutex::new(Vec::new()))
    }

    /// A record that nobody uses. `own` are those of the calling thread.
    pub fn take(&self, own: &Own<T>, new: fn() -> T) -> &'static T {
        // SAFETY: only the thread itself uses what it keeps, and not in a signal handler.
        let (kept, count) = unsafe { &mut *own.kept.get() };
        if *count == 0 {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            while *count < MOST / 2
                && let Some(one) = all.pop()
            {
                kept[*count] = Some(one);
                *count += 1;
            }
        }
        if *count > 0 {
            *count -= 1;
            if let Some(one) = kept[*count].take() {
                return one;
            }
        }
        Box::leak(Box::new(new()))
    }

    /// Nobody uses the record any longer. `own` are those of the calling thread.
    pub fn give_back(&self, own: &Own<T>, one: &'static T) {
        // SAFETY: as above.
        let (kept, count) = unsafe { &mut *own.kept.get() };
        if *count == MOST {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(kept.iter_mut().skip(MOST / 2).filter_map(Option::take));
            *count = MOST / 2;
        }
        kept[*count] = Some(one);
        *count += 1;
    }
}
