//! Jobs on several hosts: nodes of a real Slurm, and hosts that are reached by a real ssh, all of them on this machine.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ompd_process::live::listing;
use test_programs::Skip;

use crate::common::{command, texts};
use crate::jobs::{BARRIER, LOCK, begun, compiled};
use crate::transcripts;

const RANKS: usize = 8;
const NODES: usize = 4;
/// The programs that Slurm runs here.
const PROGRAMS: [&str; 2] = ["ranks", "alone"];

/// A process that ends with this.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn skip(why: impl Into<String>) -> Skip {
    Skip::because(format!("{}; ci/fetch cluster gets what is needed", why.into()))
}

/// A program of the system, which may be in no PATH of an ordinary user.
fn program(name: &str) -> Result<PathBuf, Skip> {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    found.ok_or_else(|| skip(format!("there is no {name}")))
}

/// Starts a daemon, and waits until it says on standard error that it is ready.
fn start(command: &mut Command, ready: &str) -> Result<Daemon, Skip> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|why| skip(format!("{command:?}: {why}")))?;
    let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines().map_while(Result::ok);
    let daemon = Daemon(child);
    let mut said = Vec::new();
    for line in lines.by_ref() {
        let is_ready = line.contains(ready);
        said.push(line);
        if is_ready {
            // What it says later must go somewhere.
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(daemon);
        }
    }
    Err(Skip::because(format!("{command:?} has ended: {}", said.join("; "))))
}

/// Ports that nobody has.
fn ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("its address").port()).collect()
}

fn text_of(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output().expect("a program of every system");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Kills a process and waits until it has ended.
fn end(pid: i32) {
    let Some(process) = rustix::process::Pid::from_raw(pid) else { return };
    let Ok(descriptor) = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()) else { return };
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    let mut ended = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    let _ = poll(&mut ended, PollTimeout::NONE);
}

/// Waits for the end of all processes that have these arguments.
fn ends_by_itself(arguments: &[&str]) {
    let all = listing::processes(Path::new("/proc")).expect("processes are listed");
    let has_all = |process: &listing::ProcessEntry| {
        let own = process.arguments();
        arguments.iter().all(|argument| own.iter().any(|word| word == argument))
    };
    for process in all.into_iter().filter(has_all) {
        let pid = rustix::process::Pid::from_raw(process.pid).expect("a process id");
        let Ok(descriptor) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else { continue };
        let mut ended = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
        assert_eq!(
            poll(&mut ended, PollTimeout::from(30_000_u16)),
            Ok(1),
            "{arguments:?}: process {} runs on",
            process.pid
        );
    }
}

/// Slurm with four nodes, which are one machine.
struct Slurm {
    directory: tempfile::TempDir,
    /// Authentication, controller, nodes in order.
    daemons: Vec<Daemon>,
    jobs: Vec<Daemon>,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // As long as the ranks live: what Slurm has for them may outlive them and is not found by anything else.
        let all = listing::processes(Path::new("/proc")).expect("processes are listed");
        let of = |pid: i32| all.iter().find(|process| process.pid == pid);
        let ranks: Vec<i32> =
            PROGRAMS.iter().flat_map(|name| processes_of(&self.directory.path().join(name))).collect();
        // The ranks descend from the process that Slurm has for their step on each node.
        let ancestors = |pid: &i32| std::iter::successors(of(*pid), |process| of(process.parent));
        let steps = ranks.iter().flat_map(ancestors).filter(|process| process.name.starts_with("slurmstepd"));
        let steps: HashSet<i32> = steps.map(|process| process.pid).collect();
        let _ = self.command("scancel").args(["--user", &text_of("id", &["-un"])]).output();
        self.jobs.clear();
        ranks.into_iter().chain(steps).for_each(end);
        self.daemons.clear();
    }
}

