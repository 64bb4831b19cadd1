//! The JSON report: types of its own, so that the model may change without the format.
//!
//! Rules of the format: addresses are hex strings. A value is `{"value": …, "origin": …}` or `{"unknown": "why"}`. Every key may
//! be absent. Enumerations may get new members. Keys are only ever added.

use std::time::{SystemTime, UNIX_EPOCH};

use ompd_process::{Addr, TargetKind};
use ompd_runtime::model::{self, Fact, RuntimeSnapshot};
use ompd_runtime::process;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Answer, answer};
use crate::crowding;
use ompd_inspection::{Inspection, rank};

mod devices;
pub mod grounds;
pub mod history;
mod icvs;
pub mod list;
mod loops;
mod outside;
#[cfg(test)]
mod page;
mod progress;
mod python;
mod stacks;
mod tasks;
mod verdicts;
mod waits;

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect/1";

/// A value with its origin, or why it is not known.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Known_{T}")]
pub enum Known<T> {
    /// Read.
    Value {
        /// The value.
        value: T,
        /// `dwarf`, `table`, `symbol`, `code`, `profile`, `registers`, `stack`, `os` or `companion`.
        origin: &'static str,
    },
    /// Not known.
    Unknown {
        /// The reason, in words.
        unknown: String,
        /// The reason's code, which stays when the words change: see docs/json.md.
        code: &'static str,
    },
}

fn known<T, U>(fact: &Fact<T>, convert: impl FnOnce(&T) -> U) -> Known<U> {
    match fact {
        Fact::Known { value, origin } => Known::Value { value: convert(value), origin: origin.word() },
        Fact::Unknown { why } => Known::Unknown { unknown: why.to_string(), code: why.code() },
    }
}

fn copied<T: Copy>(fact: &Fact<T>) -> Known<T> {
    known(fact, |value| *value)
}

/// Seconds since 1970, to the millisecond.
fn seconds(time: SystemTime) -> Option<f64> {
    let milliseconds = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(milliseconds as f64 / 1e3)
}

fn hex(addr: Addr) -> String {
    format!("{:#018x}", addr.0)
}

/// The report of one inspection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Name and version of this format: `ompd-inspect/1`.
    pub schema: &'static str,
    /// `live` or `core`.
    pub source: &'static str,
    /// True if a runtime was found and nothing went wrong.
    pub complete: bool,
    /// The process.
    pub process: Process,
    /// Its child processes that live, where it has some (live processes).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub children: Vec<Child>,
    /// How long the process was stopped, in milliseconds, all stops together (live processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<f64>,
    /// How often it was stopped (live processes). It is more than once where it seems to hang: a verdict must be found twice. It
    /// is 0 if nothing had to be stopped: all its threads slept while it was read, and nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stops: Option<u32>,
    /// How many of its threads were stopped, if the others slept all the time and were left asleep (live processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_threads: Option<usize>,
    /// When it was stopped, or read without a stop, for what is reported, in seconds since 1970 by the clock of its host (live
    /// processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<f64>,
    /// True if there was too much to read for the last pause, and it was read after that. All threads slept meanwhile where the
    /// pause had met them: what was read is of that moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_asleep: Option<bool>,
    /// Every thread of the operating system.
    pub os_threads: Vec<ProcessThread>,
    /// Every OpenMP runtime in the process.
    pub runtimes: Vec<Runtime>,
    /// The threads of all runtimes together.
    pub crowd: Crowd,
    /// Threads that are in teams of several runtimes at once.
    pub nested_runtimes: Vec<Nested>,
    /// What has changed since the first look, if there was more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<progress::Progress>,
    /// Hangs, the certain ones first. None: nothing is known to be stuck.
    pub verdicts: Vec<verdicts::Verdict>,
    /// Why nothing moves, or what moves; null without a runtime.
    pub answer: Option<Answer>,
    /// What makes threads wait without being wrong.
    pub remarks: Vec<verdicts::Remark>,
    /// The stack of every thread as its source reads.
    pub stacks: Vec<stacks::Stack>,
    /// Files with code of frames that have no source lines, each with the reason.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty", default)]
    pub without_lines: std::collections::BTreeMap<String, String>,
    /// Every CPython in the process.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub python: Vec<python::Python>,
    /// Files that can start an OMPT tool, other than the runtimes: they export `ompt_start_tool`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub tools: Vec<String>,
    /// What went wrong.
    pub issues: Vec<Issue>,
}

