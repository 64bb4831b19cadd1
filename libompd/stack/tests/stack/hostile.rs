//! Files and stacks written to exhaust a reader.
//!
//! A few bytes refer to the same bytes over and over, nest without end, or lead in circles. Most of what these tests
//! show is that they end, with the stack and memory that threads of tests have.

use std::sync::Arc;

use ompd_process::{Addr, Arch, ElfFile, GENERAL, Module, Registers, TargetKind, Thread};
use ompd_stack::{Cache, End, Report, Stacks, source_name};
use test_programs::{FakeTarget, elf};

/// Where the image is loaded, and how far it goes.
const BIAS: u64 = 0x4000_0000;
const EXTENT: u64 = 0x1000_0000;
const STACK: u64 = 0x7fff_0000_0000;
/// An address of the file with code.
const CODE: u64 = 0x1000;

/// A process with one image.
struct Process(FakeTarget);

impl Process {
    /// Its threads execute at these addresses of the file, with these words on the stack.
    fn of(sections: &[(&str, u64, Vec<u8>)], at: impl IntoIterator<Item = u64>, stack: &[u64]) -> Process {
        let sections: Vec<_> = sections.iter().map(|(name, at, bytes)| (*name, *at, &bytes[..])).collect();
        let file = ElfFile::from_bytes("/nowhere/hostile", elf(&sections)).expect("an ELF file");
        let module = Module {
            path: "/nowhere/hostile".to_owned(),
            bias: BIAS,
            ranges: std::iter::once(BIAS..BIAS + EXTENT).collect(),
            build_id: None,
            file: Ok(Arc::new(file)),
        };
        let threads = at.into_iter().zip(1..).map(|(at, lwp)| {
            let mut general = [STACK; GENERAL];
            general[16] = BIAS + at;
            let (pc, sp) = (Addr(general[16]), Addr(STACK));
            let registers = Registers {
                pc,
                sp,
                fp: sp,
                thread_pointer: None,
                syscall: None,
                returned: None,
                unnumbered: false,
                general,
                known: Registers::ALL,
            };
            Thread { lwp, name: None, registers: Ok(registers), pointer: None, signal: 0, blocked_signals: None }
        });
        let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
        target.memory.push((Addr(STACK), stack.iter().flat_map(|word| word.to_le_bytes()).collect()));
        target.modules.push(module);
        target.threads.extend(threads);
        Process(target)
    }

    fn report(&self) -> Report {
        Report::of(&self.0, &[], &[], &Stacks::capture(&self.0), &Cache::default())
    }
}