impl Slurm {
    fn start() -> Result<Slurm, Skip> {
        let [munged, slurmctld, slurmd] = ["munged", "slurmctld", "slurmd"].map(program);
        let (munged, slurmctld, slurmd) = (munged?, slurmctld?, slurmd?);
        program("srun")?;
        let directory = tempfile::Builder::new().prefix("slurm").tempdir().expect("a directory");
        let root = directory.path().to_owned();
        let (user, host) = (text_of("id", &["-un"]), text_of("hostname", &["-s"]));
        // Another user asks as well.
        let open = |path: &Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions are set");
        };
        open(&root);
        for folder in ["munge", "state", "spool", "log", "tmp"] {
            std::fs::create_dir(root.join(folder)).expect("a directory");
            open(&root.join(folder));
        }
        let key = root.join("munge/key");
        let random: Vec<u8> = std::iter::repeat_with(|| std::process::id().to_le_bytes()).take(64).flatten().collect();
        std::fs::write(&key, random).expect("a key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("permissions are set");
        let ports = ports(NODES + 1);
        let path = |of: &str| root.join(of).display().to_string();
        let mut lines = vec![
            "ClusterName=test".to_owned(),
            format!("SlurmctldHost={host}(127.0.0.1)"),
            format!("SlurmctldPort={}", ports[NODES]),
            format!("SlurmUser={user}"),
            format!("SlurmdUser={user}"),
            "AuthType=auth/munge".to_owned(),
            format!("AuthInfo=socket={}", path("munge/socket")),
            "MpiDefault=none".to_owned(),
            "ProctrackType=proctrack/linuxproc".to_owned(),
            "TaskPlugin=task/none".to_owned(),
            "SelectType=select/cons_tres".to_owned(),
            "SelectTypeParameters=CR_CPU".to_owned(),
            "SlurmdParameters=config_overrides".to_owned(),
            "ReturnToService=2".to_owned(),
            format!("StateSaveLocation={}", path("state")),
            format!("SlurmdSpoolDir={}", path("spool/%n")),
            format!("SlurmctldPidFile={}", path("slurmctld.pid")),
            format!("SlurmdPidFile={}", path("slurmd-%n.pid")),
            // PMIx needs a folder for each node.
            format!("TmpFS={}", path("tmp/%n")),
            "KillWait=1".to_owned(),
            "JobAcctGatherType=jobacct_gather/none".to_owned(),
            "AccountingStorageType=accounting_storage/none".to_owned(),
        ];
        for node in 1..=NODES {
            for folder in ["tmp", "spool"] {
                std::fs::create_dir(root.join(folder).join(format!("n{node}"))).expect("a directory");
            }
            let port = ports[node - 1];
            lines.push(format!("NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4"));
        }
        lines.push(format!("PartitionName=all Nodes=n[1-{NODES}] Default=YES MaxTime=INFINITE State=UP"));
        let conf = root.join("slurm.conf");
        std::fs::write(&conf, lines.join("\n") + "\n").expect("its configuration");
        let mut munge = Command::new(munged);
        munge.args(["--foreground", "--force"]);
        for (option, file) in [("key", "key"), ("pid", "pid"), ("seed", "seed"), ("log", "log")] {
            munge.arg(format!("--{option}-file={}", path(&format!("munge/{file}"))));
        }
        munge.arg(format!("--socket={}", path("munge/socket")));
        let mut slurm = Slurm { directory, daemons: Vec::new(), jobs: Vec::new() };
        slurm.daemons.push(start(&mut munge, "Created socket")?);
        let conf = conf.display().to_string();
        let controller = start(Command::new(slurmctld).args(["-D", "-f", &conf]), "Running as primary controller")?;
        slurm.daemons.push(controller);
        for node in 1..=NODES {
            let mut daemon = Command::new(&slurmd);
            let daemon = start(daemon.args(["-D", "-N", &format!("n{node}"), "-f", &conf]), "slurmd started")?;
            slurm.daemons.push(daemon);
        }
        // It waits until all nodes are there.
        let nodes = NODES.to_string();
        let first = slurm.command("srun").args(["--nodes", &nodes, "--ntasks", &nodes, "true"]).output();
        match first {
            Ok(output) if output.status.success() => Ok(slurm),
            other => Err(Skip::because(format!("Slurm does not run here: {other:?}"))),
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.directory.path().join("slurm.conf")).stdin(Stdio::null());
        command
    }

