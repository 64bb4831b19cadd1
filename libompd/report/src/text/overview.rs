//! What stands above the reports of several processes: the verdict on all of them, and a line for each.

use anstyle::Style;
use ompd_inspection::Inspection;
use ompd_runtime::waits_for::Certainty;

use super::{ALARM, FAINT, HEADING, How, Page};
use crate::escape::escape;

/// What a process is named by, and what was found.
#[derive(Debug)]
pub struct Entry {
    /// Process id, or path of a core file (text from outside).
    pub target: String,
    /// Its name, where it is known (text of the target).
    pub name: Option<String>,
    /// Process id of its parent, if it was found as a child.
    pub parent: Option<i32>,
    /// The result.
    pub finding: Finding,
}

/// What was found of a process, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Its most certain verdict.
    Verdict(Certainty),
    /// It has a runtime and no verdict.
    NoVerdict,
    /// No OpenMP runtime was found.
    NoRuntime,
    /// It was not inspected.
    Refused,
}

impl Finding {
    /// What was found in this inspection.
    pub fn of(inspection: &Inspection) -> Finding {
        match inspection.worst() {
            Some(certainty) => Finding::Verdict(certainty),
            None if inspection.runtimes.is_empty() => Finding::NoRuntime,
            None => Finding::NoVerdict,
        }
    }

    fn word(self) -> String {
        match self {
            Finding::Verdict(certainty) => certainty.word().to_uppercase(),
            Finding::NoVerdict => "no verdict".to_owned(),
            Finding::NoRuntime => "no OpenMP runtime".to_owned(),
            Finding::Refused => "not inspected".to_owned(),
        }
    }

    fn style(self) -> Style {
        match self {
            Finding::Verdict(Certainty::Waiting) => HEADING,
            Finding::Verdict(_) => ALARM,
            Finding::NoVerdict => Style::new(),
            Finding::NoRuntime | Finding::Refused => FAINT,
        }
    }
}

/// The processes by what was found of them, the worst first.
pub fn render(entries: &[Entry], how: How) -> String {
    let mut page = Page::empty(how.width);
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.finding);
    let count = entries.len();
    let total = format!("{count} process{}", if count == 1 { "" } else { "es" });
    match sorted.first().map(|entry| entry.finding) {
        Some(worst @ Finding::Verdict(_)) => {
            let with = entries.iter().filter(|entry| entry.finding == worst).count();
            page.styled(ALARM, format_args!("{total}: {} in {with}", worst.word()));
        }
        _ => page.styled(HEADING, format_args!("{total}: no verdict")),
    }
    let words: Vec<String> = sorted.iter().map(|entry| entry.finding.word()).collect();
    let longest = words.iter().map(String::len).max().unwrap_or(0);
    for (entry, word) in sorted.iter().zip(&words) {
        let name = entry.name.as_deref().map(|name| format!(" ({})", escape(name))).unwrap_or_default();
        let parent = entry.parent.map(|parent| format!(", child of {parent}")).unwrap_or_default();
        let lead = format!("  {word:longest$}  ");
        page.wrapped(&lead, entry.finding.style(), &format!("{}{name}{parent}", escape(&entry.target)), lead.len());
    }
    page.out
}

/// The name by which the overview calls an inspected process.
pub fn name(inspection: &Inspection) -> Option<String> {
    let process = &inspection.process;
    let path = process.exe.as_deref().or(process.command.as_deref())?;
    Some(path.rsplit('/').next().unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_first_and_names_are_escaped() {
        let entry = |target: &str, finding| Entry {
            target: target.to_owned(),
            name: Some("a\u{1b}[31m".to_owned()),
            parent: (target == "3").then_some(1),
            finding,
        };
        let entries = [
            entry("1", Finding::Refused),
            entry("2", Finding::NoVerdict),
            entry("3", Finding::Verdict(Certainty::Suspect)),
            entry("4", Finding::Verdict(Certainty::Deadlock)),
        ];
        let text = super::super::plain(&render(&entries, How::default()));
        let expected = "4 processes: DEADLOCK in 1\n  \
                        DEADLOCK       4 (a\\u{1b}[31m)\n  \
                        SUSPECT        3 (a\\u{1b}[31m), child of 1\n  \
                        no verdict     2 (a\\u{1b}[31m)\n  \
                        not inspected  1 (a\\u{1b}[31m)\n";
        assert_eq!(text, expected);
        let text = super::super::plain(&render(&entries[..1], How::default()));
        assert!(text.starts_with("1 process: no verdict\n"), "{text}");
    }
}
