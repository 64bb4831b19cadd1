//! Where libomp and libiomp5 begin and end regions, tasks and threads, whether or not they were started with `OMP_DEBUG`. Functions
//! are those of `openmp/runtime/src/{kmp_runtime,kmp_csupport,kmp_tasking,kmp_barrier,z_Linux_util}.cpp`.

use std::collections::BTreeSet;

use ompd_layout::code::{self, Call, Callee, CodeImage, Event, Expr, Limits, Operand, Run, TransferKind};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Target};

use super::Kmp;
use crate::excerpt::Excerpt;
use crate::model::{RawSnapshot, TaskId};
use crate::stops::{
    AtStop, Branches, Found, Kind, Lacking, MAX_PLACES, Site, StopEvent, StopPoint, Values, argument_register,
    constructs::{self, Constructs},
    encountering,
};

/// `KMP_GTID_DNE` (`kmp.h`): the number in a team of a thread that is in none.
const NO_NUMBER: u32 = -2i32 as u32;
/// Why places are not looked at.
const TOO_MANY: &str = "there are too many calls of the barriers of teams";
/// Offset of `routine` in `kmp_task_t`, which compilers know.
const ROUTINE: i64 = 8;
/// Bounds for the largest functions.
const LARGE: Limits =
    Limits { paths: 3000, instructions: 600_000, visits: 1, inline_depth: 0, inline_bytes: 0, beyond: false };

/// What programs call (kmp_csupport.cpp, kmp_tasking.cpp, kmp_ftn_entry.h), those that GCC has compiled too (kmp_gsupport.cpp).
const CONSTRUCTS: Constructs = Constructs {
    functions: &[
        (
            StopEvent::LockAcquire,
            &[
                "omp_set_lock",
                "omp_set_lock_",
                "omp_set_nest_lock",
                "omp_set_nest_lock_",
                "__kmpc_set_lock",
                "__kmpc_set_nest_lock",
            ],
        ),
        (
            StopEvent::CriticalAcquire,
            &["GOMP_critical_start", "GOMP_critical_name_start", "__kmpc_critical", "__kmpc_critical_with_hint"],
        ),
        (
            StopEvent::TaskwaitBegin,
            &["GOMP_taskwait", "GOMP_taskwait_depend", "__kmpc_omp_taskwait", "__kmpc_omp_taskwait_deps_51"],
        ),
        (StopEvent::WorksharingBegin, &["GOMP_sections_start", "GOMP_sections2_start", "__kmpc_sections_init"]),
        (StopEvent::SingleBegin, &["GOMP_single_start", "GOMP_single_copy_start", "__kmpc_single"]),
    ],
    loops: &[
        ("GOMP_loop_", "_start"),
        ("__kmpc_for_static_init_", ""),
        ("__kmpc_dispatch_init_", ""),
        ("__kmpc_dist_for_static_init_", ""),
        ("__kmpc_dist_dispatch_init_", ""),
    ],
    shared: Some((
        "__kmpc_omp_wait_deps",
        StopEvent::TaskwaitBegin,
        "taskwait with dependences is not met in code that calls __kmpc_omp_wait_deps: undeferred tasks call it too",
    )),
};

/// Finds the places in a file.
pub(crate) fn find(image: &ElfFile) -> Found {
    let mut search = Search { branches: Branches::of(image), found: Found::default() };
    search.teams();
    search.serialized();
    search.tasks();
    search.undeferred();
    search.barriers();
    constructs::find(&CONSTRUCTS, &search.branches, &mut search.found);
    search.found.close(&search.branches)
}

struct Search<'a> {
    branches: Branches<'a>,
    found: Found,
}

/// Functions by which programs come to a barrier (kmp_csupport.cpp, and for those built by GCC kmp_gsupport.cpp).
const BARRIERS: [&str; 10] = [
    "__kmpc_barrier",
    "__kmpc_cancel_barrier",
    "__kmpc_barrier_master",
    "__kmpc_copyprivate",
    "GOMP_barrier",
    "GOMP_barrier_cancel",
    "GOMP_loop_end",
    "GOMP_loop_end_cancel",
    "GOMP_sections_end",
    "GOMP_sections_end_cancel",
];

/// What threads of the runtime begin with, and the barriers that hold a team together.
struct Launch {
    /// `__kmp_launch_thread`
    entry: u64,
    /// `__kmp_fork_barrier`
    fork: u64,
    /// Functions that it gives the number of its thread as `__kmp_fork_barrier`.
    others: BTreeSet<u64>,
}

