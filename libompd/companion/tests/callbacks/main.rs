//! What the companion writes for each callback, compared with the arguments that a runtime gave it.
//!
//! The test plays the runtime. So it can make each callback with numbers that all differ.

mod device;
mod devices;
mod remembered;
mod runtime;
mod started;
mod states;
mod tr2;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::event::Event;

use runtime::{Runtime, TODAY, alone, block, events, make, registered, ring};

/// `ompt_data_t`
pub(crate) type Data = AtomicU64;
/// A word of the runtime's, or null.
pub(crate) type Word<'d> = *const Data;
/// A return address, or another address.
pub(crate) type Address = *const c_void;

/// `ompt_dependence_t`
#[repr(C)]
#[derive(Debug)]
struct Dependence {
    variable: u64,
    dependence_type: c_uint,
}

/// `ompt_scope_begin`
pub(crate) const BEGIN: c_int = 1;
/// `ompt_scope_end`
pub(crate) const END: c_int = 2;

/// An address that is not read.
pub(crate) fn address(number: usize) -> Address {
    std::ptr::without_provenance(number)
}

fn event(kind: u8) -> Event {
    Event { kind, ..Event::default() }
}

/// The calling thread begins.
pub(crate) fn thread_begins(kind: c_int) -> Data {
    let thread = Data::new(0);
    make!(1, (c_int, Word), (kind, &thread));
    thread
}

/// Makes all callbacks of constructs on the host, and returns the events they stand for.
fn make_all() -> Vec<Event> {
    let [region, task, other] = [71, 72, 73].map(Data::new);
    let region_word = || -> Word { &region };
    let task_word = || -> Word { &task };
    let code = address(0x4000);
    let codeptr_ra = 0x4000;
    let both = |kind: u8| Event { region: 71, task: 72, codeptr_ra, ..event(kind) };
    let mut expected = Vec::new();

    make!(4, (Word, Word, c_int, Address), (region_word(), task_word(), -2, code));
    expected.push(Event { flags: 0xffff_fffe, ..both(4) });
    make!(6, (Word, c_int, Word), (task_word(), 7, &other));
    expected.push(Event { sub: 7, task: 72, other: 73, ..event(6) });
    make!(6, (Word, c_int, Word), (task_word(), 1, null()));
    expected.push(Event { sub: 1, task: 72, ..event(6) });
    make!(7, (c_int, Word, Word, c_uint, c_uint, c_int), (END, null(), task_word(), 8, 3, 0x1_0002));
    expected.push(Event { endpoint: 2, sub: 2, flags: 3, task: 72, other: 8, ..event(7) });
    for (number, kind) in [(23, 3), (16, 5), (31, 7)] {
        for scope in [BEGIN, END] {
            let (region, task) = (region_word(), task_word());
            match number {
                23 => make!(23, (c_int, c_int, Word, Word, Address), (kind, scope, region, task, code)),
                16 => make!(16, (c_int, c_int, Word, Word, Address), (kind, scope, region, task, code)),
                _ => make!(31, (c_int, c_int, Word, Word, Address), (kind, scope, region, task, code)),
            }
            expected.push(Event { endpoint: scope as u8, sub: kind as u16, ..both(number) });
        }
    }
    let mutex = |kind: u8| Event { sub: 3, other: 0x88, codeptr_ra, ..event(kind) };
    make!(24, (c_int, c_uint, c_uint, u64, Address), (3, 9, 10, 0x88, code));
    expected.push(Event { flags: 9, ..mutex(24) });
    make!(26, (c_int, c_uint, c_uint, u64, Address), (3, 9, 10, 0x88, code));
    expected.push(Event { flags: 9, ..mutex(26) });
    make!(27, (c_int, u64, Address), (3, 0x88, code));
    expected.push(mutex(27));
    make!(28, (c_int, u64, Address), (END, 0x88, code));
    expected.push(Event { endpoint: 2, sub: 0, ..mutex(28) });
    make!(17, (c_int, u64, Address), (3, 0x88, code));
    expected.push(mutex(17));
    make!(25, (c_int, u64, Address), (3, 0x88, code));
    expected.push(mutex(25));
    let dependences = [(0x90, 1), (0x98, 0x1_0002)];
    let given = dependences.map(|(variable, dependence_type)| Dependence { variable, dependence_type });
    make!(18, (Word, *const Dependence, c_int), (task_word(), given.as_ptr(), 2));
    for (other, sub) in [(0x90, 1), (0x98, 2)] {
        expected.push(Event { sub, flags: 2, task: 72, other, ..event(18) });
    }
    // Without a list, or with a number below one, there are no dependences.
    make!(18, (Word, *const Dependence, c_int), (task_word(), null(), 2));
    make!(18, (Word, *const Dependence, c_int), (task_word(), given.as_ptr(), 0));
    make!(18, (Word, *const Dependence, c_int), (task_word(), given.as_ptr(), -1));
    make!(19, (Word, Word), (task_word(), &other));
    expected.push(Event { task: 72, other: 73, ..event(19) });
    make!(20, (c_int, c_int, Word, Word, u64, Address), (11, BEGIN, region_word(), task_word(), 1 << 40, code));
    expected.push(Event { endpoint: 1, sub: 11, other: 1 << 40, ..both(20) });
    make!(21, (c_int, Word, Word, Address), (END, region_word(), task_word(), code));
    expected.push(Event { endpoint: 2, ..both(21) });
    make!(29, (Word, Address), (null(), code));
    expected.push(Event { codeptr_ra, ..event(29) });
    make!(30, (Word, c_int, Address), (task_word(), 0x11, code));
    expected.push(Event { flags: 0x11, region: 0, ..both(30) });
    make!(32, (Word, Word, c_int, u64), (region_word(), task_word(), 4, 1 << 41));
    expected.push(Event { sub: 4, other: 1 << 41, codeptr_ra: 0, ..both(32) });
    make!(37, (c_int, *const c_char, usize, Address), (2, null(), 1 << 33, code));
    expected.push(Event { sub: 2, flags: u32::MAX, codeptr_ra, ..event(37) });
    // The words of the runtime are only read.
    assert_eq!([&region, &task, &other].map(|word| word.load(Relaxed)), [71, 72, 73]);
    expected
}