/// A process that traces the inspected one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeldBy {
    /// Process id.
    pub pid: i32,
    /// Name, as `gdb`.
    pub name: String,
}

/// The process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Process {
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Executable, as the process saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// How the process was called; with `--arguments` the whole command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// True if job control (SIGSTOP) holds it: nothing in it moves until it gets SIGCONT.
    pub stopped: bool,
    /// True if its control group is frozen: nothing in it moves until that is thawed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen: Option<bool>,
    /// The process that traces it and has stopped all its threads, as a debugger does: nothing in it moves until that one lets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldBy>,
    /// Signal that ended it (core files of crashes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True if another process or the terminal sent that signal: the program did not crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_sent: Option<bool>,
    /// Its host: as the launcher of a job calls it, else the machine that has made the report (live processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Which rank of a parallel job it is, if its launcher has said so in its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
}

/// A rank of a parallel job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rank {
    /// Its number in the job, from 0.
    pub number: u64,
    /// Processes of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its number among those on its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<u64>,
    /// The launcher's name for the job, of Slurm `4711.0` with the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Whose variables of the environment tell the number: `Open MPI`, `PMI` (MPICH), `PMIx`, `Slurm`, …
    pub launcher: &'static str,
    /// Its MPI library, if the process has loaded one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
}

/// The MPI library of a process, by what its files export.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Mpi {
    /// `Open MPI`, `Intel MPI`, or `MPICH` with all that is made from it; absent if it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<&'static str>,
    /// Its file.
    pub file: String,
}

/// A child process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Child {
    /// Process id.
    pub pid: i32,
    /// Name.
    pub name: String,
}

/// A thread of the operating system.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProcessThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// System call it was blocked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_in: Option<String>,
    /// The signal that ended the process, if this thread received it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// True if some OpenMP runtime knows it.
    pub openmp: bool,
    /// What it does outside of OpenMP. Absent: it waits in a runtime, or is in no call and waits for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<outside::Outside>,
}

/// Something that went wrong without stopping the inspection.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Issue {
    /// What is affected.
    pub subject: String,
    /// What happened and what it costs.
    pub text: String,
    /// The code of what happened, which stays when the words change: see docs/json.md.
    pub code: &'static str,
}

/// The threads of all runtimes together.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Crowd {
    /// Threads of the process that some runtime knows.
    pub threads: usize,
    /// Pools with more than one thread.
    pub pools: usize,
    /// Threads in pools that the process does not have: a fork leaves them behind, and threads that are just made are not there yet.
    pub gone: usize,
    /// Processors its threads may run on (live processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Processor time its control group may use, in processors, where it is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
}

/// A thread that is in teams of several runtimes at once.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Nested {
    /// Kernel thread id.
    pub lwp: i32,
    /// One entry for each runtime.
    pub places: Vec<Membership>,
    /// True if the first place is known to be the outermost; the order of the others is not known.
    pub outermost_known: bool,
}

/// Where a thread is in one runtime.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Membership {
    /// Index of the runtime.
    pub runtime: usize,
    /// Index of its team there.
    pub team: usize,
    /// Its number in that team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_num: Option<u32>,
}

/// Why a runtime is in the process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NeededBy {
    /// Modules from the outermost to the runtime, each needed (DT_NEEDED) by the one before it.
    pub chain: Vec<String>,
    /// The chain begins at the executable; else its first came by dlopen or LD_PRELOAD.
    pub loaded_at_start: bool,
    /// What makes the chain uncertain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// Threads a runtime keeps for its regions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Pool {
    /// LWP of each; `null` where the process has no such thread.
    pub threads: Vec<Option<i32>>,
}