/// Where a function ends.
#[derive(Default)]
struct Ends {
    /// With its task begun.
    begun: BTreeSet<u64>,
    /// In another way.
    others: BTreeSet<u64>,
}

impl Search<'_> {
    fn image(&self) -> &ElfFile {
        self.branches.image
    }

    /// The function of this file that is called. Those that it exports are called by their names.
    fn callee(&self, call: &Call) -> Option<u64> {
        match &call.callee {
            Callee::Internal(entry) => Some(*entry),
            Callee::Named(name) => CodeImage::symbol(self.image(), name),
            Callee::Pointer(_) => None,
        }
    }

    fn run(&self, entry: u64) -> Option<Run> {
        self.branches.run(entry, &LARGE)
    }

    fn run_exported(&self, name: &str) -> Option<Run> {
        self.run(CodeImage::symbol(self.image(), name)?)
    }

    /// `pthread_create (…, __kmp_launch_worker, thr)`; there `__kmp_launch_thread (thr)`, and there
    /// `__kmp_fork_barrier (gtid, KMP_GTID_DNE)`, and after the region `__kmp_join_barrier (gtid)`.
    fn launch(&self) -> Option<Launch> {
        let creates = |transfer: &code::Transfer| {
            let (TransferKind::Call(to) | TransferKind::Jump(to)) = transfer.kind else {
                // Where there are no stubs, calls go through the table.
                return matches!(transfer.kind, TransferKind::CallThrough(None | Some(Operand::Slot(_))));
            };
            let built_in = CodeImage::symbol(self.image(), "pthread_create") == Some(to);
            built_in || code::stub_of(self.image(), to).is_some_and(|name| &*name == "pthread_create")
        };
        let creating: BTreeSet<u64> = self.branches.all().filter(|(_, t)| creates(t)).map(|(entry, _)| entry).collect();
        let mut routines = BTreeSet::new();
        for run in creating.into_iter().filter_map(|entry| self.run(entry)) {
            let calls = run.calls().filter(|call| self.branches.calls(&call.callee, "pthread_create"));
            routines.extend(calls.filter_map(|call| call.args[2].as_const()));
        }
        let mut launches = BTreeSet::new();
        for run in routines.into_iter().filter_map(|entry| self.run(entry)) {
            launches.extend(
                run.calls().filter(|call| call.args[0].as_arg() == Some(0)).filter_map(|call| self.callee(call)),
            );
        }
        launches.into_iter().find_map(|entry| {
            let run = self.run(entry)?;
            let waits = |call: &&Call| call.args[1].as_const().is_some_and(|number| number as u32 == NO_NUMBER);
            let wait = run.calls().filter(|call| self.callee(call).is_some()).find(waits)?;
            let fork = self.callee(wait)?;
            let of_thread =
                run.calls().filter(|call| call.args[0] == wait.args[0]).filter_map(|call| self.callee(call));
            Some(Launch { entry, fork, others: of_thread.filter(|other| *other != fork).collect() })
        })
    }

    fn teams(&mut self) {
        use StopEvent::{BarrierBegin, ParallelBegin, ParallelEnd, ThreadBegin, ThreadEnd};
        const INITIAL: &str = "threads that the program makes pass through no place that could be told";
        let Some(launch) = self.launch() else {
            let why = "the function that threads of the runtime begin with (__kmp_launch_thread) could not be told";
            return [ParallelBegin, ParallelEnd, ThreadBegin, ThreadEnd, BarrierBegin]
                .into_iter()
                .for_each(|event| self.found.gap(event, why));
        };
        let site = Site::new(ThreadBegin, launch.entry, Kind::Launch, "entry of __kmp_launch_thread");
        let registers = argument_register(self.image().machine(), 0).into_iter().collect();
        self.found.site(Site { registers, ..site });
        let returns: Vec<u64> = self.returns(launch.entry);
        for at in &returns {
            let place = format!("__kmp_launch_thread+{:#x}, its return", at.wrapping_sub(launch.entry));
            self.found.site(Site::new(ThreadEnd, *at, Kind::AsRead, place));
        }
        if returns.is_empty() {
            self.found.gap(
                ThreadEnd,
                "the function that threads of the runtime begin with (__kmp_launch_thread) does not return",
            );
        }
        [ThreadBegin, ThreadEnd].into_iter().for_each(|event| self.found.gap(event, INITIAL));
        self.forks(&launch);
        self.joins(&launch);
    }

    /// `__kmp_fork_call`, which `__kmpc_fork_call` gives its own arguments, and which calls `__kmp_fork_barrier (gtid, 0)` when the
    /// team is complete.
    fn forks(&mut self, launch: &Launch) {
        const EVENT: StopEvent = StopEvent::ParallelBegin;
        let forks = self.run_exported("__kmpc_fork_call").map(|run| {
            let passes_on =
                |call: &&Call| call.args[0].as_arg() == Some(0) && call.args.iter().any(|arg| arg.as_arg() == Some(2));
            run.calls().filter(passes_on).filter_map(|call| self.callee(call)).collect::<BTreeSet<u64>>()
        });
        let reached: BTreeSet<u64> =
            forks.unwrap_or_default().into_iter().flat_map(|entry| self.branches.reached(entry, 3)).collect();
        let mut places = 0;
        let callers = self.branches.callers(launch.fork);
        if callers.len() > MAX_PLACES {
            return self.found.gap(EVENT, TOO_MANY);
        }
        for (function, transfer) in callers {
            if function == launch.entry {
                continue;
            }
            let run = self.run(function);
            let call = run.as_ref().and_then(|run| run.calls().find(|call| call.at == transfer.at));
            let is_primary = call.is_some_and(|call| call.args[1].as_const().is_some_and(|number| number as u32 == 0));
            if !is_primary || !reached.contains(&function) {
                let why = format!(
                    "what is done at {:#x} of the file, where a team is released, could not be told",
                    transfer.at
                );
                self.found.gap(EVENT, why);
                continue;
            }
            places += 1;
            let place = format!(
                "{}+{:#x}, before a team is released",
                self.function_name(function),
                transfer.at.wrapping_sub(function)
            );
            self.found.site(Site::new(EVENT, transfer.at, Kind::InRegion, place));
        }
        if places == 0 {
            self.found.gap(EVENT, "where a team is released to its region (__kmp_fork_barrier) could not be told");
        }
    }

    /// What programs call at barriers.
    fn barriers(&mut self) {
        const EVENT: StopEvent = StopEvent::BarrierBegin;
        for name in BARRIERS {
            if let Some(at) = CodeImage::symbol(self.image(), name) {
                self.found.site(Site::new(EVENT, at, Kind::AsRead, format!("entry of {name}")));
            }
        }
        self.found
            .gap(EVENT, "barriers of reductions are not met: which way a reduction takes is the runtime's choice");
    }

    /// `__kmp_join_call`, which both `__kmpc_fork_call` and `GOMP_parallel_end` call, and which begins with `__kmp_join_barrier (gtid)`
    /// unless the region is serialized.
    fn joins(&mut self, launch: &Launch) {
        const EVENT: StopEvent = StopEvent::ParallelEnd;
        let called = |name: &str| -> BTreeSet<u64> {
            self.run_exported(name).iter().flat_map(Run::calls).filter_map(|call| self.callee(call)).collect()
        };
        let joins: BTreeSet<u64> =
            called("__kmpc_fork_call").intersection(&called("GOMP_parallel_end")).copied().collect();
        // What is given the same number of the thread is a part of it: `__kmp_internal_join (loc, gtid, team)`, which uses no `loc`.
        let mut parts = joins.clone();
        for run in joins.iter().filter_map(|entry| self.run(*entry)) {
            let same = |call: &&Call| call.args[1].as_arg() == Some(1);
            parts.extend(run.calls().filter(same).filter_map(|call| self.callee(call)));
        }
        let mut barriers = BTreeSet::new();
        for run in parts.iter().filter_map(|entry| self.run(*entry)) {
            let of_thread = run.calls().filter(|call| call.args[0].as_arg() == Some(1));
            let of_thread = of_thread.filter_map(|call| self.callee(call));
            barriers.extend(of_thread.filter(|callee| launch.others.contains(callee)));
        }
        let mut barriers = barriers.into_iter();
        let (Some(barrier), None) = (barriers.next(), barriers.next()) else {
            let why = "the barrier at the end of a region (__kmp_join_barrier) could not be told";
            return [EVENT, StopEvent::BarrierBegin].into_iter().for_each(|event| self.found.gap(event, why));
        };
        let place = "entry of __kmp_join_barrier, at the end of a region";
        self.found.site(Site::new(StopEvent::BarrierBegin, barrier, Kind::AsRead, place));
        let callers = self.branches.callers(barrier);
        if callers.len() > MAX_PLACES {
            return self.found.gap(EVENT, TOO_MANY);
        }
        for (function, transfer) in callers {
            if function == launch.entry {
                continue;
            }
            let calls = matches!(transfer.kind, TransferKind::Call(_));
            if !calls || !parts.contains(&function) || self.branches.is_jumped_to(transfer.next) {
                let why = format!(
                    "behind the barrier called at {:#x} of the file, not only ends of regions get",
                    transfer.at
                );
                self.found.gap(EVENT, why);
                continue;
            }
            let place = format!(
                "{}+{:#x}, behind the barrier at the end of a region",
                self.function_name(function),
                transfer.next.wrapping_sub(function)
            );
            self.found.site(Site::new(EVENT, transfer.next, Kind::InRegion, place));
        }
    }

    /// `__kmpc_serialized_parallel (loc, gtid)` ends with the thread in the region; most of it is `__kmp_serialized_parallel`, which
    /// others call directly. `__kmpc_end_serialized_parallel` begins with the thread in it.
    fn serialized(&mut self) {
        let name = "__kmpc_serialized_parallel";
        let entry = self.run_exported(name).and_then(|run| {
            let passes_on = |call: &&Call| call.args[0].as_arg() == Some(0) && call.args[1].as_arg() == Some(1);
            let mut callees: BTreeSet<u64> =
                run.calls().filter(passes_on).filter_map(|call| self.callee(call)).collect();
            callees.pop_first().filter(|_| callees.is_empty())
        });
        match entry.map(|entry| (entry, self.returns(entry))) {
            Some((entry, returns)) if !returns.is_empty() => {
                for at in returns {
                    let place = format!("__kmp_serialized_parallel+{:#x}, its return", at.wrapping_sub(entry));
                    self.found.site(Site::new(StopEvent::ParallelBegin, at, Kind::InSerialized, place));
                }
            }
            _ => self.found.gap(
                StopEvent::ParallelBegin,
                "regions of one thread are not met: where they begin (__kmp_serialized_parallel) could not be told",
            ),
        }
        let name = "__kmpc_end_serialized_parallel";
        match CodeImage::symbol(self.image(), name) {
            Some(at) => {
                self.found.site(Site::new(StopEvent::ParallelEnd, at, Kind::InSerialized, format!("entry of {name}")));
            }
            None => {
                self.found.gap(StopEvent::ParallelEnd, format!("regions of one thread are not met: there is no {name}"))
            }
        }
    }

    /// `__kmp_invoke_task (gtid, task, current_task)`: `(*(task->routine))(gtid, task)`, or `…(task->shareds)` of a task of GCC's.
    fn tasks(&mut self) {
        const EVENTS: [StopEvent; 2] = [StopEvent::TaskBegin, StopEvent::TaskEnd];
        let entry = CodeImage::symbol(self.image(), "__kmpc_omp_task");
        let reached = entry.map(|entry| self.branches.reached(entry, 3)).unwrap_or_default();
        let calls_through = |entry: &u64| {
            self.branches.of_function(*entry).iter().any(|t| matches!(t.kind, TransferKind::CallThrough(_)))
        };
        let (mut sites, mut tested) = (BTreeSet::new(), BTreeSet::new());
        let of_task = |value: &Expr| {
            value.as_load(8).map(Expr::split).is_some_and(|(task, at)| task.as_arg() == Some(1) && at == ROUTINE)
        };
        for entry in reached.into_iter().filter(calls_through) {
            let Some(run) = self.run(entry) else { continue };
            let routine = |call: &&Call| matches!(&call.callee, Callee::Pointer(callee) if of_task(callee));
            sites.extend(run.calls().filter(routine).filter(|call| !call.tail).map(|call| (entry, call.at)));
            let tests = run.compares().filter(|c| c.size == 8 && c.right.as_const() == Some(0) && of_task(&c.left));
            tested.extend(tests.map(|compare| compare.at));
        }
        let functions: BTreeSet<u64> = sites.iter().map(|(entry, _)| *entry).collect();
        if functions.len() != 1 || sites.len() > MAX_PLACES {
            let why = "the function that executes tasks (__kmp_invoke_task) could not be told";
            return EVENTS.into_iter().for_each(|event| self.found.gap(event, why));
        }
        let (mut behind, mut folded) = (Vec::new(), BTreeSet::new());
        for (entry, at) in &sites {
            let Some(next) = self.branches.at(*at).map(|transfer| transfer.next) else { continue };
            let place = format!("__kmp_invoke_task+{:#x}, where it calls a task", at.wrapping_sub(*entry));
            self.found.site(Site::new(StopEvent::TaskBegin, *at, Kind::AsRead, place));
            let (mut proven, mut condition) = (true, None);
            let jumps = self.branches.jumps_to(next);
            proven &= jumps.len() <= MAX_PLACES;
            for jump in jumps.into_iter().take(MAX_PLACES) {
                match self.branches.only_from_call(jump) {
                    Some(call) if sites.iter().any(|(_, at)| *at == call) => {
                        folded.insert(call);
                    }
                    // `if (task->routine != NULL)`
                    _ if self.branches.follows(jump, &tested) => {
                        condition = Some("the thread's task has a function");
                    }
                    _ => proven = false,
                }
            }
            behind.push((*entry, *at, next, proven, condition));
        }
        for (entry, at, next, proven, condition) in behind.into_iter().filter(|(_, at, ..)| !folded.contains(at)) {
            if proven {
                let place = format!("__kmp_invoke_task+{:#x}, behind the call of a task", next.wrapping_sub(entry));
                let kind = if condition.is_some() { Kind::TaskReturn } else { Kind::AsRead };
                let site = Site::new(StopEvent::TaskEnd, next, kind, place);
                self.found.site(Site { condition, ..site });
            } else {
                let why =
                    format!("behind the call of a task at {at:#x} of the file, what called no task gets there as well");
                self.found.gap(StopEvent::TaskEnd, why);
            }
        }
    }

    /// Undeferred tasks are called by the program itself, between `__kmpc_omp_task_begin_if0` and `__kmpc_omp_task_complete_if0`.
    fn undeferred(&mut self) {
        let name = "__kmpc_omp_task_begin_if0";
        let ends = CodeImage::symbol(self.image(), name).and_then(|entry| Some((entry, self.begun(entry)?)));
        match ends {
            Some((entry, ends)) if !ends.begun.is_empty() => {
                for at in ends.begun {
                    let place = format!("{name}+{:#x}, its end", at.wrapping_sub(entry));
                    self.found.site(Site::new(StopEvent::TaskBegin, at, Kind::AsRead, place));
                }
                for at in ends.others {
                    let why = format!(
                        "undeferred tasks are not met on the way through {name} that leaves it at {at:#x} of the file"
                    );
                    self.found.gap(StopEvent::TaskBegin, why);
                }
            }
            _ => self.found.gap(
                StopEvent::TaskBegin,
                format!("undeferred tasks of code that clang made are not met: where {name} returns could not be told"),
            ),
        }
        let name = "__kmpc_omp_task_complete_if0";
        match CodeImage::symbol(self.image(), name) {
            Some(at) => self.found.site(Site::new(StopEvent::TaskEnd, at, Kind::AsRead, format!("entry of {name}"))),
            None => self.found.gap(StopEvent::TaskEnd, format!("undeferred tasks are not met: there is no {name}")),
        }
    }

    fn function_name(&self, entry: u64) -> String {
        self.branches.name(entry)
    }

    /// Where a function returns.
    fn returns(&self, entry: u64) -> Vec<u64> {
        let transfers = self.branches.of_function(entry).iter();
        transfers.filter(|transfer| transfer.kind == TransferKind::Return).map(|transfer| transfer.at).collect()
    }

    /// The ends of a function that makes its third argument the current task: what returns, and jumps to other
    /// functions. It does so by `thread->th.th_current_task = taskdata`, or by the call of a function that does so.
    /// `None` where an end has not always done that, or may not have been seen.
    fn begun(&self, entry: u64) -> Option<Ends> {
        const TASK: u8 = 2;
        let is_task = |value: &Expr| value.split().0.as_arg() == Some(TASK);
        let run = self.run(entry)?;
        let mut ends = Ends::default();
        for path in run.paths() {
            let mut begun = false;
            for event in path {
                let end = match event {
                    Event::Store(store) => {
                        begun |= store.size == 8 && is_task(&store.value);
                        continue;
                    }
                    Event::Call(call) if call.tail => call.at,
                    Event::Call(call) => {
                        begun |= self.callee(call).is_some() && call.args.iter().any(is_task);
                        continue;
                    }
                    Event::Return(end) => end.at,
                    _ => continue,
                };
                if begun { &mut ends.begun } else { &mut ends.others }.insert(end);
            }
        }
        // All ends that there are have been seen.
        let range = self.branches.function(entry)?;
        let leaves = |transfer: &&code::Transfer| match transfer.kind {
            TransferKind::Return | TransferKind::JumpThrough(_) => true,
            TransferKind::Jump(to) => !range.contains(&to),
            _ => false,
        };
        let all: BTreeSet<u64> = self.branches.of_function(entry).iter().filter(leaves).map(|end| end.at).collect();
        let seen: BTreeSet<u64> = ends.begun.union(&ends.others).copied().collect();
        (all == seen && ends.begun.is_disjoint(&ends.others)).then_some(ends)
    }
}

