//! Blocks that can be opened, and which of their rings are threads'.

use std::cell::Cell;
use std::mem::offset_of;

use ompt_record::block::{
    Creation, CreationValues, DEVICE_RING, EVENT_WORDS, Header, Held, MAGIC, RUNTIME_NAME, Ring, RingState, Shape,
    State, VERSION, in_ring,
};
use ompt_record::event::Event;
use ompt_record::read::{Block, Memory};

const AT: u64 = 0x7000_0000;

/// A block in words of its own.
struct Words(Vec<u64>);

impl Memory for Words {
    type Error = ();

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, ()> {
        let from = usize::try_from(at.checked_sub(AT).ok_or(())? / 8).map_err(|_| ())?;
        Ok(self.0.get(from..from.checked_add(count).ok_or(())?).ok_or(())?.to_vec())
    }
}

fn shape() -> Shape {
    Shape::new(4, 64, 64, 64).expect("a shape")
}

/// The words of a block with no thread.
fn block() -> Words {
    let mut block = Words(vec![0; usize::try_from(shape().size() / 8).expect("it is small")]);
    for (at, value) in [
        (offset_of!(Header, magic_first), MAGIC[0]),
        (offset_of!(Header, magic_second), MAGIC[1]),
        (offset_of!(Header, version), VERSION),
        (offset_of!(Header, address), AT),
        (offset_of!(Header, rings), 4),
        (offset_of!(Header, events), 64),
        (offset_of!(Header, regions), 64),
        (offset_of!(Header, tasks), 64),
        (offset_of!(Header, state), State::Recording as u64),
    ] {
        block.0[at / 8] = value;
    }
    block
}

/// The block with one word of its header changed.
fn with(at: usize, value: u64) -> Words {
    let mut changed = block();
    changed.0[at / 8] = value;
    changed
}

#[test]
fn a_block_that_is_damaged_is_not_opened() {
    assert!(Block::open(&block(), AT).is_ok());
    for (what, at, value) in [
        ("first half of the magic", offset_of!(Header, magic_first), 1),
        ("second half of the magic", offset_of!(Header, magic_second), 1),
        ("version", offset_of!(Header, version), VERSION + 1),
        ("address", offset_of!(Header, address), AT + 8),
        ("rings", offset_of!(Header, rings), 0),
        ("rings used", offset_of!(Header, rings_used), 5),
        ("rings used", offset_of!(Header, rings_used), u64::MAX),
        ("state", offset_of!(Header, state), 0),
    ] {
        assert!(Block::open(&with(at, value), AT).is_err(), "{what} {value}");
    }
    for used in 0..=4 {
        assert!(Block::open(&with(offset_of!(Header, rings_used), used), AT).is_ok(), "{used} rings");
    }
}

/// A header whose block would reach beyond the last address.
struct AtTheEnd(Vec<u64>);

impl Memory for AtTheEnd {
    type Error = ();

    fn words(&self, _at: u64, count: usize) -> Result<Vec<u64>, ()> {
        Ok(self.0.get(..count).ok_or(())?.to_vec())
    }
}

#[test]
fn a_block_that_is_larger_than_memory_is_not_opened() {
    for (at, fits) in [(u64::MAX - shape().size(), true), (u64::MAX - shape().size() + 1, false), (u64::MAX - 8, false)]
    {
        let opened = Block::open(&AtTheEnd(with(offset_of!(Header, address), at).0), at);
        assert_eq!(opened.is_ok(), fits, "{at:#x}");
    }
}

#[test]
fn the_runtimes_name_is_read_to_its_last_byte() {
    let mut named = block();
    let first = size_of::<Header>() / 8;
    for word in &mut named.0[first..first + RUNTIME_NAME / 8] {
        *word = u64::from_le_bytes(*b"LLVM OMP");
    }
    // What lies behind is no part of it.
    named.0[first + RUNTIME_NAME / 8] = 0x2121;
    let opened = Block::open(&named, AT).expect("a block");
    assert_eq!(opened.runtime, "LLVM OMP".repeat(RUNTIME_NAME / 8));
}

#[test]
fn only_a_block_in_that_state_is_recording() {
    for state in [State::Recording, State::Paused, State::Ended] {
        let opened = Block::open(&with(offset_of!(Header, state), state as u64), AT).expect("a block");
        assert_eq!(opened.is_recording(), state == State::Recording, "{state:?}");
    }
}

