//! The report for people. Unspecified on purpose: programs read `--json`.

mod children;
pub(crate) mod devices;
mod doctor;
pub mod dot;
mod flame;
mod graph;
pub mod grounds;
pub mod history;
mod icvs;
mod loops;
pub mod overview;
mod progress;
mod python;
mod stacks;
mod summary;
mod tasks;
mod teams;
mod threads;
pub mod trace;
pub mod tree;
mod verdicts;
mod view;
mod waits;
mod why;

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};

use crate::escape::escape;
use crate::words::{self, runtime_names};
use crate::{outside, remarks};
use ompd_inspection::Inspection;
use ompd_inspection::outside::Outside;
use ompd_process::{Addr, TargetKind};
use ompd_runtime::family::{families, is_named_like_a_runtime};
use ompd_runtime::model::{Fact, RuntimeSnapshot, Thread, WaitKind};
use ompd_runtime::process::{self, Nested};

pub(crate) use loops::progress as loop_progress;
pub(crate) use stacks::alike;
pub(crate) use teams::title as team_title;
pub use view::{Form, Graph, StackView, View};

/// What is most important on a page.
pub const HEADING: Style = Style::new().bold();
/// A hang.
pub const ALARM: Style = AnsiColor::Red.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// Begins the label of a thread that tables are to mark.
const MARK: char = '*';

/// A blank at which [`Page::wrapped`] does not break the line.
const TIE: char = '\u{a0}';

/// Width to lay out for when it is not known: the classic terminal.
const DEFAULT_WIDTH: u16 = 80;

/// Text under construction, and how wide it may be.
#[derive(Debug)]
pub struct Page {
    out: String,
    width: u16,
    /// It is for a terminal of that width: no line may be longer.
    is_terminal: bool,
    /// Show origins.
    verbose: bool,
    /// A debugger shows it.
    in_debugger: bool,
    /// What else threads are called, by LWP.
    labels: HashMap<i32, String>,
    /// System calls threads are blocked in, by LWP.
    calls: HashMap<i32, String>,
    /// What threads do outside of OpenMP, by LWP: those that are in a call or wait.
    outside: HashMap<i32, Doing>,
    /// What threads do that wait for Python's interpreter lock, by LWP.
    gil: HashMap<i32, String>,
    /// The innermost code of the program's own source that threads are in, by LWP.
    places: HashMap<i32, String>,
    /// What threads wait for that several runtimes know, by LWP.
    waits: HashMap<i32, String>,
    /// Threads that are in teams of several runtimes.
    nested: Vec<Nested>,
    /// What each runtime is called where there are several, and where it begins: two files may be called the same.
    names: Vec<(Addr, String)>,
}

/// What a thread does outside of OpenMP, in words.
#[derive(Debug)]
struct Doing {
    what: String,
    /// With the place in the program, if the thread has called a library.
    from: Option<String>,
    /// It waits there.
    waits: bool,
}

/// What a thread is doing, and what it has begun on a device.
fn with_device(thread: &Thread, doing: String) -> String {
    match &thread.on_device {
        Some(on_device) => format!("{}: {doing}", words::on_device(on_device)),
        None => doing,
    }
}

impl Page {
    /// What a thread is doing, in a few words.
    fn doing(&self, thread: &Thread) -> String {
        if let Some(waits) = thread.lwp.and_then(|lwp| self.gil.get(&lwp))
            && !matches!(thread.wait, Fact::Known { value: Some(_), .. })
        {
            return with_device(thread, waits.clone());
        }
        // A region of one runtime may wait for a lock of another.
        if let Some(waits) = thread.lwp.and_then(|lwp| self.waits.get(&lwp))
            && matches!(thread.wait, Fact::Known { value: None, .. })
        {
            return with_device(thread, waits.clone());
        }
        if let Some(from) = self.outside(thread).and_then(|doing| doing.from.clone()) {
            return with_device(thread, from);
        }
        let call = thread.lwp.and_then(|lwp| self.calls.get(&lwp)).map(String::as_str);
        let text = with_device(thread, words::doing(thread, call));
        // Of a thread that is in another runtime's region as well, that tells what it does.
        let elsewhere = self.nested.iter().any(|n| Some(n.lwp) == thread.lwp);
        match thread.lwp.and_then(|lwp| self.places.get(&lwp)).filter(|_| !elsewhere) {
            Some(place) if matches!(thread.wait, Fact::Known { value: None, .. }) => format!("{text}, in {place}"),
            _ => text,
        }
    }

