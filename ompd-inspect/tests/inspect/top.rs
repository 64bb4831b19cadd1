//! The live view: as plain lines, as JSON, and on a pseudo terminal whose screen a terminal emulator reads.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::libc;
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build, combinations, thread_states};

use crate::common::{NO_CACHE, Schema, bounded, command, texts};

/// No sound run comes near this.
const LIMIT: Duration = Duration::from_secs(120);

/// gcc's programs on libgomp and clang's on libomp 14, as far as they are here.
fn native() -> Vec<(Toolchain, Runtime)> {
    let natives = [(Toolchain::Gcc, Runtime::Libgomp), (Toolchain::Clang, Runtime::Libomp14)];
    combinations().into_iter().filter(|pair| natives.contains(pair)).collect()
}

fn start(program: &str, toolchain: Toolchain, runtime: Runtime) -> Running {
    let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
    Running::start(&executable, runtime, Env::Settled).expect("the program starts")
}

/// What the program is called.
fn name(running: &Running) -> String {
    running.executable.path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned()
}

/// No thread of the process is stopped or traced.
fn assert_let_go(pid: i32) {
    for (lwp, thread) in thread_states(pid).expect("threads") {
        assert!(!matches!(thread.state, 't' | 'T'), "thread {lwp} of {pid} is in state {}", thread.state);
        let status = fs::read_to_string(format!("/proc/{pid}/task/{lwp}/status"));
        assert!(status.is_ok_and(|status| status.contains("\nTracerPid:\t0\n")), "thread {lwp} of {pid} is traced");
    }
}

/// What a run that ends by itself writes to standard output.
fn lines(args: &[&str]) -> String {
    let (out, err, status) = texts(&bounded(command().arg("top").args(args)));
    assert_eq!((err.as_str(), status), ("", 0), "{args:?}: {out}");
    let control = out.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{args:?}: {out:?}");
    out
}

/// A pseudo terminal with the view on it.
pub struct Screen {
    /// Until its end was waited for.
    child: Option<Child>,
    master: File,
    /// Kept open: the settings of the terminal are asked for after the end of the program.
    slave: Option<OwnedFd>,
    before: Termios,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
}

impl Screen {
    fn start(rows: u16, columns: u16, args: &[&str]) -> Screen {
        Screen::of(rows, columns, &[&["top"], args].concat())
    }

    /// Any command on a terminal.
    pub fn of(rows: u16, columns: u16, args: &[&str]) -> Screen {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a pseudo terminal");
        let before = tcgetattr(&pty.slave).expect("its settings");
        let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_ompd-inspect"));
        command.args(args).env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.env("XDG_CACHE_HOME", NO_CACHE);
        command.stdin(end()).stdout(end()).stderr(end());
        let controlling = || {
            // Otherwise its size would be that of the terminal the test was started in.
            nix::unistd::setsid()?;
            // SAFETY: takes plain numbers.
            match unsafe { libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: between fork and exec the closure only makes two system calls; it does not allocate or take a lock.
        unsafe { command.pre_exec(controlling) };
        let child = command.spawn().expect("ompd-inspect can be started");
        let master = File::from(pty.master);
        let mut reader = master.try_clone().expect("a descriptor");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the terminal is an error (EIO).
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let cells = |count| NonZero::new(count).expect("a terminal has cells");
        let parser = vt100::Parser::new(cells(rows), cells(columns), 0);
        Screen { child: Some(child), master, slave: Some(pty.slave), before, output, parser }
    }

    fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until the screen is as it should be.
    fn await_text(&mut self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let text = self.text();
            if is_there(&text) {
                return text;
            }
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(why) => panic!("{what}: {why}: {text}"),
            }
        }
    }

    pub fn await_all(&mut self, words: &[&str]) -> String {
        self.await_text(&format!("{words:?}"), |text| words.iter().all(|word| text.contains(word)))
    }

    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the kernel reads the size, which lives until the call returns.
        let done = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(done, 0, "the size is set");
        let cells = |count| NonZero::new(count).expect("a terminal has cells");
        self.parser.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn pid(&self) -> Pid {
        let id = self.child.as_ref().expect("it was not waited for").id();
        Pid::from_raw(i32::try_from(id).expect("a process id"))
    }

