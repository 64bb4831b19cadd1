//! Texts without what differs from process to process, and not too long.

/// Letters of a text that are kept.
pub(crate) const LETTERS: usize = 512;

/// The text without the ids and addresses of one process: `thread 0 (id 4711)` is `thread 0`. Offsets (`order_s+0x40`) are the same
/// in all processes.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(after) = rest.strip_prefix(" (id ")
            && let Some(after) = after[digits(after)..].strip_prefix(')')
        {
            rest = after;
            continue;
        }
        let numbered = ["id ", "LWP ", "process ", "PID "].into_iter().find_map(|name| {
            let after = rest.strip_prefix(name)?;
            (digits(after) > 0).then(|| (name, &after[digits(after)..]))
        });
        if let Some((name, after)) = numbered.filter(|_| !out.ends_with(|letter: char| letter.is_alphanumeric())) {
            out.push_str(name);
            out.push('N');
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("0x")
            && !out.ends_with('+')
        {
            out.push_str("0xN");
            rest = &after[after.bytes().take_while(u8::is_ascii_hexdigit).count()..];
            continue;
        }
        let letter = rest.chars().next().unwrap_or_default();
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    short(&out)
}

/// The letters that are kept.
pub(crate) fn short(text: &str) -> String {
    cut(text, LETTERS)
}

/// The first letters, and `…` if there are more.
pub(crate) fn cut(text: &str, letters: usize) -> String {
    match text.char_indices().nth(letters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn ids_of_one_process_are_left_out() {
        assert_eq!(plain("thread 3 (id 22819): waits for lock a"), "thread 3: waits for lock a");
        assert_eq!(plain("the thread with id 77 waits for 0x7f00"), "the thread with id N waits for 0xN");
        assert_eq!(plain("waitpid for process 25 (child, b)"), "waitpid for process N (child, b)");
        assert_eq!(plain("grid 4, avoid 5"), "grid 4, avoid 5");
        assert_eq!(plain("lock order_s+0x40 at 0x7f40"), "lock order_s+0x40 at 0xN");
    }
}