/// Words of an entry of call frame information: `content` with its length before it, filled up with `DW_CFA_nop`.
fn entry(content: &[u8]) -> Vec<u8> {
    let mut bytes = content.to_vec();
    bytes.resize(bytes.len().next_multiple_of(8) + 4, 0);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

/// `.debug_frame` with one common entry, with this augmentation, return address register 16 and these instructions.
fn common(augmentation: &[u8], instructions: &[u8]) -> Vec<u8> {
    entry(&[&[0xff; 4][..], &[1], augmentation, &[0, 1, 0x78, 16], instructions].concat())
}

/// An entry that refers to the common one at 0.
fn described(start: u64, length: u64, instructions: &[u8]) -> Vec<u8> {
    entry(&[&[0; 4][..], &start.to_le_bytes(), &length.to_le_bytes(), instructions].concat())
}

/// `DW_CFA_def_cfa rsp, 8` and `DW_CFA_offset rip, 1 * -8`: as at the beginning of a function.
const CALLED: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

#[test]
fn a_long_entry_for_every_return_address_of_a_stack() {
    // Four megabytes of instructions, looked up for sixteen thousand addresses of it.
    let instructions = vec![0; 4 << 20];
    let frames = [common(&[], &CALLED), described(CODE, 1 << 20, &instructions)].concat();
    let stack: Vec<u64> = (0..20_000).map(|n| BIAS + CODE + 8 + n).collect();
    let process = Process::of(&[(".debug_frame", 0, frames)], [CODE], &stack);
    let report = process.report();
    let found = report.physical(1).expect("a stack");
    assert!(matches!(found.end, End::Unusable { .. }), "{}", found.end);
    assert!(found.frames.len() > 2);
}

#[test]
fn a_common_entry_as_long_as_the_section() {
    // Each of forty thousand entries refers to one with a megabyte of augmentation.
    let mut augmentation = vec![b'S'; 1 << 20];
    (augmentation[0], augmentation[(1 << 20) - 1]) = (b'z', 0);
    // .eh_frame: the mark of a common entry is 0, and offsets count back from where they are.
    let head = entry(&[&[0; 4][..], &[1], &augmentation, &[1, 0x78, 16, 0], &CALLED].concat());
    let mut frames = head;
    for n in 0..40_000u64 {
        let back = frames.len() as u32 + 4;
        let start = CODE + 16 * n;
        frames.extend(entry(&[&back.to_le_bytes()[..], &start.to_le_bytes(), &16u64.to_le_bytes(), &[0]].concat()));
    }
    let stack: Vec<u64> = (0..20_000).map(|n| BIAS + CODE + 16 * n + 8).collect();
    let process = Process::of(&[(".eh_frame", 0x10_0000, frames)], [CODE], &stack);
    let report = process.report();
    assert!(!report.physical(1).expect("a stack").frames.is_empty());
}

/// A stray store is no place where a thread begins; a function without a caller is one.
#[test]
fn a_return_address_of_zero() {
    let end = |instructions: &[u8]| {
        let frames = [common(&[], &CALLED), described(CODE, 0x100, &[]), described(CODE + 0x100, 0x100, instructions)];
        let stack = [BIAS + CODE + 8, BIAS + CODE + 0x108, 0];
        let process = Process::of(&[(".debug_frame", 0, frames.concat())], [CODE], &stack);
        let report = process.report();
        let found = report.physical(1).expect("a stack");
        (found.frames.len(), found.end.clone())
    };
    assert_eq!(end(&[]), (3, End::ZeroReturn(Addr(BIAS + CODE + 0x107))));
    // DW_CFA_undefined rip
    assert_eq!(end(&[0x07, 16]), (3, End::Root));
}

#[test]
fn frames_that_lead_in_circles() {
    // Signal frames may lead anywhere: the stack pointer stays what it is, and a thousand threads do the same.
    let circle = [0x0c, 7, 0, 0x90, 0];
    let frames = entry(&[&[0; 4][..], &[1], b"zS\0", &[1, 0x78, 16, 0], &circle].concat());
    let back = frames.len() as u32 + 4;
    let one = entry(&[&back.to_le_bytes()[..], &CODE.to_le_bytes(), &16u64.to_le_bytes(), &[0]].concat());
    let sections = [(".eh_frame", 0x10_0000, [frames, one].concat())];
    let process = Process::of(&sections, std::iter::repeat_n(CODE, 1000), &[BIAS + CODE, BIAS + CODE]);
    let report = process.report();
    for thread in 1..=1000 {
        let found = report.physical(thread).expect("a stack");
        assert_eq!(found.end, End::TooMany(found.frames.len()));
        assert!(found.frames.len() >= 256);
    }
    let frames: usize = (1..=1000).filter_map(|lwp| Some(report.physical(lwp)?.frames.len())).sum();
    assert!(frames < (1 << 20) / 2 + 256 * 1000, "{frames} frames");
    // Without the mark of a signal frame it is one frame.
    let frames = [common(&[], &circle), described(CODE, 16, &[])].concat();
    let report = Process::of(&[(".debug_frame", 0, frames)], [CODE], &[BIAS + CODE, BIAS + CODE]).report();
    let found = report.physical(1).expect("a stack");
    assert_eq!((found.frames.len(), &found.end), (1, &End::NoProgress(Addr(BIAS + CODE))));
}

#[test]
fn expressions_without_end() {
    // DW_OP_skip to itself; values pushed in a loop; memory asked for again and again.
    for code in [&[0x2f, 0xfd, 0xff][..], &[0x12, 0x2f, 0xfc, 0xff], &[0x77, 0, 0x06, 0x2f, 0xfa, 0xff]] {
        let expression = [&[0x0f, code.len() as u8][..], code].concat();
        let frames = [common(&[], &expression), described(CODE, 16, &[])].concat();
        let report = Process::of(&[(".debug_frame", 0, frames)], [CODE], &[STACK, STACK]).report();
        let found = report.physical(1).expect("a stack");
        assert_eq!(found.frames.len(), 1);
        assert!(matches!(found.end, End::Unusable { .. }), "{code:x?}: {}", found.end);
    }
}

#[test]
fn names_of_containers_that_lead_in_circles() {
    // Two names for one place: the function is the body of a construct in itself.
    let names = b"\0solve._omp_fn.0\0solve\0".to_vec();
    let symbol = |name: u32| {
        let mut entry = name.to_le_bytes().to_vec();
        entry.extend([0x12, 0, 1, 0]);
        entry.extend([CODE, 16].iter().flat_map(|v: &u64| v.to_le_bytes()));
        entry
    };
    for order in [[1, 17], [17, 1]] {
        let symbols = [vec![0; 24], symbol(order[0]), symbol(order[1])].concat();
        let sections = [(".symtab", 0, symbols), (".strtab", 0, names.clone())];
        let report = Process::of(&sections, [CODE], &[]).report();
        let frame = &report.logical[0].frames[0];
        assert_eq!(frame.function.as_deref(), Some("solve"));
    }
}

/// Abbreviations: 1 unit, 2 function with children, 3 inlined function with nothing, 4 function with ranges.
const ABBREVIATIONS: &[u8] = &[
    // A unit has children; its range, and its line table.
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0x10, 0x17, 0, 0, //
    2, 0x2e, 1, 0x03, 0x0e, 0x11, 0x01, 0x12, 0x07, 0, 0, //
    3, 0x1d, 1, 0, 0, //
    4, 0x2e, 0, 0x03, 0x0e, 0x55, 0x17, 0, 0, //
    5, 0x1d, 1, 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0, //
    0,
];

/// A unit of `.debug_info` that covers addresses from `CODE` on.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut content = vec![4, 0, 0, 0, 0, 0, 8, 1];
    content.extend([CODE, 1 << 20].iter().flat_map(|v: &u64| v.to_le_bytes()));
    content.extend(0u32.to_le_bytes());
    content.extend(entries);
    [&(content.len() as u32).to_le_bytes()[..], &content].concat()
}

