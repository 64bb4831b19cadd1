//! What was read of a target, and read again with other bytes.

use ompd_process::moment::{Instead, Keeping, Otherwise};
use ompd_process::{Addr, Arch, ByteOrder, Machine, ReadFault, Target, TargetExt as _, TargetKind, Thread};
use test_programs::{ChangedTarget, FakeTarget};

fn target() -> FakeTarget {
    let arch = Arch { machine: Machine::X86_64, pointer_bytes: 8, byte_order: ByteOrder::Little };
    let mut target = FakeTarget::new(TargetKind::Core, arch);
    target.memory.push((Addr(0x1000), (0..=255).collect()));
    target
}

fn read(target: &dyn Target, addr: u64, len: u64) -> Option<Vec<u8>> {
    target.read_vec(Addr(addr), len).ok()
}

#[test]
fn what_was_read_can_be_read_again_and_nothing_else() {
    let target = target();
    let keeping = Keeping::new(&target);
    for (addr, len) in [(0x1000, 8), (0x1004, 8), (0x1004, 2), (0x1020, 4), (0x1024, 4), (0x1080, 1), (0x2000, 1)] {
        assert_eq!(read(&keeping, addr, len), read(&target, addr, len));
    }
    let moment = keeping.into_moment();
    assert_eq!(moment.ranges(), [0x1000..0x100c, 0x1020..0x1028, 0x1080..0x1081]);
    let again = Otherwise::new(&target, &moment, &[], Instead::Zero, &[]);
    assert_eq!(read(&again, 0x1000, 12), read(&target, 0x1000, 12));
    assert_eq!(read(&again, 0x1022, 5), read(&target, 0x1022, 5));
    for (addr, len) in [(0x1000, 13), (0xfff, 2), (0x1028, 1), (0x1010, 1), (0x2000, 1), (u64::MAX, 2)] {
        assert_eq!(read(&again, addr, len), None, "{addr:#x}");
    }
    // What failed fails as it did.
    let denied = ChangedTarget::new(&target).with_failing_read(0);
    let keeping = Keeping::new(&denied);
    let why = |target: &dyn Target, addr: u64| target.read(Addr(addr), &mut [0]).map_err(|error| error.why);
    assert_eq!(why(&keeping, 0x1000), Err(ReadFault::NotInCore));
    let failed = keeping.into_moment();
    let without = Otherwise::new(&denied, &failed, &[], Instead::Zero, &[]);
    assert_eq!((why(&without, 0x1000), why(&without, 0x1001)), (Err(ReadFault::NotInCore), Err(ReadFault::Unmapped)));
    assert_eq!(again.read(Addr(0x5000), &mut []), Ok(()));
    assert_eq!(moment.bytes(0x1003..0x1005), Some(&[3, 4][..]));
    assert_eq!(moment.bytes(0xfff..0x1001), None);
}

#[test]
fn changed_bytes_differ_and_others_stay() {
    let target = target();
    let keeping = Keeping::new(&target);
    let all = read(&keeping, 0x1000, 256).expect("it is there");
    let moment = keeping.into_moment();
    for instead in [Instead::Zero, Instead::Flipped, Instead::Noise] {
        let changed = [0x1001..0x1003, 0x1010..0x1040];
        let otherwise = Otherwise::new(&target, &moment, &changed, instead, &[]);
        let seen = read(&otherwise, 0x1000, 256).expect("it is there");
        for (at, (is, was)) in seen.iter().zip(&all).enumerate() {
            let is_changed = changed.iter().any(|range| range.contains(&(0x1000 + at as u64)));
            assert_eq!(is != was, is_changed, "{instead:?} at {at}");
        }
        assert_eq!(read(&otherwise, 0x1002, 4), Some(seen[2..6].to_vec()));
    }
    // What was equal is not equal with noise.
    let mut target = target;
    target.memory[0].1.fill(7);
    let keeping = Keeping::new(&target);
    read(&keeping, 0x1000, 16);
    let moment = keeping.into_moment();
    let changed = [0x1000..0x1008, 0x1008..0x1010];
    let otherwise = Otherwise::new(&target, &moment, &changed, Instead::Noise, &[]);
    assert_ne!(read(&otherwise, 0x1000, 8), read(&otherwise, 0x1008, 8));
}

#[test]
fn a_thread_may_be_without_registers() {
    let mut target = target();
    let thread = |lwp: i32| Thread {
        lwp,
        name: None,
        registers: Err("none".to_owned()),
        pointer: Some(Addr(lwp as u64)),
        signal: 0,
        blocked_signals: None,
    };
    target.threads = vec![thread(1), thread(2)];
    let moment = Keeping::new(&target).into_moment();
    let otherwise = Otherwise::new(&target, &moment, &[], Instead::Zero, &[2]);
    let pointers: Vec<_> = otherwise.threads().iter().map(Thread::thread_pointer).collect();
    assert_eq!(pointers, [Some(Addr(1)), None]);
}

/// Of bytes that were read twice, in between the process has run.
#[test]
fn what_was_read_later_does_not_replace_what_was_read_before() {
    let before = target();
    let mut after = target();
    after.memory[0].1.fill(9);
    let moment = |target: &FakeTarget, addr: u64, len: u64| {
        let keeping = Keeping::new(target);
        read(&keeping, addr, len);
        keeping.into_moment()
    };
    let both = moment(&before, 0x1004, 4).and(moment(&after, 0x1000, 16)).and(moment(&after, 0x1080, 1));
    assert_eq!(both.ranges(), [0x1000..0x1010, 0x1080..0x1081]);
    assert_eq!(both.bytes(0x1002..0x100a), Some(&[9, 9, 4, 5, 6, 7, 9, 9][..]));
    let same = moment(&before, 0x1004, 2).and(moment(&after, 0x1004, 4));
    assert_eq!(same.bytes(0x1004..0x1008), Some(&[4, 5, 9, 9][..]));
}
