//! How each runtime was found and read: for the day a value is missing.

use ompd_runtime::model::*;

use super::{HEADING, Page, runtime_heading, words};
use crate::escape::escape;
use crate::session::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        instance(page, snapshot);
    }
}

fn instance(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let instance = &snapshot.instance;
    let plain = anstyle::Style::new();
    page.line(format_args!("  base      {}", instance.base));
    page.line(format_args!(
        "  build-id  {}",
        instance.build_id.as_ref().map_or_else(|| "none".to_owned(), |id| id.to_string())
    ));
    page.line(format_args!(
        "  found     {}, {}, {}",
        words::count(snapshot.threads.len(), "thread"),
        words::count(snapshot.teams.len(), "team"),
        words::count(snapshot.tasks.len(), "task"),
    ));
    page.line("  layout, by origin");
    for origin in &instance.origins {
        let note = origin.note.as_deref().map(|n| format!(" ({})", escape(n))).unwrap_or_default();
        let text = format!("{:>4} values  {}{note}", origin.values, escape(&origin.detail));
        page.wrapped(&format!("    {:9} ", origin.origin.word()), plain, &text, 14);
        if page.verbose {
            for line in &origin.details {
                page.wrapped("              ", plain, &escape(line), 16);
            }
        }
    }
    if instance.missing.is_empty() {
        page.line("  missing   nothing");
    }
    for (n, lack) in instance.missing.iter().enumerate() {
        let lead = if n == 0 { "  missing   " } else { "            " };
        page.wrapped(lead, plain, &format!("{}: {}", lack.names.join(", "), lack.cost), 14);
    }
    if page.verbose {
        page.styled(HEADING, "  every value");
        for entry in &instance.layout {
            let place = format!("    {:44} {:8}", entry.name, entry.value);
            page.wrapped(&place, plain, &format!("  {} {}", entry.origin, escape(&entry.detail)), 6);
        }
    } else {
        let more = "-v lists every value with its origin, and the places looked at for debug information";
        page.wrapped("  ", plain, more, 2);
    }
}
