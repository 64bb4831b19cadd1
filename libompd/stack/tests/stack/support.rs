//! Programs that wait in a certain place, what gdb says of their stacks, and targets with other registers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ompd_process::{Live, OpenOptions, Target, Thread};
use ompd_stack::{Backtrace, Cache, Report, Stacks};
use tempfile::TempDir;
use test_programs::ChangedTarget;

/// Says why a test does nothing.
pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// True if a program of that name can be started.
pub fn have(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// A program of `tests/programs`, built.
pub struct Built {
    directory: TempDir,
}

impl Built {
    /// The one with many places to wait in.
    pub fn places(flags: &[&str]) -> Built {
        Built::from("places", flags)
    }

    pub fn from(name: &str, flags: &[&str]) -> Built {
        let directory = tempfile::tempdir().expect("a directory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
        let mut command = Command::new("gcc");
        command.args(["-pthread", "-Wl,--build-id", "-o"]).arg(directory.path().join("places")).arg(source).args(flags);
        let done = command.output().expect("gcc");
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
        Built { directory }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("places")
    }

    /// Starts it; when this returns all its threads wait.
    pub fn start(&self, arguments: &[&str], threads: usize) -> Waiting {
        let mut command = Command::new(self.path());
        let mut child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("what it says");
        let waiting = Waiting { child };
        assert_eq!(line, "ready\n", "{arguments:?}");
        test_programs::await_all_blocked(waiting.pid(), threads, false).expect("all its threads wait");
        waiting
    }
}

/// A program that waits until this is dropped.
pub struct Waiting {
    child: Child,
}

impl Waiting {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Stops it, takes its stacks, and lets it go.
    pub fn look(&self) -> Look {
        let mut live = Live::open(self.pid(), &OpenOptions::default()).expect("the process can be opened");
        live.stop().expect("it stops");
        let stacks = Stacks::capture(&live);
        live.resume();
        Look { live, stacks }
    }

    /// Its stacks as gdb sees them: for each thread its id, and of each frame program counter and stack pointer.
    pub fn in_gdb(&self, frames: &str) -> Vec<(i32, Vec<(u64, u64)>)> {
        let each = format!("thread apply all frame apply {frames} -q printf \"at %#lx %#lx\\n\", $pc, $sp");
        let pid = self.pid().to_string();
        let mut command = Command::new("gdb");
        command.args(["-nx", "-batch", "-p", &pid, "-ex", "set backtrace past-main on", "-ex", &each]);
        let done = command.env_remove("DEBUGINFOD_URLS").stdin(Stdio::null()).output().expect("gdb");
        let text = String::from_utf8_lossy(&done.stdout);
        let mut threads: Vec<(i32, Vec<(u64, u64)>)> = Vec::new();
        for line in text.lines() {
            if let Some((_, rest)) = line.split_once("(LWP ").filter(|_| line.starts_with("Thread ")) {
                let lwp = rest.split(')').next().and_then(|lwp| lwp.parse().ok()).expect("the number of a thread");
                threads.push((lwp, Vec::new()));
            } else if let Some(rest) = line.strip_prefix("at ") {
                let word = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address");
                let frame = rest.split_once(' ').map(|(pc, sp)| (word(pc), word(sp))).expect("two addresses");
                // gdb without threads has no heading.
                if threads.is_empty() {
                    threads.push((self.pid(), Vec::new()));
                }
                let frames = &mut threads.last_mut().expect("a thread").1;
                // Functions inlined into each other, or that ended in a jump, are frames to gdb: the last one made the call.
                if frames.last().is_some_and(|(_, sp)| *sp == frame.1) {
                    frames.pop();
                }
                frames.push(frame);
            }
        }
        assert!(!threads.is_empty(), "gdb: {text}{}", String::from_utf8_lossy(&done.stderr));
        threads
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process as it was at one moment.
pub struct Look {
    pub live: Live,
    pub stacks: Stacks,
}

impl Look {
    pub fn report(&self, cache: &Cache) -> Report {
        Report::of(&self.live, &[], &[], &self.stacks, cache)
    }

    /// The stack of its only thread.
    pub fn backtrace(&self) -> Backtrace {
        let lwp = self.live.threads()[0].lwp;
        self.report(&Cache::default()).physical(lwp).expect("a stack").clone()
    }

    /// The stack of a thread that has other registers.
    pub fn with(&self, thread: Thread) -> Backtrace {
        let lwp = thread.lwp;
        let moved = ChangedTarget::new(&self.live).with_threads(vec![thread]);
        let report = Report::of(&moved, &[], &[], &self.stacks, &Cache::default());
        report.physical(lwp).expect("a stack").clone()
    }
}

/// Program counter and stack pointer of each frame.
pub fn places(backtrace: &Backtrace) -> Vec<(u64, u64)> {
    backtrace.frames.iter().map(|frame| (frame.pc.0, frame.registers.get(7).expect("a stack pointer"))).collect()
}
