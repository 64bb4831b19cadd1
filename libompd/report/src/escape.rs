//! Text that came from the target, made safe to print.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters (and what terminals take for them) by visible escapes: a thread may be named anything,
/// terminal commands included.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Bidirectional controls reorder what follows them on the line.
            c if c.is_control() || is_bidirectional(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The same document of JSON, in which what terminals could take for commands is escaped. Of control characters JSON has only the first
/// 32 escaped; U+009B begins a command as well.
pub fn json(document: &str) -> Cow<'_, str> {
    let unsafe_to_print = |c: char| ('\u{7f}'..='\u{9f}').contains(&c) || is_bidirectional(c);
    if !document.contains(unsafe_to_print) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if unsafe_to_print(c) {
            // All of them are below U+10000, and within strings: nothing else of JSON has such characters.
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{escape, json};

    #[test]
    fn json_stays_the_same_and_commands_nothing() {
        let text = "gr\u{f6}\u{df}e\n\u{1b}[31m\u{9b}31m\u{7f}\u{202e}";
        let document = serde_json::to_string_pretty(&[text]).expect("it is JSON");
        let safe = json(&document);
        assert!(!safe.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{1b}']), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).expect("it is JSON"), [text]);
        assert_eq!(json("[\n  \"a\"\n]"), "[\n  \"a\"\n]");
    }

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("worker\u{1b}[31m\u{7}"), "worker\\u{1b}[31m\\u{7}");
        assert_eq!(escape("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        assert_eq!(escape("größe 0x1"), "größe 0x1");
    }
}