impl Kmp {
    /// What holds at one of the places.
    pub(super) fn facts_at(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        point: &StopPoint,
        registers: Values<'_>,
    ) -> Result<AtStop, String> {
        if point.kind == Kind::Launch && snapshot.thread_by_lwp(lwp).is_none() {
            let lacking = vec![introduce(target, snapshot, lwp, registers)?];
            return Ok(AtStop { lacking, ..AtStop::default() });
        }
        if point.kind == Kind::Named {
            return self.hold_named(target, snapshot, lwp, point.event, registers);
        }
        let thread = snapshot.thread_by_lwp(lwp).ok_or("the runtime does not know the thread yet")?;
        let current = || {
            thread.task.get().ok_or_else(|| thread.task.why().map_or_else(|| "unknown".to_owned(), ToString::to_string))
        };
        let task = match point.kind {
            Kind::InRegion => Some(current().and_then(|id| encountering(snapshot, id))),
            Kind::InSerialized => Some(around_serialized(snapshot, lwp)?),
            _ => None,
        };
        let not_counted = match point.kind {
            Kind::TaskReturn => {
                let task = snapshot.task(current()?).ok_or("the task was not read")?;
                has_no_function(task.function.value().copied())?
            }
            _ => None,
        };
        Ok(AtStop { not_counted, task, ..AtStop::default() })
    }