    /// Starts the program, and returns the number of its job.
    fn run(&mut self, program: &Path) -> Result<String, Skip> {
        let mut srun = self.command("srun");
        srun.args(["--mpi=pmix", "--input=none", "--nodes", &NODES.to_string(), "--ntasks", &RANKS.to_string()]);
        srun.args(["--ntasks-per-node", "2"]).arg(program);
        // No other transport is sure to work between nodes that are one machine.
        srun.env("OMPI_MCA_btl", "self,tcp").env("OMPI_MCA_mpi_yield_when_idle", "1");
        self.jobs.push(started(srun, RANKS)?);
        Ok(self.number_of("ranks"))
    }

    /// The number of the job with this name.
    fn number_of(&self, name: &str) -> String {
        let list =
            self.command("squeue").args(["--noheader", "--format", "%A", "--name", name]).output().expect("squeue");
        String::from_utf8_lossy(&list.stdout).trim().to_owned()
    }
}

/// Writes a program of the shell.
fn executable(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("a program");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions are set");
}

/// Processes that execute a file.
fn processes_of(program: &Path) -> Vec<i32> {
    let all = listing::processes(Path::new("/proc")).expect("processes are listed");
    let program = program.display().to_string();
    all.into_iter().filter(|process| process.exe().as_ref() == Some(&program)).map(|process| process.pid).collect()
}

/// Starts a launcher and waits until each rank has said that it has begun.
fn started(mut launcher: Command, ranks: usize) -> Result<Daemon, Skip> {
    let spawned = launcher.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|why| skip(format!("{launcher:?}: {why}")))?;
    let mut output = child.stdout.take().expect("its output");
    let mut errors = child.stderr.take().expect("its errors");
    let mut daemon = Daemon(child);
    let begun = begun(&mut output, ranks);
    if begun == ranks {
        // A launcher that can no longer write ends, and its ranks with it.
        (daemon.0.stdout, daemon.0.stderr) = (Some(output), Some(errors));
        return Ok(daemon);
    }
    drop(daemon);
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut errors, &mut text);
    Err(Skip::because(format!("{begun} of {ranks} ranks have begun: {text}")))
}

/// Runs it until it has found every rank where it stays. On failure each different answer is shown, in order: the first ones tell
/// why, since the programs end by themselves.
fn settled(mut run: impl FnMut() -> Output, ranks: usize) -> (String, i32) {
    let begun = Instant::now();
    let mut answers = Vec::<(Duration, (String, String, i32))>::new();
    let others = if ranks == 4 { "0-1,3".to_owned() } else { format!("0-1,3-{}", ranks - 1) };
    for _ in 0..50 {
        let answer = texts(&run());
        let plain = answer.0.split_whitespace().collect::<Vec<_>>().join(" ");
        let told = plain.contains(&format!("Main threads rank 2: omp_set_lock, ranks.c:{LOCK}, in update"))
            && plain.contains(&format!("{} ranks ({others}): MPI_Barrier, ranks.c:{BARRIER}", ranks - 1));
        if told {
            return (answer.0, answer.2);
        }
        if answers.last().is_none_or(|(_, last)| *last != answer) {
            answers.push((begun.elapsed(), answer));
        }
    }
    panic!("{:#?}", answers.iter().take(5).chain(answers.last()).collect::<Vec<_>>());
}

/// The first three lines name rank, host, thread, lock and place.
pub fn check_first_lines(text: &str, what: &str, host: &str, ranks: usize) {
    let first: Vec<&str> = text.lines().take(3).collect();
    let _ = writeln!(std::io::stderr(), "{what}:\n{}\n", first.join("\n"));
    let both = first.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    let rank = if host.is_empty() { "rank 2 (".to_owned() } else { format!("rank 2 ({host}, pid ") };
    for part in [&rank, "pid ", "grid_lock", "thread 0", "thread 1", "Cause", "ranks.c:"] {
        assert!(both.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("\n{ranks} ranks ")), "{text}");
}

#[test]
fn a_job_of_slurm_names_rank_node_thread_lock_and_place() {
    if let Err(skip) = job_of_slurm() {
        skip.show();
    }
}

