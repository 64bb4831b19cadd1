//! What is said of threads that wait outside of OpenMP, against what the programs say of themselves.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Skip, build, combinations};

use crate::common::{check_answer, json};

/// The line of a source that has this text.
fn line_of(source: &str, text: &str) -> usize {
    source.lines().position(|line| line.contains(text)).expect(text) + 1
}

/// What the report says of each thread outside of OpenMP, in words, by LWP.
fn texts(report: &Value) -> HashMap<i64, String> {
    let threads = report["os_threads"].as_array().expect("threads").iter();
    threads
        .filter_map(|thread| Some((thread["lwp"].as_i64()?, thread["outside"]["text"].as_str()?.to_owned())))
        .collect()
}

/// The expected words for the thread that has this role, live or in a core. From a core it cannot be known what a descriptor is.
fn expected(role: &str, live: bool) -> String {
    let source = include_str!("../../../test-programs/programs/outside.c");
    let (call, facts) = role.split_once(' ').unwrap_or((role, ""));
    let facts: Vec<&str> = facts.split(' ').collect();
    let what = match (call, &facts[..]) {
        ("read" | "poll", [descriptor, child]) if live => {
            format!("{call} of pipe {descriptor} (its other end: process {child} NAME, writer)")
        }
        ("recv", [descriptor, child]) if live => {
            format!("recv of socket {descriptor} (TCP ADDRESS; its other end: process {child} NAME)")
        }
        ("recvfrom", [descriptor, child]) if live => {
            format!("recvfrom of socket {descriptor} (its other end: process {child} NAME)")
        }
        ("epoll_wait", [descriptor]) if live => format!("epoll_wait of eventfd {descriptor} (count 0)"),
        // The stop of gcore has ended the call.
        ("epoll_wait", _) => call.to_owned(),
        ("read" | "poll" | "recv" | "recvfrom", [descriptor, _]) => format!("{call} of descriptor {descriptor}"),
        ("waitpid", [child]) if live => format!("waitpid for process {child} (child, NAME)"),
        ("waitpid", [child]) => format!("waitpid for process {child}"),
        ("pthread_join", [thread]) => format!("pthread_join of LWP {thread}"),
        ("pthread_mutex_lock", [owner]) => format!("pthread_mutex_lock of mutex (held by LWP {owner})"),
        ("pthread_cond_wait", _) => "pthread_cond_wait of due".to_owned(),
        ("sem_wait", _) => "sem_wait of post".to_owned(),
        _ => call.to_owned(),
    };
    let (before, within) = source.split_once("void wait_in(").expect("the function that waits");
    let line = before.lines().count() - 1 + line_of(within, &format!("{call}("));
    let time = if call == "usleep" { ", for 1000 s" } else { "" };
    format!("{what}, outside.c:{line}, in wait_in{time}")
}

/// The text without what the program cannot know: names of processes, which are cut off, and addresses.
fn plain(text: &str, name: &str) -> String {
    let mut text = text.replace(name, "NAME");
    if let (Some(from), Some(to)) = (text.find("TCP "), text.find("; its other end")) {
        text.replace_range(from + 4..to, "ADDRESS");
    }
    text
}

fn check(what: &str, running: &Running, target: &str, live: bool) -> Vec<String> {
    let (report, _) = json(&["threads", target]);
    let said = texts(&report);
    let name = std::fs::read_to_string(format!("/proc/{}/comm", running.pid)).expect("its name");
    let mut wrong = Vec::new();
    for thread in running.truth.threads.iter().filter(|thread| thread.role != "coordinator") {
        let own = said.get(&i64::from(thread.lwp)).map(|text| plain(text, name.trim_end())).unwrap_or_default();
        let expected = expected(&thread.role, live);
        if own != expected {
            wrong.push(format!("{what}: {own:?} instead of {expected:?}"));
        }
    }
    wrong
}

/// Twice: what was interrupted by the first stop continues by `restart_syscall`, and is still said to be what it was.
#[test]
fn waits_outside_of_openmp_are_what_the_program_says() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        let program = build("outside", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
        let (what, pid) = (format!("{toolchain:?} on {runtime:?}"), running.pid.to_string());
        for look in ["first", "second"] {
            wrong.extend(check(&format!("{what}, {look} look"), &running, &pid, true));
        }
        let directory = tempfile::tempdir().expect("a directory for the core");
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => wrong.extend(check(&format!("{what}, core"), &running, core.to_str().expect("a path"), false)),
            Err(skip) => skip.show(),
        }
        compared += running.truth.threads.len();
        let steps = running.truth.steps();
        assert_eq!(running.release().expect("it goes on").progress, steps, "{what}");
    }
    assert!(compared > 0 || combinations().is_empty());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing in it moves until it is let go on; what its threads were in is said too.
