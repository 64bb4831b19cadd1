//! Control variables: those of the process, then those of tasks, then where threads are to run. Threads whose tasks
//! have the same values share a block.

use anstyle::Style;
use ompd_runtime::icvs::{self, BIND, Entry};
use ompd_runtime::model::*;

use super::{HEADING, Page, TIE, runtime_heading};
use crate::crowding::{self, listed};
use crate::escape::escape;
use crate::words;
use ompd_inspection::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        of_process(page, snapshot);
        of_tasks(page, snapshot);
        placements(page, inspection, snapshot);
        for note in crowding::notes(&inspection.process, snapshot) {
            page.wrapped("  ", Style::new(), &note, 4);
        }
    }
}

/// One variable: name, value, how far it reaches, where it comes from.
type Row = (&'static str, String, Scope, String);

fn of_process(page: &mut Page, snapshot: &RuntimeSnapshot) {
    // What is neither known nor set is nothing to tell, unless asked for.
    let told = |s: &&Setting| page.verbose || s.value.value().is_some() || s.said.is_some();
    let from = |s: &Setting| match (&s.value, &s.said) {
        (Fact::Unknown { .. }, Some((variable, text))) => format!("{} is set", assignment(variable, text)),
        (Fact::Unknown { why }, None) => format!("unknown: {}", escape(&why.to_string())),
        _ => source(&s.source, page.verbose),
    };
    let rows: Vec<Row> = snapshot
        .settings
        .iter()
        .filter(told)
        .map(|s| (s.name, escape(&words::with_origin(&s.value, page.verbose)), s.scope, from(s)))
        .collect();
    if !rows.is_empty() {
        page.styled(HEADING, "the process");
        show(page, rows);
    }
}

fn of_tasks(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let mut groups: Vec<(Vec<Row>, Vec<&Thread>)> = Vec::new();
    for thread in snapshot.threads.iter().filter(|t| t.role.get() != Some(Role::IdleWorker)) {
        let rows = rows(&thread.icvs, page.verbose);
        match groups.iter_mut().find(|(known, _)| *known == rows) {
            Some((_, threads)) => threads.push(thread),
            None => groups.push((rows, vec![thread])),
        }
    }
    if groups.is_empty() {
        page.line("  no thread executes a task");
    }
    for (rows, threads) in groups {
        match page.is_narrow() {
            true => page.wrapped("", Style::new(), &who(&threads), 2),
            false => page.styled(HEADING, who(&threads)),
        }
        show(page, rows);
    }
}

fn show(page: &mut Page, rows: Vec<Row>) {
    /// Characters of a value beside which there is room for the rest.
    const BESIDE: usize = 24;
    let lengths = rows.iter().map(|(_, value, ..)| value.chars().count()).filter(|length| *length <= BESIDE);
    let width = lengths.max().unwrap_or(0).max(16);
    for (mut name, mut value, scope, source) in rows {
        if page.is_narrow() {
            let source = if source.is_empty() { String::new() } else { format!(", {source}") };
            page.wrapped(&format!("  {name}  "), Style::new(), &format!("{value}, {}{source}", scope.word()), 4);
            continue;
        }
        if value.chars().count() > width {
            page.wrapped(&format!("  {name:22}"), Style::new(), &format!(" {value}"), 4);
            (name, value) = ("", String::new());
        }
        let lead = format!("  {name:22} {value:width$} {:6}", scope.word());
        match source.is_empty() {
            true => page.line(lead.trim_end()),
            false => page.wrapped(&lead, Style::new(), &format!(" {source}"), 4),
        }
    }
}

/// Where a value comes from.
fn source(source: &Fact<Source>, verbose: bool) -> String {
    match source {
        Fact::Known { value: Source::Environment { variable, text }, .. } => assignment(variable, text),
        Fact::Known { value, .. } => value.word().to_owned(),
        Fact::Unknown { why } if verbose => format!("unknown: {}", escape(&why.to_string())),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}

/// `NAME=TEXT`, as a word that is not broken.
fn assignment(variable: &str, text: &str) -> String {
    /// Characters of a variable that are shown; JSON has all.
    const SHOWN: usize = 30;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{variable}={}", escape(&shown).replace(' ', &TIE.to_string()))
}

/// Where threads are to run, if their runtime binds them.
fn placements(page: &mut Page, inspection: &Inspection, snapshot: &RuntimeSnapshot) {
    let mut groups: Vec<(String, Vec<&Thread>)> = Vec::new();
    let cpus = inspection.process.cpus.as_ref();
    for thread in &snapshot.threads {
        let placement = &thread.placement;
        let Some(place) = placement.place.flat() else { continue };
        // libomp has a place with all processors then.
        if thread.icvs.bind(&BIND) == Some(ProcBind(0)) {
            continue;
        }
        let mut text = format!("place {place}");
        if let Some(own) = placement.cpus.value().and_then(Option::as_ref) {
            text.push_str(&format!(", {}", listed(own.iter().copied())));
        }
        if let Some(partition) = placement.partition.flat() {
            text.push_str(&format!(", of partition {partition}"));
        }
        if let Some(allowed) = thread.lwp.and_then(|lwp| cpus?.of_thread(lwp)) {
            text.push_str(&format!("; the kernel allows {}", listed(allowed.iter().copied())));
        }
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, threads)) => threads.push(thread),
            None => groups.push((text, vec![thread])),
        }
    }
    if groups.is_empty() {
        return;
    }
    page.styled(HEADING, "places");
    for (text, threads) in groups {
        page.wrapped("  ", Style::new(), &format!("{}: {text}", who(&threads)), 4);
    }
}

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

