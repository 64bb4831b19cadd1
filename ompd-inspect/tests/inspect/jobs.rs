//! Jobs of several ranks, started by the launchers of MPI.

use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use test_programs::Skip;
use test_programs::transcripts::of_another_system;

use crate::common::{command, run, texts};
use crate::top::Screen;
use crate::transcripts;

const RANKS: usize = 4;
/// The rank that the others wait for.
const CULPRIT: usize = 2;

/// The lines of `mpi/ranks.c` with the call that waits for the lock, and with the barrier.
pub const LOCK: usize = 11;
pub const BARRIER: usize = 16;

/// A launcher whose ranks end with it.
struct Job {
    launcher: Child,
    /// The program.
    name: &'static str,
    /// A launcher that can no longer write ends, and its ranks with it.
    output: ChildStdout,
}

impl Drop for Job {
    fn drop(&mut self) {
        for rank in ranks(self) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(rank), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// The processes of the program that a launcher has started, at whatever distance.
fn ranks(job: &Job) -> Vec<i32> {
    let pid = i32::try_from(job.launcher.id()).expect("a process id");
    let all = ompd_process::live::listing::descendants(Path::new("/proc"), pid);
    all.into_iter().filter(|process| process.name == job.name).map(|process| process.pid).collect()
}

/// Compiles the program; a reason if that cannot be done here.
pub fn compiled(library: &str, name: &str, directory: &Path) -> Result<PathBuf, Skip> {
    compiled_as(library, &format!("{name}.c"), "-O1", directory)
}

fn compiled_as(library: &str, source: &str, optimized: &str, directory: &Path) -> Result<PathBuf, Skip> {
    let (name, language) = source.split_once('.').expect("a name with the language behind it");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/mpi").join(source);
    let compiler = format!("{}.{library}", if language == "c" { "mpicc" } else { "mpif90" });
    let program = directory.join(name);
    let compiled =
        Command::new(&compiler).args(["-g", optimized, "-fopenmp"]).arg(source).arg("-o").arg(&program).output();
    let compiled =
        compiled.map_err(|why| Skip::because(format!("{compiler} cannot be run ({why}); ci/setup gets it")))?;
    match compiled.status.success() {
        true => Ok(program),
        false => Err(Skip::because(format!("{compiler}: {}", String::from_utf8_lossy(&compiled.stderr)))),
    }
}

/// Compiles the program and starts it on all ranks; a reason if that cannot be done here.
fn start(library: &str, name: &'static str, directory: &Path) -> Result<Job, Skip> {
    start_program(library, name, &compiled(library, name, directory)?)
}

fn start_program(library: &str, name: &'static str, program: &Path) -> Result<Job, Skip> {
    let launcher = format!("mpirun.{library}");
    let mut command = Command::new(&launcher);
    if library == "openmpi" {
        // Four ranks on however few processors, by whoever runs the tests.
        command.arg("--oversubscribe").env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        // A rank that waits lets the others have the processor.
        command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    }
    let mut child = command
        .args(["-np", &RANKS.to_string()])
        // The shell has the rank too, and waits for the program.
        .args(["sh", "-c", "\"$0\"; exit $?"])
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|why| Skip::because(format!("{launcher} cannot be run ({why})")))?;
    let output = child.stdout.take().expect("its output");
    let mut job = Job { launcher: child, name, output };
    let begun = begun(&mut job.output, RANKS);
    match begun == RANKS {
        true => Ok(job),
        false => Err(Skip::because(format!("{launcher} has started {begun} of {RANKS} ranks, and ended"))),
    }
}

/// Waits until the ranks have said that they have begun, or until they have ended: how many have.
pub fn begun(output: impl std::io::Read, ranks: usize) -> usize {
    let mut begun = 0;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    while begun < ranks
        && let Some(line) = lines.next()
    {
        // MPICH's launcher puts lines of ranks that write at the same time into one.
        begun += line.matches("ready").count();
    }
    begun
}

fn reports(job: &Job, directory: &Path) -> Vec<String> {
    let write = |pid: i32| {
        let output = command().args(["--json", &pid.to_string()]).output().expect("ompd-inspect can be started");
        let file = directory.join(format!("{pid}.json"));
        std::fs::write(&file, output.stdout).expect("the report is written");
        file.to_str().expect("a plain path").to_owned()
    };
    ranks(job).into_iter().map(write).collect()
}

fn one_rank_differs(library: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let job = match start(library, "ranks", directory.path()) {
        Ok(job) => job,
        Err(skip) => return skip.show(),
    };
    let mut last = String::new();
    // All have to be where they stay.
    for _ in 0..100 {
        let files = reports(&job, directory.path());
        assert_eq!(files.len(), RANKS, "{library}");
        let args: Vec<&str> = ["merge"].into_iter().chain(files.iter().map(String::as_str)).collect();
        let (text, error, _) = texts(&run(&args));
        last = format!("{text}{error}");
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let pid = |of: &str| of.split("pid ").nth(1).and_then(|rest| rest.split(')').next()).map(str::to_owned);
        // Whether the lock's owner may still come is for MPI's progress threads to tell.
        let first = ["DEADLOCK", "SUSPECT", "WAITING"].iter().find_map(|word| plain.split(&format!("{word} ")).nth(1));
        let first = first.unwrap_or_default();
        let is_first = first.starts_with(&format!("rank {CULPRIT} ("));
        let told = plain.contains(&format!("rank {CULPRIT}: omp_set_lock, ranks.c:{LOCK}, in update"))
            && plain.contains(&format!("3 ranks (0-1,3): MPI_Barrier, ranks.c:{BARRIER}, in exchange"));
        if is_first && told && plain.contains("4 ranks of job ") | plain.contains("4 ranks on ") {
            assert!(plain.contains("grid_lock"), "{text}");
            let culprit = pid(first).and_then(|pid| pid.parse().ok()).expect("its process id");
            assert!(ranks(&job).contains(&culprit), "{text}");
            // Merged in two steps it is the same.
            let merged = |files: &[&str]| {
                let output = command().args(["merge", "--json"]).args(files).output().expect("it runs");
                // Also where these are not all ranks of the job.
                assert_eq!(output.status.code(), Some(0));
                let output = output.stdout;
                let file = directory.path().join(format!("merged-{}", files.len()));
                std::fs::write(&file, &output).expect("it is written");
                (file.to_str().expect("a plain path").to_owned(), output)
            };
            // The launcher's process is enough to find them all, and the report is the same but for its moment.
            let found = command().args(["job", "--pid", &job.launcher.id().to_string()]).output().expect("it runs");
            let (text, error, status) = texts(&found);
            crate::cluster::check_first_lines(&text, library, "", RANKS);
            assert!(status == 0 && !text.contains("Several reports"), "{text}{error}");
            let named = pid(&text).and_then(|pid| pid.parse().ok()).expect("a process id");
            assert!(ranks(&job).contains(&named), "{text}");
            let (_, flat) = merged(&args[1..]);
            let (half, _) = merged(&args[1..3]);
            let (_, tree) = merged(&[args[4], &half, args[3], args[2], &half]);
            assert_eq!(flat, tree);
            // All in one stream too.
            let whole: Vec<u8> =
                files.iter().flat_map(|file| std::fs::read(file).expect("a report")).chain(flat.clone()).collect();
            assert_eq!(from_standard_input(&whole), flat);
            every_form_has_the_culprit(&files, culprit);
            if library == "openmpi" {
                tree_of_the_page_is_current(&args);
            }
            again_and_again(&job);
            in_a_core(&directory.path().join("cores"), culprit);
            let known = if library == "openmpi" { "Open MPI" } else { "MPICH" };
            for file in &files {
                let report: serde_json::Value =
                    serde_json::from_slice(&std::fs::read(file).expect("a report")).expect("JSON");
                let mpi = &report["process"]["rank"]["mpi"];
                let in_file = mpi["file"].as_str().is_some_and(|file| file.contains("/libmpi"));
                assert!(mpi["library"] == known && in_file, "{library}: {mpi}");
            }
            return;
        }
    }
    panic!("{library}: {last}");
}

/// The live view shows what one report shows, and leaves nothing behind.
fn again_and_again(job: &Job) {
    let pid = job.launcher.id().to_string();
    let view = ["job", "--top", "--interval", "200ms", "--pid", &pid];
    // Ranks that spin leave little time to stop them all in a short one.
    let slowly = ["job", "--top", "--interval", "4s", "--count", "2", "--pid", &pid];
    let (text, error, status) = texts(&run(&slowly));
    assert_eq!((error.as_str(), status), ("", 0), "{text}");
    let (first, second) = text.split_once("refresh 2\n").expect("two refreshes");
    for report in [first, second] {
        assert!(report.contains(&format!("rank {CULPRIT} (")) && report.contains("\n4 ranks"), "{text}");
    }
    assert!(second.contains("Between the looks no process has moved: 4 ranks (0-3)"), "{text}");
    let json = run(&[&view[..], &["--json", "--count", "1"]].concat()).stdout;
    let line: serde_json::Value = serde_json::from_slice(&json).expect("a document");
    assert_eq!(line["schema"], "ompd-inspect-merged/1", "{line}");
    assert_eq!(json.iter().filter(|byte| **byte == b'\n').count(), 1);

    // On a terminal, with keys.
    let mut screen = Screen::of(12, 80, &view);
    screen.await_all(&["ompd-inspect job  ", "every 200 ms", "lock grid_lock", "lines 1-10 of"]);
    screen.press("G");
    screen.await_all(&["MPI_Barrier, ranks.c:16, in exchange"]);
    screen.press("p");
    screen.await_all(&["PAUSED"]);
    screen.press("q");
    let (status, left) = screen.end();
    assert!(status.success() && left.contains("Main threads"), "{status}: {left}");
    let all = ompd_process::live::listing::processes(Path::new("/proc")).expect("processes are listed");
    let node = ["job-node", "--below", &pid];
    let left: Vec<i32> = all
        .into_iter()
        .filter(|process| node.iter().all(|word| process.arguments().contains(&(*word).to_owned())))
        .map(|process| process.pid)
        .collect();
    assert!(left.is_empty(), "{left:?}");

    // If nobody reports any more although the ranks go on, that is said, and it is no end of the job.
    let mut view = command().args(view).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut output = BufReader::new(view.stdout.take().expect("its output")).lines();
    assert!(output.any(|line| line.expect("a line").ends_with("refresh 1")));
    let all = ompd_process::live::listing::processes(Path::new("/proc")).expect("processes are listed");
    let own = i32::try_from(view.id()).expect("a process id");
    let node = all.iter().find(|process| process.parent == own).expect("it asks this host");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(node.pid), nix::sys::signal::Signal::SIGKILL)
        .expect("it is sent");
    // It writes until it ends.
    output.for_each(drop);
    let ended = view.wait_with_output().expect("its end");
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(2) && error.contains("no host reports any more"), "{error}");

    // A rank has started none.
    let (_, error, status) = texts(&run(&["job", "--top", "--pid", &ranks(job)[0].to_string()]));
    assert!(status == 2 && error.contains("no rank of process"), "{error}");
    let (_, error, status) = texts(&run(&["job", "--top", "--samples", "2", "--pid", &pid]));
    assert!(status == 2 && error.contains("has no option --samples"), "{error}");
}

