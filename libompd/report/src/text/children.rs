//! The line that names the child processes.

use anstyle::Style;

use super::Page;
use crate::escape::escape;
use ompd_inspection::Inspection;

/// Names the children. `are_shown`: their own reports follow, so that the line needs no hint.
pub fn render(page: &mut Page, inspection: &Inspection, are_shown: bool) {
    /// More are counted.
    const NAMED: usize = 6;
    let children = &inspection.children;
    if children.is_empty() {
        return;
    }
    let named = children.iter().take(NAMED).map(|child| format!("{} {}", child.pid, escape(&child.name)));
    let named: Vec<String> = named.collect();
    let more = children.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let hint = if are_shown { "" } else { "; --children inspects them" };
    let text = format!("Children: {} ({}{more}){hint}", children.len(), named.join(", "));
    page.wrapped("", Style::new(), &text, 0);
}
