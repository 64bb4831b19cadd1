//! Orders in which threads write and read the words that they share, also such that only processors with weaker rules allow.
//!
//! Loom runs each model once for each order that it knows of. Readers are those of `ompt-record`, which look from outside.

use std::convert::Infallible;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;
use ompt_record::block::{EVENT_WORDS, HeaderValues, RingValues, Shape, in_ring};
use ompt_record::event::Event;
use ompt_record::read::{Block, Memory, RingAt};

use super::*;

/// A word of a model. Orders are tried for those that matter to it. The others are always as they were written last.
#[derive(Debug)]
enum Modelled {
    Tried(AtomicU64),
    Plain(std::sync::atomic::AtomicU64),
}

use Modelled::Plain;

impl Default for Modelled {
    fn default() -> Modelled {
        Plain(std::sync::atomic::AtomicU64::default())
    }
}

fn tried(value: u64) -> Modelled {
    Modelled::Tried(AtomicU64::new(value))
}

impl Word for Modelled {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Modelled::Tried(word) => word.load(order),
            Plain(word) => word.load(order),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Modelled::Tried(word) => word.store(value, order),
            Plain(word) => word.store(value, order),
        }
    }

    fn replace(&self, there: u64, new: u64) -> Result<u64, u64> {
        match self {
            Modelled::Tried(word) => word.compare_exchange(there, new, AcqRel, Relaxed),
            Plain(word) => word.compare_exchange(there, new, AcqRel, Relaxed),
        }
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// Where the block of a model is.
const AT: u64 = 0x10_000;

fn block() -> Block {
    let shape = Shape::new(1, 64, 64, 64).expect("a shape");
    let header = HeaderValues { rings_used: 1, epoch: EPOCH, state: 1, ..HeaderValues::default() };
    Block { at: AT, shape, header, runtime: String::new() }
}

const EPOCH: u64 = 1;

/// The memory of a model, as a process sees it that looks from outside: words at an address, and zeros elsewhere.
struct Outside<'m>(u64, Vec<&'m Modelled>);

impl Memory for Outside<'_> {
    type Error = Infallible;

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, Infallible> {
        let index = |n: usize| usize::try_from((at + 8 * n as u64).checked_sub(self.0)? / 8).ok();
        let word = |n| index(n).and_then(|index| self.1.get(index));
        // The kernel copies the words in no promised order. Between two calls of it there is one.
        let words = (0..count).map(|n| word(n).map_or(0, |word| word.load(Relaxed))).collect();
        fence(Acquire);
        Ok(words)
    }
}

/// Words in which two events differ that differ in position and time: both, and the check word.
const DIFFER: [usize; 3] = [0, 1, EVENT_WORDS - 1];

#[test]
fn an_event_is_read_whole_or_not_at_all() {
    // The second is written a lap later, in the place of the first.
    let events = [0, 64].map(|position| Event { position, time: 7 + position, ..Event::default() });
    loom::model(move || {
        let mut place = events[0].words().map(|word| Plain(word.into()));
        for n in DIFFER {
            place[n] = tried(events[0].words()[n]);
        }
        let place = Arc::new(place);
        let written = Arc::clone(&place);
        let writer = thread::spawn(move || write_event(&written, events[1].words()));
        let words = place.each_ref().map(|word| word.load(Relaxed));
        for event in events {
            if let Ok(read) = Event::from_words(words, event.position) {
                assert_eq!(read, event);
            }
        }
        writer.join().expect("it writes");
        let words = place.each_ref().map(|word| word.load(Relaxed));
        assert_eq!(Event::from_words(words, 64), Ok(events[1]));
    });
}

#[test]
fn of_two_events_written_at_once_none_is_mixed() {
    static WHOLE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let events = [0, 64].map(|position| Event { position, time: 7 + position, ..Event::default() });
    loom::model(move || {
        let mut place: [Modelled; EVENT_WORDS] = Default::default();
        for n in DIFFER {
            place[n] = tried(0);
        }
        let place = Arc::new(place);
        let writers = events.map(|event| {
            let place = Arc::clone(&place);
            thread::spawn(move || write_event(&place, event.words()))
        });
        for writer in writers {
            writer.join().expect("it writes");
        }
        let words = place.each_ref().map(|word| word.load(Relaxed));
        for event in events {
            if let Ok(read) = Event::from_words(words, event.position) {
                assert_eq!(read, event);
                WHOLE.fetch_add(1, Relaxed);
            }
        }
    });
    assert!(WHOLE.load(Relaxed) > 0, "no event was whole in any order");
}

fn new_thread(id: u64) -> NewThread {
    NewThread { id, lwp: 100 + id, pthread: 0, kind: 0, began: 0 }
}

