//! Parallel and teams regions.

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::events::{loops, single, work as shared};
use crate::machine::libgomp_ompt_call;
use crate::names::Entry;
use crate::ompt::{APPLICATION_CFA, Body, parallel_flag, scope, state, sync_region, task_flag, work};
use crate::records::{Region, Task};
use crate::runtimes::Query;
use crate::threads::Thread;

/// A loop or sections that begin together with a region: `ompt_work_t` and the count.
type Work = (c_int, u64);
const NO_WORK: Work = (0, 0);

/// The record of a region that begins.
fn begin(
    (begun, call): (Begun, Call),
    thread: &'static Thread,
    (body, argument): (Body, *mut c_void),
    work: Work,
    flags: c_int,
) -> &'static Region {
    let encountering = thread.task();
    let region = Region::take(&thread.regions);
    region.runtime.set(begun.runtime);
    region.work.set((shared::kind_of(work.0, begun.runtime), work.1));
    region.flags.set(flags);
    region.body.set(Some(body));
    region.argument.set(argument);
    region.parent.set(encountering.region.load(Relaxed));
    region.encountering.set(encountering);
    region.primary.set(thread.address());
    region.codeptr_ra.set(call.codeptr_ra());
    region.task.begin(encountering, region, task_flag::IMPLICIT);
    thread.state.store(state::OVERHEAD, Relaxed);
    region
}

/// `parallel_begin`. A region without a `num_threads` clause, for which the compiler passes 0, requests what the ICV says.
fn report_begin(region: &Region, requested: c_uint) {
    let requested =
        if requested == 0 && region.is_team() { region.runtime.get().number(Query::MaxThreads) } else { requested };
    // SAFETY: the encountering task has not ended: its thread is here.
    let encountering = unsafe { &*region.encountering.get() };
    report::parallel_begin(
        &encountering.data,
        &encountering.frame,
        &region.data,
        requested,
        region.flags.get(),
        region.codeptr_ra.get(),
    );
}

/// Ends a region: the end of the implicit task of thread 0, and `parallel_end`.
fn end(thread: &'static Thread, region: &'static Region, before: c_uint) {
    let task = &region.task;
    let (kind, code) = (sync_region::BARRIER_IMPLICIT_PARALLEL, region.codeptr_ra.get());
    report::sync_region_wait(kind, scope::END, None, &task.data, code);
    report::sync_region(kind, scope::END, None, &task.data, code);
    report::implicit_task(scope::END, None, &task.data, 0, 0, task_flag::IMPLICIT);
    finish(thread, region, before);
}

/// `parallel_end`
fn finish(thread: &'static Thread, region: &'static Region, before: c_uint) {
    // SAFETY: the encountering task has not ended: its thread is here.
    let encountering = unsafe { &*region.encountering.get() };
    thread.executes(encountering);
    thread.state.store(before, Relaxed);
    report::parallel_end(&region.data, &encountering.data, region.flags.get(), region.codeptr_ra.get());
    call::end(encountering);
    region.give_back(&thread.regions);
}

