//! Threads that execute a target region on the host. `gomp_target_fallback` (target.c) keeps the thread's `gomp_thread` on its stack,
//! zeroes it, calls the region, and writes it back: the region has an OpenMP of its own. With `nowait` a thread does so wherever it
//! executes tasks (`gomp_target_task_fn`).
//!
//! That such a thread is still a member of its team, others say: the team lists the semaphores of its members, and the pool its first
//! thread. What it is to inner teams, nobody says. A new thread in the child of a fork may have the zeroed memory and the old stack of a
//! member. So the stack has to have the team, its pool, and a return address in the function that calls target regions. That one has
//! no name in stripped builds: those for `nowait` call the same function as those that programs call.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ompd_layout::code::{self, TransferKind};
use ompd_process::{Addr, Registers, TargetExt, Thread};

use super::Context;
use super::pools::{self, Pools};
use super::teams::Teams;
use super::threads::GompThread;
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::limits;

/// What programs call for a target region.
const ENTRIES: [&str; 2] = ["GOMP_target_ext", "GOMP_target"];
/// Bytes of a stack that are searched, and of all together.
const MOST: u64 = 8 << 20;
const MOST_OF_ALL: u64 = 64 << 20;
/// Bytes that are read at a time: the stack ends where they cannot be.
const AT_ONCE: u64 = 4096;

/// Adds such threads, as far as the teams found list them. Those that are in a region within the target region are there already.
pub(super) fn add(context: &Context<'_>, threads: &mut Vec<GompThread>, teams: &mut Teams, pools: &Pools) {
    let s = &context.gomp.structs;
    let Some(distance) = context.tls_offset().ok().filter(|_| context.reach.is_whole()) else { return };
    // Made when a member is missing: mostly none is.
    let (known, all, code) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
    let known = || -> &HashMap<Addr, usize> {
        known.get_or_init(|| threads.iter().enumerate().map(|(index, thread)| (thread.addr, index)).collect())
    };
    let all = || -> &HashMap<Addr, &Thread> {
        let at = |os: &Thread| Some(os.thread_pointer()?.offset(distance));
        all.get_or_init(|| context.target.threads().iter().filter_map(|os| Some((at(os)?, os))).collect())
    };
    let mut budget = MOST_OF_ALL;
    let mut members: HashMap<Addr, Vec<&GompThread>> = HashMap::new();
    for thread in threads.iter().filter(|thread| !thread.idle) {
        members.entry(thread.team).or_default().push(thread);
    }
    let (mut added, mut aside, mut beyond, mut tried) = (Vec::new(), Vec::new(), Vec::new(), HashSet::new());
    for (addr, team) in &teams.found {
        let Ok(size) = team.view.uint(&s.team.nthreads) else { continue };
        let Some([other, rest @ ..]) = members.get(addr).map(Vec::as_slice) else { continue };
        let Ok(pool) = other.pool.clone() else { continue };
        if rest.len() as u64 + 1 >= size {
            continue;
        }
        for (number, of) in (0u32..).zip(listed(context, team.view.clone(), size, pools.views.get(&pool))) {
            let Some(os) = of.and_then(|of| all().get(&of)) else { continue };
            let inner = of.and_then(|of| known().get(&of)).map(|index| &threads[*index]);
            if inner.is_some_and(|inner| is_within(context, teams, inner, *addr)) || !tried.insert((*addr, os.lwp)) {
                continue;
            }
            let code: &Vec<Range<u64>> = code.get_or_init(|| callers_of_regions(context));
            let registers = os.registers.as_ref().ok();
            if budget == 0 || !has_on_stack(context, registers, [*addr, pool], code, &mut budget) {
                continue;
            }
            match inner {
                // The pool lists it, and so it looks idle.
                Some(inner) if inner.view.all_zero() => aside.push(inner.lwp),
                Some(_) => {}
                None => {
                    let Some(view) = of.and_then(|of| StructData::read(context.target, of, s.thread.size).ok()) else {
                        continue;
                    };
                    if !view.all_zero() {
                        continue;
                    }
                    added.push(GompThread {
                        lwp: os.lwp,
                        addr: of.unwrap_or(Addr::NULL),
                        team: Addr::NULL,
                        team_id: 0,
                        level: 0,
                        pool: Ok(pool),
                        view,
                        idle: true,
                        unsettled: Some(Own::SetAside.into()),
                        registers: os.registers.clone(),
                    });
                }
            }
            beyond.push((*addr, number, os.lwp));
        }
    }
    // One that is in several teams is one thread.
    added.sort_by_key(|thread| thread.lwp);
    added.dedup_by_key(|thread| thread.lwp);
    for thread in threads.iter_mut().filter(|thread| aside.contains(&thread.lwp)) {
        thread.unsettled = Some(Own::SetAside.into());
    }
    teams.beyond = beyond;
    threads.extend(added);
    threads.sort_by_key(|thread| thread.lwp);
}

