//! Texts without what differs from process to process, and not too long.

/// Letters of a text that are kept.
pub(crate) const LETTERS: usize = 512;
/// What stands for the name of a host.
const HOST: &str = "HOST";

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
        let numbered =
            ["id ", "LWP ", "process ", "processes ", "PID ", "`ompd-inspect "].into_iter().find_map(|name| {
                let after = rest.strip_prefix(name)?;
                (digits(after) > 0).then(|| (name, after_numbers(after)))
            });
        if let Some((name, after)) = numbered.filter(|_| !out.ends_with(|letter: char| letter.is_alphanumeric())) {
            out.push_str(name);
            out.push('N');
            rest = after;
            continue;
        }
        if let Some(after) = after_span(rest).filter(|_| !out.ends_with(|letter: char| letter.is_alphanumeric())) {
            out.push('N');
            rest = after;
            continue;
        }
        // Equal numbers of two processes need not be the same communicator.
        if let Some(after) = rest.strip_prefix("communicator 0x") {
            out.push_str("another communicator");
            rest = &after[after.bytes().take_while(u8::is_ascii_hexdigit).count()..];
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

/// What follows a number, or several: `1, 2 and 3`, `1 2 3`.
fn after_numbers(text: &str) -> &str {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mut after = text.trim_start_matches(is_digit);
    let next = |after: &'_ str| {
        [", ", " and ", " "]
            .into_iter()
            .find(|between| after.strip_prefix(between).is_some_and(|next| next.starts_with(is_digit)))
    };
    while let Some(between) = next(after) {
        after = after[between.len()..].trim_start_matches(is_digit);
    }
    after
}

/// What follows a span of time that something still takes: ` more at most` of `6.9 s more at most`, ` left` of `20 ms left`.
fn after_span(text: &str) -> Option<&str> {
    /// Letters of the longest number that is looked at.
    const MOST: usize = 32;
    let number = text.bytes().take(MOST).take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let after = &text[number..];
    let is_number = text.starts_with(|letter: char| letter.is_ascii_digit());
    let unit = ["s", "ms", "µs"].into_iter().find_map(|unit| after.strip_prefix(' ')?.strip_prefix(unit))?;
    (is_number && (unit.starts_with(" more at most") || unit.starts_with(" left"))).then_some(unit)
}

/// The reason without the name of its target: targets that differ in nothing else are one entry. In the reason of a host `HOST` stands
/// for its name.
pub(crate) fn without_name(target: &str, reason: &str) -> String {
    let Some(host) = target.strip_prefix("host ") else {
        return plain(reason.strip_prefix(target).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(reason));
    };
    let own = host.rsplit('@').next().unwrap_or(host);
    let named = replaced(&replaced(reason, host), own);
    // ClusterShell begins lines with it.
    let lines: Vec<&str> = named.split("; ").map(|line| line.strip_prefix("HOST: ").unwrap_or(line)).collect();
    plain(&lines.join("; "))
}

/// A text with another word in place of a name.
fn replaced(text: &str, name: &str) -> String {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || "-_".contains(letter));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name).filter(|_| name.len() > 1) {
        let after = &rest[at + name.len()..];
        let mut letters = after.chars();
        // A dot ends a sentence, or begins a domain.
        let next = letters.next();
        let goes_on = is_part(next) || next == Some('.') && is_part(letters.next());
        out.push_str(&rest[..at]);
        let is_within = is_part(out.chars().next_back()) || out.ends_with('.') || goes_on;
        out.push_str(if is_within { name } else { HOST });
        rest = after;
    }
    out + rest
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
    use super::{plain, without_name};

    #[test]
    fn reasons_of_hosts_and_files_differ_in_no_name() {
        let of = |host: &str| {
            let reason = format!("{host}: ssh: Could not resolve hostname {host}: Name or service not known");
            without_name(&format!("host {host}"), &reason)
        };
        assert_eq!(of("n17"), "ssh: Could not resolve hostname HOST: Name or service not known");
        assert_eq!(of("n17"), of("node-3.x.org"));
        let key = without_name("host me@n1", "me@n1: Permission denied (publickey). n1.x, n10 and xn1 are others, n1.");
        assert_eq!(key, "Permission denied (publickey). n1.x, n10 and xn1 are others, HOST.");
        assert_eq!(without_name("a/core.7", "a/core.7: it is cut off"), "it is cut off");
        assert_eq!(without_name("core", "core dumps are off"), "core dumps are off");
        assert_eq!(without_name("host ", "no answer"), "no answer");
    }

    #[test]
    fn ids_of_one_process_are_left_out() {
        assert_eq!(plain("thread 3 (id 22819): waits for lock a"), "thread 3: waits for lock a");
        assert_eq!(plain("the thread with id 77 waits for 0x7f00"), "the thread with id N waits for 0xN");
        assert_eq!(plain("waitpid for process 25 (child, b)"), "waitpid for process N (child, b)");
        let two = "See what processes 1, 2 and 3 do: `ompd-inspect 1 2 3`.";
        assert_eq!(plain(two), "See what processes N do: `ompd-inspect N`.");
        let one = "See what process 18307 does: `ompd-inspect 18307`.";
        assert_eq!(plain(one), "See what process N does: `ompd-inspect N`.");
        assert_eq!(plain("sleep, a.c:3, 12.5 ms left"), "sleep, a.c:3, N left");
        assert_eq!(
            plain("for 6.9 s more at most; sleeps for 3 s, process 4 left"),
            "for N more at most; sleeps for 3 s, process N left"
        );
        // However many there are: the text may come from anybody.
        assert_eq!(plain(&format!("process {}x", "1 ".repeat(1 << 20))), "process N x");
        let numbers = format!("{}x", "1.".repeat(1 << 20));
        assert!(plain(&numbers).starts_with("1.1.1."));
        assert_eq!(plain("grid 4, avoid 5"), "grid 4, avoid 5");
        let receives = "MPI_Recv from rank 0 of communicator 0x44 with tag 7";
        assert_eq!(plain(receives), "MPI_Recv from rank 0 of another communicator with tag 7");
        assert_eq!(plain("lock order_s+0x40 at 0x7f40"), "lock order_s+0x40 at 0xN");
    }
}
