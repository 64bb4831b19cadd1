//! Reading of reports: one of a process, a list of them, or reports that are merged already.
//!
//! Whoever runs a rank can write what he likes into its report. What does not fit is an error, and nothing of it counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::merged::{
    Answers, Counted, Counter, Extent, Frames, MOST, Members, Merged, Motion, MpiCall, Partner, Place, Process,
    Reached, SCHEMA,
};
use crate::names::Names;
use crate::plain::{self, LETTERS, plain};

/// The format of the report of one process.
const ONE: &str = "ompd-inspect/1";
/// The format of a list of reports.
const LIST: &str = "ompd-inspect-list/1";
/// Documents begin with the name of their format, which stands within so many bytes.
const HEAD: usize = 128;
/// What the report of a core has as its source.
const CORE: &str = "core";
/// Frames of a stack that are kept, from the outermost on.
const FRAMES: usize = 128;
/// Letters of the name of a job or host that are kept. Each entry has them.
const NAME: usize = 128;
/// Bytes of the longest text that is kept, with what stands for its end or for a number in it.
const LONGEST: usize = 4 * LETTERS + 16;

/// Why a report was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is no JSON of this kind.
    #[error("no report: {0}")]
    Json(String),
    /// It does not begin as a document of JSON does.
    #[error("no report: this is no JSON document")]
    NoJson,
    /// It is an array.
    #[error("no report: it is an array of JSON; write its elements one after the other (jq -c '.[]')")]
    Array,
    /// It is JSON of another kind.
    #[error("no report of a known format: {}", if .0.is_empty() { "it has no schema".to_owned() } else { format!("its schema is {:?}", .0) })]
    Schema(String),
    /// Another version has made it.
    #[error("its format is {0:?}: use the merge of the ompd-inspect that has made it")]
    Version(String),
    /// It is a merged report with more in one entry than any has.
    #[error("no merged report: a text or stack in it is too long")]
    Long,
}

impl From<serde_json::Error> for ReadError {
    /// Without the line and column: those of many documents differ in these alone.
    fn from(error: serde_json::Error) -> ReadError {
        let text = error.to_string();
        let place = text.rfind(" at line ").unwrap_or(text.len());
        ReadError::Json(plain::short(&text[..place]))
    }
}

/// Reads a document. `source` names it where something in it is to be named.
///
/// # Errors
/// When it is no report.
pub fn read(source: &str, text: &[u8]) -> Result<Merged, ReadError> {
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => return Err(ReadError::Array),
        Some(b'{') | None => {}
        Some(_) => return Err(ReadError::NoJson),
    }
    // Programs that sort the keys of a document put it further back.
    let schema = match first_value(text) {
        Some(schema) => Cow::Borrowed(schema),
        None => serde_json::from_slice::<Kind<'_>>(text)?.schema,
    };
    if schema == SCHEMA {
        let read: Merged = serde_json::from_slice(text)?;
        if !fits(&read) {
            return Err(ReadError::Long);
        }
        // Limits of sets and lists are kept by merging.
        let mut merged = Merged::default();
        merged.merge(read);
        return Ok(merged);
    }
    if schema != ONE && schema != LIST {
        let is_ours = [ONE, LIST, SCHEMA].iter().any(|known| {
            let (name, _) = known.split_once('/').unwrap_or_default();
            schema.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        });
        let schema = plain::short(&schema);
        return Err(if is_ours { ReadError::Version(schema) } else { ReadError::Schema(schema) });
    }
    let document: Document<'_> = serde_json::from_slice(text)?;
    match &*schema {
        ONE => Ok(one(source, &document)),
        _ => {
            let mut all = Merged::default();
            for member in &document.processes {
                match (&member.report, &member.refusal) {
                    (Some(report), _) => all.merge(one(&member.target, report)),
                    (None, reason) => {
                        let reason = reason.as_deref().unwrap_or("it has no report");
                        let first = reason.lines().next().unwrap_or_default();
                        all.add_failure(&member.target, first);
                    }
                }
            }
            Ok(all)
        }
    }
}

/// The value of the first key, if that is `schema`.
fn first_value(text: &[u8]) -> Option<&str> {
    let head = &text[..text.len().min(HEAD)];
    let head = head.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"schema\"")?;
    let value = head.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&value[..end]).ok().filter(|value| !value.contains('\\'))
}

/// Which format it has.
#[derive(Deserialize)]
struct Kind<'d> {
    #[serde(borrow, default)]
    schema: Cow<'d, str>,
}