/// True if a thread is in a team, or in one that is nested in it.
fn is_within(context: &Context<'_>, teams: &Teams, thread: &GompThread, wanted: Addr) -> bool {
    let mut team = thread.team;
    for _ in 0..limits::TEAM_DEPTH {
        if team == wanted {
            return true;
        }
        let outer = teams.found.get(&team).map(|team| team.view.ptr(&context.gomp.structs.team.prev_team));
        match outer {
            Some(Ok(outer)) => team = outer,
            _ => return false,
        }
    }
    // It is not known.
    true
}

/// Where the `gomp_thread` of each member is, by number, as far as that is known.
fn listed(context: &Context<'_>, team: StructData, size: u64, pool: Option<&StructData>) -> Vec<Option<Addr>> {
    let s = &context.gomp.structs;
    let Ok(release) = s.thread.release.offset() else { return Vec::new() };
    // Entry 0 is in the team itself.
    let array = team.ptr(&s.team.ordered_release).and_then(|array| context.pointers(array, size));
    let mut all: Vec<Option<Addr>> =
        array.unwrap_or_default().into_iter().map(|at| at.0.checked_sub(release).map(Addr)).collect();
    if let Some(first) = all.first_mut() {
        // Of a nested team the first thread is a member of another one as well.
        let outermost = team.ptr(&s.team.prev_team).is_ok_and(Addr::is_null);
        let entries = pool.filter(|_| outermost).and_then(|pool| pools::members(context, pool).ok());
        *first = entries.and_then(|entries| entries.first().copied());
    }
    all
}

/// Where the code is that calls target regions on the host: the functions that programs call, and those that these call.
fn callers_of_regions(context: &Context<'_>) -> Vec<Range<u64>> {
    let module = context.target.modules().iter().find(|module| module.base() == context.gomp.info.base);
    let Some((module, file)) = module.and_then(|module| Some((module, module.file.as_ref().ok()?))) else {
        return Vec::new();
    };
    let entries = ENTRIES.iter().filter_map(|name| {
        let symbol = file.symbol(name)?;
        Some(symbol.addr.0..symbol.addr.0.checked_add(symbol.size)?)
    });
    let mut found: Vec<Range<u64>> = entries.collect();
    for entry in found.clone() {
        let called = code::transfers(&**file, entry).unwrap_or_default().into_iter().filter_map(|transfer| {
            let TransferKind::Call(to) = transfer.kind else { return None };
            file.function_range(to).filter(|function| function.start == to)
        });
        found.extend(called);
    }
    let loaded = |range: Range<u64>| Some(module.bias.checked_add(range.start)?..module.bias.checked_add(range.end)?);
    found.into_iter().filter_map(loaded).collect()
}

/// True if a thread's stack has all of these words, and a return address in one of these ranges.
fn has_on_stack(
    context: &Context<'_>,
    registers: Option<&Registers>,
    words: [Addr; 2],
    ranges: &[Range<u64>],
    budget: &mut u64,
) -> bool {
    let arch = context.target.arch();
    let pointer = arch.machine.facts().and_then(|facts| registers?.get(facts.registers.stack_pointer));
    let Some(from) = pointer.and_then(|sp| sp.checked_next_multiple_of(arch.pointer_bytes.into())) else {
        return false;
    };
    let mut missing: Vec<u64> = words.iter().map(|word| word.0).collect();
    let (mut searched, mut returns) = (0, false);
    while searched < MOST && *budget > 0 && !(missing.is_empty() && returns) {
        *budget = budget.saturating_sub(AT_ONCE);
        let Some(at) = from.checked_add(searched) else { break };
        // The first piece ends with a page, and so do the others.
        let length = AT_ONCE - at % AT_ONCE;
        let Ok(bytes) = context.target.read_vec(Addr(at), length) else { break };
        for word in bytes.chunks_exact(arch.pointer_bytes.into()) {
            let word = arch.byte_order.uint(word);
            missing.retain(|wanted| *wanted != word);
            // It lies behind a call.
            returns |= ranges.iter().any(|range| range.start < word && word <= range.end);
        }
        searched += length;
    }
    missing.is_empty() && returns
}
