//! A process that somebody else holds, and that tells no more than OMPD's callbacks can.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::support::{self, Subject};
use ompd_process::{
    Addr, Arch, Debugged, Debugger, Live, NativeThread, OpenOptions, ReadFault, Registers, Target, TargetExt,
};

/// Holds a process and answers as a debugger does.
struct Holder {
    live: Live,
    /// Symbols it does not know.
    hidden: &'static [&'static str],
    offers_registers: bool,
    /// Every read, by address and length.
    reads: RefCell<BTreeMap<(u64, usize), usize>>,
}

impl Holder {
    fn of(pid: i32, hidden: &'static [&'static str]) -> Holder {
        let mut live = Live::open(pid, &OpenOptions::default()).expect("open");
        live.stop().expect("stop");
        Holder { live, hidden, offers_registers: true, reads: RefCell::default() }
    }
}

impl Debugger for Holder {
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        *self.reads.borrow_mut().entry((addr.0, buf.len())).or_default() += 1;
        self.live.read(addr, buf).map_err(|e| e.why)
    }

    fn symbol(&self, name: &str) -> Option<Addr> {
        let known = !self.hidden.contains(&name);
        known.then(|| self.live.modules().iter().find_map(|m| m.symbol(name)))?.map(|symbol| symbol.addr)
    }

    fn offers_registers(&self) -> bool {
        self.offers_registers
    }

    fn registers(&self, _: NativeThread, _: Arch) -> Result<Registers, String> {
        Err("not offered".to_owned())
    }
}

fn debugged(holder: Holder, anchors: &[&str]) -> Debugged<Holder> {
    let mut debugged = Debugged::open(holder, 8, anchors, &OpenOptions::default()).expect("open through a debugger");
    assert!(debugged.threads().is_empty() && debugged.natives().is_empty(), "nobody has asked for threads");
    debugged.look_threads();
    debugged
}

/// `setenv` and `unsetenv` write over the pointers that the kernel has put on the stack.
#[test]
fn the_environment_on_the_stack_is_the_one_before_the_program_changed_it() {
    let mut command = std::process::Command::new(support::subject());
    command.args(["threads", "1"]).env_clear();
    let variables = [("AFIRST", "1"), ("CHANGED", "first"), ("MIDDLE", ""), ("REMOVED", "2"), ("ZLAST", "a=b c")];
    let subject = Subject::spawn(command.envs(variables));
    let debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
    let environment = &debugged.process().environment;
    for (name, value) in variables {
        assert_eq!(environment.get(name), Ok(Some(value)), "{name}");
    }
    assert_eq!(environment.variables().len(), variables.len());
    assert_eq!(*environment, debugged.debugger().live.process().environment);
}

#[test]
fn modules_threads_and_environment_are_those_of_the_process() {
    let mut subject = Subject::start(&["threads", "5"]);
    subject.ask(b'p');
    let debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
    let live = &debugged.debugger().live;

    // The kernel's path has no symbolic links in it, the dynamic linker's may.
    let modules = |target: &dyn Target| -> Vec<_> {
        target.modules().iter().map(|m| (m.base(), m.bias, m.name().to_owned(), m.build_id.clone())).collect()
    };
    assert_eq!(modules(&debugged), modules(live));
    assert!(debugged.modules().iter().all(|m| m.file.is_ok()), "{:?}", debugged.issues());
    assert!(debugged.issues().is_empty(), "{:?}", debugged.issues());

    let threads =
        |target: &dyn Target| -> Vec<_> { target.threads().iter().map(|t| (t.lwp, t.thread_pointer())).collect() };
    assert_eq!(threads(live).len(), 7);
    assert_eq!(threads(&debugged), threads(live));
    assert!(debugged.thread_issues().is_empty());
    assert!(debugged.threads().iter().all(|t| t.registers.as_ref().is_err_and(|why| why == "not offered")));

    assert_eq!(debugged.process().environment, live.process().environment);
    assert_eq!(debugged.process().environment.get("PATH"), Ok(std::env::var("PATH").ok().as_deref()));
    for waiter in &subject.waiters {
        assert_eq!(debugged.read_u64(Addr(waiter.mark_at)), Ok(waiter.mark));
    }
    let twice: Vec<_> = debugged.debugger().reads.borrow().iter().filter(|(_, n)| **n > 1).map(|(r, _)| *r).collect();
    assert!(twice.is_empty(), "read more than once: {twice:x?}");
}

