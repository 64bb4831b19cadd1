//! Explicit tasks.
//!
//! The runtime copies a task's arguments into memory of its own. There a [`Header`] precedes them, which the function that is called in place
//! of the task's own one finds. The copy is made by a function that the runtime calls as it calls a task's copy constructors.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::events::{barriers, loops};
use crate::machine::libgomp_ompt_call;
use crate::names::Entry;
use crate::ompt::{
    APPLICATION_CFA, Body, Dependence, cancel_flag, dependence, scope, state, sync_region, task_flag, task_status, work,
};
use crate::records::Task;
use crate::runtimes::{Query, Runtime};
use crate::threads::Thread;

/// Copies a task's arguments, from the second to the first.
type Copy = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Flags of `GOMP_task` and `GOMP_taskloop` (gomp-constants.h).
mod flag {
    use super::c_uint;
    pub const UNTIED: c_uint = 1;
    pub const FINAL: c_uint = 1 << 1;
    pub const MERGEABLE: c_uint = 1 << 2;
    pub const DEPEND: c_uint = 1 << 3;
    pub const UP: c_uint = 1 << 8;
    pub const IF: c_uint = 1 << 10;
    pub const NOGROUP: c_uint = 1 << 11;
    pub const REDUCTION: c_uint = 1 << 12;
    pub const DETACH: c_uint = 1 << 13;
}

/// What precedes the arguments of a task in the runtime's copy.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    /// Words that the runtime reads and writes: bounds of a part of a `taskloop`, and its reductions, or the event of a task with `detach`.
    runtime: [usize; 3],
    /// The task's function.
    pub body: Body,
    /// Its arguments, in the same copy.
    arguments: *mut c_void,
    /// The record.
    pub task: *const Task,
    /// The runtime, where a discarded task has to be recognised here.
    discards: Option<&'static Runtime>,
    /// The first two words of the runtime are for the arguments: it is a part of a `taskloop`.
    has_bounds: bool,
    /// The first word of the runtime is an event.
    is_detachable: bool,
}

/// What the copy is made from, in the frame of the call that creates a task.
#[repr(C)]
struct Creation {
    /// As in [`Header`].
    runtime: [Cell<usize>; 3],
    body: Body,
    copy: Option<Copy>,
    arguments: *mut c_void,
    size: usize,
    /// From the header to the arguments.
    offset: usize,
    thread: &'static Thread,
    by: &'static Runtime,
    call: Call,
    /// `ompt_task_flag_t`
    flags: c_int,
    /// The `depend` clauses, null for none.
    depend: *const *mut c_void,
    has_bounds: bool,
    is_detachable: bool,
    discards: bool,
    /// A task that was reported before the call.
    task: Cell<Option<&'static Task>>,
}

impl Creation {
    /// Reports a new task.
    fn create(&self, more_flags: c_int) -> &'static Task {
        let encountering = self.thread.task();
        let flags = self.flags | more_flags;
        let task = Task::take(&self.thread.tasks, encountering, flags, self.by);
        let has_dependences = c_int::from(!self.depend.is_null());
        report::task_create(
            &encountering.data,
            &encountering.frame,
            &task.data,
            flags,
            has_dependences,
            self.call.codeptr_ra(),
        );
        if !self.depend.is_null() {
            // SAFETY: the array of the program's call.
            let list = unsafe { dependences(self.depend) };
            report::dependences(&task.data, list.as_ptr(), c_int::try_from(list.len()).unwrap_or(c_int::MAX));
        }
        task
    }
}

/// How much memory precedes the arguments.
fn offset(align: usize) -> usize {
    size_of::<Header>().next_multiple_of(align.max(1))
}

