//! One process as a page for a browser. It has the answer, a tree of teams with threads and stacks, a picture of what waits for
//! what, and the other views as text.

use std::collections::{BTreeMap, HashMap, HashSet};

use maud::{Markup, PreEscaped, html};
use ompd_inspection::Inspection;
use ompd_runtime::model::TeamId;
use ompd_runtime::waits_for::{Certainty, Verdict};

use super::Page;
use crate::answer::{self, Answer};
use crate::escape::escape;
use crate::remarks;
use crate::tell::{self, Names, VerdictText};
use crate::text::{self, Form, How, StackView, View};
use crate::words;

/// Verdicts and issues that are shown.
const VERDICTS: usize = 100;
const ISSUES: usize = 100;
/// Teams that are shown. One that lies deeper is shown at this depth.
const TEAMS: usize = 500;
const DEEPEST: usize = 32;
/// Groups of threads that are shown; their stacks are open if there are few.
const GROUPS: usize = 2000;
const FEW: usize = 12;
/// Letters of one view, and of the picture. A browser takes long to lay out more.
const LETTERS: usize = 1 << 20;

/// The views that are shown as text, and what they are called.
const VIEWS: [(View, &str); 8] = [
    (View::Stacks(StackView::Rows), "Stacks as text"),
    (View::Waits(Form::Table), "Waits and locks"),
    (View::Threads, "Threads as a table"),
    (View::Teams, "Teams as a table"),
    (View::Tasks(Form::Table), "Tasks"),
    (View::Loops, "Loops"),
    (View::Icvs, "Settings (ICVs)"),
    (View::Doctor, "How it was read"),
];

/// What a page has besides an inspection.
pub struct Shown<'a> {
    /// What waits for what, drawn as SVG by Graphviz, or why it is not drawn.
    pub picture: Result<&'a str, &'a str>,
    /// Columns of text that is shown as it is.
    pub width: u16,
    /// What has made the page, and its version.
    pub tool: &'a str,
    /// Takes out of a text what is not to be shown.
    pub redact: &'a dyn Fn(&str) -> String,
}

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// The page.
pub fn page(inspection: &Inspection, shown: &Shown<'_>) -> String {
    let t = shown.redact;
    let (lead, rest) = text::title(inspection);
    let title = t(&format!("{lead}{rest}"));
    let count = inspection.all_issues().count();
    let issues: Vec<String> = inspection
        .all_issues()
        .take(ISSUES)
        .map(|issue| t(&format!("{}: {}", escape(&issue.subject), escape(&issue.what.to_string()))))
        .collect();
    let views = VIEWS.map(|(view, name)| (name, cut(t(&text::body(inspection, view, how(shown))))));
    let tree = Tree::of(inspection, shown);
    let about = t(&text::about(inspection, how(shown)));
    let head = html! {
        p { "Made by " (shown.tool) "." }
        @if !about.is_empty() { pre { (about) } }
    };
    let main = html! {
        h2 { "Answer" }
        (answers(inspection, t))
        @for remark in remarks::remarks(inspection) {
            section.box data-part { h3 { b { "NOTE" } " " (t(&remark.text)) } p { (t(&remark.fix)) } }
        }
        @if !issues.is_empty() {
            section.box.hang data-part {
                h3 { b { "Incomplete" } " " (words::count(count, "issue")) }
                ul { @for issue in &issues { li { (issue) } } }
                @if count > ISSUES { p { "… " (count - ISSUES) " more; --json has all" } }
            }
        }
        h2 { "Teams, threads and stacks" }
        (tree.all())
        h2 { "What waits for what" }
        @match shown.picture.and_then(|picture| drawing(picture)) {
            Ok(picture) => div.picture { (PreEscaped(picture)) },
            Err(why) => p { "No picture: " (t(why)) },
        }
        h2 { "Views" }
        @for (name, text) in &views {
            details data-part { summary { (name) } pre data-part { (text) } }
        }
    };
    Page { title: title.trim(), head, search: "a function, file, lock or thread", main, sets: "[]" }.document()
}

