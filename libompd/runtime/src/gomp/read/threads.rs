//! Threads: those of the process that have used libgomp.

use ompd_process::{Addr, Registers};

use super::{Context, Notes};
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::model::*;
use crate::owner::CodeOwner;

/// A `gomp_thread` that has been used.
#[derive(Clone)]
pub(super) struct GompThread {
    pub(super) lwp: i32,
    pub(super) addr: Addr,
    pub(super) view: StructData,
    pub(super) team: Addr,
    pub(super) team_id: u32,
    pub(super) level: u32,
    /// NULL before its first region; or why it is not known.
    pub(super) pool: Result<Addr, Reason>,
    /// It is in no team: `team` is that of its last region.
    pub(super) idle: bool,
    /// Why it cannot be said in which team it is, if any. Set, `idle` is set too: nothing of `team` may be used.
    pub(super) unsettled: Option<Reason>,
    pub(super) registers: Result<Registers, String>,
}

/// Every OS thread has a `gomp_thread` at a fixed offset from its thread pointer. It is all zero until the thread
/// first does something with OpenMP.
pub(super) fn read(context: &Context<'_>, notes: &mut Notes) -> Vec<GompThread> {
    let offset = match context.tls_offset() {
        Ok(offset) => offset,
        Err(why) => {
            notes.issue("threads", why);
            return Vec::new();
        }
    };
    let pointers = context.target.threads().iter().filter_map(|t| t.thread_pointer());
    StructData::prefetch(context.target, context.gomp.structs.thread.size, pointers.map(|tp| tp.offset(offset)));
    let mut threads = Vec::new();
    for thread in context.target.threads() {
        let Some(tp) = thread.thread_pointer() else {
            let why = thread.registers.as_ref().err().cloned().map_or(Own::NoThreadPointer.into(), Reason::NoRegisters);
            notes.issue(format!("thread {}", thread.lwp), why);
            continue;
        };
        match read_one(context, thread.lwp, thread.registers.clone(), tp.offset(offset)) {
            Ok(Some(raw)) => threads.push(raw),
            Ok(None) => {}
            Err(why) => notes.issue(format!("thread {}", thread.lwp), why),
        }
    }
    threads.sort_by_key(|t| t.lwp);
    threads
}

/// The `gomp_thread` at an address; nothing if the thread has not used it yet.
pub(super) fn read_one(
    context: &Context<'_>,
    lwp: i32,
    registers: Result<Registers, String>,
    addr: Addr,
) -> Result<Option<GompThread>, Reason> {
    let s = &context.gomp.structs.thread;
    let view = StructData::read(context.target, addr, s.size)?;
    // Setting a lock leaves nothing in it.
    let in_runtime = |registers: &Registers| matches!(context.executes(registers), Ok(CodeOwner::Runtime));
    if view.all_zero() && !registers.as_ref().is_ok_and(in_runtime) {
        return Ok(None);
    }
    Ok(Some(GompThread {
        lwp,
        addr,
        team: view.ptr(&s.team)?,
        team_id: view.u32(&s.team_id)?,
        level: view.u32(&s.level)?,
        pool: view.ptr(&s.thread_pool),
        view,
        idle: false,
        unsettled: None,
        registers,
    }))
}