/// Makes the runtime's copy of a task's arguments, with the header. This is where a task exists for the runtime.
unsafe extern "C-unwind" fn copy(to: *mut c_void, from: *mut c_void) {
    // SAFETY: what was given to the runtime for this function, in a frame that has not ended.
    let creation = unsafe { &*from.cast::<Creation>() };
    let task = creation.task.take().unwrap_or_else(|| {
        // The runtime copies arguments into the frame of its function if it executes the task at once.
        let here = ptr::from_ref(&creation).addr();
        let at_once = (here..creation.call.frame() as usize).contains(&to.addr());
        creation.create(if at_once { task_flag::UNDEFERRED } else { 0 })
    });
    let arguments = to.wrapping_byte_add(creation.offset);
    let header = Header {
        runtime: creation.runtime.each_ref().map(Cell::get),
        body: creation.body,
        arguments,
        task,
        discards: creation.discards.then_some(creation.by),
        has_bounds: creation.has_bounds,
        is_detachable: creation.is_detachable,
    };
    if creation.is_detachable {
        detachable(header.runtime[0], task);
        if !creation.arguments.is_null() {
            // The runtime puts the event where its own caller's arguments begin.
            // SAFETY: arguments of a task with an event begin with it.
            unsafe { *creation.arguments.cast::<usize>() = header.runtime[0] };
        }
    }
    // SAFETY: the runtime's copy has the size and alignment that were asked for, and the arguments are the program's.
    unsafe {
        to.cast::<Header>().write(header);
        match creation.copy {
            Some(copy) => copy(arguments, creation.arguments),
            None => ptr::copy_nonoverlapping(creation.arguments.cast::<u8>(), arguments.cast(), creation.size),
        }
    }
}

/// What the runtime calls in place of a task's function. The argument begins with a [`Header`].
///
/// The name is for readers from outside.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn libgomp_ompt_task(argument: *mut c_void) {
    // SAFETY: what `copy` has made.
    let header = unsafe { &*argument.cast::<Header>() };
    if header.has_bounds {
        // SAFETY: arguments of a part of a `taskloop` begin with its bounds.
        unsafe { ptr::copy_nonoverlapping(header.runtime.as_ptr(), header.arguments.cast::<usize>(), 2) };
    }
    // SAFETY: a record that stays.
    let task: &'static Task = unsafe { &*header.task };
    let thread = Thread::current();
    let prior = thread.task();
    if header.discards.is_some_and(is_discarded) {
        report::cancel(&task.data, cancel_flag::TASKGROUP | cancel_flag::DISCARDED_TASK, ptr::null());
        report::task_schedule(&task.data, task_status::CANCEL, Some(&prior.data));
        task.release(&thread.tasks);
        return;
    }
    task.thread_num.store(prior.thread_num.load(Relaxed), Relaxed);
    task.beneath.store(ptr::from_ref(prior).cast_mut(), Relaxed);
    report::task_schedule(&prior.data, task_status::SWITCH, Some(&task.data));
    thread.executes(task);
    task.frame.exit_frame_flags.store(APPLICATION_CFA, Relaxed);
    thread.in_state(state::WORK_PARALLEL, 0, || {
        // SAFETY: the program's function, and the copy of its arguments.
        unsafe { libgomp_ompt_call(header.body, header.arguments, &raw const task.frame.exit_frame) }
    });
    task.frame.exit_frame.store(0, Relaxed);
    task.frame.exit_frame_flags.store(0, Relaxed);
    thread.executes(prior);
    let waits_for_event = header.is_detachable && !is_fulfilled(header.runtime[0], task);
    let status = if waits_for_event { task_status::DETACH } else { task_status::COMPLETE };
    report::task_schedule(&task.data, status, Some(&prior.data));
    if !waits_for_event {
        task.release(&thread.tasks);
    }
}

/// Whether the runtime would not execute a task without copy constructors here: its taskgroup or region is cancelled.
///
/// The runtime executes tasks with copy constructors all the same, and takes all of these for such.
fn is_discarded(runtime: &Runtime) -> bool {
    type Real = unsafe extern "C-unwind" fn(c_int) -> bool;
    const TASKGROUP: c_int = 8;
    // SAFETY: the runtime's function of this type.
    unsafe { std::mem::transmute::<usize, Real>(runtime.function(Entry::GOMP_cancellation_point))(TASKGROUP) }
}