#[test]
fn what_was_read_is_forgotten_when_the_process_may_have_run() {
    let mut subject = Subject::start(&["threads", "2"]);
    subject.ask(b'p');
    let mut debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
    let before = debugged.modules().len();
    assert_eq!(debugged.read_vec(Addr(subject.known.0), 8).map(|b| b.len()), Ok(8));
    let reads = |d: &Debugged<Holder>| d.debugger().reads.borrow()[&(subject.known.0, 8)];
    assert_eq!(debugged.read_vec(Addr(subject.known.0), 8).map(|b| b.len()), Ok(8));
    assert_eq!(reads(&debugged), 1);
    assert!(!debugged.refresh(), "no module has come or gone");
    assert_eq!(debugged.modules().len(), before);
    assert_eq!(debugged.read_vec(Addr(subject.known.0), 8).map(|b| b.len()), Ok(8));
    assert_eq!(reads(&debugged), 2);
}

#[test]
fn a_file_that_is_gone_is_put_together_from_memory() {
    let path = support::scratch().join("soon-gone");
    support::copy_program(support::subject(), &path);
    let mut subject = Subject::spawn(std::process::Command::new(&path).args(["threads", "1"]));
    subject.ask(b'p');
    std::fs::remove_file(&path).expect("unlink");
    let debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
    let module = debugged.modules().iter().find(|m| m.contains(Addr(subject.main))).expect("module of the program");
    let rebuilt = module.file.as_ref().expect("put together");
    let whole = ompd_process::ElfFile::open(support::subject()).expect("the same file elsewhere");
    assert_eq!(rebuilt.build_id(), whole.build_id());
    assert_eq!(rebuilt.needed(), whole.needed());
    assert!(!whole.exported_names().collect::<Vec<_>>().is_empty() || whole.needed().len() == 1);
    assert_eq!(rebuilt.exported_names().collect::<Vec<_>>(), whole.exported_names().collect::<Vec<_>>());
    let kinds = |file: &ompd_process::ElfFile| -> Vec<_> {
        file.relocations().iter().map(|(at, r)| (*at, r.kind, r.symbol.clone())).collect()
    };
    assert!(!kinds(&whole).is_empty());
    assert_eq!(kinds(rebuilt), kinds(&whole));
    for range in whole.executable_ranges() {
        let code =
            |file: &ompd_process::ElfFile| file.bytes_at(range.start, range.end - range.start).map(<[u8]>::to_vec);
        assert_eq!(code(rebuilt), code(&whole));
    }
    // Without the symbol table it is call frame information that tells where a function is.
    let main = Addr(subject.main).back(module.bias).0;
    let extent = rebuilt.function_range(main).expect("a frame description");
    assert_eq!(extent.start, main);
}

#[test]
fn packed_relocations_of_a_file_that_is_gone_are_told_where_they_are_as_they_were() {
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/packed.c");
    let flags = [packed, "-pie", "-fPIE", "-Wl,--build-id,-z,pack-relative-relocs,-z,relro,-z,now"];
    let help = std::process::Command::new("ld").arg("--help").output();
    if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("pack-relative-relocs")) {
        return support::skip("this linker does not pack relocations");
    }
    let path = support::compile("subject.c", "packed", &flags);
    let kept = path.with_file_name("packed-kept");
    support::copy_program(&path, &kept);
    let mut subject = Subject::spawn(std::process::Command::new(&path).args(["threads", "1"]));
    subject.ask(b'p');
    std::fs::remove_file(&path).expect("unlink");
    let debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
    let module = debugged.modules().iter().find(|m| m.contains(Addr(subject.main))).expect("module of the program");
    let rebuilt = module.file.as_ref().expect("put together");
    let whole = ompd_process::ElfFile::open(&kept).expect("the same file elsewhere");
    let reloc = |file: &ompd_process::ElfFile, at: u64| file.relocations().get(&at).map(|r| (r.kind, r.addend));
    let (fixed, table) = (whole.symbol("fixed").expect("fixed").addr.0, whole.symbol("table").expect("table").addr.0);
    for n in 0..200 {
        let truth = reloc(&whole, fixed + 8 * n).expect("every element is relocated");
        assert_eq!(reloc(rebuilt, fixed + 8 * n), Some(truth), "element {n}");
        // What the program may have written to since is not taken for what the file had.
        assert!(reloc(&whole, table + 8 * n).is_some());
        assert_eq!(reloc(rebuilt, table + 8 * n), None, "element {n}");
    }
    let told = rebuilt.relocations();
    assert!(told.keys().all(|at| reloc(rebuilt, *at) == reloc(&whole, *at)));
}

