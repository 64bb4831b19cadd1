//! The verdicts, which stand before everything else.

use anstyle::Style;
use ompd_runtime::waits_for::Certainty;

use super::{ALARM, FAINT, Page};
use crate::inspection::Inspection;
use crate::tell;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for verdict in &inspection.waits_for.verdicts {
        let told = tell::tell(inspection, verdict);
        let lead = match verdict.certainty {
            Certainty::Deadlock => "DEADLOCK  ",
            Certainty::Suspect => "SUSPECT  ",
        };
        page.blank();
        page.wrapped(lead, ALARM, &told.text, lead.len());
        for line in &told.evidence {
            page.wrapped("  - ", Style::new(), line, 4);
        }
        page.wrapped("  ", FAINT, told.cure, 2);
    }
}