fn how(shown: &Shown<'_>) -> How {
    How { width: Some(shown.width), ..How::default() }
}

/// The state of the process, and its verdicts; without a verdict, what it does.
fn answers(inspection: &Inspection, t: &dyn Fn(&str) -> String) -> Markup {
    let state = answer::state_of_process(inspection);
    let verdicts: Vec<&Verdict> = answer::verdicts(inspection).collect();
    let moves = if state.is_none() && verdicts.is_empty() { answer::answer(inspection) } else { None };
    let more = verdicts.len().saturating_sub(VERDICTS);
    html! {
        @for answer in state.iter().chain(&moves) {
            section.box.hang[matches!(answer.word, "STOPPED" | "CRASHED")] data-part { (sentences(answer, t)) }
        }
        @if state.is_none() && verdicts.is_empty() && moves.is_none() { p { (t(&text::no_runtime(inspection))) } }
        @for verdict in verdicts.iter().take(VERDICTS) {
            (judged(verdict, tell::tell(inspection, verdict), t))
        }
        @if more > 0 { p { "… " (words::count(more, "more verdict")) "; --json has all" } }
    }
}

fn sentences(answer: &Answer, t: &dyn Fn(&str) -> String) -> Markup {
    html! {
        h3 { b { (answer.word) } " " (t(&answer.text)) }
        dl {
            @if let Some(cause) = &answer.cause { dt { "Cause" } dd { (t(cause)) } }
            @if let Some(fix) = &answer.fix { dt { "Fix" } dd { (t(fix)) } }
        }
    }
}

fn judged(verdict: &Verdict, told: VerdictText, t: &dyn Fn(&str) -> String) -> Markup {
    let VerdictText { text, cause, fix, evidence, inferred, .. } = told;
    let answer = Answer { word: answer::word(verdict.certainty), text, cause, fix: Some(fix) };
    html! {
        section.box.hang[verdict.certainty != Certainty::Waiting] data-part {
            (sentences(&answer, t))
            ul {
                @for line in &evidence { li { (t(line)) } }
                @for line in &inferred { li { "Inferred: " (t(line)) } }
            }
        }
    }
}

/// Threads that do the same at the same place, in one team.
struct Group {
    who: String,
    doing: String,
    frames: String,
}

/// A team: the index of its runtime, and its own there.
type TeamAt = (usize, usize);

/// The teams, each with its threads and the teams that these have opened.
struct Tree<'a> {
    inspection: &'a Inspection,
    redact: &'a dyn Fn(&str) -> String,
    /// Threads by their team.
    groups: BTreeMap<Option<TeamAt>, Vec<Group>>,
    /// Teams by the one that they were opened in.
    inner: BTreeMap<Option<TeamAt>, Vec<TeamAt>>,
    teams: usize,
    /// Groups that are not shown.
    hidden: usize,
    is_open: bool,
}

