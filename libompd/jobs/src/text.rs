//! The page of a merged report.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ompd_report::escape::escape;
use ompd_report::text::{ALARM, HEADING, Page};

use crate::merged::{Answers, Failure, Members, Merged, Process, Targets};
use crate::plain::cut;
use crate::ranks::RankSet;
use crate::together;
use crate::words::{LETTERS, counted, digits, is_hang, more, name, order, ranks, short, who};

/// Answers that are shown whole.
const ANSWERS: usize = 5;
/// Places that are shown.
const PLACES: usize = 10;
/// Reasons why processes have no report that are shown.
const FAILURES: usize = 4;
/// Jobs whose ranks are named in a note.
const JOBS: usize = 4;

/// The page: first the few that differ, then the many, then which ranks these are. `width`: columns of the terminal, if it is for one.
pub fn page(merged: &Merged, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    let answers = by_order(merged);
    for (at, (answer, members)) in answers.iter().take(ANSWERS).enumerate() {
        if at > 0 {
            page.blank();
        }
        let style = if is_hang(&answer.word) { ALARM } else { HEADING };
        let who = format!("{}: {}", who(members), escape(&answer.text));
        page.wrapped(&format!("{:10}", escape(&answer.word)), style, &who, 10);
        for (name, text) in [("Cause", answer.cause.as_ref()), ("Fix", fix(answer))] {
            if let Some(text) = text {
                page.wrapped(&format!("  {name:8}"), HEADING, &escape(text), 10);
            }
        }
    }
    rest(&mut page, answers.len(), ANSWERS, "answer");
    if !answers.is_empty() {
        page.blank();
    }
    head(&mut page, merged);
    let sentences = together::sentences(merged);
    if !sentences.is_empty() {
        page.blank();
        page.styled(HEADING, "Across ranks");
    }
    for sentence in sentences {
        page.wrapped("  ", HEADING, &sentence, 4);
    }
    let mut places: Vec<_> = merged.places.iter().collect();
    places.sort_by_cached_key(|(_, members)| members.len());
    if !places.is_empty() {
        page.blank();
        page.styled(HEADING, "Main threads");
    }
    for (place, members) in places.iter().take(PLACES) {
        page.wrapped("  ", HEADING, &format!("{}: {}", short(members), escape(&place.text)), 4);
    }
    rest(&mut page, places.len(), PLACES, "place");
    let elsewhere = without_place(merged);
    if !places.is_empty() && !elsewhere.is_empty() {
        page.wrapped("  ", HEADING, &format!("{}: unknown: no frame has a name", short(&elsewhere)), 4);
    }
    page.finish()
}

/// Processes whose main thread is at no place that is known.
fn without_place(merged: &Merged) -> Members {
    let mut known = Members::default();
    merged.places.values().for_each(|members| known.unite(members.clone()));
    let mut rest = Members::default();
    for (job, ranks) in &merged.inspected.ranks {
        let absent = known.ranks.get(job).map_or_else(|| ranks.clone(), |known| ranks.without(known));
        if !absent.is_empty() {
            rest.ranks.insert(job.clone(), absent);
        }
    }
    rest.others = merged.inspected.others.difference(&known.others).cloned().collect();
    rest
}

/// `4 ranks of job 4711.0 on 2 hosts: n[1-2]`.
pub(crate) fn title(merged: &Merged) -> String {
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
        many => format!(" on {}: {}", counted(many, "host"), cut(&escape(&merged.hosts.to_string()), LETTERS)),
    };
    let when = match merged.stopped_at.map(|(first, last)| last.saturating_sub(first)) {
        Some(apart) if count > 1 => format!(", read within {}", time(apart)),
        _ => String::new(),
    };
    format!("{}{of}{hosts}{when}", counted(count, what))
}

/// `12 ms`, `3.4 s`.
fn time(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1e3),
    }
}

/// What to do. Who waits for other ranks is told to look at these, which is done.
pub(crate) fn fix(answer: &Answers) -> Option<&String> {
    answer.fix.as_ref().filter(|_| order(&answer.word) < order("RUNNING"))
}

/// Which job it is, and what is missing of it.
pub(crate) fn head(page: &mut Page, merged: &Merged) {
    page.wrapped("", HEADING, &title(merged), 4);
    for (lead, text) in notes(merged) {
        page.wrapped(&lead, ALARM, &text, 4);
    }
}

