//! Reading of reports: one of a process, a list of them, or reports that are merged already.
//!
//! Whoever runs a rank can write what he likes into its report. What does not fit is an error, and nothing of it counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::hosts::Hosts;
use crate::merged::{
    Answers, Counter, Extent, Failure, Frames, Members, Merged, Motion, MpiCall, Partner, Place, Process, Reached,
    SCHEMA,
};

/// The format of the report of one process.
const ONE: &str = "ompd-inspect/1";
/// The format of a list of reports.
const LIST: &str = "ompd-inspect-list/1";
/// The name of the format stands within so many bytes: it is what documents begin with.
const HEAD: usize = 128;
/// Frames of a stack that are kept, from the outermost on.
const FRAMES: usize = 128;
/// Letters of a text that are kept.
const LETTERS: usize = 512;

/// Why a report was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON of this kind.
    #[error("no report: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON of another kind.
    #[error("no report of a known format: schema {0:?}")]
    Schema(String),
}

/// Reads a document. `source` names it where something in it is to be named.
///
/// # Errors
/// When it is no report.
pub fn read(source: &str, text: &[u8]) -> Result<Merged, ReadError> {
    let head = &text[..text.len().min(HEAD)];
    if head.windows(SCHEMA.len()).any(|window| window == SCHEMA.as_bytes()) {
        let merged: Merged = serde_json::from_slice(text)?;
        return if merged.schema == SCHEMA { Ok(merged) } else { Err(ReadError::Schema(cut(&merged.schema))) };
    }
    let document: Document<'_> = serde_json::from_slice(text)?;
    match &*document.schema {
        ONE => Ok(one(source, &document)),
        LIST => {
            let mut all = Merged::default();
            for member in &document.processes {
                match (&member.report, &member.refusal) {
                    (Some(report), _) => all.merge(one(&member.target, report)),
                    (None, reason) => {
                        let reason = reason.as_deref().unwrap_or("it has no report");
                        let first = reason.lines().next().unwrap_or_default();
                        let failure = Failure { target: cut(&member.target), reason: cut(first) };
                        all.failures.insert(failure, Members::default());
                    }
                }
            }
            Ok(all)
        }
        other => Err(ReadError::Schema(cut(other))),
    }
}

/// As far as it is needed.
#[derive(Deserialize)]
struct Document<'d> {
    #[serde(borrow, default)]
    schema: Cow<'d, str>,
    #[serde(borrow, default)]
    process: About<'d>,
    #[serde(borrow, default)]
    answer: Option<Answer<'d>>,
    #[serde(borrow, default)]
    os_threads: Vec<Thread<'d>>,
    #[serde(borrow, default)]
    stacks: Vec<Stack<'d>>,
    #[serde(borrow, default)]
    runtimes: Vec<Runtime<'d>>,
    #[serde(default)]
    progress: Option<Progress>,
    #[serde(default)]
    stopped_at: Option<f64>,
    #[serde(borrow, default)]
    processes: Vec<Listed<'d>>,
}

#[derive(Deserialize)]
struct Listed<'d> {
    #[serde(borrow, default)]
    target: Cow<'d, str>,
    #[serde(borrow, default)]
    report: Option<Box<Document<'d>>>,
    #[serde(borrow, default)]
    refusal: Option<Cow<'d, str>>,
}

#[derive(Deserialize, Default)]
struct About<'d> {
    #[serde(default)]
    pid: Option<i32>,
    #[serde(borrow, default)]
    host: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    rank: Option<Rank<'d>>,
}

#[derive(Deserialize)]
struct Rank<'d> {
    number: u64,
    #[serde(default)]
    size: Option<u64>,
    #[serde(borrow, default)]
    job: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
struct Answer<'d> {
    #[serde(borrow)]
    word: Cow<'d, str>,
    #[serde(borrow)]
    text: Cow<'d, str>,
    #[serde(borrow, default)]
    cause: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    fix: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
struct Thread<'d> {
    lwp: i32,
    #[serde(borrow, default)]
    outside: Option<Outside<'d>>,
}