    /// What a thread does outside of OpenMP that waits for nothing of a runtime's.
    fn outside(&self, thread: &Thread) -> Option<&Doing> {
        let is_outside = thread.in_runtime.is_none() && matches!(thread.wait, Fact::Known { value: None, .. });
        thread.lwp.filter(|_| is_outside).and_then(|lwp| self.outside.get(&lwp))
    }

    /// What a thread is doing that waits for nothing of a runtime's.
    fn running(&self, lwp: i32) -> String {
        if let Some(waits) = self.gil.get(&lwp) {
            return waits.clone();
        }
        match self.outside.get(&lwp) {
            Some(doing) => doing.what.clone(),
            None => words::running(self.calls.get(&lwp).map(String::as_str)),
        }
    }

    /// In which teams of other runtimes a thread is, seen from its team in this one.
    fn elsewhere(&self, snapshot: &RuntimeSnapshot, thread: &Thread) -> Option<String> {
        let nested = self.nested.iter().find(|n| Some(n.lwp) == thread.lwp)?;
        let here = self.names.iter().position(|(base, _)| *base == snapshot.instance.base)?;
        let others = nested.places.iter().filter(|place| place.runtime != here);
        let others: Vec<String> = others
            .map(|place| {
                let number = place.thread_num.map_or_else(|| "a thread".to_owned(), |n| format!("thread {n}"));
                format!("{number} of team {} in {}", place.team.0, self.names[place.runtime].1)
            })
            .collect();
        // Seen from the outermost, the others are inside; seen from inside, only the outermost is known to be around.
        let outermost = nested.outermost_known.then(|| nested.places[0].runtime);
        let relation = match outermost {
            Some(outermost) if outermost == here => "inside, ",
            Some(outermost) if nested.places.len() == 2 && outermost != here => "around it, ",
            _ => "also ",
        };
        Some(format!("{relation}{}", others.join(" and ")))
    }

    /// How a thread is named in a sentence.
    fn thread(&self, lwp: i32) -> String {
        match self.labels.get(&lwp) {
            Some(label) => format!("Thread {} (LWP {lwp})", escape(label.trim_start_matches(MARK))),
            None => format!("LWP {lwp}"),
        }
    }

    /// A page for something that is no inspection. `width`: columns of the terminal, if it is for one.
    pub fn empty(width: Option<u16>) -> Page {
        Page {
            out: String::new(),
            width: width.unwrap_or(DEFAULT_WIDTH),
            is_terminal: width.is_some(),
            verbose: false,
            in_debugger: false,
            labels: Default::default(),
            calls: Default::default(),
            outside: Default::default(),
            gil: Default::default(),
            places: Default::default(),
            waits: Default::default(),
            nested: Vec::new(),
            names: Vec::new(),
        }
    }

    /// A page about an inspection, empty.
    pub(crate) fn of(inspection: &Inspection, how: How) -> Page {
        let calls = inspection.threads.iter().filter_map(|t| Some((t.lwp, t.blocked_in.clone()?))).collect();
        Page {
            verbose: how.verbose,
            in_debugger: how.in_debugger,
            labels: how.labels,
            calls,
            outside: inspection.outside.iter().filter_map(doing_outside).collect(),
            gil: python::waits(inspection),
            places: inspection.stacks.logical.iter().filter_map(stacks::innermost).collect(),
            waits: waits_of_several(inspection),
            nested: process::nested(&inspection.runtimes),
            names: runtime_names(&inspection.runtimes),
            ..Page::empty(how.width)
        }
    }

    /// What is on it, with colours as terminals take them.
    pub fn finish(self) -> String {
        self.out
    }

    /// A line. It is not broken.
    pub fn line(&mut self, text: impl std::fmt::Display) {
        if self.in_debugger {
            self.out.push_str(&for_debugger(&text.to_string()));
            self.out.push('\n');
        } else {
            let _ = writeln!(self.out, "{text}");
        }
    }

