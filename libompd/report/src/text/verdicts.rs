//! The answer, and the verdicts.

use anstyle::Style;
use ompd_runtime::waits_for::{Certainty, Verdict};

use super::{ALARM, HEADING, Page};
use crate::answer::{self, Answer};
use crate::tell::{self, VerdictText};
use ompd_inspection::Inspection;

/// Verdicts that the summary shows in full: `waits` shows all.
const SHOWN: usize = 3;
/// Inferences that are shown before the rest is counted.
const INFERRED: usize = 3;
/// Columns of the words that begin the lines of an answer.
const LEAD: usize = 10;

/// The first lines: why nothing moves, or what moves; then what it rests on.
pub fn render(page: &mut Page, inspection: &Inspection, all: bool) {
    if let Some(state) = answer::state_of_process(inspection) {
        first(page, &state);
        page.blank();
    }
    let verdicts: Vec<&Verdict> = answer::verdicts(inspection).collect();
    if verdicts.is_empty() {
        if let Some(answer) = answer::answer(inspection).filter(|_| answer::state_of_process(inspection).is_none()) {
            first(page, &answer);
            page.blank();
        }
        return;
    }
    let shown = if all { verdicts.len() } else { SHOWN };
    for verdict in verdicts.iter().take(shown) {
        block(page, verdict, &tell::tell(inspection, verdict));
        page.blank();
    }
    if verdicts.len() > shown {
        page.line(format_args!("{} more verdicts: `waits` shows all", verdicts.len() - shown));
        page.blank();
    }
}

/// An answer, each of its sentences on a line of its own.
fn first(page: &mut Page, answer: &Answer) {
    let style = match answer.word {
        "DEADLOCK" | "SUSPECT" | "STOPPED" | "CRASHED" => ALARM,
        _ => HEADING,
    };
    lead(page, answer.word, style, &answer.text);
    if let Some(cause) = &answer.cause {
        lead(page, "  Cause", Style::new(), cause);
    }
    if let Some(fix) = &answer.fix {
        lead(page, "  Fix", Style::new(), fix);
    }
}

fn lead(page: &mut Page, word: &str, style: Style, text: &str) {
    page.wrapped(&format!("{word:LEAD$}"), style, text, LEAD);
}

/// One verdict: what it is, which threads are the cause, what to do, the facts it rests on, and what is inferred.
pub fn block(page: &mut Page, verdict: &Verdict, told: &VerdictText) {
    let answer = Answer {
        word: answer::word(verdict.certainty),
        text: told.text.clone(),
        cause: told.cause.clone(),
        fix: Some(told.fix.clone()),
    };
    first(page, &answer);
    debug_assert!(verdict.certainty == Certainty::Waiting || !told.evidence.is_empty());
    for line in &told.evidence {
        page.wrapped("  - ", Style::new(), line, 4);
    }
    for line in told.inferred.iter().take(INFERRED) {
        page.wrapped("  Inferred  ", Style::new(), line, 4);
    }
    let more = told.inferred.len().saturating_sub(INFERRED);
    if more > 0 {
        page.line(format_args!("  Inferred  {more} more owners of locks (--json has all)"));
    }
}