/// The same for callbacks of devices, but for those that give numbers.
fn make_all_of_devices() -> Vec<Event> {
    let code = address(0x5000);
    let codeptr_ra = 0x5000;
    let target = Data::new(81);
    make!(
        14,
        (c_int, *const c_char, i64, Address, usize, Address, Address, u64),
        (-1, null(), 1, address(2), 3, address(0x6000), address(5), 6)
    );
    make!(15, (c_int, u64), (-1, 6));
    make!(
        36,
        (Word, c_uint, Address, Address, Address, Address, Address),
        (&target, 9, null(), null(), null(), null(), code)
    );
    vec![
        Event { flags: u32::MAX, region: 0x6000, other: 6, ..event(14) },
        Event { flags: u32::MAX, other: 6, ..event(15) },
        Event { flags: 9, other: 81, codeptr_ra, ..event(36) },
    ]
}

#[test]
fn each_callback_is_recorded_with_its_arguments() {
    alone("each_callback_is_recorded_with_its_arguments", &[], || {
        assert!(TODAY.start());
        let thread = thread_begins(2);
        let ring = ring();
        assert_eq!(thread.load(Relaxed), ring.values.id);
        assert_eq!((ring.values.kind, ring.values.ended), (2, 0));
        let mut expected = vec![Event { sub: 2, ..event(1) }];
        expected.extend(make_all());
        expected.extend(make_all_of_devices());
        for (n, (event, expected)) in events().iter().zip(&expected).enumerate() {
            assert_eq!(event, expected, "event {n}");
        }
        assert_eq!(events().len(), expected.len());
    });
}