#[test]
fn without_the_list_of_modules_images_are_found_by_what_they_define() {
    let mut subject = Subject::start(&["threads", "3"]);
    subject.ask(b'p');
    let debugged = debugged(Holder::of(subject.pid(), &["_r_debug"]), &["main", "no such function"]);
    let live = &debugged.debugger().live;
    let bases: Vec<Addr> = debugged.modules().iter().map(|m| m.base()).collect();
    let expected: Vec<Addr> = live
        .modules()
        .iter()
        .filter(|m| {
            // The kernel tells of the vdso.
            m.exports("_rtld_global")
                || m.exports("_thread_db_sizeof_pthread")
                || m.path.is_empty()
                || m.contains(Addr(subject.main))
        })
        .map(|m| m.base())
        .collect();
    assert_eq!(bases, expected);
    assert_eq!(debugged.threads().len(), live.threads().len());
}

#[test]
fn the_vdso_is_read_only_where_stacks_are_followed() {
    let mut subject = Subject::start(&["threads", "1"]);
    subject.ask(b'p');
    for (hidden, offers_registers) in [(&[][..], true), (&[], false), (&["_r_debug"], true), (&["_r_debug"], false)] {
        let debugged = debugged(Holder { offers_registers, ..Holder::of(subject.pid(), hidden) }, &["main"]);
        let holder = debugged.debugger();
        let vdso = holder.live.modules().iter().find(|module| module.path.is_empty()).expect("the kernel maps one");
        let is_listed = debugged.modules().iter().any(|module| module.base() == vdso.base());
        // Its name in the list of modules is in it.
        let is_read = holder.reads.borrow().keys().any(|(addr, len)| vdso.contains(Addr(*addr)) && *len >= 1024);
        assert_eq!((is_listed, is_read), (offers_registers, offers_registers), "without {hidden:?}");
    }
}

#[test]
fn a_debugger_that_knows_nothing_is_told_so() {
    let mut subject = Subject::start(&["threads", "1"]);
    subject.ask(b'p');
    let hidden = &["_r_debug", "__libc_stack_end", "__ehdr_start", "__executable_start", "main"];
    let holder = Holder::of(subject.pid(), hidden);
    let error =
        Debugged::open(holder, 8, &["main"], &OpenOptions::default()).map(|_| ()).expect_err("nothing is known");
    assert!(error.to_string().contains("no program was found"), "{error}");
    let narrow = Debugged::open(Holder::of(subject.pid(), &[]), 4, &[], &OpenOptions::default());
    let error = narrow.map(|_| ()).expect_err("pointers have 8 bytes");
    assert!(error.to_string().contains("pointers have 4 bytes, and the program has 8"), "{error}");
}

/// A subject without a dynamic linker; `None`, with the reason shown, where the static C library is missing.
fn linked_statically(way: &str) -> Option<std::path::PathBuf> {
    let name = format!("subject{way}");
    let probe = std::process::Command::new("cc").args(["-print-file-name=libc.a"]).output().expect("cc runs");
    if !std::path::Path::new(String::from_utf8_lossy(&probe.stdout).trim()).is_absolute() {
        support::skip("no static C library");
        return None;
    }
    Some(support::compile("subject.c", &name, &[way, "-Wl,--build-id"]))
}

/// The modules by base, path and kind of file.
fn modules(target: &dyn Target) -> Vec<(Addr, String, Option<bool>)> {
    let names = |m: &ompd_process::Module| m.file.as_ref().ok().map(|file| file.has_names());
    target.modules().iter().map(|m| (m.base(), m.path.clone(), names(m))).collect()
}