/// Begins the implicit task of a thread of the team.
fn enter(thread: &'static Thread, region: &Region) -> &'static Task {
    let runtime = region.runtime.get();
    let (size, number) = (runtime.number(Query::NumThreads), runtime.number(Query::ThreadNum));
    let task: *const Task = if ptr::eq(region.primary.get(), thread.address()) {
        &raw const region.task
    } else {
        let task = thread.worker_task();
        task.begin(region.encountering.get(), region, task_flag::IMPLICIT);
        task
    };
    // SAFETY: a record that stays.
    let task: &'static Task = unsafe { &*task };
    task.thread_num.store(number, Relaxed);
    region.size.store(size, Relaxed);
    thread.uses(runtime);
    thread.executes(task);
    report::implicit_task(scope::BEGIN, Some(&region.data), &task.data, size, number, task_flag::IMPLICIT);
    let (kind, count) = region.work.get();
    if kind != 0 {
        task.work.store(kind, Relaxed);
        task.work_count.store(count, Relaxed);
        report::work(kind, scope::BEGIN, Some(&region.data), &task.data, count, region.codeptr_ra.get());
    }
    thread.state.store(state::WORK_PARALLEL, Relaxed);
    task
}

/// The implicit task has executed its code: the barrier at the end of the region begins.
fn leave(thread: &'static Thread, region: &Region, task: &Task) {
    single::ends(task);
    let is_worker = !ptr::eq(region.primary.get(), thread.address());
    // A worker is in no call of the program.
    let code = if is_worker { ptr::null() } else { region.codeptr_ra.get() };
    let kind = sync_region::BARRIER_IMPLICIT_PARALLEL;
    report::sync_region(kind, scope::BEGIN, Some(&region.data), &task.data, code);
    report::sync_region_wait(kind, scope::BEGIN, Some(&region.data), &task.data, code);
    thread.state.store(state::WAIT_BARRIER_IMPLICIT_PARALLEL, Relaxed);
    if is_worker {
        thread.reaches_end();
    }
}

/// What the runtime calls in each thread of a team in place of the region's function. The argument is the [`Region`].
///
/// The name is for readers from outside.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn libgomp_ompt_region(region: *mut c_void) {
    // SAFETY: what was given to the runtime for this function. The record is in use until all threads are at the end.
    let region = unsafe { &*region.cast::<Region>() };
    let thread = if Thread::is_own(region.primary.get()) { Thread::current() } else { Thread::worker() };
    let task = enter(thread, region);
    task.frame.exit_frame_flags.store(APPLICATION_CFA, Relaxed);
    if let Some(body) = region.body.get() {
        // SAFETY: the program's function, and its argument.
        unsafe { libgomp_ompt_call(body, region.argument.get(), &raw const task.frame.exit_frame) };
    }
    task.frame.exit_frame.store(0, Relaxed);
    task.frame.exit_frame_flags.store(0, Relaxed);
    leave(thread, region, task);
}

/// Reports a region that the runtime begins and ends in one call. `forward` makes it with a function and its argument.
fn whole<R>(
    (begun, call): (Begun, Call),
    body: (Body, *mut c_void),
    requested: c_uint,
    work: Work,
    forward: impl FnOnce(Body, *mut c_void) -> R,
) -> R {
    let Some(thread) = begun.thread else { return forward(body.0, body.1) };
    let before = thread.state.load(Relaxed);
    let region = begin((begun, call), thread, body, work, parallel_flag::TEAM | parallel_flag::INVOKER_RUNTIME);
    report_begin(region, requested);
    let result = forward(libgomp_ompt_region, ptr::from_ref(region).cast_mut().cast());
    // SAFETY: null, or a record that stays.
    let around = unsafe { region.parent.get().as_ref() };
    if Thread::is_first(thread) && around.is_some_and(|around| !around.is_team()) {
        begun.runtime.pool.fetch_max(region.size.load(Relaxed), Relaxed);
    }
    end(thread, region, before);
    result
}

/// Reports the begin of a region whose end is another call. Its thread 0 executes the function itself.
fn start(
    (begun, call): (Begun, Call),
    body: (Body, *mut c_void),
    requested: c_uint,
    work: Work,
    forward: impl FnOnce(Body, *mut c_void),
) {
    let Some(thread) = begun.thread else { return forward(body.0, body.1) };
    let region = begin((begun, call), thread, body, work, parallel_flag::TEAM | parallel_flag::INVOKER_PROGRAM);
    report_begin(region, requested);
    forward(libgomp_ompt_region, ptr::from_ref(region).cast_mut().cast());
    enter(thread, region);
}

/// `GOMP_parallel`
pub unsafe extern "C-unwind" fn parallel(
    body: Body,
    argument: *mut c_void,
    threads: c_uint,
    flags: c_uint,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint);
    let begun = call.begin();
    // SAFETY: the runtime's type; arguments of the program, or ours in their place.
    whole((begun, call), (body, argument), threads, NO_WORK, |body, argument| unsafe {
        begun.real::<Real>(Entry::GOMP_parallel)(body, argument, threads, flags);
    });
}

/// `GOMP_parallel_reductions`
pub unsafe extern "C-unwind" fn parallel_reductions(
    body: Body,
    argument: *mut c_void,
    threads: c_uint,
    flags: c_uint,
    call: Call,
) -> c_uint {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint) -> c_uint;
    let begun = call.begin();
    whole((begun, call), (body, argument), threads, NO_WORK, |body, own| {
        if begun.thread.is_some() {
            // SAFETY: our record in place of the program's argument, of which the runtime reads the first word.
            unsafe { (*own.cast::<Region>()).reductions.set(*argument.cast::<usize>()) };
        }
        // SAFETY: the runtime's type; arguments of the program, or ours in their place.
        unsafe { begun.real::<Real>(Entry::GOMP_parallel_reductions)(body, own, threads, flags) }
    })
}

