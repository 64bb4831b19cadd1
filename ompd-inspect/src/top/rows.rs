//! What `top` shows of a refresh: which threads in which order, and the columns that fit.

use std::cmp::Ordering;

use ompd_report::top::{Process, Refresh, Team, Thread};
use ompd_report::words;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of a table without a limit, as for a file.
pub const UNLIMITED: usize = usize::MAX;

/// The order of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// The most processor time first.
    #[default]
    Cpu,
    /// By process and thread id.
    Id,
    /// By process, team and thread number.
    Team,
    /// Waiting threads first, those that wait for the same together.
    Wait,
}

impl Sort {
    /// The order that follows when a key asks for the next one.
    pub fn next(self) -> Sort {
        match self {
            Sort::Cpu => Sort::Id,
            Sort::Id => Sort::Team,
            Sort::Team => Sort::Wait,
            Sort::Wait => Sort::Cpu,
        }
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Cpu => "cpu",
            Sort::Id => "id",
            Sort::Team => "team",
            Sort::Wait => "wait",
        }
    }
}

/// One thread of one process.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    /// The process.
    pub process: &'r Process,
    /// The thread.
    pub thread: &'r Thread,
}

impl Row<'_> {
    /// What is the same of it in the next refresh: process id and thread id.
    pub fn key(&self) -> (i32, i32) {
        (self.process.pid, self.thread.id)
    }
}

/// The threads of processes that have not ended, in order.
pub fn rows(refresh: &Refresh, sort: Sort, hide_idle: bool) -> Vec<Row<'_>> {
    let living = refresh.processes.iter().filter(|process| !process.ended);
    let all = living.flat_map(|process| process.threads.iter().map(move |thread| Row { process, thread }));
    let mut rows: Vec<Row<'_>> = all.filter(|row| !hide_idle || !row.thread.idle).collect();
    rows.sort_by(|one, other| compare(sort, one, other).then_with(|| one.key().cmp(&other.key())));
    rows
}

fn compare(sort: Sort, one: &Row<'_>, other: &Row<'_>) -> Ordering {
    let last = |number: Option<usize>| (number.is_none(), number);
    match sort {
        Sort::Cpu => {
            let cpu = |row: &Row<'_>| row.thread.cpu_percent.unwrap_or(-1.0);
            cpu(other).total_cmp(&cpu(one))
        }
        Sort::Id => Ordering::Equal,
        Sort::Team => {
            let key = |row: &Row<'_>| (row.process.pid, row.thread.runtime, last(row.thread.team), row.thread.number);
            key(one).cmp(&key(other))
        }
        Sort::Wait => {
            let group = |row: &Row<'_>| match (row.thread.waiting, row.thread.idle) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) => 2,
            };
            group(one).cmp(&group(other)).then_with(|| one.thread.doing.cmp(&other.thread.doing))
        }
    }
}

/// A column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Process,
    Id,
    Team,
    Number,
    Level,
    Cpu,
    Loop,
    Doing,
}

impl Column {
    /// From left to right.
    const ALL: [Column; 8] = [
        Column::Process,
        Column::Id,
        Column::Team,
        Column::Number,
        Column::Level,
        Column::Cpu,
        Column::Loop,
        Column::Doing,
    ];

    /// The columns that narrow terminals lack, the least important first, and the room for what a thread does that they would
    /// have to leave.
    const DROPPED: [(Column, usize); 6] = [
        (Column::Level, 40),
        (Column::Team, 30),
        (Column::Loop, 24),
        (Column::Process, 20),
        (Column::Number, 18),
        (Column::Cpu, 18),
    ];

