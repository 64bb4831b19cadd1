//! Where libgomp begins and ends regions, tasks and threads. It has no symbols for that; its functions are in
//! `libgomp/{parallel,team,task,taskloop}.c`.

use std::collections::BTreeSet;

use ompd_layout::Origin;
use ompd_layout::code::{self, Call, CodeImage, Event, Expr, Kind as ExprKind, Limits, Operand, Run, TransferKind};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Target};

use super::Gomp;
use super::recover::{Recipes, internal};
use crate::bind::StructData;
use crate::excerpt::Excerpt;
use crate::gomp::reason::Own;
use crate::limits;
use crate::model::Common;
use crate::model::{Fact, RawSnapshot, RawTeam, TeamId};
use crate::recover::unanimous;
use crate::stops::{
    AtStop, Branches, Found, Kind, Lacking, MAX_PLACES, Site, StopEvent, StopPoint, Values, argument_register,
    constructs::{self, Constructs},
    encountering,
};

/// What `gomp_team_start (fn, data, nthreads, flags, team, taskgroup)` is given, by number.
const FUNCTION: u8 = 0;
const TEAM: u8 = 4;
/// Bounds for functions in which tasks are executed: they are the largest of the library.
const TASKS: Limits =
    Limits { paths: 2000, instructions: 400_000, visits: 2, inline_depth: 1, inline_bytes: 96, beyond: false };

/// What programs call (lock.c, critical.c, task.c, single.c, sections.c, loop.c).
const CONSTRUCTS: Constructs = Constructs {
    functions: &[
        (StopEvent::LockAcquire, &["omp_set_lock", "omp_set_lock_", "omp_set_nest_lock", "omp_set_nest_lock_"]),
        (StopEvent::CriticalAcquire, &["GOMP_critical_start", "GOMP_critical_name_start"]),
        (StopEvent::TaskwaitBegin, &["GOMP_taskwait", "GOMP_taskwait_depend"]),
        (StopEvent::WorksharingBegin, &["GOMP_sections_start", "GOMP_sections2_start"]),
        (StopEvent::SingleBegin, &["GOMP_single_start", "GOMP_single_copy_start"]),
    ],
    loops: &[("GOMP_loop_", "_start")],
    shared: None,
};

/// Finds the places in a file. `in_task` is the offset of `gomp_task.fn`, where it is known from elsewhere than the code.
pub(crate) fn find(image: &ElfFile, in_task: Option<u64>) -> Found {
    let mut recipes = Recipes::new(image);
    recipes.foundations();
    recipes.explicit_task();
    let in_task = recipes.decoder.known("gomp_task", "fn").map(|field| field.offset).or(in_task);
    let in_task = in_task.and_then(|at| i64::try_from(at).ok());
    let mut search = Search { recipes, branches: Branches::of(image), in_task, found: Found::default() };
    search.regions();
    search.tasks();
    search.threads();
    search.barriers();
    constructs::find(&CONSTRUCTS, &search.branches, &mut search.found);
    search.found.close(&search.branches)
}

/// Calls in functions that deal with tasks, by the addresses of the instructions.
#[derive(Default)]
struct TaskCalls {
    /// Through pointers, of tasks.
    tasks: BTreeSet<u64>,
    /// Of something else.
    others: BTreeSet<u64>,
    /// Of what has a device execute a task.
    devices: BTreeSet<u64>,
}

/// Functions by which programs come to a barrier (barrier.c, loop.c, sections.c).
const BARRIERS: [&str; 6] = [
    "GOMP_barrier",
    "GOMP_barrier_cancel",
    "GOMP_loop_end",
    "GOMP_loop_end_cancel",
    "GOMP_sections_end",
    "GOMP_sections_end_cancel",
];

/// The calls that come first behind a call through a pointer, by where they are and what they call.
fn behind_bodies(run: &Run) -> BTreeSet<(u64, u64)> {
    let mut found = BTreeSet::new();
    for path in run.paths() {
        let mut body = false;
        for event in path {
            let Event::Call(call) = event else { continue };
            match (internal(call), &call.callee) {
                (Some(callee), _) if std::mem::take(&mut body) => {
                    found.insert((call.at, callee));
                }
                (None, code::Callee::Named(_)) | (Some(_), _) => {}
                (None, _) => body = true,
            }
        }
    }
    found
}

