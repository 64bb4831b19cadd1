//! What a live view shows of processes: a refresh has one look at each of them.

use std::collections::HashMap;

use ompd_inspection::Inspection;
use ompd_inspection::progress::Progress;
use ompd_inspection::rank::rank;
use ompd_runtime::icvs::LEVELS;
use ompd_runtime::model::{self, Fact, LoopSchedule, Role, RuntimeSnapshot, TaskState, TeamId, WaitKind};
use ompd_runtime::waits_for::standing;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::answer;
use crate::escape::escape;
use crate::tell::Names;
use crate::text::loop_progress;
use crate::words;

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect-top/1";

/// One refresh of the view. Text of the processes is escaped.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Refresh {
    /// Name and version of this format: `ompd-inspect-top/1`.
    pub schema: &'static str,
    /// Its number, from 1.
    pub number: u64,
    /// When it began, in seconds since 1970-01-01 00:00 UTC.
    pub time: f64,
    /// The processes, in the order in which they were named or found.
    pub processes: Vec<Process>,
}

impl Refresh {
    /// A refresh without processes.
    pub fn new(number: u64, time: f64) -> Refresh {
        Refresh { schema: SCHEMA, number, time, processes: Vec::new() }
    }
}

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Name of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its number in a parallel job, if its launcher has said so in its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// True if it has ended. The rest is what the last look has found.
    pub ended: bool,
    /// Why there was no look this time, and what to do about it. The rest is what the look before has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// OpenMP runtimes.
    pub runtimes: Vec<&'static str>,
    /// The first word of the answer, such as `DEADLOCK` or `RUNNING`; absent without a runtime. For a hang two looks have agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<&'static str>,
    /// The answer: why nothing moves, or what moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How long the look has stopped it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<f64>,
    /// Threads of the process, those outside of OpenMP too.
    pub os_threads: usize,
    /// Parts of the look that are missing; `ompd-inspect doctor` explains them.
    pub issues: usize,
    /// Explicit tasks.
    pub tasks: Tasks,
    /// Teams, parents before children.
    pub teams: Vec<Team>,
    /// Threads of OpenMP.
    pub threads: Vec<Thread>,
}

/// How many explicit tasks are in which state, as far as the runtime records them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tasks {
    /// Threads execute them.
    pub executing: u64,
    /// They are ready, and not started.
    pub queued: u64,
    /// They have started, and their threads execute other tasks.
    pub suspended: u64,
    /// They wait for the tasks they depend on.
    pub blocked: u64,
    /// Their bodies are over, their events are not fulfilled.
    pub detached: u64,
    /// Devices execute them.
    pub on_devices: u64,
}

impl Tasks {
    fn add(&mut self, state: Option<TaskState>, count: u64) {
        let counter = match state {
            Some(TaskState::Running) => &mut self.executing,
            Some(TaskState::Ready) => &mut self.queued,
            Some(TaskState::Suspended) => &mut self.suspended,
            Some(TaskState::Blocked) => &mut self.blocked,
            Some(TaskState::Detached) => &mut self.detached,
            Some(TaskState::OnDevice) => &mut self.on_devices,
            None => return,
        };
        *counter += count;
    }