/// One OpenMP runtime.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Runtime {
    /// `gomp` (GNU libgomp) or `kmp` (LLVM libomp, Intel libiomp5).
    pub family: &'static str,
    /// Product.
    pub product: &'static str,
    /// Path of its file, as the process saw it.
    pub path: String,
    /// Lowest mapped address.
    pub base: String,
    /// GNU build-id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Why it is in the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed_by: Option<NeededBy>,
    /// Where its layout came from.
    pub origins: Vec<Origin>,
    /// Parts of its layout nobody knows.
    pub missing: Vec<String>,
    /// What each of those parts costs.
    pub costs: Vec<Cost>,
    /// Control variables of the process as a whole; those of tasks are with the threads.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub icvs: Vec<icvs::Setting>,
    /// Sentences on how many threads share how many processors.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// Teams of leagues, which `teams` regions make on the host.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub leagues: Vec<LeagueTeam>,
    /// Its pools.
    pub pools: Vec<Pool>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Its teams; other entries refer to them by index.
    pub teams: Vec<Team>,
    /// Its tasks; other entries refer to them by index.
    pub tasks: Vec<tasks::Task>,
    /// Tasks that are not listed one by one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub more_tasks: Vec<tasks::MoreTasks>,
    /// Task groups; other entries refer to them by index.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub taskgroups: Vec<tasks::Taskgroup>,
    /// Locks that are waited for, or known to be held; waits refer to them by index.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub locks: Vec<waits::Lock>,
    /// Worksharing loops and sections that teams are in, as far as the runtime records them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub loops: Vec<loops::Loop>,
}

/// A team of a league that is being executed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LeagueTeam {
    /// Its initial thread.
    pub lwp: i32,
    /// Its number in the league.
    pub number: Known<u32>,
    /// Teams of the league.
    pub size: Known<u32>,
}

/// What is not shown because parts of the layout are not known.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Cost {
    /// What is lost.
    pub text: &'static str,
    /// The parts, as in `missing`.
    pub missing: Vec<String>,
}

/// One source of a layout.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Origin {
    /// `dwarf`, `table`, `symbol`, `code` or `profile`.
    pub origin: &'static str,
    /// File or profile.
    pub detail: String,
    /// Values it gave.
    pub values: usize,
    /// Why it gave none, or what is worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One OpenMP thread.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Thread {
    /// Kernel thread id; absent for a thread only the runtime's memory still knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lwp: Option<i32>,
    /// The runtime's descriptor.
    pub descriptor: String,
    /// Global thread number (libomp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gtid: Option<u32>,
    /// `initial`, `worker` or `idle worker`.
    pub role: Known<&'static str>,
    /// omp_get_thread_num().
    pub thread_num: Known<u32>,
    /// Index of its innermost team; `null` as value: outside all regions.
    pub team: Known<Option<usize>>,
    /// Index of the task it executes.
    pub task: Known<usize>,
    /// Thread state.
    pub state: Known<State>,
    /// What it waits for; `null` as value: it is not blocked in the runtime.
    pub wait: Known<Option<waits::Wait>>,
    /// What it does outside of OpenMP, as in `os_threads`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<outside::Outside>,
    /// What it has begun on a device and not ended, as the companion recorded it. Absent: nothing, or no companion recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_device: Option<devices::OnDevice>,
    /// Control variables in force.
    pub icvs: icvs::Icvs,
    /// Where those values come from.
    pub icv_sources: icvs::Sources,
    /// Where it is to run.
    pub placement: icvs::Placement,
}

/// A thread state of OMPT.
#[derive(Debug, Serialize, JsonSchema)]
pub struct State {
    /// Number in `ompt_state_t`.
    pub number: u32,
    /// Name without `ompt_state_`.
    pub name: &'static str,
}

