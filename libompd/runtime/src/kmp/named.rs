//! What holds when a thread is at one of OMPD's own symbols (`ompd_bp_parallel_begin` and its like), by the function that has
//! called it. Names are those of `openmp/runtime/src/{kmp_runtime,kmp_gsupport,kmp_wait_release,ompt-specific}.*`.

use std::collections::BTreeSet;

use ompd_process::{Addr, Machine, Registers, Target, TargetExt};

use super::Kmp;
use super::stops::around_serialized;
use crate::bind::StructData;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::Common;
use crate::model::Reason;
use crate::model::{Fact, RawSnapshot, RawTeam, TaskId, TeamId};
use crate::owner::CodeOwner;
use crate::stops::{AtStop, Lacking, StopEvent, Values, encountering};

/// The DWARF number of the register that leads to where a function just called will return to.
pub(crate) fn return_register(machine: Machine) -> Option<u16> {
    machine.facts().map(|facts| facts.registers.return_address())
}

/// The name of the function that has called the one whose first instruction is next.
fn caller(target: &dyn Target, registers: Values<'_>) -> Result<String, String> {
    let roles = target.arch().machine.facts().map(|facts| &facts.registers);
    let known = roles.and_then(|roles| Some((registers(roles.return_address())?, roles.link)));
    let (register, link) = known.ok_or("registers are not known")?;
    let returns = match link {
        None => target.read_ptr(Addr(register)).map_err(|fault| fault.to_string())?,
        Some(_) => Addr(register),
    };
    function_around(target, returns)
}

fn function_around(target: &dyn Target, returns: Addr) -> Result<String, String> {
    let found = target.module_at(returns).and_then(|module| module.symbol_at(returns));
    found.map(|(symbol, _)| symbol.name).ok_or_else(|| format!("the function around {returns} has no name"))
}

/// True for events at which memory shows what holds.
fn as_read(event: StopEvent) -> bool {
    matches!(event, StopEvent::ThreadBegin | StopEvent::ThreadEnd | StopEvent::TaskBegin)
}

impl Kmp {
    pub(super) fn hold_named(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        event: StopEvent,
        registers: Values<'_>,
    ) -> Result<AtStop, String> {
        if as_read(event) {
            return Ok(AtStop::default());
        }
        let caller = caller(target, registers)?;
        self.hold_called_by(&caller, target, snapshot, lwp, event)
    }

    /// What holds at one of these symbols with registers of which nobody has said that they are those of its first instruction.
    pub(super) fn hold_at(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        registers: &Registers,
    ) -> Result<AtStop, String> {
        let (event, entry) =
            self.own.get().and_then(|own| own.as_ref()?.at(registers.pc)).ok_or("it is at none of OMPD's symbols")?;
        if as_read(event) {
            return Ok(AtStop::default());
        }
        let roles = &target.arch().machine.facts().ok_or("registers of this machine are not decoded")?.registers;
        let width = u64::from(target.arch().pointer_bytes);
        let places = match roles.link {
            Some(link) => vec![registers.get(link).map(Addr)],
            // Debuggers stop behind what a function begins with, which may have stored a register.
            None => {
                let stored = if registers.pc == entry { 0 } else { 1 };
                (0..=stored).map(|words| target.read_ptr(registers.sp.offset(words * width)).ok()).collect()
            }
        };
        let called_in = |returns: &Addr| self.may_own(target, *returns);
        let returns = places.into_iter().flatten().find(called_in);
        let returns = returns.ok_or("the call that has led to the symbol is not in the runtime")?;
        self.hold_called_by(&function_around(target, returns)?, target, snapshot, lwp, event)
    }