/// `GOMP_parallel_start`
pub unsafe extern "C-unwind" fn parallel_start(body: Body, argument: *mut c_void, threads: c_uint, call: Call) {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint);
    let begun = call.begin();
    // SAFETY: the runtime's type; arguments of the program, or ours in their place.
    start((begun, call), (body, argument), threads, NO_WORK, |body, argument| unsafe {
        begun.real::<Real>(Entry::GOMP_parallel_start)(body, argument, threads);
    });
}

/// `GOMP_parallel_end`
pub unsafe extern "C-unwind" fn parallel_end(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_parallel_end)() };
    // A region that began before the tool is not reported.
    let own = begun.thread.and_then(|thread| {
        let (task, region) = (thread.task(), thread.task().region()?);
        (ptr::eq(task, &raw const region.task) && region.flags.get() & parallel_flag::INVOKER_PROGRAM != 0)
            .then_some((thread, task, region))
    });
    let Some((thread, task, region)) = own else { return forward() };
    leave(thread, region, task);
    forward();
    call::end(task);
    // SAFETY: a record that stays.
    let around = unsafe { region.parent.get().as_ref() };
    let serial = around.is_none_or(|region| region.flags.get() & parallel_flag::TEAM == 0);
    end(thread, region, if serial { state::WORK_SERIAL } else { state::WORK_PARALLEL });
}

/// Loops that begin with a region: the runtime gets bounds and, but for `runtime` ones, the size of chunks.
macro_rules! loops {
    ($($name:ident, $entry:ident, $work:expr, [$($chunk:ident)?], $form:ident;)*) => {
        $(loops!($form $name, $entry, $work, [$($chunk)?]);)*
    };
    (whole $name:ident, $entry:ident, $work:expr, [$($chunk:ident)?]) => {
        #[doc = concat!("`", stringify!($entry), "`")]
        #[allow(clippy::too_many_arguments, reason = "the runtime's own")]
        pub unsafe extern "C-unwind" fn $name(
            body: Body, argument: *mut c_void, threads: c_uint, first: c_long, last: c_long, step: c_long,
            $($chunk: c_long,)? flags: c_uint, call: Call,
        ) {
            type Real = unsafe extern "C-unwind" fn(
                Body, *mut c_void, c_uint, c_long, c_long, c_long, $(loops!(word $chunk),)? c_uint);
            let begun = call.begin();
            let work = ($work, loops::iterations(first, last, step));
            // SAFETY: the runtime's type; arguments of the program, or ours in their place.
            whole((begun, call), (body, argument), threads, work, |body, argument| unsafe {
                begun.real::<Real>(Entry::$entry)(body, argument, threads, first, last, step, $($chunk,)? flags);
            });
        }
    };
    (start $name:ident, $entry:ident, $work:expr, [$($chunk:ident)?]) => {
        #[doc = concat!("`", stringify!($entry), "`")]
        #[allow(clippy::too_many_arguments, reason = "the runtime's own")]
        pub unsafe extern "C-unwind" fn $name(
            body: Body, argument: *mut c_void, threads: c_uint, first: c_long, last: c_long, step: c_long,
            $($chunk: c_long,)? call: Call,
        ) {
            type Real = unsafe extern "C-unwind" fn(
                Body, *mut c_void, c_uint, c_long, c_long, c_long $(, loops!(word $chunk))?);
            let begun = call.begin();
            let work = ($work, loops::iterations(first, last, step));
            // SAFETY: the runtime's type; arguments of the program, or ours in their place.
            start((begun, call), (body, argument), threads, work, |body, argument| unsafe {
                begun.real::<Real>(Entry::$entry)(body, argument, threads, first, last, step $(, $chunk)?);
            });
        }
    };
    (word $chunk:ident) => { c_long };
}

