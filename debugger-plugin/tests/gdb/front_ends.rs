//! What front ends get that use GDB/MI, besides backtraces (`following.rs`).

use std::io::Write as _;
use std::process::{Command, Stdio};

use debugger_plugin::{gdbs, plugin};
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

use crate::common::{has_gdb, library};

/// Stops have a reason, a frame and a thread, the selected thread is reported, and no text has escape sequences.
#[test]
fn stops_and_selections_are_records_of_mi() {
    if !has_gdb() {
        return;
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("in");
    std::fs::write(&file, "g").expect("a file");
    let commands = [
        "-interpreter-exec console \"set style enabled on\"".to_owned(),
        "-break-insert main".to_owned(),
        format!("-exec-arguments < {} > /dev/null", file.display()),
        "-exec-run".to_owned(),
        "-interpreter-exec console \"openmp break parallel-begin if $_omp_level() == 1\"".to_owned(),
        "-exec-continue".to_owned(),
        "-interpreter-exec console \"openmp status\"".to_owned(),
        // One of them is selected already.
        "-interpreter-exec console \"openmp thread 0.1\"".to_owned(),
        "-interpreter-exec console \"openmp thread 0.0\"".to_owned(),
        "-interpreter-exec console \"kill\"".to_owned(),
        "-gdb-exit".to_owned(),
    ];
    let environment = launch.environment().expect("the runtime is here");
    for release in gdbs() {
        let mut gdb = Command::new(&release.command)
            .args(["-nx", "-q", "-interpreter=mi3"])
            .args(["-ex", &format!("source {}", plugin().display())])
            .args(["-ex", &format!("set openmp library {}", library().join("libompd.so").display())])
            .arg(&program.path)
            .envs(environment.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
            // Otherwise gdb has no colours at all.
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("gdb starts");
        let mut input = gdb.stdin.take().expect("its input");
        input.write_all((commands.join("\n") + "\n").as_bytes()).expect("it reads");
        drop(input);
        let done = gdb.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let what = format!("gdb {}: {text}", release.version);
        let stops: Vec<&str> = text.lines().filter(|line| line.starts_with("*stopped")).collect();
        assert_eq!(stops.len(), 2, "{what}");
        for part in ["reason=\"breakpoint-hit\"", "frame={addr=", "thread-id="] {
            assert!(stops[1].contains(part), "{part}: {what}");
        }
        assert!(text.contains("~\"A parallel region begins"), "{what}");
        assert!(text.contains("=thread-selected,id=\"1\""), "{what}");
        assert!(text.contains("level 1, 2 threads"), "{what}");
        assert!(!text.contains("\\033["), "{what}");
        // Everything is a record: nothing is printed beside them.
        let beside = text.lines().find(|line| !line.starts_with(['~', '&', '^', '*', '=', '@', '(']));
        assert_eq!(beside, None, "{what}");
    }
}
