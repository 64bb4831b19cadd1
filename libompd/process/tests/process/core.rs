//! Core files: the same truth as the live process, and no panic whatever is in them.

use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{self, Subject};
use nix::libc;
use ompd_process::{Addr, Core, Live, OpenError, OpenOptions, ReadFault, Registers, Target, TargetExt};

/// A core by `gcore` with what the live process looked like; `None` with the reason printed.
fn gcore(subject: &Subject, name: &str) -> Option<PathBuf> {
    if !support::have("gcore") && !support::have("gdb") {
        support::skip("gcore is not installed");
        return None;
    }
    let prefix = support::scratch().join(name);
    support::run(Command::new("gcore").arg("-o").arg(&prefix).arg(subject.pid().to_string()));
    Some(PathBuf::from(format!("{}.{}", prefix.display(), subject.pid())))
}

/// A core by the kernel, of a subject that aborts; `None` with the reason printed.
fn crash(subject_args: &[&str], name: &str, before: impl FnOnce(&mut Subject)) -> Option<(Subject, PathBuf)> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let pattern = pattern.trim();
    if pattern.starts_with('|') || pattern.contains(['/', '%']) || pattern.is_empty() {
        support::skip(&format!("core_pattern is {pattern:?}: the core does not land in the working directory"));
        return None;
    }
    let dir = support::scratch().join(name);
    std::fs::create_dir_all(&dir).expect("directory");
    let mut command = Command::new(support::subject());
    command.args(subject_args).current_dir(&dir);
    // SAFETY: setrlimit is async-signal-safe and touches nothing of the parent.
    unsafe {
        command.pre_exec(|| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::getrlimit(libc::RLIMIT_CORE, &mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_CORE, &limit);
            Ok(())
        });
    }
    let mut subject = Subject::spawn(&mut command);
    before(&mut subject);
    subject.send(b'a');
    let status = subject.child.wait().expect("wait");
    if !std::os::unix::process::ExitStatusExt::core_dumped(&status) {
        support::skip("the kernel wrote no core (hard limit 0?)");
        return None;
    }
    let core = std::fs::read_dir(&dir).expect("directory").find_map(|e| {
        let path = e.expect("entry").path();
        path.file_name()?.to_str()?.starts_with("core").then_some(path)
    });
    Some((subject, core.expect("a core in the working directory")))
}

/// What must be the same in a core of a process whose waiting threads never run again.
fn waiting(target: &dyn Target, subject: &Subject) -> Vec<(i32, Registers)> {
    let mut threads: Vec<_> = (target.threads().iter())
        .filter(|t| subject.waiters.iter().any(|w| w.tid == t.lwp))
        .map(|t| (t.lwp, t.registers.clone().expect("registers")))
        .collect();
    threads.sort_by_key(|(lwp, _)| *lwp);
    threads
}

/// A stopped look at the live process: waiting threads, and all bytes of all modules that can be read.
struct Look {
    threads: Vec<(i32, Registers)>,
    text: Vec<(Addr, Vec<u8>)>,
    modules: Vec<(String, u64, Option<ompd_process::BuildId>)>,
}

fn look(subject: &Subject) -> Look {
    let mut live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    live.stop().expect("stop");
    let text = (live.modules().iter())
        .filter(|m| !m.path.is_empty())
        .flat_map(|m| {
            let file = m.file.as_ref().expect("file");
            file.executable_ranges().into_iter().map(|r| (Addr(r.start.wrapping_add(m.bias)), r.end - r.start))
        })
        .map(|(addr, len)| (addr, live.read_vec(addr, len).expect("code")))
        .collect();
    let modules = live.modules().iter().map(|m| (m.path.clone(), m.bias, m.build_id.clone())).collect();
    Look { threads: waiting(&live, subject), text, modules }
}