    /// What holds at one of these symbols if this function has called it.
    pub(super) fn hold_called_by(
        &self,
        caller: &str,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        event: StopEvent,
    ) -> Result<AtStop, String> {
        if as_read(event) {
            return Ok(AtStop::default());
        }
        let not_counted = |why: &str| Ok(AtStop { not_counted: Some(why.to_owned()), ..AtStop::default() });
        // It is called once more when a function of GCC's interface is about to return.
        if caller.contains("GOMP_") {
            return not_counted("the runtime passes through here a second time for programs built by GCC");
        }
        match event {
            StopEvent::ParallelBegin if caller.contains("__kmp_fork_call") => self.newborn(target, snapshot, lwp),
            StopEvent::ParallelBegin if caller.contains("__ompt_lw_taskteam_link") => {
                Ok(AtStop { task: Some(around_serialized(snapshot, lwp)?), ..AtStop::default() })
            }
            StopEvent::ParallelEnd if caller.contains("__kmp_join_call") => {
                // The thread has its number in the enclosing team already, but not that team.
                let raw = self.raw(target, snapshot, lwp).map_err(|why| why.to_string())?;
                let region = snapshot.teams.iter().rposition(|team| team.descriptor == raw.team);
                let region = TeamId(region.ok_or("the team that ends was not read")?);
                Ok(AtStop { region: Some(region), task: Some(task_at(snapshot, raw.task)), ..AtStop::default() })
            }
            StopEvent::ParallelEnd => Ok(AtStop::default()),
            // `__kmp_task_finish` has run: the thread's task is the one that met the construct, and the memory of the other is free.
            StopEvent::TaskEnd if caller.contains("_if0") => {
                let gone = "the runtime has given back the memory of the task that ends";
                Ok(AtStop { task: Some(Err(gone.to_owned())), ..AtStop::default() })
            }
            StopEvent::TaskEnd if !caller.contains("__kmp_invoke_task") => {
                not_counted("the runtime passes through here as well when a thread stops to look for tasks")
            }
            StopEvent::TaskEnd => Ok(AtStop::default()),
            _ => Err(format!("what {caller} does there is not known")),
        }
    }

    /// What holds at a stop point that the companion calls. For a region it does so at the begin and end of the
    /// implicit task of thread 0, while the region is the thread's. Otherwise it does so where memory shows what holds.
    pub(super) fn hold_at_companions(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        event: StopEvent,
    ) -> Result<AtStop, String> {
        if !matches!(event, StopEvent::ParallelBegin | StopEvent::ParallelEnd) {
            return Ok(AtStop::default());
        }
        let raw = self.raw(target, snapshot, lwp).map_err(|why| why.to_string())?;
        let region = snapshot.teams.iter().rposition(|team| team.descriptor == raw.team);
        let region = TeamId(region.ok_or("the team was not read")?);
        let serialized = snapshot.team(region).and_then(|team| team.serialized.get());
        if serialized.ok_or("whether the team is serialized is not known")? {
            return Ok(AtStop { task: Some(around_serialized(snapshot, lwp)?), ..AtStop::default() });
        }
        let task = self.parent_of_implicit(target, raw.team, raw.task)?;
        Ok(AtStop { region: Some(region), task: Some(task_at(snapshot, task)), ..AtStop::default() })
    }

    /// The task that met the construct of a region, by the implicit task of the region's thread 0. Where the region ends, the thread is
    /// on its way out of it, and that task is not in the snapshot.
    fn parent_of_implicit(&self, target: &dyn Target, team: Addr, implicit: Addr) -> Result<Addr, String> {
        let s = &self.structs.taskdata;
        let read = || -> Result<(Addr, Addr), Reason> {
            let view = StructData::read(target, implicit, s.size)?;
            Ok((view.ptr(&s.team)?, view.ptr(&s.parent)?))
        };
        let (own, parent) = read().map_err(|why| why.to_string())?;
        if own == team { Ok(parent) } else { Err("the thread's task is none of the team's".to_owned()) }
    }

    fn raw(&self, target: &dyn Target, snapshot: &RawSnapshot, lwp: i32) -> Result<Raw, Reason> {
        let unknown = || Reason::from(Own::ThreadUnknown);
        let thread = snapshot.thread_by_lwp(lwp).ok_or_else(unknown)?;
        let s = &self.structs.info;
        let view = StructData::read(target, thread.descriptor, s.size)?;
        let (team, task, ident) = (view.ptr(&s.team)?, view.ptr(&s.current_task)?, view.ptr(&s.ident)?);
        Ok(Raw { thread: thread.descriptor, team, task, ident })
    }

