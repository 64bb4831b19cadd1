//! What has changed between two looks at a process: what tells slow from stuck.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ompd_process::Addr;
use ompd_runtime::Origin;
use ompd_runtime::model::*;

use crate::Inspection;

/// Processor time that a thread may use without having got on: being stopped and let go costs it some tens of microseconds.
pub const NOTHING: Duration = Duration::from_millis(1);

/// What has changed between two looks.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Time between them.
    pub elapsed: Duration,
    /// Threads of OpenMP that were there both times, in LWP order.
    pub threads: Vec<ThreadProgress>,
    /// Other threads that were there both times, in LWP order.
    pub others: Vec<OtherProgress>,
    /// Teams that were there both times.
    pub teams: Vec<TeamProgress>,
    /// Teams that were not there the first time.
    pub begun: usize,
    /// Teams that were not there any more.
    pub ended: usize,
}

/// What has changed of a thread.
#[derive(Debug, Clone)]
pub struct ThreadProgress {
    /// Kernel thread id.
    pub lwp: i32,
    /// Processor time it used meanwhile, where it is known.
    pub cpu: Option<Duration>,
    /// It executes another task, waits for something else, or is elsewhere in the program.
    pub moved: bool,
}

/// What has changed of a thread that no runtime knows.
#[derive(Debug, Clone)]
pub struct OtherProgress {
    /// Kernel thread id.
    pub lwp: i32,
    /// Processor time it used meanwhile, where it is known.
    pub cpu: Option<Duration>,
    /// It is elsewhere in the program; `None` if its stack has no frame of the program.
    pub moved: Option<bool>,
}

/// What has changed of a team.
#[derive(Debug, Clone)]
pub struct TeamProgress {
    /// Index of the runtime.
    pub runtime: usize,
    /// The team, as of the second look.
    pub team: TeamId,
    /// Barriers passed; `None` where the runtime's count could not be read.
    pub barriers: Option<u64>,
    /// Iterations handed out of its worksharing loop, at the first and at the second look, or the loop variable where they are
    /// not counted.
    pub loop_progress: Option<(i128, i128)>,
    /// Tasks of the team that were not over, at the first and at the second look.
    pub tasks: (u64, u64),
    /// Something about it has changed.
    pub moved: bool,
}

impl Progress {
    /// Members of a team, with what has changed of each.
    pub fn members<'a>(&'a self, team: &'a Team) -> impl Iterator<Item = &'a ThreadProgress> {
        self.threads.iter().filter(|t| team.members.contains(&Some(t.lwp)))
    }
}

/// Who has moved between any two looks.
#[derive(Debug, Default)]
pub struct Moved {
    threads: HashSet<i32>,
    others: HashSet<i32>,
    teams: HashSet<(usize, Addr)>,
}

impl Moved {
    /// Adds who has moved before the look `after`.
    pub fn add(&mut self, progress: &Progress, after: &Inspection) {
        self.threads.extend(progress.threads.iter().filter(|t| t.moved).map(|t| t.lwp));
        self.others.extend(progress.others.iter().filter(|t| t.moved == Some(true)).map(|t| t.lwp));
        let teams = progress.teams.iter().filter(|t| t.moved);
        self.teams.extend(teams.filter_map(|t| Some((t.runtime, after.runtimes[t.runtime].team(t.team)?.descriptor))));
    }

    /// Says so of the whole time until the look `last`.
    pub fn tell(&self, progress: &mut Progress, last: &Inspection) {
        for thread in &mut progress.threads {
            thread.moved |= self.threads.contains(&thread.lwp);
        }
        for thread in progress.others.iter_mut().filter(|thread| self.others.contains(&thread.lwp)) {
            thread.moved = Some(true);
        }
        for team in &mut progress.teams {
            let descriptor = last.runtimes[team.runtime].team(team.team).map(|t| t.descriptor);
            team.moved |= descriptor.is_some_and(|d| self.teams.contains(&(team.runtime, d)));
        }
    }
}