/// What is missing, and what is to be known about the rest: each with the words that it begins with.
pub(crate) fn notes(merged: &Merged) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    let mut add = |lead: &str, text: String| notes.push((format!("{lead} "), text));
    let of = |job: &str| if job.is_empty() { String::new() } else { format!(" of job {}", escape(job)) };
    let absent = merged.inspected.ranks.keys().map(|job| (job, merged.absent(job)));
    let absent: Vec<_> = absent.filter(|(_, absent)| !absent.is_empty()).collect();
    for (job, absent) in absent.iter().take(JOBS) {
        add("No report of", format!("{}{}", ranks(absent), of(job)));
    }
    if let Some(more) = more(absent.len(), JOBS, "job") {
        add("No report of", format!("ranks of {more}"));
    }
    let mut failures: Vec<(&Failure, &Targets)> = merged.failures.iter().collect();
    failures.sort_by_cached_key(|(_, of)| Reverse(of.len()));
    for (Failure { reason }, of) in failures.iter().take(FAILURES) {
        add("Not inspected:", format!("{of}: {}", escape(reason)));
    }
    if let Some((_, rest)) = failures.split_at_checked(FAILURES).filter(|(_, rest)| !rest.is_empty()) {
        let count = rest.iter().map(|(_, of)| of.len()).fold(0, u64::saturating_add);
        let reasons = counted(rest.len() as u64, "more reason");
        add("Not inspected:", format!("{} others, for {reasons}; --json has all", digits(count)));
    }
    let same: Vec<String> =
        of_one_rank(merged).into_iter().map(|(one, other)| format!("{} and {}", name(one), name(other))).collect();
    if let Some(first) = same.first() {
        let job = "such processes count once; merge each job by itself";
        add("Several processes have the same rank:", format!("{first}; {job}"));
    }
    let twice = reported_twice(merged);
    for (job, twice) in twice.iter().take(JOBS) {
        add("Several reports that differ of", format!("{}{}", ranks(twice), of(job)));
    }
    if let Some(more) = more(twice.len(), JOBS, "job") {
        add("Several reports that differ of", format!("ranks of {more}"));
    }
    for list in &merged.more {
        add("More than are kept:", format!("{}; the rest is not counted", escape(list)));
    }
    notes
}

/// The answers in the order of a page: hangs first, of one kind those of few processes first.
pub(crate) fn by_order(merged: &Merged) -> Vec<(&Answers, &Members)> {
    let mut answers: Vec<(&Answers, &Members)> = merged.answers.iter().collect();
    answers.sort_by_cached_key(|(answer, members)| (order(&answer.word), members.len()));
    answers
}

/// Ranks that have several answers, by job: reports of different moments, or of different processes.
fn reported_twice(merged: &Merged) -> BTreeMap<String, RankSet> {
    let mut seen: BTreeMap<&str, RankSet> = BTreeMap::new();
    let mut twice: BTreeMap<String, RankSet> = BTreeMap::new();
    for (job, ranks) in merged.answers.values().flat_map(|members| &members.ranks) {
        let before = seen.entry(job).or_default();
        let common = before.common(ranks);
        if !common.is_empty() {
            twice.entry(job.clone()).or_default().unite(common);
        }
        before.unite(ranks.clone());
    }
    twice
}

/// Processes that have the same rank of one job: of those that are named, the first two of each rank.
fn of_one_rank(merged: &Merged) -> Vec<(&Process, &Process)> {
    let classes = merged.answers.values().chain(merged.places.values()).chain([&merged.inspected]);
    let named: BTreeSet<&Process> = classes.flat_map(|members| &members.examples).collect();
    let differ = |one: &Process, other: &Process| {
        let is_other = |one: Option<String>, two: Option<String>| one.zip(two).is_some_and(|(one, two)| one != two);
        is_other(one.host.clone(), other.host.clone())
            || is_other(one.pid.map(|pid| pid.to_string()), other.pid.map(|pid| pid.to_string()))
    };
    let named: Vec<&Process> = named.into_iter().collect();
    let of_rank = named.chunk_by(|one, other| (&one.job, one.rank) == (&other.job, other.rank));
    of_rank.filter_map(|of| Some((of[0], *of.iter().find(|other| differ(of[0], other))?))).collect()
}

/// Says how many more there are than are shown.
fn rest(page: &mut Page, count: usize, shown: usize, what: &str) {
    if let Some(more) = more(count, shown, what) {
        page.line(format_args!("  … {more}; --json has all"));
    }
}