/// What `merge --json -` makes of these documents.
fn from_standard_input(documents: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(documents).expect("it is written");
    file.rewind().expect("it can be read");
    let output = command().args(["merge", "--json", "-"]).stdin(file).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A library may have changed the environment that the core has.
fn in_a_core(directory: &Path, culprit: i32) {
    std::fs::create_dir(directory).expect("a directory");
    match test_programs::gcore(culprit, directory).expect("gcore can be run") {
        Ok(core) => {
            let (text, error, _) = texts(&run(&["job", "--cores", core.to_str().expect("a plain path")]));
            assert!(text.contains(&format!("rank {CULPRIT} (pid {culprit}): ")), "{text}{error}");
            assert!(text.contains("No report of 3 ranks (0-1,3)"), "{text}{error}");
        }
        Err(skip) => skip.show(),
    }
}

/// A process with a rank, whatever it does.
struct Wrapped(Child);

impl Drop for Wrapped {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).expect("a process id");
        for process in ompd_process::live::listing::descendants(Path::new("/proc"), pid) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process.pid), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The rank is what `timeout` and shells have started, whether it has a runtime or not.
#[test]
fn a_rank_below_programs_that_start_others_is_the_program() {
    let script = "PMI_RANK=0 PMI_SIZE=1 timeout 1000 sh -c 'echo ready; sleep 999; :'; exit $?";
    let spawned = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn();
    let mut job = Wrapped(spawned.expect("a shell"));
    let mut output = job.0.stdout.take().expect("its output");
    assert_eq!(begun(&mut output, 1), 1);
    let mut last = String::new();
    // Until the shell has started it.
    for _ in 0..100 {
        let (text, error, _) = texts(&run(&["job", "--json", "--pid", &job.0.id().to_string()]));
        let merged: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let pid = &merged["inspected"]["examples"][0]["pid"];
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name == "sleep\n" {
            assert_eq!(merged["inspected"]["ranks"][""], "0", "{text}");
            return;
        }
        last = format!("{name}{text}{error}");
    }
    panic!("{last}");
}

