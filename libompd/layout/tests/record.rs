//! Structs of which a part is read.

use ompd_layout::{Field, Record};
use ompd_process::{Addr, ReadFault, TargetKind};
use test_programs::FakeTarget;

const AT: Addr = Addr(0x1000);
const SIZE: u64 = 0x400;

fn field(offset: u64) -> Field {
    Field { offset, size: 8, bits: None }
}

/// A struct whose words are their own offsets; what lies in `hole` is not mapped.
fn target(hole: std::ops::Range<u64>) -> FakeTarget {
    let arch = ompd_process::Arch::X86_64;
    let bytes = |from: u64, to: u64| (from / 8..to / 8).flat_map(|word| (word * 8).to_le_bytes()).collect::<Vec<u8>>();
    let memory = vec![(AT, bytes(0, hole.start)), (AT.offset(hole.end), bytes(hole.end, SIZE))];
    FakeTarget { memory, ..FakeTarget::new(TargetKind::Live, arch) }
}

#[test]
fn what_was_not_read_of_a_struct_is_no_zero() {
    let target = target(0x100..0x200);
    let record =
        Record::read_parts(&target, AT, SIZE, vec![0x300..0x308, 0x10..0x18, 0x28..0x30]).expect("they are mapped");
    for offset in [0x10, 0x28, 0x300] {
        assert_eq!(record.uint(field(offset)), Ok(offset));
    }
    // Between two that were read together, and nowhere else.
    assert_eq!(record.uint(field(0x20)), Ok(0x20));
    for offset in [0, 0x8, 0x30, 0x2c, 0xc0, 0x2f8, 0x308, SIZE] {
        let fault = record.uint(field(offset)).expect_err("it was not read").why;
        assert_eq!(fault, ReadFault::BadLength, "{offset:#x}");
    }
    let copy = record.borrowed().to_record();
    assert!(copy.uint(field(0)).is_err() && copy.uint(field(0x10)).is_ok());
}

#[test]
fn parts_that_cannot_be_read_are_errors() {
    let target = target(0x100..0x200);
    let read = |parts| Record::read_parts(&target, AT, SIZE, parts).map(|_| ());
    assert!(read(vec![0x10..0x18, 0x180..0x188]).is_err(), "it is not mapped");
    assert!(read(vec![0..8, SIZE - 4..SIZE + 4]).is_err(), "it does not lie within the struct");
    assert!(Record::read_parts(&target, AT, u64::MAX, vec![0..8, 16..24]).is_err(), "no struct has so many bytes");
    let nothing = Record::read_parts(&target, AT, SIZE, Vec::new()).expect("there is nothing to read");
    assert!(nothing.uint(field(0)).is_err(), "nothing was read");
}
