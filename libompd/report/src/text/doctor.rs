//! How each runtime was found and read: for the day a value is missing.

use std::collections::BTreeMap;

use anstyle::Style;
use ompd_runtime::Origin;
use ompd_runtime::model::*;

use super::{ALARM, HEADING, Page, runtime_heading};
use crate::escape::escape;
use crate::words;
use ompd_inspection::{Inspection, Leftovers, leftovers};

/// Column at which what a line says begins.
const INDENT: usize = 13;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        instance(page, snapshot);
    }
    super::python::render(page, inspection);
    tools(page, inspection);
    left(page, inspection);
}

/// Files of processes that were killed.
fn left(page: &mut Page, inspection: &Inspection) {
    let left = leftovers(inspection);
    if left.is_empty() {
        return;
    }
    page.blank();
    page.styled(HEADING, "Files of killed processes");
    for Leftovers { prefix, count } in left {
        let text = format!(
            "{} /dev/shm/{prefix}*: a later process with the id of one may refuse to start. Remove those whose process has ended",
            words::count(count, "file")
        );
        item(page, "", &text);
    }
}

/// OMPT tools, as far as there is any sign of one.
fn tools(page: &mut Page, inspection: &Inspection) {
    let told = |snapshot: &&RuntimeSnapshot| snapshot.threads.iter().any(|thread| thread.ompt_state.get().is_some());
    let active: Vec<&RuntimeSnapshot> = inspection.runtimes.iter().filter(told).collect();
    if inspection.tools.is_empty() && active.is_empty() {
        return;
    }
    page.blank();
    page.styled(HEADING, "OMPT tools");
    if inspection.tools.is_empty() {
        item(page, "", "no file besides the runtimes exports ompt_start_tool");
    }
    for tool in &inspection.tools {
        item(page, "", &format!("{} exports ompt_start_tool", escape(tool)));
    }
    for snapshot in active {
        let name = snapshot.instance.path.rsplit('/').next().unwrap_or_default();
        item(page, "", &format!("a tool is active in {}: the runtime keeps the states of its threads", escape(name)));
    }
}

/// One line of the list: what it is about, and what there is to say.
fn item(page: &mut Page, name: &str, text: &str) {
    page.wrapped(&format!("  {name:11}"), Style::new(), text, INDENT);
}

fn instance(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let instance = &snapshot.instance;
    item(page, "base", &instance.base.to_string());
    item(page, "build-id", &instance.build_id.as_ref().map_or_else(|| "none".to_owned(), |id| id.to_string()));
    // Through /proc it is the very file that is mapped.
    let elsewhere = instance.file.as_deref().filter(|file| *file != instance.path && !file.starts_with("/proc/"));
    if let Some(file) = elsewhere {
        item(page, "read from", &escape(file));
    }
    if let Some(needed_by) = &instance.needed_by {
        item(page, "needed by", &needed(needed_by));
    }
    item(page, "found", &found(snapshot));
    origins(page, instance);
    item(page, "in use", &in_use(instance));
    if instance.missing.is_empty() {
        item(page, "missing", "nothing");
    }
    for (n, lack) in instance.missing.iter().enumerate() {
        let name = if n == 0 { "missing" } else { "" };
        item(page, name, &format!("{}: {}", lack.names.join(", "), lack.cost));
    }
    if page.verbose {
        page.styled(HEADING, "  every value");
        for entry in &instance.layout {
            let place = format!("    {:44} {:8}", entry.name, entry.value);
            page.wrapped(&place, Style::new(), &format!("  {} {}", entry.origin, escape(&entry.detail)), 6);
        }
    }
    result(page, snapshot);
}

/// The chain of modules that brought the runtime in.
fn needed(by: &ompd_process::NeededBy) -> String {
    let chain: Vec<String> = by.chain.iter().map(|name| escape(name)).collect();
    let chain = chain.join(" → ");
    match (&by.doubt, by.loaded_at_start, by.chain.len()) {
        (Some(doubt), _, 1) => format!("not known: {}", escape(doubt)),
        (Some(doubt), _, _) => format!("perhaps {chain}: {}", escape(doubt)),
        (None, true, 1) => "nothing: it is part of the executable".to_owned(),
        (None, true, _) => format!("{chain} (loaded at start)"),
        (None, false, 1) => "no module: it was loaded by dlopen or LD_PRELOAD".to_owned(),
        (None, false, _) => format!("{chain} (the first by dlopen or LD_PRELOAD)"),
    }
}

