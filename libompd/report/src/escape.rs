//! Text that came from the target, made safe to print.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters, and others that are not seen as what they are, by visible escapes: a thread may be named
/// anything, terminal commands included. A backslash is doubled, so that an escape is never the target's own text.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// Characters that take no room, break lines, or change the order of others on the line. They are the format characters, and the
/// line and paragraph separators, of Unicode 16 (DerivedGeneralCategory.txt, `Cf`, `Zl`, `Zp`).
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

/// The same document of JSON, in which what terminals could take for commands, and what is not seen, is escaped. Of control
/// characters JSON has only the first 32 escaped; U+009B begins a command as well.
pub fn json(document: &str) -> Cow<'_, str> {
    let unsafe_to_print = |c: char| ('\u{7f}'..='\u{9f}').contains(&c) || is_invisible(c);
    if !document.contains(unsafe_to_print) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if unsafe_to_print(c) {
            // They are within strings: nothing else of JSON has such characters. Those from U+10000 on take two escapes.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
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
        let text = "gr\u{f6}\u{df}e\n\u{1b}[31m\u{9b}31m\u{7f}\u{202e}\u{2028}\u{e0041}\\";
        let document = serde_json::to_string_pretty(&[text]).expect("it is JSON");
        let safe = json(&document);
        assert!(!safe.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{1b}', '\u{2028}', '\u{e0041}']), "{safe}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).expect("it is JSON"), [text]);
        assert_eq!(json("[\n  \"a\"\n]"), "[\n  \"a\"\n]");
    }

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("worker\u{1b}[31m\u{7}"), "worker\\u{1b}[31m\\u{7}");
        assert_eq!(escape("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        assert_eq!(escape("größe 0x1"), "größe 0x1");
        // What is not seen, tags included, and what would look like an escape.
        assert_eq!(escape("a\u{61c}\u{200b}\u{2028}\u{e0041}b"), "a\\u{61c}\\u{200b}\\u{2028}\\u{e0041}b");
        assert_eq!(escape("a\\n"), "a\\\\n");
    }
}
