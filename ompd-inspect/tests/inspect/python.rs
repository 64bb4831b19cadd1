//! A Python process with two libgomps that wheels brought along, and a forked child of it that hangs in one of them. The child
//! has one thread. The runtime waits for the others, which only the parent has.

use crate::common;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};
use test_programs::transcripts::of_another_system;
use test_programs::{Skip, await_all_blocked, mapped_files};

use crate::transcripts;

/// Members of every region; the script says so too.
const TEAM: u64 = 3;

/// What the parent says.
#[derive(Debug, Deserialize)]
struct Parent {
    child: i32,
    /// Threads of the parent, which the child has not.
    threads: usize,
    /// The libgomp of each package.
    paths: BTreeMap<String, String>,
}

/// What the child says before it hangs.
#[derive(Debug, Deserialize)]
struct Forked {
    child: i32,
    /// What each package's libgomp answers.
    runtimes: BTreeMap<String, Answers>,
}

/// The results of the `omp_get_*` functions of these names, outside any region.
#[derive(Debug, Deserialize)]
struct Answers {
    thread_num: u64,
    num_threads: u64,
    level: u64,
    active_level: u64,
    max_threads: u64,
}

/// The parent, which ends its child when its standard input ends. Killed when dropped; the kernel then kills the child.
struct Python {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Python {
    /// Starts the script; the child will hang in what `again` brought along.
    fn start(again: &str) -> Result<Python, Skip> {
        let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs");
        let interpreter = home.join("runtimes/venv/bin/python");
        if !home.join("runtimes/venv/what").is_file() {
            let missing = interpreter.display();
            return Err(Skip::because(format!("no Python with wheels ({missing}); \"ci/fetch python\" gets it")));
        }
        let mut command = Command::new(interpreter);
        for (name, _) in std::env::vars_os() {
            if ["OMP_", "GOMP_", "LD_", "PYTHON"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.arg(home.join("python/fork_child.py")).arg(again);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().expect("a pipe from standard output"));
        Ok(Python { process, stdin, stdout })
    }

    /// The two lines, which come in any order.
    fn facts(&mut self) -> (Parent, Forked) {
        let mut parent = None;
        let mut forked = None;
        for _ in 0..2 {
            let mut line = String::new();
            self.stdout.read_line(&mut line).expect("a line from Python");
            let value: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?} is no fact: {e}"));
            if value.get("parent").is_some() {
                parent = Some(serde_json::from_value(value).expect("the parent's facts"));
            } else {
                forked = Some(serde_json::from_value(value).expect("the child's facts"));
            }
        }
        (parent.expect("the parent spoke"), forked.expect("the child spoke"))
    }