    /// A line in a style. It is not broken.
    pub fn styled(&mut self, style: Style, text: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{style}{text}{style:#}");
    }

    /// An empty line.
    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    /// A sentence, wrapped at the page's width; lines after the first are indented by `indent`.
    pub fn wrapped(&mut self, lead: &str, style: Style, text: &str, indent: usize) {
        let width = usize::from(self.width).max(40);
        let known = self.in_debugger.then(|| for_debugger(text));
        let text = known.as_deref().unwrap_or(text);
        let mut column = lead.chars().count();
        let _ = write!(self.out, "{style}{lead}{style:#}");
        for (i, word) in text.split(' ').enumerate() {
            let length = word.chars().count();
            // A path stays whole, to be copied.
            if indent + length > width && !word.contains('/') && self.is_terminal {
                if i > 0 {
                    self.out.push(' ');
                    column += 1;
                }
                for letter in word.replace(TIE, " ").chars() {
                    if column >= width {
                        let _ = write!(self.out, "\n{:indent$}", "");
                        column = indent;
                    }
                    self.out.push(letter);
                    column += 1;
                }
                continue;
            }
            if i == 0 && self.is_narrow() && column > indent && column + length > width {
                let _ = write!(self.out, "\n{:indent$}", "");
                column = indent;
            }
            if i > 0 && column + 1 + length > width {
                // Two blanks separate what does not belong together.
                self.out.truncate(self.out.trim_end_matches(' ').len());
                let _ = write!(self.out, "\n{:indent$}", "");
                column = indent;
            } else if i > 0 {
                self.out.push(' ');
                column += 1;
            }
            self.out.push_str(&word.replace(TIE, " "));
            column += length;
        }
        self.out.push('\n');
    }

    /// A table with a row for each of these threads, which begin with what they are called.
    fn thread_table(&mut self, header: &[&str], rows: Vec<(Option<i32>, Vec<String>)>) {
        if self.labels.is_empty() {
            return self.table(header, rows.into_iter().map(|(_, row)| row).collect());
        }
        let label =
            |lwp: Option<i32>| lwp.and_then(|lwp| self.labels.get(&lwp)).map_or_else(|| "-".to_owned(), |l| escape(l));
        let rows = rows.into_iter().map(|(lwp, row)| [vec![label(lwp)], row].concat()).collect();
        self.table(&[&["Id"], header].concat(), rows);
    }

    /// True if there is no room for columns that lie at fixed places.
    fn is_narrow(&self) -> bool {
        usize::from(self.width) < NARROW_PAGE
    }

    /// The rows of a table one below the other, each cell with its column's name.
    fn records(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        for row in rows {
            let mut cells = header.iter().zip(row).filter(|(_, cell)| !cell.is_empty() && cell != "-");
            let Some((name, first)) = cells.next() else { continue };
            let rest: Vec<String> = cells.map(|(name, cell)| format!("{name}{TIE}{cell}")).collect();
            self.wrapped(&format!(" {name} {first}  "), Style::new(), &rest.join(", "), 4);
        }
    }

    fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        if self.is_narrow() && is_too_wide(header, &rows, usize::from(self.width)) {
            return self.records(header, rows);
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header.iter().copied());
        // Programs that read a table from a pipe or a file get a line for each row.
        let mut least = Vec::new();
        if self.is_terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
            least = least_widths(header, &rows, usize::from(self.width));
        }
        for row in rows {
            table.add_row(row);
        }
        for (index, width) in least.into_iter().enumerate() {
            if let (Some(column), Some(width)) = (table.column_mut(index), width) {
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
        }
        for line in table.lines() {
            self.line(line.trim_end());
        }
    }
}

/// Pages of fewer columns have records in place of tables that do not fit.
const NARROW_PAGE: usize = 60;

/// True if words of the table would be broken in so many columns.
fn is_too_wide(header: &[&str], rows: &[Vec<String>], width: usize) -> bool {
    let longest = |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let of_column = |column: usize| {
        let cells = rows.iter().filter_map(move |row| row.get(column).map(String::as_str));
        cells.chain([header[column]]).map(longest).max().unwrap_or(0) + 2
    };
    (0..header.len()).map(of_column).sum::<usize>() > width
}

/// Of each column the width at which no word in it is broken, as far as there is room: columns on the left come first.
fn least_widths(header: &[&str], rows: &[Vec<String>], width: usize) -> Vec<Option<u16>> {
    /// What a column is left with at least.
    const NARROW: usize = 7;
    /// A blank on both sides of each column.
    const PADDING: usize = 2;
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column).map(String::as_str));
    let longest = |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
    let words: Vec<usize> =
        (0..header.len()).map(|column| cells(column).chain([header[column]]).map(longest).max().unwrap_or(0)).collect();
    let room = width.saturating_sub(PADDING * header.len());
    let mut taken = 0;
    let mut widths = Vec::with_capacity(words.len());
    for (column, word) in words.iter().enumerate() {
        let rest: usize = words[column + 1..].iter().map(|other| (*other).min(NARROW)).sum();
        let fits = taken + word + rest <= room;
        taken += if fits { *word } else { (*word).min(NARROW) };
        widths.push(u16::try_from(word + PADDING).ok().filter(|_| fits));
    }
    widths
}

