//! What a program says about itself. The field names of [`Api`] are those of the `omp_get_*` functions asked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::basics::{Address, Kind, LockKind, Wait};
use crate::expect::{Expectation, Gone, Named, Verdict};
use crate::stacks::{Stack, StackTask};

/// The task a thread runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its kind.
    pub kind: Kind,
    /// The function the body of the task or region calls; it is on the thread's stack.
    pub function: String,
    /// Where this function begins.
    pub address: Address,
    /// Where this function returns to: an address in the function the compiler made of the construct.
    pub called_from: Address,
}

/// One level of nesting as a thread sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// `omp_get_ancestor_thread_num(level)`.
    pub ancestor_thread_num: i32,
    /// `omp_get_team_size(level)`.
    pub team_size: i32,
}

/// What the OpenMP API told a thread. Logical values are 0 or 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the result of the omp_get_* function of its name")]
pub struct Api {
    pub thread_num: i32,
    pub num_threads: i32,
    pub level: i32,
    pub active_level: i32,
    /// By level, from 0 to `level`.
    pub levels: Vec<Level>,
    pub in_parallel: i32,
    pub in_final: i32,
    pub max_threads: i32,
    pub dynamic: i32,
    /// `omp_sched_t` without its monotonic bit: 1 static, 2 dynamic, 3 guided, 4 auto.
    pub schedule_kind: i32,
    pub schedule_chunk: i32,
    /// The monotonic bit of `omp_sched_t`.
    pub schedule_monotonic: i32,
    pub max_active_levels: i32,
    pub thread_limit: i32,
    /// `omp_proc_bind_t`: 0 false, 1 true, 2 primary, 3 close, 4 spread.
    pub proc_bind: i32,
    pub cancellation: i32,
    pub default_device: i32,
    pub max_task_priority: i32,
    pub num_procs: i32,
    pub num_places: i32,
    pub place_num: i32,
}

/// One thread of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// What the program calls this thread; several threads may share a role.
    pub role: String,
    /// `gettid`.
    pub lwp: i32,
    /// `pthread_self`.
    pub pthread: Address,
    /// What it waits for.
    pub wait: Wait,
    /// The lock variable waited for, or the word of the critical section.
    pub wait_object: Option<Address>,
    /// The task it runs; none for idle threads and threads without OpenMP.
    pub task: Option<Task>,
    /// What the API said; none for idle threads and threads without OpenMP.
    pub api: Option<Api>,
}

/// A lock that is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The name of the variable or of the critical section.
    pub name: String,
    /// Its kind.
    pub kind: LockKind,
    /// Of the lock variable, or of the word the compiler made for the critical section.
    pub address: Address,
    /// The LWP that holds it.
    pub owner: i32,
    /// How many times it was taken.
    pub depth: i32,
}

/// Why no thread executes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// No thread is free to run it.
    Queued,
    /// It depends on a task that has not completed.
    Dependent,
    /// Its body is over, and nobody has fulfilled the event of its `detach` clause.
    Detached,
}

/// An explicit task that was created and that no thread executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnstartedTask {
    /// The function its body will call.
    pub function: String,
    /// Where this function begins.
    pub address: Address,
    /// Why no thread executes it.
    pub state: TaskState,
    /// The LWP that created it.
    pub creator: i32,
    /// The storage named in its `depend` clause, 0 without one.
    pub depend: Address,
}

/// What a program says about itself as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramFacts {
    /// Its name.
    pub name: String,
    /// `getpid`.
    pub pid: i32,
    /// The compiler's `_OPENMP`; 0 when built without OpenMP.
    pub openmp: i32,
}

/// All a program says about itself before it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// The program.
    pub program: ProgramFacts,
    /// Every thread of the process, in the order in which they were noted; of healthy programs those that stay in one
    /// wait.
    pub threads: Vec<Thread>,
    /// The locks held.
    pub locks: Vec<Lock>,
    /// The tasks not started.
    pub tasks: Vec<UnstartedTask>,
    /// The LWP that told all this. It is in `read` on standard input, or, in a program that hangs, in the wait it
    /// announced.
    pub coordinator: i32,
    /// What must be said of it, of programs that hang and of healthy ones.
    pub expectation: Option<Expectation>,
    /// Threads that have ended.
    pub gone: Vec<Gone>,
    /// Events and the like.
    pub objects: Vec<Named>,
    /// The logical stacks, of programs that know them.
    pub stacks: Vec<Stack>,
    /// The tasks, finished ones too, that frames of [`Truth::stacks`] belong to.
    pub stack_tasks: Vec<StackTask>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Program(ProgramFacts),
    Thread(Thread),
    Lock(Lock),
    Task(UnstartedTask),
    Expect(Expectation),
    Gone(Gone),
    Object(Named),
    Stack(Stack),
    StackTask(StackTask),
    #[serde(untagged)]
    Ready {
        ready: bool,
        coordinator: i32,
    },
}