#[test]
fn ranks_of_another_user_are_refused_with_the_reason() {
    if !nix::unistd::geteuid().is_root() {
        return Skip::because("another user's job: only root can be another user").show();
    }
    let job = Wrapped(Command::new("sh").args(["-c", "PMI_RANK=0 sleep 999; :"]).spawn().expect("a shell"));
    let directory = tempfile::tempdir().expect("a directory");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everybody).expect("permissions are set");
    let copy = directory.path().join("ompd-inspect");
    std::fs::copy(env!("CARGO_BIN_EXE_ompd-inspect"), &copy).expect("a copy that everybody may execute");
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    let output = other.args(["job", "--pid", &job.0.id().to_string()]).output().expect("setpriv");
    let (_, error, status) = texts(&output);
    assert!(status == 2 && error.contains("is another user's: its ranks cannot be found"), "{status}: {error}");
    assert!(error.contains("remedy: run this as that user, or as root"), "{error}");
}

fn every_form_has_the_culprit(files: &[String], culprit: i32) {
    let form = |form: &str| {
        let args: Vec<&str> = ["merge", form].into_iter().chain(files.iter().map(String::as_str)).collect();
        let (out, error, status) = texts(&run(&args));
        assert_eq!((error.as_str(), status), ("", 0), "{form}: {out}");
        out
    };
    let tree = form("--tree").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(tree.contains(&format!("rank {CULPRIT} (")) || tree.contains(&format!("rank {CULPRIT}, ")), "{tree}");
    assert!(tree.contains(&format!("update ranks.c:{LOCK} > omp_set_lock")), "{tree}");
    assert!(tree.contains("3 ranks (0-1,3), 1 thread each"), "{tree}");
    let dot = form("--dot");
    assert!(dot.starts_with("digraph ranks {\n") && dot.contains(&format!("[label=\"rank {CULPRIT}")), "{dot}");
    let page = form("--html");
    let file = files.iter().find(|file| file.ends_with(&format!("/{culprit}.json"))).expect("its report");
    assert!(page.contains(&format!("href=\"file://{file}\"")), "{page}");
    assert!(page.contains(&format!("ompd-inspect stacks {culprit}")) && page.contains("omp_set_lock"), "{page}");
    let found = Command::new("dot").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        let svg = form("--svg");
        let nodes = dot.lines().filter(|line| line.contains(" [label=") && !line.contains(" -> ")).count();
        assert_eq!(svg.matches("class=\"node\"").count(), nodes, "{svg}");
    }
}

