//! Control variables: threads with the same values share a block.

use ompd_runtime::model::*;

use super::{HEADING, Page, words};

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let mut groups: Vec<(Vec<String>, Vec<&Thread>)> = Vec::new();
    for thread in snapshot.threads.iter().filter(|t| t.role.get() != Some(Role::IdleWorker)) {
        let values = values(&thread.icvs, page.verbose);
        match groups.iter_mut().find(|(known, _)| *known == values) {
            Some((_, threads)) => threads.push(thread),
            None => groups.push((values, vec![thread])),
        }
    }
    if groups.is_empty() {
        page.line("  no thread executes a task");
    }
    for (values, threads) in groups {
        page.styled(HEADING, who(&threads));
        for (name, value) in NAMES.iter().zip(values) {
            page.line(format_args!("  {name:22} {value}"));
        }
    }
}

const NAMES: [&str; 8] = [
    "nthreads-var",
    "dyn-var",
    "run-sched-var",
    "max-active-levels-var",
    "thread-limit-var",
    "bind-var",
    "levels-var",
    "active-levels-var",
];

/// `team 1, threads 0-3 (LWP 4711 4712 4713 +1)`.
fn who(threads: &[&Thread]) -> String {
    const SHOWN: usize = 3;
    let mut lwps: Vec<String> = threads.iter().filter_map(|t| t.lwp).map(|lwp| lwp.to_string()).take(SHOWN).collect();
    if threads.len() > SHOWN {
        lwps.push(format!("+{}", threads.len() - SHOWN));
    }
    let lwps = if lwps.is_empty() { String::new() } else { format!(" (LWP {})", lwps.join(" ")) };
    let team = threads[0].team.get();
    let mut numbers: Vec<u32> = threads.iter().filter_map(|t| t.thread_num.get()).collect();
    numbers.sort_unstable();
    match team {
        Some(Some(id)) if threads.iter().all(|t| t.team.get() == team) => {
            let s = if threads.len() == 1 { "" } else { "s" };
            format!("team {}, thread{s} {}{lwps}", id.0, words::ranges(&numbers))
        }
        Some(None) if threads.iter().all(|t| t.team.get() == team) => format!("outside parallel regions{lwps}"),
        _ => format!("{}{lwps}", words::count(threads.len(), "thread")),
    }
}

fn values(icvs: &Icvs, verbose: bool) -> Vec<String> {
    let limit = icvs.thread_limit.clone().map(|limit| limit.map_or_else(|| "none".to_owned(), |n| n.to_string()));
    vec![
        words::with_origin(&icvs.nthreads, verbose),
        words::with_origin(&icvs.dynamic, verbose),
        words::with_origin(&icvs.schedule, verbose),
        words::with_origin(&icvs.max_active_levels, verbose),
        words::with_origin(&limit, verbose),
        words::with_origin(&icvs.bind, verbose),
        words::with_origin(&icvs.levels, verbose),
        words::with_origin(&icvs.active_levels, verbose),
    ]
}