/// The dependences of `GOMP_task`: counts by kind, then addresses.
///
/// # Safety
/// `depend` is such an array.
unsafe fn dependences(depend: *const *mut c_void) -> Vec<Dependence> {
    // SAFETY: as the caller says.
    let word = |n: usize| unsafe { *depend.add(n) } as usize;
    let kinds: Vec<(usize, c_int)> = match word(0) {
        // All, those that write, those that write one at a time, those that read; the rest are `omp_depend_t`.
        0 => {
            let plain = [(word(2), dependence::INOUT), (word(3), dependence::MUTEXINOUTSET), (word(4), dependence::IN)];
            let count: usize = plain.iter().map(|(count, _)| count).sum();
            plain.into_iter().chain([(word(1).saturating_sub(count), 0)]).collect()
        }
        // All, those that write; the rest read.
        all => vec![(word(1), dependence::INOUT), (all.saturating_sub(word(1)), dependence::IN)],
    };
    let first = if word(0) == 0 { 5 } else { 2 };
    let each = kinds.into_iter().flat_map(|(count, kind)| std::iter::repeat_n(kind, count));
    let one = |(n, kind): (usize, c_int)| {
        let variable = word(first + n) as *mut c_void;
        if kind != 0 {
            return Dependence { variable, dependence_type: kind };
        }
        // SAFETY: an `omp_depend_t`: an address and a kind (gomp-constants.h).
        let [address, kind] = unsafe { *variable.cast::<[usize; 2]>() };
        let dependence_type = match kind {
            1 => dependence::IN,
            2 => dependence::OUT,
            4 => dependence::MUTEXINOUTSET,
            5 => dependence::INOUTSET,
            _ => dependence::INOUT,
        };
        Dependence { variable: address as *mut c_void, dependence_type }
    };
    each.enumerate().map(one).collect()
}

/// Flags that OMPT and the runtime have both.
fn task_flags(flags: c_uint) -> c_int {
    let pairs =
        [(flag::UNTIED, task_flag::UNTIED), (flag::FINAL, task_flag::FINAL), (flag::MERGEABLE, task_flag::MERGEABLE)];
    pairs.into_iter().filter(|(of, _)| flags & of != 0).fold(task_flag::EXPLICIT, |all, (_, is)| all | is)
}

/// Whether tasks of the calling thread are executed at once in any case.
fn never_defers(begun: Begun, task: &Task) -> bool {
    // Without a team the runtime has no queue of tasks.
    let no_team = task.region().is_none_or(|region| !region.is_team());
    no_team || begun.runtime.number(Query::InFinal) != 0
}

/// `GOMP_task`
#[allow(clippy::too_many_arguments, reason = "the runtime's own")]
pub unsafe extern "C-unwind" fn task(
    body: Body,
    arguments: *mut c_void,
    copy_arguments: Option<Copy>,
    size: c_long,
    align: c_long,
    may_defer: bool,
    flags: c_uint,
    depend: *mut *mut c_void,
    priority: c_int,
    event: *mut c_void,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(
        Body,
        *mut c_void,
        Option<Copy>,
        c_long,
        c_long,
        bool,
        c_uint,
        *mut *mut c_void,
        c_int,
        *mut c_void,
    );
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let real = unsafe { begun.real::<Real>(Entry::GOMP_task) };
    let Some(thread) = begun.thread else {
        // SAFETY: the program's arguments.
        return unsafe {
            real(body, arguments, copy_arguments, size, align, may_defer, flags, depend, priority, event)
        };
    };
    let encountering = thread.task();
    let (align, length) =
        (usize::try_from(align).unwrap_or(1).max(align_of::<Header>()), usize::try_from(size).unwrap_or(0));
    let at_once = !may_defer || never_defers(begun, encountering);
    let creation = Creation {
        runtime: [Cell::new(0), Cell::new(0), Cell::new(0)],
        body,
        copy: copy_arguments,
        arguments,
        size: length,
        offset: offset(align),
        thread,
        by: begun.runtime,
        call,
        flags: task_flags(flags) | if at_once { task_flag::UNDEFERRED } else { 0 },
        depend: if flags & flag::DEPEND != 0 { depend } else { ptr::null() },
        has_bounds: false,
        is_detachable: flags & flag::DETACH != 0,
        discards: copy_arguments.is_none() && begun.runtime.number(Query::Cancellation) != 0,
        task: Cell::new(None),
    };
    // A task that is executed at once may have to wait for its dependences before the runtime copies its arguments.
    if at_once {
        creation.task.set(Some(creation.create(0)));
    }
    let (size, align) = (creation.offset + length, align);
    // SAFETY: the runtime's type; our function with what it takes, and the program's arguments.
    unsafe {
        real(
            libgomp_ompt_task,
            ptr::from_ref(&creation).cast_mut().cast(),
            Some(copy),
            c_long::try_from(size).unwrap_or(c_long::MAX),
            c_long::try_from(align).unwrap_or(1),
            may_defer,
            flags,
            depend,
            priority,
            event,
        );
    }
    if let Some(task) = creation.task.take() {
        // The region or taskgroup is cancelled: the runtime has not executed the task.
        report::cancel(&task.data, cancel_flag::TASKGROUP | cancel_flag::DISCARDED_TASK, call.codeptr_ra());
        report::task_schedule(&task.data, task_status::CANCEL, Some(&encountering.data));
        task.release(&thread.tasks);
    }
    call::end(encountering);
}