/// The page shows the same job.
fn tree_of_the_page_is_current(args: &[&str]) {
    if let Some(skip) = of_another_system() {
        return skip.show();
    }
    let (printed, error, status) = texts(&run(&[&["merge", "--tree"], &args[1..]].concat()));
    assert_eq!((error.as_str(), status), ("", 0), "{printed}");
    let host = nix::unistd::gethostname().expect("the name of the host");
    let printed = printed.replacen(&format!(" on {},", host.display()), " on n1,", 1);
    transcripts::check("docs/jobs.md", "merge --tree", "*.json", &printed, false);
}

#[test]
fn thousands_of_files_and_one_stream_of_them_give_the_same() {
    const FILES: usize = 3000;
    let directory = tempfile::tempdir().expect("a directory");
    let (mut files, mut stream) = (Vec::new(), Vec::new());
    for rank in 0..FILES {
        let report = format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":{},"host":"n{}","rank":{{"number":{rank},"size":{FILES},"job":"7.0"}}}},
            "answer":{{"word":"RUNNING","text":"1 of 1 OpenMP thread"}},"stacks":[{{"lwp":1,"frames":[{{"function":"main"}}]}}]}}"#,
            rank + 100,
            rank / 8
        );
        let file = directory.path().join(format!("{rank}.json"));
        std::fs::write(&file, &report).expect("it is written");
        files.push(file);
        stream.extend(report.into_bytes());
    }
    let output = command().args(["merge", "--json"]).args(&files).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(from_standard_input(&stream), output.stdout);
    let merged: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(merged["inspected"]["ranks"]["7.0"], "0-2999");
    // One line a document, so that those of several nodes do not mix.
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    // A document that is cut is named, and the next one counts.
    stream.truncate(stream.len() - 20);
    stream.extend(b"\n".iter().chain(&output.stdout));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&stream).expect("it is written");
    let (text, _, status) = texts(&run(&["merge", file.path().to_str().expect("a plain path")]));
    assert!(text.contains("\n3,000 ranks of job 7.0 on 375 hosts: n[0-374]\n"), "{text}");
    assert!(status == 1 && text.contains("document 3000: no report: "), "{status}: {text}");
}