/// A control variable that is a list; where only the item is known that counts for the task itself,
/// that is said.
fn list(own: &Fact<IcvValue>, all: &Fact<Vec<IcvValue>>, verbose: bool) -> String {
    let joined = |items: &Vec<IcvValue>| items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match (own, all) {
        (Fact::Known { .. }, Fact::Known { value, origin }) => {
            words::with_origin(&Fact::known(joined(value), *origin), verbose)
        }
        (Fact::Known { .. }, Fact::Unknown { why }) if verbose => {
            format!("{}, further in unknown: {}", words::with_origin(own, verbose), escape(&why.to_string()))
        }
        (Fact::Known { value, .. }, Fact::Unknown { .. }) => format!("{value},?"),
        (Fact::Unknown { .. }, _) => words::with_origin(own, verbose),
    }
}

/// Those that can be set, then those that the nesting of regions makes, which come from nowhere
/// else.
fn rows(icvs: &Icvs, verbose: bool) -> Vec<Row> {
    let row = |entry: &'static Entry| {
        let value = match entry.is_list {
            true => list(icvs.get(entry), &icvs.list(entry), verbose),
            false => words::with_origin(icvs.get(entry), verbose),
        };
        let from = if entry.can_be_set() { source(icvs.sources.get(entry), verbose) } else { String::new() };
        (entry.name(), value, entry.scope, from)
    };
    let (set, made): (Vec<_>, Vec<_>) = icvs::of_tasks().map(|(_, entry)| entry).partition(|entry| entry.can_be_set());
    set.into_iter().chain(made).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompd_runtime::model::Common;

    #[test]
    fn every_control_variable_of_a_task_has_a_row() {
        let rows = rows(&Icvs::unknown(Common::NotLookedFor), false);
        for (_, entry) in icvs::of_tasks() {
            let row = rows.iter().find(|(name, ..)| *name == entry.name()).expect("a row");
            assert_eq!(
                (&*row.1, row.2.word(), row.3.is_empty()),
                ("?", "task", !entry.can_be_set()),
                "{}",
                entry.name()
            );
        }
    }
}