fn job_of_slurm() -> Result<(), Skip> {
    let mut slurm = Slurm::start()?;
    let program = compiled("openmpi", "ranks", slurm.directory.path())?;
    let job = slurm.run(&program)?;
    let conf = slurm.directory.path().join("slurm.conf");
    let inspect = |arguments: &[&str]| {
        let mut command = command();
        command.env("SLURM_CONF", &conf).arg("job").args(arguments);
        command.output().expect("ompd-inspect can be started")
    };
    let (text, status) = settled(|| inspect(&[&job]), RANKS);
    check_first_lines(&text, "Slurm", "n2", RANKS);
    transcripts::check("docs/jobs.md", "job", &job, &text, false);
    transcripts::check("README.md", "job", &job, &text, true);
    assert!(text.contains("on 4 hosts: n[1-4]"), "{text}");
    assert_eq!(status, 0, "{text}");

    // Two looks at one step: nothing moves.
    let step = format!("{job}.0");
    let (text, _, status) = texts(&inspect(&["--samples", "2", "--interval", "100ms", &step]));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("Between the looks no process has moved: 8 ranks (0-7)"), "{text}");

    // Again and again; nothing of that stays on the nodes.
    let (text, error, status) = texts(&inspect(&["--top", "--count", "2", "--interval", "500ms", &job]));
    assert_eq!(status, 0, "{text}{error}");
    let (first, second) = text.split_once("refresh 2\n").expect("two refreshes");
    assert!(first.contains("\n8 ranks") && !first.contains("Not inspected"), "{text}");
    assert!(second.contains("Between the looks no process has moved: 8 ranks (0-7)"), "{text}");
    ends_by_itself(&["job-node", "--slurm", &job]);

    // Its report is one of merge too, and all looks were within a moment.
    let before = SystemTime::now();
    let document = inspect(&["--json", "--lead", "2s", &job]).stdout;
    let merged: serde_json::Value = serde_json::from_slice(&document).expect("a document");
    assert_eq!(merged["inspected"]["ranks"][&step], "0-7", "{merged}");
    assert_eq!(merged["sizes"][&step], 8, "{merged}");
    let times: Vec<u64> = merged["stopped_at"].as_array().expect("two").iter().filter_map(|t| t.as_u64()).collect();
    assert!(times[1] - times[0] < 10_000, "{times:?}");
    // None was before the moment that was agreed upon.
    let before = before.duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_millis();
    assert!(u128::from(times[0]) >= before + 2000, "{times:?}, asked at {before}");

    // What is not there, in Slurm's own words.
    let (_, error, status) = texts(&inspect(&["99999999"]));
    assert!(status == 2 && error.contains("Invalid job id") && error.contains("remedy"), "{error}");
    let (_, error, status) = texts(&inspect(&[&format!("{job}.77")]));
    assert!(status == 2 && error.contains("knows no running job"), "{error}");

    // Cores of all ranks.
    let cores = tempfile::tempdir().expect("a directory");
    let made: Result<Vec<_>, Skip> = processes_of(&program)
        .into_iter()
        .map(|pid| test_programs::gcore(pid, cores.path()).expect("a core"))
        .collect();
    if made?.len() == RANKS {
        let pattern = cores.path().join("core.*").display().to_string();
        let (text, _, status) = texts(&inspect(&["--cores", &pattern]));
        check_first_lines(&text, "cores", "n2", RANKS);
        assert_eq!(status, 0, "{text}");
    }

    // Ranks of mpirun, whose daemons Slurm has started, and which are no ranks.
    let mut salloc = slurm.command("salloc");
    salloc.args(["--nodes", &NODES.to_string(), "--ntasks", &RANKS.to_string(), "--ntasks-per-node", "2"]);
    salloc.arg("--job-name=by-mpirun").args(["sh", "-c", "exec mpirun.openmpi \"$0\""]).arg(&program);
    salloc.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    salloc.env("OMPI_MCA_btl", "self,tcp").env("OMPI_MCA_mpi_yield_when_idle", "1");
    salloc.env("OMPI_MCA_btl_tcp_if_include", "lo").env("OMPI_MCA_oob_tcp_if_include", "lo");
    let by_mpirun = started(salloc, RANKS)?;
    let number = slurm.number_of("by-mpirun");
    let (text, _) = settled(|| inspect(&[&number]), RANKS);
    check_first_lines(&text, "mpirun under Slurm", "n2", RANKS);
    assert!(!text.contains("Several reports") && !text.contains("orted"), "{text}");
    let descendants = listing::descendants(Path::new("/proc"), i32::try_from(by_mpirun.0.id()).expect("a process id"));
    let mpirun = descendants.iter().find(|process| process.name.starts_with("mpirun")).expect("it runs");
    let (_, error, status) = texts(&inspect(&["--pid", &mpirun.pid.to_string()]));
    assert!(status == 2 && error.contains(&format!("ompd-inspect job {number}")), "{error}");
    let _ = slurm.command("scancel").arg(&number).output();
    slurm.jobs.push(by_mpirun);

    // A step without ranks: its program is shown all the same.
    let alone = slurm.directory.path().join("alone");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/mpi/alone.c");
    let built = Command::new("gcc").args(["-g", "-O1", "-fopenmp"]).arg(source).arg("-o").arg(&alone).status();
    assert!(built.is_ok_and(|status| status.success()), "gcc builds alone.c");
    let mut srun = slurm.command("srun");
    srun.args(["--overlap", "--jobid", &job, "--nodes=1", "--ntasks=1", "--nodelist=n3", "--input=none"]);
    srun.args(["--job-name=alone", "env", "-u", "SLURM_PROCID"]).arg(&alone);
    slurm.jobs.push(started(srun, 1)?);
    let steps = slurm.command("squeue").args(["--steps", "--noheader", "--format", "%i %j"]).output().expect("squeue");
    let steps = String::from_utf8_lossy(&steps.stdout).into_owned();
    let step = steps.lines().find_map(|line| line.trim().strip_suffix(" alone")).expect(&steps);
    let (text, error, status) = texts(&inspect(&[step]));
    assert_eq!(status, 0, "{text}{error}");
    assert!(text.contains("pause, alone.c:") && text.contains("\n1 process on "), "{text}{error}");

    // Tasks of an array are jobs. The name of one is known to Slurm alone, and its processes have a number.
    let fifo = slurm.directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a pipe with a name");
    let batch = |options: &[&str], script: &str, processes: usize| -> String {
        let mut sbatch = slurm.command("sbatch");
        sbatch.args(["--parsable", "--nodes=1", "--chdir=/", "--output=/dev/null", "--error=/dev/null"]).args(options);
        let script = format!("{script} > {}", fifo.display());
        let submitted = sbatch.args(["--wrap", &script]).output().expect("sbatch");
        let number = String::from_utf8_lossy(&submitted.stdout).trim().to_owned();
        assert!(number.parse::<u64>().is_ok(), "{submitted:?}");
        let output = std::fs::File::open(&fifo).expect("what the job writes");
        assert_eq!(begun(&output, processes), processes, "{script}");
        // A program that can no longer write ends.
        std::mem::forget(output);
        number
    };
    let program = alone.display();
    let array = batch(&["--array=1-2", "--ntasks=2"], &format!("srun --input=none {program}"), 4);
    let (_, error, status) = texts(&inspect(&[&array]));
    assert!(status == 2 && error.contains("several jobs") && error.contains(&format!("{array}_1")), "{error}");
    for task in 1..=2 {
        for name in [format!("{array}_{task}"), format!("{array}_{task}.0")] {
            let (text, error, status) = texts(&inspect(&[&name]));
            assert_eq!(status, 0, "{name}: {text}{error}");
            assert!(text.contains("\n2 ranks of job ") && text.contains("2 ranks (0-1): "), "{name}: {text}{error}");
        }
    }
    // Programs that a batch script starts are no ranks.
    let number = batch(&["--ntasks=1"], &format!("{{ {program} & {program} & wait; }}"), 2);
    let (text, error, status) = texts(&inspect(&[&number]));
    assert_eq!(status, 0, "{text}{error}");
    assert!(text.contains("\n2 processes on ") && text.contains("2 processes: "), "{text}{error}");
    let _ = slurm.command("scancel").args([&array, &number]).output();

    // Another user is refused with Slurm's reason.
    if nix::unistd::geteuid().is_root() {
        let copy = slurm.directory.path().join("ompd-inspect");
        std::fs::copy(env!("CARGO_BIN_EXE_ompd-inspect"), &copy).expect("a copy that everybody may execute");
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(["job", &job]);
        let (_, error, status) = texts(&other.env("SLURM_CONF", &conf).output().expect("setpriv"));
        assert!(status == 2 && error.contains("ermission denied"), "{status}: {error}");
    } else {
        Skip::because("another user's job: only root can be another user").show();
    }

    // A node that is gone is named, and the others are shown.
    let node = &slurm.daemons[NODES + 1].0;
    kill(Pid::from_raw(i32::try_from(node.id()).expect("a process id")), Signal::SIGKILL).expect("the daemon of n4");
    let (text, _, status) = texts(&inspect(&[&job, "--timeout", "30s"]));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("\n6 ranks of job") && text.contains("No report of 2 ranks (6-7)"), "{text}");
    assert!(text.contains("Not inspected: host n4: ") && text.contains("rank 2 (n2, pid "), "{text}");
    Ok(())
}

