//! What all tests need.

use std::io::BufRead as _;
use std::path::PathBuf;

use debugger_plugin::available;
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, await_all_blocked, build};

/// The directory with the library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    test_programs::built_by_cargo("libompd.so").parent().expect("a directory").to_owned()
}

/// True if gdb is here; the reason was said if not.
pub fn has_gdb() -> bool {
    available().map_err(|reason| reason.show()).is_ok()
}

/// `steps.c` in its first hang: four threads, of which two read and two wait at a barrier.
pub struct Steps {
    process: Process,
    /// Its process id.
    pub pid: i32,
    /// Its file.
    pub program: PathBuf,
}

impl Steps {
    pub fn hanging() -> Steps {
        let executable = build("steps", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
        let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
        let mut process = launch.leading_group().spawn().expect("it starts");
        let mut line = String::new();
        for _ in 0..2 {
            process.stdout.read_line(&mut line).expect("its output");
        }
        assert_eq!(line, "ready\nready\n");
        let pid = i32::try_from(process.child.id()).expect("a process id");
        await_all_blocked(pid, 4, false).expect("it hangs");
        Steps { process, pid, program: executable.path }
    }

    /// Has it leave the first hang, once it may run.
    pub fn release(&self) {
        std::fs::write(format!("/proc/{}/fd/0", self.pid), "gg").expect("its input");
    }

    /// A debugger that has left it left nothing: no stop, and no signal.
    pub fn is_left_alone(&self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("the process is there");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        assert!(!field("State:").starts_with(['T', 't', 'Z']), "{status}");
        assert_eq!((field("SigPnd:"), field("ShdPnd:")), ("0000000000000000", "0000000000000000"), "{status}");
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
    }
}
