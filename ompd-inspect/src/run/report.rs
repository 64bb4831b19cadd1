//! The report on a program that hangs, or whose time is over.

use ompd_inspection::Inspection;
use ompd_process::live::listing::ProcessEntry;
use ompd_report::text::View;

use crate::args::{FailOn, Options};
use crate::inspecting::Inspecting;
use crate::many::{Collected, Form, Target};
use crate::output::Failure;
use crate::redact;

/// Why there is a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A verdict says that the program hangs.
    Hang,
    /// Its time is over.
    Time,
}

/// A report.
#[derive(Debug)]
pub struct Reported {
    /// Why there is one.
    pub occasion: Occasion,
    /// For people.
    pub text: String,
    /// For programs.
    pub json: String,
}

/// Inspects the processes that are due, and if one of them hangs, the others of the family too. If the time is over all are
/// inspected. `None`: nothing hangs.
pub fn inspect(
    family: &[ProcessEntry],
    due: &[i32],
    occasion: Occasion,
    hangs: FailOn,
    inspecting: &Inspecting<'_>,
    options: &Options,
) -> Option<Reported> {
    let inspect = |process: &ProcessEntry| inspecting.inspect(&process.pid.to_string());
    let is_due = |process: &&ProcessEntry| due.contains(&process.pid);
    let mut outcomes: Vec<(i32, Result<Inspection, Failure>)> =
        family.iter().filter(is_due).map(|process| (process.pid, inspect(process))).collect();
    let has_hang = |inspection: &Inspection| inspection.worst().is_some_and(|worst| hangs.includes(worst));
    let hang = outcomes.iter().any(|(_, outcome)| outcome.as_ref().is_ok_and(has_hang));
    let occasion = match occasion {
        _ if hang => Occasion::Hang,
        Occasion::Time => Occasion::Time,
        Occasion::Hang => return None,
    };
    let is_single = family.len() == 1;
    let width = options.redact.then_some(redact::WIDTH);
    let form = |json| Form { view: View::Summary, json, width };
    let options = Options { children: true, ..options.clone() };
    let (mut text, mut json) = (Collected::new(&options, form(false)), Collected::new(&options, form(true)));
    for process in family {
        let done = outcomes.iter().position(|(pid, _)| *pid == process.pid).map(|at| outcomes.swap_remove(at).1);
        let outcome = done.unwrap_or_else(|| inspect(process));
        let is_first = family.first().is_some_and(|first| first.pid == process.pid);
        let target = Target { name: process.pid.to_string(), parent: (!is_first).then_some(process.parent) };
        text.add(&target, outcome.as_ref());
        json.add(&target, outcome.as_ref());
    }
    let shown = |collected: Collected<'_>| match collected.finish() {
        Ok(reports) => reports.shown,
        Err(failure) => format!("ompd-inspect: {failure}\n"),
    };
    let text = if is_single { text.sections() } else { shown(text) };
    Some(Reported { occasion, text, json: shown(json) })
}
