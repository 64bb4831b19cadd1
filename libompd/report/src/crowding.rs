//! How many threads share how many processors: what is wanted, what the kernel allows, and where threads are bound. These are
//! facts to look at, and no verdicts: whoever runs several threads on one processor may have a reason.

use std::collections::BTreeSet;

use ompd_process::ProcessInfo;
use ompd_runtime::family::families;
use ompd_runtime::icvs::NTHREADS;
use ompd_runtime::model::{RuntimeSnapshot, Thread};

use crate::words::{count, ranges};

/// At most so many sentences of a kind: the rest would say the same.
const MANY: usize = 8;

/// What is worth saying, in sentences.
pub fn notes(process: &ProcessInfo, snapshot: &RuntimeSnapshot) -> Vec<String> {
    let Some(cpus) = &process.cpus else { return Vec::new() };
    let mut notes = Vec::new();
    let wanted = snapshot.threads.iter().filter_map(|t| t.icvs.count(&NTHREADS)).max();
    let allowed = u64::from(cpus.allowed);
    let quota = cpus.quota.filter(|quota| *quota < f64::from(cpus.allowed));
    if let Some(wanted) = wanted.filter(|n| *n > allowed || quota.is_some_and(|quota| *n as f64 > quota)) {
        let mut text =
            format!("nthreads-var is {wanted}, but the process may run on {}", count(cpus.allowed as usize, "cpu"));
        if let Some(quota) = quota {
            text.push_str(&format!(", and its control group may use {quota:.1} of them"));
        }
        if let Some(spins) = spins(process) {
            text.push_str(&format!("; threads that wait are to spin ({spins})"));
        }
        notes.push(text);
    }
    notes.extend(pinned(process, snapshot));
    notes.extend(snapshot.threads.iter().filter_map(|thread| disagreement(process, thread)).take(MANY));
    notes
}

/// The variable that makes waiting threads spin, if one does.
pub fn spins(process: &ProcessInfo) -> Option<String> {
    let get = |name| process.environment.get(name).ok().flatten();
    if get("OMP_WAIT_POLICY").is_some_and(|policy| policy.trim().eq_ignore_ascii_case("active")) {
        return Some("OMP_WAIT_POLICY=active".to_owned());
    }
    let endless = |name, text: &str| {
        get(name).is_some_and(|own| own.trim().eq_ignore_ascii_case(text)).then(|| format!("{name}={text}"))
    };
    families().map(|about| about.variables.spins).find_map(|(name, text)| endless(name, text))
}

/// Teams whose members share fewer processors than they are, while the process may use more.
fn pinned(process: &ProcessInfo, snapshot: &RuntimeSnapshot) -> Vec<String> {
    let Some(cpus) = &process.cpus else { return Vec::new() };
    let mut found = Vec::new();
    for (id, team) in snapshot.teams.iter().enumerate() {
        let masks: Vec<&[u32]> = team.members.iter().filter_map(|lwp| cpus.of_thread((*lwp)?)).collect();
        // Of all members, or nothing can be said of their sum.
        if masks.len() < 2 || masks.len() != team.members.len() {
            continue;
        }
        let shared: BTreeSet<u32> = masks.iter().flat_map(|mask| mask.iter().copied()).collect();
        if shared.len() < masks.len() && shared.len() < cpus.allowed as usize && found.len() < MANY {
            found.push(format!("the {} threads of team {id} may all run on {} only", masks.len(), listed(shared)));
        }
    }
    found
}

/// A place that is not where the kernel lets the thread run.
fn disagreement(process: &ProcessInfo, thread: &Thread) -> Option<String> {
    let lwp = thread.lwp?;
    let allowed = process.cpus.as_ref()?.of_thread(lwp)?;
    let place = thread.placement.place.flat()?;
    let own = thread.placement.cpus.value()?.as_ref()?;
    if own.as_ref() == allowed {
        return None;
    }
    let own = listed(own.iter().copied());
    let allowed = listed(allowed.iter().copied());
    Some(format!("LWP {lwp} is bound to place {place}, {own}, but the kernel lets it run on {allowed}"))
}

/// `cpu 0`, `cpus 0-3,8`; the numbers have to be in order.
pub fn listed(cpus: impl IntoIterator<Item = u32>) -> String {
    let cpus: Vec<u32> = cpus.into_iter().collect();
    match cpus.as_slice() {
        [] => "no cpu".to_owned(),
        [one] => format!("cpu {one}"),
        _ => format!("cpus {}", ranges(&cpus)),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn processors_are_listed_as_ranges() {
        assert_eq!([listed([]), listed([0]), listed([0, 1, 2, 8])], ["no cpu", "cpu 0", "cpus 0-2,8"]);
    }
}