    /// Why a hit does not count, by the task that the thread executes.
    pub(super) fn not_counted_at(excerpt: &Excerpt, point: &StopPoint) -> Result<Option<String>, String> {
        match point.kind {
            Kind::TaskReturn => {
                let thread = excerpt.thread.as_ref();
                let task = thread.and_then(|thread| excerpt.tasks.get(thread.task.get()?.0));
                has_no_function(task.ok_or("the task was not read")?.function.value().map(|function| function.addr))
            }
            // Who it is has to be found out of the whole process.
            Kind::Named | Kind::Launch => Err("not looked for".to_owned()),
            _ => Ok(None),
        }
    }
}

/// Why a task that is over was none of the program's code, if it was not.
fn has_no_function(function: Option<Addr>) -> Result<Option<String>, String> {
    let function = function.ok_or("whether the task has a function is not known")?;
    Ok(function.is_null().then(|| "the task has no function".to_owned()))
}

/// The task that met the construct of a serialized region which the thread is in.
pub(super) fn around_serialized(snapshot: &RawSnapshot, lwp: i32) -> Result<Result<TaskId, String>, String> {
    let thread = snapshot.thread_by_lwp(lwp).ok_or("the runtime does not know the thread yet")?;
    let current =
        thread.task.get().ok_or_else(|| thread.task.why().map_or_else(|| "unknown".to_owned(), ToString::to_string));
    let region = thread.team.flat().and_then(|id| snapshot.team(id));
    let outer = region.and_then(|region| snapshot.team(region.parent.flat()?));
    // Those nested in each other have one task.
    let shared = region.zip(outer).is_some_and(|(region, outer)| region.descriptor == outer.descriptor);
    Ok(if shared { current } else { current.and_then(|id| encountering(snapshot, id)) })
}

/// A thread that has just begun: the one that made it has not filed its `pthread_t` yet. `__kmp_launch_thread (this_thr)`.
fn introduce(target: &dyn Target, snapshot: &RawSnapshot, lwp: i32, registers: Values<'_>) -> Result<Lacking, String> {
    let register = argument_register(target.arch().machine, 0);
    let descriptor = register.and_then(registers).map(Addr).ok_or("registers are not known")?;
    let mut new = snapshot.threads.iter().filter(|thread| thread.descriptor == descriptor && thread.lwp.is_none());
    new.next()
        .map(|_| Lacking::Lwp { descriptor, lwp })
        .ok_or_else(|| "the runtime does not list the thread yet".to_owned())
}
