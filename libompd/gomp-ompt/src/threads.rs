//! What is kept of a thread.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

use crate::callbacks as report;
use crate::listening;
use crate::ompt::{Data, parallel_flag, scope, state, sync_region, task_flag, thread};
use crate::pool::Own;
use crate::records::{Region, Task};
use crate::runtimes::Runtime;

/// A thread that executes OpenMP.
#[derive(Debug)]
pub struct Thread {
    /// The tool's word.
    pub data: Data,
    /// `ompt_thread_t`, 0 as long as the tool does not know the thread.
    kind: Cell<c_int>,
    /// `ompt_state_t`
    pub state: AtomicU32,
    /// What it waits for, in a state that waits for a mutex.
    pub wait_id: AtomicU64,
    /// What it executes.
    task: AtomicPtr<Task>,
    /// Its implicit task while it is a worker. A thread is a worker of one region at a time.
    worker_task: Task,
    /// It has executed its implicit task, and waits at the end of the region. Nothing tells when it leaves.
    at_end: AtomicBool,
    /// The task of a thread that the runtime did not create, and its region.
    initial_task: Task,
    initial_region: Region,
    /// The runtime that it called last.
    runtime: AtomicPtr<Runtime>,
    /// Records for later use.
    pub regions: Own<Region>,
    /// Records for later use.
    pub tasks: Own<Task>,
}

thread_local! {
    static OWN: Thread = const {
        Thread {
            data: Data::new(0),
            kind: Cell::new(0),
            state: AtomicU32::new(state::UNDEFINED),
            wait_id: AtomicU64::new(0),
            task: AtomicPtr::new(ptr::null_mut()),
            worker_task: Task::new(),
            at_end: AtomicBool::new(false),
            initial_task: Task::new(),
            initial_region: Region::new(),
            runtime: AtomicPtr::new(ptr::null_mut()),
            regions: Own::new(),
            tasks: Own::new(),
        }
    };
}

