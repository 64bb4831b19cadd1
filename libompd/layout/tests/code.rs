//! The symbolic executor on code of real compilers: fixtures compiled here, and the distribution's runtimes.

#![allow(clippy::print_stderr, reason = "skips say why")]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd_layout::code::{
    self, Callee, Chain, CodeError, CodeImage, Expr, Kind, Limits, Op, Run, StopReason, TlsSlot, functions,
    immediate_stores,
};
use ompd_process::Machine;
use ompd_process::elf::ElfFile;
use test_programs::succeeds;

fn compile(dir: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let out = dir.join(format!("{compiler}{}.so", flags.concat()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/accessors.c");
    let mut command = Command::new(compiler);
    succeeds(command.args(["-fPIC", "-shared", source, "-o"]).arg(&out).args(flags)).then_some(out)
}

fn run(file: &ElfFile, name: &str) -> Run {
    let limits = Limits { inline_depth: 1, ..Limits::default() };
    code::run_symbol(file, name, &limits).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// All returned values that come from memory.
fn chains(run: &Run) -> Vec<Chain> {
    run.returned().filter_map(Expr::chain).collect()
}

/// True if one of the values returned is `sizes` dereferences from a thread-local variable at `offsets`.
fn returns_tls<const N: usize>(run: &Run, sizes: [u8; N], offsets: [i64; N]) -> bool {
    chains(run).iter().any(|c| c.root.as_tls().is_some() && c.offsets(sizes) == Some(offsets))
}

/// The fixture's structs, with their members' offsets and the size of `slot`:
/// - `team { n 0, parent 64, level 72 }`, `task { flags 4, next 8 }`
/// - `thread { team 0, id 8, task 32 }`, `slot { others 8, size 24 }`
fn check_fixture(file: &ElfFile, what: &str) {
    let global = |name: &str| file.symbol(name).expect(name).addr.0;
    let show = |run: &Run| format!("{what}: {:#?}", run.events());

    let r = run(file, "get_id");
    assert!(returns_tls(&r, [4], [8]), "{}", show(&r));
    let r = run(file, "get_n");
    assert!(returns_tls(&r, [8, 4], [0, 0]), "{}", show(&r));
    assert!(r.returned().any(|v| v.as_const() == Some(1)), "{}", show(&r));
    let r = run(file, "ancestor");
    assert!(returns_tls(&r, [8, 4], [0, 72]) && returns_tls(&r, [8, 8, 4], [0, 64, 72]), "{}", show(&r));
    let r = run(file, "through_helper");
    assert!(returns_tls(&r, [8, 4], [0, 72]), "{}", show(&r));

    // threads[which()]->team->level
    let r = run(file, "bound");
    let found = chains(&r).into_iter().any(|c| {
        let Some([element, 0, 72]) = c.offsets([8, 8, 4]) else { return false };
        let Kind::Index { base, index, scale: 8 } = c.root.kind() else { return false };
        let called = index.as_call().is_some_and(|callee| callee.is("which"));
        element == 0 && called && base.as_load(8).and_then(Expr::as_const) == Some(global("threads"))
    });
    assert!(found, "{}", show(&r));

    // table[i].others[1]
    let r = run(file, "element");
    let found = r.returned().filter_map(|v| v.as_load(8)?.as_indexed()).any(|at| {
        let table = at.base.as_load(8).and_then(Expr::as_const);
        (table, at.index.as_arg(), at.scale, at.offset) == (Some(global("table")), Some(0), 24, 16)
    });
    assert!(found, "{}", show(&r));

    // Bit 3 of a member, shifted down or compared: the place and the mask are what matters.
    let r = run(file, "is_final");
    let flags = |v: &Expr| v.chain().and_then(|c| c.offsets([8, 4])) == Some([32, 4]);
    let found = r.returned().any(|v| match v.as_op(Op::And) {
        Some((x, one)) if one.as_const() == Some(1) => {
            x.as_op(Op::Shr).is_some_and(|(word, by)| flags(word) && by.as_const() == Some(3))
        }
        _ => false,
    });
    assert!(found, "{}", show(&r));

    let r = run(file, "count");
    let found =
        r.stores().any(|s| s.locked && s.size == 4 && s.increment() == Some(2) && s.addr.as_any_load().is_some());
    assert!(found, "{}", show(&r));

    let r = run(file, "setter");
    let malloc = r.calls().find(|c| c.callee.is("malloc")).unwrap_or_else(|| panic!("{}", show(&r)));
    assert_eq!(malloc.args[0].as_const(), Some(48));
    let object = |e: &Expr| e.as_call().is_some_and(|c| c.is("malloc"));
    let stored = |offset: i64, size: u8| {
        let mut here = r.stores().filter(|s| s.size == size && s.addr.split().1 == offset && object(&s.addr.split().0));
        here.next().map(|s| s.value.clone()).unwrap_or_else(|| panic!("no store at {offset}: {}", show(&r)))
    };
    assert_eq!(stored(4, 4).as_const(), Some(7));
    assert_eq!(stored(8, 8).chain().and_then(|c| c.offsets([8])), Some([32]));
    let linked = r.stores().any(|s| object(&s.value) && s.addr.split().0.as_tls().is_some() && s.addr.split().1 == 32);
    assert!(linked, "{}", show(&r));
    // `v > 5` or `v >= 6`, as the compiler likes.
    let compared = |c: &code::Compare| c.left.as_arg() == Some(0) && matches!(c.right.as_const(), Some(5 | 6));
    assert!(r.compares().any(compared), "{}", show(&r));
    for name in ["capacity", "ready"] {
        let found = r.returned().any(|v| v.as_load(4).and_then(Expr::as_const) == Some(global(name)));
        assert!(found, "{name} {}", show(&r));
    }
    // A path that calls abort() returns nothing.
    for path in r.paths() {
        let events: Vec<_> = path.collect();
        let aborts = events.iter().any(|e| matches!(e, code::Event::Call(c) if c.callee.is("abort")));
        let returns = events.iter().any(|e| matches!(e, code::Event::Return(_)));
        assert!(!(aborts && returns), "{}", show(&r));
    }

    let facts = global("facts");
    let range = file.function_range(global("fill")).expect("the fixture has symbols with sizes");
    let mut filled: Vec<(u64, u64)> = immediate_stores(file, range)
        .into_iter()
        .filter(|s| (facts..facts + 64).contains(&s.addr))
        .map(|s| ((s.addr - facts) / 8, s.value))
        .collect();
    filled.sort_unstable();
    let expected = [(0, 0x1b8), (1, 0x12_3456_789a), (2, 8), (3, 0x40), (6, 5), (7, 0x30)];
    assert!(filled.iter().all(|store| expected.contains(store)), "{what}: {filled:?}");
    // Without optimisation clang for aarch64 takes the table's address from the stack, behind the target of a branch.
    assert!(filled == expected || what.contains("-O0"), "{what}: {filled:?}");
}

/// Checks the fixture as every compiler makes it with every set of flags; the number of builds checked.
fn check_builds(compilers: &[(&str, &[&str])], flags: &[&[&str]], machine: Machine) -> usize {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut done = 0;
    for (compiler, target) in compilers {
        for flags in flags {
            let flags = [*target, *flags].concat();
            let Some(library) = compile(dir.path(), compiler, &flags) else { continue };
            let file = ElfFile::open(&library).expect("the fixture is an ELF file");
            assert_eq!(file.machine(), machine);
            eprintln!("{compiler} {flags:?}");
            check_fixture(&file, &format!("{compiler} {flags:?}"));
            done += 1;
        }
    }
    done
}

#[test]
fn fixtures_of_all_compilers_are_understood() {
    let native = if cfg!(target_arch = "aarch64") { Machine::AARCH64 } else { Machine::X86_64 };
    let compilers: [(&str, &[&str]); 3] = [("cc", &[]), ("clang-14", &[]), ("clang", &[])];
    let flags: &[&[&str]] = &[
        &["-O2", "-ftls-model=initial-exec"],
        &["-O2", "-ftls-model=initial-exec", "-fcf-protection=full", "-fno-plt"],
        &["-O2", "-ftls-model=global-dynamic"],
        &["-O2", "-ftls-model=global-dynamic", "-mtls-dialect=gnu2"],
        &["-O1", "-ftls-model=initial-exec", "-fstack-protector-all", "-Wl,-z,now"],
        &["-O0", "-ftls-model=initial-exec"],
        &["-Os", "-ftls-model=global-dynamic", "-fno-omit-frame-pointer"],
        &["-O3", "-ftls-model=initial-exec", "-s"],
    ];
    assert!(check_builds(&compilers, flags, native) > 0, "no compiler worked");
}

/// The same for aarch64 by compilers that run here: Debian's `gcc-aarch64-linux-gnu`, and clang, which uses its linker.
#[test]
fn fixtures_of_cross_compilers_are_understood() {
    let compilers: [(&str, &[&str]); 3] = [
        ("aarch64-linux-gnu-gcc", &[]),
        ("clang-14", &["--target=aarch64-linux-gnu"]),
        ("clang", &["--target=aarch64-linux-gnu"]),
    ];
    let flags: &[&[&str]] = &[
        &["-O2", "-ftls-model=initial-exec"],
        &["-O2", "-ftls-model=initial-exec", "-mbranch-protection=standard", "-Wl,-z,force-bti", "-fno-plt"],
        &["-O2", "-ftls-model=initial-exec", "-mno-outline-atomics"],
        &["-O2", "-ftls-model=initial-exec", "-march=armv8.1-a"],
        // TLS descriptors are the default of both.
        &["-O2", "-ftls-model=global-dynamic"],
        &["-O2", "-ftls-model=global-dynamic", "-mtls-dialect=trad"],
        &["-O1", "-ftls-model=initial-exec", "-fstack-protector-all", "-Wl,-z,now"],
        &["-O0", "-ftls-model=initial-exec"],
        &["-Os", "-ftls-model=global-dynamic", "-fno-omit-frame-pointer"],
        &["-O3", "-ftls-model=initial-exec", "-s"],
    ];
    if check_builds(&compilers, flags, Machine::AARCH64) == 0 {
        eprintln!("skipped: no compiler for aarch64");
    }
}

#[test]
fn what_was_not_followed_has_a_reason() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let Some(library) = compile(dir.path(), "cc", &["-O2", "-fjump-tables"]) else { return };
    let file = ElfFile::open(&library).expect("the fixture is an ELF file");
    let unknown = code::run_symbol(&file, "no_such_function", &Limits::default()).err();
    assert_eq!(unknown, Some(CodeError::NoSymbol("no_such_function".to_owned())));
    assert_eq!(code::run(&file, 0xdead_beef_0000, &Limits::default()).err(), Some(CodeError::NoCode(0xdead_beef_0000)));
    let switch = run(&file, "choose");
    let stop = switch.stops().iter().find(|s| matches!(s.why, StopReason::IndirectJump(_)));
    let stop = stop.expect("a switch becomes a jump table").to_string();
    assert!(stop.starts_with("jump through ") && stop.contains(", bytes: "), "{stop}");
    let few = Limits { instructions: 3, ..Limits::default() };
    let cut = code::run_symbol(&file, "setter", &few).expect("it exists");
    assert!(cut.stops().iter().any(|s| s.why == StopReason::Limit));

    // The same file with its code overwritten: errors, never a panic.
    let whole = std::fs::read(&library).expect("readable");
    let range = file.function_range(file.symbol("setter").expect("exported").addr.0).expect("has a size");
    let start = whole.windows(16).position(|w| Some(w) == file.bytes_at(range.start, 16)).expect("code is in the file");
    let mut random = 1u64;
    let mut bad = 0;
    for _ in 0..2000 {
        let mut damaged = whole.clone();
        for _ in 0..3 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = start + (random >> 33) as usize % (range.end - range.start) as usize;
            damaged[at] = (random >> 20) as u8;
        }
        let file = ElfFile::from_bytes("damaged", damaged).expect("headers are intact");
        let seen = run(&file, "setter");
        bad += usize::from(seen.stops().iter().any(|s| s.why == StopReason::BadInstruction));
        immediate_stores(&file, range.clone());
    }
    assert!(bad > 0, "damage was never noticed");
}

fn open(path: &str) -> Option<ElfFile> {
    match ElfFile::open(Path::new(path)) {
        Ok(file) if file.machine() == Machine::X86_64 => Some(file),
        Ok(_) => {
            eprintln!("skipped: {path} is not x86-64");
            None
        }
        Err(error) => {
            eprintln!("skipped: {path}: {error}");
            None
        }
    }
}

/// Offsets of libgomp of GCC 12 (reference: the DWARF of the same source).
#[test]
fn libgomp_accessors() {
    let Some(file) = open("/usr/lib/x86_64-linux-gnu/libgomp.so.1") else { return };
    if !file.version_nodes().iter().any(|n| n == "OMP_5.1") || file.version_nodes().iter().any(|n| n == "OMP_5.2") {
        eprintln!("skipped: this libgomp is not that of GCC 12");
        return;
    }
    let r = run(&file, "omp_get_thread_num");
    assert!(returns_tls(&r, [4], [0x28]));
    assert!(matches!(chains(&r)[0].root.as_tls(), Some(TlsSlot::Offset(_))));
    let r = run(&file, "omp_get_num_threads");
    assert!(returns_tls(&r, [8, 4], [0x10, 0]));
    assert!(returns_tls(&run(&file, "omp_get_level"), [4], [0x2c]));
    assert!(returns_tls(&run(&file, "omp_get_active_level"), [4], [0x30]));
    let r = run(&file, "omp_get_max_threads");
    assert!(returns_tls(&r, [8, 4], [0x58, 0x98]));
    let global = r.returned().filter_map(|v| v.as_load(4)?.as_const()).count();
    assert_eq!(global, 1, "gomp_global_icv, for threads without a task");
    let r = run(&file, "omp_get_ancestor_thread_num");
    assert!(returns_tls(&r, [8, 4], [0x10, 0x20]) && returns_tls(&r, [8, 8, 4], [0x10, 0x8, 0x20]));

    let r = code::run_symbol(&file, "GOMP_barrier", &Limits::default()).expect("exported");
    let to = r.calls().find(|c| c.tail).expect("jumps to gomp_team_barrier_wait");
    assert!(matches!(to.callee, Callee::Internal(_)));
    assert_eq!(to.args[0].as_member().map(|(at, offset)| (at.split().1, offset)), Some((0x10, 0x80)));

    let r = code::run_symbol(&file, "GOMP_taskgroup_start", &Limits::default()).expect("exported");
    let group = r.calls().find(|c| c.args[0].as_const() == Some(0x40)).expect("allocates a gomp_taskgroup");
    let linked = r.stores().any(|s| {
        s.addr.as_member().is_some_and(|(at, offset)| (at.split().1, offset) == (0x58, 0x28))
            && matches!(s.value.kind(), Kind::CallResult { at, .. } if *at == group.at)
    });
    assert!(linked, "stored to task->taskgroup");
    // Large functions stay within the limits and still reach their end.
    for name in ["GOMP_task", "GOMP_parallel_end", "omp_pause_resource_all"] {
        let r = run(&file, name);
        assert!(r.returns().count() > 0 && r.instructions() <= Limits::default().instructions + 1, "{name}");
    }
}

/// Offsets of libomp 14 (reference: the DWARF of the same source).
#[test]
fn libomp_accessors() {
    let Some(file) = open("/usr/lib/llvm-14/lib/libomp.so.5") else { return };
    // __kmp_threads[gtid], followed by `steps`.
    let thread = |name: &str, steps: &[(i64, u8)]| {
        chains(&run(&file, name)).into_iter().find_map(|c| {
            let Kind::Index { base, scale: 8, .. } = c.root.kind() else { return None };
            let rest: Vec<(i64, u8)> = c.steps[1..].iter().map(|s| (s.offset, s.size)).collect();
            if rest == steps { base.as_load(8)?.as_const() } else { None }
        })
    };
    let threads = thread("__kmpc_bound_thread_num", &[(0x20, 4)]).expect("th_info.ds.ds_tid");
    assert_eq!(thread("__kmpc_bound_num_threads", &[(0x40, 8), (0x20c, 4)]), Some(threads));
    assert_eq!(thread("omp_get_level", &[(0x40, 8), (0x350, 4)]), Some(threads));
    assert_eq!(thread("omp_get_active_level", &[(0x40, 8), (0x39c, 4)]), Some(threads));
    assert_eq!(thread("omp_get_max_threads", &[(0x1b8, 8), (0x4c, 4)]), Some(threads));
    let gtid = run(&file, "omp_get_thread_num");
    let tls = gtid.loads().filter_map(|l| l.addr.as_tls()).next().expect("__kmp_gtid");
    assert!(matches!(tls, TlsSlot::Module(_)));

    // ompd_init: 54 offsets, 11 bit masks, 54 member sizes, 26 struct sizes, in this order.
    let tables = functions(&file).map(|f| immediate_stores(&file, f));
    let best = tables.max_by_key(Vec::len).expect("there is code");
    let values: Vec<u64> = best.iter().map(|s| s.value).collect();
    assert_eq!(values[..8], [0x1b8, 0x40, 0, 0x148, 4, 0x220, 0x230, 0x39c]);
    assert_eq!(
        values[54..65],
        [2, 1, 0x10000, 0x20000, 0x40000, 0x80000, 0x10_0000, 0x20_0000, 0x40_0000, 0x80_0000, 0x100_0000]
    );
    assert_eq!(values[65..68], [8, 8, 0x40]);
    assert_eq!(values[119..123], [0x580, 0x140, 0x28, 4]);
    assert!(values.len() >= 145);
}

/// Code in which every function begins at the beginning.
struct Nested;

impl code::CodeImage for Nested {
    fn machine(&self) -> Machine {
        Machine::X86_64
    }
    fn code_at(&self, _: u64, _: usize) -> Option<&[u8]> {
        None
    }
    fn data_at(&self, _: u64, _: usize) -> Option<&[u8]> {
        None
    }
    fn slot(&self, _: u64) -> Option<code::Slot> {
        None
    }
    fn function(&self, addr: u64) -> Option<Range<u64>> {
        Some(0x1000..addr + 16)
    }
    fn symbol(&self, _: &str) -> Option<u64> {
        None
    }
    fn executable(&self) -> Vec<Range<u64>> {
        std::iter::once(0x1000..0x10_1000).collect()
    }
}

#[test]
fn functions_within_each_other_do_not_multiply() {
    let found: Vec<_> = functions(&Nested).collect();
    assert_eq!(found.first(), Some(&(0x1000..0x1010)));
    let sum: u64 = found.iter().map(|f| f.end - f.start).sum();
    assert!(sum <= 4 * 0x10_0000, "{sum} bytes of functions in {} of code", 0x10_0000);
}

/// In a static program thread-local variables are at constants from the thread pointer, and the C library is a part of
/// it.
#[test]
fn static_programs_are_followed_like_libraries() {
    const SOURCE: &str = "#include <stdlib.h>\n\
        struct thread { void *team; int id; }; __thread struct thread self;\n\
        int get_id(void) { return self.id; }\n\
        int checked(int n) { int value = 7; if (n) { value = 9; abort(); } return value; }\n\
        int count_down(int *n) { return __atomic_fetch_add(n, -1, __ATOMIC_SEQ_CST); }\n\
        int main(int n, char **v) { (void)v; return checked(n - 1) + get_id() + count_down(&n); }\n";
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("program.c");
    std::fs::write(&source, SOURCE).expect("the source is written");
    for flags in [["-static", "-O0"], ["-static", "-O2"], ["-static-pie", "-O2"]] {
        let program = dir.path().join(flags.concat());
        let gcc = Command::new("gcc").args(flags).arg(&source).arg("-o").arg(&program).output();
        if !gcc.is_ok_and(|out| out.status.success()) {
            eprintln!("skipped: gcc {flags:?} does not link here");
            continue;
        }
        let file = ElfFile::open(&program).expect("an ELF file");
        let variable = file.symbol("self").expect("a thread-local variable");
        let distance = file.thread_pointer_offset(&variable).expect("a program");
        let r = run(&file, "get_id");
        let found = chains(&r).into_iter().find(|c| matches!(c.root.kind(), Kind::ThreadPointer));
        assert_eq!(found.and_then(|c| c.offsets([4])), Some([distance + 8]), "{flags:?}: {:#?}", r.events());
        let r = run(&file, "checked");
        let values: Vec<Option<u64>> = r.returned().map(Expr::as_const).collect();
        assert_eq!(values, [Some(7)], "{flags:?}: {:#?}", r.events());
        let r = run(&file, "count_down");
        assert!(r.stores().any(|s| s.locked && s.increment() == Some(-1)), "{flags:?}: {:#?}", r.events());
    }
}