/// How to show it.
#[derive(Debug, Clone, Default)]
pub struct How {
    /// Columns of the terminal, if it is one.
    pub width: Option<u16>,
    /// With the origins of values.
    pub verbose: bool,
    /// What whoever asks calls threads, by LWP: a debugger has numbers of its own for them. One that begins with `*` is marked so in
    /// tables.
    pub labels: HashMap<i32, String>,
    /// The reports of its children follow.
    pub with_children: bool,
    /// A debugger shows it, which has views by other names, and stops instead of looks.
    pub in_debugger: bool,
}

/// What the command has, and what there is of it in any debugger.
const IN_DEBUGGER: [(&str, &str); 6] = [
    ("`--samples 2` shows", "A later stop shows"),
    ("; `--samples 2 --interval 10s` looks longer", ""),
    ("at the next look as well (--samples 2)", "at a later stop as well"),
    ("see `threads -v`", "the verbose list of threads says why"),
    ("`threads -v` says why", "the verbose list of threads says why"),
    ("`stacks` shows who", "the stacks show who"),
];

/// A text of the report in words that hold in a debugger too.
fn for_debugger(text: &str) -> String {
    let mut text = text.to_owned();
    for (command, debugger) in IN_DEBUGGER {
        if text.contains(command) {
            text = text.replace(command, debugger);
        }
    }
    text
}

/// Renders one view, with colours as terminals take them.
pub fn render(inspection: &Inspection, view: View, how: How) -> String {
    let with_children = how.with_children;
    let mut page = Page::of(inspection, how);
    if let View::Stacks(StackView::Graph(format)) = view {
        return stacks::graph(&page, inspection, format);
    }
    match view {
        View::Waits(Form::Dot | Form::Svg) => return graph::waits(inspection),
        View::Tasks(Form::Dot | Form::Svg) => return graph::dependences(inspection),
        _ => {}
    }
    match view {
        View::Why(lwp) => {
            why::render(&mut page, inspection, lwp);
            return page.out;
        }
        View::Stack(lwp) => {
            stacks::of_thread(&mut page, inspection, lwp);
            return page.out;
        }
        _ => {}
    }
    if view.has_verdicts() {
        verdicts::render(&mut page, inspection, matches!(view, View::Waits(_)));
    }
    nameless_program(&mut page, inspection);
    head(&mut page, inspection);
    if view == View::Summary {
        children::render(&mut page, inspection, with_children);
    }
    crowd(&mut page, inspection);
    if inspection.runtimes.is_empty() {
        page.blank();
        page.wrapped("", Style::new(), &no_runtime(inspection), 0);
    }
    if matches!(view, View::Waits(_)) {
        remarks(&mut page, inspection);
    }
    if let Some(progress) = &inspection.progress {
        progress::render(&mut page, inspection, progress);
    }
    show(&mut page, inspection, view);
    issues(&mut page, inspection);
    page.out
}

/// Why functions and variables of the program appear as addresses, if they do: it is read before the first of these is.
fn nameless_program(page: &mut Page, inspection: &Inspection) {
    let Some(exe) = inspection.process.exe.as_ref().filter(|exe| inspection.unopened.contains(exe)) else { return };
    let text = format!(
        "The program file {} could not be read, so functions and variables of the program have no names. \
         Give a copy of it with --exe PATH.",
        escape(exe)
    );
    page.wrapped("NOTE  ", HEADING, &text, 6);
    page.blank();
}

/// What a view shows, without what stands above and below it.
fn show(page: &mut Page, inspection: &Inspection, view: View) {
    match view {
        View::Waits(_) => each(page, inspection, waits::render),
        View::Summary => summary::render(page, inspection),
        View::Doctor => doctor::render(page, inspection),
        View::Threads => {
            each(page, inspection, threads::render);
            threads::foreign(page, inspection);
        }
        View::Teams => each(page, inspection, teams::render),
        View::Tasks(Form::Tree) => each(page, inspection, tasks::render_tree),
        View::Tasks(_) => each(page, inspection, tasks::render),
        View::Loops => each(page, inspection, loops::render),
        View::Icvs => icvs::render(page, inspection),
        View::Stacks(StackView::Rows) => stacks::render(page, inspection, false),
        View::Stacks(StackView::All) => stacks::render(page, inspection, true),
        View::Stacks(StackView::Tree) => stacks::render_tree(page, inspection),
        // These have no page with a title.
        View::Stacks(StackView::Graph(_)) | View::Why(_) | View::Stack(_) => {}
    }
}

