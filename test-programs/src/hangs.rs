//! The programs of `hangs/`, which never end, and of `healthy/`, which nothing is wrong with.

use crate::{Runtime, Toolchain};

/// A program, and what it is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Case {
    /// What [`build`](crate::build) takes: directory and name.
    pub program: &'static str,
    /// Flags for the compiler: the variant of the program.
    pub flags: &'static [&'static str],
    /// Where it does what it should.
    pub needs: Needs,
}

/// Where a program does what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Needs {
    /// Wherever it can be built and run.
    Nothing,
    /// The compiler that belongs to the runtime: gcc's entry points of libomp leave out what the program is about.
    OwnCompiler,
    /// libgomp.
    Libgomp,
}

impl Case {
    const fn of(program: &'static str) -> Case {
        Case { program, flags: &[], needs: Needs::Nothing }
    }

    const fn with(program: &'static str, flags: &'static [&'static str]) -> Case {
        Case { program, flags, needs: Needs::Nothing }
    }

    const fn needs(self, needs: Needs) -> Case {
        Case { program: self.program, flags: self.flags, needs }
    }

    /// Whether the program, built by this toolchain, does on this runtime what it should.
    pub fn works(&self, toolchain: Toolchain, runtime: Runtime) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::OwnCompiler => runtime.is_kmp() == (toolchain == Toolchain::Clang),
            Needs::Libgomp => !runtime.is_kmp(),
        }
    }

    /// What is wrong in a look at the hang. One look decides, but for a program whose hang some looks do not show.
    pub fn look(&self, mut look: impl FnMut() -> Vec<String>) -> Vec<String> {
        // A thread that spins by sched_yield may be met between two calls, which is no verdict then.
        let tries = if self.program == "hangs/nested_exhausted" { 5 } else { 1 };
        let mut wrong = look();
        for _ in 1..tries {
            if wrong.is_empty() {
                break;
            }
            wrong = look();
        }
        wrong
    }
}