/// True if no text or stack of a merged report is longer than those that are made of reports.
fn fits(merged: &Merged) -> bool {
    let short = |text: &String| text.len() <= LONGEST;
    let known = |process: &Process| short(&process.job) && process.host.as_ref().is_none_or(short);
    let members = |of: &Members| of.ranks.keys().all(short) && of.others.iter().chain(&of.examples).all(known);
    let answer = |answer: &Answers| {
        short(&answer.word)
            && short(&answer.text)
            && answer.cause.as_ref().is_none_or(short)
            && answer.fix.as_ref().is_none_or(short)
    };
    let call = |call: &MpiCall| {
        let optional = [&call.place, &call.communicator];
        short(&call.function) && optional.into_iter().flatten().all(short)
    };
    let extent = |of: &Extent| members(&of.members) && of.least.iter().chain(&of.most).all(|at| known(&at.process));
    let stack = |stack: &Frames| stack.frames.len() <= FRAMES + 1 && stack.frames.iter().all(short);
    merged.sizes.keys().all(short)
        && members(&merged.inspected)
        && members(&merged.not_alone)
        && merged.hosts.keys().all(short)
        && merged.answers.iter().all(|(key, of)| answer(key) && members(of))
        && merged.places.iter().all(|(key, of)| short(&key.text) && members(of))
        && merged.stacks.iter().all(|(key, of)| stack(key) && members(of))
        && merged.calls.iter().all(|(key, of)| call(key) && members(of))
        && merged.partners.iter().all(|(key, of)| short(&key.job) && short(&key.function) && members(of))
        && merged.motions.values().all(members)
        && merged.counters.iter().all(|(key, of)| short(&key.region) && extent(of))
        && merged
            .failures
            .iter()
            .all(|(key, of)| short(&key.reason) && of.targets.keys().all(short) && members(&of.processes))
        && merged.more.iter().all(short)
}

/// As far as it is needed.
#[derive(Deserialize)]
struct Document<'d> {
    #[serde(borrow, default)]
    source: Cow<'d, str>,
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
    #[serde(borrow, default)]
    threads: Vec<Member<'d>>,
}

#[derive(Deserialize)]
struct Member<'d> {
    #[serde(default)]
    lwp: Option<i32>,
    #[serde(borrow, default)]
    role: Known<Cow<'d, str>>,
    #[serde(default)]
    wait: Known<IgnoredAny>,
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
    #[serde(default)]
    next: Known<i64>,
    #[serde(default)]
    step: Known<i64>,
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
    let job = rank.and_then(|rank| rank.job.as_deref()).map(|job| plain::cut(job, NAME)).unwrap_or_default();
    let mut process = Process {
        job: job.clone(),
        rank: rank.map(|rank| rank.number),
        host: about.host.as_deref().map(|host| plain::cut(host, NAME)),
        pid: about.pid,
    };
    if process.rank.is_none() && (process.pid.is_none() || report.source == CORE) {
        // Nothing else tells one core from another: processes of several hosts may have the same id.
        process.job = plain::cut(source, NAME);
    }
    let members = Members::one(&process);
    let mut all = Merged { inspected: members.clone(), ..Merged::default() };
    if let Some(size) = rank.and_then(|rank| rank.size) {
        all.sizes.insert(job.clone(), size);
    }
    if let Some(host) = &process.host {
        all.hosts = Names::host(host);
    }
    let answer = report.answer.as_ref().map_or_else(
        || Answers {
            word: "UNKNOWN".to_owned(),
            text: "no OpenMP runtime was found".to_owned(),
            cause: None,
            fix: None,
        },
        |answer| Answers {
            word: plain::short(&answer.word),
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
    // What a merged report would not keep is left out before each entry gets its members.
    while stacks.len() > MOST {
        stacks.pop_last();
        all.more.insert("stacks".to_owned());
    }
    let counted = stacks.into_iter().map(|(frames, count)| {
        let members = Members { threads: Some((count, count)), ..members.clone() };
        (frames, members)
    });
    all.stacks = counted.collect();
    let main = report.stacks.iter().find(|stack| Some(stack.lwp) == about.pid).or(report.stacks.first());
    let call = about.pid.and_then(|pid| calls.get(&pid).copied());
    if let Some(text) = call.and_then(place_of_call).or_else(|| main.and_then(place_of_stack)) {
        all.places.insert(Place { text }, members.clone());
    }
    let acting = acting(report);
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
        let not_alone = acting.len() > usize::from(acting.contains(&thread.lwp));
        if not_alone {
            all.not_alone = members.clone();
        }
        if let Some(rank) = partner.filter(|_| process.rank.is_some()) {
            let partner = Partner { job: job.clone(), rank, function: plain::short(function), not_alone };
            all.partners.insert(partner, members.clone());
        }
        *in_mpi.entry(MpiCall { function: plain::short(function), place, communicator }).or_default() += 1;
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

/// Threads that may do something: of OpenMP those that wait for nothing of it, and others that have called a library.
fn acting(report: &Document<'_>) -> BTreeSet<i32> {
    let all = || report.runtimes.iter().flat_map(|runtime| &runtime.threads);
    let acts =
        |member: &&Member<'_>| member.wait.value.is_none() && member.role.value.as_deref() != Some("idle worker");
    let members: BTreeSet<i32> = all().filter_map(|member| member.lwp).collect();
    let calls = |thread: &&Thread<'_>| thread.outside.as_ref().is_some_and(|outside| outside.call.is_some());
    let others = report.os_threads.iter().filter(calls).map(|thread| thread.lwp).filter(|lwp| !members.contains(lwp));
    all().filter(acts).filter_map(|member| member.lwp).chain(others).collect()
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
        Some(plain::short(&function.map_or(place.clone(), |function| format!("{place}, in {function}"))))
    };
    let mut all = Vec::new();
    let mut add = |what: Counted, region: String, count, of| {
        let counter = Counter { what, region };
        all.push((counter, Reached { count, of, process: process.clone() }));
    };
    for of in &runtime.loops {
        let Some(region) = runtime.teams.get(of.team).and_then(region) else { continue };
        let next = of.next.value.filter(|_| of.step.value.is_some_and(|step| step > 0));
        match (of.handed_out.value.and_then(|count| i64::try_from(count).ok()), next) {
            (Some(count), _) => {
                let all = of.iterations.value.and_then(|all| i64::try_from(all).ok());
                add(Counted::HandedOut, region, count, all);
            }
            // Where a loop begins is not always recorded.
            (None, Some(next)) => add(Counted::Next, region, next, None),
            (None, None) => {}
        }
    }
    for team in &runtime.teams {
        let count = team.barriers_passed.and_then(|count| i64::try_from(count).ok());
        if let Some((count, region)) = count.zip(region(team)) {
            add(Counted::Barriers, region, count, None);
        }
    }
    all
}

/// `app.c:13, in exchange`.
fn place_of_caller(call: &Call<'_>) -> Option<String> {
    let caller = named(call.caller.as_ref()).map(|caller| format!("in {caller}"));
    let parts: Vec<String> = [line(call.file.as_deref(), call.line), caller].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| plain::short(&parts.join(", ")))
}