loops! {
    parallel_loop_static, GOMP_parallel_loop_static, work::LOOP_STATIC, [chunk], whole;
    parallel_loop_dynamic, GOMP_parallel_loop_dynamic, work::LOOP_DYNAMIC, [chunk], whole;
    parallel_loop_guided, GOMP_parallel_loop_guided, work::LOOP_GUIDED, [chunk], whole;
    parallel_loop_runtime, GOMP_parallel_loop_runtime, shared::BY_ICV, [], whole;
    parallel_loop_nonmonotonic_dynamic, GOMP_parallel_loop_nonmonotonic_dynamic, work::LOOP_DYNAMIC, [chunk], whole;
    parallel_loop_nonmonotonic_guided, GOMP_parallel_loop_nonmonotonic_guided, work::LOOP_GUIDED, [chunk], whole;
    parallel_loop_nonmonotonic_runtime, GOMP_parallel_loop_nonmonotonic_runtime, shared::BY_ICV, [], whole;
    parallel_loop_maybe_nonmonotonic_runtime, GOMP_parallel_loop_maybe_nonmonotonic_runtime, shared::BY_ICV, [], whole;
    parallel_loop_static_start, GOMP_parallel_loop_static_start, work::LOOP_STATIC, [chunk], start;
    parallel_loop_dynamic_start, GOMP_parallel_loop_dynamic_start, work::LOOP_DYNAMIC, [chunk], start;
    parallel_loop_guided_start, GOMP_parallel_loop_guided_start, work::LOOP_GUIDED, [chunk], start;
    parallel_loop_runtime_start, GOMP_parallel_loop_runtime_start, shared::BY_ICV, [], start;
}

/// `GOMP_parallel_sections`
pub unsafe extern "C-unwind" fn parallel_sections(
    body: Body,
    argument: *mut c_void,
    threads: c_uint,
    count: c_uint,
    flags: c_uint,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint, c_uint);
    let begun = call.begin();
    // SAFETY: the runtime's type; arguments of the program, or ours in their place.
    whole((begun, call), (body, argument), threads, (work::SECTIONS, count.into()), |body, argument| unsafe {
        begun.real::<Real>(Entry::GOMP_parallel_sections)(body, argument, threads, count, flags);
    });
}

/// `GOMP_parallel_sections_start`
pub unsafe extern "C-unwind" fn parallel_sections_start(
    body: Body,
    argument: *mut c_void,
    threads: c_uint,
    count: c_uint,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint);
    let begun = call.begin();
    // SAFETY: the runtime's type; arguments of the program, or ours in their place.
    start((begun, call), (body, argument), threads, (work::SECTIONS, count.into()), |body, argument| unsafe {
        begun.real::<Real>(Entry::GOMP_parallel_sections_start)(body, argument, threads, count);
    });
}

/// `GOMP_teams_reg`: the calling thread executes the function once for each team, as its initial thread.
pub unsafe extern "C-unwind" fn teams(
    body: Body,
    argument: *mut c_void,
    teams: c_uint,
    thread_limit: c_uint,
    flags: c_uint,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint, c_uint);
    let begun = call.begin();
    // SAFETY: the runtime's type; arguments of the program, or ours in their place.
    let forward = |body, argument| unsafe {
        begun.real::<Real>(Entry::GOMP_teams_reg)(body, argument, teams, thread_limit, flags);
    };
    let Some(thread) = begun.thread else { return forward(body, argument) };
    let before = thread.state.load(Relaxed);
    let flags = parallel_flag::LEAGUE | parallel_flag::INVOKER_RUNTIME;
    let region = begin((begun, call), thread, (body, argument), NO_WORK, flags);
    report_begin(region, teams);
    forward(libgomp_ompt_league, ptr::from_ref(region).cast_mut().cast());
    finish(thread, region, before);
}

/// What the runtime calls for each team of a league in place of the function of the teams region.
///
/// The name is for readers from outside.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn libgomp_ompt_league(region: *mut c_void) {
    // SAFETY: what was given to the runtime for this function.
    let region: &'static Region = unsafe { &*region.cast::<Region>() };
    let (thread, task, runtime) = (Thread::current(), &region.task, region.runtime.get());
    let (teams, number) = (runtime.number(Query::NumTeams), runtime.number(Query::TeamNum));
    task.begin(region.encountering.get(), region, task_flag::INITIAL);
    task.thread_num.store(0, Relaxed);
    region.size.store(teams, Relaxed);
    thread.executes(task);
    report::implicit_task(scope::BEGIN, Some(&region.data), &task.data, teams, number, task_flag::INITIAL);
    thread.state.store(state::WORK_SERIAL, Relaxed);
    task.frame.exit_frame_flags.store(APPLICATION_CFA, Relaxed);
    if let Some(body) = region.body.get() {
        // SAFETY: the program's function, and its argument.
        unsafe { libgomp_ompt_call(body, region.argument.get(), &raw const task.frame.exit_frame) };
    }
    task.frame.exit_frame.store(0, Relaxed);
    task.frame.exit_frame_flags.store(0, Relaxed);
    report::implicit_task(scope::END, None, &task.data, 0, number, task_flag::INITIAL);
}