    fn heading(self) -> &'static str {
        match self {
            Column::Process => "PROCESS",
            Column::Id => "ID",
            Column::Team => "TEAM",
            Column::Number => "NUM",
            Column::Level => "LEVEL",
            Column::Cpu => "CPU%",
            Column::Loop => "LOOP",
            Column::Doing => "DOING",
        }
    }

    fn cell(self, row: &Row<'_>) -> String {
        let Row { process, thread } = row;
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        match self {
            Column::Process => match process.rank {
                Some(rank) => format!("{} rank {rank}", process.pid),
                None => process.pid.to_string(),
            },
            Column::Id => thread.id.to_string(),
            Column::Team => or_dash(thread.team.map(|team| team.to_string())),
            Column::Number => match (thread.number, thread.team_size) {
                (Some(number), Some(size)) if thread.team.is_some() => format!("{number}/{size}"),
                (Some(number), _) if !thread.idle => number.to_string(),
                _ => "-".to_owned(),
            },
            Column::Level => or_dash(thread.level.map(|level| level.to_string())),
            Column::Cpu => or_dash(thread.cpu_percent.map(|percent| format!("{percent:.1}"))),
            Column::Loop => {
                let left = || thread.loop_left.map(|left| format!("{left} left"));
                or_dash(thread.loop_percent.map(|percent| format!("{percent}%")).or_else(left))
            }
            Column::Doing => thread.doing.clone(),
        }
    }

    /// Whether any row has something to say there.
    fn is_used(self, refresh: &Refresh) -> bool {
        let threads = || refresh.processes.iter().flat_map(|process| &process.threads);
        match self {
            Column::Process => refresh.processes.len() > 1,
            Column::Loop => threads().any(|thread| thread.loop_percent.is_some() || thread.loop_left.is_some()),
            Column::Level => threads().any(|thread| thread.level.is_some_and(|level| level > 1)),
            _ => true,
        }
    }
}

/// A table of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub heading: String,
    /// A line for each row.
    pub lines: Vec<String>,
}