/// The network that hosts are in, and the launcher: interfaces are called `eth0`.
const NETWORK: &str = "10.213.7.0/24";

/// A network namespace with a bridge, which the namespaces of hosts are connected to; that of the process that holds it.
struct Network(Daemon);

impl Network {
    fn start() -> Result<Network, Skip> {
        program("ip")?;
        let mut unshare = Command::new("unshare");
        let script = format!(
            "ip link set lo up && ip link add eth0 type bridge && ip address add {} dev eth0 && ip link set eth0 up && \
             echo connected >&2 && kill -STOP $$",
            Network::address(254)
        );
        unshare.args(["--net", "sh", "-c", &script]);
        Ok(Network(start(&mut unshare, "connected")?))
    }

    fn address(host: usize) -> String {
        NETWORK.replace("0/24", &format!("{host}/24"))
    }

    fn pid(&self) -> u32 {
        self.0.0.id()
    }

    /// What a shell has to do to be a host of the network.
    fn join(&self, host: usize) -> String {
        let pid = self.pid();
        format!(
            "ip link set lo up && ip link add eth0 type veth peer name host{host} netns {pid} && \
             ip address add {} dev eth0 && ip link set eth0 up && \
             nsenter --net=/proc/{pid}/ns/net ip link set host{host} master eth0 up",
            Network::address(host)
        )
    }
}