/// Defines `taskloop` functions, which differ in the type of bounds.
macro_rules! taskloops {
    ($($name:ident, $entry:ident, $count:expr;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        #[allow(clippy::too_many_arguments, reason = "the runtime's own")]
        pub unsafe extern "C-unwind" fn $name(
            body: Body, arguments: *mut c_void, copy_arguments: Option<Copy>, size: c_long, align: c_long, flags: c_uint,
            tasks: c_ulong, priority: c_int, first: c_long, last: c_long, step: c_long, call: Call,
        ) {
            let bounds = (tasks, priority, first, last, step);
            let count = $count(flags, first, last, step);
            // SAFETY: as the caller says.
            unsafe { taskloop_of(Entry::$entry, (body, arguments, copy_arguments), (size, align), flags, bounds, count, call) }
        })*
    };
}

taskloops! {
    taskloop, GOMP_taskloop, |_, first, last, step| loops::iterations(first, last, step);
    taskloop_ull, GOMP_taskloop_ull, |flags, first: c_long, last: c_long, step: c_long| {
        loops::iterations_ull(flags & flag::UP != 0, first as u64, last as u64, step as u64)
    };
}

unsafe fn taskloop_of(
    entry: Entry,
    (body, arguments, copy_arguments): (Body, *mut c_void, Option<Copy>),
    (size, align): (c_long, c_long),
    flags: c_uint,
    (tasks, priority, first, last, step): (c_ulong, c_int, c_long, c_long, c_long),
    count: u64,
    call: Call,
) {
    type Real = unsafe extern "C-unwind" fn(
        Body,
        *mut c_void,
        Option<Copy>,
        c_long,
        c_long,
        c_uint,
        c_ulong,
        c_int,
        c_long,
        c_long,
        c_long,
    );
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let real = unsafe { begun.real::<Real>(entry) };
    let Some(thread) = begun.thread else {
        // SAFETY: the program's arguments.
        return unsafe {
            real(body, arguments, copy_arguments, size, align, flags, tasks, priority, first, last, step)
        };
    };
    let (encountering, code) = (thread.task(), call.codeptr_ra());
    let (align, length) =
        (usize::try_from(align).unwrap_or(1).max(align_of::<Header>()), usize::try_from(size).unwrap_or(0));
    // SAFETY: the arguments of a `taskloop` begin with two bounds and, if it has reductions, a pointer to them.
    let reductions = if flags & flag::REDUCTION != 0 { unsafe { *arguments.cast::<usize>().add(2) } } else { 0 };
    let at_once = flags & flag::IF == 0 || never_defers(begun, encountering);
    let creation = Creation {
        runtime: [Cell::new(0), Cell::new(0), Cell::new(reductions)],
        body,
        copy: copy_arguments,
        arguments,
        size: length,
        offset: offset(align),
        thread,
        by: begun.runtime,
        call,
        flags: task_flags(flags) | if at_once { task_flag::UNDEFERRED } else { 0 },
        depend: ptr::null(),
        has_bounds: true,
        is_detachable: false,
        discards: copy_arguments.is_none() && begun.runtime.number(Query::Cancellation) != 0,
        task: Cell::new(None),
    };
    let region = encountering.region().map(|region| &region.data);
    // The construct is enclosed in a taskgroup unless it says otherwise.
    let has_group = flags & flag::NOGROUP == 0;
    // With the group in calls of its own, the wait at its end is seen. Reductions need the runtime's own group.
    let own_group = has_group && flags & flag::REDUCTION == 0;
    let flags = if own_group { flags | flag::NOGROUP } else { flags };
    if has_group {
        report::sync_region(sync_region::TASKGROUP, scope::BEGIN, region, &encountering.data, code);
    }
    if own_group {
        // SAFETY: the runtime's type.
        unsafe { begun.real::<Group>(Entry::GOMP_taskgroup_start)() };
    }
    report::work(work::TASKLOOP, scope::BEGIN, region, &encountering.data, count, code);
    // SAFETY: the runtime's type; our function with what it takes, and the program's arguments.
    unsafe {
        real(
            libgomp_ompt_task,
            ptr::from_ref(&creation).cast_mut().cast(),
            Some(copy),
            c_long::try_from(creation.offset + length).unwrap_or(c_long::MAX),
            c_long::try_from(align).unwrap_or(1),
            flags,
            tasks,
            priority,
            first,
            last,
            step,
        );
    }
    report::work(work::TASKLOOP, scope::END, region, &encountering.data, count, code);
    if own_group {
        // SAFETY: the runtime's type.
        let forward = || unsafe { begun.real::<Group>(Entry::GOMP_taskgroup_end)() };
        barriers::waits_for_group(thread, call, forward);
    } else if has_group {
        report::sync_region(sync_region::TASKGROUP, scope::END, region, &encountering.data, code);
    }
    call::end(encountering);
}

