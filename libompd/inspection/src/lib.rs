//! One inspection of a process or core file: opened, stopped, read, looked at again until it is certain, and what it means.
//!
//! [`inspect`] does it all for a process id or a core file, [`inspect_held`] for what a debugger holds. [`Inspection`] is the
//! result: what consumers show in words, tables or documents. [`history`] reads what an OMPT companion has recorded.
//! Nothing here renders.

#![forbid(unsafe_code)]

pub mod grounds;
pub mod history;
mod leftovers;
mod look;
mod open;
pub mod outside;
pub mod progress;
pub mod rank;
mod turns;
mod watch;
mod watched;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ompd_process::core::Core;
use ompd_process::live::listing::ProcessEntry;
use ompd_process::{OpenError, OpenOptions, ProcessInfo, Target, TargetKind};
use ompd_runtime::model::{Issue, RuntimeSnapshot};
use ompd_runtime::os;
use ompd_runtime::waits_for::{Certainty, WaitsFor};
use ompd_runtime::{LayoutsFrom, Runtime, discover_by};
use ompd_stack::{Cache, FrameVariables, LockCall, Stacks};

use crate::outside::Outside;
use crate::progress::Progress;

pub use leftovers::{Leftovers, leftovers};
pub use look::{is_in_program, is_outside};
pub use open::{nameless, open};
pub use turns::Turns;
pub use watched::Watched;

/// A thread of the operating system.
#[derive(Debug, Clone)]
pub struct ProcessThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// Its name, where recorded (text of the target).
    pub name: Option<String>,
    /// Name of the system call it was blocked in.
    pub blocked_in: Option<String>,
    /// The signal that ended the process, if this thread received it.
    pub signal: Option<i32>,
    /// True if no runtime of the process knows it.
    pub foreign: bool,
}

/// Everything found.
#[derive(Debug)]
pub struct Inspection {
    /// Live process or core file.
    pub kind: TargetKind,
    /// The process.
    pub process: ProcessInfo,
    /// Its child processes that live (live processes, if verdicts were wanted).
    pub children: Vec<ProcessEntry>,
    /// Every thread, in LWP order.
    pub threads: Vec<ProcessThread>,
    /// Every OpenMP runtime.
    pub runtimes: Vec<RuntimeSnapshot>,
    /// What the kernel kept each thread waiting for, and what may reach into the process from outside.
    pub os: os::OsState,
    /// What each thread does that executes no wait of a runtime, in LWP order.
    pub outside: Vec<Outside>,
    /// What waits for what, and the verdicts.
    pub waits_for: WaitsFor,
    /// Every thread's stack.
    pub stacks: ompd_stack::Report,
    /// Calls on the stacks that acquire locks, if some thread waits for one.
    pub lock_calls: Vec<LockCall>,
    /// The variables of the frames of each of `stacks.logical`, if they were asked for.
    pub locals: Option<Vec<Vec<Arc<FrameVariables>>>>,
    /// Mapped files that could not be looked at (text of the target).
    pub unopened: Vec<String>,
    /// A static program without any symbols is among the mapped files: nobody can tell what is built into it.
    pub nameless: bool,
    /// It is a core that shows no file that was mapped.
    pub unlisted: bool,
    /// Files that can start an OMPT tool, other than the runtimes (text of the target).
    pub tools: Vec<String>,
    /// Its MPI library, if it has loaded one.
    pub mpi: Option<rank::MpiLibrary>,
    /// Trouble with the target as a whole.
    pub issues: Vec<Issue>,
    /// How long a live process was held, all stops of this look together.
    pub pause: Option<Duration>,
    /// When a live process was stopped for this look, or the look began that needed no stop, by the clock of its host.
    pub stopped_at: Option<SystemTime>,
    /// How many those were. None were needed if all threads slept while they were read.
    pub stops: u32,
    /// How many threads were stopped for what is shown, if the others were left asleep.
    pub stopped_threads: Option<usize>,
    /// There was too much to read for the last pause. It was read after that, while all threads slept where the pause had met them.
    pub read_asleep: bool,
    /// Processor time each thread of a live process had used by then, by LWP.
    pub cpu: HashMap<i32, Duration>,
    /// What has changed since the first look, if there was more than one.
    pub progress: Option<Progress>,
    /// How long nothing of a suspected hang was seen to move.
    pub unmoved: Option<Duration>,
}

