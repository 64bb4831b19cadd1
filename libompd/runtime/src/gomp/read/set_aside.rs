//! Threads that execute a target region on the host, because there is no device for it. `gomp_target_fallback` (target.c) keeps the
//! thread's `gomp_thread` on its stack, zeroes it, calls the region, and writes it back: the region has an OpenMP of its own.
//!
//! What the thread is to its team, others say: the team lists the semaphores of its members, and the pool its first thread. New threads
//! in the child of a fork may have the zeroed memory of a member. So the stack has to have the team and its pool: compilers do not keep
//! the parts side by side.

use std::cell::OnceCell;
use std::collections::HashMap;

use ompd_process::{Addr, Registers, TargetExt, Thread};

use super::Context;
use super::pools::{self, Pools};
use super::teams::Teams;
use super::threads::GompThread;
use crate::bind::StructData;
use crate::limits;

/// Bytes of a stack that are searched, and of all together.
const MOST: u64 = 8 << 20;
const MOST_OF_ALL: u64 = 64 << 20;
/// Bytes that are read at a time: the stack ends where they cannot be.
const AT_ONCE: u64 = 4096;

/// Adds such threads that are members of the teams found. Those that are in a region within the target region are members only.
pub(super) fn add(context: &Context<'_>, threads: &mut Vec<GompThread>, teams: &mut Teams, pools: &Pools) {
    let s = &context.gomp.structs;
    let Some(distance) = context.tls_offset().ok().filter(|_| context.reach.is_whole()) else { return };
    // Made when a member is missing: mostly none is.
    let (known, all) = (OnceCell::new(), OnceCell::new());
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
    let (mut added, mut beyond) = (Vec::new(), Vec::new());
    for (addr, team) in &teams.found {
        let Ok(size) = team.view.uint(&s.team.nthreads) else { continue };
        let Some([other, rest @ ..]) = members.get(addr).map(Vec::as_slice) else { continue };
        let Ok(pool) = other.pool.clone() else { continue };
        if rest.len() as u64 + 1 >= size {
            continue;
        }
        for (number, of) in (0u32..).zip(listed(context, team.view.clone(), size, pools.views.get(&pool))) {
            let Some(of) = of else { continue };
            let Some(os) = all().get(&of) else { continue };
            let mut on_stack = || on_stack(context, os.registers.as_ref().ok(), [*addr, pool], &mut budget);
            if let Some(known) = known().get(&of).map(|index| &threads[*index]) {
                // Its own region is as if there were none around it.
                if !is_within(context, teams, known, *addr) && on_stack() {
                    beyond.push((*addr, number, known.lwp));
                }
                continue;
            }
            let Ok(view) = StructData::read(context.target, of, s.thread.size) else { continue };
            if !view.all_zero() || !on_stack() {
                continue;
            }
            added.push(GompThread {
                lwp: os.lwp,
                addr: of,
                team: *addr,
                team_id: number,
                level: other.level,
                pool: Ok(pool),
                view,
                idle: false,
                unsettled: None,
                set_aside: true,
                registers: os.registers.clone(),
            });
        }
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

/// True if a thread's stack has all of these words.
fn on_stack(context: &Context<'_>, registers: Option<&Registers>, words: [Addr; 2], budget: &mut u64) -> bool {
    let arch = context.target.arch();
    let pointer = arch.machine.facts().and_then(|facts| registers?.get(facts.registers.stack_pointer));
    let Some(from) = pointer.map(|sp| sp.next_multiple_of(arch.pointer_bytes.into())) else { return false };
    let mut missing: Vec<u64> = words.iter().map(|word| word.0).collect();
    let mut searched = 0;
    while searched < MOST.min(*budget) && !missing.is_empty() {
        let Some(at) = from.checked_add(searched) else { break };
        // The first piece ends with a page, and so do the others.
        let length = AT_ONCE - at % AT_ONCE;
        let Ok(bytes) = context.target.read_vec(Addr(at), length) else { break };
        for word in bytes.chunks_exact(arch.pointer_bytes.into()) {
            let word = arch.byte_order.uint(word);
            missing.retain(|wanted| *wanted != word);
        }
        searched += length;
    }
    *budget = budget.saturating_sub(searched);
    missing.is_empty()
}