/// Compares two looks.
pub fn compare(before: &Inspection, after: &Inspection, elapsed: Duration) -> Progress {
    let mut threads = Vec::new();
    let mut teams = Vec::new();
    let (mut begun, mut ended) = (0, 0);
    for (runtime, snapshot) in after.runtimes.iter().enumerate() {
        let Some(earlier) = before.runtimes.get(runtime) else { continue };
        for thread in &snapshot.threads {
            let was = thread.lwp.and_then(|lwp| earlier.thread_by_lwp(lwp));
            if let (Some(lwp), Some(was)) = (thread.lwp, was)
                && !threads.iter().any(|t: &ThreadProgress| t.lwp == lwp)
            {
                let cpu = before.cpu.get(&lwp).zip(after.cpu.get(&lwp)).map(|(a, b)| b.saturating_sub(*a));
                let moved = match has_moved((earlier, was), (snapshot, thread)) {
                    Some(moved) => moved,
                    None => place(before, lwp) != place(after, lwp),
                };
                threads.push(ThreadProgress { lwp, cpu, moved });
            }
        }
        let known: HashMap<(Addr, Option<u32>), usize> =
            earlier.teams.iter().enumerate().map(|(i, t)| ((t.descriptor, t.level.get()), i)).collect();
        let mut met = 0;
        for (index, team) in snapshot.teams.iter().enumerate() {
            match known.get(&(team.descriptor, team.level.get())) {
                Some(was) => {
                    met += 1;
                    teams.push(of_team(earlier, TeamId(*was), snapshot, runtime, TeamId(index)));
                }
                None => begun += 1,
            }
        }
        ended += earlier.teams.len().saturating_sub(met);
    }
    threads.sort_by_key(|t| t.lwp);
    let moved: Vec<i32> = threads.iter().filter(|t| t.moved).map(|t| t.lwp).collect();
    for team in &mut teams {
        let members = after.runtimes[team.runtime].team(team.team).map(|t| t.members.as_slice()).unwrap_or_default();
        team.moved |= members.iter().flatten().any(|lwp| moved.contains(lwp));
    }
    let others = others(before, after);
    Progress { elapsed, threads, others, teams, begun, ended }
}

/// What has changed of threads that no runtime knows.
fn others(before: &Inspection, after: &Inspection) -> Vec<OtherProgress> {
    let was_there = |lwp: i32| before.threads.binary_search_by_key(&lwp, |thread| thread.lwp).is_ok();
    let others = after.threads.iter().filter(|thread| thread.foreign && was_there(thread.lwp));
    let of = |lwp: i32| {
        let cpu = before.cpu.get(&lwp).zip(after.cpu.get(&lwp)).map(|(a, b)| b.saturating_sub(*a));
        let moved = in_program(before, lwp).zip(in_program(after, lwp)).map(|(before, after)| before != after);
        OtherProgress { lwp, cpu, moved }
    };
    others.map(|thread| of(thread.lwp)).collect()
}

/// Where in the program a thread is: its frames that have lines, functions and lines. A library that waits for something calls all
/// sorts of functions meanwhile.
fn in_program(inspection: &Inspection, lwp: i32) -> Option<Vec<(Option<String>, Option<u32>)>> {
    let stack = inspection.stacks.logical.iter().find(|stack| stack.lwp == lwp)?;
    let frames = stack.frames.iter().filter(|frame| frame.line.is_some());
    let places: Vec<_> = frames.map(|frame| (frame.function.as_deref().map(str::to_owned), frame.line)).collect();
    (!places.is_empty()).then_some(places)
}