fn found(snapshot: &RuntimeSnapshot) -> String {
    let mut parts = vec![
        words::count(snapshot.threads.len(), "thread"),
        words::count(snapshot.teams.len(), "team"),
        words::count(snapshot.tasks.len(), "task"),
    ];
    for pool in &snapshot.pools {
        let gone = pool.threads.iter().filter(|lwp| lwp.is_none()).count();
        let gone = if gone > 0 { format!(" ({gone} not in this process)") } else { String::new() };
        parts.push(format!("a pool of {}{gone}", pool.threads.len()));
    }
    parts.join(", ")
}

/// Every origin that was asked. Those that gave nothing share a line, unless each place is wanted.
fn origins(page: &mut Page, instance: &InstanceInfo) {
    let (mut name, verbose) = ("layout", page.verbose);
    for origin in instance.origins.iter().filter(|o| o.values > 0 || verbose) {
        let note = origin.note.as_deref().map(|n| format!(" ({})", escape(n))).unwrap_or_default();
        // Beyond the first column: the origin's word and the number of values.
        let text = format!("{:8} {:>3} values  {}{note}", origin.origin.word(), origin.values, escape(&origin.detail));
        page.wrapped(&format!("  {name:11}"), Style::new(), &text, INDENT + 9);
        name = "";
        if verbose {
            for line in &origin.details {
                page.wrapped("                      ", Style::new(), &escape(line), INDENT + 11);
            }
        }
    }
    let silent = |o: &&OriginReport| o.values == 0 && !verbose;
    let silent: Vec<String> = instance
        .origins
        .iter()
        .filter(silent)
        .map(|o| match &o.note {
            Some(note) => format!("{} ({})", o.origin.word(), escape(note)),
            None => o.origin.word().to_owned(),
        })
        .collect();
    if !silent.is_empty() {
        page.wrapped(&format!("  {name:11}"), Style::new(), &format!("nothing from {}", silent.join(", ")), INDENT);
    }
}

/// How many of the values in use each origin gave.
fn in_use(instance: &InstanceInfo) -> String {
    let mut counts: BTreeMap<Origin, usize> = BTreeMap::new();
    for entry in &instance.layout {
        *counts.entry(entry.origin).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(origin, n)| format!("{n} from {origin}")).collect();
    if counts.is_empty() { "no value".to_owned() } else { format!("{} (-v lists each)", counts.join(", ")) }
}

/// What it comes to.
fn result(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let instance = &snapshot.instance;
    let lacking: usize = instance.missing.iter().map(|lack| lack.names.len()).sum();
    let issues = instance.issues.len() + snapshot.issues.len();
    let lost = snapshot.threads.iter().filter(|t| t.team.get().is_none()).count();
    let (style, text) = match (lacking, issues) {
        (0, 0) if lost > 0 => {
            (ALARM, format!("its layout is known, but not the team of {}", words::count(lost, "thread")))
        }
        (0, 0) => (Style::new(), "everything of it can be read".to_owned()),
        (0, _) => (ALARM, "its layout is known, but not all could be read; see the issues below".to_owned()),
        _ => (ALARM, unknown_build(instance, lacking)),
    };
    page.wrapped("  result     ", style, &text, INDENT);
}

/// What somebody can do about a build of which not all is known.
fn unknown_build(instance: &InstanceInfo, lacking: usize) -> String {
    let lacking = words::count(lacking, "value");
    let lost = format!("{lacking} of its layout not known: what depends on them is shown as unknown");
    let has_file = instance.origins.iter().any(|o| o.origin == Origin::Code);
    let remedy = if has_file {
        "This build is none of those that are known. Its debug information would tell the rest: --debug-dir, --debuginfod"
    } else {
        "Its file is not at hand: say where it is with --lib-root"
    };
    format!("{lost}. {remedy}")
}