/// A source position.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Location {
    /// File.
    pub file: String,
    /// Function.
    pub function: String,
    /// Line.
    pub line: u32,
}

/// Code.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Code {
    /// Address.
    pub addr: String,
    /// Symbol, or module and offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One team.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Team {
    /// The runtime's descriptor.
    pub descriptor: String,
    /// omp_get_num_threads().
    pub size: Known<u32>,
    /// omp_get_level().
    pub level: Known<u32>,
    /// omp_get_active_level().
    pub active_level: Known<u32>,
    /// Index of the enclosing team; `null` as value: none.
    pub parent: Known<Option<usize>>,
    /// Number of the encountering thread in the enclosing team.
    pub primary_num: Known<u32>,
    /// Executed by one thread.
    pub serialized: Known<bool>,
    /// Outlined function of the region.
    pub function: Known<Code>,
    /// Source position of the construct. With origin `dwarf` it is that of the first code of its body: of the directive, or of
    /// the first statement in it.
    pub location: Known<Location>,
    /// The construct: `parallel`, `parallel for`, `teams`, …
    pub construct: Known<&'static str>,
    /// LWP of each member by thread number; `null` where not found.
    pub members: Vec<Option<i32>>,
    /// Members that have arrived at a barrier inside the region, as counted by the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier_arrived: Option<u32>,
    /// Members that have arrived at the end of the region, as counted by the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_arrived: Option<u32>,
    /// Barriers that the team has passed, as the runtime counts them; only differences count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barriers_passed: Option<u64>,
    /// Thread numbers seen waiting at the team's barrier.
    pub at_barrier: Vec<u32>,
}

/// The report of an inspection.
pub fn report(inspection: &Inspection) -> Report {
    let process = &inspection.process;
    let rank = rank::rank(&process.environment);
    Report {
        schema: SCHEMA,
        source: match inspection.kind {
            TargetKind::Live => "live",
            TargetKind::Core => "core",
            TargetKind::Debugged => "debugger",
        },
        complete: inspection.complete(),
        process: Process {
            pid: process.pid,
            exe: process.exe.clone(),
            command: process.command.clone(),
            stopped: process.stopped,
            frozen: process.frozen.then_some(true),
            held_by: process.held_by.as_ref().map(|by| HeldBy { pid: by.pid, name: by.name.clone() }),
            signal: process.signal,
            signal_sent: process.signal_sent.then_some(true),
            host: rank::host(inspection.kind, rank.as_ref()),
            rank: rank.map(|rank| Rank {
                number: rank.number,
                size: rank.size,
                local: rank.local,
                job: rank.job,
                launcher: rank.launcher,
                mpi: inspection.mpi.as_ref().map(|mpi| Mpi { library: mpi.name, file: mpi.file.clone() }),
            }),
        },
        children: inspection.children.iter().map(|child| Child { pid: child.pid, name: child.name.clone() }).collect(),
        pause_ms: inspection.pause.map(|p| p.as_secs_f64() * 1e3),
        stops: inspection.pause.map(|_| inspection.stops),
        stopped_threads: inspection.stopped_threads,
        stopped_at: inspection.stopped_at.and_then(seconds),
        read_asleep: inspection.read_asleep.then_some(true),
        os_threads: inspection
            .threads
            .iter()
            .map(|t| ProcessThread {
                lwp: t.lwp,
                name: t.name.clone(),
                blocked_in: t.blocked_in.clone(),
                signal: t.signal,
                openmp: !t.foreign,
                outside: inspection.outside(t.lwp).and_then(outside::of),
            })
            .collect(),
        runtimes: (0..inspection.runtimes.len()).map(|index| runtime(inspection, index)).collect(),
        crowd: crowd(inspection),
        nested_runtimes: process::nested(&inspection.runtimes).iter().map(nested).collect(),
        progress: inspection.progress.as_ref().map(progress::of),
        verdicts: verdicts::verdicts(inspection),
        answer: answer(inspection),
        remarks: verdicts::remarks(inspection),
        stacks: stacks::stacks(inspection),
        without_lines: inspection.stacks.without_lines.iter().map(|(f, why)| (f.to_string(), why.clone())).collect(),
        python: python::python(inspection),
        tools: inspection.tools.clone(),
        issues: inspection
            .all_issues()
            .map(|i| Issue { subject: i.subject.clone(), text: i.what.to_string(), code: i.what.code() })
            .collect(),
    }
}

