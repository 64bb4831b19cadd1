//! What is read, and in how many pieces, of memory that is made up.

use std::cell::Cell;

use ompd_process::{Arch, TargetKind};
use test_programs::FakeTarget;

use super::*;

/// Where the memory begins, its size, and the words in it: each is its own address.
const START: u64 = 0x10_0000;
const SIZE: u64 = 2 << 20;

/// A process with one mapping, which counts the bytes of each read.
struct Process {
    inner: FakeTarget,
    /// What the driver knows of the mapping.
    mapping: Option<Range<u64>>,
    late: Cell<bool>,
    reads: RefCell<Vec<(u64, u64)>>,
}

impl Process {
    fn new() -> Process {
        let mut inner = FakeTarget::new(TargetKind::Core, Arch::X86_64);
        let bytes = (START..START + SIZE).step_by(8).flat_map(u64::to_le_bytes).collect();
        inner.memory.push((Addr(START), bytes));
        let (late, reads) = (Cell::new(false), RefCell::default());
        Process { inner, mapping: Some(START..START + SIZE), late, reads }
    }

    /// The reads since the last time, by address and length.
    fn reads(&self) -> Vec<(u64, u64)> {
        self.reads.take()
    }
}

impl ompd_process::Overlay for Process {
    type Below = FakeTarget;

    fn below(&self) -> &FakeTarget {
        &self.inner
    }

    fn is_late(&self) -> bool {
        self.late.get()
    }

    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.mapping.clone().filter(|mapping| mapping.contains(&addr.0))
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.reads.borrow_mut().push((addr.0, buf.len() as u64));
        self.inner.read(addr, buf)
    }
}

/// The word at an address, which is the address.
fn is_right(window: &Window<'_>, at: u64) -> bool {
    let mut buf = [0; 8];
    window.read(Addr(at), &mut buf).is_ok() && u64::from_le_bytes(buf) == at
}

#[test]
fn list_that_lies_in_order_is_read_in_a_few_pieces() {
    let forwards: Vec<u64> = (START..START + SIZE).step_by(64).collect();
    let backwards = forwards.iter().rev().copied().collect();
    for places in [forwards, backwards] {
        let process = Process::new();
        let window = Window::new(&process);
        assert!(places.iter().all(|at| is_right(&window, *at)));
        let reads = process.reads();
        assert!(reads.len() < 20, "{reads:?}");
        let bytes: u64 = reads.iter().map(|(_, len)| len).sum();
        assert!(bytes <= SIZE, "no byte is read twice");
    }
}

#[test]
fn pieces_grow_up_to_a_limit_while_places_are_near_each_other() {
    let process = Process::new();
    let window = Window::new(&process);
    // The first place is far from the last one, as there is none.
    for at in (START..START + SIZE).step_by(64) {
        assert!(is_right(&window, at));
    }
    let lengths: Vec<u64> = process.reads().iter().map(|(_, len)| *len).collect();
    let doubled = [1, 2, 4, 8, 16, 32, 64, 128, 256].map(|k: u64| k << 10);
    assert_eq!(lengths[..9], doubled);
    assert!(lengths[9..].iter().all(|len| *len <= LARGE));
}

#[test]
fn pieces_are_small_where_places_are_far_from_each_other() {
    let process = Process::new();
    let window = Window::new(&process);
    let far = |step: u64| START + (step * 0x5_3000) % SIZE;
    assert!((0..40).all(|step| is_right(&window, far(step))));
    assert!(process.reads().iter().all(|(_, len)| *len == SMALL));
    // After a list in order they shrink again.
    for at in (START..START + (64 << 10)).step_by(64) {
        assert!(is_right(&window, at));
    }
    process.reads();
    for at in [START + SIZE / 2, START + SIZE / 4 * 3, START + SIZE / 4, START + SIZE / 8 * 7, START + SIZE / 8] {
        assert!(is_right(&window, at));
    }
    let lengths: Vec<u64> = process.reads().iter().map(|(_, len)| *len).collect();
    assert!(lengths.is_sorted_by(|one, next| one >= next), "{lengths:?}");
    assert_eq!(lengths.last(), Some(&SMALL));
}