#[derive(Deserialize)]
struct Outside<'d> {
    #[serde(borrow, default)]
    call: Option<Call<'d>>,
    #[serde(borrow, default)]
    wait: Option<Wait<'d>>,
}

#[derive(Deserialize)]
struct Wait<'d> {
    #[serde(borrow, default)]
    mpi: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    communicator: Known<Cow<'d, str>>,
    #[serde(default)]
    partner: Known<i64>,
}

#[derive(Deserialize)]
struct Runtime<'d> {
    #[serde(borrow, default)]
    teams: Vec<Team<'d>>,
    #[serde(default)]
    loops: Vec<Loop>,
}

#[derive(Deserialize)]
struct Team<'d> {
    #[serde(borrow, default)]
    location: Known<Location<'d>>,
    #[serde(default)]
    barriers_passed: Option<u64>,
}

/// Empty where it is unknown.
#[derive(Deserialize)]
struct Known<T> {
    #[serde(default = "Option::default")]
    value: Option<T>,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Known { value: None }
    }
}

#[derive(Deserialize)]
struct Location<'d> {
    #[serde(borrow, default)]
    file: Option<Cow<'d, str>>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(borrow, default)]
    function: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
struct Loop {
    team: usize,
    #[serde(default)]
    iterations: Known<u64>,
    #[serde(default)]
    handed_out: Known<u64>,
}

#[derive(Deserialize)]
struct Progress {
    #[serde(default)]
    threads: Vec<Moved>,
    #[serde(default)]
    other_threads: Vec<Moved>,
    #[serde(default)]
    teams: Vec<Moved>,
    #[serde(default)]
    teams_begun: u64,
    #[serde(default)]
    teams_ended: u64,
}

#[derive(Deserialize)]
struct Moved {
    #[serde(default)]
    moved: Option<bool>,
}

#[derive(Deserialize)]
struct Call<'d> {
    #[serde(borrow)]
    function: Cow<'d, str>,
    #[serde(borrow, default)]
    file: Option<Cow<'d, str>>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(borrow, default)]
    caller: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
struct Stack<'d> {
    lwp: i32,
    #[serde(borrow, default)]
    frames: Vec<Frame<'d>>,
    #[serde(borrow, default)]
    in_call: Option<InCall<'d>>,
}

#[derive(Deserialize)]
struct InCall<'d> {
    #[serde(borrow, default)]
    construct: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    function: Option<Cow<'d, str>>,
}

#[derive(Deserialize)]
struct Frame<'d> {
    #[serde(borrow, default)]
    function: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    construct: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    file: Option<Cow<'d, str>>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(borrow, default)]
    module: Option<Cow<'d, str>>,
    #[serde(borrow, default)]
    offset: Option<Cow<'d, str>>,
}