/// A function of the unit, with the name at `name`, open for children.
fn function(name: u32) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(name.to_le_bytes());
    bytes.extend([CODE, 1 << 20].iter().flat_map(|v: &u64| v.to_le_bytes()));
    bytes
}

/// `.debug_line` with one table: these operations.
fn lines(program: &[u8]) -> Vec<u8> {
    let header = [&[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1][..], b"\0file.c\0\0\0\0\0"].concat();
    let content = [&[4, 0][..], &(header.len() as u32).to_le_bytes(), &header, program].concat();
    [&(content.len() as u32).to_le_bytes()[..], &content].concat()
}

/// Sections of debug information with one name at 0, and this line table.
fn debug(info: Vec<u8>, lines: Vec<u8>, ranges: Vec<u8>) -> Vec<(&'static str, u64, Vec<u8>)> {
    vec![
        (".debug_info", 0, info),
        (".debug_abbrev", 0, ABBREVIATIONS.to_vec()),
        (".debug_line", 0, lines),
        (".debug_str", 0, b"outer\0".to_vec()),
        (".debug_ranges", 0, ranges),
    ]
}

/// What is told of threads at so many addresses from `CODE` on: number of frames, function and line of the innermost.
fn told(sections: &[(&str, u64, Vec<u8>)], addresses: u64) -> Vec<(usize, Option<String>, Option<u32>)> {
    let report = Process::of(sections, CODE..CODE + addresses, &[]).report();
    let frames = |stack: &ompd_stack::LogicalStack| {
        let first = stack.frames.first();
        let function = first.and_then(|frame| frame.function.as_deref().map(str::to_owned));
        (stack.frames.len(), function, first.and_then(|frame| frame.line))
    };
    report.logical.iter().map(frames).collect()
}

/// In a thread with the stack threads have if nothing else is said.
fn in_a_usual_thread<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("a thread");
    thread.join().expect("it does not panic, and its stack is enough")
}

