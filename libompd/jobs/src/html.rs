//! A merged report as one page for a browser.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, html};
use ompd_report::escape::escape;
use ompd_report::html::Page;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::merged::{Answers, Frames, Members, Merged, Process};
use crate::ranks::RankSet;
use crate::text::{by_order, notes, title};
use crate::together;
use crate::tree::{Branch, tree};
use crate::words::{counted, digits, is_hang, more, name, short, who};

/// Answers that are shown, each with a process.
const ANSWERS: usize = 100;
/// Places that are shown.
const PLACES: usize = 200;
/// Branches of the tree.
const BRANCHES: usize = 2000;
/// Stacks of a process that are shown.
const STACKS: usize = 64;
/// Letters of all stacks of processes that are shown.
const STACK_LETTERS: usize = 4 << 20;
/// Letters of all sets of ranks that the search knows, and of one.
const SET_LETTERS: [usize; 2] = [1 << 20, 1 << 16];

/// What a path keeps.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');

/// The page. `files`: the file that the report of a process was read from, for links from the page's folder.
pub fn page(merged: &Merged, files: &BTreeMap<Process, String>) -> String {
    let answers = by_order(merged);
    let shown = &answers[..answers.len().min(ANSWERS)];
    let mut sets = Sets::default();
    // A process may be the first of several answers.
    let mut processes: Vec<&Process> = Vec::new();
    for process in shown.iter().filter_map(|(_, members)| members.first()) {
        if !processes.contains(&process) {
            processes.push(process);
        }
    }
    let link = |members: &Members| {
        let first = members.first()?;
        let number = processes.iter().position(|process| *process == first)?;
        Some(html! { a href=(format!("#process-{number}")) { (name(first)) } })
    };
    let mut letters = STACK_LETTERS;
    let title = title(merged);
    let mut places: Vec<_> = merged.places.iter().collect();
    places.sort_by_cached_key(|(_, members)| members.len());
    let across = together::sentences(merged);
    let main = html! {
        h2 { "Answers" }
        @for (answer, members) in shown {
            section.box.hang[is_hang(&answer.word)] data-part data-set=[sets.of(members)] {
                h3 { b { (escape(&answer.word)) } " " (who(members)) }
                (answer_text(answer))
                @if let Some(link) = link(members) { p { "Its stacks: " (link) } }
            }
        }
        (rest(answers.len(), ANSWERS, "answer"))
        @if !across.is_empty() {
            h2 { "Across ranks" }
            ul { @for sentence in &across { li { (sentence) } } }
        }
        h2 { "Stacks of all ranks" }
        div.tree {
            @for branch in tree(merged, BRANCHES) { (branch_of(&branch, &mut sets)) }
        }
        h2 { "Classes" }
        table {
            thead { tr { th { "Answer or main thread" } th { "Processes" } th { "Which" } th { "First" } } }
            tbody {
                @for (answer, members) in shown {
                    (row(&answer.word, members, link(members), &mut sets))
                }
                @for (place, members) in places.iter().take(PLACES) {
                    (row(&place.text, members, link(members), &mut sets))
                }
            }
        }
        (rest(places.len(), PLACES, "place"))
        h2 { "First process of each answer" }
        @for (number, process) in processes.iter().enumerate() {
            (one(merged, process, number, files.get(*process), &mut sets, &mut letters))
        }
    };
    let head = html! { @for (lead, text) in notes(merged) { p { span.alarm { (lead) } (text) } } };
    let sets = sets.json();
    Page { title: &title, head, search: "a word, or the number of a rank", main, sets: &sets }.document()
}

fn answer_text(answer: &Answers) -> Markup {
    html! {
        p { (escape(&answer.text)) }
        dl {
            @if let Some(cause) = &answer.cause { dt { "Cause" } dd { (escape(cause)) } }
            @if let Some(fix) = crate::text::fix(answer) { dt { "Fix" } dd { (escape(fix)) } }
        }
    }
}

fn branch_of(branch: &Branch, sets: &mut Sets) -> Markup {
    let set = sets.of(&branch.members);
    let text = html! {
        span.who { (branch.who()) }
        @for line in branch.lines() { span.frame { (line) } }
    };
    html! {
        @if branch.children.is_empty() {
            div.leaf data-part data-set=[set] { (text) }
        } @else {
            details open data-part data-set=[set] {
                summary { (text) }
                @for child in &branch.children { (branch_of(child, sets)) }
            }
        }
    }
}

