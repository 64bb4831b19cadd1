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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::plain;

    fn bytes(field: Option<&'static str>, number: Option<&str>, holds: Option<&str>) -> Bytes {
        Bytes {
            address: "0x40".to_owned(),
            size: 4,
            holds: holds.map(str::to_owned),
            number: number.map(str::to_owned),
            field,
            memory: "queue\n of app".to_owned(),
        }
    }

    fn grounds() -> Grounds {
        Grounds {
            schema: "",
            field: "team".to_owned(),
            values: [("a.team".to_owned(), json!("teams.0x1")), ("b\n.team".to_owned(), json!(7))].into(),
            bytes: Vec::new(),
            together: Vec::new(),
            registers: Vec::new(),
            registers_not_searched: 0,
            not_searched: 0,
            words: 3,
            words_changed_alone: 3,
            looks: 1,
            issues: Vec::new(),
        }
    }

    /// The page without where its lines break.
    fn shown(grounds: &Grounds) -> String {
        plain(&render(grounds, None)).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    const VALUES: &str = "a.team: teams.0x1 b\\n.team: 7";
    const FOUND: &str = "Found by 1 look at copies of the memory in which bytes were changed.";

    #[test]
    fn value_that_rests_on_no_memory_is_said_to_do_so() {
        let text = "It rests on no byte of memory and no register. It follows from files, or from what is read when the \
                    target is opened.";
        assert_eq!(shown(&grounds()), format!("{VALUES} {text} {FOUND}"));
        let text = "It rests on no byte of memory. It needs the registers of these threads (LWP): 7, 8.";
        assert_eq!(shown(&Grounds { registers: vec![7, 8], ..grounds() }), format!("{VALUES} {text} {FOUND}"));
    }

    #[test]
    fn bytes_are_shown_with_their_fields_and_values() {
        let all = vec![
            bytes(Some("kmp_team.t_nproc"), Some("8"), Some("08 00 00 00")),
            bytes(None, None, Some("01 02")),
            bytes(None, None, None),
        ];
        let head = "field address bytes value memory";
        let alone = "It rests on these bytes. Some change of each changes it or makes it unknown.";
        let text = shown(&Grounds { bytes: all, ..grounds() });
        let rows = "kmp_team.t_nproc 0x40 4 8 queue\\n of app - 0x40 4 01 02 queue\\n of app - 0x40 4 queue\\n of app";
        assert_eq!(text, format!("{VALUES} {alone} {head} {rows} {FOUND}"));
        let redundant = "These bytes are redundant. Only a change of all of them changes it or makes it unknown.";
        let text = shown(&Grounds { together: vec![vec![bytes(None, Some("1"), None)]], ..grounds() });
        assert_eq!(text, format!("{VALUES} {redundant} {head} - 0x40 4 1 queue\\n of app {FOUND}"));
    }

    #[test]
    fn search_without_an_end_says_what_it_left_out() {
        let cut = Grounds {
            not_searched: 1,
            registers_not_searched: 2,
            words_changed_alone: 1,
            issues: vec!["gone\n".to_owned()],
            looks: 5,
            ..grounds()
        };
        let text = "The search was ended. It also rests on some of 1 byte that were not searched. Ask for a single value. \
                    There was no time to leave out the registers of 2 threads. There was time to change 1 of 3 words alone. \
                    Others were changed in groups, which may hide a word that matters. Incomplete: gone\\n \
                    Found by 5 looks at copies of the memory in which bytes were changed.";
        assert_eq!(shown(&cut), format!("{VALUES} {text}"));
    }

    #[test]
    fn search_that_left_something_out_proves_no_absence() {
        let cut = [
            Grounds { not_searched: 1, ..grounds() },
            Grounds { registers_not_searched: 1, ..grounds() },
            Grounds { words_changed_alone: 2, ..grounds() },
            Grounds { issues: vec!["gone".to_owned()], ..grounds() },
        ];
        for grounds in cut {
            assert!(!shown(&grounds).contains("It rests on no byte"), "{grounds:?}");
        }
    }

    #[test]
    fn values_beyond_twelve_are_counted() {
        let values = |count: usize| (0..count).map(|n| (format!("{n:02}"), json!(n))).collect();
        assert!(!shown(&Grounds { values: values(12), ..grounds() }).contains("more values"));
        let text = shown(&Grounds { values: values(14), ..grounds() });
        assert!(text.contains("11: 11 and 2 more values") && !text.contains("12: 12"), "{text}");
    }
}