    /// Lets both end.
    fn finish(mut self) {
        self.stdin = None;
        let status = self.process.wait().expect("Python ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The module named as the one that needs the runtime is mapped, and needs it.
fn check_needed_by(pid: i32, needed_by: &Value, runtime: &str) {
    let chain: Vec<&str> = needed_by["chain"].as_array().expect("a chain").iter().filter_map(Value::as_str).collect();
    let runtime = Path::new(runtime).file_name().and_then(|name| name.to_str()).expect("a file name");
    let [.., module, last] = chain.as_slice() else { panic!("a chain of {chain:?}") };
    assert_eq!(*last, runtime);
    // Python has loaded it, nothing at the start.
    assert_eq!(needed_by["loaded_at_start"], false);
    let mapped = mapped_files(pid).expect("what is mapped");
    let file = mapped.iter().find(|path| path.ends_with(module)).unwrap_or_else(|| panic!("{module} is not mapped"));
    let output = Command::new("readelf").arg("-dW").arg(file).output().expect("readelf runs");
    let needed = String::from_utf8_lossy(&output.stdout);
    let line = format!("[{runtime}]");
    assert!(needed.lines().any(|l| l.contains("(NEEDED)") && l.contains(&line)), "{module} needs {needed}");
}

/// The stack of the child shows the user's call, the package's functions in Python and in machine code, and the region.
fn check_functions(report: &Value, again: &str) {
    let [stack] = report["stacks"].as_array().expect("stacks").as_slice() else { panic!("{}", report["stacks"]) };
    let frames = stack["frames"].as_array().expect("frames");
    let python = |frame: &&Value| frame["language"] == "python";
    let names: Vec<&str> = frames.iter().filter(python).filter_map(|frame| frame["function"].as_str()).collect();
    let (method, user) = match again {
        "faiss" => ("IndexFlat.search", "use_faiss"),
        _ => ("KMeans.fit", "use_sklearn"),
    };
    assert!(names.contains(&method), "{stack}");
    assert_eq!(names[names.len() - 3..], [user, "main", "<module>"], "{stack}");
    assert_eq!(stack["gap"], Value::Null, "{stack}");
    // The region is further in, with the machine code of the package that opened it, and nothing of the interpreter is left.
    let first = frames.iter().position(|frame| python(&frame)).expect("a Python function");
    assert_eq!(frames[0]["construct"], "parallel", "{stack}");
    assert!(first > 1 && frames[first..].iter().all(|frame| python(&frame)), "{stack}");
    let files = frames.iter().filter(python).filter_map(|frame| frame["file"].as_str());
    assert!(files.filter(|file| file.contains("/site-packages/")).count() >= 2, "{stack}");
}

fn hangs_in(again: &str) {
    let mut python = match Python::start(again) {
        Ok(python) => python,
        Err(skip) => return skip.show(),
    };
    let (parent, forked) = python.facts();
    let child = parent.child;
    assert_eq!(forked.child, child);
    assert!(parent.threads > 1, "the parent has no team");
    // It said so before the call that hangs; having reached the hang, it sleeps and goes on sleeping.
    await_all_blocked(child, 1, false).expect("the child hangs");

    let (report, status) = common::json(&[&child.to_string()]);
    assert_eq!((status, &report["issues"]), (0, &json!([])));
    let lwps: Vec<&Value> = report["os_threads"].as_array().expect("threads").iter().map(|t| &t["lwp"]).collect();
    assert_eq!(lwps, [child]);
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let ours: Vec<&str> = runtimes.iter().filter_map(|r| r["path"].as_str()).collect();
    assert_eq!((ours.len(), parent.paths.len()), (2, 2), "{ours:?}, {:?}", parent.paths);
    assert_eq!(report["crowd"]["gone"], 2 * (TEAM - 1), "{}", report["crowd"]);

    for (package, path) in &parent.paths {
        let answers = &forked.runtimes[package];
        let of = format!("{package}'s libgomp");
        let runtime = runtimes.iter().find(|r| r["path"] == **path).unwrap_or_else(|| panic!("no {path}"));
        assert_eq!(runtime["family"], "gomp", "{of}");
        assert_eq!(runtime["missing"], json!([]), "{of}");
        check_needed_by(child, &runtime["needed_by"], path);
        // Of the pool, as of the team, only the thread that forked is there.
        assert_eq!(runtime["pools"], json!([{ "threads": [child, null, null] }]), "{of}");
        let threads = runtime["threads"].as_array().expect("threads");
        assert_eq!(threads.len(), 1, "{of}");
        let thread = &threads[0];
        assert_eq!(thread["lwp"], child, "{of}");
        // Its number is 0 in the team it hangs in, as outside.
        assert_eq!(thread["thread_num"]["value"], answers.thread_num, "{of}");
        assert_eq!(thread["icvs"]["nthreads"]["value"], answers.max_threads, "{of}");
        let teams = runtime["teams"].as_array().expect("teams");
        if package == again {
            assert_eq!(teams.len(), 1, "{of}");
            let team = &teams[0];
            assert_eq!(thread["team"]["value"], 0, "{of}");
            // What a region gets when it is not told otherwise.
            assert_eq!(team["size"]["value"], answers.max_threads, "{of}");
            assert_eq!(answers.max_threads, TEAM, "{of}");
            assert_eq!(team["level"]["value"], answers.level + 1, "{of}");
            assert_eq!(team["active_level"]["value"], answers.active_level + 1, "{of}");
            assert_eq!(team["members"], json!([child, null, null]), "{of}");
            let wait = &thread["wait"]["value"];
            assert!(wait["kind"] == "barrier" || wait["kind"] == "end of region", "{of}: {}", thread["wait"]);
            assert_eq!(wait["team"], 0, "{of}");
        } else {
            assert_eq!(teams.len(), 0, "{of}");
            assert_eq!((answers.level, answers.num_threads), (0, 1), "{of}");
            assert_eq!(thread["team"].get("value"), Some(&Value::Null), "{of}");
            assert_eq!(thread["wait"].get("value"), Some(&Value::Null), "{of}");
        }
    }

    check_functions(&report, again);

    let user = if again == "faiss" { "called at " } else { "_kmeans.py:" };
    common::check_answer(
        &format!("fork child of {again}"),
        child,
        // A core does not say which handlers of signals there are, and libraries that can set one are loaded.
        ["DEADLOCK", "SUSPECT"],
        &[
            &["threads that fork left behind"],
            &["Cause   thread 0", &format!("(id {child})"), user, "in Python"],
            &["Fix     Do not use OpenMP in the child of a fork"],
        ],
    );
    let pid = child.to_string();
    let (summary, _, _) = common::texts(&common::run(&[&pid]));
    // However the sentence is broken into lines.
    let plain: Vec<&str> = summary.split_whitespace().collect();
    let said = plain.join(" ").contains("threads that fork left behind");
    assert!(said && summary.contains("DEADLOCK"), "{summary}");
    let (doctor, _, status) = common::texts(&common::run(&["doctor", &pid]));
    assert_eq!((status, doctor.matches("needed by").count()), (0, 2), "{doctor}");
    for path in parent.paths.values() {
        assert!(doctor.contains(path), "{path} is not in {doctor}");
    }
    // From its parent it is found as well.
    let parent = python.process.id().to_string();
    let (family, _, status) = common::texts(&common::run(&["--children", "--fail-on", "deadlock", &parent]));
    let plain: Vec<&str> = family.split_whitespace().collect();
    let expected = format!("2 processes: DEADLOCK in 1 DEADLOCK {child} ");
    assert!(status == 3 && plain.join(" ").starts_with(&expected), "{family}");
    python.finish();
}

#[test]
fn the_child_hangs_in_faiss() {
    hangs_in("faiss");
}

#[test]
fn the_child_hangs_in_scikit_learn() {
    hangs_in("sklearn");
}

/// The page whose program and reports are compared.
const PAGE: &str = "docs/python.md";

/// Python executes it at its start. Any process may inspect this one and its children, which end with it. It forks when all other
/// threads sleep: until then, they may still be on their way to where they wait for the next region.
const SITE: &str = "\
import ctypes, os, threading
def allow():
    PR_SET_PDEATHSIG, PR_SET_PTRACER, SIGKILL = 1, 0x59616D61, 9
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1, 0, 0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
def sleeps(task):
    with open(f'/proc/self/task/{task}/stat') as stat:
        return stat.read().rpartition(')')[2].split()[0] == 'S'
def settle():
    others = set(os.listdir('/proc/self/task')) - {str(threading.get_native_id())}
    while not all(map(sleeps, others)):
        os.sched_yield()
allow()
os.register_at_fork(before=settle, after_in_child=allow)
";

/// Ends the process with the test. The kernel then ends its child.
struct Clusters(Child);

impl Drop for Clusters {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program of the page. Its child hangs some time later.
fn start_clusters(directory: &Path) -> Result<Clusters, Skip> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let interpreter = home.join("test-programs/runtimes/venv/bin/python");
    if !interpreter.is_file() {
        return Err(Skip::because("no Python with wheels; \"ci/fetch python\" gets it"));
    }
    if let Some(skip) = of_another_system() {
        return Err(skip);
    }
    let asked = "import sys, sklearn; print(sys.version_info[:3], sklearn.__version__)";
    let versions = Command::new(&interpreter).args(["-c", asked]).output().expect("Python runs").stdout;
    if versions != b"(3, 11, 7) 1.9.1\n" {
        let versions = String::from_utf8_lossy(&versions);
        return Err(Skip::because(format!("the page shows CPython 3.11.7 and scikit-learn 1.9.1, here: {versions}")));
    }
    let page = std::fs::read_to_string(home.join(PAGE)).expect(PAGE);
    let (_, rest) = page.split_once("```python\n").expect("a program");
    let (program, _) = rest.split_once("```").expect("the end of the program");
    std::fs::write(directory.join("clusters.py"), program).expect("it is written");
    std::fs::write(directory.join("sitecustomize.py"), SITE).expect("it is written");
    let mut command = Command::new(interpreter);
    for (name, _) in std::env::vars_os() {
        if ["OMP_", "GOMP_", "LD_", "PYTHON"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    // The library for matrices would have a thread for each processor.
    command.env("OMP_NUM_THREADS", "4").env("OPENBLAS_NUM_THREADS", "1");
    command.env("PYTHONPATH", directory).current_dir(directory);
    Ok(Clusters(command.arg("clusters.py").stdin(Stdio::null()).spawn().expect("Python starts")))
}

#[test]
fn reports_of_the_page_are_current() {
    let directory = tempfile::tempdir().expect("a directory");
    let parent = match start_clusters(directory.path()) {
        Ok(parent) => parent,
        Err(skip) => return skip.show(),
    };
    let own = i32::try_from(parent.0.id()).expect("a process id");
    // The first use of the library may start a program that asks for the processors.
    let is_child = |pid: i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.windows(b"clusters.py".len()).any(|part| part == b"clusters.py")
    };
    let child = loop {
        let all = ompd_process::live::listing::descendants(Path::new("/proc"), own);
        let child = all.iter().map(|process| process.pid).find(|pid| is_child(*pid));
        // It says nothing before it hangs.
        if let Some(child) = child.filter(|child| await_all_blocked(*child, 1, false).is_ok())
            && common::texts(&common::run(&[&child.to_string()])).0.starts_with("DEADLOCK")
        {
            break child.to_string();
        }
        assert!(
            ompd_process::live::listing::processes(Path::new("/proc"))
                .is_ok_and(|all| all.iter().any(|p| p.pid == own))
        );
        std::thread::yield_now();
    };
    for (arguments, is_part) in [(&["stacks"][..], false), (&[], true)] {
        let (printed, error, status) = common::texts(&common::run(&[arguments, &[&child]].concat()));
        assert_eq!((error.as_str(), status), ("", 0), "{printed}");
        transcripts::check_nth(PAGE, (&arguments.concat(), 0), &child, &printed, is_part);
    }
}
