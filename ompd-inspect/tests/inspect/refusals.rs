//! What cannot be inspected, or only in part: exit status, cause and remedy, and never a panic.

use crate::common;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use crate::common::{bounded, command, texts};
use nix::sys::ptrace;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use ompd_process::ElfFile;
use serde_json::{Value, json};
use test_programs::{
    Env, Executable, Launch, Opt, Running, Runtime, Skip, Toolchain, build, crash_core, native_combinations,
    thread_states,
};

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// What a refusal looks like, whoever runs the command: a cause and a remedy that hold all of `words`, and nothing else.
fn check_refusal(command: &mut Command, words: &[&str]) {
    let what = format!("{command:?}");
    let (out, err, status) = texts(&bounded(command));
    assert_eq!(status, 2, "{what}: {err}");
    assert_eq!(out, "", "{what}");
    assert!(err.starts_with("ompd-inspect: "), "{what}: {err}");
    for word in words.iter().chain(&["\n  remedy: "]) {
        assert!(err.contains(word), "{what}: no {word:?} in {err}");
    }
    assert!(!err.contains("panicked"), "{what}: {err}");
}

/// The summary, a view and the JSON report of this target are all refused.
fn refused(target: &str, words: &[&str]) {
    check_refusal(command().arg(target), words);
    check_refusal(command().args(["threads", target]), words);
    check_refusal(command().args(["--json", target]), words);
}

/// The text and the JSON report of an inspection that is not complete.
fn partial(args: &[&str]) -> (String, Value) {
    let (out, err, status) = texts(&bounded(command().args(args)));
    assert_eq!(status, 1, "{args:?}: {err}");
    assert_eq!(err, "", "{args:?}");
    let (json, err, status) = texts(&bounded(command().arg("--json").args(args)));
    assert_eq!(status, 1, "{args:?}: {err}");
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["complete"], false, "{args:?}");
    (out, report)
}

