//! One runtime of one process: what can be asked of it, and how its layout is found.

mod asked;
mod costs;
pub(crate) mod origins;
pub(crate) mod resolve;
mod self_check;

use std::collections::{HashMap, HashSet};
use std::fmt;

use ompd_process::{Addr, NativeThread, Registers, Target};

use crate::entry::{Entry, Locking};
use crate::evidence::{Critical, Naming};
use crate::excerpt::{Excerpt, Focus, Known};
use crate::model::{Common, DeeperItems, Fact, IcvValue, Icvs, InstanceInfo, RawSnapshot, Setting};
use crate::stops::{AtStop, OwnCall, OwnSymbols, StopEvent, StopPoint, Stops, Values};

pub(crate) use origins::{Cost, FamilyOrigins};
pub use resolve::{Analysis, LayoutsFrom};
pub(crate) use resolve::{Basis, Others, Resolved, analyse, resolve};
pub(crate) use self_check::{SelfCheck, checked};

/// Why a family says nothing.
pub(crate) const NOT_READ: Common = Common::NotReadOfThisRuntime;

/// Why nothing is read on the word of a layout that memory has contradicted.
pub(crate) const NOT_SHOWN_TO_FIT: Common = Common::LayoutDoubtful;

/// One runtime of one process, ready to be read.
///
/// Making one reads only what never changes while the process runs (code, symbols, relocated slots), so it can be done
/// before the process is stopped; [`Runtime::snapshot`] is the part that needs the stop.
pub trait Runtime: fmt::Debug {
    /// Identity and layout.
    fn info(&self) -> &InstanceInfo;

    /// Reads the state of the runtime. Never fails as a whole: what could not be read is unknown, with an issue.
    fn snapshot(&self, target: &dyn Target) -> RawSnapshot;

    /// Reads a single thread, and as little as possible beside it. `None` where that does not show all that a whole
    /// snapshot would. `None` also where no snapshot has shown yet that the layout fits: then a snapshot has to be
    /// made.
    ///
    /// It has only what memory alone shows: of what a thread waits for, nothing is taken from registers.
    fn excerpt(&self, _target: &dyn Target, _focus: &Focus<'_>) -> Option<Excerpt> {
        None
    }

    /// Where the descriptors of threads are, with as few reads as that takes. It shows that what these reads need of the layout fits.
    /// `None` where only a snapshot tells.
    fn index(&self, _target: &dyn Target, _natives: &[NativeThread]) -> Option<Vec<Known>> {
        None
    }

    /// The state that the runtime itself keeps of a thread, where it is one that leaves nothing to derive. `None` for others, and
    /// where it is not certain that the thread still has this descriptor.
    fn kept_state(&self, _target: &dyn Target, _thread: Known, _alive: &dyn Fn(Known) -> bool) -> Option<u32> {
        None
    }

    /// All control variables of the process as a whole. `None` where no look has shown yet that the layout fits.
    fn settings(&self, _target: &dyn Target) -> Option<Vec<Setting>> {
        None
    }

    /// A control variable of the process as a whole, by the name it has in [`Recorded::settings`](crate::model::Recorded::settings), with as few reads as that
    /// takes. `None` if there is none of this name, or where no snapshot has shown yet that the layout fits.
    fn setting(&self, _target: &dyn Target, _name: &str) -> Option<Setting> {
        None
    }

    /// Settings of the process that this runtime alone has, by the variables of the environment that set them, as far as they can
    /// be read.
    fn own_settings(&self, _target: &dyn Target) -> Vec<(&'static str, IcvValue)> {
        Vec::new()
    }

    /// The control variables that a task has itself, also of one that no thread executes; those of its thread and team are unknown.
    /// `task` is the address of its descriptor, in a stop in which it was seen to be one.
    fn icvs_of_task(&self, _target: &dyn Target, _task: Addr) -> Icvs {
        Icvs::unknown(NOT_READ)
    }

    /// The items of control variables that are lists, for regions inside of a task's own. `team` is the address of the descriptor of
    /// the task's team, `None` outside of all regions; `level` is the task's level of nesting. An excerpt has none of them.
    fn deeper_items(&self, _target: &dyn Target, _team: Option<Addr>, _level: u32) -> DeeperItems {
        DeeperItems::unknown(NOT_READ)
    }

    /// True if the runtime implements OMPT, the interface for tools (OpenMP 5.2, chapter 19). Then tools may have filed data with
    /// threads, regions and tasks.
    fn has_tools(&self) -> bool {
        false
    }

    /// The version of OpenMP that the runtime says it implements: the value of `_OPENMP`.
    fn openmp_version(&self, _target: &dyn Target) -> Fact<u32> {
        Fact::unknown(NOT_READ)
    }