fn frames(stack: &Stack<'_>, call: Option<&Call<'_>>) -> Frames {
    let outermost_first = stack.frames.iter().rev();
    // What a library does within the call differs from moment to moment.
    let within = call.and_then(|call| {
        let called = |frame: &Frame<'_>| frame.function.as_deref().is_some_and(|name| name == call.function);
        let calls =
            |frame: &Frame<'_>| frame.function == call.caller && frame.line.is_some() && frame.line == call.line;
        let caller = outermost_first.clone().rposition(calls).map(|at| at + 1);
        caller.or_else(|| outermost_first.clone().position(called))
    });
    let kept = within.unwrap_or(stack.frames.len()).min(FRAMES);
    let mut frames: Vec<String> = outermost_first.take(kept).map(frame).collect();
    if let Some(function) = call.and_then(|call| named(Some(&call.function))) {
        frames.push(plain::short(function));
    } else if let Some(within) = &stack.in_call
        && let Some(what) = named(within.function.as_ref()).or(named(within.construct.as_ref()))
    {
        frames.push(plain::short(what));
    }
    Frames { frames }
}

/// `solve  app.c:40`.
fn frame(frame: &Frame<'_>) -> String {
    let name = match (named(frame.construct.as_ref()), named(frame.function.as_ref())) {
        (Some(construct), Some(function)) => format!("#pragma omp {construct} in {function}"),
        (Some(construct), None) => format!("#pragma omp {construct}"),
        (None, Some(function)) => function.to_string(),
        (None, None) => module_place(frame).unwrap_or_else(|| "?".to_owned()),
    };
    match line(frame.file.as_deref(), frame.line) {
        Some(line) => plain::short(&format!("{name}  {line}")),
        None => plain::short(&name),
    }
}

/// `libsolver.so+0x1040`.
fn module_place(frame: &Frame<'_>) -> Option<String> {
    Some(format!("{}+{}", frame.module.as_ref()?, frame.offset.as_ref()?))
}

fn line(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let file = file?;
    Some(format!("{}:{}", file.rsplit('/').next().unwrap_or(file), line?))
}

fn place_of_call(call: &Call<'_>) -> Option<String> {
    let parts = [named(Some(&call.function)).map(str::to_owned), place_of_caller(call)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| plain::short(&parts.join(", ")))
}

/// A name that has letters.
fn named<'n>(name: Option<&'n Cow<'_, str>>) -> Option<&'n str> {
    name.map(|name| &**name).filter(|name| !name.trim().is_empty())
}

fn place_of_stack(stack: &Stack<'_>) -> Option<String> {
    let frame = stack.frames.iter().find(|frame| frame.line.is_some()).or(stack.frames.first())?;
    let call = stack.in_call.as_ref();
    let call = call.and_then(|call| named(call.construct.as_ref()).or(named(call.function.as_ref())));
    let within = named(frame.function.as_ref()).map(str::to_owned).or_else(|| module_place(frame));
    let within = within.map(|within| format!("in {within}"));
    let parts = [call.map(str::to_owned), line(frame.file.as_deref(), frame.line), within];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| plain::short(&parts.join(", ")))
}
