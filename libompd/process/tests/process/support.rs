//! The test subject: compiled once, started with pipes, ended by pid.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// A directory for everything this test binary builds. Statics are never dropped, so it stays behind; the next run
/// removes those of processes that have ended.
pub fn scratch() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|n| n.strip_prefix("subjects-")).and_then(|p| p.parse::<u32>().ok());
            if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let dir = root.join(format!("subjects-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("scratch directory");
        dir
    })
}

/// Runs a command and expects success.
pub fn run(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// True if a program of that name can be started.
pub fn have(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Says why a test does nothing.
pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Copies a program, by another process. Otherwise a child that another test starts at that moment would inherit the
/// open file. The copy could then not be run ("text file busy").
pub fn copy_program(from: &Path, to: &Path) {
    run(Command::new("cp").arg(from).arg(to));
}

/// An example of this crate, which cargo builds along with the tests.
pub fn example(name: &str, args: &[&str]) -> Command {
    let own = std::env::current_exe().expect("own path");
    let path = own.parent().and_then(Path::parent).expect("target directory").join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo test` without --test", path.display());
    let mut command = Command::new(path);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The example that holds a process.
pub fn holder(args: &[&str]) -> Command {
    example("hold", args)
}

/// Compiles `tests/programs/<source>` with `flags` to `<scratch>/<name>`.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let out = scratch().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    run(Command::new("cc").arg(source).arg("-o").arg(&out).args(["-O1", "-g", "-pthread"]).args(flags));
    out
}

/// The usual subject: position-independent, dynamically linked.
pub fn subject() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| compile("subject.c", "subject", &["-pie", "-fPIE", "-Wl,--build-id"]))
}

/// What a waiting thread said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    pub tid: i32,
    pub pthread: u64,
    pub mark_at: u64,
    pub mark: u64,
}

/// A running subject.
pub struct Subject {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
    pub known: (u64, u64),
    pub constant: u64,
    pub word: u64,
    pub main: u64,
    pub waiters: Vec<Waiter>,
    /// A thread in uninterruptible sleep, and the child it waits for.
    pub stuck: Option<(i32, i32)>,
}

impl Subject {
    pub fn start(args: &[&str]) -> Subject {
        Subject::spawn(Command::new(subject()).args(args))
    }

    pub fn spawn(command: &mut Command) -> Subject {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start the subject");
        let output = BufReader::new(child.stdout.take().expect("stdout"));
        let input = child.stdin.take();
        let (known, constant, word, main, waiters) = ((0, 0), 0, 0, 0, Vec::new());
        let stuck = None;
        let mut subject = Subject { child, input, output, known, constant, word, main, waiters, stuck };
        loop {
            let line = subject.line();
            let words: Vec<&str> = line.split_whitespace().collect();
            let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).expect("a hex number");
            match words[..] {
                ["known", at, len] => subject.known = (hex(at), len.parse().expect("length")),
                ["constant", at] => subject.constant = hex(at),
                ["word", at] => subject.word = hex(at),
                ["main", "ended"] | ["ready"] => return subject,
                ["stuck", tid, child] => {
                    subject.stuck = Some((tid.parse().expect("tid"), child.parse().expect("pid")));
                }
                ["main", at] => subject.main = hex(at),
                ["thread", tid, pthread, at, mark] => subject.waiters.push(Waiter {
                    tid: tid.parse().expect("tid"),
                    pthread: hex(pthread),
                    mark_at: hex(at),
                    mark: mark.parse().expect("mark"),
                }),
                _ => panic!("unexpected line {line:?}"),
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("read from the subject") > 0, "the subject ended");
        line
    }

    /// Sends a request and gives the number in the answer.
    pub fn ask(&mut self, request: u8) -> i64 {
        self.send(request);
        let line = self.line();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("answer {line:?}"))
    }

    pub fn send(&mut self, request: u8) {
        self.input.as_mut().expect("input").write_all(&[request]).expect("write to the subject");
    }

    /// The bytes that `known` holds.
    pub fn known_bytes(&self) -> Vec<u8> {
        (0..self.known.1).map(|i| (i * 7 + 3) as u8).collect()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
