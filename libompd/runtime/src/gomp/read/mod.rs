//! One consistent look at a libgomp instance while its process is stopped.
//!
//! Facts about the structures are in the GCC sources `libgomp/{libgomp.h,team.c,task.c,priority_queue.h}` and
//! `libgomp/config/linux/{bar.h,mutex.h,sem.h}`; where a comment names a function, it is found there.
//!
//! It is read in phases: threads, pools, teams, tasks, waits, loops. Each is a module with a function `read`, which gets what the
//! phases before have found. [`Reach`] says how much they read.

use std::cell::OnceCell;
use std::sync::Arc;

use ompd_process::machine::ThreadLocal;
use ompd_process::{Addr, Environment, Target, TargetExt};

mod doacross;
mod focus;
mod futex_meaning;
mod futexes;
mod icvs;
mod locks;
mod loops;
mod pools;
mod queues;
mod raw_threads;
mod reach;
mod set_aside;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;
mod threads;
mod waits;

pub(super) use self::focus::excerpt;
use self::reach::Reach;
use self::tasks::Tasks;
use self::threads::GompThread;
use super::{Distance, Gomp};
use crate::family;
use crate::gomp::reason::Own;
use crate::instance::SelfCheck;
use crate::limits;
use crate::model::*;

/// Why nothing is known that tools would have filed.
const NO_OMPT: Own = Own::NoOmpt;

/// What every phase needs: where to read, and how much of it.
pub(super) struct Context<'a> {
    gomp: &'a Gomp,
    target: &'a dyn Target,
    reach: Reach,
    /// Variables of the environment that concern it.
    environment: Environment,
    /// Control variables as the runtime began with them, and its table of places: read once, when first asked for.
    initial: OnceCell<Option<Icvs>>,
    place_table: OnceCell<Result<Vec<Arc<[u32]>>, Reason>>,
    /// `nthreads-var` and `bind-var` by level of nesting, likewise.
    lists: OnceCell<DeeperItems>,
}

/// What the phases have to say of the read itself.
#[derive(Default)]
struct Notes {
    issues: Vec<Issue>,
    check: SelfCheck,
}

impl Notes {
    fn issue(&mut self, subject: impl Into<String>, what: impl Into<Reason>) {
        self.issues.push(Issue::new(subject, what));
    }

    /// True if all was read and agrees with what has to be so.
    fn is_clean(&self) -> bool {
        self.issues.is_empty() && self.check.failure().is_none()
    }
}

/// What was read, and how it agrees with what has to be so.
pub(super) fn snapshot(gomp: &Gomp, target: &dyn Target) -> (RawSnapshot, SelfCheck) {
    let context = Context::new(gomp, target);
    let mut notes = Notes::default();
    let (mut threads, pools) = pools::read(&context, threads::read(&context, &mut notes), &mut notes);
    let mut teams = teams::found_from(&context, &threads, &mut notes);
    set_aside::add(&context, &mut threads, &mut teams, &pools);
    let (threads, teams) = teams::settle(&context, threads, teams, &mut notes);
    let tasks = tasks::read(&context, &threads, &teams, &mut notes);
    let waits = waits::read(&context, &threads, &pools, &teams, &tasks);
    let raw_teams = teams.raw(&context, &threads, &mut notes);
    let raw_threads = raw_threads::tell(&context, &threads, &teams, &tasks, waits.of_threads, &waits.at_work);
    let loops = loops::read(&context, &threads, &teams, (&raw_teams, &raw_threads), &mut notes);
    let taskgroups = tasks.taskgroups(&context);
    let settings = context.settings();
    let Tasks { list: tasks, more: more_tasks, .. } = tasks;
    // GOMP_taskwait looks at the queue of children, and at that of the team for what has a higher priority.
    let on_host = teams.beyond.iter().map(|(_, _, lwp)| *lwp).collect();
    let recorded = Recorded {
        on_host,
        more_tasks,
        taskwait_runs_children_only: true,
        // `GOMP_cancel` lets those go who sleep in `gomp_team_barrier_wait_cancel_end`.
        barriers_may_be_cancelled: context.may_be_cancelled(),
        taskgroups,
        loops,
        leagues: leagues(&context, &threads, &raw_threads),
        pools: pools.listed,
        settings,
    };
    let instance = gomp.info.clone();
    let Notes { issues, check } = notes;
    let (threads, teams, locks) = (raw_threads, raw_teams, waits.locks);
    (RawSnapshot { instance, threads, teams, tasks, locks, recorded, issues }, check)
}

/// Teams of leagues: `GOMP_teams_reg` executes them one after the other, on the thread that met the `teams` construct. A
/// league of one looks like none.
fn leagues(context: &Context<'_>, threads: &[GompThread], raw: &[RawThread]) -> Vec<LeagueTeam> {
    let s = &context.gomp.structs.thread;
    let initial = threads.iter().zip(raw).filter(|(_, raw)| raw.role.get() == Some(Role::Initial));
    let league = |(thread, _): (&GompThread, &RawThread)| {
        let others = thread.view.u32(&s.num_teams).ok().filter(|others| *others > 0)?;
        Some(LeagueTeam {
            lwp: thread.lwp,
            number: s.team_num.fact(thread.view.u32(&s.team_num)),
            size: s.num_teams.fact(Ok(others.saturating_add(1))),
        })
    };
    initial.filter_map(league).collect()
}

impl<'a> Context<'a> {
    /// Reads all there is.
    pub(super) fn new(gomp: &'a Gomp, target: &'a dyn Target) -> Context<'a> {
        Context {
            gomp,
            target,
            reach: Reach::Process,
            environment: target.process().environment.only(&family::variable_prefixes()),
            initial: OnceCell::new(),
            place_table: OnceCell::new(),
            lists: OnceCell::new(),
        }
    }

    /// Distance from the thread pointer to `gomp_thread`, modulo 2^64. For a program it is known. For a library the
    /// dynamic linker leaves it in a slot before any code of the library runs. Before that, the slot holds something
    /// else.
    fn tls_offset(&self) -> Result<u64, Reason> {
        /// Far more than all thread-local variables of a process together.
        const MAX: i64 = 64 << 20;
        let offset = match self.gomp.distance.clone()? {
            Distance::Of(offset) => offset,
            Distance::At(slot) => self.target.read_u64(slot)?,
        };
        let thread_local = self.target.arch().machine.facts().map(|facts| facts.thread_local);
        // Most machines have variant I.
        let sane = thread_local.unwrap_or(ThreadLocal::Above { control_block: 0 }).distances(MAX);
        if sane.contains(&(offset as i64)) { Ok(offset) } else { Err(Reason::from(Own::NotReady)) }
    }

    /// False if there is a thread whose OpenMP data cannot be found: it may be any that is not met otherwise.
    fn knows_all_threads(&self) -> bool {
        self.target.threads().iter().all(|t| t.thread_pointer().is_some())
    }

    /// An array of `count` pointers.
    fn pointers(&self, array: Addr, count: u64) -> Result<Vec<Addr>, Reason> {
        if count > limits::TEAM_SIZE {
            return Err(Reason::from(Own::ArrayTooLong { array, count }));
        }
        let arch = self.target.arch();
        let bytes = self.target.read_vec(array, count * u64::from(arch.pointer_bytes))?;
        Ok(bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| Addr(arch.byte_order.uint(c))).collect())
    }
}

/// Nothing where the layout lacks the value.
fn known<T>(value: Result<T, Reason>) -> Result<Option<T>, Reason> {
    match value {
        Ok(value) => Ok(Some(value)),
        Err(why) if why.is_layout() => Ok(None),
        Err(why) => Err(why),
    }
}