#[test]
fn threads_of_a_stopped_process_are_said_to_be_stopped() {
    let Some((toolchain, runtime)) = combinations().into_iter().next() else { return };
    let program = build("outside", toolchain, Opt::O2, &[]).expect("the program builds");
    let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
    let pid = Pid::from_raw(running.pid);
    kill(pid, Signal::SIGSTOP).expect("SIGSTOP");
    // The signal has been sent; each thread stops when it next has the processor.
    let said = (0..200).map(|_| texts(&json(&["threads", &running.pid.to_string()]).0)).find(|said| {
        let own = running.truth.threads.iter().filter_map(|thread| said.get(&i64::from(thread.lwp)));
        own.clone().count() == running.truth.threads.len()
            && own.clone().all(|text| text.starts_with("stopped by a signal, in "))
    });
    let sleeper = running.truth.threads.iter().find(|thread| thread.role == "usleep").expect("a sleeper");
    let text = said.as_ref().and_then(|said| said.get(&i64::from(sleeper.lwp))).expect("it is stopped");
    assert!(text.starts_with("stopped by a signal, in usleep, outside.c:"), "{text}");
    kill(pid, Signal::SIGCONT).expect("SIGCONT");
    running.release().expect("it goes on");
}

/// A process that is killed at the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Compiles a program of MPI, and runs it alone.
fn start_mpi(compiler: &str, optimized: &str, source: &str, directory: &Path) -> Result<Killed, Skip> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/mpi").join(source);
    let program = directory.join(compiler);
    let compiled =
        Command::new(compiler).args(["-g", optimized, "-fopenmp"]).arg(&source).arg("-o").arg(&program).output();
    let compiled =
        compiled.map_err(|why| Skip::because(format!("{compiler} cannot be run ({why}); ci/setup gets it")))?;
    if !compiled.status.success() {
        let why = String::from_utf8_lossy(&compiled.stderr).into_owned();
        return Err(Skip::because(format!("{compiler} does not work: {why}")));
    }
    let mut child = Command::new(&program)
        .env("OMP_NUM_THREADS", "2")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let child = Killed(child);
    // Libraries write lines of their own.
    for line in lines {
        if line.expect("a line").trim() == "ready" {
            return Ok(child);
        }
    }
    Err(Skip::because(format!("a program built by {compiler} cannot run alone here")))
}

/// What is said of the call of both programs.
const RECEIVES: &str = "MPI_Recv from rank 0 with tag 7 in MPI_COMM_WORLD";

fn receives(compilers: [&str; 2], source: &str, text: &str) {
    // It says that it is ready before it is in the call.
    const LOOKS: usize = 200;
    let optimized = ["-O0", "-O1", "-O2"];
    for (compiler, optimized) in compilers.into_iter().flat_map(|compiler| optimized.map(|flag| (compiler, flag))) {
        let directory = tempfile::tempdir().expect("a directory for the program");
        let program = match start_mpi(compiler, optimized, source, directory.path()) {
            Ok(program) => program,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let pid = program.0.id();
        let mut last = Value::Null;
        let found = (0..LOOKS).any(|_| {
            last = json(&["threads", &pid.to_string()]).0;
            texts(&last).get(&i64::from(pid)).is_some_and(|own| own == text)
        });
        assert!(found, "{compiler}: not {text:?} but {:?}", texts(&last));
        let main = last["os_threads"].as_array().and_then(|all| all.iter().find(|of| of["lwp"] == pid)).expect("it");
        let wait = &main["outside"]["wait"];
        assert_eq!(wait["mpi"], "MPI_Recv", "{compiler} {optimized}");
        let given = ["communicator", "partner", "tag"].map(|of| wait[of]["value"].to_string());
        assert_eq!(given, ["\"MPI_COMM_WORLD\"", "0", "7"], "{compiler} {optimized}");
        check_answer(
            compiler,
            i32::try_from(pid).expect("a process id"),
            ["WAITING"; 2],
            &[
                &["thread 0 has not reached the end of the region that thread 1 waits at"],
                &[&format!("Cause   thread 0 (id {pid}): {text}")],
                &["Fix     Inspect the other ranks too: MPI_Recv returns when another rank has done its part."],
            ],
        );
    }
}

#[test]
fn receive_without_sender_is_named_with_its_line() {
    let line = line_of(include_str!("../../../test-programs/mpi/receive.c"), "MPI_Recv(");
    receives(["mpicc.openmpi", "mpicc.mpich"], "receive.c", &format!("{RECEIVES}, receive.c:{line}, in exchange"));
}

#[test]
fn receive_of_fortran_is_named_as_in_c() {
    let line = line_of(include_str!("../../../test-programs/mpi/receive_fortran.f90"), "call mpi_recv(");
    let text = format!("{RECEIVES}, receive_fortran.f90:{line}, in exchange");
    receives(["mpif90.openmpi", "mpif90.mpich"], "receive_fortran.f90", &text);
}