fn one(source: &str, report: &Document<'_>) -> Merged {
    let about = &report.process;
    let rank = about.rank.as_ref();
    let job = rank.and_then(|rank| rank.job.as_deref()).map(cut).unwrap_or_default();
    let mut process = Process {
        job: job.clone(),
        rank: rank.map(|rank| rank.number),
        host: about.host.as_deref().map(cut),
        pid: about.pid,
    };
    if process.rank.is_none() && process.pid.is_none() {
        // Nothing else tells one core from another.
        process.job = cut(source);
    }
    let members = Members::one(&process);
    let mut all = Merged { inspected: members.clone(), ..Merged::default() };
    if let Some(size) = rank.and_then(|rank| rank.size) {
        all.sizes.insert(job.clone(), size);
    }
    if let Some(host) = &process.host {
        all.hosts = Hosts::one(host);
    }
    let answer = report.answer.as_ref().map_or_else(
        || Answers {
            word: "UNKNOWN".to_owned(),
            text: "no OpenMP runtime was found".to_owned(),
            cause: None,
            fix: None,
        },
        |answer| Answers {
            word: cut(&answer.word),
            text: plain(&answer.text),
            cause: answer.cause.as_deref().map(plain),
            fix: answer.fix.as_deref().map(plain),
        },
    );
    all.answers.insert(answer, members.clone());
    let calls: BTreeMap<i32, &Call<'_>> = report
        .os_threads
        .iter()
        .filter_map(|thread| Some((thread.lwp, thread.outside.as_ref()?.call.as_ref()?)))
        .collect();
    let mut stacks: BTreeMap<Frames, u64> = BTreeMap::new();
    for stack in &report.stacks {
        *stacks.entry(frames(stack, calls.get(&stack.lwp).copied())).or_default() += 1;
    }
    let counted = stacks.into_iter().map(|(frames, count)| {
        let members = Members { threads: Some((count, count)), ..members.clone() };
        (frames, members)
    });
    all.stacks = counted.collect();
    let main = report.stacks.iter().find(|stack| Some(stack.lwp) == about.pid).or(report.stacks.first());
    let call = about.pid.and_then(|pid| calls.get(&pid).copied());
    if let Some(text) = call.map(place_of_call).or_else(|| main.and_then(place_of_stack)) {
        all.places.insert(Place { text }, members.clone());
    }
    let mut in_mpi: BTreeMap<MpiCall, u64> = BTreeMap::new();
    for thread in &report.os_threads {
        let Some(outside) = &thread.outside else { continue };
        let Some((wait, function)) = outside.wait.as_ref().and_then(|wait| Some((wait, wait.mpi.as_deref()?))) else {
            continue;
        };
        let place = outside.call.as_ref().and_then(place_of_caller);
        // Handles of others say nothing outside of their process.
        let communicator = wait.communicator.value.as_deref().map(|name| match name {
            "MPI_COMM_WORLD" | "MPI_COMM_SELF" => name.to_owned(),
            _ => "another".to_owned(),
        });
        let in_world = communicator.as_deref() == Some("MPI_COMM_WORLD");
        let partner = wait.partner.value.and_then(|rank| u64::try_from(rank).ok()).filter(|_| in_world);
        if let Some(rank) = partner.filter(|_| process.rank.is_some()) {
            all.partners.insert(Partner { job: job.clone(), rank, function: cut(function) }, members.clone());
        }
        *in_mpi.entry(MpiCall { function: cut(function), place, communicator }).or_default() += 1;
    }
    let counted = |count| Members { threads: Some((count, count)), ..members.clone() };
    all.calls = in_mpi.into_iter().map(|(call, count)| (call, counted(count))).collect();
    if let Some(progress) = &report.progress {
        all.motions.insert(motion(progress), members.clone());
    }
    for (counter, reached) in report.runtimes.iter().flat_map(|runtime| counters(runtime, &process)) {
        // Of several teams at one place the one that is least far holds the process up.
        let extent = Extent::one(reached);
        let least = all.counters.get(&counter).is_none_or(|known| extent.least < known.least);
        if least {
            all.counters.insert(counter, extent);
        }
    }
    let milliseconds = report.stopped_at.map(|seconds| seconds * 1e3).filter(|time| *time >= 0.0);
    all.stopped_at = milliseconds.map(|time| (time as u64, time as u64));
    all
}

fn motion(progress: &Progress) -> Motion {
    let has_changed = progress.teams_begun.saturating_add(progress.teams_ended) > 0;
    let all = progress.threads.iter().chain(&progress.other_threads).chain(&progress.teams);
    let moved = all.filter_map(|of| of.moved).reduce(|one, other| one || other);
    Motion { moved: if has_changed { Some(true) } else { moved } }
}