/// All issues of a report in one text.
fn issues(report: &Value) -> String {
    let issues = report["issues"].as_array().expect("issues");
    issues.iter().filter_map(|issue| issue["text"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_process_that_is_not_there() {
    let mut child = command().arg("--version").stdout(Stdio::null()).spawn().expect("a child");
    child.wait().expect("its end");
    let gone = child.id().to_string();
    refused(&gone, &[&format!("there is no process {gone}"), "pgrep"]);
    refused("0", &["there is no process 0"]);
}

#[test]
fn a_zombie() {
    let mut child = command().arg("--version").stdout(Stdio::null()).spawn().expect("a child");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    // Waits for the end without collecting it.
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).expect("the end of the child");
    refused(&pid.to_string(), &[&format!("process {pid} has ended (zombie)")]);
    child.wait().expect("its end");
}

#[test]
fn a_process_of_another_user() {
    // The owner of this process: root in containers, where users who inspect and are inspected differ most.
    let us = fs::metadata("/proc/self").expect("procfs").uid();
    if us != 0 {
        Skip::because(format!("only root can run a command as another user, this test runs as uid {us}")).show();
        return;
    }
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("a directory for all");
    let copy = directory.path().join("ompd-inspect");
    fs::copy(env!("CARGO_BIN_EXE_ompd-inspect"), &copy).expect("a copy of the command");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("a command for all");

    let executable = build("not_openmp", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    for json in [&[][..], &["--json"]] {
        let mut command = Command::new(&copy);
        command.args(json).arg(running.pid.to_string()).uid(NOBODY).gid(NOBODY).current_dir("/");
        let cause =
            format!("access to process {} was denied: it runs as uid 0, this program as uid 65534", running.pid);
        check_refusal(&mut command, &[&cause, "remedy: run this program as uid 0"]);
    }
    running.release().expect("the program goes on");
}

#[test]
fn a_process_with_another_tracer() {
    let executable = build("progress", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let mut running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let before = running.counts().expect("counts");
    let target = Pid::from_raw(running.pid);
    let (ready, seized) = channel();
    let (release, released) = channel::<()>();
    // The kernel ties a tracee to a thread, and lets it go with it.
    let tracer = std::thread::Builder::new().name("a debugger".into()).spawn(move || {
        ready.send(ptrace::seize(target, ptrace::Options::empty())).expect("a listener");
        let _ = released.recv();
    });
    let tracer = tracer.expect("a thread");
    seized.recv().expect("a tracer").expect("the program has no other tracer");
    let pid = running.pid.to_string();
    let (own, name) = (std::process::id(), fs::read_to_string("/proc/self/comm").expect("our name"));
    let cause = format!("process {pid} is already traced by process {own} ({})", name.trim_end());
    refused(&pid, &[&cause, &format!("remedy: let {}", name.trim_end())]);
    // The other threads, which nobody traced before, were let go.
    for (lwp, thread) in thread_states(running.pid).expect("threads") {
        assert!(!matches!(thread.state, 't' | 'T'), "thread {lwp} is {thread:?}");
    }
    let before = running.await_progress(&before).expect("counts go on");
    drop(release);
    tracer.join().expect("the tracer");
    assert_eq!(common::run(&[&pid]).status.code(), Some(0));
    running.await_progress(&before).expect("counts go on");
    running.release().expect("the program goes on");
}

/// gdb, attached to a process until it gets the end of its input.
struct Gdb(Child);

impl Gdb {
    fn attach(pid: i32) -> Gdb {
        let mut gdb = Command::new("gdb");
        gdb.args(["-q", "-nx", "-p", &pid.to_string(), "-ex", "echo attached\\n"]);
        gdb.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut gdb = Gdb(gdb.spawn().expect("gdb can be started"));
        let out = gdb.0.stdout.as_mut().expect("its output");
        let attached = BufReader::new(out).lines().any(|line| line.expect("a line").ends_with("attached"));
        assert!(attached, "gdb ended");
        gdb
    }

    /// Ends it. The process continues.
    fn end(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("gdb ends at the end of its input");
    }
}

impl Drop for Gdb {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_a_debugger_has_stopped_is_read_as_it_stands() {
    if Command::new("gdb").arg("--version").output().is_err() {
        return Skip::because("gdb is not here").show();
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("hangs/missing_lock", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start_hanging().expect("the program starts");
        let pid = running.pid.to_string();
        let gdb = Gdb::attach(running.pid);
        let name = format!("gdb (process {})", gdb.0.id());
        for pause in ["auto", "brief", "never"] {
            let what = format!("{toolchain:?} on {runtime:?}, {pause}");
            let (text, error, status) = common::texts(&common::run(&["--pause", pause, &pid]));
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(error, "", "{what}");
            assert!(status == 0 || runtime.is_kmp(), "{what}: {text}");
            assert!(plain.starts_with(&format!("STOPPED {name} holds the process")), "{what}: {text}");
            // What a thread that spins does, only the memory of the runtime shows here.
            assert!(plain.contains("SUSPECT") || runtime.is_kmp(), "{what}: {text}");
            assert!(!plain.contains("DEADLOCK"), "{what}: {text}");
            assert!(plain.contains("waits for lock gate"), "{what}: {text}");
        }
        let (report, _) = common::json(&["waits", &pid]);
        assert_eq!(report["process"]["held_by"], json!({ "pid": gdb.0.id(), "name": "gdb" }));
        gdb.end();
        let (report, _) = common::json(&["waits", &pid]);
        assert_eq!(report["process"]["held_by"], Value::Null);
        assert_eq!(report["verdicts"][0]["verdict"], "deadlock", "{toolchain:?} on {runtime:?}: it was left as it was");
    }
}

#[test]
fn files_that_are_no_cores() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    };
    refused(text(&file("text", b"no core\n")), &["this is a text file, not a core file"]);
    refused(text(&file("empty", b"")), &["the file is empty"]);
    refused(text(&file("noise", &[0xfe, 0, 1, 2, 3])), &["neither a core file nor any other ELF file"]);
    refused(text(&file("packed", b"\x28\xb5\x2f\xfd and more")), &["compressed with zstd", "zstd -t"]);
    refused(text(&file("bzip2", b"BZh91AY")), &["compressed with bzip2", "bunzip2"]);
    refused(text(&directory.path().join("missing")), &["missing: No such file or directory"]);
    refused(text(directory.path()), &["not a regular file"]);
    let program = env!("CARGO_BIN_EXE_ompd-inspect");
    refused(
        program,
        &["this is an executable or shared library, not a core file", &format!("ompd-inspect run -- {program}")],
    );
    // Endless, or without end of waiting: neither is read.
    refused("/dev/zero", &["/dev/zero: not a regular file"]);
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    refused(text(&fifo), &["not a regular file", "remedy: send it to standard input: ompd-inspect - < "]);
    // As abrt keeps a crash.
    let crash = directory.path().join("ccpp");
    fs::create_dir(&crash).expect("a directory");
    fs::write(crash.join("coredump"), "").expect("a file");
    refused(text(&crash), &["not a regular file", &format!("remedy: name the core in it: {}/coredump", text(&crash))]);
    // The name comes from outside: it must not reach the terminal as a command.
    let (_, err, _) = texts(&bounded(command().arg("none\u{1b}[31m")));
    assert!(!err.contains('\u{1b}') && err.contains("none\\u{1b}[31m"), "{err}");
}

#[test]
fn wrong_usage() {
    for args in
        [&[][..], &["threads"], &["--bogus", "1"], &["1", "threads", "2"], &["--max-pause", "long", "1"], &["--exe"]]
    {
        for json in [&[][..], &["--json"]] {
            let (out, err, status) = texts(&bounded(command().args(args).args(json)));
            assert_eq!((out.as_str(), status), ("", 2), "{args:?}: {err}");
            assert!(err.starts_with("error: ") && err.contains("--help"), "{args:?}: {err}");
        }
    }
    // The usage is that of the command.
    let (_, err, _) = texts(&bounded(command().arg("stacks")));
    assert!(err.contains("Usage: ompd-inspect stacks "), "{err}");
}

#[test]
fn a_process_without_openmp() {
    let executable = build("not_openmp", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let (out, report) = partial(&[&running.pid.to_string()]);
    assert!(out.contains("No OpenMP runtime is loaded in this process"), "{out}");
    assert_eq!(report["runtimes"], Value::Array(Vec::new()));
    let threads = report["os_threads"].as_array().expect("threads");
    assert!(threads.len() == running.truth.threads.len() && threads.iter().all(|t| t["openmp"] == false), "{report}");
    running.release().expect("the program goes on");
}

/// The core of a crash as the kernel writes it, notes first; `None` (said on standard error) where it writes none.
fn kernel_core(directory: &Path) -> Option<PathBuf> {
    let executable = build("crash", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let crashed = crash_core(&executable, Runtime::Libgomp, Env::Settled, directory).expect("the program crashes");
    crashed.inspect_err(Skip::show).ok().map(|crashed| crashed.core)
}

/// Where things are in a core file of this machine (elf.h, `Elf64_Ehdr` and `Elf64_Phdr`).
struct Segment {
    kind: u32,
    /// Of its program header.
    header: u64,
    offset: u64,
    size: u64,
}

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PROGRAM_HEADER: u64 = 56;

fn segments(core: &[u8]) -> Vec<Segment> {
    let word = |at: u64| u64::from_le_bytes(core[at as usize..][..8].try_into().expect("eight bytes"));
    let (first, count) = (word(32), word(56) & 0xffff);
    let headers = (0..count).map(|n| first + n * PROGRAM_HEADER);
    headers.map(|h| Segment { kind: word(h) as u32, header: h, offset: word(h + 8), size: word(h + 32) }).collect()
}

#[test]
fn truncated_cores() {
    let directory = tempfile::tempdir().expect("a directory");
    let Some(path) = kernel_core(directory.path()) else { return };
    let core = fs::read(&path).expect("the core");
    let segments = segments(&core);
    let cut = |length: u64| {
        let path = directory.path().join(format!("first-{length}"));
        fs::write(&path, &core[..length as usize]).expect("a truncated core");
        path
    };
    let notes = segments.iter().find(|s| s.kind == PT_NOTE).expect("notes");
    let headers_end = segments.iter().map(|s| s.header + PROGRAM_HEADER).max().expect("headers");
    for length in [10, 100, headers_end, notes.offset + 100] {
        refused(text(&cut(length)), &["bytes are missing", "remedy: write the core again with `ulimit -c unlimited`"]);
    }

    // From here on the threads are known; of the rest, what is there is shown.
    let size = core.len() as u64;
    for length in [notes.offset + notes.size, size / 2, size - 0x4000] {
        let (out, report) = partial(&[text(&cut(length))]);
        let missing = format!("the core file is truncated: {} bytes are missing at its end", size - length);
        assert!(issues(&report).contains(&missing), "{length} bytes: {report}");
        assert!(out.contains("4 threads, core file, ended by signal 6 (SIGABRT)"), "{length} bytes: {out}");
        assert!(out.contains("Incomplete: "), "{length} bytes: {out}");
        assert_eq!(report["os_threads"].as_array().map(Vec::len), Some(4), "{length} bytes");
    }
    // The main thread's stack and the vdso are last in a core: libgomp's data are before them.
    let (out, report) = partial(&[text(&cut(size - 0x4000))]);
    assert_eq!(report["runtimes"][0]["teams"].as_array().map(Vec::len), Some(3), "{report}");
    assert!(out.contains("team 0  level 1, 2 threads"), "{out}");
}

/// A core whose executable and OpenMP runtime are on another machine.
#[test]
fn a_core_without_its_files() {
    let build_id = ["-Wl,--build-id"];
    let original = build("barrier_missing", Toolchain::Gcc, Opt::O2, &build_id).expect("the program builds");
    let other = build("idle", Toolchain::Gcc, Opt::O2, &build_id).expect("the program builds");
    let library = Runtime::Libgomp.library().expect("gcc has its runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let [home, elsewhere, empty, cores] = ["home", "elsewhere", "empty", "cores"].map(|name| {
        let path = directory.path().join(name);
        fs::create_dir(&path).expect("a directory");
        path
    });
    let executable = Executable { path: home.join("program"), ..original.clone() };
    fs::copy(&original.path, &executable.path).expect("a copy of the program");
    fs::copy(&library, home.join("libgomp.so.1")).expect("a copy of the runtime");
    let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled).variable("LD_LIBRARY_PATH", text(&home));
    let running = launch.start().expect("the program starts");
    let core = match running.gcore(&cores).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    running.release().expect("the program goes on");
    fs::rename(home.join("program"), elsewhere.join("program")).expect("the program moves away");
    fs::rename(home.join("libgomp.so.1"), elsewhere.join("libgomp.so.1")).expect("the runtime moves away");
    let core = text(&core);

    let (out, report) = partial(&["--lib-root", text(&empty), core]);
    let said = issues(&report);
    assert!(said.contains("the executable") && said.contains("give it with --exe"), "{said}");
    assert!(said.contains(text(&home.join("libgomp.so.1"))) && said.contains("--lib-root DIR"), "{said}");
    assert!(out.contains("4 threads, core file") && out.contains("Incomplete: "), "{out}");
    // Why there are no names is said before anything that would have one.
    let (above, _) = out.split_once("Process ").expect("a title");
    assert!(above.contains("NOTE  The program file") && above.contains("--exe PATH"), "{out}");

    // Another program is refused, and both build-ids are shown.
    let id = |path: &Path| ElfFile::open(path).expect("an ELF file").build_id().expect("a build-id").to_string();
    let (_, report) = partial(&["--exe", text(&other.path), core]);
    let said = issues(&report);
    let (wrong, right) = (id(&other.path), id(&original.path));
    assert!(said.contains(&format!("build-id {wrong} is not that of the mapped image, {right}")), "{said}");
    // A file that is no ELF file, or none at all.
    let (_, report) = partial(&["--exe", "/dev/zero", core]);
    assert!(issues(&report).contains("/dev/zero"), "{report}");

    // With both at hand again nothing is missing.
    let program = elsewhere.join("program");
    let (report, status) = common::json(&["--exe", text(&program), "--lib-root", text(&elsewhere), core]);
    assert_eq!((status, &report["complete"]), (0, &Value::Bool(true)), "{}", report["issues"]);
    assert_eq!(report["runtimes"][0]["teams"].as_array().map(Vec::len), Some(1), "{report}");
}

/// Numbers that look random and are the same in every run (xorshift64*, Marsaglia 2003, Vigna 2016).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A core file in which bytes are changed for one inspection.
struct Mutable {
    file: File,
    path: PathBuf,
    /// As it was.
    bytes: Vec<u8>,
    tried: u32,
}

impl Mutable {
    fn new(path: PathBuf) -> Mutable {
        let mut file = File::options().read(true).write(true).open(&path).expect("the core");
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("the core");
        Mutable { file, path, bytes, tried: 0 }
    }

    /// Inspects it with other bytes at `at`: whatever they say, the command ends by itself.
    fn try_with(&mut self, at: u64, changed: &[u8]) {
        const VIEWS: [&[&str]; 4] = [&["--json"], &[], &["doctor", "-v"], &["tasks"]];
        let view = VIEWS[self.tried as usize % VIEWS.len()];
        self.tried += 1;
        self.file.write_all_at(changed, at).expect("a change");
        let output = bounded(command().args(view).arg(&self.path));
        let original = &self.bytes[at as usize..][..changed.len()];
        self.file.write_all_at(original, at).expect("the change undone");
        let what = format!("{changed:02x?} instead of {original:02x?} at {at:#x}, {view:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0..=2)), "{what}: {}: {err}", output.status);
        assert!(!err.contains("panicked"), "{what}: {err}");
        if view == ["--json"] && !output.stdout.is_empty() {
            assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "{what}: no JSON");
        }
        if output.status.code() == Some(2) {
            assert!(output.stdout.is_empty() && err.starts_with("ompd-inspect: "), "{what}: {err}");
        }
    }

    /// Another value for the byte at `at`.
    fn flip(&mut self, at: u64, noise: &mut Noise) {
        let changed = self.bytes[at as usize] ^ (1 + noise.below(255)) as u8;
        self.try_with(at, &[changed]);
    }
}

/// A core of each kind this machine can make: gdb's keeps the notes at its end and names threads differently.
fn mutable_cores(directory: &Path) -> Vec<Mutable> {
    let mut cores: Vec<PathBuf> = kernel_core(directory).into_iter().collect();
    let executable = build("tasks", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    for runtime in [Runtime::Libgomp, Runtime::Libomp14] {
        if let Err(skip) = runtime.library() {
            skip.show();
            continue;
        }
        let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
        match running.gcore(directory).expect("gcore runs") {
            Ok(core) => cores.push(core),
            Err(skip) => skip.show(),
        }
        running.release().expect("the program goes on");
    }
    cores.into_iter().map(Mutable::new).collect()
}

#[test]
fn cores_with_changed_headers_and_notes() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut noise = Noise(0x6f6d_7064);
    for mut core in mutable_cores(directory.path()) {
        let segments = segments(&core.bytes);
        let notes = segments.iter().find(|s| s.kind == PT_NOTE).map(|s| (s.offset, s.size)).expect("notes");
        for _ in 0..60 {
            let at = noise.below(64 + segments.len() as u64 * PROGRAM_HEADER);
            core.flip(at, &mut noise);
            let at = notes.0 + noise.below(notes.1);
            core.flip(at, &mut noise);
        }
        // Numbers with which arithmetic goes wrong, in each field that a size or place is computed from. They are e_phoff,
        // e_shoff, e_phentsize, and e_phnum with e_shentsize. Of some segments they are p_offset, p_vaddr, p_filesz, p_memsz and
        // p_align.
        let file_header: &[(u64, usize)] = &[(32, 8), (40, 8), (54, 2), (56, 2)];
        let segment = |s: &Segment| [8, 16, 32, 40, 48].map(|field| (s.header + field, 8));
        let places = file_header.iter().copied().chain(segments.iter().step_by(19).flat_map(segment));
        for (at, size) in places.collect::<Vec<_>>() {
            for value in [0, 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
                core.try_with(at, &value.to_le_bytes()[..size]);
            }
        }
        // e_phnum of PN_XNUM takes the number of segments from where e_shoff says.
        let extended = |at: u64| [&at.to_le_bytes()[..], &core.bytes[48..56], &[0xff, 0xff]].concat();
        for table in [0, 64, core.bytes.len() as u64 - 1, u64::MAX - 44, u64::MAX].map(extended) {
            core.try_with(40, &table);
        }
        let _ = writeln!(std::io::stderr(), "{}: {} changes", core.path.display(), core.tried);
    }
}

#[test]
fn cores_with_changed_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut noise = Noise(0x6d65_6d6f);
    for mut core in mutable_cores(directory.path()) {
        // Most of a core is empty stacks, which nobody reads: of each segment, bytes of words that hold something.
        let loaded: Vec<Vec<u64>> = (segments(&core.bytes).iter().filter(|s| s.kind == PT_LOAD && s.size > 0))
            .map(|s| (s.offset..s.offset + s.size - 7).step_by(8))
            .map(|words| words.filter(|w| core.bytes[*w as usize..][..8] != [0; 8]).collect())
            .filter(|words: &Vec<u64>| !words.is_empty())
            .collect();
        for _ in 0..150 {
            let words = &loaded[noise.below(loaded.len() as u64) as usize];
            let word = words[noise.below(words.len() as u64) as usize];
            core.flip(word + noise.below(8), &mut noise);
        }
        let _ = writeln!(std::io::stderr(), "{}: {} changes", core.path.display(), core.tried);
    }
}