impl Truth {
    /// Reads lines until the one that says ready.
    ///
    /// # Errors
    /// When the lines end before, or one cannot be understood.
    pub fn read(lines: &mut dyn Iterator<Item = std::io::Result<String>>) -> Result<Truth> {
        let (mut program, mut threads, mut locks, mut tasks) = (None, Vec::new(), Vec::new(), Vec::new());
        let (mut stacks, mut stack_tasks) = (Vec::new(), Vec::new());
        let (mut expectation, mut gone, mut objects) = (None, Vec::new(), Vec::new());
        for line in lines {
            let line = line.context("reading the truth")?;
            match serde_json::from_str(&line).with_context(|| format!("no line of the truth: {line}"))? {
                Line::Program(facts) => program = Some(facts),
                Line::Thread(thread) => threads.push(thread),
                Line::Lock(lock) => locks.push(lock),
                Line::Task(task) => tasks.push(task),
                Line::Expect(_) if expectation.is_some() => bail!("the truth has two expectations"),
                Line::Expect(expected) => expectation = Some(expected),
                Line::Gone(thread) => gone.push(thread),
                Line::Object(object) => objects.push(object),
                Line::Stack(stack) => stacks.push(stack),
                Line::StackTask(task) => stack_tasks.push(task),
                Line::Ready { ready: false, .. } => bail!("the program says it is not ready"),
                Line::Ready { ready: true, coordinator } => {
                    let program = program.context("the truth does not name its program")?;
                    return Ok(Truth {
                        program,
                        threads,
                        locks,
                        tasks,
                        coordinator,
                        expectation,
                        gone,
                        objects,
                        stacks,
                        stack_tasks,
                    });
                }
            }
        }
        bail!("the program ended before it was ready")
    }

    /// The threads of one role.
    pub fn with_role<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a Thread> {
        self.threads.iter().filter(move |thread| thread.role == role)
    }

    /// The thread with this LWP.
    pub fn thread(&self, lwp: i32) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.lwp == lwp)
    }

    /// How many threads and tasks count one step of progress each on their way to the program's end.
    pub fn steps(&self) -> usize {
        self.threads.len() + self.tasks.len()
    }

    /// Everything in which the truth contradicts itself or the OpenMP specification; empty when it is sound.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut require = |holds: bool, what: String| {
            if !holds {
                found.push(what);
            }
        };
        let lwps: BTreeSet<i32> = self.threads.iter().map(|thread| thread.lwp).collect();
        let pthreads: BTreeSet<Address> = self.threads.iter().map(|thread| thread.pthread).collect();
        require(lwps.len() == self.threads.len(), "two threads have one LWP".into());
        require(pthreads.len() == self.threads.len(), "two threads have one pthread_t".into());
        // What moves cannot be told of.
        let moves = self.expectation.as_ref().is_some_and(|expected| expected.verdict == Verdict::None);
        require(moves || lwps.contains(&self.program.pid), "the first thread of the process is missing".into());
        require(moves || lwps.contains(&self.coordinator), "the coordinator is missing".into());
        for lock in &self.locks {
            let is_gone = self.gone.iter().any(|thread| thread.lwp == lock.owner);
            let exists = lwps.contains(&lock.owner) || is_gone;
            require(exists, format!("nobody is LWP {}, owner of {}", lock.owner, lock.name));
        }
        for task in &self.tasks {
            require(lwps.contains(&task.creator), format!("nobody is LWP {}, creator of a task", task.creator));
        }
        for thread in &self.threads {
            let names_object = matches!(thread.wait, Wait::Lock | Wait::NestLock | Wait::Critical);
            require(thread.wait_object.is_some() == names_object, format!("{thread:?}: wrong kind of wait_object"));
            require(
                thread.wait_object.is_none_or(|object| self.locks.iter().any(|lock| lock.address == object)),
                format!("{thread:?}: waits for a lock nobody holds"),
            );
            // Programs that know their stacks say nothing of the task's function.
            let both = thread.task.is_some() == thread.api.is_some();
            require(both || !self.stacks.is_empty(), format!("{thread:?}: has one of task and API only"));
            if let Some(api) = &thread.api {
                for fault in api.contradictions() {
                    require(false, format!("LWP {}: {fault}", thread.lwp));
                }
                let initial = thread.task.as_ref().is_some_and(|task| task.kind == Kind::Initial);
                let agree = thread.task.is_none() || initial == (api.level == 0);
                require(agree, format!("{thread:?}: initial task and level disagree"));
            }
        }
        for fault in self.stack_contradictions().into_iter().chain(self.expectation_contradictions()) {
            require(false, fault);
        }
        // Threads executing in one team have different numbers. In a program with one initial thread, threads at the
        // same place of the tree of teams are in one team.
        let mut members: BTreeMap<Vec<i32>, BTreeSet<i32>> = BTreeMap::new();
        if !matches!(self.program.name.as_str(), "user_pthread" | "stacks_pthread") {
            for api in self.threads.iter().filter_map(|thread| thread.api.as_ref()) {
                let path = api.levels.iter().map(|level| level.ancestor_thread_num);
                let team: Vec<i32> = path.take(api.levels.len().saturating_sub(1)).collect();
                require(
                    members.entry(team.clone()).or_default().insert(api.thread_num),
                    format!("two threads are number {} of the team at {team:?}", api.thread_num),
                );
            }
        }
        found
    }
}

impl Api {
    fn contradictions(&self) -> Vec<String> {
        let here = self.levels.last().copied();
        let active = self.levels.iter().filter(|level| level.team_size > 1).count();
        let checks = [
            (usize::try_from(self.level).ok() == self.levels.len().checked_sub(1), "level and the list of levels"),
            (here.map(|level| level.ancestor_thread_num) == Some(self.thread_num), "thread_num and its level"),
            (here.map(|level| level.team_size) == Some(self.num_threads), "num_threads and its level"),
            (usize::try_from(self.active_level).ok() == Some(active), "active_level and the team sizes"),
            (self.levels.iter().all(|l| (0..l.team_size).contains(&l.ancestor_thread_num)), "numbers and team sizes"),
            (
                self.levels.first() == Some(&Level { ancestor_thread_num: 0, team_size: 1 }),
                "level 0 and what it must be",
            ),
            (self.in_parallel == i32::from(self.active_level > 0), "in_parallel and active_level"),
            (matches!(self.schedule_kind, 1..=4), "schedule_kind and the kinds there are"),
            (self.max_threads >= 1 && self.thread_limit >= self.num_threads, "thread counts and their limits"),
        ];
        checks.iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{what} disagree: {self:?}")).collect()
    }
}
