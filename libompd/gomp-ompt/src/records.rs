//! What is kept of regions and tasks: what a tool may ask for.
//!
//! Records are reused and their memory is never given back. So a tool that asks in a signal handler, while a region ends, reads a
//! record, if perhaps of another region.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use crate::ompt::{Body, Data, Frame, parallel_flag, task_flag};
use crate::pool::{Own, Pool};
use crate::runtimes::{NO_RUNTIME, Runtime};

/// A parallel or teams region.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// What the runtime reads of the argument of a region with reductions. First, where it reads.
    pub reductions: Cell<usize>,
    /// The tool's word. At this place for readers from outside, as the next two are.
    pub data: Data,
    /// The function of the region.
    pub body: Cell<Option<Body>>,
    /// Its argument.
    pub argument: Cell<*mut c_void>,
    /// The region around it.
    pub parent: Cell<*const Region>,
    /// The task that encountered it.
    pub encountering: Cell<*const Task>,
    /// The thread that encountered it, and is thread 0.
    pub primary: Cell<*const c_void>,
    /// The implicit task of thread 0.
    pub task: Task,
    /// The runtime that executes it.
    pub runtime: Cell<&'static Runtime>,
    /// Threads of the team, 0 as long as the region has none.
    pub size: AtomicU32,
    /// The call.
    pub codeptr_ra: Cell<*const c_void>,
    /// `ompt_parallel_flag_t`
    pub flags: Cell<c_int>,
    /// `ompt_work_t` of a loop or sections that begin with the region, 0 for none, and their count.
    pub work: Cell<(c_int, u64)>,
}

// SAFETY: the cells are written by thread 0 before others see the region.
unsafe impl Sync for Region {}
// SAFETY: as above.
unsafe impl Send for Region {}

impl Region {
    /// An empty record.
    pub const fn new() -> Region {
        Region {
            reductions: Cell::new(0),
            data: Data::new(0),
            body: Cell::new(None),
            argument: Cell::new(ptr::null_mut()),
            parent: Cell::new(ptr::null()),
            encountering: Cell::new(ptr::null()),
            primary: Cell::new(ptr::null()),
            task: Task::new(),
            runtime: Cell::new(&NO_RUNTIME),
            size: AtomicU32::new(0),
            codeptr_ra: Cell::new(ptr::null()),
            flags: Cell::new(0),
            work: Cell::new((0, 0)),
        }
    }

    /// A record for a region that begins. `own` are those of the calling thread.
    pub fn take(own: &Own<Region>) -> &'static Region {
        let region = REGIONS.take(own, Region::new);
        region.data.store(0, Relaxed);
        region.size.store(0, Relaxed);
        region.work.set((0, 0));
        region
    }

    /// The region has ended. `own` are those of the calling thread.
    pub fn give_back(&'static self, own: &Own<Region>) {
        REGIONS.give_back(own, self);
    }

    /// Whether it is a parallel region, and neither a league nor the region around an initial task.
    pub fn is_team(&self) -> bool {
        self.flags.get() & parallel_flag::TEAM != 0
    }
}

/// A task.
#[derive(Debug)]
#[repr(C)]
pub struct Task {
    /// The tool's word. First, for readers from outside.
    pub data: Data,
    /// Where it calls the runtime, and the runtime calls it.
    pub frame: Frame,
    /// The task that generated it, or that encountered its region. Null for initial tasks.
    parent: AtomicPtr<Task>,
    /// The next task outward on the stack of its thread: for an explicit task the one that the thread executed before, else as `parent`.
    pub beneath: AtomicPtr<Task>,
    /// Its region.
    pub region: AtomicPtr<Region>,
    /// `ompt_task_flag_t`
    pub flags: AtomicI32,
    /// Number of the thread that executes it.
    pub thread_num: AtomicU32,
    /// Records that refer to it, and the runtime while it has not ended.
    references: AtomicUsize,
    /// Where a `single` began that this implicit task executes, null for none. Nothing tells its end.
    pub single: AtomicPtr<c_void>,
    /// `ompt_work_t` of the loop or sections that this task executes, 0 for none.
    pub work: AtomicI32,
    /// And their count.
    pub work_count: AtomicU64,
    /// Loops nested in each other of the doacross loop that it began last, 0 if it has begun none.
    pub doacross: AtomicU32,
    /// The runtime that executes an explicit task; null for others, which have that of their region.
    runtime: AtomicPtr<Runtime>,
}