/// The table of `shown` rows, in at most `width` columns. How wide a column is follows from all threads, so that it stays when
/// the view moves.
pub fn table(refresh: &Refresh, shown: &[Row<'_>], width: usize) -> Table {
    let all = rows(refresh, Sort::Id, false);
    let mut columns: Vec<(Column, usize)> = Column::ALL
        .into_iter()
        .filter(|column| column.is_used(refresh))
        .map(|column| {
            let cells = all.iter().map(|row| column.cell(row).width());
            (column, cells.chain([column.heading().width()]).max().unwrap_or(0))
        })
        .collect();
    let taken = |columns: &[(Column, usize)]| -> usize {
        columns.iter().filter(|(column, _)| *column != Column::Doing).map(|(_, wide)| wide + 1).sum()
    };
    for (dropped, room) in Column::DROPPED {
        if taken(&columns).saturating_add(room) > width {
            columns.retain(|(column, _)| *column != dropped);
        }
    }
    let room = width.saturating_sub(taken(&columns));
    let line = |cell: &dyn Fn(Column) -> String| {
        let mut line = String::new();
        for (column, wide) in &columns {
            match column {
                Column::Doing => line.push_str(&cut(&cell(*column), room)),
                _ => {
                    let text = cell(*column);
                    line.push_str(&" ".repeat(wide.saturating_sub(text.width())));
                    line.push_str(&text);
                    line.push(' ');
                }
            }
        }
        cut(&line, width)
    };
    Table {
        heading: line(&|column| column.heading().to_owned()),
        lines: shown.iter().map(|row| line(&|column| column.cell(row))).collect(),
    }
}

/// A text in at most so many columns; `…` stands for what is cut off.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut column = 0;
    for letter in text.chars() {
        let wide = letter.width().unwrap_or(0);
        if column + wide + 1 > width {
            break;
        }
        out.push(letter);
        column += wide;
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A text in at most three lines of so many columns, broken between words; lines after the first are indented.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    const MOST: usize = 3;
    const INDENT: &str = "    ";
    let mut lines = vec![String::new()];
    for (at, word) in text.split(' ').enumerate() {
        let last = lines.len() == MOST;
        let Some(line) = lines.last_mut() else { break };
        let is_begun = at > 0 && line.as_str() != INDENT;
        if is_begun && !last && line.width() + 1 + word.width() > width && !line.trim().is_empty() {
            lines.push(format!("{INDENT}{word}"));
        } else {
            if is_begun {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// How a line above the table looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A process.
    Heading,
    /// A hang, or that there was no look.
    Alarm,
    /// The rest.
    Plain,
}

/// What stands above the table: a few lines for each process. `teams`: how many teams of a process are shown.
pub fn heads(refresh: &Refresh, teams: usize) -> Vec<(Tone, String)> {
    refresh.processes.iter().flat_map(|process| head(process, teams)).collect()
}

fn head(process: &Process, most_teams: usize) -> Vec<(Tone, String)> {
    let mut who = process.pid.to_string();
    who.extend(process.name.iter().map(|name| format!(" {name}")));
    who.extend(process.rank.map(|rank| format!(", rank {rank}")));
    if process.ended {
        return vec![(Tone::Heading, format!("{who} has ended"))];
    }
    let mut lines = Vec::new();
    if let Some(why) = &process.refusal {
        lines.push((Tone::Alarm, format!("{who}: not read: {why}")));
        if process.pause_ms.is_none() {
            return lines;
        }
    } else {
        lines.push((Tone::Heading, format!("{who}: {}", about(process))));
    }
    match (process.word, &process.answer) {
        (Some(word), Some(answer)) => {
            let tone = if matches!(word, "DEADLOCK" | "SUSPECT" | "STOPPED") { Tone::Alarm } else { Tone::Plain };
            lines.push((tone, format!("  {word}  {answer}")));
        }
        _ => lines.push((Tone::Plain, "  no OpenMP runtime is loaded, or none was recognised (see doctor)".to_owned())),
    }
    let shown = process.teams.iter().take(most_teams);
    lines.extend(shown.map(|team| (Tone::Plain, format!("  {}", of_team(team)))));
    let left = process.teams.len().saturating_sub(most_teams);
    if left > 0 {
        lines.push((Tone::Plain, format!("  … and {}", words::count(left, "more team"))));
    }
    lines
}

/// `GNU libgomp, 64 threads, stopped for 3.1 ms`.
fn about(process: &Process) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !process.runtimes.is_empty() {
        parts.push(process.runtimes.join(" and "));
    }
    let (own, all) = (process.threads.len(), process.os_threads);
    parts.push(if own == all {
        words::count(all, "thread")
    } else {
        format!("{own} of {}", words::count(all, "thread"))
    });
    let stopped =
        |pause: f64| if pause == 0.0 { "not stopped".to_owned() } else { format!("stopped for {pause:.1} ms") };
    parts.extend(process.pause_ms.map(stopped));
    parts.extend(process.tasks.words().map(|tasks| format!("tasks: {tasks}")));
    if process.issues > 0 {
        parts.push(format!("{} (see doctor)", words::count(process.issues, "issue")));
    }
    parts.join(", ")
}

/// What narrow terminals shall have comes first.
fn of_team(team: &Team) -> String {
    let size = team.size.map_or_else(|| "? threads".to_owned(), |size| words::count(size as usize, "thread"));
    let mut parts: Vec<String> = team.barrier.iter().map(|barrier| barrier.words()).collect();
    for of in &team.loops {
        let kind = of.kind.unwrap_or("loop");
        parts.push(format!("{kind}: {}", of.text));
    }
    parts.extend(team.tasks.words().map(|tasks| format!("tasks: {tasks}")));
    parts.extend(team.region.clone());
    if let Some(passed) = team.barriers_passed.filter(|passed| *passed > 0) {
        parts.push(format!("{} passed", words::count(usize::try_from(passed).unwrap_or(usize::MAX), "barrier")));
    }
    format!("team {}, {size}: {}", team.id, parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::samples;

    fn ids(refresh: &Refresh, sort: Sort, hide_idle: bool) -> Vec<i32> {
        rows(refresh, sort, hide_idle).iter().map(|row| row.thread.id).collect()
    }

    #[test]
    fn each_order() {
        let refresh = samples::refresh();
        assert_eq!(ids(&refresh, Sort::Cpu, false), [4713, 4711, 4712, 4714, 90_210]);
        assert_eq!(ids(&refresh, Sort::Id, false), [4711, 4712, 4713, 4714, 90_210]);
        assert_eq!(ids(&refresh, Sort::Team, false), [4711, 4712, 4713, 4714, 90_210]);
        assert_eq!(ids(&refresh, Sort::Wait, false), [4712, 90_210, 4713, 4711, 4714]);
        let mut unknown = refresh.clone();
        unknown.processes[0].threads[2].cpu_percent = None;
        assert_eq!(ids(&unknown, Sort::Cpu, false), [4711, 4712, 4714, 90_210, 4713]);
    }

    #[test]
    fn orders_follow_each_other_in_a_circle() {
        let words: Vec<&str> =
            std::iter::successors(Some(Sort::Cpu), |sort| Some(sort.next())).take(5).map(Sort::word).collect();
        assert_eq!(words, ["cpu", "id", "team", "wait", "cpu"]);
    }

    #[test]
    fn idle_threads_are_hidden_and_ended_processes_have_none() {
        let mut refresh = samples::refresh();
        assert_eq!(ids(&refresh, Sort::Id, true), [4711, 4712, 4713, 90_210]);
        refresh.processes[1].ended = true;
        assert_eq!(ids(&refresh, Sort::Id, true), [4711, 4712, 4713]);
        let head: Vec<String> = heads(&refresh, 9).into_iter().map(|(_, line)| line).collect();
        assert_eq!(head.last().map(String::as_str), Some("90210 solver, rank 3 has ended"));
    }

    #[test]
    fn narrow_tables_lack_what_counts_least() {
        let refresh = samples::refresh();
        let all = rows(&refresh, Sort::Id, false);
        let heading = |width| {
            let heading = table(&refresh, &all, width).heading;
            heading.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(heading(UNLIMITED), "PROCESS ID TEAM NUM LEVEL CPU% LOOP DOING");
        assert_eq!(heading(80), "PROCESS ID TEAM NUM CPU% LOOP DOING");
        assert_eq!(heading(69), "PROCESS ID TEAM NUM CPU% LOOP DOING");
        assert_eq!(heading(60), "PROCESS ID NUM CPU% LOOP DOING");
        assert_eq!(heading(54), "PROCESS ID NUM CPU% DOING");
        assert_eq!(heading(40), "ID NUM CPU% DOING");
        assert_eq!(heading(32), "ID CPU% DOING");
        assert_eq!(heading(20), "ID DOING");
    }

    #[test]
    fn no_line_is_wider_than_the_table() {
        let refresh = samples::refresh();
        let all = rows(&refresh, Sort::Id, false);
        for width in 0..120 {
            let table = table(&refresh, &all, width);
            for line in [&table.heading].into_iter().chain(&table.lines) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_letter_of_two_columns_is_not_halved() {
        assert_eq!(cut("計算", 4), "計算");
        assert_eq!(cut("計算", 3), "計…");
        assert_eq!(cut("計算", 2), "…");
        assert_eq!(cut("計算", 0), "");
        assert_eq!(cut("größe", 4), "grö…");
    }

    #[test]
    fn long_alarms_are_wrapped() {
        let text = "  DEADLOCK  thread 1 waits for lock total_lock";
        assert_eq!(wrapped(text, 80), [text]);
        assert_eq!(wrapped(text, 25), ["  DEADLOCK  thread 1", "    waits for lock", "    total_lock"]);
        assert_eq!(wrapped(text, 16), ["  DEADLOCK ", "    thread 1", "    waits for l…"]);
        assert!((0..30).all(|width| wrapped(text, width).iter().all(|line| line.width() <= width)));
    }

    #[test]
    fn a_process_that_was_not_read_says_why() {
        let mut refresh = samples::single();
        refresh.processes[0].refusal = Some("thread 4712 did not stop".to_owned());
        let lines = heads(&refresh, 1);
        assert_eq!(lines[0], (Tone::Alarm, "4711 solver: not read: thread 4712 did not stop".to_owned()));
        assert_eq!(lines[1].1, "  RUNNING  2 of 3 OpenMP threads execute the program");
        refresh.processes[0] = Process { pid: 1, refusal: Some("denied".to_owned()), ..Process::default() };
        assert_eq!(heads(&refresh, 1), [(Tone::Alarm, "1: not read: denied".to_owned())]);
    }

    #[test]
    fn teams_beyond_the_limit_are_counted() {
        let mut refresh = samples::single();
        let team = refresh.processes[0].teams[0].clone();
        refresh.processes[0].teams = vec![team; 4];
        let lines = heads(&refresh, 1);
        assert_eq!(
            lines[2].1,
            "  team 0, 3 threads: barrier not reached by 0,2; loop: 52 of 100 handed out (52%); tasks: 1 executing, 12 queued; \
             parallel in main (relax.c:52); 3 barriers passed"
        );
        assert_eq!(lines[3].1, "  … and 3 more teams");
    }
}
