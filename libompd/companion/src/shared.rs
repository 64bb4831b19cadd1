//! What threads write while others read it: events, whose a ring is, which locks are held, where regions and tasks come from.
//!
//! One word of each record says whether the record is whole. It changes first, and is written last. What is stored behind the
//! fence cannot be seen without that change. The tests try orders in which threads may write and read.

#[cfg(test)]
mod models;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use ompt_record::block::{CHANGING, Creation, EVENT_WORDS, Held, Ring, RingState};

/// A word that threads share. Those of a model are not [`AtomicU64`].
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Stores a value in the place of another, if that is there. Else the error is what is there.
    fn replace(&self, there: u64, new: u64) -> Result<u64, u64>;
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn replace(&self, there: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(there, new, AcqRel, Relaxed)
    }

    #[inline]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }
}

/// Writes the words of an event into its place, in which another one may be.
#[inline]
pub fn write_event<W: Word>(place: &[W; EVENT_WORDS], words: [u64; EVENT_WORDS]) {
    let ([finished_place, rest_of_place @ ..], [finished, rest @ ..]) = (place, words);
    // Readers find no event here until the last store.
    finished_place.store(0, Relaxed);
    W::fence(Release);
    for (place, word) in rest_of_place.iter().zip(rest) {
        place.store(word, Relaxed);
    }
    finished_place.store(finished, Release);
}

/// Takes the ring of the thread that ended first, of those in use. Returns which it is.
pub fn take_ended<'r, W: Word + 'r>(in_use: u64, ring: impl Fn(u64) -> Option<&'r Ring<W>>) -> Option<u64> {
    let (from, to) = (RingState::Ended as u64, RingState::Changing as u64);
    let ended = |index: &u64| ring(*index).is_some_and(|ring| ring.state.load(Acquire) == from);
    // Another thread may be quicker: as often as there are rings.
    for _ in 0..in_use {
        let oldest = (0..in_use).filter(ended).min_by_key(|index| ring(*index).map(|ring| ring.ended.load(Relaxed)))?;
        if ring(oldest)?.state.replace(from, to).is_ok() {
            return Some(oldest);
        }
    }
    None
}

/// Whose a ring is to be.
pub struct NewThread {
    pub id: u64,
    pub lwp: u64,
    pub pthread: u64,
    pub kind: u64,
    pub began: u64,
}

/// Gives a ring that was taken to a thread. `clear` forgets what else is there of another one.
pub fn give_ring<W: Word>(ring: &Ring<W>, thread: &NewThread, clear: impl FnOnce()) {
    W::fence(Release);
    let words = [
        (&ring.id, thread.id),
        (&ring.lwp, thread.lwp),
        (&ring.pthread, thread.pthread),
        (&ring.kind, thread.kind),
        (&ring.began, thread.began),
        (&ring.ended, 0),
        (&ring.first, ring.head.load(Relaxed)),
        (&ring.held_beyond, 0),
        (&ring.next_task, 0),
    ];
    store(words);
    clear();
    ring.state.store(RingState::Used as u64, Release);
}

/// Nobody writes into the ring any more, until another thread needs it.
pub fn give_up_ring<W: Word>(ring: &Ring<W>, time: u64) {
    ring.ended.store(time, Relaxed);
    ring.state.store(RingState::Ended as u64, Release);
}

/// What is remembered of a lock that a thread has.
pub struct NewHeld {
    pub wait_id: u64,
    pub codeptr_ra: u64,
    pub time: u64,
    pub kind: u64,
}

/// Remembers that the thread has a lock, in one of its entries. Returns whether one was free.
#[inline]
pub fn hold<W: Word>(all: &[Held<W>], epoch: u64, new: &NewHeld) -> bool {
    // A signal handler may come in between and hold a lock too: the entry is one's own once the word in it says so.
    let Some(held) = all.iter().find(|held| take(&held.wait_id, &held.epoch, epoch)) else { return false };
    held.codeptr_ra.store(new.codeptr_ra, Relaxed);
    held.time.store(new.time, Relaxed);
    held.kind.store(new.kind, Relaxed);
    held.epoch.store(epoch, Relaxed);
    held.wait_id.store(new.wait_id, Release);
    true
}