impl Task {
    /// An empty record.
    pub const fn new() -> Task {
        Task {
            data: Data::new(0),
            frame: Frame {
                exit_frame: Data::new(0),
                enter_frame: Data::new(0),
                exit_frame_flags: AtomicI32::new(0),
                enter_frame_flags: AtomicI32::new(0),
            },
            parent: AtomicPtr::new(ptr::null_mut()),
            beneath: AtomicPtr::new(ptr::null_mut()),
            region: AtomicPtr::new(ptr::null_mut()),
            flags: AtomicI32::new(0),
            thread_num: AtomicU32::new(0),
            references: AtomicUsize::new(0),
            single: AtomicPtr::new(ptr::null_mut()),
            work: AtomicI32::new(0),
            work_count: AtomicU64::new(0),
            doacross: AtomicU32::new(0),
            runtime: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Becomes the record of another task.
    pub fn begin(&self, parent: *const Task, region: *const Region, flags: c_int) {
        self.data.store(0, Relaxed);
        self.frame.exit_frame.store(0, Relaxed);
        self.frame.enter_frame.store(0, Relaxed);
        self.frame.exit_frame_flags.store(0, Relaxed);
        self.frame.enter_frame_flags.store(0, Relaxed);
        self.parent.store(parent.cast_mut(), Relaxed);
        self.beneath.store(parent.cast_mut(), Relaxed);
        self.region.store(region.cast_mut(), Relaxed);
        self.flags.store(flags, Relaxed);
        self.thread_num.store(0, Relaxed);
        self.single.store(ptr::null_mut(), Relaxed);
        self.work.store(0, Relaxed);
        self.doacross.store(0, Relaxed);
        self.runtime.store(ptr::null_mut(), Relaxed);
    }

    /// A record for an explicit task, executed by this runtime. Its generating task stays until it has ended. `own` are those of the
    /// calling thread.
    pub fn take(own: &Own<Task>, parent: &Task, flags: c_int, runtime: &'static Runtime) -> &'static Task {
        let task = TASKS.take(own, Task::new);
        task.begin(parent, parent.region.load(Relaxed), flags);
        task.runtime.store(ptr::from_ref(runtime).cast_mut(), Relaxed);
        task.references.store(1, Relaxed);
        parent.references.fetch_add(1, Relaxed);
        task
    }

    /// The explicit task has ended, or a task that it has generated. `own` are those of the calling thread.
    pub fn release(&'static self, own: &Own<Task>) {
        let mut task = self;
        // A task may have been the last to refer to its generating task.
        while task.is_explicit() && task.references.fetch_sub(1, AcqRel) == 1 {
            let parent = task.parent.load(Relaxed);
            TASKS.give_back(own, task);
            // SAFETY: a record that stays.
            match unsafe { parent.as_ref() } {
                Some(parent) => task = parent,
                None => return,
            }
        }
    }

    /// Whether it is an explicit task.
    pub fn is_explicit(&self) -> bool {
        self.flags.load(Relaxed) & task_flag::EXPLICIT != 0
    }

    /// The runtime that executes it. `None` for a task that no runtime began.
    pub fn runtime(&self) -> Option<&'static Runtime> {
        // SAFETY: null, or a runtime, which stays.
        let own = unsafe { self.runtime.load(Relaxed).as_ref() };
        let of_region = || self.region().map(|region| region.runtime.get());
        own.or_else(of_region).filter(|runtime| !ptr::eq(*runtime, &raw const NO_RUNTIME))
    }

    /// Its region. `None` for a task that has begun none, as in a process that just starts.
    pub fn region(&self) -> Option<&'static Region> {
        // SAFETY: null, or a record that stays.
        unsafe { self.region.load(Relaxed).as_ref() }
    }
}

static REGIONS: Pool<Region> = Pool::new();
static TASKS: Pool<Task> = Pool::new();