struct Search<'a> {
    recipes: Recipes<'a>,
    branches: Branches<'a>,
    in_task: Option<i64>,
    found: Found,
}

impl Search<'_> {
    fn image(&self) -> &ElfFile {
        self.branches.image
    }

    fn entry(&self, name: &str) -> Option<u64> {
        CodeImage::symbol(self.image(), name)
    }

    /// `gomp_team_start` stores its team in the calling thread: `thr->ts.team = team;`
    fn is_team_start(&mut self, entry: u64) -> bool {
        let Some(run) = self.recipes.decoder.run_at("gomp_team_start", entry) else { return false };
        let team = self.recipes.team;
        team.is_some()
            && run.stores().any(|s| s.value.as_arg() == Some(TEAM) && self.recipes.in_thread(&s.addr) == team)
    }

    /// Everything that opens a region calls `gomp_team_start`, which `GOMP_parallel` gives its own arguments.
    fn team_start(&mut self) -> Option<u64> {
        let from_call = || {
            let run = code::run_symbol(self.image(), "GOMP_parallel", &Limits { inline_depth: 1, ..Limits::default() })
                .ok()?;
            let passes_on =
                run.calls().filter(|c| c.args[0].as_arg() == Some(0) && c.args[1].as_arg() == Some(1) && !c.tail);
            passes_on.filter_map(internal).next()
        };
        let entry = from_call().or_else(|| self.entry("gomp_team_start"))?;
        self.is_team_start(entry).then_some(entry)
    }

    /// `gomp_team_end` ends with the thread out of the team: `thr->ts = team->prev_ts`, and before that it waits at the team's last
    /// barrier. `GOMP_parallel_end` calls it, or jumps to it.
    fn team_end(&mut self) -> Option<(u64, Run)> {
        let named = self.entry("gomp_team_end");
        let run = code::run_symbol(self.image(), "GOMP_parallel_end", &Limits::default()).ok();
        let called: BTreeSet<u64> = run.iter().flat_map(Run::calls).filter_map(internal).chain(named).collect();
        called.into_iter().find_map(|entry| {
            let run = self.recipes.decoder.run_at("gomp_team_end", entry)?;
            let team = self.recipes.team?;
            // The team that ended becomes the pool's last one.
            let kept = run.stores().any(|s| {
                let from = s.value.as_load(8).and_then(|at| self.recipes.in_thread(at));
                from == Some(team) && s.addr.as_member().is_some()
            });
            kept.then_some((entry, run))
        })
    }

    fn regions(&mut self) {
        match self.team_start() {
            Some(entry) => self.region_begin(entry),
            None => self.found.gap(
                StopEvent::ParallelBegin,
                "the function that starts a team (gomp_team_start) could not be told by what GOMP_parallel calls",
            ),
        }
        match self.team_end() {
            Some((entry, run)) => self.region_end(entry, &run),
            None => self.found.gap(
                StopEvent::ParallelEnd,
                "the function that ends a team (gomp_team_end) could not be told by what GOMP_parallel_end calls",
            ),
        }
    }

    fn region_begin(&mut self, entry: u64) {
        let machine = self.image().machine();
        let registers = [FUNCTION, TEAM].into_iter().filter_map(|n| argument_register(machine, n)).collect();
        let site = Site::new(StopEvent::ParallelBegin, entry, Kind::TeamStart, "entry of gomp_team_start");
        self.found.site(Site { registers, ..site });
        // Old programs call GOMP_parallel_start and its like; newer ones GOMP_parallel and its like.
        let others: Vec<String> = self
            .branches
            .exported("GOMP_parallel")
            .into_iter()
            .filter(|(name, at)| name != "GOMP_parallel_end" && !self.branches.reached(*at, 3).contains(&entry))
            .map(|(name, _)| name)
            .collect();
        if !others.is_empty() {
            let why = format!("regions that are opened by {} are not met: they start no team there", others.join(", "));
            self.found.gap(StopEvent::ParallelBegin, why);
        }
    }

    /// `gomp_team_barrier_wait_final (&team->barrier);` is the first thing it does.
    fn region_end(&mut self, entry: u64, run: &Run) {
        const WHY: &str = "the last barrier of a team could not be told in the function that ends it (gomp_team_end)";
        let in_team = |addr: &Expr| self.recipes.behind(self.recipes.team, addr).filter(|at| *at != 0);
        // Of what is done with something in the team.
        let first_calls = run.paths().filter_map(|path| {
            let mut calls = path.filter_map(|event| if let Event::Call(call) = event { Some(call) } else { None });
            calls.find(|call| internal(call).is_some() && in_team(&call.args[0]).is_some())
        });
        let first = unanimous(first_calls.map(|call| (call.at, !call.tail)));
        let behind = match first {
            Some((at, true)) => self.branches.at(at).map(|transfer| transfer.next),
            _ => None,
        };
        match behind.filter(|at| !self.branches.is_jumped_to(*at)) {
            Some(at) => {
                let place = format!("gomp_team_end+{:#x}, behind the team's last barrier", at.wrapping_sub(entry));
                let site = Site::new(StopEvent::ParallelEnd, at, Kind::TeamEnd, place);
                self.found.site(Site { condition: Some("the thread is in a region: its level is not 0"), ..site });
            }
            None => self.found.gap(StopEvent::ParallelEnd, WHY),
        }
    }

    /// Tasks are called through pointers: `thr->task = child_task; … child_task->fn (child_task->fn_data);`, and undeferred ones
    /// `thr->task = &task; … fn (data);` where `fn` is an argument of `GOMP_task` and `GOMP_taskloop`.
    fn tasks(&mut self) {
        const EVENTS: [StopEvent; 2] = [StopEvent::TaskBegin, StopEvent::TaskEnd];
        let (Some(task), Some(in_task)) = (self.recipes.task, self.in_task) else {
            return EVENTS.into_iter().for_each(|event| {
                self.found.gap(event, "where this libgomp keeps current tasks, or functions of tasks, is not known")
            });
        };
        let generating: Vec<u64> = ["GOMP_task", "GOMP_taskloop", "GOMP_taskloop_ull"]
            .into_iter()
            .filter_map(|name| self.entry(name))
            .collect();
        let calling: BTreeSet<u64> = self
            .branches
            .all()
            .filter(|(_, transfer)| matches!(transfer.kind, TransferKind::CallThrough(_)))
            .map(|(entry, _)| entry)
            .collect();
        let (mut calls, mut executing, mut unseen) = (TaskCalls::default(), BTreeSet::new(), BTreeSet::new());
        for entry in calling {
            let Some(run) = self.branches.run(entry, &TASKS) else { continue };
            // Not a function that deals with current tasks.
            let switches = |s: &code::Store| s.size == 8 && self.recipes.in_thread(&s.addr) == Some(task);
            if !run.stores().any(switches) {
                continue;
            }
            let found = self.task_calls(&run, task, in_task, generating.contains(&entry));
            if !found.tasks.is_empty() {
                executing.insert(entry);
            }
            let through = self.branches.of_function(entry).iter();
            let pointers = through.filter(|transfer| matches!(transfer.kind, TransferKind::CallThrough(_)));
            let doubtful = |at: &u64| found.tasks.contains(at) == found.others.contains(at);
            unseen.extend(pointers.map(|transfer| transfer.at).filter(doubtful));
            calls.tasks.extend(found.tasks);
            calls.devices.extend(found.devices);
        }
        calls.tasks.retain(|at| !unseen.contains(at));
        if calls.tasks.len().max(unseen.len()) > MAX_PLACES {
            let why = "there are too many calls that may be tasks";
            return EVENTS.into_iter().for_each(|event| self.found.gap(event, why));
        }
        for at in &calls.tasks {
            self.task_begins(*at);
        }
        self.task_ends(&calls);
        // What may execute tasks, by what programs call.
        for name in ["GOMP_task", "GOMP_taskwait", "GOMP_taskgroup_end", "GOMP_barrier", "GOMP_taskloop"] {
            let Some(entry) = self.entry(name) else { continue };
            if self.branches.reached(entry, 4).is_disjoint(&executing) {
                let why = format!("tasks that {name} executes are not met: where it calls them could not be told");
                EVENTS.into_iter().for_each(|event| self.found.gap(event, why.clone()));
            }
        }
        for entry in
            unseen.iter().filter_map(|at| self.branches.function(*at)).map(|f| f.start).collect::<BTreeSet<_>>()
        {
            let name = self.branches.name(entry);
            let why =
                format!("not everything that {name} calls could be told: tasks may be among it, which are not met");
            EVENTS.into_iter().for_each(|event| self.found.gap(event, why.clone()));
        }
    }

    /// What a function calls through pointers, on all ways through it.
    fn task_calls(&self, run: &Run, task: i64, in_task: i64, generates: bool) -> TaskCalls {
        let mut found = TaskCalls::default();
        let member = |value: &Expr, of: &Expr| value.as_load(8)?.offset_from(of);
        // What is stored is the task itself and not where it came from; undeferred ones are on the stack.
        let on_stack = |value: &Expr| !matches!(value.split().0.kind(), ExprKind::Load { .. } | ExprKind::Const(_));
        for path in run.paths() {
            let (mut current, mut compared): (Option<&Expr>, bool) = (None, false);
            for event in path {
                match event {
                    Event::Store(s) if s.size == 8 && self.recipes.in_thread(&s.addr) == Some(task) => {
                        (current, compared) = (Some(&s.value), false);
                    }
                    Event::Compare(c) if c.size == 8 && c.right.as_const() == Some(0) => {
                        compared = current.is_some_and(|current| member(&c.left, current) == Some(in_task));
                    }
                    Event::Call(call) => {
                        let data = current.and_then(|current| member(&call.args[0], current));
                        let of_data = data.is_some() && data == in_task.checked_add(8);
                        match &call.callee {
                            code::Callee::Pointer(callee) => {
                                let deferred =
                                    of_data && current.is_some_and(|current| member(callee, current) == Some(in_task));
                                let undeferred =
                                    generates && callee.as_arg() == Some(0) && current.is_some_and(on_stack);
                                let is = if deferred || undeferred { &mut found.tasks } else { &mut found.others };
                                is.insert(call.at);
                            }
                            // `if (child_task->fn == NULL) { if (gomp_target_task_fn (child_task->fn_data)) …`
                            _ => {
                                found.others.insert(call.at);
                                if of_data && compared {
                                    found.devices.insert(call.at);
                                }
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn task_begins(&mut self, at: u64) {
        let Some((transfer, function)) = self.branches.at(at).zip(self.branches.function(at)) else { return };
        let TransferKind::CallThrough(operand) = transfer.kind else { return };
        let name = self.branches.name(function.start);
        let place = format!("{name}+{:#x}, where it calls a task", at.wrapping_sub(function.start));
        let registers = match operand {
            Some(Operand::Register(register) | Operand::Memory { base: register, .. }) => vec![register],
            Some(Operand::Slot(_) | Operand::Indexed { .. }) | None => Vec::new(),
        };
        let site = Site::new(StopEvent::TaskBegin, at, Kind::TaskCall(operand), place);
        self.found.site(Site { registers, ..site });
    }

    /// Finds the places behind calls of tasks. A jump to such a place must come directly from another call of a task,
    /// which then needs no place of its own. Or it comes from a call by which a device has executed the task, which
    /// then has no function.
    fn task_ends(&mut self, calls: &TaskCalls) {
        let (mut ends, mut folded) = (Vec::new(), BTreeSet::new());
        for at in &calls.tasks {
            let Some(behind) = self.branches.at(*at).map(|transfer| transfer.next) else { continue };
            let mut condition = None;
            let mut proven = true;
            let jumps = self.branches.jumps_to(behind);
            proven &= jumps.len() <= MAX_PLACES;
            for jump in jumps.into_iter().take(MAX_PLACES) {
                match self.branches.only_from_call(jump) {
                    Some(call) if calls.tasks.contains(&call) => {
                        folded.insert(call);
                    }
                    Some(call) if calls.devices.contains(&call) => {
                        condition = Some("the thread's task has a function: it was not executed by a device");
                    }
                    _ => proven = false,
                }
            }
            ends.push((*at, behind, condition, proven));
        }
        for (at, behind, condition, proven) in ends {
            if folded.contains(&at) {
                continue;
            }
            if !proven {
                let why =
                    format!("behind the call of a task at {at:#x} of the file, what called no task gets there as well");
                self.found.gap(StopEvent::TaskEnd, why);
                continue;
            }
            let Some(function) = self.branches.function(at) else { continue };
            let name = self.branches.name(function.start);
            let place = format!("{name}+{:#x}, behind the call of a task", behind.wrapping_sub(function.start));
            let kind = if condition.is_some() { Kind::TaskReturn } else { Kind::AsRead };
            let site = Site::new(StopEvent::TaskEnd, behind, kind, place);
            self.found.site(Site { condition, ..site });
        }
    }

    /// `gomp_thread_start`, which `gomp_team_start` gives to `pthread_create`, makes the thread's data ready and waits for the
    /// others before it calls anything of the program. It ends with `pthread_detach`.
    fn threads(&mut self) {
        const EVENTS: [StopEvent; 2] = [StopEvent::ThreadBegin, StopEvent::ThreadEnd];
        const INITIAL: &str = "threads that the program makes pass through no place of their own in libgomp";
        let started = self.thread_start();
        let Some((entry, run)) = started else {
            return EVENTS.into_iter().for_each(|event| {
                self.found.gap(event, "the function that threads begin with (gomp_thread_start) could not be told")
            });
        };
        let mut first = BTreeSet::new();
        for path in run.paths() {
            let mut ready = false;
            for event in path {
                match event {
                    Event::Store(s) if s.size == 8 && self.recipes.in_thread(&s.addr) == self.recipes.task => {
                        ready = true
                    }
                    // The C library, for the thread-local data.
                    Event::Call(call) if matches!(call.callee, code::Callee::Named(_)) => {}
                    Event::Call(call) => {
                        // If something else comes first, this is no place before everything.
                        first.insert(internal(call).filter(|_| ready).map_or(u64::MAX, |_| call.at));
                        break;
                    }
                    _ => {}
                }
            }
        }
        if first.is_empty() || first.contains(&u64::MAX) {
            let why =
                "what threads do first could not be told in the function that they begin with (gomp_thread_start)";
            self.found.gap(StopEvent::ThreadBegin, why);
        } else {
            for at in first {
                let place = format!("gomp_thread_start+{:#x}, before the first wait", at.wrapping_sub(entry));
                self.found.site(Site::new(StopEvent::ThreadBegin, at, Kind::AsRead, place));
            }
        }
        self.found.gap(StopEvent::ThreadBegin, INITIAL);
        let mut ends = BTreeSet::new();
        ends.extend(run.calls().filter(|call| self.branches.calls(&call.callee, "pthread_detach")).map(|call| call.at));
        if ends.is_empty() {
            self.found
                .gap(StopEvent::ThreadEnd, "the end of the function that threads begin with has no pthread_detach");
        }
        for at in ends {
            let place = format!("gomp_thread_start+{:#x}, before pthread_detach", at.wrapping_sub(entry));
            self.found.site(Site::new(StopEvent::ThreadEnd, at, Kind::AsRead, place));
        }
        self.found.gap(StopEvent::ThreadEnd, INITIAL);
        let why = "threads of a pool that is given up together (omp_pause_resource, the end of the thread whose pool it is) end by \
                   pthread_exit";
        self.found.gap(StopEvent::ThreadEnd, why);
    }

    /// What programs call at barriers, and the end of a region: `gomp_team_end` in thread 0, and in the others the barrier behind the
    /// region's function, `local_fn (local_data); gomp_team_barrier_wait_final (&team->barrier);`.
    fn barriers(&mut self) {
        const EVENT: StopEvent = StopEvent::BarrierBegin;
        for name in BARRIERS {
            // Older releases lack some.
            if let Some(at) = self.entry(name) {
                self.found.site(Site::new(EVENT, at, Kind::AsRead, format!("entry of {name}")));
            }
        }
        match self.team_end() {
            Some((at, _)) => self.found.site(Site::new(EVENT, at, Kind::AsRead, "entry of gomp_team_end")),
            None => {
                self.found.gap(EVENT, "the end of a region is not met in its thread 0: gomp_team_end could not be told")
            }
        }
        let behind = self.thread_start().map(|(entry, run)| (entry, behind_bodies(&run)));
        let Some((entry, calls)) = behind.filter(|(_, calls)| {
            let waits: BTreeSet<u64> = calls.iter().map(|(_, callee)| *callee).collect();
            waits.len() == 1
        }) else {
            let why = "the end of a region is not met in other threads than its thread 0: the barrier behind the region's function could \
                       not be told in the function that threads begin with (gomp_thread_start)";
            return self.found.gap(EVENT, why);
        };
        for (at, _) in calls {
            let place = format!("gomp_thread_start+{:#x}, at the end of a region", at.wrapping_sub(entry));
            self.found.site(Site::new(EVENT, at, Kind::AsRead, place));
        }
    }

    fn thread_start(&mut self) -> Option<(u64, Run)> {
        let start = self.found.sites.iter().find(|site| site.kind == Kind::TeamStart)?.at;
        let run = self.branches.run(start, &TASKS)?;
        let creates = |call: &&Call| self.branches.calls(&call.callee, "pthread_create");
        let sites: BTreeSet<u64> = run.calls().filter(creates).map(|call| call.at).collect();
        // On some ways a stack of variable size hides what the argument is.
        let known: Vec<(u64, u64)> =
            run.calls().filter(creates).filter_map(|call| Some((call.at, call.args[2].as_const()?))).collect();
        let entry = unanimous(known.iter().map(|(_, routine)| *routine))?;
        if !sites.iter().all(|site| known.iter().any(|(at, _)| at == site)) {
            return None;
        }
        let run = self.branches.run(entry, &TASKS)?;
        Some((entry, run))
    }
}

impl Gomp {
    /// What holds at one of the places.
    pub(super) fn facts_at(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        point: &StopPoint,
        registers: Values<'_>,
    ) -> Result<AtStop, String> {
        let thread = snapshot.thread_by_lwp(lwp).ok_or("the runtime does not know the thread yet")?;
        let task = thread.task.clone();
        let current = || task.get().ok_or_else(|| task.why().map_or_else(|| "unknown".to_owned(), ToString::to_string));
        match point.kind {
            Kind::TeamStart => {
                let team = self.newborn(target, snapshot, lwp, registers)?;
                let lacking = vec![Lacking::Team(Box::new(team))];
                Ok(AtStop { region: Some(TeamId(snapshot.teams.len())), lacking, ..AtStop::default() })
            }
            Kind::TeamEnd => {
                if let Some(why) = self.ends_no_region(target, thread.descriptor)? {
                    return Ok(AtStop { not_counted: Some(why), ..AtStop::default() });
                }
                // The region is the thread's; the task is that which generated its implicit one.
                let met = current().and_then(|id| encountering(snapshot, id));
                Ok(AtStop { task: Some(met), ..AtStop::default() })
            }
            Kind::TaskCall(operand) => {
                let function = operand.and_then(|operand| called(target, operand, registers));
                let lacking = function.zip(current().ok()).map(|(begins, task)| Lacking::Function { task, begins });
                Ok(AtStop { lacking: lacking.into_iter().collect(), ..AtStop::default() })
            }
            Kind::TaskReturn => {
                let id = current()?;
                let task = snapshot.task(id).ok_or("the task was not read")?.descriptor;
                Ok(AtStop { not_counted: self.has_no_function(target, task)?, ..AtStop::default() })
            }
            _ => Ok(AtStop::default()),
        }
    }

    /// Why a hit does not count, by the thread and the task that it executes.
    pub(super) fn not_counted_at(
        &self,
        target: &dyn Target,
        excerpt: &Excerpt,
        point: &StopPoint,
    ) -> Result<Option<String>, String> {
        let thread = excerpt.thread.as_ref().ok_or("the thread was not read")?;
        match point.kind {
            Kind::TeamEnd => self.ends_no_region(target, thread.descriptor),
            Kind::TaskReturn => {
                let task = thread.task.get().and_then(|id| excerpt.tasks.get(id.0)).ok_or("the task was not read")?;
                self.has_no_function(target, task.descriptor)
            }
            _ => Ok(None),
        }
    }

    /// Why a thread at the end of a team is not at the end of a region, if it is not.
    fn ends_no_region(&self, target: &dyn Target, thread: Addr) -> Result<Option<String>, String> {
        const WHY: &str = "what ends is the team of a thread that met tasks outside of all regions";
        Ok((self.level_of(target, thread)? == 0).then(|| WHY.to_owned()))
    }

    /// Why a task that is over was none of the program's code, if it was not.
    fn has_no_function(&self, target: &dyn Target, task: Addr) -> Result<Option<String>, String> {
        let s = &self.structs.task;
        let function = StructData::read(target, task, s.size).and_then(|view| view.ptr(&s.fn_));
        let device = function.map_err(|why| why.to_string())?.is_null();
        Ok(device.then(|| "the task was executed by a device".to_owned()))
    }

    fn level_of(&self, target: &dyn Target, thread: Addr) -> Result<u32, String> {
        let s = &self.structs.thread;
        StructData::read(target, thread, s.size).and_then(|view| view.u32(&s.level)).map_err(|why| why.to_string())
    }

    /// The team that `gomp_team_start` is about to start, which no thread knows yet.
    fn newborn(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        registers: Values<'_>,
    ) -> Result<RawTeam, String> {
        let argument = |number| {
            let register = argument_register(target.arch().machine, number)?;
            registers(register).map(Addr)
        };
        let addr = argument(TEAM).ok_or("the team is in a register, and registers are not known")?;
        let (s, of_thread) = (&self.structs.team, &self.structs.thread);
        let thread = snapshot.thread_by_lwp(lwp).ok_or("the runtime does not know the thread")?;
        let view = StructData::read(target, thread.descriptor, of_thread.size).map_err(|why| why.to_string())?;
        let [level, active, number] =
            [&of_thread.level, &of_thread.active_level, &of_thread.team_id].map(|slot| view.u32(slot));
        let team = StructData::read(target, addr, s.size).map_err(|why| why.to_string())?;
        let size = team.u32(&s.nthreads).map_err(|why| why.to_string())?;
        let total = team.uint(&s.barrier_total).ok();
        if !(1..=limits::TEAM_SIZE).contains(&size.into()) || total.is_some_and(|total| total != u64::from(size)) {
            return Err("what the register leads to is no team".to_owned());
        }
        let mut members = vec![None; size as usize];
        if let Some(first) = members.first_mut() {
            *first = Some(lwp);
        }
        let grown = |level: u32| level.saturating_add(1);
        Ok(RawTeam {
            descriptor: addr,
            size: s.nthreads.fact(Ok(size)),
            level: of_thread.level.fact(level.map(grown)),
            active_level: of_thread.active_level.fact(active.map(|n| if size > 1 { grown(n) } else { n })),
            parent: thread.team.clone(),
            primary_num: of_thread.team_id.fact(number),
            serialized: s.nthreads.fact(Ok(size == 1)),
            function: match argument(FUNCTION) {
                Some(function) => Fact::known(function, Origin::Registers),
                None => Fact::unknown(Own::NoRegionFunction),
            },
            location: Fact::unknown(Own::NoPositions),
            members,
            barrier: Fact::unknown(Common::RegionNotBegun),
            tool_data: Fact::unknown(Own::NoOmpt),
        })
    }
}

/// What a call through a register or memory is about to call.
fn called(target: &dyn Target, operand: Operand, registers: Values<'_>) -> Option<Addr> {
    use ompd_process::TargetExt;
    match operand {
        Operand::Register(register) => registers(register).map(Addr),
        Operand::Memory { base, offset } => target.read_ptr(Addr(registers(base)?).offset(offset)).ok(),
        Operand::Slot(_) | Operand::Indexed { .. } => None,
    }
}
