//! Transcripts that pages of the documentation show, and what of them is compared with a run.

use std::ops::Range;

/// Where in a page the blocks are whose first line begins so.
///
/// # Panics
/// If a block has no end.
pub fn blocks(page: &str, begin: &str) -> Vec<Range<usize>> {
    const FENCE: &str = "```\n";
    let begins = page.match_indices(FENCE).map(|(at, _)| at + FENCE.len());
    let begins = begins.filter(|start| page[*start..].starts_with(begin));
    begins.map(|start| start..start + page[start..].find(FENCE).expect("the end of the block")).collect()
}

/// Whether transcripts are to be written anew (`UPDATE_TRANSCRIPTS=1`), and not compared.
pub fn is_updated() -> bool {
    std::env::var_os("UPDATE_TRANSCRIPTS").is_some()
}

/// The words of a report, without what differs from run to run and from machine to machine. That is ids of processes and threads,
/// how many threads were stopped and how long, processors, addresses, and where the runtime is.
pub fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(without_numbers).collect();
    if let Some(live) = words.iter().position(|word| word == "live,")
        && let Some(next) =
            words[live..].windows(3).position(|three| three[1] == "OpenMP" && three[2].starts_with("thread"))
    {
        words.drain(live + 1..live + next);
    }
    for at in 1..words.len() {
        if words[at].starts_with("cpu") {
            words[at - 1] = "N".to_owned();
            words[at] = "cpus".to_owned();
        }
        if words[at - 1] == "within" && words[at].starts_with(|c: char| c.is_ascii_digit()) {
            words[at] = "N".to_owned();
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
    use super::words;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let one =
            "Process 24578 (hang): 4 threads, live, 1 thread stopped for 1.7 ms\n4 OpenMP threads on 2 cpus in 1 pool";
        let two = "Process 7 (hang): 4 threads, live,\n not stopped 4 OpenMP threads on 16\ncpus in 1 pool";
        assert_eq!(words(&one.replace("24578", "777")), words(&two.replace("Process 7", "Process 999")));
        assert_ne!(words("threads 0-2 wait (hang.c:24)"), words("threads 0-2 wait (hang.c:25)"));
        assert_eq!(words("id 24582)"), words("id\n  8123456)"));
    }
}