#[test]
fn rings_of_threads_are_those_that_are_used_or_ended() {
    let mut block = with(offset_of!(Header, rings_used), 4);
    let states = [RingState::Used, RingState::Changing, RingState::Ended, RingState::Used];
    for (index, state) in (0..).zip(states) {
        let ring = usize::try_from(shape().ring_at(index) / 8).expect("it is small");
        block.0[ring + offset_of!(Ring, state) / 8] = state as u64;
        block.0[ring + offset_of!(Ring, lwp) / 8] = 100 + index;
    }
    let device = usize::try_from(shape().ring_at(3) / 8).expect("it is small");
    block.0[device + offset_of!(Ring, kind) / 8] = DEVICE_RING | 1;
    let opened = Block::open(&block, AT).expect("a block");
    let (rings, unreadable) = opened.rings(&block);
    let of: Vec<_> = rings.iter().map(|ring| (ring.index, ring.values.lwp)).collect();
    assert_eq!((of, unreadable), (vec![(0, 100), (2, 102)], 0));
    // The memory of the last two ends within them.
    block.0.truncate(usize::try_from(shape().ring_at(2) / 8).expect("it is small") + 1);
    let (rings, unreadable) = opened.rings(&block);
    assert_eq!((rings.len(), unreadable), (1, 2));
}

#[test]
fn what_is_remembered_of_tasks_regions_and_locks_is_found_by_its_number() {
    let mut block = with(offset_of!(Header, rings_used), 2);
    block.0[offset_of!(Header, epoch) / 8] = 7;
    let word = |at: u64| usize::try_from(at / 8).expect("it is small");
    let size = size_of::<Creation>() as u64;
    block.0[word(shape().regions_at() + 5 * size) + offset_of!(Creation, id) / 8] = 64 + 5;
    block.0[word(shape().tasks_at() + 6 * size) + offset_of!(Creation, id) / 8] = 128 + 6;
    let ring = word(shape().ring_at(1));
    block.0[ring + offset_of!(Ring, state) / 8] = RingState::Used as u64;
    let held = ring + word(in_ring::HELD_AT);
    for (index, (wait_id, epoch)) in [(0, 7), (0x10, 6), (0x20, 7)].into_iter().enumerate() {
        let at = held + index * size_of::<Held>() / 8;
        block.0[at + offset_of!(Held, wait_id) / 8] = wait_id;
        block.0[at + offset_of!(Held, epoch) / 8] = epoch;
    }
    let opened = Block::open(&block, AT).expect("a block");
    let id = |found: Result<Option<CreationValues>, ()>| found.expect("it can be read").map(|found| found.id);
    assert_eq!([69, 5, 70, 0].map(|of| id(opened.region(&block, of))), [Some(69), None, None, None]);
    assert_eq!([134, 6, 70, 0].map(|of| id(opened.task(&block, of))), [Some(134), None, None, None]);
    let ring = *opened.rings(&block).0.iter().find(|ring| ring.index == 1).expect("the ring");
    let locks = |opened: &Block| {
        opened.held(&block, ring).expect("it can be read").iter().map(|h| h.wait_id).collect::<Vec<_>>()
    };
    assert_eq!(locks(&opened), [0x20]);
    let mut paused = opened.clone();
    paused.header.state = State::Paused as u64;
    assert!(locks(&paused).is_empty());
}

