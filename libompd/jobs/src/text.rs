//! The page of a merged report.

use std::collections::BTreeMap;

use ompd_report::escape::escape;
use ompd_report::text::{ALARM, HEADING, Page};

use crate::merged::{Answers, Members, Merged, Process};
use crate::ranks::RankSet;
use crate::together;

/// Answers that are shown whole.
const ANSWERS: usize = 5;
/// Places that are shown.
const PLACES: usize = 10;
/// Processes without a report that are named.
const FAILURES: usize = 4;
/// Letters of a set of ranks; a longer one is cut.
const LETTERS: usize = 60;

/// The page: first the few that differ, then the many, then which ranks these are. `width`: columns of the terminal, if it is for one.
pub fn page(merged: &Merged, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    let mut answers: Vec<(&Answers, &Members)> = merged.answers.iter().collect();
    answers.sort_by_key(|(answer, members)| (order(&answer.word), members.len()));
    for (at, (answer, members)) in answers.iter().take(ANSWERS).enumerate() {
        if at > 0 {
            page.blank();
        }
        let style = if order(&answer.word) < 2 { ALARM } else { HEADING };
        let who = format!("{}: {}", who(members), escape(&answer.text));
        page.wrapped(&format!("{:10}", escape(&answer.word)), style, &who, 10);
        // What to do about a process that waits for other ranks is to look at these, which is done.
        let fix = answer.fix.as_ref().filter(|_| order(&answer.word) < order("RUNNING"));
        for (name, text) in [("Cause", answer.cause.as_ref()), ("Fix", fix)] {
            if let Some(text) = text {
                page.wrapped(&format!("  {name:8}"), HEADING, &escape(text), 10);
            }
        }
    }
    more(&mut page, answers.len(), ANSWERS, "answer");
    if !answers.is_empty() {
        page.blank();
    }
    head(&mut page, merged);
    for (failure, _) in merged.failures.iter().take(FAILURES) {
        let text = format!("{}: {}", escape(&failure.target), escape(&failure.reason));
        page.wrapped("Not inspected: ", ALARM, &text, 4);
    }
    more(&mut page, merged.failures.len(), FAILURES, "process");
    let sentences = together::sentences(merged);
    if !sentences.is_empty() {
        page.blank();
        page.styled(HEADING, "Across ranks");
    }
    for sentence in sentences {
        page.wrapped("  ", HEADING, &sentence, 4);
    }
    let mut places: Vec<_> = merged.places.iter().collect();
    places.sort_by_key(|(_, members)| members.len());
    if !places.is_empty() {
        page.blank();
        page.styled(HEADING, "Main threads");
    }
    for (place, members) in places.iter().take(PLACES) {
        page.wrapped("  ", HEADING, &format!("{}: {}", short(members), escape(&place.text)), 4);
    }
    more(&mut page, places.len(), PLACES, "place");
    page.finish()
}

/// Which job it is, and what is missing of it.
fn head(page: &mut Page, merged: &Merged) {
    let jobs: Vec<&String> = merged.inspected.ranks.keys().collect();
    let of = match jobs.as_slice() {
        [job] if !job.is_empty() => format!(" of job {}", escape(job)),
        [] | [_] => String::new(),
        several => format!(" of {} jobs", several.len()),
    };
    let count = merged.inspected.len();
    let what = if merged.inspected.others.is_empty() { "rank" } else { "process" };
    let hosts = match merged.hosts.len() {
        0 => String::new(),
        1 => format!(" on {}", escape(&merged.hosts.to_string())),
        many => format!(" on {}: {}", counted(many, "host"), cut(&escape(&merged.hosts.to_string()))),
    };
    let when = match merged.stopped_at.map(|(first, last)| last.saturating_sub(first)) {
        Some(apart) if count > 1 => format!(", stopped within {}", time(apart)),
        _ => String::new(),
    };
    page.wrapped("", HEADING, &format!("{}{of}{hosts}{when}", counted(count, what)), 4);
    for job in jobs {
        let absent = merged.absent(job);
        if !absent.is_empty() {
            let of = if job.is_empty() { String::new() } else { format!(" of job {}", escape(job)) };
            page.wrapped("", ALARM, &format!("No report of {}{of}", ranks(&absent)), 4);
        }
    }
    for (job, twice) in reported_twice(merged) {
        let of = if job.is_empty() { String::new() } else { format!(" of job {}", escape(&job)) };
        page.wrapped("", ALARM, &format!("Several reports that differ of {}{of}", ranks(&twice)), 4);
    }
}

