//! Leagues: the teams that a `teams` region makes on the host.

use std::collections::HashMap;

use ompd_process::{Addr, TargetExt};

use super::teams::Teams;
use super::threads::{Idle, KmpThread, Threads};
use super::{Context, Notes};
use crate::limits;
use crate::model::*;

/// The teams of leagues, by their initial threads. Only the thread that met the construct forgets the league at its end
/// (`__kmpc_fork_teams`): others are believed as long as that one is in it.
pub(super) fn read(context: &Context<'_>, threads: &Threads, teams: &Teams, notes: &mut Notes) -> Vec<LeagueTeam> {
    let s = &context.kmp.structs.info;
    let root = |thread: &KmpThread| thread.view.ptr(&s.root).ok();
    let microtask = |thread: &KmpThread| thread.view.ptr(&s.teams_microtask).ok().filter(|task| !task.is_null());
    let met: HashMap<Addr, Addr> = threads
        .list
        .iter()
        .filter(|thread| thread.uber == Some(true))
        .filter_map(|thread| Some((root(thread)?, microtask(thread)?)))
        .collect();
    let league = |thread: &KmpThread| {
        if !matches!(thread.idle, Idle::No) || microtask(thread)? != *met.get(&root(thread)?)? {
            return None;
        }
        let number = match number(context, teams, thread) {
            Ok(number) => number?,
            // Whether it is an initial thread is not known either.
            Err(why) => {
                if !why.is_layout() {
                    notes.issue(format!("league of thread {}", thread.lwp?), why);
                }
                return None;
            }
        };
        let size = s.nteams.fact(thread.view.count(&s.nteams));
        Some(LeagueTeam { lwp: thread.lwp?, number: s.teams_level.fact(Ok(number)), size })
    };
    threads.list.iter().filter_map(league).collect()
}

/// The number of the team of a league of which this is the initial thread; `None` if it is another member of that team. A
/// `teams` region does not count as a level, and a region in it executes on the team that is there (`__kmp_aux_get_team_info`).
fn number(context: &Context<'_>, teams: &Teams, thread: &KmpThread) -> Result<Option<u32>, Reason> {
    let s = &context.kmp.structs;
    let wanted = thread.view.int(&s.info.teams_level)?.saturating_add(1);
    let found = |at: &Addr| teams.found.get(at).ok_or(Reason::from(Common::TeamUnreadable));
    let mut team = found(&thread.team)?;
    let mut level = team.int(&s.team.level)?;
    for _ in 0..limits::TEAM_DEPTH {
        // A serialized team stands for as many levels as it has been serialized.
        let serialized = team.int(&s.team.serialized)?;
        let inner = level.saturating_sub(wanted).clamp(0, serialized.max(0));
        level = level.saturating_sub(inner);
        if level <= wanted && (serialized == 0 || inner < serialized) {
            let first = context.target.read_ptr(team.ptr(&s.team.threads)?)?;
            let number = if serialized - inner > 1 { 0 } else { team.count(&s.team.master_tid)? };
            return Ok((first == thread.view.addr()).then_some(number));
        }
        team = found(&team.ptr(&s.team.parent)?)?;
        level = if serialized > 0 { level } else { level.saturating_sub(1) };
    }
    Err(Reason::from(Common::EndlessTeams))
}