#[test]
fn the_last_events_are_read_in_their_order_where_the_ring_begins_anew() {
    /// One more than a ring and a half.
    const WRITTEN: u64 = 97;
    let mut block = with(offset_of!(Header, rings_used), 2);
    let ring = usize::try_from(shape().ring_at(1) / 8).expect("it is small");
    let events = ring + usize::try_from(in_ring::EVENTS_AT / 8).expect("it is small");
    block.0[ring + offset_of!(Ring, state) / 8] = RingState::Used as u64;
    block.0[ring + offset_of!(Ring, head) / 8] = WRITTEN;
    let place = |position: u64| events + usize::try_from(position % 64).expect("it is small") * EVENT_WORDS;
    for position in 0..WRITTEN {
        let event = Event { position, time: 1000 + position, ..Event::default() };
        block.0[place(position)..place(position) + EVENT_WORDS].copy_from_slice(&event.words());
    }
    // Being written, and not written over by the one whose place it is.
    block.0[place(40)] = 0;
    let old = Event { position: 36, ..Event::default() };
    block.0[place(WRITTEN + 3)..place(WRITTEN + 3) + EVENT_WORDS].copy_from_slice(&old.words());
    block.0[ring + offset_of!(Ring, head) / 8] = WRITTEN + 4;
    let opened = Block::open(&block, AT).expect("a block");
    let of_thread = |first: u64, most: u64| {
        let mut began = Words(block.0.clone());
        began.0[ring + offset_of!(Ring, first) / 8] = first;
        let ring = *opened.rings(&began).0.iter().find(|ring| ring.index == 1).expect("the ring");
        let found = opened.events(&began, ring, most).expect("they can be read");
        assert!(found.events.iter().all(|event| event.time == 1000 + event.position || event.position == 36));
        (found.events.iter().map(|event| event.position).collect::<Vec<_>>(), found.torn, found.overwritten)
    };
    let whole = |from: u64| (from..WRITTEN).filter(|position| *position != 40).collect::<Vec<_>>();
    // 37 to 100 are still there, three of which were never written in these places: 97 to 99 have those of 33 to 35.
    assert_eq!(of_thread(0, u64::MAX), (whole(37), 1, 37 + 4));
    assert_eq!(of_thread(0, 10), (whole(91), 0, 37 + 4));
    assert_eq!(of_thread(0, 0), (Vec::new(), 0, 37));
    // The ring was another thread's up to here.
    assert_eq!(of_thread(50, u64::MAX), (whole(50), 0, 4));
    assert_eq!(of_thread(WRITTEN + 4, u64::MAX), (Vec::new(), 0, 0));
}

/// A block whose second ring goes from thread to thread: so many times it says something else when it is read.
struct Changing {
    block: Words,
    word: usize,
    left: Cell<u64>,
}

impl Memory for Changing {
    type Error = ();

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, ()> {
        let mut words = self.block.words(at, count)?;
        if at == AT + shape().ring_at(1) {
            words[self.word] += self.left.get();
            self.left.set(self.left.get().saturating_sub(1));
        }
        Ok(words)
    }
}

#[test]
fn a_ring_counts_if_it_says_twice_whose_it_is() {
    let fields = [
        offset_of!(Ring, id),
        offset_of!(Ring, lwp),
        offset_of!(Ring, pthread),
        offset_of!(Ring, began),
        offset_of!(Ring, first),
    ];
    for field in fields {
        let read = |times: u64| {
            let mut block = with(offset_of!(Header, rings_used), 2);
            let ring = usize::try_from(shape().ring_at(1) / 8).expect("it is small");
            block.0[ring + offset_of!(Ring, state) / 8] = RingState::Used as u64;
            let opened = Block::open(&block, AT).expect("a block");
            let changing = Changing { block, word: field / 8, left: Cell::new(times) };
            let (rings, unreadable) = opened.rings(&changing);
            assert_eq!(unreadable, 0, "{field}");
            rings.iter().filter(|ring| ring.index == 1).count()
        };
        assert_eq!([read(0), read(1), read(7)], [1, 1, 1], "{field}");
        assert_eq!([read(20), read(1000)], [0, 0], "{field}: it changes hands all the time");
    }
}

#[test]
fn a_thread_that_has_ended_holds_nothing() {
    let mut block = with(offset_of!(Header, rings_used), 1);
    let ring = usize::try_from(shape().ring_at(0) / 8).expect("it is small");
    block.0[ring + usize::try_from(in_ring::HELD_AT / 8).expect("it is small") + offset_of!(Held, wait_id) / 8] = 0x20;
    for (state, locks) in [(RingState::Used, 1), (RingState::Ended, 0)] {
        block.0[ring + offset_of!(Ring, state) / 8] = state as u64;
        let opened = Block::open(&block, AT).expect("a block");
        let (rings, _) = opened.rings(&block);
        assert_eq!(opened.held(&block, rings[0]).expect("it can be read").len(), locks, "{state:?}");
    }
}
