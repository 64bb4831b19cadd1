//! Where in the program a thread is, in a few words.

use ompd_inspection::Inspection;
use ompd_runtime::model::SourceLine;
use ompd_runtime::os::Blocked;
use ompd_stack::{Language, LogicalFrame};

use crate::escape::escape;
use crate::{outside, short};

/// `hang.c:37, in sweep`: the innermost frame of the program's source. `recorded` is the line that the runtime has for what the
/// thread does.
pub fn innermost(inspection: &Inspection, lwp: i32, recorded: Option<&SourceLine>) -> Option<String> {
    let stack = inspection.stacks.logical.iter().find(|stack| stack.lwp == lwp);
    let has_place = |frame: &&LogicalFrame| frame.line.is_some() || frame.construct.is_some();
    // The lines of Python's interpreter are not those of its user.
    let is_users = |frame: &&LogicalFrame| has_place(frame) && !inspection.stacks.is_interpreters(frame);
    let frame = stack.and_then(|stack| {
        let mut frames = stack.frames.iter();
        frames.clone().find(is_users).or_else(|| frames.find(has_place))
    });
    let exact = frame.and_then(|frame| Some(line(frame.file.as_deref()?, frame.line?)));
    let recorded = recorded.map(|line| escape(&line.to_string()));
    // A call that the compiler gave no line.
    let around = || {
        let construct = frame.and_then(|frame| frame.construct.as_ref())?;
        let at = line(construct.file.as_deref()?, construct.line?);
        let name = construct.name.word();
        Some(if construct.begins { format!("{name} from {at}") } else { format!("{name} at {at}") })
    };
    // The body of a region that has no line: the line of the call that opened the region.
    let opened = || {
        let body = frame.filter(|frame| frame.construct.is_some())?;
        let mut outer = stack?.frames.iter().skip_while(|other| !std::ptr::eq(*other, body)).skip(1);
        let opener = outer.find(|frame| frame.line.is_some()).filter(|frame| frame.language == Language::Compiled)?;
        Some(format!("region from {}", line(opener.file.as_deref()?, opener.line?)))
    };
    let function =
        frame.and_then(|frame| frame.function.as_deref()).map(|name| format!("in {}", escape(&short::name(name))));
    // Of code that Python calls, the Python function is what its user knows.
    let is_python = |frame: &&LogicalFrame| frame.language == Language::Python;
    let python = stack.filter(|_| !frame.is_some_and(|frame| is_python(&frame))).and_then(|stack| {
        let caller = stack.frames.iter().find(is_python)?;
        Some(format!("called at {} in Python", line(caller.file.as_deref()?, caller.line?)))
    });
    let place = exact.or(recorded).or_else(around).or_else(opened);
    let parts: Vec<String> = place.into_iter().chain(function).chain(python).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn line(file: &str, line: u32) -> String {
    format!("{}:{line}", escape(file.rsplit('/').next().unwrap_or(file)))
}

/// What a thread does that waits for nothing of OpenMP, and where.
pub fn of(inspection: &Inspection, lwp: i32) -> String {
    let threads = &inspection.os.threads;
    let blocked = threads.binary_search_by_key(&lwp, |os| os.lwp).ok().map(|at| threads[at].blocked);
    if let Some(Blocked::Interpreter(holder)) = blocked {
        let place = innermost(inspection, lwp, None).map_or_else(String::new, |place| format!(", {place}"));
        return format!("waits for Python's GIL, held by the thread with id {holder}{place}");
    }
    let called = inspection.outside(lwp).map(|outside| (outside::words(outside), outside.call.is_some()));
    match (called, innermost(inspection, lwp, None)) {
        (Some((words, true)), _) | (Some((words, _)), None) => words,
        (Some((words, false)), Some(place)) => format!("{words}, {place}"),
        (None, Some(place)) => format!("running, {place}"),
        (None, None) => "running".to_owned(),
    }
}