/// What a region or task is called, the companion decides.
#[test]
fn what_begins_gets_a_number() {
    alone("what_begins_gets_a_number", &[], || {
        assert!(TODAY.start());
        thread_begins(1);
        let [encountering, region, task, implicit] = [61, 0, 0, 0].map(Data::new);
        let code = address(0x4000);
        let codeptr_ra = 0x4000;
        make!(3, (Word, Address, Word, c_uint, c_int, Address), (&encountering, null(), &region, 8, -2_i32, code));
        make!(5, (Word, Address, Word, c_int, c_int, Address), (&encountering, null(), &task, 4, 1, code));
        make!(7, (c_int, Word, Word, c_uint, c_uint, c_int), (BEGIN, &region, &implicit, 8, 3, 2));
        let numbers = [&region, &task, &implicit].map(|word| word.load(Relaxed));
        assert!(numbers.iter().all(|number| *number != 0) && numbers[1] != numbers[2], "{numbers:?}");
        let expected = [
            Event { flags: 0xffff_fffe, region: numbers[0], task: 61, other: 8, codeptr_ra, ..event(3) },
            Event { sub: 1, flags: 4, task: numbers[1], other: 61, codeptr_ra, ..event(5) },
            Event { endpoint: 1, sub: 2, flags: 3, region: numbers[0], task: numbers[2], other: 8, ..event(7) },
        ];
        assert_eq!(events()[1..], expected);
    });
}

#[test]
fn operations_on_devices_get_numbers_when_they_begin() {
    alone("operations_on_devices_get_numbers_when_they_begin", &[], || {
        assert!(TODAY.start());
        thread_begins(1);
        let (task, target, mut operation) = (Data::new(62), Data::new(0), 77_u64);
        let code = address(0x4000);
        let codeptr_ra = 0x4000;
        let of_target = |scope: c_int| {
            make!(33, (c_int, c_int, c_int, Word, Word, Word, Address), (9, scope, 5, &task, null(), &target, code));
            target.load(Relaxed)
        };
        let of_data = |scope: c_int, operation: *mut u64, bytes: usize| {
            make!(
                34,
                (c_int, Word, Word, *mut u64, c_int, Address, c_int, Address, c_int, usize, Address),
                (scope, null(), null(), operation, 2, address(0x10), -1, address(0x20), 5, bytes, code)
            );
        };
        let of_kernel = |scope: c_int, operation: *mut u64| {
            make!(35, (c_int, Word, *mut u64, c_uint), (scope, &target, operation, 12));
        };
        let number = of_target(BEGIN);
        of_data(BEGIN, &raw mut operation, 100);
        let copies = operation;
        of_data(END, &raw mut operation, 100);
        assert_eq!(operation, copies);
        of_kernel(BEGIN, &raw mut operation);
        let kernel = operation;
        of_kernel(END, &raw mut operation);
        assert_eq!((operation, of_target(END)), (kernel, number));
        // An operation at whose end alone it is told, of a runtime without a place for its number.
        of_data(3, null_mut(), 1 << 32);
        // A construct whose begin was not told gets no number at its end. One that has a number keeps it.
        target.store(0, Relaxed);
        assert_eq!(of_target(END), 0);
        target.store(5, Relaxed);
        assert_eq!(of_target(BEGIN), 5);

        let mut numbers = vec![77, number, copies, kernel];
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 4, "each number is given once");
        let target =
            |endpoint: u8, other: u64| Event { endpoint, sub: 9, flags: 5, task: 62, other, codeptr_ra, ..event(33) };
        let data = |endpoint: u8, task: u64, flags: u32| Event {
            endpoint,
            sub: 2,
            flags,
            region: 0x10,
            task,
            other: 0x20,
            codeptr_ra,
            ..event(34)
        };
        let submit = |endpoint: u8| Event { endpoint, flags: 12, task: kernel, other: number, ..event(35) };
        let expected = [
            target(1, number),
            data(1, copies, 100),
            data(2, copies, 100),
            submit(1),
            submit(2),
            target(2, number),
            data(3, 0, u32::MAX),
            target(2, 0),
            target(1, 5),
        ];
        assert_eq!(events()[1..], expected);
    });
}