/// What a view shows, without colours and without what stands above and below it.
pub(crate) fn body(inspection: &Inspection, view: View, how: How) -> String {
    let mut page = Page::of(inspection, how);
    show(&mut page, inspection, view);
    plain(page.out.trim_matches('\n'))
}

/// What threads wait for in one of several runtimes, by LWP.
fn waits_of_several(inspection: &Inspection) -> HashMap<i32, String> {
    if inspection.runtimes.len() < 2 {
        return HashMap::new();
    }
    let threads = inspection.runtimes.iter().flat_map(|runtime| &runtime.threads);
    let waits = threads.filter_map(|thread| {
        let wait = thread.wait.value()?.as_ref().filter(|wait| wait.kind != WaitKind::Pool)?;
        Some((thread.lwp?, words::waiting(wait)))
    });
    waits.collect()
}

fn doing_outside(outside: &Outside) -> Option<(i32, Doing)> {
    let from = outside.call.as_ref().map(|_| outside::words(outside));
    Some((outside.lwp, Doing { what: outside::what(outside)?, from, waits: outside.wait.is_some() }))
}

/// The same without colours.
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// What stands above a view, but the title: children, how many threads share the processors, and what moved between looks.
pub(crate) fn about(inspection: &Inspection, how: How) -> String {
    let mut page = Page::of(inspection, how);
    children::render(&mut page, inspection, false);
    crowd(&mut page, inspection);
    if let Some(progress) = &inspection.progress {
        progress::render(&mut page, inspection, progress);
    }
    plain(page.out.trim_matches('\n'))
}

/// Which process, and behind that how many threads it has, how it was read and at what cost.
pub(crate) fn title(inspection: &Inspection) -> (String, String) {
    let process = &inspection.process;
    let name = process.exe.as_deref().or(process.command.as_deref());
    let name = name.map(|name| format!("({})", escape(name.rsplit('/').next().unwrap_or(name))));
    // A long name goes to a line of its own.
    let (lead, name) = match (process.pid, name) {
        (Some(pid), Some(name)) => (format!("Process {pid} "), format!("{name}: ")),
        (None, Some(name)) => ("Process ".to_owned(), format!("{name}: ")),
        (Some(pid), None) => (format!("Process {pid}: "), String::new()),
        (None, None) => ("Process: ".to_owned(), String::new()),
    };
    let how = match (inspection.kind, inspection.pause) {
        (TargetKind::Core, _) => match process.signal {
            Some(signal) if signal != 0 => {
                let from = if process.signal_sent { ", sent from outside" } else { "" };
                format!("core file, ended by {}{from}", words::signal(signal))
            }
            _ => "core file".to_owned(),
        },
        (TargetKind::Live, Some(_)) if inspection.stops == 0 => "live, not stopped".to_owned(),
        (TargetKind::Live, Some(pause)) if inspection.stopped_threads.is_some() => {
            let stopped =
                words::count(inspection.stopped_threads.unwrap_or_default(), "thread").replace(' ', &TIE.to_string());
            format!("live, {stopped} stopped{TIE}for{TIE}{:.1}{TIE}ms", pause.as_secs_f64() * 1e3)
        }
        (TargetKind::Live, Some(pause)) => {
            let after = if inspection.read_asleep { ", read after that while all threads slept" } else { "" };
            format!("live, stopped{TIE}for{TIE}{:.1}{TIE}ms{after}", pause.as_secs_f64() * 1e3)
        }
        (TargetKind::Live, None) => "live".to_owned(),
        (TargetKind::Debugged, _) => "held by a debugger".to_owned(),
    };
    let threads = words::count(inspection.threads.len(), "thread").replace(' ', &TIE.to_string());
    (lead, format!("{name}{threads}, {how}"))
}

fn head(page: &mut Page, inspection: &Inspection) {
    let (lead, rest) = title(inspection);
    page.wrapped(&lead, HEADING, &rest, 4);
    if let Some(by) = &inspection.process.held_by {
        let text = format!(
            "{} (process {}) holds it: nothing in it moves until that process lets it continue",
            escape(&by.name),
            by.pid
        );
        page.wrapped("", ALARM, &text, 0);
    }
    if inspection.process.frozen {
        let text = "Its control group is frozen: nothing in it moves until the group is thawed";
        page.wrapped("", ALARM, text, 0);
    }
    if inspection.process.stopped {
        let text = "It is stopped by SIGSTOP or Ctrl-Z: nothing in it moves until it gets SIGCONT (kill -CONT)";
        page.wrapped("", ALARM, text, 0);
    }
    for thread in &inspection.threads {
        if let Some(signal) = thread.signal {
            page.styled(ALARM, format_args!("{} received {}", page.thread(thread.lwp), words::signal(signal)));
        }
    }
}