#[test]
fn a_static_program_is_found_by_whatever_tells_of_its_headers() {
    for way in ["-static", "-static-pie"] {
        let Some(path) = linked_statically(way) else { return };
        let mut subject = Subject::spawn(std::process::Command::new(&path).args(["threads", "4"]));
        subject.ask(b'p');
        // The kernel's word, the C library's, the linker's, and the place of a function.
        for hidden in [
            [].as_slice(),
            &["_r_debug"],
            &["_r_debug", "__ehdr_start", "__executable_start"],
            &["_r_debug", "__libc_stack_end"],
            &["_r_debug", "__libc_stack_end", "_dl_phdr"],
            &["_r_debug", "__libc_stack_end", "_dl_phdr", "__ehdr_start", "__executable_start"],
        ] {
            let what = format!("{way} without {hidden:?}");
            let debugged = debugged(Holder::of(subject.pid(), hidden), &["main"]);
            let live = &debugged.debugger().live;
            let (ours, theirs) = (modules(&debugged), modules(live));
            if hidden.contains(&"__libc_stack_end") {
                // Nobody says under which name it was started: what is loaded of it is put together, and names nothing.
                assert_eq!(ours.len(), 1, "{what}: {ours:?}");
                let program = theirs.iter().find(|(base, ..)| *base == ours[0].0).expect("the program's header");
                assert_eq!((program.1.as_str(), ours[0].2), (path.to_str().expect("a plain path"), Some(false)));
                assert!(debugged.process().exe.is_none());
                let issue = "the program: its file, which has its symbols, is not at hand (its path is not known)";
                assert_eq!(debugged.issues(), [issue], "{what}");
            } else {
                assert_eq!(ours, theirs, "{what}");
                assert!(debugged.issues().is_empty(), "{what}: {:?}", debugged.issues());
                assert_eq!(debugged.process().exe.as_deref(), path.to_str());
                assert_eq!(debugged.process().environment, live.process().environment);
                assert_eq!(debugged.process().environment.get("PATH"), Ok(std::env::var("PATH").ok().as_deref()));
            }
            let threads = |target: &dyn Target| -> Vec<_> {
                target.threads().iter().map(|t| (t.lwp, t.thread_pointer())).collect()
            };
            assert_eq!(threads(&debugged), threads(live), "{what}");
            assert_eq!(threads(live).len(), 6);
            assert!(debugged.thread_issues().is_empty(), "{what}: {:?}", debugged.thread_issues());
            assert_eq!(debugged.has_no_new_modules(), !hidden.contains(&"_r_debug"), "{what}");
        }
        // Without what describes the list of threads none is known, and it is said what is missing.
        let holder = Holder::of(subject.pid(), &["_thread_db_pthread_list"]);
        let debugged = debugged(holder, &["main"]);
        assert!(debugged.threads().is_empty());
        let why = debugged.thread_issues().join("; ");
        assert!(why.contains("does not know _thread_db_pthread_list"), "{why}");
    }
}

#[test]
fn a_program_started_by_a_relative_name_is_found_where_the_shell_was() {
    let directory = support::scratch().join("relative");
    std::fs::create_dir_all(&directory).expect("a directory");
    support::copy_program(support::subject(), &directory.join("program"));
    let start = |script: &str| {
        let mut command = std::process::Command::new("sh");
        let mut subject = Subject::spawn(command.args(["-c", script]).current_dir(&directory));
        subject.ask(b'p');
        subject
    };
    let program = |subject: &Subject| {
        let debugged = debugged(Holder::of(subject.pid(), &[]), &[]);
        let module = debugged.modules().iter().find(|m| m.contains(Addr(subject.main))).expect("module of the program");
        let names = module.file.as_ref().map(|file| file.has_names());
        (module.path.clone(), names.ok(), debugged.process().exe.clone())
    };
    let path = directory.join("program").to_str().expect("a plain path").to_owned();
    let started = start("export PWD; exec ./program threads 1");
    assert_eq!(program(&started), (path.clone(), Some(true), Some(path.clone())));
    // Where the variable says something else, what is there is another file, or none.
    let other = directory.join("other");
    std::fs::create_dir_all(&other).expect("a directory");
    std::fs::copy("/bin/true", other.join("program")).expect("another program");
    let misled = start(&format!("PWD={} exec ./program threads 1", other.display()));
    let (path, names, _) = program(&misled);
    assert_eq!((path, names), (other.join("program").to_str().expect("a plain path").to_owned(), Some(false)));
}

/// A debugger of a machine that is not here: memory and symbols, and nothing else.
struct Recorded {
    memory: BTreeMap<u64, Vec<u8>>,
    symbols: BTreeMap<&'static str, u64>,
}