/// Whether a thread executes another task or waits for something else; `None` if its place in the program decides that. Who waits
/// without sleeping may be met in an instant that does not tell for what: that is no move.
fn has_moved(before: (&RuntimeSnapshot, &Thread), after: (&RuntimeSnapshot, &Thread)) -> Option<bool> {
    let task = |(snapshot, thread): (&RuntimeSnapshot, &Thread)| {
        thread.task.get().and_then(|id| snapshot.task(id)).map(|task| task.descriptor)
    };
    let wait = |(_, thread): (&RuntimeSnapshot, &Thread)| thread.wait.value().cloned();
    if task(before).zip(task(after)).is_some_and(|(before, after)| before != after) {
        return Some(true);
    }
    match (wait(before), wait(after)) {
        (Some(Some(before)), Some(Some(after))) => {
            // Who looks at a word again and again looks at several in turn, inside a barrier and while it queues up for a lock.
            let asleep = [&before, &after].iter().all(|wait| wait.asleep == Some(true) && wait.origin != Origin::Stack);
            Some(asleep && wait_of(&before) != wait_of(&after))
        }
        (Some(Some(_)), Some(None)) | (Some(None), Some(Some(_))) => Some(true),
        (Some(Some(_)), None) | (None, Some(Some(_))) => Some(false),
        _ => None,
    }
}

/// What it waits for, by address.
fn wait_of(wait: &Wait) -> (WaitKind, Addr) {
    (wait.kind, wait.object)
}

/// Where a thread is in the program: the frames of its stack, apart from the innermost, in which it moves as long as it runs. All Python
/// functions have one address, that of the interpreter: their lines tell.
fn place(inspection: &Inspection, lwp: i32) -> Vec<(Option<Addr>, Option<u32>)> {
    let stack = inspection.stacks.logical.iter().find(|stack| stack.lwp == lwp);
    stack.map(|stack| stack.frames.iter().skip(1).map(|frame| (frame.addr, frame.line)).collect()).unwrap_or_default()
}

fn of_team(
    earlier: &RuntimeSnapshot,
    was: TeamId,
    snapshot: &RuntimeSnapshot,
    runtime: usize,
    team: TeamId,
) -> TeamProgress {
    let passed = |s: &RuntimeSnapshot, id: TeamId| s.team(id)?.barrier.value()?.passed;
    let barriers = passed(earlier, was).zip(passed(snapshot, team)).map(|(a, b)| b.wrapping_sub(a));
    let tasks = (unfinished(earlier, was), unfinished(snapshot, team));
    let loops = (loop_of(earlier, was), loop_of(snapshot, team));
    let loop_progress = loops.0.zip(loops.1);
    let moved = barriers.is_some_and(|n| n > 0)
        || tasks.0 != tasks.1
        || loops.0 != loops.1
        || posted_in(earlier, was) != posted_in(snapshot, team);
    TeamProgress { runtime, team, barriers, loop_progress, tasks, moved }
}

/// How far the loop of a team is.
fn loop_of(snapshot: &RuntimeSnapshot, team: TeamId) -> Option<i128> {
    let of = snapshot.loops.iter().find(|of| of.team == team)?;
    let posted = || of.doacross.value()?.as_ref()?.posted.get();
    of.handed_out.get().or_else(posted).map(i128::from).or_else(|| of.next.get().map(i128::from))
}

/// What has been posted of a team's doacross loop.
fn posted_in(snapshot: &RuntimeSnapshot, team: TeamId) -> Option<&Doacross> {
    snapshot.loops.iter().find(|of| of.team == team)?.doacross.value()?.as_ref()
}

fn unfinished(snapshot: &RuntimeSnapshot, team: TeamId) -> u64 {
    let of_team = |task: &Task| task.team.flat() == Some(team) && task.kind.get().is_some_and(TaskKind::is_explicit);
    let listed = snapshot.tasks.iter().filter(|task| of_team(task)).count() as u64;
    let more = snapshot.more_tasks.iter().filter(|more| snapshot.task(more.like).is_some_and(of_team));
    listed + more.map(|more| more.count).sum::<u64>()
}