impl Thread {
    fn own() -> &'static Thread {
        // SAFETY: it has no destructor, so it is there as long as the thread is. No other thread gets this reference to
        // use it later than that.
        OWN.with(|own| unsafe { &*ptr::from_ref(own) })
    }

    /// Whether it is the calling thread.
    pub fn is_own(thread: *const c_void) -> bool {
        ptr::eq(thread, Thread::own().address())
    }

    /// Its address, by which regions name it.
    pub fn address(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }

    /// Whether a thread is the first that the tool got to know.
    pub fn is_first(thread: &Thread) -> bool {
        ptr::eq(FIRST.load(Relaxed), thread)
    }

    /// Whether the process is a child of the one in which the first thread began.
    pub fn is_in_child() -> bool {
        PROCESS.load(Relaxed) != process()
    }

    /// The calling thread, if the tool knows it. Safe in signal handlers.
    pub fn existing() -> Option<&'static Thread> {
        let own = Thread::own();
        (own.kind.get() != 0).then_some(own)
    }

    /// The calling thread. One that is not known is no worker, so it begins as an initial thread.
    pub fn current() -> &'static Thread {
        let own = Thread::own();
        if own.kind.get() == 0 {
            own.begin(thread::INITIAL);
        }
        own
    }

    /// The calling thread, which executes the body of a region as a worker.
    pub fn worker() -> &'static Thread {
        let own = Thread::own();
        if own.kind.get() == 0 {
            own.begin(thread::WORKER);
        }
        own
    }

    #[cold]
    fn begin(&self, kind: c_int) {
        self.kind.set(kind);
        if FIRST.compare_exchange(ptr::null_mut(), ptr::from_ref(self).cast_mut(), Relaxed, Relaxed).is_ok() {
            PROCESS.store(process(), Relaxed);
        }
        at_exit_of_thread();
        self.state.store(state::OVERHEAD, Relaxed);
        if kind == thread::INITIAL {
            self.initial_region.size.store(1, Relaxed);
            self.initial_region.flags.set(parallel_flag::INVOKER_PROGRAM);
            self.initial_task.begin(ptr::null(), &raw const self.initial_region, task_flag::INITIAL);
        } else {
            self.worker_task.begin(ptr::null(), ptr::null(), task_flag::IMPLICIT);
        }
        let task = if kind == thread::INITIAL { &self.initial_task } else { &self.worker_task };
        self.task.store(ptr::from_ref(task).cast_mut(), Relaxed);
        report::thread_begin(kind, &self.data);
        if kind == thread::INITIAL {
            let region = &self.initial_region.data;
            report::implicit_task(scope::BEGIN, Some(region), &task.data, 1, 1, task_flag::INITIAL);
            self.state.store(state::WORK_SERIAL, Relaxed);
        }
    }

    /// The thread ends, or the program does.
    pub fn end(&self) {
        if self.kind.get() == 0 {
            return;
        }
        self.leave_region();
        if self.kind.get() == thread::INITIAL {
            report::implicit_task(scope::END, None, &self.initial_task.data, 0, 1, task_flag::INITIAL);
        }
        report::thread_end(&self.data);
        self.kind.set(0);
        self.data.store(0, Relaxed);
    }

    /// What it executes.
    pub fn task(&self) -> &'static Task {
        // SAFETY: null before the thread has begun, else a record that stays.
        unsafe { self.task.load(Relaxed).as_ref() }.unwrap_or(&NO_TASK)
    }

    /// Begins to execute another task.
    pub fn executes(&self, task: &Task) {
        self.task.store(ptr::from_ref(task).cast_mut(), Relaxed);
    }

    /// The implicit task for a worker of a region. What it did before has ended.
    pub fn worker_task(&self) -> &Task {
        self.leave_region();
        &self.worker_task
    }

    /// It has executed its implicit task as a worker, and waits at the end of the region.
    pub fn reaches_end(&self) {
        self.at_end.store(true, Relaxed);
    }

    /// Whether it has executed its implicit task as a worker and executes no explicit task at the barrier. Then the record of its
    /// region may be in use again.
    pub fn is_at_end(&self) -> bool {
        self.at_end.load(Relaxed) && ptr::eq(self.task.load(Relaxed), &raw const self.worker_task)
    }

    /// Reports the end of the implicit task of a worker, of which nothing tells when it came.
    fn leave_region(&self) {
        if !self.at_end.swap(false, Relaxed) {
            return;
        }
        let task = &self.worker_task;
        let (kind, code) = (sync_region::BARRIER_IMPLICIT_PARALLEL, ptr::null());
        report::sync_region_wait(kind, scope::END, None, &task.data, code);
        report::sync_region(kind, scope::END, None, &task.data, code);
        report::implicit_task(scope::END, None, &task.data, 0, task.thread_num.load(Relaxed), task_flag::IMPLICIT);
        self.state.store(state::OVERHEAD, Relaxed);
    }

    /// Notes the runtime that is called. Whether it is the first that the thread calls.
    pub fn uses(&self, runtime: &'static Runtime) -> bool {
        let is_first = self.runtime.load(Relaxed).is_null();
        self.runtime.store(ptr::from_ref(runtime).cast_mut(), Relaxed);
        is_first
    }

    /// The runtime that was called last.
    pub fn runtime(&self) -> Option<&'static Runtime> {
        // SAFETY: null, or a runtime that stays.
        unsafe { self.runtime.load(Relaxed).as_ref() }
    }

    /// Executes something while the thread is in another state.
    pub fn in_state<R>(&self, state: c_uint, wait_id: u64, executed: impl FnOnce() -> R) -> R {
        let before = self.state.load(Relaxed);
        self.wait_id.store(wait_id, Relaxed);
        self.state.store(state, Relaxed);
        let result = executed();
        self.state.store(before, Relaxed);
        self.wait_id.store(0, Relaxed);
        result
    }
}

/// The first thread of all, and its process.
static FIRST: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
static PROCESS: AtomicI32 = AtomicI32::new(0);

fn process() -> i32 {
    // SAFETY: it only asks the kernel.
    unsafe { libc::getpid() }
}

/// In the place of a task before there is one.
static NO_TASK: Task = Task::new();

/// Has the end of the calling thread reported.
fn at_exit_of_thread() {
    static ONCE: Once = Once::new();
    static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
    unsafe extern "C" fn ends(_thread: *mut c_void) {
        if listening::is_recording() {
            Thread::own().end();
        }
    }
    ONCE.call_once(|| {
        let mut key = 0;
        // SAFETY: a place for the key, and a function that stays.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0 {
            KEY.store(key, Relaxed);
        }
    });
    let key = KEY.load(Relaxed);
    if key != u32::MAX {
        // SAFETY: the key was made. The value only has to be something.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(&KEY).cast()) };
    }
}
