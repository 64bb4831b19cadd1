//! Transcripts that pages of the documentation show, and what of them is compared with a run.

use std::ops::Range;

use crate::Skip;

/// Where in a page the blocks without a language are whose first line begins so.
///
/// # Panics
/// If a block has no end.
pub fn blocks(page: &str, begin: &str) -> Vec<Range<usize>> {
    const FENCE: &str = "```";
    let mut found = Vec::new();
    let (mut at, mut open) = (0, None);
    for line in page.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(language) = line.trim().strip_prefix(FENCE) {
            open = match open {
                None => Some((end, language.is_empty())),
                Some((start, is_plain)) => {
                    if is_plain && page[start..].starts_with(begin) {
                        found.push(start..at);
                    }
                    None
                }
            };
        }
        at = end;
    }
    assert_eq!(open, None, "a block has no end");
    found
}

/// The reason to skip a comparison with frames of the C library and of other libraries of Debian 12; `None` on that system.
pub fn of_another_system() -> Option<Skip> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let has = |line: &str| release.lines().any(|other| other == line);
    let is_same = has("ID=debian") && has("VERSION_ID=\"12\"");
    (!is_same).then(|| Skip::because("a page shows libraries of Debian 12, and this is another system"))
}

/// Whether transcripts are to be written anew (`UPDATE_TRANSCRIPTS=1`), and not compared.
pub fn is_updated() -> bool {
    std::env::var_os("UPDATE_TRANSCRIPTS").is_some()
}

/// The words of a report, without what differs from run to run and from machine to machine. That is ids of processes and threads,
/// how many threads were stopped and how long, processors, the time of day, addresses, and where the runtime is.
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(without_numbers).collect();
    if let Some(live) = words.iter().position(|word| word == "live,")
        && let Some(next) =
            words[live..].windows(3).position(|three| three[1] == "OpenMP" && three[2].starts_with("thread"))
    {
        words.drain(live + 1..live + next);
    }
    // The same without "live,": in the live view.
    while let Some(at) = words.windows(2).position(|two| two == ["stopped", "for"]) {
        words.splice(at..words.len().min(at + 4), ["not".to_owned(), "stopped".to_owned()]);
    }
    for at in 1..words.len() {
        if words[at].starts_with("cpu") {
            words[at - 1] = "N".to_owned();
            words[at] = "cpus".to_owned();
        }
        if words[at - 1] == "within" && words[at].starts_with(|c: char| c.is_ascii_digit()) {
            words[at] = "N".to_owned();
            // On a busy machine it is seconds.
            if let Some(unit) = words.get_mut(at + 1).filter(|unit| *unit == "s") {
                *unit = "ms".to_owned();
            }
        }
    }
    words
}

/// The word with `N` in place of each number that is long enough for an id.
fn without_numbers(word: &str) -> String {
    const SHORTEST: usize = 3;
    if word.starts_with('/') && word.contains(".so") {
        return "LIBRARY".to_owned();
    }
    if word.starts_with("0x") {
        return "ADDRESS".to_owned();
    }
    if word.len() == "23:59:59".len() && word.split(':').filter(|part| part.len() == 2).count() == 3 {
        return "TIME".to_owned();
    }
    // Where in a library without symbols.
    if let Some((library, _)) = word.split_once("+0x") {
        return format!("{library}+OFFSET");
    }
    let mut out = String::new();
    for part in word.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        out.push_str(if digits.len() >= SHORTEST { "N" } else { digits });
        out.push_str(&part[digits.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{blocks, words};

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let one =
            "Process 24578 (hang): 4 threads, live, 1 thread stopped for 1.7 ms\n4 OpenMP threads on 2 cpus in 1 pool";
        let two = "Process 7 (hang): 4 threads, live,\n not stopped 4 OpenMP threads on 16\ncpus in 1 pool";
        assert_eq!(words(&one.replace("24578", "777")), words(&two.replace("Process 7", "Process 999")));
        assert_ne!(words("threads 0-2 wait (hang.c:24)"), words("threads 0-2 wait (hang.c:25)"));
        assert_eq!(words("id 24582)"), words("id\n  8123456)"));
        assert_eq!(words("top 09:02:59 UTC"), words("top 23:59:01 UTC"));
        assert_ne!(words("top 09:02:59 UTC"), words("top 23:59 UTC"));
        assert_eq!(words("libffi.so.8+0x6f7a"), words("libffi.so.8+0x1"));
        assert_eq!(words("read within 12 ms\n  rank 2"), words("read within 1.5 s\n  rank 2"));
        assert_eq!(words("1 hang: 4 threads, not stopped\n  x"), words("1 hang: 4 threads, stopped for 2.0 ms\n  x"));
    }

    #[test]
    fn blocks_without_a_language_are_found() {
        let page = "```sh\n$ no\n```\n$ no\n```\n$ yes\n```\n\n```\nother\n```\n";
        let texts: Vec<&str> = blocks(page, "$ ").into_iter().map(|place| &page[place]).collect();
        assert_eq!(texts, ["$ yes\n"]);
        assert_eq!(blocks(page, "").len(), 2);
    }
}