/// What a runtime counts of its teams that have a place.
fn counters(runtime: &Runtime<'_>, process: &Process) -> Vec<(Counter, Reached)> {
    let region = |team: &Team<'_>| {
        let location = team.location.value.as_ref()?;
        let place = line(location.file.as_deref(), location.line)?;
        let function = location.function.as_deref().filter(|function| !function.is_empty());
        Some(cut(&function.map_or(place.clone(), |function| format!("{place}, in {function}"))))
    };
    let mut all = Vec::new();
    let mut add = |what: &str, region: String, count, of| {
        let counter = Counter { what: what.to_owned(), region };
        all.push((counter, Reached { count, of, process: process.clone() }));
    };
    for of in &runtime.loops {
        let Some(count) = of.handed_out.value else { continue };
        if let Some(region) = runtime.teams.get(of.team).and_then(region) {
            add("iterations handed out", region, count, of.iterations.value);
        }
    }
    for team in &runtime.teams {
        if let Some((count, region)) = team.barriers_passed.zip(region(team)) {
            add("barriers passed", region, count, None);
        }
    }
    all
}

/// `app.c:13, in exchange`.
fn place_of_caller(call: &Call<'_>) -> Option<String> {
    let caller = call.caller.as_deref().map(|caller| format!("in {caller}"));
    let parts: Vec<String> = [line(call.file.as_deref(), call.line), caller].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| cut(&parts.join(", ")))
}

fn frames(stack: &Stack<'_>, call: Option<&Call<'_>>) -> Frames {
    let mut frames: Vec<String> = stack.frames.iter().rev().take(FRAMES).map(frame).collect();
    if let Some(call) = call {
        frames.push(cut(&call.function));
    } else if let Some(within) = &stack.in_call
        && let Some(what) = within.function.as_deref().or(within.construct.as_deref())
    {
        frames.push(cut(what));
    }
    Frames { frames }
}

/// `solve  app.c:40`.
fn frame(frame: &Frame<'_>) -> String {
    let name = match (&frame.construct, &frame.function) {
        (Some(construct), Some(function)) => format!("#pragma omp {construct} in {function}"),
        (Some(construct), None) => format!("#pragma omp {construct}"),
        (None, Some(function)) => function.to_string(),
        (None, None) => match (&frame.module, &frame.offset) {
            (Some(module), Some(offset)) => format!("{module}+{offset}"),
            _ => "?".to_owned(),
        },
    };
    match line(frame.file.as_deref(), frame.line) {
        Some(line) => cut(&format!("{name}  {line}")),
        None => cut(&name),
    }
}

fn line(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let file = file?;
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), line?))
}

fn place_of_call(call: &Call<'_>) -> String {
    let parts = [Some(call.function.to_string()), place_of_caller(call)];
    cut(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn place_of_stack(stack: &Stack<'_>) -> Option<String> {
    let frame = stack.frames.iter().find(|frame| frame.line.is_some()).or(stack.frames.first())?;
    let call = stack.in_call.as_ref().and_then(|call| call.construct.as_deref().or(call.function.as_deref()));
    let function = frame.function.as_deref().map(|function| format!("in {function}"));
    let parts = [call.map(str::to_owned), line(frame.file.as_deref(), frame.line), function];
    Some(cut(&parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

/// The text without the ids and addresses of one process: `thread 0 (id 4711)` is `thread 0`.
fn plain(text: &str) -> String {
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
        let numbered = ["id ", "LWP ", "process ", "PID "].into_iter().find_map(|name| {
            let after = rest.strip_prefix(name)?;
            (digits(after) > 0).then(|| (name, &after[digits(after)..]))
        });
        if let Some((name, after)) = numbered.filter(|_| !out.ends_with(|letter: char| letter.is_alphanumeric())) {
            out.push_str(name);
            out.push('N');
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("0x") {
            out.push_str("0xN");
            rest = &after[after.bytes().take_while(u8::is_ascii_hexdigit).count()..];
            continue;
        }
        let letter = rest.chars().next().unwrap_or_default();
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    cut(&out)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn ids_of_one_process_are_left_out() {
        assert_eq!(plain("thread 3 (id 22819): waits for lock a"), "thread 3: waits for lock a");
        assert_eq!(plain("the thread with id 77 waits for 0x7f00"), "the thread with id N waits for 0xN");
        assert_eq!(plain("waitpid for process 25 (child, b)"), "waitpid for process N (child, b)");
        assert_eq!(plain("grid 4, avoid 5"), "grid 4, avoid 5");
    }
}