#[test]
fn four_lists_side_by_side_are_held_and_a_fifth_takes_the_place_of_the_oldest() {
    let process = Process::new();
    let window = Window::new(&process);
    let lists = |count: u64| (0..count).map(|list| START + list * (SIZE / 8));
    for _ in 0..10 {
        assert!(lists(4).all(|at| is_right(&window, at)));
    }
    assert_eq!(process.reads().len(), 4);
    assert!(lists(5).all(|at| is_right(&window, at)));
    assert_eq!(process.reads().len(), 1);
    assert!(is_right(&window, START + SIZE / 8), "the second one is still held");
    assert_eq!(process.reads().len(), 0);
    assert!(is_right(&window, START));
    assert_eq!(process.reads().len(), 1);
}

#[test]
fn what_lies_at_the_edge_of_a_mapping_is_read() {
    for known in [true, false] {
        let mut process = Process::new();
        process.mapping = process.mapping.filter(|_| known);
        let window = Window::new(&process);
        // The piece would reach beyond the mapping.
        assert!(is_right(&window, START + SIZE - 64));
        assert!(is_right(&window, START + SIZE - 8));
        let ends: Vec<u64> = process.reads().iter().map(|(at, len)| at + len).collect();
        assert_eq!(ends.iter().all(|end| *end <= START + SIZE), known, "{ends:x?}");
        assert!(is_right(&window, START));
        let beyond = window.read(Addr(START + SIZE), &mut [0; 8]);
        assert_eq!(beyond.map_err(|error| error.why), Err(ReadFault::Unmapped));
        assert!(window.read(Addr(START + SIZE - 4), &mut [0; 8]).is_err());
        assert!(window.read(Addr(u64::MAX - 4), &mut [0; 8]).is_err());
    }
}

#[test]
fn struct_larger_than_a_piece_is_read_at_once() {
    let process = Process::new();
    let window = Window::new(&process);
    let mut buf = vec![0; 3 * SMALL as usize];
    window.read(Addr(START), &mut buf).expect("it is there");
    assert_eq!(process.reads().len(), 1);
    let last = buf.len() - 8;
    assert_eq!(u64::from_le_bytes(buf[last..].try_into().expect("a word")), START + last as u64);
}

#[test]
fn nothing_new_is_read_after_the_time_that_is_allowed() {
    let process = Process::new();
    let window = Window::new(&process);
    assert!(is_right(&window, START));
    process.late.set(true);
    assert!(is_right(&window, START + 8), "that was read before");
    let late = window.read(Addr(START + SIZE / 2), &mut [0; 8]);
    assert_eq!(late, Err(ReadError { addr: Addr(START + SIZE / 2), len: 8, why: ReadFault::Late }));
    let mut structs = Structs::new();
    structs.read(&process, &[Addr(START)], 8);
    assert!(structs.get(0).is_err());
    assert_eq!(process.reads().len(), 1);
}

/// The first word of each struct, or that it could not be read.
fn words(structs: &Structs, count: usize) -> Vec<Option<u64>> {
    let word = |index| {
        let record = structs.get(index).ok()?;
        Some(u64::from_le_bytes(record.bytes().first_chunk().copied()?))
    };
    (0..count).map(word).collect()
}