impl<'a> Tree<'a> {
    fn of(inspection: &'a Inspection, page: &Shown<'a>) -> Tree<'a> {
        let redact = page.redact;
        let mut team_of: HashMap<i32, TeamAt> = HashMap::new();
        let mut inner: BTreeMap<Option<TeamAt>, Vec<TeamAt>> = BTreeMap::new();
        let (mut teams, mut shown_teams) = (0, HashSet::new());
        for (runtime, snapshot) in inspection.runtimes.iter().enumerate() {
            for thread in &snapshot.threads {
                if let Some((lwp, team)) = thread.lwp.zip(thread.team.flat()) {
                    team_of.entry(lwp).or_insert((runtime, team.0));
                }
            }
            let room = TEAMS.saturating_sub(teams);
            teams += snapshot.teams.len();
            // Of each team how deep it lies, and the team around it.
            let mut depths: Vec<(usize, Option<usize>)> = Vec::new();
            for (index, team) in snapshot.teams.iter().enumerate().take(room) {
                // Parents come before their children.
                let parent = team.parent.flat().map(|TeamId(parent)| parent).filter(|parent| *parent < index);
                let (depth, outer) = match parent {
                    None => (0, None),
                    Some(parent) if depths[parent].0 < DEEPEST => (depths[parent].0 + 1, Some(parent)),
                    Some(parent) => depths[parent],
                };
                depths.push((depth, outer));
                shown_teams.insert((runtime, index));
                inner.entry(outer.map(|outer| (runtime, outer))).or_default().push((runtime, index));
            }
        }
        let names = Names::of(inspection);
        let page = text::Page::of(inspection, how(page));
        let mut groups: BTreeMap<Option<TeamAt>, Vec<Group>> = BTreeMap::new();
        let (mut shown, mut hidden) = (0, 0);
        for alike in text::alike(&page, inspection) {
            let mut by_team: BTreeMap<Option<TeamAt>, Vec<i32>> = BTreeMap::new();
            for lwp in alike.lwps {
                by_team.entry(team_of.get(&lwp).copied()).or_default().push(lwp);
            }
            for (team, lwps) in by_team {
                if shown == GROUPS || team.is_some_and(|team| !shown_teams.contains(&team)) {
                    hidden += 1;
                    continue;
                }
                shown += 1;
                let (who, doing) = match lwps.as_slice() {
                    [one] => (names.who(*one), alike.doing.clone()),
                    several => (names.whos(several), words::plural(&alike.doing)),
                };
                let frames = cut(redact(&alike.frames));
                groups.entry(team).or_default().push(Group { who: redact(&who), doing: redact(&doing), frames });
            }
        }
        Tree { inspection, redact, groups, inner, teams, hidden, is_open: shown <= FEW }
    }

    fn all(&self) -> Markup {
        let more = self.teams.saturating_sub(TEAMS);
        html! {
            div.tree {
                @for team in self.inner.get(&None).into_iter().flatten() { (self.team(*team)) }
                @if let Some(groups) = self.groups.get(&None) {
                    details open data-part {
                        summary { span.who { "in no team" } }
                        @for group in groups { (self.group(group)) }
                    }
                }
            }
            @if more > 0 { p { "… " (words::count(more, "more team")) "; --json has all" } }
            @if self.hidden > 0 { p { "… " (words::count(self.hidden, "more group")) " of threads; --json has all" } }
        }
    }

    fn team(&self, team: TeamAt) -> Markup {
        let (runtime, index) = team;
        let snapshot = &self.inspection.runtimes[runtime];
        let several = self.inspection.runtimes.len() > 1;
        let title = (self.redact)(&text::team_title(snapshot, index));
        let inner = self.inner.get(&Some(team));
        html! {
            details open data-part {
                summary {
                    span.who { "team " (index) @if several { " of " (snapshot.instance.product) } }
                    " " (title)
                }
                @for group in self.groups.get(&Some(team)).into_iter().flatten() { (self.group(group)) }
                @for inner in inner.into_iter().flatten() { (self.team(*inner)) }
            }
        }
    }

    fn group(&self, group: &Group) -> Markup {
        let text = html! { span.who { (group.who) } " " (group.doing) };
        html! {
            @if group.frames.is_empty() {
                div.leaf data-part { (text) }
            } @else {
                details open[self.is_open] data-part { summary { (text) } pre data-part { (group.frames) } }
            }
        }
    }
}

/// The drawing in a document of SVG, to be put into a page.
fn drawing(picture: &str) -> Result<&str, &str> {
    let begin = picture.find("<svg").ok_or("Graphviz has drawn no SVG")?;
    Some(&picture[begin..]).filter(|drawing| drawing.len() <= LETTERS).ok_or("it would be too large")
}

fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LETTERS) {
        text.truncate(end);
        text.push_str("\n… --json has all");
    }
    text
}