/// A runtime that makes the older forms only.
#[test]
fn older_callbacks_of_devices_are_recorded_with_their_arguments() {
    alone("older_callbacks_of_devices_are_recorded_with_their_arguments", &[], || {
        assert!(Runtime { never: &[33, 34, 35, 36], ..TODAY }.start());
        thread_begins(1);
        let task = Data::new(62);
        let code = address(0x4000);
        let codeptr_ra = 0x4000;
        make!(8, (c_int, c_int, c_int, Word, u64, Address), (2, END, -3, &task, 91, code));
        make!(
            9,
            (u64, u64, c_int, Address, c_int, Address, c_int, usize, Address),
            (91, 92, 3, address(0x10), 1, address(0x20), 2, 17, code)
        );
        make!(10, (u64, u64, c_uint), (91, 93, 12));
        make!(
            22,
            (u64, c_uint, Address, Address, Address, Address, Address),
            (91, 4, null(), null(), null(), null(), code)
        );
        let expected = [
            Event { endpoint: 2, sub: 2, flags: 0xffff_fffd, task: 62, other: 91, codeptr_ra, ..event(8) },
            Event { sub: 3, flags: 17, region: 0x10, task: 92, other: 0x20, codeptr_ra, ..event(9) },
            Event { flags: 12, task: 93, other: 91, ..event(10) },
            Event { flags: 4, other: 91, codeptr_ra, ..event(22) },
        ];
        assert_eq!(events()[1..], expected);
        let header = block().1.header;
        for (numbers, answer) in [(8..=10, Some(5)), (22..=22, Some(5)), (33..=36, Some(1)), (37..=37, Some(5))] {
            for number in numbers {
                assert_eq!(header.result(number), answer, "callback {number}");
            }
        }
        assert!((38..=48).all(|number| header.result(number).is_none()));
    });
}

/// The draft of 2018 has other numbers for kinds. It tells of no flags of an implicit task.
#[test]
fn callbacks_of_the_draft_are_recorded_in_todays_numbers() {
    const DRAFT: Runtime = Runtime {
        omp_version: 201_611,
        entry_points: &["ompt_set_callback", "ompt_get_num_devices", "ompt_get_target_info"],
        ..TODAY
    };
    alone("callbacks_of_the_draft_are_recorded_in_todays_numbers", &[], || {
        assert!(DRAFT.start());
        thread_begins(1);
        assert_eq!(registered(), (1..=30).collect::<Vec<_>>());
        let [region, task, other] = [71, 72, 73].map(Data::new);
        let words = || -> (Word, Word) { (&region, &task) };
        let (region, task) = words();
        let code = address(0x4000);
        let codeptr_ra = 0x4000;
        make!(6, (Word, c_int, Word), (task, 4, &other));
        make!(7, (c_int, Word, Word, c_uint, c_uint), (END, region, task, 8, 3));
        make!(16, (c_int, c_int, Word, Word, Address), (2, BEGIN, region, task, code));
        make!(23, (c_int, c_int, Word, Word, Address), (3, END, region, task, code));
        make!(24, (c_int, c_uint, c_uint, u64, Address), (0x11, 9, 10, 0x88, code));
        make!(26, (c_int, c_uint, c_uint, u64, Address), (0x13, 9, 10, 0x88, code));
        make!(27, (c_int, u64, Address), (0x13, 0x88, code));
        make!(17, (c_int, u64, Address), (0x13, 0x88, code));
        make!(25, (c_int, u64, Address), (0x12, 0x88, code));
        let given = [1, 2, 3].map(|dependence_type| Dependence { variable: 0x90, dependence_type });
        make!(18, (Word, *const Dependence, c_int), (task, given.as_ptr(), 3));
        make!(27, (c_int, u64, Address), (0x77, 0x88, code));
        let both = |kind: u8| Event { region: 71, task: 72, ..event(kind) };
        let mutex = |kind: u8, sub: u16| Event { sub, other: 0x88, codeptr_ra, ..event(kind) };
        let dependence = |sub: u16| Event { sub, flags: 3, task: 72, other: 0x90, ..event(18) };
        let expected = [
            Event { sub: 7, region: 0, other: 73, ..both(6) },
            Event { endpoint: 2, sub: 2, flags: 3, other: 8, ..both(7) },
            Event { endpoint: 1, sub: 5, codeptr_ra, ..both(16) },
            Event { endpoint: 2, sub: 6, codeptr_ra, ..both(23) },
            Event { flags: 9, ..mutex(24, 1) },
            Event { flags: 9, ..mutex(26, 5) },
            mutex(27, 5),
            mutex(17, 5),
            mutex(25, 3),
            dependence(2),
            dependence(1),
            dependence(3),
            // The draft gives this number to nothing.
            mutex(27, 0),
        ];
        assert_eq!(events()[1..], expected);
    });
}