#[test]
fn structs_that_lie_close_together_are_read_in_one_piece() {
    let of = |distance: u64| {
        let process = Process::new();
        let mut structs = Structs::new();
        // In no order, and one of them twice.
        let places = [3, 0, 2, 1, 2].map(|place: u64| Addr(START + place * distance));
        structs.read(&process, &places, 64);
        assert_eq!(words(&structs, 5), places.map(|at| Some(at.0)));
        process.reads()
    };
    assert_eq!(of(64), [(START, 4 * 64)]);
    assert_eq!(of(64 + GAP), [(START, 4 * 64 + 3 * GAP)]);
    assert_eq!(of(64 + GAP + 8).len(), 4, "what lies between is not worth it");
    // Structs that overlap.
    assert_eq!(of(8), [(START, 64 + 3 * 8)]);
}

#[test]
fn one_piece_of_structs_has_an_end() {
    let process = Process::new();
    let mut structs = Structs::new();
    let places: Vec<Addr> = (START..START + SIZE).step_by(64).map(Addr).collect();
    structs.read(&process, &places, 64);
    assert!(words(&structs, places.len()).iter().zip(&places).all(|(word, at)| *word == Some(at.0)));
    assert_eq!(process.reads(), [(START, SPAN), (START + SPAN, SPAN)]);
}

#[test]
fn struct_that_cannot_be_read_does_not_take_others_along() {
    let process = Process::new();
    let mut structs = Structs::new();
    let places = [START + SIZE - 64, START + SIZE, START + SIZE - 32, START].map(Addr);
    structs.read(&process, &places, 64);
    assert_eq!(words(&structs, 5), [Some(START + SIZE - 64), None, None, Some(START), None]);
    let why = structs.get(1).expect_err("it is not mapped");
    assert_eq!(why, ReadError { addr: Addr(START + SIZE), len: 64, why: ReadFault::Unmapped }.into());
    assert_eq!(structs.get(4).expect_err("there are four"), Common::MoreThanRead.into());
    let highest = [Addr(u64::MAX - 8), Addr(START)];
    structs.read(&process, &highest, 64);
    assert_eq!(words(&structs, 2), [None, Some(START)]);
}

#[test]
fn structs_with_more_bytes_than_can_be_right_are_refused() {
    let process = Process::new();
    let mut structs = Structs::new();
    let fits = |structs: &mut Structs, size: u64, count: usize| {
        structs.read(&process, &vec![Addr(START); count], size);
        let refused = structs.get(0).err();
        let length = ReadError { addr: Addr(START), len: size, why: ReadFault::BadLength };
        assert!(refused.is_none() || refused == Some(length.into()), "{refused:?}");
        structs.get(0).is_ok()
    };
    assert!(fits(&mut structs, MOST / 16, 16));
    assert!(!fits(&mut structs, MOST / 16, 17));
    assert!(!fits(&mut structs, u64::MAX, 2));
    assert!(fits(&mut structs, 8, 1), "the next ones are read again");
    structs.read(&process, &[], 8);
    assert_eq!(words(&structs, 1), [None]);
}

#[test]
fn structs_are_taken_from_a_window_that_holds_them() {
    let process = Process::new();
    let window = Window::new(&process);
    assert!(is_right(&window, START));
    process.reads();
    let mut structs = Structs::new();
    let places = [START + 64, START + SIZE / 2, START + SMALL - 64, START + SMALL - 32].map(Addr);
    structs.read_through(&window, &places, 64);
    assert_eq!(words(&structs, 4), places.map(|at| Some(at.0)));
    assert_eq!(process.reads(), [(START + SMALL - 32, 64), (START + SIZE / 2, 64)]);
    assert!(is_right(&window, START), "the window has not moved");
    assert_eq!(process.reads(), []);
    // One by one it does.
    structs.read_moving(&window, &[Addr(START + SIZE / 2), Addr(START + SIZE / 2 + 64), Addr(START + SIZE)], 64);
    assert_eq!(words(&structs, 3), [Some(START + SIZE / 2), Some(START + SIZE / 2 + 64), None]);
    assert!(is_right(&window, START + SIZE / 2 + 128));
    assert!(process.reads().iter().filter(|(at, _)| *at < START + SIZE).count() == 1);
}