fn compare(core: &Core, subject: &Subject, live: &Look) {
    assert_eq!(core.process().pid, Some(subject.pid()));
    assert_eq!(core.process().exe.as_deref(), support::subject().to_str());
    assert!(core.process().command.as_deref().is_some_and(|c| c.contains("subject")), "{:?}", core.process());
    assert_eq!(waiting(core, subject), live.threads);
    assert_eq!(live.threads.len(), subject.waiters.len());
    let modules: Vec<_> = core.modules().iter().map(|m| (m.path.clone(), m.bias, m.build_id.clone())).collect();
    assert_eq!(modules, live.modules);
    for (addr, bytes) in &live.text {
        assert_eq!(core.read_vec(*addr, bytes.len() as u64).as_ref(), Ok(bytes), "code at {addr}");
    }
    assert_eq!(core.read_vec(Addr(subject.known.0), subject.known.1).as_deref(), Ok(&subject.known_bytes()[..]));
    let text = "never written, so only the file has it in a core";
    assert_eq!(core.read_cstr(Addr(subject.constant), 200).as_deref(), Ok(text));
    for waiter in &subject.waiters {
        assert_eq!(core.read_u64(Addr(waiter.mark_at)), Ok(waiter.mark));
    }
    let exe = core.modules().iter().find(|m| m.name() == "subject").expect("executable");
    assert_eq!(exe.symbol("known").map(|s| s.addr), Some(Addr(subject.known.0)));
    assert_eq!(core.read_u64(Addr(8)).map_err(|e| e.why), Err(ReadFault::Unmapped));
    assert!(core.auxv(9).is_some_and(|entry| exe.contains(Addr(entry))), "AT_ENTRY");
}

#[test]
fn a_core_by_gcore_equals_the_process() {
    let mut subject = Subject::start(&["threads", "4"]);
    let live = look(&subject);
    // As in the crash below.
    assert_eq!(subject.ask(b'w'), 4);
    let Some(path) = gcore(&subject, "gcore") else { return };
    let core = Core::open(&path, &OpenOptions::default()).expect("open");
    compare(&core, &subject, &live);
    assert_eq!(core.threads().len(), 6);
    assert_eq!(core.process().signal, None);
    assert!(core.threads().iter().all(|t| t.signal == 0));
    assert_eq!(core.issues(), [""; 0]);
    subject.ask(b'p');
}

#[test]
fn a_core_of_a_crash_equals_the_process() {
    let mut live = None;
    let before = |subject: &mut Subject| {
        live = Some(look(subject));
        // A thread that was held is on its way back into its wait for a moment.
        assert_eq!(subject.ask(b'w'), 4);
    };
    let Some((subject, path)) = crash(&["threads", "4"], "crash", before) else { return };
    let core = Core::open(&path, &OpenOptions::default()).expect("open");
    compare(&core, &subject, &live.expect("look"));
    assert_eq!(core.process().signal, Some(libc::SIGABRT));
    let first = &core.threads()[0];
    assert_eq!((first.lwp, first.signal, first.name.as_deref()), (subject.pid(), libc::SIGABRT, Some("subject")));
    assert!(core.threads()[1..].iter().all(|t| t.signal == 0));
    assert_eq!(core.issues(), [""; 0]);
}

/// The kernel may be told to leave out what the process has written. The files do not have that.
#[test]
fn what_a_process_has_written_is_not_taken_from_its_files() {
    let headers_only = |subject: &mut Subject| {
        std::fs::write(format!("/proc/{}/coredump_filter", subject.pid()), "0x10").expect("its filter");
    };
    let Some((subject, path)) = crash(&["threads", "1"], "filtered", headers_only) else { return };
    let core = Core::open(&path, &OpenOptions::default()).expect("open");
    let text = core.read_cstr(Addr(subject.constant), 100);
    assert!(text.is_ok_and(|text| text.starts_with("never")));
    let exe = core.modules().iter().find(|m| m.name() == "subject").expect("executable");
    // The dynamic linker has written its own address there.
    let handle = exe.symbol("__dso_handle").expect("a variable of every program").addr;
    for addr in [handle, Addr(subject.known.0)] {
        assert_eq!(core.read_u64(addr).map_err(|e| e.why), Err(ReadFault::NotInCore), "{addr}");
    }
}