fn row(what: &str, members: &Members, first: Option<Markup>, sets: &mut Sets) -> Markup {
    html! {
        tr data-part data-set=[sets.of(members)] {
            td { (escape(what)) }
            td.number { (digits(members.len())) }
            td { (short(members)) }
            td { @if let Some(first) = first { (first) } @else if let Some(first) = members.first() { (name(first)) } }
        }
    }
}

/// What is known of one process: a merged report has its answer and stacks without ids. `letters`: of stacks, that still fit on the
/// page.
fn one(
    merged: &Merged,
    process: &Process,
    number: usize,
    file: Option<&String>,
    sets: &mut Sets,
    letters: &mut usize,
) -> Markup {
    let stacks: Vec<(&Frames, &Members)> = merged.stacks.iter().filter(|(_, of)| of.contains(process)).collect();
    let fits = |(Frames { frames }, _): &&(&Frames, &Members)| {
        let length = frames.iter().map(String::len).sum();
        letters.checked_sub(length).map(|left| *letters = left).is_some()
    };
    let shown: Vec<_> = stacks.iter().take(STACKS).take_while(fits).collect();
    html! {
        section.box id=(format!("process-{number}")) data-part data-set=[sets.of(&Members::one(process))] {
            h3 { (name(process)) }
            @if let Some(file) = file {
                p { "Whole report: " a href=(address(file)) { (escape(file)) } }
            }
            @if let Some(pid) = process.pid {
                p { "To look again" @if let Some(host) = &process.host { ", on " (escape(host)) } ": "
                    code { "ompd-inspect stacks " (pid) } }
            }
            @for (answer, _) in merged.answers.iter().filter(|(_, of)| of.contains(process)) {
                p { b { (escape(&answer.word)) } } (answer_text(answer))
            }
            @for (place, _) in merged.places.iter().filter(|(_, of)| of.contains(process)) {
                p { "Main thread: " (escape(&place.text)) }
            }
            @for (Frames { frames }, members) in &shown {
                p { (threads(members)) ", innermost frame first:" }
                pre {
                    @for frame in frames.iter().rev() { (escape(frame)) "\n" }
                }
            }
            (rest(stacks.len(), shown.len(), "stack"))
        }
    }
}

/// How many threads of one process have a stack. Of processes that have it together only the least and most are known.
fn threads(members: &Members) -> String {
    match members.threads {
        Some((least, most)) if least == most => counted(most, "thread"),
        Some((least, most)) => format!("{least}-{}", counted(most, "thread")),
        None => "Threads".to_owned(),
    }
}

/// The address of a file, from the folder of the page. It never begins with a scheme.
fn address(file: &str) -> String {
    let path = utf8_percent_encode(file, PATH).to_string();
    if file.starts_with('/') { format!("file://{path}") } else { format!("./{path}") }
}

/// Says how many more there are than are shown.
fn rest(count: usize, shown: usize, what: &str) -> Markup {
    html! {
        @if let Some(more) = more(count, shown, what) { p { "… " (more) "; --json has all" } }
    }
}

/// Sets of ranks for the search, each once.
#[derive(Default)]
struct Sets {
    known: HashMap<String, usize>,
    letters: usize,
}

impl Sets {
    /// The number of a set; `None` if there is no room for it.
    fn of(&mut self, members: &Members) -> Option<usize> {
        let room = SET_LETTERS[0].saturating_sub(self.letters).min(SET_LETTERS[1]);
        let mut text = String::new();
        for part in members.ranks.values().flat_map(RankSet::parts) {
            text += if text.is_empty() { "" } else { "," };
            text += &part;
            if text.len() > room {
                return None;
            }
        }
        let next = self.known.len();
        if let Some(known) = self.known.get(&text) {
            return Some(*known);
        }
        self.letters += text.len();
        self.known.insert(text, next);
        Some(next)
    }

    /// All of them. They consist of digits, commas and hyphens.
    fn json(&self) -> String {
        let mut all: Vec<(&String, usize)> = self.known.iter().map(|(text, number)| (text, *number)).collect();
        all.sort_by_key(|(_, number)| *number);
        let all: Vec<String> = all.into_iter().map(|(text, _)| format!("\"{text}\"")).collect();
        format!("[{}]", all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_has_no_scheme_of_its_own() {
        assert_eq!(address("rank 1.json"), "./rank%201.json");
        assert_eq!(address("javascript:alert(1)"), "./javascript%3Aalert%281%29");
        assert_eq!(address("//host/a"), "file:////host/a");
        assert_eq!(address("/tmp/a\"b"), "file:///tmp/a%22b");
    }
}