    /// How names tell apart what memory does not.
    fn naming(&self) -> Naming {
        Naming::default()
    }

    /// The variables of named criticals, by the address of their lock, where the variable is not the lock itself; of those
    /// locks that are `wanted`. Needs no stop.
    fn criticals(&self, _target: &dyn Target, _wanted: &HashSet<Addr>) -> HashMap<Addr, Critical> {
        HashMap::new()
    }

    /// True if the instruction at `addr` (an address of the target) belongs to the runtime. In a program that has the
    /// runtime built in, the symbols have to say so: false also where they leave it open.
    fn owns_code(&self, target: &dyn Target, addr: Addr) -> bool;

    /// What the code at `addr` does for a library that stands between program and runtime. `None` for other code.
    fn stands_between(&self, _target: &dyn Target, _addr: Addr) -> Option<Between> {
        None
    }

    /// What it means that the program calls the runtime's function `symbol`; `None` for functions that say nothing.
    fn entry(&self, _symbol: &str) -> Option<Entry> {
        None
    }

    /// True if a function of this name is one by which the runtime has a plugin drive a device.
    fn drives_device(&self, _symbol: &str) -> bool {
        false
    }

    /// False if a league of teams is never a level around the regions of its teams.
    fn leagues_are_levels(&self) -> bool {
        true
    }

    /// What the runtime's function `symbol` does with a lock; `None` if it does nothing with one that its caller names.
    fn lock_call(&self, _symbol: &str) -> Option<Locking> {
        None
    }

    /// True if a function of the program that the runtime calls is the body of a region, and not a task or anything else.
    /// `functions` are the names of the functions of the runtime's frames outward of it, innermost first, where they have
    /// any; `outermost` says that the first is the one the thread began with, C library apart.
    fn invokes_region(&self, _functions: &[Option<&str>], _outermost: bool) -> bool {
        false
    }

    /// Name of a function that ends a region and opens none. It and a function that opens regions call the same
    /// function: the runtime's own one for the end of a region. `None` where there is no such pair.
    fn ends_regions(&self) -> Option<&'static str> {
        None
    }

    /// Where a debugger can stop the process when something begins or ends. What is found once is kept. Reads no memory.
    fn stops(&self, _target: &dyn Target) -> &Stops {
        static NONE: Stops = Stops { points: Vec::new(), gaps: Vec::new() };
        &NONE
    }

    /// What holds of a thread that is at such a place (one of [`Runtime::stops`]), and what the snapshot lacks there, as the
    /// region that begins. `registers` are those of the thread.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_stop(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _point: &StopPoint,
        _registers: Values<'_>,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// Why a hit of one of these places does not count, by a look at its thread alone; `None` if it counts. The excerpt has the
    /// thread's current task.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn not_counted(
        &self,
        _target: &dyn Target,
        _excerpt: &Excerpt,
        _point: &StopPoint,
    ) -> Result<Option<String>, String> {
        Err(NOT_READ.to_string())
    }

    /// OMPD's own symbols, if the runtime has them and was not found to pass them by. A debugger may have stopped at
    /// one without having asked where it can stop.
    fn own_symbols(&self, _target: &dyn Target) -> Option<&OwnSymbols> {
        None
    }

    /// Name of the thread-local variable in which a thread has its number ([`RawThread::gtid`](crate::model::RawThread::gtid)), an
    /// `int`; `None` if the runtime has none that a debugger could find.
    fn number_variable(&self, _target: &dyn Target) -> Option<&'static str> {
        None
    }

    /// False if this thread of the runtime, whose record is there, is not at one of them: it waits.
    fn may_be_at_own_symbol(&self, _target: &dyn Target, _thread: Addr) -> bool {
        true
    }

    /// The calls of these symbols, by which a thread that is at one shows on its stack.
    ///
    /// # Errors
    /// The reason why they are not known.
    fn own_calls(&self, _target: &dyn Target) -> Result<&[OwnCall], String> {
        Ok(&[])
    }

    /// What holds of a thread that is at one of these symbols, with its registers.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_own_symbol(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _registers: &Registers,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// What holds of a thread that the companion has led to a stop point of OMPD.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_companions_stop(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _event: StopEvent,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// What would hold of a thread that such a call has led to one of these symbols.
    ///
    /// # Errors
    /// The reason why it would not be known.
    fn at_own_call(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _call: &OwnCall,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }
}

/// What code of a library between program and runtime does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// It forwards calls of the runtime, or the runtime calls it in place of a function of the program.
    Forwards,
    /// It calls a function of the program.
    CallsProgram,
}