/// `12 ms`, `3.4 s`.
fn time(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1e3),
    }
}

/// Ranks that have several answers, by job: reports of different moments, or of different processes.
fn reported_twice(merged: &Merged) -> BTreeMap<String, RankSet> {
    let mut seen: BTreeMap<&str, RankSet> = BTreeMap::new();
    let mut twice: BTreeMap<String, RankSet> = BTreeMap::new();
    for (job, ranks) in merged.answers.values().flat_map(|members| &members.ranks) {
        let before = seen.entry(job).or_default();
        let common = before.common(ranks);
        if !common.is_empty() {
            twice.entry(job.clone()).or_default().unite(&common);
        }
        before.unite(ranks);
    }
    twice
}

/// Hangs first, then what may be one, then the rest.
fn order(word: &str) -> usize {
    const WORDS: [&str; 8] = ["DEADLOCK", "SUSPECT", "CRASHED", "STOPPED", "WAITING", "BLOCKED", "UNKNOWN", "RUNNING"];
    WORDS.iter().position(|known| *known == word).unwrap_or(WORDS.len())
}

/// `rank 5 (n3, pid 5369)`, `4,095 ranks (0-4,6-4095; rank 0: n1, pid 12)`.
fn who(members: &Members) -> String {
    let example = members.examples.first().or(members.others.first());
    match (members.len(), example) {
        (1, Some(process)) => name(process),
        (count, Some(process)) if members.others.is_empty() => {
            let all: Vec<String> = members.ranks.values().map(|of| cut(&of.to_string())).collect();
            format!("{} ({}), first {}", counted(count, "rank"), all.join("; "), name(process))
        }
        (count, Some(process)) => format!("{}, first {}", counted(count, "process"), name(process)),
        (count, None) => counted(count, "process"),
    }
}

/// `rank 5`, `4,095 ranks (0-4,6-4095)`.
pub(crate) fn short(members: &Members) -> String {
    match members.others.first() {
        Some(process) if members.len() == 1 => name(process),
        Some(_) => counted(members.len(), "process"),
        None => members.ranks.values().map(ranks).collect::<Vec<_>>().join("; "),
    }
}

pub(crate) fn ranks(set: &RankSet) -> String {
    match set.len() {
        1 => format!("rank {set}"),
        count => format!("{} ({})", counted(count, "rank"), cut(&set.to_string())),
    }
}

/// What a process is called: `rank 5 (n3, pid 5369)`, `process 77 on n3`.
pub fn name(process: &Process) -> String {
    let host = process.host.as_deref().map(escape);
    let pid = process.pid.map(|pid| format!("pid {pid}"));
    match process.rank {
        Some(rank) => {
            let place: Vec<String> = host.into_iter().chain(pid).collect();
            let place = if place.is_empty() { String::new() } else { format!(" ({})", place.join(", ")) };
            format!("rank {rank}{place}")
        }
        None => {
            let pid = process.pid.map_or_else(|| escape(&process.job), |pid| format!("process {pid}"));
            host.map_or(pid.clone(), |host| format!("{pid} on {host}"))
        }
    }
}

fn more(page: &mut Page, count: usize, shown: usize, what: &str) {
    if let Some(more) = count.checked_sub(shown).filter(|more| *more > 0) {
        page.line(format_args!("  … {} more; --json has all", counted(more as u64, what)));
    }
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = match (count, what) {
        (1, _) => "",
        (_, "process") => "es",
        _ => "s",
    };
    format!("{} {what}{plural}", digits(count))
}

/// `4,095`.
pub(crate) fn digits(number: u64) -> String {
    let plain = number.to_string();
    let mut out = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