#[test]
fn the_rank_that_differs_is_first_under_open_mpi() {
    one_rank_differs("openmpi");
}

#[test]
fn the_rank_that_differs_is_first_under_mpich() {
    one_rank_differs("mpich");
}

/// Asks until the answer has all of these.
fn answers(library: &str, job: &Job, options: &[&str], wanted: &[&str]) -> String {
    let pid = job.launcher.id().to_string();
    let mut last = String::new();
    for _ in 0..50 {
        let (text, error, _) = texts(&run(&[&["job"], options, &["--pid", &pid]].concat()));
        last = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if wanted.iter().all(|part| last.contains(part)) {
            return last;
        }
        last.push_str(&error);
    }
    panic!("{library}: not {wanted:?}: {last}");
}

#[test]
fn ranks_that_wait_for_messages_of_each_other_are_a_suspicion() {
    for library in ["openmpi", "mpich"] {
        let directory = tempfile::tempdir().expect("a directory");
        let job = match start(library, "cycle", directory.path()) {
            Ok(job) => job,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        answers(
            library,
            &job,
            &[],
            &[
                "Suspicion: 2 ranks wait for each other: rank 0 in MPI_Recv from rank 1, rank 1 in MPI_Recv from rank 0.",
                "2 ranks (2-3) of 4 are in MPI_Barrier of MPI_COMM_WORLD, called at cycle.c:23, in main",
                "2 ranks (0-1) are in no collective call: MPI_Recv, cycle.c:10, in swap",
            ],
        );
    }
}

#[test]
fn barriers_of_two_communicators_and_a_ring_of_sends_are_suspicions() {
    let orders = [
        "Suspicion: different collective calls at once (rank 0 in MPI_Barrier of MPI_COMM_WORLD, 3 ranks (1-3) in MPI_Barrier of \
         another communicator). All ranks have to call those of MPI_COMM_WORLD.",
        "3 ranks (1-3) of 4 are in MPI_Barrier of another communicator, called at orders.c:19, in main",
    ];
    let sends = ["Suspicion: all 4 ranks are in MPI_Send, and no rank is in a call that receives."];
    for library in ["openmpi", "mpich"] {
        for (program, wanted) in [("orders", &orders[..]), ("sends", &sends)] {
            let directory = tempfile::tempdir().expect("a directory");
            match start(library, program, directory.path()) {
                Ok(job) => drop(answers(library, &job, &[], wanted)),
                Err(skip) => skip.show(),
            }
        }
    }
}

/// Arguments on the stack, and those of the function around the call: however it is compiled.
#[test]
fn communicators_on_the_stack_and_arguments_passed_on_are_read() {
    let ways = ["-O0", "-O1", "-O2", "-O3"];
    let programs = [("given", "given.c"), ("given_fortran", "given_fortran.f90")];
    for library in ["openmpi", "mpich"] {
        for ((name, source), optimized) in programs.iter().flat_map(|of| ways.map(|way| (*of, way))) {
            let directory = tempfile::tempdir().expect("a directory");
            let compiled = compiled_as(library, source, optimized, directory.path());
            let job = match compiled.and_then(|program| start_program(library, name, &program)) {
                Ok(job) => job,
                Err(skip) => {
                    skip.show();
                    continue;
                }
            };
            let of_rank = |rank: usize, function: &str, subroutine: &str| {
                let line = 1 + std::fs::read_to_string(
                    Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/mpi").join(source),
                )
                .expect("the source")
                .lines()
                .position(|line| line.to_lowercase().contains(&format!("{}(", function.to_lowercase())))
                .expect("its call");
                let what = format!("of MPI_COMM_WORLD, called at {source}:{line}, in {subroutine}");
                format!("rank {rank} of 4 is in {function} {what}")
            };
            answers(
                &format!("{library} {source} {optimized}"),
                &job,
                &[],
                &[
                    &of_rank(0, "MPI_Reduce", "reduce"),
                    &of_rank(1, "MPI_Gather", "gather"),
                    "rank 3 is in MPI_Recv from rank 2, which is in MPI_Sendrecv, ",
                ],
            );
            let json = run(&["job", "--json", "--pid", &job.launcher.id().to_string()]).stdout;
            let merged: serde_json::Value = serde_json::from_slice(&json).expect("a document");
            let calls = merged["calls"].as_array().expect("calls");
            let swap = calls.iter().find(|call| call["function"] == "MPI_Sendrecv").expect("the call of rank 2");
            assert_eq!(swap["communicator"], "MPI_COMM_WORLD", "{library} {source} {optimized}");
        }
    }
}

/// What a wait is for is in the request of Open MPI; of MPICH it is not known.
#[test]
fn a_wait_for_a_request_names_whose_message_it_is_for() {
    for (library, optimized) in
        [("openmpi", "-O0"), ("openmpi", "-O1"), ("openmpi", "-O2"), ("openmpi", "-O3"), ("mpich", "-O1")]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let compiled = compiled_as(library, "requests.c", optimized, directory.path());
        let job = match compiled.and_then(|program| start_program(library, "requests", &program)) {
            Ok(job) => job,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let places = "rank 3: MPI_Barrier, requests.c:26, in main 3 ranks (0-2): MPI_Wait, requests.c:11, in await";
        let cycle = "Suspicion: 2 ranks wait for each other: rank 0 in MPI_Wait for a message from rank 1, rank 1 in MPI_Wait for a \
                     message from rank 0.";
        if library == "mpich" {
            let told = answers(library, &job, &[], &[places]);
            assert!(!told.contains("wait for each other"), "{told}");
            continue;
        }
        answers(library, &job, &[], &[places, cycle]);
        let third = ranks(&job)[2];
        let wait = (0..LOOKS).find_map(|_| wait_in(third, &["MPI_Wait"])).expect("the wait of rank 2");
        assert_eq!(wait["communicator"]["value"], "MPI_COMM_WORLD", "{optimized}: {wait}");
        assert_eq!(wait["partner"]["value"], -1, "{optimized}: {wait}");
    }
}

/// What a loop has added to an argument before the call is taken off again. What cannot be is not told.
#[test]
fn arguments_that_have_changed_before_the_call_are_right_or_unknown() {
    partners_and_tags("moving", [(1, 41), (2, 2), (3, 1), (2, 9)], |rank| rank == 0);
}

/// A call in one case of a `switch` is reached through a table of jumps.
#[test]
fn arguments_of_calls_in_the_cases_of_a_switch_are_known() {
    partners_and_tags("choices", [(1, 11), (2, 12), (3, 13), (0, 14)], |_| cfg!(target_arch = "x86_64"));
}

/// Looks at a rank: it says that it is ready before it is in the call, and a look may find it between two steps of the library.
const LOOKS: usize = 200;

/// The wait of a process in one of these calls of MPI, if it is in one.
fn wait_in(pid: i32, functions: &[&str]) -> Option<serde_json::Value> {
    let report: serde_json::Value =
        serde_json::from_slice(&run(&["--json", "threads", &pid.to_string()]).stdout).expect("a report");
    let threads = report["os_threads"].as_array().expect("threads");
    let mut waits = threads.iter().map(|thread| &thread["outside"]["wait"]);
    waits.find(|wait| functions.iter().any(|function| wait["mpi"] == *function)).cloned()
}

/// Of whom each rank receives a message of which tag: that, or nothing, and that if it is to be known of the rank.
fn partners_and_tags(program: &'static str, truth: [(i64, i64); RANKS], is_known: fn(usize) -> bool) {
    let ways = ["-O0", "-O1", "-O2", "-O3"];
    for (library, optimized) in ["openmpi", "mpich"].into_iter().flat_map(|library| ways.map(|way| (library, way))) {
        let directory = tempfile::tempdir().expect("a directory");
        let compiled = compiled_as(library, &format!("{program}.c"), optimized, directory.path());
        let job = match compiled.and_then(|compiled| start_program(library, program, &compiled)) {
            Ok(job) => job,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        for (rank, (pid, (partner, tag))) in ranks(&job).into_iter().zip(truth).enumerate() {
            let wait = (0..LOOKS).find_map(|_| wait_in(pid, &["MPI_Recv", "MPI_Wait"])).expect("it is in the call");
            let told = ["partner", "tag"].map(|of| wait[of]["value"].as_i64());
            let right = [Some(partner), Some(tag)];
            let is_right = told == right
                || !is_known(rank) && told.iter().zip(right).all(|(told, right)| told.is_none() || *told == right);
            assert!(is_right, "{library} {optimized}, rank {rank}: {wait}");
        }
    }
}

#[test]
fn the_rank_that_is_behind_in_a_loop_and_the_ranks_that_move_are_named() {
    let (library, directory) = ("openmpi", tempfile::tempdir().expect("a directory"));
    let job = match start(library, "straggler", directory.path()) {
        Ok(job) => job,
        Err(skip) => return skip.show(),
    };
    // Two threads have an iteration each.
    let told = answers(
        library,
        &job,
        &["--samples", "2", "--interval", "200ms"],
        &[
            "Loops of the region at straggler.c:15, in main: the next chunk begins at 12 in rank 0 (",
            "Between the looks 2 ranks (0-1) have not moved; 2 ranks (2-3) have",
        ],
    );
    assert!(told.contains("Whether it is the same execution of the same loop is unknown"), "{told}");
}

#[test]
fn a_rank_that_cannot_be_inspected_is_named_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let job = match start("openmpi", "straggler", directory.path()) {
        Ok(job) => job,
        Err(skip) => return skip.show(),
    };
    let is_third = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == b"OMPI_COMM_WORLD_RANK=3" as &[u8])
    };
    let third = ranks(&job).into_iter().find(is_third).expect("rank 3");
    // It has a tracer: this thread, as long as it lives.
    let traced = nix::unistd::Pid::from_raw(third);
    nix::sys::ptrace::seize(traced, nix::sys::ptrace::Options::empty()).expect("it is ours");
    let (text, error, status) = texts(&run(&["job", "--pid", &job.launcher.id().to_string()]));
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(status, 1, "{text}{error}");
    assert!(plain.contains("No report of rank 3 of job "), "{text}");
    let named = plain.split("Not inspected: ").nth(1).expect("a reason");
    assert!(named.starts_with("rank 3 (") && named.contains(&format!("pid {third}): ")), "{text}");
    assert!(named.contains("traced by process "), "{text}");
}

#[test]
fn what_is_no_report_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("core");
    std::fs::write(&file, "no JSON").expect("it is written");
    let (text, error, status) = texts(&run(&["merge", file.to_str().expect("a plain path"), "/nonexistent"]));
    assert_eq!((text.as_str(), status), ("", 2));
    assert!(error.contains("no report could be read") && error.contains("remedy: make reports with"), "{error}");
}
