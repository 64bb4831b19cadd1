//! Text that came from the target, made safe to print.

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
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("worker\u{1b}[31m\u{7}"), "worker\\u{1b}[31m\\u{7}");
        assert_eq!(escape("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        assert_eq!(escape("größe 0x1"), "größe 0x1");
    }
}