    /// The team that `__kmp_fork_call` has just set up, and the task that met the construct.
    ///
    /// It is found as the team of the threads that were got for it, if there are any yet. It has the source position of
    /// the construct, which the thread has as well and the thread's team does not. A team of new threads cannot be
    /// distinguished from the region around it, nor can a team that is the thread's already. Neither can teams of
    /// programs built by GCC, which hands over no position.
    fn newborn(&self, target: &dyn Target, snapshot: &RawSnapshot, lwp: i32) -> Result<AtStop, String> {
        let raw = self.raw(target, snapshot, lwp).map_err(|why| why.to_string())?;
        let s = &self.structs;
        let mut found: Vec<StructData> = Vec::new();
        let mut teams = BTreeSet::new();
        for thread in snapshot.threads.iter().filter(|thread| thread.descriptor != raw.thread) {
            let team = StructData::read(target, thread.descriptor, s.info.size).and_then(|view| view.ptr(&s.info.team));
            teams.extend(team.ok().filter(|team| !team.is_null() && *team != raw.team));
        }
        let own = StructData::read(target, raw.team, s.team.size).and_then(|view| view.ptr(&s.team.ident));
        if own.map_err(|why| why.to_string())? == raw.ident {
            return Err("the team that begins cannot be told from that of the region around it".to_owned());
        }
        for team in teams {
            let read = || -> Result<Option<StructData>, Reason> {
                let view = StructData::read(target, team, s.team.size)?;
                let first = target.read_ptr(view.ptr(&s.team.threads)?)?;
                let inside = view.ptr(&s.team.parent)? == raw.team && first == raw.thread;
                let fits = inside && view.ptr(&s.team.ident)? == raw.ident && view.count(&s.team.serialized)? == 0;
                Ok(fits.then_some(view))
            };
            found.extend(read().map_err(|why| why.to_string())?);
        }
        let view = match found.as_slice() {
            [view] => view.clone(),
            [] => return Err("the team that begins has no threads yet by which it could be found".to_owned()),
            _ => return Err("several teams may be the one that begins".to_owned()),
        };
        let team = view.addr();
        let task = self.encountering(target, snapshot, team, raw.task);
        if let Some(known) = snapshot.teams.iter().rposition(|known| known.descriptor == team) {
            return Ok(AtStop { region: Some(TeamId(known)), task: Some(task), ..AtStop::default() });
        }
        let thread = snapshot.thread_by_lwp(lwp).ok_or("the runtime does not know the thread")?;
        let (slots, parent) = (&s.team, thread.team.clone());
        let size = view.count(&slots.nproc);
        let count = size.as_ref().copied().unwrap_or(0).min(u32::try_from(limits::TEAM_SIZE).unwrap_or(u32::MAX));
        let mut members = vec![None; count as usize];
        if let Some(first) = members.first_mut() {
            *first = Some(lwp);
        }
        let function = match view.ptr(&slots.pkfn) {
            Ok(function) if self.own_code.owner(target, function) == CodeOwner::Other => slots.pkfn.fact(Ok(function)),
            Ok(_) => Fact::unknown(Own::FunctionNotYet),
            Err(why) => why.into(),
        };
        let team = RawTeam {
            descriptor: team,
            size: slots.nproc.fact(size),
            level: slots.level.fact(view.count(&slots.level)),
            active_level: slots.active_level.fact(view.count(&slots.active_level)),
            parent,
            primary_num: slots.master_tid.fact(view.count(&slots.master_tid)),
            serialized: slots.serialized.fact(Ok(false)),
            function,
            location: Fact::unknown(Common::RegionNotBegun),
            members,
            barrier: Fact::unknown(Common::RegionNotBegun),
            tool_data: Fact::unknown(Common::RegionNotBegun),
        };
        let (region, lacking) = (TeamId(snapshot.teams.len()), vec![Lacking::Team(Box::new(team))]);
        Ok(AtStop { region: Some(region), task: Some(task), lacking, not_counted: None })
    }

    /// The current task, unless it is the implicit one of the new team already.
    fn encountering(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        team: Addr,
        current: Addr,
    ) -> Result<TaskId, String> {
        let s = &self.structs.taskdata;
        let view = StructData::read(target, current, s.size).map_err(|why| why.to_string())?;
        let own = view.ptr(&s.team).map_err(|why| why.to_string())?;
        let current = task_at(snapshot, current)?;
        if own == team { encountering(snapshot, current) } else { Ok(current) }
    }
}

/// What the runtime keeps of a thread.
struct Raw {
    thread: Addr,
    team: Addr,
    task: Addr,
    ident: Addr,
}

fn task_at(snapshot: &RawSnapshot, addr: Addr) -> Result<TaskId, String> {
    let found = snapshot.tasks.iter().position(|task| task.descriptor == addr);
    found.map(TaskId).ok_or_else(|| "the thread's task was not read".to_owned())
}