impl Inspection {
    /// All issues: of the target, of layouts, of walks.
    pub fn all_issues(&self) -> impl Iterator<Item = &Issue> {
        let runtimes = self.runtimes.iter().flat_map(|r| r.instance.issues.iter().chain(&r.issues));
        self.issues.iter().chain(runtimes)
    }

    /// What a thread does outside of OpenMP; `None` if it waits in a runtime, or there is no such thread.
    pub fn outside(&self, lwp: i32) -> Option<&Outside> {
        let at = self.outside.binary_search_by_key(&lwp, |outside| outside.lwp).ok()?;
        self.outside.get(at)
    }

    /// The most certain of its verdicts.
    pub fn worst(&self) -> Option<Certainty> {
        self.waits_for.all().map(|verdict| verdict.certainty).min()
    }

    /// True if a runtime was found and nothing went wrong.
    pub fn complete(&self) -> bool {
        !self.runtimes.is_empty() && self.all_issues().next().is_none()
    }
}

/// How much is found out about hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdicts {
    /// Nothing: there will be no verdict, and nobody looks for what may end a hang.
    None,
    /// What one look shows. The caller compares several looks.
    OfEachLook,
    /// What several looks agree on, with names for whatever is part of it.
    Confirmed,
}

/// What to read, and how.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What the layouts of runtimes are made from.
    pub layouts: LayoutsFrom<'a>,
    /// The variables of the program, which nothing else of an inspection shows.
    pub locals: bool,
    /// Whether it hangs.
    pub verdicts: Verdicts,
    /// How often to look at a live process.
    pub samples: u32,
    /// Time between two looks.
    pub interval: Duration,
    /// Turns that looks at a live process take, if other processes are looked at meanwhile.
    pub turns: Option<&'a Turns>,
}

impl<'a> Wanted<'a> {
    /// All that a report shows of a target that stands still, but for variables.
    pub fn of_held(layouts: LayoutsFrom<'a>) -> Wanted<'a> {
        Wanted {
            layouts,
            locals: false,
            verdicts: Verdicts::Confirmed,
            samples: 1,
            interval: Duration::ZERO,
            turns: None,
        }
    }
}

/// Opens and reads the target: a number is a process, anything else a core file.
///
/// # Errors
/// The target could not be opened or stopped at all.
pub fn inspect(target: &str, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    match open::process_id(target) {
        Some(pid) => Ok(waiting(watch::inspect_live(pid?, options, wanted)?, wanted)),
        None => inspect_core(&Core::open(Path::new(target), options)?, wanted),
    }
}

/// Adds what threads wait for that are no part of a hang.
fn waiting(mut inspection: Inspection, wanted: Wanted<'_>) -> Inspection {
    if wanted.verdicts == Verdicts::Confirmed {
        inspection.waits_for.find_waiting(&inspection.runtimes, &inspection.os);
    }
    inspection
}

/// Reads a core file that is open.
///
/// # Errors
/// More than one look was asked for.
pub fn inspect_core(core: &Core, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    if wanted.samples > 1 {
        return Err(OpenError::Unchanging);
    }
    let runtimes = discover_by(core, wanted.layouts);
    Ok(inspect_held(core, &runtimes, wanted, &Cache::default()))
}

/// Reads a target that stands still by itself: a core, or what a debugger holds. The origins that `wanted` leaves out count for
/// nothing here, as the runtimes are there already.
pub fn inspect_held(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let read = look::read(target, runtimes, &look::Places::of(target), Stacks::capture(target));
    waiting(look::finish(target, runtimes, read, wanted, cache), wanted)
}