type Group = unsafe extern "C-unwind" fn();

/// Tasks with `detach` whose events are not fulfilled, or that have not executed their code.
static DETACHABLE: Mutex<Option<HashMap<usize, Detachable>>> = Mutex::new(None);

#[derive(Debug, Clone, Copy)]
struct Detachable {
    task: &'static Task,
    fulfilled: bool,
    executed: bool,
}

// SAFETY: records are shared among threads.
unsafe impl Send for Detachable {}

fn with_detachable<R>(change: impl FnOnce(&mut HashMap<usize, Detachable>) -> R) -> R {
    let mut all = DETACHABLE.lock().unwrap_or_else(PoisonError::into_inner);
    change(all.get_or_insert_default())
}

/// A task has this event.
fn detachable(event: usize, task: &'static Task) {
    with_detachable(|all| all.insert(event, Detachable { task, fulfilled: false, executed: false }));
}

/// Whether the event of a task that has executed its code is fulfilled.
fn is_fulfilled(event: usize, task: &Task) -> bool {
    with_detachable(|all| match all.get_mut(&event) {
        Some(known) if ptr::eq(known.task, task) && !known.fulfilled => {
            known.executed = true;
            false
        }
        _ => {
            all.remove(&event);
            true
        }
    })
}

/// `omp_fulfill_event`
pub unsafe extern "C-unwind" fn fulfill_event(event: usize, call: Call) {
    // SAFETY: the program's event.
    unsafe { fulfill(event, call, Entry::omp_fulfill_event) }
}

/// `omp_fulfill_event` of Fortran
pub unsafe extern "C-unwind" fn fulfill_event_fortran(event: *mut usize, call: Call) {
    type Real = unsafe extern "C-unwind" fn(*mut usize);
    let begun = call.begin();
    if let Some(thread) = begun.thread {
        // SAFETY: Fortran passes the address of the event.
        fulfilled(thread, unsafe { *event });
    }
    // SAFETY: the runtime's type and the program's argument.
    unsafe { begun.real::<Real>(Entry::omp_fulfill_event_)(event) };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}

unsafe fn fulfill(event: usize, call: Call, entry: Entry) {
    type Real = unsafe extern "C-unwind" fn(usize);
    let begun = call.begin();
    // Reported before: afterwards the task may be gone.
    if let Some(thread) = begun.thread {
        fulfilled(thread, event);
    }
    // SAFETY: the runtime's type and the program's argument.
    unsafe { begun.real::<Real>(entry)(event) };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}

fn fulfilled(thread: &Thread, event: usize) {
    let known = with_detachable(|all| {
        let known = all.get_mut(&event)?;
        known.fulfilled = true;
        let known = *known;
        if known.executed {
            all.remove(&event);
        }
        Some(known)
    });
    let Some(known) = known else { return };
    let status = if known.executed { task_status::LATE_FULFILL } else { task_status::EARLY_FULFILL };
    report::task_schedule(&known.task.data, status, None);
    if known.executed {
        known.task.release(&thread.tasks);
    }
}