fn crowd(inspection: &Inspection) -> Crowd {
    let crowd = process::crowd(&inspection.runtimes);
    let cpus = inspection.process.cpus.as_ref();
    Crowd {
        threads: crowd.threads,
        pools: crowd.pools,
        gone: crowd.gone,
        cpus: cpus.map(|c| c.allowed),
        cpu_quota: cpus.and_then(|c| c.quota),
    }
}

fn nested(nested: &process::Nested) -> Nested {
    let place = |p: &process::Membership| Membership { runtime: p.runtime, team: p.team.0, thread_num: p.thread_num };
    Nested {
        lwp: nested.lwp,
        places: nested.places.iter().map(place).collect(),
        outermost_known: nested.outermost_known,
    }
}

fn runtime(inspection: &Inspection, index: usize) -> Runtime {
    let snapshot = &inspection.runtimes[index];
    let instance = &snapshot.instance;
    Runtime {
        family: instance.family,
        product: instance.product,
        path: instance.path.clone(),
        base: hex(instance.base),
        build_id: instance.build_id.as_ref().map(|id| id.to_string()),
        origins: instance
            .origins
            .iter()
            .map(|o| Origin {
                origin: o.origin.word(),
                detail: o.detail.clone(),
                values: o.values,
                note: o.note.clone(),
            })
            .collect(),
        missing: instance.missing.iter().flat_map(|lack| lack.names.clone()).collect(),
        costs: instance.missing.iter().map(|lack| Cost { text: lack.cost, missing: lack.names.clone() }).collect(),
        needed_by: instance.needed_by.as_ref().map(|n| NeededBy {
            chain: n.chain.clone(),
            loaded_at_start: n.loaded_at_start,
            doubt: n.doubt.clone(),
        }),
        notes: crowding::notes(&inspection.process, snapshot),
        icvs: snapshot.settings.iter().map(icvs::setting).collect(),
        leagues: snapshot.leagues.iter().map(league_team).collect(),
        pools: snapshot.pools.iter().map(|pool| Pool { threads: pool.threads.clone() }).collect(),
        threads: snapshot.threads.iter().map(|t| thread(inspection, snapshot, t)).collect(),
        teams: (0..snapshot.teams.len()).map(|index| team(snapshot, index)).collect(),
        tasks: (0..snapshot.tasks.len()).map(|id| tasks::task(inspection, index, model::TaskId(id))).collect(),
        more_tasks: snapshot.more_tasks.iter().map(tasks::more).collect(),
        taskgroups: snapshot.taskgroups.iter().map(tasks::taskgroup).collect(),
        locks: snapshot.locks.iter().map(waits::lock).collect(),
        loops: snapshot.loops.iter().map(loops::of).collect(),
    }
}

/// Where in code something was done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Site {
    /// Return address of the call of the runtime.
    pub code: String,
    /// Where that call is in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

fn site(site: &model::Site) -> Site {
    Site { code: hex(site.code), location: site.location.as_ref().map(location) }
}

fn league_team(team: &model::LeagueTeam) -> LeagueTeam {
    LeagueTeam { lwp: team.lwp, number: copied(&team.number), size: copied(&team.size) }
}

fn location(line: &model::SourceLine) -> Location {
    Location { file: line.file.clone(), function: line.function.clone(), line: line.line }
}

fn code(code: &model::CodeRef) -> Code {
    Code { addr: hex(code.addr), name: code.name.clone() }
}

