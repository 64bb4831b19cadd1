//! One consistent look at a libomp or libiomp5 instance while its process is stopped.
//!
//! Facts about the structures are in the LLVM sources `openmp/runtime/src/{kmp.h,kmp_runtime.cpp,kmp_tasking.cpp,
//! kmp_barrier.cpp,kmp_lock.h,kmp_lock.cpp,kmp_wait_release.h,kmp_gsupport.cpp}`; where a comment names a function, it
//! is found there.
//!
//! It is read in phases: threads, idle, teams, tasks, locks, loops, waits. Each is a module with a function `read`, which gets
//! what the phases before have found. [`Reach`] says how much they read.

use std::cell::RefCell;
use std::collections::HashMap;

use ompd_layout::Origin;
use ompd_process::{Addr, Environment, Target, TargetExt};

mod depends;
mod direct;
mod doacross;
mod focus;
mod groups;
mod icvs;
mod idle;
mod index;
mod leagues;
mod locks;
mod loops;
mod queues;
mod raw_threads;
mod settings;
mod task_reader;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

use self::focus::Reach;
pub(super) use self::index::{index, kept_state};
use self::task_reader::Tasks;
use super::Kmp;
use crate::bind::{Slot, StructData};
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR};
use crate::family;
use crate::instance::SelfCheck;
use crate::limits::{self, Budget};
use crate::model::*;

/// Kinds of barriers, numbered as in the arrays `th_bar` and `t_bar` (`enum barrier_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Barriers {
    Plain = 0,
    ForkJoin = 1,
    Reduction = 2,
}

/// All kinds of barriers.
const BARRIERS: [Barriers; 3] = [Barriers::Plain, Barriers::ForkJoin, Barriers::Reduction];

/// What every phase needs: where to read, and how much of it.
pub(super) struct Context<'a> {
    kmp: &'a Kmp,
    target: &'a dyn Target,
    reach: Reach,
    /// Variables of the environment that concern it.
    environment: Environment,
    /// Control variables that are lists, by the address of their struct, as far as they were asked for.
    lists: RefCell<HashMap<Addr, icvs::ItemList>>,
    /// Source positions by the address of their `ident_t`, likewise.
    lines: RefCell<HashMap<Addr, Fact<SourceLine>>>,
}

/// What the phases have to say of the read itself, and how much more they may read.
struct Notes {
    issues: Vec<Issue>,
    check: SelfCheck,
    budget: Budget,
    /// The same for what is read in bulk.
    bulk: Budget,
    /// Something was met that only a look at the whole process tells.
    short: bool,
}

impl Default for Notes {
    fn default() -> Notes {
        Notes {
            issues: Vec::new(),
            check: SelfCheck::default(),
            budget: Budget::default(),
            bulk: Budget::of(limits::BULK_STEPS),
            short: false,
        }
    }
}

impl Notes {
    fn issue(&mut self, subject: impl Into<String>, what: impl Into<Reason>) {
        self.issues.push(Issue::new(subject, what));
    }

    /// True if all that was wanted was read, and agrees with what has to be so.
    fn is_clean(&self) -> bool {
        !self.short && self.issues.is_empty() && self.check.failure().is_none()
    }
}

/// What was read, and how it agrees with what has to be so.
pub(super) fn snapshot(kmp: &Kmp, target: &dyn Target) -> (RawSnapshot, SelfCheck) {
    let context = Context::new(kmp, target);
    let mut notes = Notes::default();
    let threads = idle::read(&context, threads::read(&context, &mut notes));
    let teams = teams::read(&context, &threads, &mut notes);
    // Before the tasks: of these there may be more than there is time for.
    let locks = locks::read(&context, &threads, &mut notes);
    let tasks = tasks::read(&context, &threads, &teams, &mut notes);
    let loops = loops::read(&context, &teams, &mut notes);
    let raw_teams = teams.raw(&context, &threads);
    let waits = waits::read(&context, &threads, &teams, &tasks, locks, &mut notes);
    let raw_threads = raw_threads::tell(&context, &threads, &teams, &tasks, waits.of_threads);
    // Free threads serve whichever contention group asks first, so all are one pool.
    let settings = context.settings();
    let pool = Pool { threads: threads.list.iter().map(|t| t.lwp).collect() };
    let pools = if pool.threads.is_empty() { Vec::new() } else { vec![pool] };
    let Tasks { list: tasks, more: more_tasks, groups: taskgroups, .. } = tasks;
    let leagues = leagues::read(&context, &threads, &teams, &mut notes);
    let recorded = Recorded {
        on_host: Vec::new(),
        more_tasks,
        taskwait_runs_children_only: false,
        // `__kmpc_cancel_barrier` waits for all members, whatever was cancelled.
        barriers_may_be_cancelled: false,
        taskgroups,
        loops,
        leagues,
        pools,
        settings,
    };
    let Notes { issues, check, .. } = notes;
    let (instance, threads, teams, locks) = (kmp.info.clone(), raw_threads, raw_teams, waits.locks);
    (RawSnapshot { instance, threads, teams, tasks, locks, recorded, issues }, check)
}