#[test]
fn without_its_files_a_core_says_what_is_missing_and_invents_nothing() {
    let program = support::scratch().join("moving");
    support::copy_program(support::subject(), &program);
    let subject = Subject::spawn(Command::new(&program).args(["threads", "1"]));
    let Some(path) = gcore(&subject, "moved") else { return };
    let elsewhere = support::scratch().join("elsewhere");
    std::fs::rename(&program, &elsewhere).expect("rename");

    let core = Core::open(&path, &OpenOptions::default()).expect("open");
    assert_eq!(core.read_cstr(Addr(subject.constant), 100).map_err(|e| e.why), Err(ReadFault::NotInCore));
    assert_eq!(core.read_vec(Addr(subject.known.0), 64).as_deref(), Ok(&subject.known_bytes()[..64]));
    assert!(core.issues().iter().any(|i| i.contains("--exe PATH")), "{:?}", core.issues());
    let exe = |core: &Core| core.modules().iter().find(|m| m.name() == "moving").cloned().expect("executable");
    assert!(exe(&core).file.is_err() && exe(&core).build_id.is_some());

    let options = OpenOptions { exe: Some(elsewhere.clone()), ..OpenOptions::default() };
    let core = Core::open(&path, &options).expect("open");
    assert!(core.read_cstr(Addr(subject.constant), 100).is_ok_and(|s| s.starts_with("never")));
    assert_eq!(exe(&core).symbol("known").map(|s| s.addr), Some(Addr(subject.known.0)));

    let root = tempfile::tempdir().expect("directory");
    std::fs::copy(&elsewhere, root.path().join("moving")).expect("copy");
    let options = OpenOptions { lib_root: Some(root.path().to_owned()), ..OpenOptions::default() };
    let core = Core::open(&path, &options).expect("open");
    assert!(core.read_cstr(Addr(subject.constant), 100).is_ok_and(|s| s.starts_with("never")));

    // Another build under the right name: refused, both ids named, and none of its bytes shown.
    let flags = ["-pie", "-fPIE", "-O0", "-Wl,--build-id=0xfeedfacefeedfacefeedfacefeedfacefeedface"];
    let other = support::compile("subject.c", "moving", &flags);
    let options = OpenOptions { exe: Some(other), ..OpenOptions::default() };
    let core = Core::open(&path, &options).expect("open");
    let why = exe(&core).file.expect_err("refused").join("\n");
    let id = exe(&core).build_id.expect("build-id").to_string();
    assert!(why.contains("feedfacefeedfacefeedfacefeedfacefeedface") && why.contains(&id), "{why}");
    assert_eq!(core.read_cstr(Addr(subject.constant), 100).map_err(|e| e.why), Err(ReadFault::NotInCore));
}

/// As when a program is built anew, or another process dumps its core, under the eyes of who looks at it.
#[test]
fn files_cut_off_while_they_are_read_do_no_harm() {
    let program = support::scratch().join("rebuilt");
    support::copy_program(support::subject(), &program);
    let subject = Subject::spawn(Command::new(&program).args(["threads", "1"]));
    let Some(path) = gcore(&subject, "cut") else { return };
    let subject_known = subject.known.0;
    // A program that runs cannot be written to.
    drop(subject);
    let core = Core::open(&path, &OpenOptions::default()).expect("open");
    let exe = core.modules().iter().find(|m| m.name() == "rebuilt").cloned().expect("executable");
    let cut = |path: &Path| std::fs::File::options().write(true).open(path).and_then(|file| file.set_len(0));
    cut(&path).expect("the core is cut off");
    cut(&program).expect("the program is cut off");
    let pieces: Vec<_> = core.modules().iter().flat_map(|module| module.ranges.clone()).collect();
    let lost = pieces.iter().filter(|range| core.read(Addr(range.end - 8), &mut [0; 8]).is_err()).count();
    assert!(lost > 0, "{pieces:x?}");
    // What was read before is still known, and all else is not.
    let right = [None, Some(Addr(subject_known))];
    assert!(right.contains(&exe.symbol("known").map(|symbol| symbol.addr)));
    let file = exe.file.expect("its file");
    for range in file.executable_ranges() {
        let code = file.bytes_at(range.start, range.end - range.start);
        assert!(code.is_none_or(|code| code.iter().any(|byte| *byte != 0)), "zeros for what was cut off");
    }
    for name in [".debug_info", ".debug_str", ".eh_frame"] {
        assert!(file.section(name).is_none_or(|bytes| bytes.iter().any(|byte| *byte != 0)), "{name}: zeros");
    }
}

#[test]
fn what_is_not_a_core_is_named() {
    let dir = support::scratch();
    let found = |path: &Path| match Core::open(path, &OpenOptions::default()) {
        Err(OpenError::NotCore { found, .. }) => found,
        other => panic!("{other:?}"),
    };
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).expect("write");
        path
    };
    assert!(found(support::subject()).contains("this is an executable"));
    assert!(found(&write("note.txt", b"dear core,\n")).contains("text file"));
    assert!(found(&write("nothing", b"")).contains("empty"));
    assert!(found(&write("core.zst", &[0x28, 0xb5, 0x2f, 0xfd, 0, 1])).contains("zstd"));
    assert!(found(&write("binary", &[0, 1, 2, 3])).contains("neither"));
    assert!(found(dir).contains("not a regular file"));
    assert!(matches!(Core::open(&dir.join("no such"), &OpenOptions::default()), Err(OpenError::Io { .. })));
    let short = write("short", b"\x7fELF\x02\x01\x01");
    assert!(matches!(Core::open(&short, &OpenOptions::default()), Err(OpenError::Truncated { .. })));
}