/// The programs that hang, in all their variants. To be started with [`Launch::start_hanging`](crate::Launch).
pub const HANGS: &[Case] = &[
    Case::of("hangs/lock_cycle"),
    Case::with("hangs/lock_cycle", &["-DNEST"]),
    Case::with("hangs/lock_cycle", &["-DCRITICAL"]),
    Case::of("hangs/lock_cycle_cpp"),
    Case::with("hangs/lock_cycle_cpp", &["-DNEST"]),
    Case::of("hangs/lock_cycle_fortran"),
    Case::of("hangs/mutex_and_lock"),
    Case::with("hangs/mutex_and_lock", &["-DNEST"]),
    Case::with("hangs/mutex_and_lock", &["-DCRITICAL"]),
    Case::of("hangs/mutex_and_lock_cpp"),
    Case::of("hangs/mutexes"),
    Case::with("hangs/mutexes", &["-DSELF"]),
    Case::with("hangs/mutexes", &["-DJOIN"]),
    Case::with("hangs/mutexes", &["-DRWLOCK"]),
    Case::with("hangs/mutexes", &["-DHANDLER"]),
    Case::of("hangs/semaphores"),
    Case::of("hangs/join_lock"),
    Case::with("hangs/join_lock", &["-DNEST"]),
    Case::of("hangs/self_lock"),
    Case::with("hangs/self_lock", &["-DCRITICAL"]),
    Case::with("hangs/self_lock", &["-DUNDEFERRED"]),
    Case::of("hangs/owner_gone"),
    Case::with("hangs/owner_gone", &["-DNEST"]),
    Case::of("hangs/barrier_missing_end"),
    Case::of("hangs/missing_lock"),
    Case::with("hangs/missing_lock", &["-DNEST"]),
    Case::with("hangs/missing_lock", &["-DCRITICAL"]),
    Case::of("hangs/missing_read"),
    // libomp's threads do not sleep while a task is not over: a core may meet one between two steps of its wait.
    Case::with("hangs/missing_read", &["-DTASK"]).needs(Needs::Libgomp),
    Case::with("hangs/missing_read", &["-DOWN"]).needs(Needs::Libgomp),
    Case::with("hangs/missing_read", &["-DNESTED"]),
    Case::of("hangs/child_hangs"),
    Case::of("hangs/orphaned_for"),
    Case::with("hangs/orphaned_for", &["-DSTATIC"]),
    Case::with("hangs/orphaned_for", &["-DSECTIONS"]),
    Case::with("hangs/orphaned_for", &["-DSINGLE"]),
    // libomp's entry points for gcc do not know of detached tasks.
    Case::of("hangs/detach").needs(Needs::OwnCompiler),
    Case::with("hangs/detach", &["-DTASKGROUP"]).needs(Needs::OwnCompiler),
    // libomp's threads never sleep at a barrier while a task is not over. While they spin, one cannot see whether they are being
    // released: nothing is proven.
    Case::with("hangs/detach", &["-DBARRIER"]).needs(Needs::Libgomp),
    // clang's code does not wait there.
    Case::with("hangs/detach", &["-DUNDEFERRED"]).needs(Needs::Libgomp),
    Case::of("hangs/depend_cycle"),
    Case::with("hangs/depend_cycle", &["-DNEST"]),
    Case::with("hangs/depend_cycle", &["-DTASKWAIT"]),
    Case::with("hangs/depend_cycle", &["-DTASKWAIT", "-DNEST"]),
    Case::of("hangs/excluded").needs(Needs::OwnCompiler),
    Case::of("hangs/task_never_run"),
    Case::with("hangs/task_never_run", &["-DUNRELATED"]),
    Case::with("hangs/task_never_run", &["-DDETACH"]).needs(Needs::Libgomp),
    Case::of("hangs/nested_exhausted"),
    Case::of("hangs/ordered_skip"),
    Case::with("hangs/ordered_skip", &["-DNEST"]),
    // No runtime records the iteration that is waited for: it expects no verdict.
    Case::of("hangs/missing_source"),
    Case::of("hangs/critical_left"),
    Case::of("hangs/rescued"),
    Case::with("hangs/rescued", &["-DNEST"]),
    Case::with("hangs/rescued", &["-DEVENT"]).needs(Needs::OwnCompiler),
    // Only the memory of the lock shows whether it is free.
    Case::with("hangs/rescued", &["-DSHARED"]).needs(Needs::Libgomp),
    Case::of("hangs/cancelled"),
    // On libomp it does not hang, and expects no verdict.
    Case::of("hangs/fork_child"),
    Case::with("hangs/fork_child", &["-DTHREAD"]),
];

/// The programs that are healthy whenever they are looked at. To be started with
/// [`Launch::start_healthy`](crate::Launch); they run until they are killed.
pub const HEALTHY: &[Case] = &[
    Case::of("healthy/idle"),
    Case::of("healthy/busy"),
    Case::of("healthy/oversubscribed"),
    Case::of("healthy/long_critical"),
    Case::of("healthy/deep_tasks"),
    Case::of("healthy/depend_pipeline"),
    Case::of("healthy/loops"),
    Case::of("healthy/nested_busy"),
    Case::of("healthy/detach_fulfilled").needs(Needs::OwnCompiler),
    Case::of("healthy/io"),
    Case::with("healthy/io", &["-DNAP"]),
    Case::of("healthy/outside_waits"),
    Case::of("healthy/pthread_pools"),
    Case::of("healthy/held_across"),
    Case::of("healthy/task_groups"),
    Case::of("healthy/tail_tasks"),
    Case::of("healthy/timer"),
    Case::with("healthy/timer", &["-DDESCRIPTOR"]),
    Case::of("healthy/threads_come_and_go"),
    Case::of("healthy/turns"),
    // With GCC's code libomp loses iterations of the second loop.
    Case::of("healthy/two_ordered").needs(Needs::OwnCompiler),
    Case::of("healthy/handler_works"),
    // GCC's tasks stay on their threads.
    Case::of("healthy/moved_untied").needs(Needs::OwnCompiler),
    // libomp's barriers wait for all members, whatever was cancelled.
    Case::of("healthy/cancelled_barrier").needs(Needs::Libgomp),
];
