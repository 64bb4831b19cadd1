//! Processes, ranks and numbers in words, safe to print.

use std::fmt;

use ompd_report::escape::escape;

use crate::merged::{Members, Process, Targets};
use crate::plain::cut;
use crate::ranks::RankSet;

/// Letters of a set of ranks or names; a longer one is cut.
pub(crate) const LETTERS: usize = 60;
/// Jobs whose ranks are shown.
const JOBS: usize = 3;

/// Hangs first, then what may be one, then the rest.
pub(crate) fn order(word: &str) -> usize {
    const WORDS: [&str; 8] = ["DEADLOCK", "SUSPECT", "CRASHED", "STOPPED", "WAITING", "BLOCKED", "UNKNOWN", "RUNNING"];
    WORDS.iter().position(|known| *known == word).unwrap_or(WORDS.len())
}

/// True for the answers that are a hang.
pub fn is_hang(word: &str) -> bool {
    order(word) < 2
}

/// `rank 5 (n3, pid 5369)`, `4,095 ranks (0-4,6-4095; rank 0: n1, pid 12)`.
pub(crate) fn who(members: &Members) -> String {
    match (members.len(), members.first()) {
        (1, Some(process)) => name(process),
        (count, Some(process)) if members.others.is_empty() => {
            let all = of_jobs(members, numbers);
            format!("{} ({all}), first {}", counted(count, "rank"), name(process))
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
        None => of_jobs(members, ranks),
    }
}

/// The ranks of each job; of many jobs those of the first.
fn of_jobs(members: &Members, tell: impl Fn(&RankSet) -> String) -> String {
    let mut parts: Vec<String> = members.ranks.values().take(JOBS).map(tell).collect();
    if let Some(more) = more(members.ranks.len(), JOBS, "job") {
        parts.push(format!("and of {more}"));
    }
    parts.join("; ")
}

/// The ranges that fit; `…` stands for more.
fn numbers(set: &RankSet) -> String {
    let mut out = String::new();
    for part in set.parts() {
        if out.len() + part.len() > LETTERS {
            return out + ",…";
        }
        let comma = if out.is_empty() { "" } else { "," };
        out += comma;
        out += &part;
    }
    out
}

pub(crate) fn ranks(set: &RankSet) -> String {
    match set.len() {
        1 => format!("rank {set}"),
        count => format!("{} ({})", counted(count, "rank"), numbers(set)),
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
            let pid = match process.pid {
                // Of a core the name tells which process it is.
                Some(pid) if !process.job.is_empty() => format!("process {pid} ({})", escape(&process.job)),
                Some(pid) => format!("process {pid}"),
                None => escape(&process.job),
            };
            host.map_or(pid.clone(), |host| format!("{pid} on {host}"))
        }
    }
}

impl fmt::Display for Targets {
    /// Safe to print: `3 (host n[1-3])`, `rank 5 (n3, pid 5369)`, `4 ranks (0-3), first rank 0 (n1, pid 12)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Targets { targets, processes } = self;
        if !targets.is_empty() {
            let names = cut(&escape(&targets.to_string()), LETTERS);
            match targets.len() {
                1 => f.write_str(&names)?,
                count => write!(f, "{} ({names})", digits(count))?,
            }
        }
        if !processes.is_empty() {
            let comma = if targets.is_empty() { "" } else { ", " };
            write!(f, "{comma}{}", who(processes))?;
        }
        Ok(())
    }
}

/// `3 more answers`; `None` if all are shown.
pub(crate) fn more(count: usize, shown: usize, what: &str) -> Option<String> {
    let more = count.checked_sub(shown).filter(|more| *more > 0)?;
    Some(counted(more as u64, &format!("more {what}")))
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = match (count, what) {
        (1, _) => "",
        (_, what) if what.ends_with(['s', 'h']) => "es",
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
