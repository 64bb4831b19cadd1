//! What a value of a report rests on.

use super::{ALARM, FAINT, HEADING, Page};
use crate::escape::escape;
use crate::json::grounds::{Bytes, Grounds};
use crate::words;

/// So many values of a group are shown.
const SHOWN: usize = 12;

/// Renders what a value rests on, for a terminal of this width.
pub fn render(grounds: &Grounds, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    for (name, value) in grounds.values.iter().take(SHOWN) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        page.wrapped(&format!("{}: ", escape(name)), HEADING, &escape(&text), 4);
    }
    if let Some(more) = grounds.values.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        page.wrapped("", FAINT, &format!("and {more} more values"), 4);
    }
    page.blank();
    if grounds.bytes.is_empty() && grounds.together.is_empty() && grounds.is_complete() {
        let text = match grounds.registers[..] {
            [] => {
                "It rests on no byte of memory and no register. It follows from files, or from what is read when the target is opened."
            }
            _ => "It rests on no byte of memory.",
        };
        page.wrapped("", anstyle::Style::new(), text, 0);
    }
    if !grounds.bytes.is_empty() {
        let text = "It rests on these bytes. Some change of each changes it or makes it unknown.";
        page.wrapped("", anstyle::Style::new(), text, 0);
        table(&mut page, &grounds.bytes);
    }
    for set in &grounds.together {
        page.blank();
        let text = "These bytes are redundant. Only a change of all of them changes it or makes it unknown.";
        page.wrapped("", anstyle::Style::new(), text, 0);
        table(&mut page, set);
    }
    if !grounds.registers.is_empty() {
        page.blank();
        let threads: Vec<String> = grounds.registers.iter().map(i32::to_string).collect();
        let text = format!("It needs the registers of these threads (LWP): {}.", threads.join(", "));
        page.wrapped("", anstyle::Style::new(), &text, 0);
    }
    if grounds.not_searched > 0 {
        page.blank();
        let size = words::count(usize::try_from(grounds.not_searched).unwrap_or(usize::MAX), "byte");
        let text = format!(
            "The search was ended. It also rests on some of {size} that were not searched. Ask for a single value."
        );
        page.wrapped("", ALARM, &text, 0);
    }
    page.blank();
    if grounds.registers_not_searched > 0 {
        let threads = words::count(grounds.registers_not_searched, "thread");
        page.wrapped("", ALARM, &format!("There was no time to leave out the registers of {threads}."), 0);
    }
    if grounds.words_changed_alone < grounds.words {
        let (alone, all) = (grounds.words_changed_alone, grounds.words);
        let text = format!(
            "There was time to change {alone} of {all} words alone. Others were changed in groups, which may hide a word that matters."
        );
        page.wrapped("", ALARM, &text, 0);
    }
    for issue in &grounds.issues {
        page.wrapped("Incomplete: ", HEADING, &escape(issue), 4);
    }
    let looks = words::count(grounds.looks, "look");
    page.wrapped("", FAINT, &format!("Found by {looks} at copies of the memory in which bytes were changed."), 0);
    page.out
}

fn table(page: &mut Page, bytes: &[Bytes]) {
    let row = |bytes: &Bytes| {
        vec![
            bytes.field.unwrap_or("-").to_owned(),
            bytes.address.clone(),
            bytes.size.to_string(),
            bytes.number.clone().or_else(|| bytes.holds.clone()).unwrap_or_default(),
            escape(&bytes.memory),
        ]
    };
    page.table(&["field", "address", "bytes", "value", "memory"], bytes.iter().map(row).collect());
}