#[test]
fn a_ring_has_one_owner_at_a_time() {
    loom::model(|| {
        let ring = Ring { state: tried(RingState::Ended as u64), ended: tried(1), ..Ring::default() };
        // Loom fails where two threads change a cell, and nothing says which was first.
        let shared = Arc::new((ring, UnsafeCell::new(0_u64)));
        let claim = |id: u64, shared: &(Ring<Modelled>, UnsafeCell<u64>)| {
            let (ring, owned) = shared;
            let taken = take_ended(1, |_| Some(ring)).is_some();
            if taken {
                give_ring(ring, &new_thread(id), || {});
                // SAFETY: the ring has one owner, which is what is tested.
                owned.with_mut(|owned| unsafe { *owned += 1 });
                give_up_ring(ring, 1 + id);
            }
            u64::from(taken)
        };
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || claim(1, &shared)
        });
        let own = claim(2, &shared);
        let taken = own + other.join().expect("it ends");
        // SAFETY: no other thread is left.
        let owned = shared.1.with(|owned| unsafe { *owned });
        assert_eq!(owned, taken);
        assert!(taken > 0, "one of them is the quicker");
    });
}

#[test]
fn owner_of_a_ring_is_read_whole() {
    loom::model(|| {
        let ring = Ring {
            state: tried(RingState::Ended as u64),
            id: tried(1),
            lwp: tried(101),
            ..Ring::<Modelled>::default()
        };
        let ring = Arc::new(ring);
        let given = Arc::clone(&ring);
        let writer = thread::spawn(move || {
            take_ended(1, |_| Some(&*given)).expect("it has ended");
            give_ring(&given, &new_thread(2), || {});
        });
        let block = block();
        let memory = Outside(AT + block.shape.ring_at(0), ring.words().collect());
        for RingAt { values, .. } in block.rings(&memory).0 {
            assert_eq!(values.lwp, 100 + values.id);
            let state = if values.id == 1 { RingState::Ended } else { RingState::Used };
            assert_eq!(values.state, state as u64);
        }
        writer.join().expect("it gives the ring");
        assert_eq!(block.rings(&memory).0[0].values.id, 2);
    });
}

#[test]
fn a_lock_that_is_held_has_its_own_words() {
    let new = |wait_id: u64| NewHeld { wait_id, codeptr_ra: 100 + wait_id, time: 0, kind: 0 };
    loom::model(move || {
        let held = Arc::new([Held { wait_id: tried(0), codeptr_ra: tried(0), ..Held::<Modelled>::default() }]);
        let owner = Arc::clone(&held);
        let owner = thread::spawn(move || {
            for wait_id in [1, 2] {
                assert!(hold(&*owner, EPOCH, &new(wait_id)));
                if wait_id == 1 {
                    forget(&owner[0].wait_id, 1);
                }
            }
        });
        let block = block();
        let memory = Outside(AT + block.shape.ring_at(0) + in_ring::HELD_AT, held[0].words().collect());
        let values = RingValues { state: RingState::Used as u64, ..RingValues::default() };
        let read = || {
            let Ok(held) = block.held(&memory, RingAt { index: 0, values });
            held.iter().for_each(|held| assert_eq!(held.codeptr_ra, 100 + held.wait_id));
            held.first().map(|held| held.wait_id)
        };
        read();
        owner.join().expect("it holds both");
        assert_eq!(read(), Some(2));
    });
}

fn creation(id: u64) -> NewCreation {
    NewCreation { codeptr_ra: 100 + id, ..NewCreation::default() }
}

/// A region or task whose number leads to the same entry as that of another.
const LATER: u64 = 1 + 64;

fn entry() -> Arc<Creation<Modelled>> {
    Arc::new(Creation { id: tried(0), codeptr_ra: tried(0), ..Creation::default() })
}

#[test]
fn a_region_has_its_own_words() {
    loom::model(|| {
        let entry = entry();
        assert!(create(&*entry, EPOCH, 1, &creation(1)));
        let changed = Arc::clone(&entry);
        let writer = thread::spawn(move || {
            assert!(forget(&changed.id, 1));
            assert!(create(&*changed, EPOCH, LATER, &creation(LATER)));
        });
        let block = block();
        let memory = Outside(AT + block.shape.regions_at() + 8 * Creation::WORDS as u64, entry.words().collect());
        let read = |id: u64| {
            let Ok(found) = block.region(&memory, id);
            found.inspect(|found| assert_eq!((found.id, found.codeptr_ra), (id, 100 + id))).is_some()
        };
        read(1);
        writer.join().expect("it begins another");
        assert_eq!([1, LATER].map(read), [false, true]);
    });
}

#[test]
fn of_two_regions_one_has_the_entry() {
    loom::model(|| {
        let entry = entry();
        let begin = |id: u64, entry: &Creation<Modelled>| create(entry, EPOCH, id, &creation(id));
        let other = thread::spawn({
            let entry = Arc::clone(&entry);
            move || begin(LATER, &entry)
        });
        let own = begin(1, &entry);
        let later = other.join().expect("it ends");
        let id = entry.id.load(Relaxed);
        assert_eq!(([own, later], entry.codeptr_ra.load(Relaxed)), ([id == 1, id == LATER], 100 + id));
    });
}