impl Recorded {
    fn put(&mut self, at: u64, words: &[u64]) {
        self.memory.insert(at, words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }

    /// A field as glibc describes it to debuggers: its size in bits, how many there are, its offset.
    fn field(&mut self, name: &'static str, at: u64, offset: u32) {
        self.symbols.insert(name, at);
        self.memory.insert(at, [64, 1, offset].iter().flat_map(|word: &u32| word.to_le_bytes()).collect());
    }
}

impl Debugger for Recorded {
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        let (start, bytes) = self.memory.range(..=addr.0).next_back().ok_or(ReadFault::Unmapped)?;
        let from = (addr.0 - start) as usize;
        buf.copy_from_slice(bytes.get(from..from + buf.len()).ok_or(ReadFault::Unmapped)?);
        Ok(())
    }

    fn symbol(&self, name: &str) -> Option<Addr> {
        self.symbols.get(name).copied().map(Addr)
    }

    fn offers_registers(&self) -> bool {
        false
    }

    fn registers(&self, _: NativeThread, _: Arch) -> Result<Registers, String> {
        Err("not offered".to_owned())
    }
}

/// On aarch64 a descriptor ends where the thread pointer points to.
#[test]
fn thread_pointers_of_aarch64_lie_behind_the_descriptors() {
    // As in glibc 2.36 for aarch64.
    const SIZE: u64 = 1776;
    const HEADER: u64 = 0x40_0000;
    const DESCRIPTORS: [(u64, u64); 3] = [(0x7f00_0000, 70), (0x7f10_0000, 71), (0x7f20_0000, 72)];
    const HEADS: [u64; 2] = [0x50_0000, 0x50_0100];
    const LINKS: u64 = 192;
    for stated in [true, false] {
        let mut process = Recorded { memory: BTreeMap::new(), symbols: BTreeMap::new() };
        // Elf64_Ehdr and one Elf64_Phdr: ET_EXEC, EM_AARCH64, all of it loaded.
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.resize(16, 0);
        header.extend([2, 0, 183, 0, 1, 0, 0, 0]);
        [HEADER + 0x100, 64, 0].iter().for_each(|word: &u64| header.extend(word.to_le_bytes()));
        header.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
        header.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        [0, HEADER, HEADER, 0x1000, 0x1000, 0x1000].iter().for_each(|word: &u64| header.extend(word.to_le_bytes()));
        header.resize(0x1000, 0);
        process.memory.insert(HEADER, header);
        process.symbols.insert("__ehdr_start", HEADER);
        process.symbols.insert("_dl_stack_user", HEADS[0]);
        process.symbols.insert("_dl_stack_used", HEADS[1]);
        process.field("_thread_db_pthread_list", 0x51_0000, LINKS as u32);
        process.field("_thread_db_pthread_tid", 0x51_0010, 208);
        process.field("_thread_db_list_t_next", 0x51_0020, 0);
        process.put(0x51_0030, &[SIZE]);
        if stated {
            process.symbols.insert("_thread_db_sizeof_pthread", 0x51_0030);
        }
        // One with a stack of its own, two with stacks that glibc has made: next, previous; then the kernel thread id.
        for (at, lwp) in DESCRIPTORS {
            let next = match lwp {
                70 => HEADS[0],
                71 => DESCRIPTORS[2].0 + LINKS,
                _ => HEADS[1],
            };
            process.put(at + LINKS, &[next, 0, lwp, 0]);
        }
        process.put(HEADS[0], &[DESCRIPTORS[0].0 + LINKS, DESCRIPTORS[0].0 + LINKS]);
        process.put(HEADS[1], &[DESCRIPTORS[1].0 + LINKS, DESCRIPTORS[2].0 + LINKS]);
        let mut debugged = Debugged::open(process, 8, &[], &OpenOptions::default()).expect("open through a debugger");
        debugged.look_threads();
        assert_eq!(debugged.arch().machine, ompd_process::Machine::AARCH64);
        let natives: Vec<(u64, u64)> = debugged.natives().iter().map(|n| (n.pthread.0, n.lwp as u64)).collect();
        assert_eq!(natives, DESCRIPTORS);
        let pointers: Vec<Option<Addr>> = debugged.threads().iter().map(|thread| thread.thread_pointer()).collect();
        let expected = DESCRIPTORS.map(|(at, _)| stated.then_some(Addr(at + SIZE)));
        assert_eq!(pointers, expected, "what is not stated is not guessed");
        assert_eq!(debugged.pthread_distance(), stated.then_some(SIZE));
    }
}
