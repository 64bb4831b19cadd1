//! Running the command under test.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Runtime, Toolchain, Truth, compare};

/// A directory for caches in which there can be none: tests leave that of their user alone.
pub const NO_CACHE: &str = "/dev/null";

thread_local! {
    /// The directory for caches that the command gets.
    static CACHE: RefCell<PathBuf> = RefCell::new(NO_CACHE.into());
}

/// The command, ready for arguments.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ompd-inspect"));
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    CACHE.with_borrow(|cache| command.env("XDG_CACHE_HOME", cache));
    command
}

/// From now on this thread's commands keep below this directory what they decode.
pub fn cache_below(directory: &Path) {
    CACHE.set(directory.to_owned());
}

/// Runs it to its end.
pub fn run(args: &[&str]) -> Output {
    command().args(args).output().expect("ompd-inspect can be started")
}

/// Runs it with `--json`; the report and the exit status.
pub fn json(args: &[&str]) -> (Value, i32) {
    let output = command().arg("--json").args(args).output().expect("ompd-inspect can be started");
    let status = output.status.code().expect("ompd-inspect exits by itself");
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let error = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("no JSON ({e}), status {status}: {error}"));
    (report, status)
}

/// A schema of the folder `docs`.
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// `docs/NAME.schema.json`.
    pub fn of(name: &str) -> Schema {
        let path = format!("{}/../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).expect(&path)).expect("JSON");
        Schema(jsonschema::validator_for(&schema).expect("a schema"))
    }

    /// Where a document is not what the schema says.
    pub fn faults(&self, document: &Value) -> Vec<String> {
        self.0.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }
}

/// Compares what the command says of a target with the truth: a line for each value that differs, is unknown or
/// lacking.
pub fn check(what: &str, truth: &Truth, runtime: Runtime, toolchain: Toolchain, target: &str) -> Vec<String> {
    check_by(what, truth, runtime, toolchain, &[target])
}

/// As [`check`], with these arguments.
pub fn check_by(what: &str, truth: &Truth, runtime: Runtime, toolchain: Toolchain, args: &[&str]) -> Vec<String> {
    let compared = |how: &str, report: &Value| {
        let comparison = compare(truth, report, runtime, toolchain);
        // Directly, so that it is seen for passing tests as well.
        let _ = writeln!(
            std::io::stderr(),
            "{what}{how}: {} threads, {} values compared, {} differ, {} unknown",
            truth.threads.len(),
            comparison.compared,
            comparison.differences.len(),
            comparison.unknown.len()
        );
        comparison
    };
    let (report, status) = json(args);
    let mut comparison = compared("", &report);
    comparison.equal("exit status of the command", &status, &0);
    let mut found: Vec<String> = comparison.all().map(|line| format!("{what}: {line}")).collect();
    if args.last().is_some_and(|target| target.parse::<i32>().is_ok()) && !args.contains(&"--pause") {
        let (report, status) = json(&[&["--pause", "brief"], args].concat());
        let mut stopped = compared(", --pause brief", &report);
        stopped.equal("exit status of the command", &status, &0);
        let all = [stopped.differences, stopped.unknown, stopped.lacking];
        found.extend(all.into_iter().flatten().map(|line| format!("{what}, --pause brief: {line}")));
        // Threads may run, and some values are in registers: what it knows is right all the same.
        let (report, _) = json(&[&["--pause", "never"], args].concat());
        let unheld = compared(", --pause never", &report);
        assert_eq!(report["stops"], 0, "{what}");
        found.extend(unheld.differences.iter().map(|line| format!("{what}, --pause never: {line}")));
    }
    found
}

/// What a run wrote to standard output and standard error, and its status.
pub fn texts(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().expect("ompd-inspect exits by itself"))
}

/// The first lines of a summary, each whole however it is wrapped: the verdict, its cause, and what to do. They are printed as well.
pub fn answer(what: &str, target: &str) -> Vec<String> {
    let (summary, ..) = texts(&run(&[target]));
    let mut lines: Vec<String> = Vec::new();
    for line in summary.lines().take_while(|line| !line.is_empty() && !line.starts_with("  - ")) {
        match lines.last_mut().filter(|_| line.starts_with("          ")) {
            Some(last) => *last = format!("{last} {}", line.trim_start()),
            None => lines.push(line.to_owned()),
        }
    }
    // Directly, so that they are seen for passing tests as well.
    let _ = writeln!(std::io::stderr(), "{what}\n{}", lines.join("\n"));
    lines
}

/// Checks the answer on a process and on a core of it: the first words, and each part has what is expected in its line.
pub fn check_answer(what: &str, pid: i32, words: [&str; 2], parts: &[&[&str]]) {
    let check = |what: &str, target: &str, word: &str| {
        let lines = answer(what, target);
        assert_eq!(lines.len(), parts.len(), "{what}: {lines:?}");
        assert!(lines[0].starts_with(word), "{what}: not {word} but {lines:?}");
        for (line, texts) in lines.iter().zip(parts) {
            assert!(texts.iter().all(|text| line.contains(text)), "{what}: not {texts:?} in {line:?}");
        }
    };
    check(&format!("{what}, live"), &pid.to_string(), words[0]);
    let directory = tempfile::tempdir().expect("a directory for the core");
    match test_programs::gcore(pid, directory.path()).expect("gcore runs") {
        Ok(core) => check(&format!("{what}, core"), core.to_str().expect("a plain path"), words[1]),
        Err(skip) => skip.show(),
    }
}

/// Runs a command that might hang if something were wrong. No sound run comes near the limit: then it is killed, and the
/// test fails.
pub fn bounded(command: &mut Command) -> Output {
    const LIMIT: Duration = Duration::from_secs(120);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command can be started");
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    let (done, ended) = channel();
    let waiter = std::thread::spawn(move || {
        let _ = done.send(child.wait_with_output());
    });
    let output = match ended.recv_timeout(LIMIT) {
        Ok(output) => output.expect("its output can be read"),
        Err(_) => {
            // Not reaped yet, or the result would have come: the id is still its own.
            let _ = kill(pid, Signal::SIGKILL);
            panic!("{command:?} did not end within {LIMIT:?}");
        }
    };
    waiter.join().expect("the waiting thread");
    output
}

/// The verdicts of a report that say that something hangs, or may.
pub fn hangs(report: &serde_json::Value) -> Vec<&serde_json::Value> {
    report["verdicts"].as_array().into_iter().flatten().filter(|verdict| verdict["verdict"] != "waiting").collect()
}