/// See [`Runtime::excerpt`](crate::Runtime::excerpt).
pub(super) fn excerpt(kmp: &Kmp, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
    direct::excerpt(kmp, target, focus).or_else(|| focus::excerpt(kmp, target, focus))
}

impl<'a> Context<'a> {
    /// Reads all there is.
    pub(super) fn new(kmp: &'a Kmp, target: &'a dyn Target) -> Context<'a> {
        Context {
            kmp,
            target,
            reach: Reach::Process,
            environment: target.process().environment.only(&family::variable_prefixes()),
            lists: RefCell::default(),
            lines: RefCell::default(),
        }
    }

    /// True if the runtime is known to keep what OMPT tells tools, whether or not there is a tool.
    fn keeps_for_tools(&self) -> bool {
        self.kmp.is_debugged(self.target) == Some(true)
    }

    /// A field of a struct, unsigned. In a look at one thread it is read now if it was not read together with others.
    fn field(&self, view: &StructData, slot: &Slot) -> Result<u64, Reason> {
        view.uint(slot).or_else(|why| {
            if self.reach.is_whole() || why.is_layout() {
                return Err(why);
            }
            Ok(self.target.read_uint(view.addr_of(slot)?, slot.field()?.size)?)
        })
    }

    fn global(&self, name: &'static str) -> Result<Addr, Reason> {
        self.kmp.global(name).map(|(addr, _)| addr).ok_or(Reason::NoLayout(name))
    }

    /// `count` pointers of an array, from `first` on.
    fn read_pointers(&self, array: Addr, first: u64, count: u64) -> Result<Vec<Addr>, Reason> {
        let arch = self.target.arch();
        let width = u64::from(arch.pointer_bytes);
        let bytes = self.target.read_vec(array.offset(first.wrapping_mul(width)), count.saturating_mul(width))?;
        Ok(bytes.chunks_exact(usize::from(arch.pointer_bytes).max(1)).map(|b| Addr(arch.byte_order.uint(b))).collect())
    }

    /// Source position out of an `ident_t`; the text is `;file;function;line;end line;;`.
    fn line(&self, ident: Addr, origin: Origin) -> Fact<SourceLine> {
        if ident.is_null() {
            return Fact::unknown(Common::NoPosition);
        }
        if !self.reach.is_whole() {
            return Fact::unknown(NOT_LOOKED_FOR);
        }
        self.line_at(ident, origin)
    }

    /// The same whatever is looked at.
    fn line_at(&self, ident: Addr, origin: Origin) -> Fact<SourceLine> {
        let known = self.lines.borrow().get(&ident).cloned();
        if let Some(known) = known {
            return known;
        }
        let place = &self.kmp.structs.ident;
        let read = StructData::read(self.target, ident, place.size).and_then(|view| {
            let text = view.ptr(&place.psource)?;
            Ok(self.target.read_cstr(text, limits::STRING)?)
        });
        let fact = match read {
            Ok(text) => match parse_psource(&text) {
                Some(line) => Fact::known(line, origin),
                None => Fact::unknown(Common::NoPositionCompiled),
            },
            Err(why) => why.into(),
        };
        self.lines.borrow_mut().insert(ident, fact.clone());
        fact
    }

    fn line_in(&self, view: &StructData, slot: &Slot) -> Fact<SourceLine> {
        match (view.ptr(slot), slot.origin()) {
            (Ok(ident), Some(origin)) => self.line(ident, origin),
            (Ok(_), None) => Fact::unknown(Common::NotKnownOfThisRuntime),
            (Err(why), _) => why.into(),
        }
    }
}

/// `;file;function;line;end line;;`. Without -g, and from GCC, file and function are `unknown` and the line is 0.
fn parse_psource(text: &str) -> Option<SourceLine> {
    let mut parts = text.split(';');
    parts.next()?;
    let (file, function, line) = (parts.next()?, parts.next()?, parts.next()?);
    let line = line.parse().ok().filter(|line| *line > 0)?;
    Some(SourceLine { file: file.to_owned(), function: function.to_owned(), line })
}