fn thread(inspection: &Inspection, snapshot: &RuntimeSnapshot, thread: &model::Thread) -> Thread {
    Thread {
        lwp: thread.lwp,
        descriptor: hex(thread.descriptor),
        gtid: thread.gtid,
        role: known(&thread.role, |r| r.word()),
        thread_num: copied(&thread.thread_num),
        team: known(&thread.team, |team| team.map(|t| t.0)),
        task: known(&thread.task, |t| t.0),
        state: known(&thread.state(&snapshot.teams), |s| State { number: s.number(), name: s.name() }),
        wait: known(&thread.wait, |wait| wait.as_ref().map(waits::wait)),
        outside: thread.lwp.and_then(|lwp| inspection.outside(lwp)).and_then(outside::of),
        on_device: thread.on_device.as_ref().map(devices::on_device),
        icvs: icvs::of(&thread.icvs),
        icv_sources: icvs::sources(&thread.icvs.sources),
        placement: icvs::placement(inspection, thread),
    }
}

fn team(snapshot: &RuntimeSnapshot, index: usize) -> Team {
    let team = &snapshot.teams[index];
    Team {
        descriptor: hex(team.descriptor),
        size: copied(&team.size),
        level: copied(&team.level),
        active_level: copied(&team.active_level),
        parent: known(&team.parent, |parent| parent.map(|t| t.0)),
        primary_num: copied(&team.primary_num),
        serialized: copied(&team.serialized),
        function: known(&team.function, code),
        location: known(&team.location, location),
        construct: known(&team.construct, |construct| construct.word()),
        members: team.members.clone(),
        barrier_arrived: team.barrier.value().and_then(|b| b.inside),
        end_arrived: team.barrier.value().and_then(|b| b.at_end),
        barriers_passed: team.barrier.value().and_then(|b| b.passed),
        at_barrier: snapshot.at_barrier(model::TeamId(index)),
    }
}

#[cfg(test)]
mod tests {
    /// The committed schemas are those the types give; `UPDATE_SCHEMA=1` writes them.
    #[test]
    fn the_committed_schemas_are_current() {
        let schemas = [
            ("report", schemars::schema_for!(super::Report)),
            ("report-list", schemars::schema_for!(super::list::List)),
            ("history", schemars::schema_for!(super::history::History)),
            ("grounds", schemars::schema_for!(super::grounds::Grounds)),
            ("top", schemars::schema_for!(crate::top::Refresh)),
        ];
        for (name, schema) in schemas {
            let path = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            let current = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
            if std::env::var_os("UPDATE_SCHEMA").is_some() {
                std::fs::write(&path, &current).expect("writing the schema");
            }
            let committed = std::fs::read_to_string(&path).expect(&path);
            assert!(committed == current, "docs/{name}.schema.json is out of date: run with UPDATE_SCHEMA=1");
        }
    }

    /// The committed page explains the keys and codes that there are; `UPDATE_SCHEMA=1` writes it.
    #[test]
    fn the_committed_page_is_current() {
        let docs = format!("{}/../../docs", env!("CARGO_MANIFEST_DIR"));
        let schema = serde_json::to_value(schemars::schema_for!(super::Report)).expect("a schema is JSON");
        let examples = std::fs::read_to_string(format!("{docs}/json-examples.json")).expect("the examples");
        let list = serde_json::to_value(schemars::schema_for!(super::list::List)).expect("a schema is JSON");
        let page = super::page::page(&schema, &list, &serde_json::from_str(&examples).expect("they are an object"));
        let path = format!("{docs}/json.md");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &page).expect("writing the page");
        }
        assert!(
            std::fs::read_to_string(&path).expect(&path) == page,
            "docs/json.md is out of date: run with UPDATE_SCHEMA=1"
        );
    }

    /// A code stands for one reason.
    #[test]
    fn codes_of_reasons_differ() {
        let mut codes: Vec<_> = ompd_runtime::family::reasons().into_iter().map(|(code, _)| code).collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}
