//! The verdicts, which stand before everything else.

use anstyle::Style;
use ompd_runtime::waits_for::{Certainty, Verdict};

use super::{ALARM, FAINT, Page};
use crate::tell;
use ompd_inspection::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for verdict in &inspection.waits_for.verdicts {
        page.blank();
        block(page, verdict, &tell::tell(inspection, verdict));
    }
}

/// One of them: what it is, the facts it rests on, and what to do.
pub fn block(page: &mut Page, verdict: &Verdict, told: &tell::VerdictText) {
    let lead = match verdict.certainty {
        Certainty::Deadlock => "DEADLOCK  ",
        Certainty::Suspect => "SUSPECT  ",
    };
    page.wrapped(lead, ALARM, &told.text, lead.len());
    for line in &told.evidence {
        page.wrapped("  - ", Style::new(), line, 4);
    }
    page.wrapped("  ", FAINT, told.cure, 2);
}