    /// `3 executing, 12 queued`; nothing without tasks.
    pub fn words(&self) -> Option<String> {
        let counts = [
            (self.executing, "executing"),
            (self.queued, "queued"),
            (self.suspended, "suspended"),
            (self.blocked, "blocked"),
            (self.detached, "detached"),
            (self.on_devices, "on devices"),
        ];
        let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A team.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Team {
    /// Its number in this refresh; in another one it may have another.
    pub id: usize,
    /// Index of its runtime.
    pub runtime: usize,
    /// Nesting level, 1 for an outermost region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The region that it executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The barrier at which a part of it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barrier: Option<Barrier>,
    /// Barriers that it has passed since the refresh before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub barriers_passed: Option<u64>,
    /// Worksharing loops and sections that its threads are in, as far as the runtime records them.
    pub loops: Vec<Loop>,
    /// Its explicit tasks.
    pub tasks: Tasks,
}

/// A barrier at which a part of a team waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Barrier {
    /// It is the barrier at the end of the region.
    pub at_end: bool,
    /// Threads that have reached it.
    pub reached: usize,
    /// Numbers of the threads that have not.
    pub not_reached: Vec<u32>,
    /// Numbers of the threads that may have reached it: their waits are unknown, or they execute a task.
    pub unclear: Vec<u32>,
}

impl Barrier {
    /// `barrier not reached by 3,7-9`.
    pub fn words(&self) -> String {
        let what = if self.at_end { "end of region" } else { "barrier" };
        match self.not_reached.as_slice() {
            [] => format!("{what} reached by {}, unknown of {}", self.reached, words::ranges(&self.unclear)),
            absent => format!("{what} not reached by {}", words::ranges(absent)),
        }
    }
}

/// A worksharing loop, or sections.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Loop {
    /// `loop`, `sections`, or `loop or sections`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// All iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Iterations handed out to threads: begun or over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_out: Option<u64>,
    /// That in percent of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Iterations that are not handed out yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// How far it is, in words.
    pub text: String,
    /// Numbers of the threads in it.
    pub members: Vec<u32>,
}

/// A thread of OpenMP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Thread {
    /// Kernel thread id.
    pub id: i32,
    /// Index of the runtime.
    pub runtime: usize,
    /// Its innermost team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<usize>,
    /// Its number in that team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Threads of that team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_size: Option<u32>,
    /// Nesting level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// `initial`, `worker` or `idle worker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// Its state as OMPT names it, without `ompt_state_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// Processor time since the refresh before, in percent of one processor; in the first refresh since the process was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// It waits for something of OpenMP, its next region apart.
    pub waiting: bool,
    /// It waits for its next region.
    pub idle: bool,
    /// How far the loop of its team is, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_percent: Option<u8>,
    /// Iterations of that loop that are not handed out yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_left: Option<u64>,
    /// What it does or waits for, and where.
    pub doing: String,
}

/// What a look has found. `shares`: the part of a processor that each thread has used, by LWP.
pub fn process(pid: i32, inspection: &Inspection, shares: &HashMap<i32, f64>) -> Process {
    let answer = answer(inspection);
    let teams = inspection.runtimes.iter().enumerate().flat_map(|(runtime, snapshot)| {
        let progress = inspection.progress.as_ref();
        (0..snapshot.teams.len()).map(move |id| team(runtime, snapshot, id, progress))
    });
    let mut tasks = Tasks::default();
    inspection.runtimes.iter().for_each(|snapshot| count(snapshot, None, &mut tasks));
    let mut process = Process {
        pid,
        name: name(inspection),
        rank: rank(&inspection.process.environment).map(|rank| rank.number),
        runtimes: inspection.runtimes.iter().map(|runtime| runtime.instance.product).collect(),
        word: answer.as_ref().map(|answer| answer.word),
        answer: answer.map(|answer| answer.text),
        pause_ms: inspection.pause.map(|pause| pause.as_secs_f64() * 1e3),
        os_threads: inspection.threads.len(),
        issues: inspection.all_issues().count(),
        tasks,
        teams: teams.collect(),
        ..Process::default()
    };
    process.threads = threads(inspection, shares, &process.teams);
    process
}

fn name(inspection: &Inspection) -> Option<String> {
    let process = &inspection.process;
    let path = process.exe.as_deref().or_else(|| process.command.as_deref()?.split(' ').next())?;
    Some(escape(path.rsplit('/').next().unwrap_or(path)))
}

/// Counts explicit tasks: those of a team, or all.
fn count(snapshot: &RuntimeSnapshot, team: Option<TeamId>, tasks: &mut Tasks) {
    let is_counted = |task: &&model::Task| {
        task.kind.get().is_some_and(model::TaskKind::is_explicit) && team.is_none_or(|id| task.team.flat() == Some(id))
    };
    snapshot.tasks.iter().filter(is_counted).for_each(|task| tasks.add(task.state.get(), 1));
    for more in &snapshot.more_tasks {
        if let Some(task) = snapshot.task(more.like).filter(is_counted) {
            tasks.add(task.state.get(), more.count);
        }
    }
}