    /// Waits for the end of the program. The terminal is as it was before: its settings, its screen and its cursor. Gives
    /// what is on that screen.
    pub fn end(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + LIMIT;
        let (sender, ended) = channel();
        let pid = self.pid();
        let mut child = self.child.take().expect("it was not waited for");
        let waiter = std::thread::spawn(move || sender.send(child.wait()));
        let status = match ended.recv_timeout(LIMIT) {
            Ok(status) => status.expect("its status"),
            Err(_) => {
                let _ = kill(pid, Signal::SIGKILL);
                panic!("ompd-inspect did not end: {}", self.parser.screen().contents());
            }
        };
        waiter.join().expect("the waiting thread").expect("the status was taken");
        let after = self.slave.as_ref().map(tcgetattr).expect("it is open").expect("the settings of the terminal");
        let flags = |of: &Termios| (of.input_flags, of.output_flags, of.local_flags, of.control_flags);
        assert_eq!(flags(&after), flags(&self.before), "the terminal has other settings");
        drop(self.slave.take());
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.parser.process(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the terminal is still open"),
            }
        }
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "the alternate screen was not left");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        (status, screen.contents())
    }
}

impl Drop for Screen {
    /// A test that fails leaves no process.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command, ended if the test fails.
struct Lines(Child);

impl Drop for Lines {
    fn drop(&mut self) {
        // Both fail only if it has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn plain_lines_show_each_thread_in_each_refresh() {
    for (toolchain, runtime) in native() {
        let running = start("nested", toolchain, runtime);
        let pid = running.pid.to_string();
        let out = lines(&["--count", "2", "--interval", "200ms", &pid]);
        let what = format!("{runtime:?}: {out}");
        let blocks: Vec<&str> = out.split_terminator("\n\n").collect();
        assert_eq!(blocks.len(), 2, "{what}");
        for (number, block) in (1..).zip(blocks) {
            assert!(block.starts_with("top  ") && block.contains(&format!(" UTC  refresh {number}\n")), "{what}");
            assert!(block.contains(&format!("\n{pid} nested")) && block.contains("stopped"), "{what}");
            assert!(block.contains("barrier not reached by 1;"), "{what}");
            let (_, table) = block.split_once("CPU% DOING\n").unwrap_or_else(|| panic!("no table: {what}"));
            assert_eq!(table.lines().count(), running.truth.threads.len(), "{what}");
            for thread in &running.truth.threads {
                let row = table.lines().find(|line| line.trim_start().starts_with(&format!("{} ", thread.lwp)));
                let row = row.unwrap_or_else(|| panic!("thread {} is missing: {what}", thread.lwp));
                assert!(
                    row.contains("/2 ") && [" nested.c:", " truth.h:"].iter().any(|file| row.contains(file)),
                    "{row}: {what}"
                );
            }
            assert!(table.contains("waits at a"), "{what}");
        }
        assert_let_go(running.pid);
        running.release().expect("the program goes on");
    }
}

#[test]
fn loops_and_tasks_have_counts() {
    for (toolchain, runtime) in native() {
        let executable = build("loops_state", toolchain, Opt::O2, &[]).expect("the program builds");
        let launch = Launch::new(&executable, runtime, Env::Settled).variable("LOOP", "dynamic");
        let running = launch.start().expect("the program starts");
        let out = lines(&["--count", "1", &running.pid.to_string()]);
        // Three chunks of seven, of 500 iterations. libgomp does not record where a loop begins.
        let (head, cell) = match runtime.is_kmp() {
            true => ("21 of 500 handed out (4%)", " 4% "),
            false => ("next 142, up to 1100, step 2", " 479 left "),
        };
        assert!(out.contains(head) && out.contains("LOOP") && out.contains(cell), "{runtime:?}: {out}");
        running.release().expect("the program goes on");
        let running = start("tasks", toolchain, runtime);
        let out = lines(&["--count", "1", &running.pid.to_string()]);
        assert!(out.contains("tasks: ") && out.contains(" executing"), "{runtime:?}: {out}");
        running.release().expect("the program goes on");
    }
}

#[test]
fn each_line_of_json_is_what_the_schema_says() {
    let schema = Schema::of("top");
    for (toolchain, runtime) in native() {
        let running = start("nested", toolchain, runtime);
        let out = lines(&["--json", "--count", "2", "--interval", "200ms", &running.pid.to_string()]);
        let refreshes: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(refreshes.len(), 2, "{out}");
        for (number, refresh) in (1..).zip(&refreshes) {
            assert_eq!(schema.faults(refresh), [""; 0]);
            assert_eq!((&refresh["schema"], &refresh["number"]), (&"ompd-inspect-top/1".into(), &Value::from(number)));
            let threads = refresh["processes"][0]["threads"].as_array().expect("threads");
            assert_eq!(threads.len(), running.truth.threads.len(), "{refresh}");
            for thread in threads {
                // They all sleep.
                assert!(thread["cpu_percent"].as_f64().is_some_and(|cpu| (0.0..20.0).contains(&cpu)), "{thread}");
            }
        }
        running.release().expect("the program goes on");
    }
}

#[test]
fn threads_that_compute_use_processors() {
    let executable = build("healthy/busy", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let mut running = Launch::new(&executable, Runtime::Libgomp, Env::Stock).start_healthy().expect("it starts");
    running.await_round(1).expect("it continues");
    let out = lines(&["--json", "--count", "4", "--interval", "500ms", &running.pid.to_string()]);
    let cpu = |line: &str| -> f64 {
        let refresh: Value = serde_json::from_str(line).expect("JSON");
        let threads = refresh["processes"][0]["threads"].as_array().cloned().unwrap_or_default();
        threads.iter().filter_map(|thread| thread["cpu_percent"].as_f64()).sum()
    };
    // How much that is depends on what else the machine does.
    assert!(out.lines().any(|line| cpu(line) > 1.0), "{out}");
    assert_let_go(running.pid);
}

#[test]
fn a_deadlock_is_shown_from_the_second_refresh_on() {
    for (toolchain, runtime) in native() {
        let executable = build("hangs/lock_cycle", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&executable, runtime, Env::Stock).start_hanging().expect("the program hangs");
        let out = lines(&["--count", "3", "--interval", "200ms", &running.pid.to_string()]);
        let blocks: Vec<bool> = out.split_terminator("\n\n").map(|block| block.contains("  DEADLOCK  ")).collect();
        assert_eq!(blocks, [false, true, true], "{runtime:?}: {out}");
    }
}

/// A process that ends is said to have ended, and the others are shown further on; with the last the view ends.
#[test]
fn several_processes_and_their_ends() {
    let one = start("idle", Toolchain::Gcc, Runtime::Libgomp);
    let other = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let (first, second) = (one.pid.to_string(), other.pid.to_string());
    let (first_name, second_name) = (name(&one), name(&other));
    let child = command()
        .args(["top", "--interval", "200ms", "--count", "500", &first, &second])
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Lines(child.expect("ompd-inspect can be started"));
    let mut out = BufReader::new(child.0.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    let heading = out.find(|line| line.trim_start().starts_with("PROCESS")).expect("a table");
    assert!(heading.contains("ID") && heading.contains("CPU%"), "{heading}");
    for pid in [&first, &second] {
        assert!(out.any(|line| line.trim_start().starts_with(&format!("{pid} "))), "no row of process {pid}");
    }
    one.release().expect("the program goes on");
    assert!(out.any(|line| line == format!("{first} {first_name} has ended")), "its end is not shown");
    assert!(out.any(|line| line.starts_with(&format!("{second} {second_name}: "))), "the other one is not shown");
    assert!(out.any(|line| line.starts_with("top  ")), "no refresh follows");
    other.release().expect("the program goes on");
    assert!(out.any(|line| line == format!("{second} {second_name} has ended")), "its end is not shown");
    assert_eq!(out.find(|line| line.starts_with("top  ")), None, "a refresh follows the end of all");
    let status = child.0.wait().expect("its end");
    assert!(status.success(), "{status}");
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let mut child = command()
        .args(["top", "--interval", "200ms", &running.pid.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("ompd-inspect can be started");
    drop(child.stdout.take());
    assert!(child.wait().expect("its end").success());
    assert_let_go(running.pid);
    running.release().expect("the program goes on");
}

#[test]
fn what_is_no_process_is_refused() {
    let refused = |args: &[&str], words: &[&str]| {
        let (out, err, status) = texts(&bounded(command().arg("top").args(args)));
        assert_eq!((out.as_str(), status), ("", 2), "{args:?}: {err}");
        assert!(words.iter().all(|word| err.contains(word)), "{args:?}: no {words:?} in {err}");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let core = directory.path().join("core.1");
    fs::write(&core, b"").expect("a file");
    let core = core.to_str().expect("a plain path");
    refused(&[core], &["top needs a running process", "remedy: ", &format!("ompd-inspect threads {core}")]);
    refused(&["-"], &["top needs a running process"]);
    refused(&["solver"], &["solver is no process id", "--name solver"]);
    refused(&[], &["name a process id"]);
    refused(&["--samples", "3", "1"], &["top has no option --samples", "--count"]);
    refused(&["--fail-on", "deadlock", "1"], &["top has no option --fail-on", "remedy: "]);
    refused(&["--count", "0", "1"], &["--count"]);
    refused(&["0"], &["there is no process 0", "pgrep"]);
}

#[test]
fn keys_change_the_view() {
    for (toolchain, runtime) in native() {
        let running = start("nested", toolchain, runtime);
        let pid = running.pid.to_string();
        let mut screen = Screen::start(24, 100, &["--interval", "500ms", &pid]);
        let ids: Vec<String> = running.truth.threads.iter().map(|thread| thread.lwp.to_string()).collect();
        let parts = ["ompd-inspect top", "every 500 ms", "?: help", "stopped", "CPU%", "s: sort (cpu)", "nested.c:"];
        let text = screen.await_text(&format!("{parts:?} and {ids:?}"), |text| {
            parts.iter().all(|part| text.contains(part)) && ids.iter().all(|id| text.contains(id.as_str()))
        });
        assert!(screen.parser.screen().alternate_screen() && screen.parser.screen().hide_cursor(), "{text}");
        screen.press("s");
        screen.await_all(&["s: sort (id)"]);
        screen.press("?");
        screen.await_all(&["Keys (any key: back)", "hide idle threads", "Ctrl-C"]);
        screen.press("\u{1b}");
        // The help has "CPU%" too. Until Escape has been read, a second key would make another one of both.
        screen.await_all(&["s: sort (id)", "DOING"]);
        // The first thread by id is that of the process.
        screen.press("g\r");
        screen.await_all(&["Stack at the last look", "inner_body", "nested.c:16"]);
        screen.press("q");
        screen.await_all(&["s: sort (id)", "DOING"]);
        screen.press("i");
        screen.await_all(&["i: show idle"]);
        screen.press("+");
        screen.await_all(&["every 1 s"]);
        screen.press("p");
        screen.await_all(&["PAUSED"]);
        screen.press("p");
        screen.await_text("it continues", |text| !text.contains("PAUSED"));
        // The kernel stops no process whose group no shell waits for: the view is there again at once.
        screen.press("\u{1a}s");
        screen.await_all(&["s: sort (team)", "CPU%"]);
        screen.press("q");
        let (status, _) = screen.end();
        assert!(status.success(), "{status}");
        assert_let_go(running.pid);
        running.release().expect("the program goes on");
    }
}

/// A look stops the process: keys ask for none.
#[test]
fn keys_cause_no_looks() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    let mut screen = Screen::start(24, 100, &["--interval", "5m", &pid]);
    let time = |text: &str| text.lines().next().unwrap_or_default().split("  ").nth(1).map(str::to_owned);
    let before = time(&screen.await_all(&["s: sort (cpu)", "CPU%"]));
    assert!(before.as_ref().is_some_and(|time| time.ends_with(" UTC")), "{before:?}");
    screen.press("\r");
    screen.await_all(&["Stack at the last look"]);
    screen.press("\rjkGgi?x");
    screen.press("ss");
    screen.await_all(&["s: sort (team)", "i: show idle"]);
    screen.press("pp-");
    let text = screen.await_all(&["every 60 s"]);
    assert_eq!(time(&text), before, "{text}");
    screen.press("\u{3}");
    assert!(screen.end().0.success());
    running.release().expect("the program goes on");
}

#[test]
fn a_narrow_terminal_shows_what_counts_most() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    let mut screen = Screen::start(18, 40, &[&pid]);
    let ids: Vec<String> = running.truth.threads.iter().map(|thread| thread.lwp.to_string()).collect();
    let text = screen.await_text("all threads", |text| {
        text.contains("s: sort (cpu)") && ids.iter().all(|id| text.contains(id.as_str()))
    });
    assert!(text.contains("CPU% DOING") && !text.contains("LEVEL") && text.contains("every 2 s"), "{text}");
    screen.resize(24, 90);
    screen.await_all(&["ompd-inspect top", "?: help  q: quit", "TEAM NUM LEVEL CPU% DOING", "s: sort (cpu)"]);
    screen.press("q");
    screen.end();
    running.release().expect("the program goes on");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let mut screen = Screen::start(24, 80, &["--interval", "200ms", &pid]);
        screen.await_all(&["CPU%"]);
        kill(screen.pid(), signal).expect("the signal is sent");
        let (status, _) = screen.end();
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
        assert_let_go(running.pid);
    }
    running.release().expect("the program goes on");
}

#[test]
fn the_view_ends_with_the_process_or_after_count() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let (pid, name) = (running.pid.to_string(), name(&running));
    let screen = Screen::start(24, 80, &["--interval", "200ms", "--count", "2", &pid]);
    assert!(screen.end().0.success());
    let mut screen = Screen::start(24, 80, &["--interval", "200ms", &pid]);
    screen.await_all(&["CPU%"]);
    running.release().expect("the program goes on");
    let (status, left) = screen.end();
    assert!(status.success() && left.contains(&format!("{pid} {name} has ended")), "{status}: {left}");
    // What cannot be inspected is said on the normal screen.
    let (status, left) = Screen::start(24, 80, &[&pid]).end();
    assert!(status.code() == Some(2) && left.contains("there is no process"), "{status}: {left}");
}