/// How many threads of how many pools share how many processors.
fn crowd(page: &mut Page, inspection: &Inspection) {
    let crowd = process::crowd(&inspection.runtimes);
    if crowd.threads == 0 {
        return;
    }
    let mut text = words::count(crowd.threads, "OpenMP thread");
    if let Some(cpus) = &inspection.process.cpus {
        let _ = write!(text, " on {}", words::count(cpus.allowed as usize, "cpu"));
        if let Some(quota) = cpus.quota.filter(|quota| *quota < f64::from(cpus.allowed)) {
            let _ = write!(text, " (its control group may use {quota:.1})");
        }
    }
    if crowd.pools > 0 {
        let _ = write!(text, " in {}", words::count(crowd.pools, "pool"));
    }
    if crowd.gone > 0 {
        let _ = write!(
            text,
            "; {} in its pools {} not exist in this process (ended, left behind by a fork, or not begun yet)",
            words::count(crowd.gone, "thread"),
            if crowd.gone == 1 { "does" } else { "do" }
        );
    }
    page.wrapped("", Style::new(), &text, 0);
}

/// What makes threads wait without being wrong.
fn remarks(page: &mut Page, inspection: &Inspection) {
    for remark in remarks::remarks(inspection) {
        page.blank();
        page.wrapped("NOTE  ", HEADING, &remark.text, 6);
        page.wrapped("      ", FAINT, &remark.fix, 6);
    }
}

/// Says that there is none only if every mapped file was looked at.
pub(crate) fn no_runtime(inspection: &Inspection) -> String {
    if inspection.unlisted {
        return "Whether an OpenMP runtime was loaded is not known: the core shows no file that was mapped. Write it again with \
                coredump_filter 0x33."
            .to_owned();
    }
    if inspection.unopened.is_empty() && inspection.nameless {
        return "No OpenMP runtime was found in what has symbols.".to_owned();
    }
    if inspection.unopened.is_empty() {
        let names: Vec<&str> = families().flat_map(|about| about.libraries).copied().collect();
        return format!(
            "No OpenMP runtime is loaded in this process: no mapped file defines the functions of {}.",
            words::or(&names)
        );
    }
    let (likely, others): (Vec<&String>, Vec<&String>) =
        inspection.unopened.iter().partition(|path| is_named_like_a_runtime(path));
    let count = words::count(inspection.unopened.len(), "mapped file");
    let mut text = format!("No OpenMP runtime was found in what could be read; {count} could not be looked at");
    const NAMED: usize = 8;
    let named = |paths: &[&String]| {
        let names: Vec<String> = paths.iter().take(NAMED).map(|path| escape(path)).collect();
        let more = paths.len().saturating_sub(NAMED);
        format!("{}{}", names.join(", "), if more > 0 { format!(" and {more} more") } else { String::new() })
    };
    if likely.is_empty() {
        let _ = write!(text, ": {}", named(&others));
    } else {
        let _ = write!(text, ". By their names these are runtimes: {}", named(&likely));
    }
    text
}

fn runtime_heading(page: &mut Page, snapshot: &RuntimeSnapshot) {
    page.blank();
    let instance = &snapshot.instance;
    page.styled(HEADING, format_args!("{}  {}", instance.product, escape(&instance.path)));
}

fn each(page: &mut Page, inspection: &Inspection, view: fn(&mut Page, &RuntimeSnapshot)) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        view(page, snapshot);
    }
}

/// Issues, the most telling first; many of a kind are cut, `-v` and JSON have all.
fn issues(page: &mut Page, inspection: &Inspection) {
    const SHOWN: usize = 5;
    let all: Vec<_> = inspection.all_issues().collect();
    if all.is_empty() {
        return;
    }
    page.blank();
    page.styled(ALARM, format_args!("Incomplete: {}", words::count(all.len(), "issue")));
    let shown = if page.verbose { all.len() } else { SHOWN };
    for issue in all.iter().take(shown) {
        page.wrapped(
            "  ",
            Style::new(),
            &format!("{}: {}", escape(&issue.subject), escape(&issue.what.to_string())),
            4,
        );
    }
    if all.len() > shown {
        page.line(format_args!("  … and {} more (-v shows all)", all.len() - shown));
    }
}

#[cfg(test)]
mod tests {
    use ompd_runtime::os::Blocked;
    use ompd_runtime::samples::{FUTEX, Process, wait};

    use super::*;
    use crate::samples::judged;