fn team(runtime: usize, snapshot: &RuntimeSnapshot, id: usize, progress: Option<&Progress>) -> Team {
    let of = &snapshot.teams[id];
    let mut tasks = Tasks::default();
    count(snapshot, Some(TeamId(id)), &mut tasks);
    let moved = progress.and_then(|all| all.teams.iter().find(|t| t.runtime == runtime && t.team == TeamId(id)));
    Team {
        id,
        runtime,
        level: of.level.get(),
        size: of.size.get(),
        region: words::region(of),
        barrier: standing(snapshot, TeamId(id)).map(|standing| Barrier {
            at_end: standing.at_end,
            reached: standing.arrived,
            not_reached: standing.absent,
            unclear: standing.unclear,
        }),
        barriers_passed: moved.and_then(|team| team.barriers),
        loops: snapshot.loops.iter().filter(|of| of.team == TeamId(id)).map(loop_of).collect(),
        tasks,
    }
}

fn loop_of(of: &model::Loop) -> Loop {
    let (iterations, handed_out) = (of.iterations.get(), of.handed_out.get());
    let percent = iterations.zip(handed_out).filter(|(all, _)| *all > 0).and_then(|(all, out)| {
        let percent = u128::from(out.min(all)) * 100 / u128::from(all);
        u8::try_from(percent).ok()
    });
    let is_static = of.schedule.get() == Some(LoopSchedule::Static);
    Loop {
        kind: of.kind.get().map(model::LoopKind::word),
        iterations,
        handed_out,
        percent: percent.filter(|_| !is_static),
        left: left(of).filter(|_| !is_static),
        text: loop_progress(of),
        members: of.members.clone(),
    }
}

/// Iterations that are not handed out yet: by the counts, or by the loop variable.
fn left(of: &model::Loop) -> Option<u64> {
    let counts = of.iterations.get().zip(of.handed_out.get());
    counts.map_or_else(|| of.left(), |(all, out)| Some(all.saturating_sub(out)))
}

/// Each thread once: one that several runtimes know, where it is in a team.
fn threads(inspection: &Inspection, shares: &HashMap<i32, f64>, teams: &[Team]) -> Vec<Thread> {
    let names = Names::of(inspection);
    let mut rows: Vec<Thread> = Vec::new();
    let mut known: HashMap<i32, usize> = HashMap::new();
    for (runtime, snapshot) in inspection.runtimes.iter().enumerate() {
        for thread in &snapshot.threads {
            let Some(lwp) = thread.lwp else { continue };
            let row = || {
                let mut row = of_thread(&names, runtime, snapshot, thread, lwp);
                row.cpu_percent = shares.get(&lwp).map(|share| share * 100.0);
                let own = teams.iter().find(|team| team.runtime == runtime && Some(team.id) == row.team);
                let of = own
                    .and_then(|team| team.loops.iter().find(|of| row.number.is_some_and(|n| of.members.contains(&n))));
                row.loop_percent = of.and_then(|of| of.percent);
                row.loop_left = of.and_then(|of| of.left);
                row
            };
            match known.get(&lwp) {
                Some(at) if rows[*at].team.is_none() && thread.team.flat().is_some() => rows[*at] = row(),
                Some(_) => {}
                None => {
                    known.insert(lwp, rows.len());
                    rows.push(row());
                }
            }
        }
    }
    rows
}

