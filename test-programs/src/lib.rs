//! Test kit: OpenMP programs that know the truth about themselves, and what it takes to build and drive them.
//!
//! The programs are in `programs/`. Each brings its threads into a state worth inspecting. It writes to a pipe what the OpenMP
//! API told every thread about itself ([`Truth`]), and stays in that state until it is released. A test starts one with
//! [`Running::start`], inspects it by pid (or a core of it), compares with [`Running::truth`], and releases it.
//!
//! ```no_run
//! use test_programs::{Env, Opt, Running, Runtime, Toolchain, build};
//!
//! # fn main() -> anyhow::Result<()> {
//! let program = build("barrier_missing", Toolchain::Gcc, Opt::O2, &["-s"])?;
//! let running = Running::start(&program, Runtime::Libgomp, Env::Settled)?;
//! // ... inspect running.pid, compare with running.truth ...
//! assert_eq!(running.release()?.progress, 4);
//! # Ok(())
//! # }
//! ```
//!
//! What a machine lacks is never an error of the kit: it is a [`Skip`] with its reason, which the test shows by
//! [`Skip::show`].

use std::fmt;
use std::io::Write as _;

mod basics;
mod build;
mod compare;
mod compare_stacks;
mod compare_verdicts;
mod contradictions;
mod elf;
mod emulated;
mod expect;
mod fake;
pub mod guest;
mod hangs;
mod held;
mod kept;
mod launch;
mod libraries;
mod observe;
mod offload;
mod opencl;
pub mod python;
mod random;
mod running;
mod runtime;
mod segments;
mod sound;
mod stacks;
pub mod transcripts;
mod truth;

pub use basics::{Address, Kind, LockKind, Wait};
pub use build::{
    Executable, Opt, Target, Toolchain, build, build_for, built_by_cargo, can_build, link_statically, succeeds,
};
pub use compare::{Comparison, compare};
pub use compare_stacks::{compare_stacks, true_stacks};
pub use compare_verdicts::compare_verdicts;
pub use elf::elf;
pub use emulated::{
    Emulated, Guest, GuestKernel, GuestResult, GuestRuntime, Served, emulate, emulate_served, emulator,
};
pub use expect::{Expectation, Gone, Named, Situation, Verdict};
pub use fake::{ChangedTarget, FakeTarget, thread_at, user_regs};
pub use hangs::{Case, HANGS, HEALTHY, Needs};
pub use held::{Held, libomp_libraries};
pub use kept::{KeptCore, kept_core_name, kept_cores, kept_cores_folder};
pub use launch::{Env, Launch, Process, TRUTH_SPINS};
pub use libraries::libraries;
pub use observe::{ThreadState, await_all_blocked, await_asleep, mapped_files, thread_states};
pub use offload::Offloading;
pub use random::Random;
pub use running::{Crashed, Finished, Running, crash_core, crash_core_of, gcore};
pub use runtime::{Runtime, combinations, native_combinations, other_releases, unknown_build};
pub use segments::Segments;
pub use sound::{check_hanging, check_healthy, check_waits};
pub use stacks::{Stack, StackFrame, StackTask};
pub use truth::{Api, Level, Lock, ProgramFacts, Task, TaskState, Thread, Truth, UnstartedTask};

/// The programs that tell the truth and finish when released; `hang`, `crash`, `many`, `tasks_many`, `churn`, `two_runtimes`,
/// `nested_runtimes` and `stuck` need a start
/// of their own, and `tasks_left` comes to rest on libgomp alone.
pub const STEADY_PROGRAMS: [&str; 11] = [
    "nested",
    "lock",
    "tasks",
    "barrier_missing",
    "region_end",
    "idle",
    "user_pthread",
    "serialized",
    "icvs",
    "not_openmp",
    "progress",
];

/// The programs whose variables have values that follow from thread numbers; they finish when released.
pub const LOCALS_PROGRAMS: [&str; 2] = ["locals", "locals_loop"];

/// The programs that know their logical stacks ([`Truth::stacks`]); they finish when released.
pub const STACK_PROGRAMS: [&str; 12] = [
    "stacks",
    "stacks_tail",
    "stacks_jump",
    "stacks_regions",
    "stacks_orphan",
    "stacks_pthread",
    "stacks_shared",
    "stacks_jit",
    "stacks_cpp",
    "stacks_fortran",
    "stacks_signal",
    "stacks_teams",
];

/// The programs whose tasks or loops are in states that tests know by their source; they finish when released.
pub const STATE_PROGRAMS: [&str; 6] = ["tasks_queued", "loops_state", "spinning", "barriers", "crowded", "lists"];

/// Removes what libomp keeps of a process below `/dev/shm`, and takes away at a normal end alone
/// (`__kmp_register_library_startup`). A later process of that id finds it, and may take it for that of another libomp.
pub fn remove_registration(pid: impl std::fmt::Display) {
    let user = nix::unistd::getuid();
    // Of other runtimes, and of programs that have ended well, there is none.
    let _ = std::fs::remove_file(format!("/dev/shm/__KMP_REGISTERED_LIB_{pid}_{user}"));
}

/// A variable of the environment that makes a skipped test fail.
pub const NO_SKIPS: &str = "OMPD_TEST_NO_SKIPS";

/// Why something cannot be tried on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    reason: String,
}

impl Skip {
    /// A skip for this reason, in words a reader of the test log understands.
    pub fn because(reason: impl Into<String>) -> Skip {
        Skip { reason: reason.into() }
    }

    /// Writes the reason to standard error. It goes there directly, so that it is seen for passing tests as well.
    ///
    /// # Panics
    /// Where [`NO_SKIPS`] is set: a script whose only purpose is what is skipped must not end well.
    pub fn show(&self) {
        assert!(std::env::var_os(NO_SKIPS).is_none(), "{self}, and {NO_SKIPS} is set");
        // Nothing useful can be done when standard error is closed.
        let _ = writeln!(std::io::stderr(), "{self}");
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.reason)
    }
}