    /// Its own team sees such a thread do nothing, but for what the other runtime knows.
    #[test]
    fn wait_that_another_runtime_knows_is_told_in_every_team() {
        let (mut one, mut other) = (Process::new(), Process::new());
        let teams = [&mut one, &mut other].map(|process| process.team());
        one.member(teams[0], FUTEX, None);
        one.member(teams[0], Blocked::No, None);
        other.member(teams[1], FUTEX, wait(WaitKind::Taskwait, teams[1]));
        let os = one.os.clone();
        let inspection = judged(vec![one.snapshot.into(), other.snapshot.into()], os);
        let page = Page::of(&inspection, How::default());
        let doing =
            |runtime: usize, lwp| page.doing(inspection.runtimes[runtime].thread_by_lwp(lwp).expect("a thread"));
        assert_eq!([doing(0, 1), doing(1, 1)], ["waits in taskwait"; 2]);
        assert_eq!(doing(0, 2), "running");
    }

    fn wrapped(width: Option<u16>, lead: &str, text: &str) -> String {
        let mut page = Page::empty(width);
        page.wrapped(lead, Style::new(), text, 2);
        page.out
    }

    #[test]
    fn what_is_put_otherwise_for_a_debugger_is_said_somewhere() {
        let texts = [
            include_str!("../tell/fix.rs"),
            include_str!("../tell/evidence.rs"),
            include_str!("../remarks.rs"),
            include_str!("../answer.rs"),
            include_str!("summary.rs"),
        ];
        for (command, _) in IN_DEBUGGER {
            assert!(texts.iter().any(|text| text.contains(command)), "{command}");
        }
    }

    #[test]
    fn a_debugger_is_not_told_of_options_of_the_command() {
        let shown = |in_debugger| {
            let mut page = Page { in_debugger, ..Page::empty(Some(200)) };
            page.line("This may be normal. `--samples 2` shows whether it moves.");
            page.wrapped(
                "- ",
                Style::new(),
                "nothing of this moved in 0.5 s; `--samples 2 --interval 10s` looks longer",
                2,
            );
            page.finish()
        };
        assert!(shown(false).contains("`--samples 2` shows"), "{}", shown(false));
        assert_eq!(
            shown(true),
            "This may be normal. A later stop shows whether it moves.\n- nothing of this moved in 0.5 s\n"
        );
    }

    #[test]
    fn lines_break_between_words_at_the_width_of_the_page() {
        let words = |count: usize| vec!["123456789"; count].join(" ");
        let (three, four) = (words(3), words(4));
        // Four words and three blanks have 39 columns.
        assert_eq!(wrapped(Some(40), "", &four), format!("{four}\n"));
        assert_eq!(wrapped(Some(40), "", &format!("{four} a")), format!("{four}\n  a\n"));
        assert_eq!(wrapped(Some(40), "a", &four), format!("a{four}\n"));
        assert_eq!(wrapped(Some(40), "ab", &four), format!("ab{three}\n  123456789\n"));
        // A page has 40 columns at least, and 80 if nobody says how many.
        assert_eq!(wrapped(Some(10), "", &four), format!("{four}\n"));
        assert_eq!(wrapped(None, "", &words(9)), format!("{}\n  123456789\n", words(8)));
        // Lines after the first have room for three.
        assert_eq!(wrapped(Some(40), "", &words(9)), format!("{four}\n  {three}\n  {}\n", words(2)));
        // Blanks before a break are left out, and two blanks elsewhere stay.
        assert_eq!(wrapped(Some(40), "", &format!("a  b{}", words(3))), format!("a  b{three}\n"));
        assert_eq!(wrapped(Some(40), "", &format!("{four}  b")), format!("{four}\n  b\n"));
    }

    #[test]
    fn words_longer_than_a_line_are_broken_and_paths_are_not() {
        let (long, path) = ("x".repeat(50), format!("/{}", "x".repeat(50)));
        let (begin, rest) = long.split_at(36);
        assert_eq!(wrapped(Some(40), "in: ", &long), format!("in: {begin}\n  {rest}\n"));
        assert_eq!(wrapped(Some(40), "in: ", &format!("a {path}")), format!("in: a\n  {path}\n"));
        let (begin, rest) = long.split_at(34);
        assert_eq!(wrapped(Some(40), "in: ", &format!("a {long}")), format!("in: a {begin}\n  {rest}\n"));
        // What reads a pipe gets words whole.
        let longer = "x".repeat(120);
        assert_eq!(wrapped(None, "", &longer), format!("{longer}\n"));
    }