/// Hosts with processes of their own, and addresses of their own where the kernel can do that, that ssh reaches.
struct Hosts {
    directory: tempfile::TempDir,
    daemons: Vec<Daemon>,
    network: Option<Network>,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // With the first process of a namespace all others in it are killed.
        self.daemons.clear();
        for rank in processes_of(&self.directory.path().join("ranks")) {
            let _ = kill(Pid::from_raw(rank), Signal::SIGKILL);
        }
    }
}

impl Hosts {
    fn start(count: usize) -> Result<Hosts, Skip> {
        if !nix::unistd::geteuid().is_root() {
            return Err(Skip::because("hosts on one machine: only root can make namespaces with a name of their own"));
        }
        let (sshd, ssh) = (program("sshd")?, program("ssh")?);
        let directory = tempfile::Builder::new().prefix("hosts").tempdir().expect("a directory");
        let path = |of: &str| directory.path().join(of).display().to_string();
        for key in ["key", "hostkey"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status();
            if !made.is_ok_and(|status| status.success()) {
                return Err(skip("ssh-keygen has made no key"));
            }
        }
        // sshd insists on it where it runs as root (sshd(8), FILES).
        std::fs::create_dir_all("/run/sshd").expect("the folder of sshd");
        let mut client = format!(
            "Host *\n User {}\n IdentityFile {}\n IdentitiesOnly yes\n StrictHostKeyChecking no\n \
             UserKnownHostsFile /dev/null\n LogLevel ERROR\n",
            text_of("id", &["-un"]),
            path("key")
        );
        std::fs::create_dir(path("home")).expect("a directory");
        let mut hosts = Vec::new();
        let network = Network::start().map_err(|skip| {
            let _ = writeln!(std::io::stderr(), "the hosts have one network:");
            skip.show();
        });
        let network = network.ok();
        let ports = ports(count);
        for (at, port) in ports.iter().enumerate() {
            let name = format!("n{}", at + 1);
            let (address, port) = match &network {
                Some(_) => (Network::address(at + 1).replace("/24", ""), 22),
                None => ("127.0.0.1".to_owned(), *port),
            };
            let server = format!(
                "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
                 StrictModes no\nUsePAM no\nPermitRootLogin yes\nSetEnv HOME={}\n",
                path("hostkey"),
                path("key.pub"),
                // What the shells of this machine's user do at their start takes its time, and may wait for one another.
                path("home")
            );
            std::fs::write(path(&name), server).expect("a configuration");
            client.push_str(&format!("Host {name}\n HostName {address}\n Port {port}\n"));
            let mut unshare = Command::new("unshare");
            if let Some(network) = &network {
                let script = format!("{} && exec unshare \"$@\"", network.join(at + 1));
                unshare.args(["--net", "sh", "-c", &script, "sh"]);
            }
            unshare.args(["--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]);
            unshare.arg(format!("hostname {name} && exec {} -D -e -f {}", sshd.display(), path(&name)));
            hosts.push(start(&mut unshare, "Server listening")?);
        }
        std::fs::write(path("config"), client).expect("a configuration");
        std::fs::create_dir(path("bin")).expect("a directory");
        executable(Path::new(&path("bin/ssh")), &format!("exec {} -F {} \"$@\"", ssh.display(), path("config")));
        Ok(Hosts { directory, daemons: hosts, network })
    }

    /// A program in the network of the hosts, whose ssh knows them.
    fn command(&self, program: &str) -> Command {
        let mut command = match &self.network {
            Some(network) => {
                let mut nsenter = Command::new("nsenter");
                nsenter.arg(format!("--net=/proc/{}/ns/net", network.pid())).arg(program);
                nsenter
            }
            None => Command::new(program),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.directory.path().join("bin").display()));
        command
    }

    /// What launchers are told of the network.
    fn interface(&self) -> (&str, &str) {
        if self.network.is_some() { ("eth0", NETWORK) } else { ("lo", "lo") }
    }

    /// A program that does something else than inspecting on the first host.
    fn program(&self, name: &str, does: &str) -> String {
        let path = self.directory.path().join(name);
        let inspect = env!("CARGO_BIN_EXE_ompd-inspect");
        let other = "exec \"$inspect\" \"$@\"";
        let first = "[ \"$(hostname)\" = n1 ]";
        executable(&path, &format!("inspect='{inspect}'\nif {first}; then\n{does}\nelse\n{other}\nfi"));
        path.display().to_string()
    }

    fn inspect(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_ompd-inspect"));
        command.arg("job").args(arguments).output().expect("ompd-inspect can be started")
    }
}

#[test]
fn ranks_on_hosts_are_found_by_launcher_by_name_and_by_clush() {
    if let Err(skip) = ranks_on_hosts() {
        skip.show();
    }
}

fn ranks_on_hosts() -> Result<(), Skip> {
    let ranks = 4;
    let hosts = Hosts::start(2)?;
    let ssh = hosts.directory.path().join("bin/ssh");
    let (interface, network) = hosts.interface();
    for library in ["openmpi", "mpich"] {
        let program = compiled(library, "ranks", hosts.directory.path())?;
        let mut launcher = hosts.command("sh");
        let mpirun = format!("mpirun.{library}");
        if library == "openmpi" {
            launcher.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            launcher.env("OMPI_MCA_mpi_yield_when_idle", "1").args(["-c", "exec \"$0\" \"$@\"", &mpirun]);
            launcher.args(["--oversubscribe", "--host", "n1:2,n2:2", "--mca", "oob_tcp_if_include", network]);
            launcher.args(["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", network]);
            launcher.args(["--mca", "plm_rsh_agent"]).arg(&ssh);
        } else {
            // The hosts have no shared memory in common, though their addresses may be the same.
            launcher.env("UCX_TLS", "tcp,self").env("UCX_NET_DEVICES", interface);
            // The process that is named is a shell, and the launcher its child.
            launcher.args(["-c", "\"$0\" \"$@\"; exit $?", &mpirun]);
            launcher.args(["-launcher", "ssh", "-launcher-exec"]).arg(&ssh).args([
                "-hosts",
                "n1:2,n2:2",
                "-iface",
                interface,
            ]);
        }
        launcher.args(["-np", &ranks.to_string()]).arg(&program).stdin(Stdio::null());
        let job = started(launcher, ranks)?;
        let pid = job.0.id().to_string();
        let (text, status) = settled(|| hosts.inspect(&["--pid", &pid]), ranks);
        check_first_lines(&text, library, "n2", ranks);
        assert!(text.contains("on 2 hosts: n[1-2]") && status == 0, "{text}");
        let (text, _) = settled(|| hosts.inspect(&["--hosts", "n[1-2]", "--name", "ranks"]), ranks);
        check_first_lines(&text, "a list of hosts", "n2", ranks);
        if program_is_here("clush") {
            let clush = ["--agent", "clush", "--hosts", "n[1-2]", "--name", "ranks"];
            let (text, _) = settled(|| hosts.inspect(&clush), ranks);
            check_first_lines(&text, "ClusterShell", "n2", ranks);
        } else {
            skip("ClusterShell: there is no clush").show();
        }
        let list = ["--hosts", "n[1-2]", "--name", "ranks"];
        let (text, error, status) =
            texts(&hosts.inspect(&[&list[..], &["--top", "--count", "2", "--interval", "500ms"]].concat()));
        assert_eq!(status, 0, "{text}{error}");
        let (first, second) = text.split_once("refresh 2\n").expect("two refreshes");
        assert!(first.contains("\n4 ranks") && second.contains("\n4 ranks"), "{text}{error}");
        ends_by_itself(&["job-node", "--name=ranks", "--every"]);
        // A host that does not exist, and one without such a process.
        let (text, _, status) = texts(&hosts.inspect(&["--hosts", "n[1-2],nowhere.invalid", "--name", "ranks"]));
        assert!(status == 1 && text.contains("\n4 ranks "), "{text}");
        assert!(text.contains("Not inspected: host nowhere.invalid: ssh: Could not resolve hostname"), "{text}");
        let (text, _, status) = texts(&hosts.inspect(&["--hosts", "n1", "--name", "no-such-program"]));
        assert!(status == 2 && text.contains("host n1: no process is called no-such-program"), "{text}");
        let (text, _, status) = texts(&hosts.inspect(&["--hosts", "gone[1-9].invalid", "--name", "ranks"]));
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status == 2 && plain.contains("Not inspected: 9 (host gone[1-9].invalid): ssh: Could not"), "{text}");
        let (_, error, status) = texts(&hosts.inspect(&["--hosts=-oProxyCommand=x", "--name", "ranks"]));
        assert!(status == 2 && error.contains("is no list of hosts"), "{error}");
        // Of a host whose report is damaged, and of one that does not answer, the reason is shown, and of the other its ranks.
        for (does, timeout, reason) in [
            ("\"$inspect\" \"$@\" | sed 's/.$/!/'", "60s", "its report is damaged"),
            ("\"$inspect\" \"$@\" | awk '{ $4++; print }'", "60s", "its report is cut off"),
            // The other host has to answer in this time, also on a busy machine.
            ("exec sleep 1000", "20s", "no answer in 20 s"),
        ] {
            let inspector = hosts.program("inspector", does);
            let arguments = ["--pid", &pid, "--inspector", &inspector, "--timeout", timeout];
            let (text, error, status) = texts(&hosts.inspect(&arguments));
            assert_eq!(status, 1, "{text}{error}");
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain.contains(&format!("Not inspected: host n1: {reason}")), "{text}{error}");
            assert!(plain.contains("rank 2 (n2, pid ") && plain.contains("No report of 2 ranks (0-1)"), "{text}");
        }
        drop(job);
        for rank in processes_of(&program) {
            let _ = kill(Pid::from_raw(rank), Signal::SIGKILL);
        }
    }
    Ok(())
}

fn program_is_here(name: &str) -> bool {
    program(name).is_ok()
}