fn of_thread(
    names: &Names<'_>,
    runtime: usize,
    snapshot: &RuntimeSnapshot,
    thread: &model::Thread,
    lwp: i32,
) -> Thread {
    let wait = thread.wait.value().and_then(Option::as_ref);
    let idle = thread.role.get() == Some(Role::IdleWorker) || wait.is_some_and(|wait| wait.kind == WaitKind::Pool);
    let team = thread.team.flat();
    let doing = match &thread.wait {
        _ if idle => "idle: waits for the next region".to_owned(),
        Fact::Unknown { why } => format!("unknown: {}", escape(&why.to_string())),
        Fact::Known { .. } => {
            let inside = thread.in_runtime.filter(|_| wait.is_none()).map(words::in_runtime);
            inside.unwrap_or_else(|| names.stand(lwp))
        }
    };
    let doing = match &thread.on_device {
        Some(on_device) => format!("{}: {doing}", words::on_device(on_device)),
        None => doing,
    };
    Thread {
        id: lwp,
        runtime,
        team: team.map(|team| team.0),
        number: thread.thread_num.get(),
        team_size: team.and_then(|team| snapshot.team(team)).and_then(|team| team.size.get()),
        level: thread.icvs.count(&LEVELS).filter(|_| !idle).and_then(|level| u32::try_from(level).ok()),
        role: thread.role.get().map(Role::word),
        state: thread.state(&snapshot.teams).get().map(model::State::name),
        cpu_percent: None,
        waiting: wait.is_some() && !idle,
        idle,
        loop_percent: None,
        loop_left: None,
        doing,
    }
}

#[cfg(test)]
mod tests {
    use ompd_runtime::Origin;
    use ompd_runtime::model::Common;

    use super::*;

    #[test]
    fn tasks_are_counted_by_their_states() {
        let mut tasks = Tasks::default();
        assert_eq!(tasks.words(), None);
        tasks.add(Some(TaskState::Running), 2);
        tasks.add(Some(TaskState::Ready), 40);
        tasks.add(None, 7);
        assert_eq!(tasks.words().as_deref(), Some("2 executing, 40 queued"));
        let others = [TaskState::Suspended, TaskState::Blocked, TaskState::Detached, TaskState::OnDevice];
        let mut tasks = Tasks::default();
        others.into_iter().zip(1..).for_each(|(state, count)| tasks.add(Some(state), count));
        assert_eq!(tasks.words().as_deref(), Some("1 suspended, 2 blocked, 3 detached, 4 on devices"));
        // A second item of a state counts as well.
        tasks.add(Some(TaskState::Blocked), 5);
        assert_eq!((tasks.blocked, tasks.detached), (7, 3));
    }

    #[test]
    fn loop_that_hands_out_iterations_has_a_percentage() {
        let of = |schedule, handed_out, iterations| {
            let schedule = Fact::known(schedule, Origin::Dwarf);
            let [handed_out, iterations] = [handed_out, iterations].map(|count| Fact::known(count, Origin::Dwarf));
            let of = model::Loop::unknown(TeamId(0), Common::NotRecordedByRuntime);
            let told = loop_of(&model::Loop { schedule, handed_out, iterations, ..of });
            (told.percent, told.left)
        };
        assert_eq!(of(LoopSchedule::Dynamic, 52, 150), (Some(34), Some(98)));
        assert_eq!(of(LoopSchedule::Guided, 1, 1), (Some(100), Some(0)));
        assert_eq!(of(LoopSchedule::Dynamic, 9, 3), (Some(100), Some(0)), "a torn read");
        assert_eq!(of(LoopSchedule::Dynamic, 0, 0), (None, Some(0)));
        // Each thread computes its own share: nothing is handed out.
        assert_eq!(of(LoopSchedule::Static, 52, 150), (None, None));
    }

    #[test]
    fn a_barrier_names_who_has_not_reached_it() {
        let barrier = Barrier { at_end: false, reached: 2, not_reached: vec![0, 3, 4], unclear: Vec::new() };
        assert_eq!(barrier.words(), "barrier not reached by 0,3-4");
        let unclear = Barrier { at_end: true, not_reached: Vec::new(), unclear: vec![1], ..barrier };
        assert_eq!(unclear.words(), "end of region reached by 2, unknown of 1");
    }
}