    #[test]
    fn lead_without_room_for_a_word_has_a_line_of_its_own_on_a_narrow_page() {
        let lead = |length| "-".repeat(length);
        assert_eq!(wrapped(Some(40), &lead(31), "123456789"), format!("{}123456789\n", lead(31)));
        assert_eq!(wrapped(Some(40), &lead(32), "123456789"), format!("{}\n  123456789\n", lead(32)));
        assert_eq!(wrapped(Some(60), &lead(52), "123456789"), format!("{}123456789\n", lead(52)));
    }

    #[test]
    fn table_on_a_terminal_fits_it_and_a_row_in_a_file_is_one_line() {
        let rows = || vec![vec!["1".to_owned(), ["123456789"; 12].join(" ")]];
        let shown = |width| {
            let mut page = Page::empty(width);
            page.blank();
            page.table(&["thread", "does"], rows());
            page.out
        };
        let longest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(shown(Some(60)).lines().count() > 3 && longest(&shown(Some(60))) <= Some(60));
        assert_eq!(shown(None).lines().count(), 3, "a blank line, a head and a row");
        // Only pages of less than 60 columns have records.
        let wide = || vec![vec!["x".repeat(30); 3]];
        let begins = |width| {
            let mut page = Page::empty(Some(width));
            page.table(&["a", "b", "c"], wide());
            page.out.starts_with(" a x")
        };
        assert_eq!((begins(59), begins(60)), (true, false));
    }

    #[test]
    fn tied_words_stay_in_one_line() {
        let text = format!("{} b{TIE}c", ["123456789"; 4].join(" ").trim_end_matches('9'));
        assert_eq!(wrapped(Some(40), "", &text), "123456789 123456789 123456789 12345678\n  b c\n");
    }

    #[test]
    fn table_on_a_narrow_page_becomes_records() {
        let rows = || vec![vec!["1".to_owned(), "-".to_owned(), "waits_for_a_lock".to_owned(), String::new()]];
        let header = ["thread", "team", "does", "where"];
        let shown = |width| {
            let mut page = Page::empty(Some(width));
            page.table(&header, rows());
            page.out
        };
        // Its words and two blanks for each column have 8 + 6 + 18 + 7 columns.
        assert_eq!(shown(40).lines().count(), 2, "a head and a row");
        assert_eq!(shown(39).lines().count(), 2, "a head and a row");
        assert_eq!(shown(38), " thread 1  does waits_for_a_lock\n");
        let mut page = Page::empty(Some(40));
        page.records(&["a", "b", "c"], vec![vec!["1".to_owned(), "x".repeat(20), "y".repeat(20)]]);
        assert_eq!(page.out, format!(" a 1  b {},\n    c {}\n", "x".repeat(20), "y".repeat(20)));
        assert!(is_too_wide(&header, &rows(), 38) && !is_too_wide(&header, &rows(), 39));
    }

    #[test]
    fn columns_on_the_left_keep_their_words_whole() {
        let row = ["a", "0123456789", "01234567890123456789"].map(str::to_owned).to_vec();
        let widths = |width| least_widths(&["x", "yy", "zzz"], std::slice::from_ref(&row), width);
        // Words of 1, 10 and 20 letters, and two blanks for each column.
        assert_eq!(widths(37), [Some(3), Some(12), Some(22)]);
        assert_eq!(widths(36), [Some(3), Some(12), None]);
        // The last column is left with seven.
        assert_eq!(widths(24), [Some(3), Some(12), None]);
        assert_eq!(widths(23), [Some(3), None, None]);
        assert_eq!(widths(0), [None, None, None]);
        // A long word on the left takes no room from words that fit.
        let row = ["01234567890123456789", "01234", "01234"].map(str::to_owned).to_vec();
        assert_eq!(least_widths(&["x", "y", "z"], &[row], 23), [None, Some(7), Some(7)]);
    }

    #[test]
    fn threads_have_the_names_that_their_debugger_gives_them() {
        let mut page = Page::empty(None);
        assert_eq!(page.thread(7), "LWP 7");
        page.labels = HashMap::from([(7, "*1.2".to_owned())]);
        assert_eq!((page.thread(7).as_str(), page.thread(8).as_str()), ("Thread 1.2 (LWP 7)", "LWP 8"));
        let row = |what: &str| vec![what.to_owned()];
        page.thread_table(&["does"], vec![(Some(7), row("waits")), (Some(8), row("runs")), (None, row("ended"))]);
        let lines: Vec<Vec<&str>> = page.out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [["Id", "does"], ["*1.2", "waits"], ["-", "runs"], ["-", "ended"]]);
    }
}
