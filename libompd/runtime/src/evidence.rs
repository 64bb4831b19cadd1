//! What others than a runtime's own memory say of a stop: stacks, symbol tables, an OMPT companion.
//!
//! Who gathers it is elsewhere (`ompd-stack`, [`companion`](crate::companion)); what it means for threads, teams, tasks and
//! locks is decided in [`merge`](crate::merge) alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use ompd_process::Addr;

use crate::companion::Remembered;
use crate::entry::Entry;
use crate::model::{SourceLine, TaskId, TeamId};

/// All evidence of one stop.
#[derive(Clone, Copy)]
pub struct Evidence<'e> {
    /// What stacks say, one for each runtime; empty where stacks were not looked at.
    pub stacks: &'e [StackEvidence],
    /// What a companion remembered.
    pub companion: Option<&'e Remembered>,
    /// The variables of the locks that threads wait for, as the code of their calls gives them, by LWP.
    pub awaited: &'e HashMap<i32, Addr>,
    /// Threads that are in no call of a runtime, as their whole stacks show.
    pub outside: &'e HashSet<i32>,
    /// Those of them that execute code of the program, and do not wait where they began.
    pub in_program: &'e HashSet<i32>,
    /// Names and lines of addresses; without them nothing is named.
    pub names: Option<&'e dyn Names>,
}

impl<'e> Evidence<'e> {
    /// Names alone: no stacks, no companion.
    pub fn of_names(names: &'e dyn Names) -> Evidence<'e> {
        static NOBODY: LazyLock<HashSet<i32>> = LazyLock::new(HashSet::new);
        static NOTHING: LazyLock<HashMap<i32, Addr>> = LazyLock::new(HashMap::new);
        let (outside, in_program) = (&*NOBODY, &*NOBODY);
        Evidence { stacks: &[], companion: None, awaited: &NOTHING, outside, in_program, names: Some(names) }
    }
}

impl std::fmt::Debug for Evidence<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evidence").field("stacks", &self.stacks.len()).finish_non_exhaustive()
    }
}

/// What stacks say of one runtime.
#[derive(Debug, Default)]
pub struct StackEvidence {
    /// Where the functions begin that are the body of a region. There is one entry for each member found that executes
    /// it. There is one more for the call that opened the region, if the program gives it the address of a function
    /// there.
    pub bodies: BTreeMap<TeamId, Vec<Addr>>,
    /// The calls that opened regions.
    pub forks: BTreeMap<TeamId, Fork>,
    /// Explicit tasks that lie on a stack.
    pub tasks: BTreeMap<TaskId, TaskOnStack>,
    /// What suspended tasks have called the runtime for: their thread executes something else in that call.
    pub task_calls: BTreeMap<TaskId, TaskCall>,
    /// Calls of the runtime that threads are in, by LWP.
    pub calls: HashMap<i32, RuntimeCall>,
    /// Threads (LWP) that execute a signal handler, and had code of this runtime on their stacks when the signal came.
    pub interrupted: HashSet<i32>,
    /// Lines at which the code of bodies begins, by where their functions begin.
    pub begins: HashMap<Addr, SourceLine>,
}

/// The call that opened a region.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// What was called, if it is a function that is known.
    pub entry: Option<Entry>,
    /// The line of the call, if the compiler gave it one.
    pub line: Option<SourceLine>,
}

/// A task on a stack.
#[derive(Debug, Clone, Copy)]
pub struct TaskOnStack {
    /// The thread.
    pub lwp: i32,
    /// Where its function begins.
    pub begins: Option<Addr>,
}

/// The call into the runtime that a suspended task is in.
#[derive(Debug, Clone)]
pub struct TaskCall {
    /// What was called.
    pub entry: Entry,
    /// The line of the call.
    pub line: Option<SourceLine>,
}

/// The innermost call of a thread into the runtime.
#[derive(Debug, Clone)]
pub struct RuntimeCall {
    /// What was called, if it is a function that is known and the stack names it.
    pub entry: Option<Entry>,
    /// The thread began in the runtime: nothing of the program called it.
    pub base: bool,
    /// The body of a region ended in a jump into the runtime, and has no frame any more.
    pub vanished: bool,
    /// The line of the program's call.
    pub line: Option<SourceLine>,
    /// The thread is in what the call that opened its region calls for the region's end.
    pub ends_region: bool,
    /// No explicit task made the call, and none has a frame further in: the body of a region called the runtime, or has ended.
    pub of_region: bool,
}

/// A named critical construct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Critical {
    /// The variable the compiler made for it.
    pub variable: Addr,
    /// Its name in the source.
    pub name: String,
}

/// What symbol tables and debug information say of addresses. Looking them up may take long: to be asked when the process
/// runs again.
pub trait Names {
    /// A function: `symbol`, `symbol+offset`, or `module+offset` where no symbol covers it.
    fn code(&self, addr: Addr) -> Option<String>;

    /// An object of the program: `symbol` or `symbol+offset`; nothing where no symbol covers it.
    fn object(&self, addr: Addr) -> Option<String>;

    /// As [`Names::object`], also for objects that no symbol covers: on stacks, in allocated memory. Looks into debug information, so
    /// it is asked for few. `waiter` is a thread (LWP) that waits for it.
    fn expression(&self, addr: Addr, waiter: Option<i32>) -> Option<String>;

    /// The lock variable with this content; see [`Expressions::lock_with`](crate::names::Expressions::lock_with).
    fn lock_with(&self, content: u32) -> Option<String>;

    /// The line of a call, by the address it returns to.
    fn line(&self, returns_to: Addr) -> Option<SourceLine>;

    /// The first 32 bits of a variable, as they are now.
    fn word(&self, addr: Addr) -> Option<u32>;

    /// Criticals by the address of their lock, of those locks that are `wanted`, where the variable is not the lock.
    fn criticals(&self, runtime: usize, wanted: &HashSet<Addr>) -> HashMap<Addr, Critical>;

    /// How a runtime names what it has.
    fn naming(&self, runtime: usize) -> Naming;
}

/// What names tell of a runtime's objects.
#[derive(Clone, Copy)]
pub struct Naming {
    /// The name of the critical construct that a compiler made a variable of this name for: the variable is the lock.
    pub critical_of: fn(&str) -> Option<&str>,
    /// Locks are known by the waits for them alone: what names a wait names its lock.
    pub locks_by_waits: bool,
    /// Storage that dependences name is shown by module and offset where no symbol covers it.
    pub dependences_by_module: bool,
}

impl Default for Naming {
    /// Names tell nothing.
    fn default() -> Naming {
        Naming { critical_of: |_| None, locks_by_waits: false, dependences_by_module: false }
    }
}

impl std::fmt::Debug for Naming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Naming").field("locks_by_waits", &self.locks_by_waits).finish_non_exhaustive()
    }
}