#[test]
fn inlined_functions_nested_a_million_deep() {
    // With an address range and a name each, or with nothing at all; of what is too deep nothing is told.
    let name = unit(&[]).len() as u32;
    let described = [&[5][..], &CODE.to_le_bytes(), &(1u64 << 20).to_le_bytes(), &name.to_le_bytes()].concat();
    for (inlined, depth, wanted) in [
        (described.clone(), 100, (101, Some("outer"))),
        (vec![3], 100, (1, Some("outer"))),
        (described, 1_000_000, (1, None)),
        (vec![3], 1_000_000, (1, None)),
    ] {
        let found = in_a_usual_thread(move || {
            let entries = [function(0), inlined.repeat(depth), vec![0; depth + 2]].concat();
            told(&debug(unit(&entries), lines(&[]), Vec::new()), 100)
        });
        let as_wanted = |(frames, name, _): &(usize, Option<String>, _)| (*frames, name.as_deref()) == wanted;
        assert!(found.iter().all(as_wanted), "depth {depth}: {:?}", found[0]);
    }
}

#[test]
fn a_million_functions_that_share_one_range_list() {
    let mut ranges: Vec<u8> = Vec::new();
    for n in 0..10_000u64 {
        // Relative to the unit's beginning.
        ranges.extend([n * 2, n * 2 + 1].iter().flat_map(|v| v.to_le_bytes()));
    }
    ranges.extend([0; 16]);
    for (functions, wanted) in [(1, Some("outer")), (1_000_000, None)] {
        let entries = [4u8, 0, 0, 0, 0, 0, 0, 0, 0].repeat(functions);
        let found = told(&debug(unit(&entries), lines(&[]), ranges.clone()), 1);
        assert_eq!((found[0].0, found[0].1.as_deref()), (1, wanted), "{functions} functions");
    }
}

#[test]
fn thousands_of_units_that_share_one_line_table() {
    let mut program = vec![0, 9, 2]; // DW_LNE_set_address
    program.extend(CODE.to_le_bytes());
    program.extend(vec![0x20; 1 << 20]); // Special operations: a row for each byte.
    program.extend([0, 1, 1]); // DW_LNE_end_sequence
    for units in [1, 20_000] {
        // None of them has a function there, so all are asked, as far as there is an allowance.
        let found = told(&debug(unit(&[0]).repeat(units), lines(&program), Vec::new()), 500);
        assert_eq!(found.len(), 500);
        // The first row is behind the first address.
        assert!(units > 1 || found[1..].iter().all(|(.., line)| *line == Some(1)), "{:?}", found[1]);
    }
}

#[test]
fn names_without_end() {
    // Each of many functions inlined into each other has a name of a megabyte, of one that is shared or of its own.
    let mut sections = debug(Vec::new(), lines(&[]), Vec::new());
    let entries: Vec<u8> = (0..250).flat_map(function).chain([0; 251]).collect();
    sections[0].2 = unit(&entries);
    for (length, told_of) in [(1000, true), (1 << 20, false)] {
        sections[3].2 = [vec![b'x'; length], vec![0]].concat();
        let found = told(&sections, 2000);
        let longest = found.iter().filter_map(|(_, name, _)| Some(name.as_ref()?.len())).max();
        assert_eq!(longest.is_some(), told_of, "{longest:?}");
    }
}

#[test]
fn mangled_names_that_mean_endless_ones() {
    // Each argument is a template with the one before twice: the fiftieth has 2^50 parts.
    let mangled = |count: u32| {
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let digit = |n: u32| char::from(digits[n as usize]);
        let mut name = "_Z1fI1A".to_owned();
        for n in 0..count {
            // `f`, then `A`, then `B` and its first use; each further use is one more.
            let before = match n {
                0 => 0,
                n => n + 1,
            };
            let reference = if before < 36 { digit(before).to_string() } else { format!("1{}", digit(before - 36)) };
            let template = if n == 0 { "1B" } else { "S1_" };
            name += &format!("{template}IS{reference}_S{reference}_E");
        }
        name + "EvT_"
    };
    assert_eq!(source_name(&mangled(2), None), "f<A, B<A, A>, B<B<A, A>, B<A, A> > >");
    let endless = source_name(&mangled(50), None);
    assert!(endless.ends_with('…') && endless.len() < 32 << 10, "{} bytes", endless.len());
    let plain = source_name(&format!("_ZN{}E", "1a".repeat(30_000)), None);
    assert!(plain.len() < 128 << 10, "{}", plain.len());
    assert!(source_name(&"y".repeat(1 << 20), None).ends_with('…'));
    assert!(source_name(&"é".repeat(1 << 20), None).len() < 32 << 10);
}