/// What is remembered of a region or task.
#[derive(Default)]
pub struct NewCreation {
    pub codeptr_ra: u64,
    pub encountering_task: u64,
    pub detail: u64,
    pub flags: u64,
    pub thread: u64,
    pub time: u64,
}

/// Remembers where the region or task with a number comes from. Returns whether its entry was free.
#[inline]
pub fn create<W: Word>(entry: &Creation<W>, epoch: u64, id: u64, new: &NewCreation) -> bool {
    if !take(&entry.id, &entry.epoch, epoch) {
        return false;
    }
    let words = [
        (&entry.codeptr_ra, new.codeptr_ra),
        (&entry.encountering_task, new.encountering_task),
        (&entry.time, new.time),
        (&entry.detail, new.detail),
        (&entry.flags, new.flags),
        (&entry.thread, new.thread),
        (&entry.epoch, epoch),
    ];
    store(words);
    entry.id.store(id, Release);
    true
}

/// Stores words that another one says belong together.
#[inline]
fn store<W: Word, const N: usize>(words: [(&W, u64); N]) {
    for (word, value) in words {
        word.store(value, Relaxed);
    }
}

/// Forgets what has this name, if it is still in its entry. Returns whether it was.
#[inline]
pub fn forget<W: Word>(name: &W, id: u64) -> bool {
    name.replace(id, 0).is_ok()
}

/// Takes an entry that is free, or whose epoch is over. What is from before a pause may be over by now; if it is not, it can do
/// without.
#[inline]
fn take<W: Word>(name: &W, its_epoch: &W, epoch: u64) -> bool {
    let there = name.load(Relaxed);
    let free = there == 0 || (there != CHANGING && its_epoch.load(Relaxed) != epoch);
    let taken = free && name.replace(there, CHANGING).is_ok();
    if taken {
        W::fence(Release);
    }
    taken
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use ompt_record::event::{Event, Missing};

    use super::*;

    /// What is read after each change.
    type Seen = RefCell<Vec<Result<Event, Missing>>>;

    /// A word of an event that is read whenever one of its words changes.
    struct Watched<'e> {
        words: &'e Cell<[u64; EVENT_WORDS]>,
        index: usize,
        position: u64,
        seen: &'e Seen,
    }

    impl Word for Watched<'_> {
        fn load(&self, _: Ordering) -> u64 {
            self.words.get()[self.index]
        }

        fn store(&self, value: u64, _: Ordering) {
            let mut words = self.words.get();
            words[self.index] = value;
            self.words.set(words);
            self.seen.borrow_mut().push(Event::from_words(words, self.position));
        }

        fn replace(&self, there: u64, _: u64) -> Result<u64, u64> {
            Err(there)
        }

        fn fence(_: Ordering) {}
    }

    /// Readers count it as begun, whatever event was there before.
    #[test]
    fn an_event_in_the_making_is_torn_until_its_last_word_is_there() {
        let new = Event { position: 64, time: 71, kind: 3, region: 5, ..Event::default() };
        let before = [[0; EVENT_WORDS], Event { time: 7, ..Event::default() }.words(), new.words()];
        for before in before {
            let (words, seen) = (Cell::new(before), Seen::default());
            let word = |index| Watched { words: &words, index, position: 64, seen: &seen };
            write_event(&std::array::from_fn(word), new.words());
            let mut seen = seen.take();
            assert_eq!(seen.pop(), Some(Ok(new)));
            assert!(seen.len() >= EVENT_WORDS && seen.iter().all(|read| *read == Err(Missing::Torn)), "{seen:?}");
        }
    }
}