/// A small core to damage: written once, for both tests below.
fn victim() -> Option<&'static (Vec<u8>, Addr)> {
    static VICTIM: OnceLock<Option<(Vec<u8>, Addr)>> = OnceLock::new();
    VICTIM
        .get_or_init(|| {
            // By the kernel where possible: gcore puts the notes at the end, where any truncation takes them.
            let (subject, path) = crash(&["threads", "2"], "victim", |_| ())?;
            let core = Core::open(&path, &OpenOptions::default()).expect("whole core");
            assert!(core.read_vec(Addr(subject.known.0), 4096).is_ok());
            Some((std::fs::read(&path).expect("read"), Addr(subject.known.0)))
        })
        .as_ref()
}

/// Asks a core everything; answers do not matter here.
fn exercise(core: &Core, known: Addr) {
    for addr in [known, Addr(0), Addr(u64::MAX - 7), known.back(4096)] {
        let _ = (core.read_vec(addr, 5000), core.read_u64(addr), core.read_cstr(addr, 100), core.read_ptr(addr));
    }
    for module in core.modules() {
        let _ = (module.base(), core.read_u64(module.base()), core.module_at(module.base()).is_some());
    }
    for thread in core.threads() {
        if let Ok(registers) = &thread.registers {
            let _ = (core.read_u64(registers.sp), core.read_u64(registers.pc));
        }
    }
}

#[test]
fn a_truncated_core_opens_as_far_as_it_goes() {
    let Some((whole, known)) = victim() else { return };
    let path = support::scratch().join("truncated");
    std::fs::write(&path, whole).expect("write");
    let file = std::fs::File::options().write(true).open(&path).expect("open");
    let (mut opened, mut refused) = (0, 0);
    // From the end downwards: in steps through the memory, byte by byte through the headers.
    let steps = (0..whole.len()).rev().filter(|len| len % 4099 == 0 || (*len < 12_000 && len % 13 == 0) || *len < 200);
    for len in steps {
        file.set_len(len as u64).expect("truncate");
        match Core::open(&path, &OpenOptions::default()) {
            Ok(core) => {
                opened += 1;
                exercise(&core, *known);
                // Beyond the last segment only section names follow.
                let told = core.issues().iter().any(|i| i.contains("bytes are missing"));
                assert!(told || len > whole.len() - 4096, "length {len}: {:?}", core.issues());
            }
            Err(OpenError::Truncated { missing, .. }) => {
                assert!(missing > 0);
                refused += 1;
            }
            Err(OpenError::MalformedCore { .. } | OpenError::NotCore { .. }) => refused += 1,
            Err(e) => panic!("length {len}: {e}"),
        }
    }
    assert!(opened > 10 && refused > 100, "{opened} opened, {refused} refused");
}

#[test]
fn a_damaged_core_does_no_harm() {
    let Some((whole, known)) = victim() else { return };
    let path = support::scratch().join("damaged");
    std::fs::write(&path, whole).expect("write");
    let file = std::fs::File::options().write(true).open(&path).expect("open");
    // Program headers come first, the notes where the first of them says.
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (notes, notes_len) = (number(64 + 8), number(64 + 32));
    let count = usize::from(u16::from_le_bytes([whole[56], whole[57]]));
    let mut random = test_programs::Random::new(0x2545_f491_4f6c_dd1d);
    let mut next = |below: usize| random.below(below);
    let mut opened = 0;
    for round in 0..3000 {
        let mut places = Vec::new();
        for _ in 0..1 + round % 3 {
            let at = if next(2) == 0 { next(64 + 56 * count) } else { notes + next(notes_len) };
            let byte = [0xff, 0, 0x80, next(256) as u8][next(4)];
            file.write_all_at(&[byte], at as u64).expect("damage");
            places.push(at);
        }
        if let Ok(core) = Core::open(&path, &OpenOptions::default()) {
            opened += 1;
            exercise(&core, *known);
        }
        for at in places {
            file.write_all_at(&whole[at..=at], at as u64).expect("repair");
        }
    }
    assert!(opened > 1000, "the damage must leave cores that open: {opened}");
}
