//! What a report says of logical stacks against what the process says of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::compare::list;
use crate::stacks::{Expected, Line};
use crate::{Comparison, Opt, Runtime, Stack, Toolchain, Truth, Wait};

/// Beginnings of names of functions that belong to a runtime, and never to a logical stack.
const RUNTIME_PREFIXES: [&str; 6] = ["GOMP_", "gomp_", "__kmp", "__kmpc_", "kmp_", "omp_"];

/// Compares the field `stacks` of a report, of a process that runs on `runtime`, with what the process says of its logical
/// stacks.
///
/// Which frames are expected: see [`Truth::stacks`] and the rule at `Truth::expected`. Of the report may be more:
///
/// - frames of other source files than those the truth names, or of none, anywhere: the program's own helpers, the C
///   library, a signal frame. But none of the runtime.
/// - the stacks of threads that are idle.
///
/// A name is compared without its argument list: `solver::Grid<double>::relax(int) const` is
/// `solver::Grid<double>::relax`, with namespaces, classes and template arguments, and without a return type. A file is
/// compared by its base name. What cannot be told at all, a name or a line in a stripped program, is unknown, no difference;
/// so is a stack that says of itself that it is not complete, from where it ends.
pub fn compare_stacks(truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain, opt: Opt) -> Comparison {
    let mut all = Comparison::default();
    let Some(stacks) = report["stacks"].as_array() else {
        all.differences.push("the report has no stacks".to_owned());
        return all;
    };
    let mut seen = BTreeSet::new();
    for stack in stacks {
        let Some(lwp) = stack["lwp"].as_i64() else {
            all.differences.push(format!("a stack without lwp: {stack}"));
            continue;
        };
        all.holds(seen.insert(lwp), || format!("LWP {lwp} has two stacks"));
        let told = i32::try_from(lwp).ok().and_then(|lwp| truth.stack(lwp));
        if told.is_none() {
            all.holds(is_idle(truth, report, lwp, runtime), || {
                format!("LWP {lwp}: a stack of a thread nobody told of")
            });
        }
    }
    let sources: BTreeSet<&str> =
        truth.stacks.iter().flat_map(|s| &s.frames).map(|frame| frame.file.as_str()).collect();
    for stack in &truth.stacks {
        let role = truth.thread(stack.lwp).map_or("", |thread| thread.role.as_str());
        let of = format!("{role} (LWP {})", stack.lwp);
        match stacks.iter().find(|found| found["lwp"] == stack.lwp) {
            Some(found) => Pair { truth, stack, found, sources: &sources, of, toolchain, opt }.compare(&mut all),
            None => all.lacks(format!("{of}: no stack reported")),
        }
    }
    all
}

/// The truth says it is parked, or says nothing, and the report has it as an idle worker.
fn is_idle(truth: &Truth, report: &Value, lwp: i64, runtime: Runtime) -> bool {
    if let Some(thread) = truth.threads.iter().find(|thread| i64::from(thread.lwp) == lwp) {
        return thread.wait == Wait::Idle;
    }
    let family = if runtime.is_kmp() { "kmp" } else { "gomp" };
    let ours = list(&report["runtimes"]).iter().filter(|r| r["family"] == family);
    let mut threads = ours.flat_map(|r| list(&r["threads"]));
    threads.any(|thread| thread["lwp"] == lwp && thread["role"]["value"] == "idle worker")
}

/// One stack, as it is told and as it is reported.
struct Pair<'a> {
    truth: &'a Truth,
    stack: &'a Stack,
    found: &'a Value,
    sources: &'a BTreeSet<&'a str>,
    of: String,
    toolchain: Toolchain,
    opt: Opt,
}

impl Pair<'_> {
    fn compare(&self, all: &mut Comparison) {
        let of = &self.of;
        let frames = list(&self.found["frames"]);
        for frame in frames {
            let name = frame["function"].as_str().unwrap_or_default();
            let runtimes = RUNTIME_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            all.holds(!runtimes, || format!("{of}: a frame of the runtime: {}", show(frame)));
        }
        let expected = self.truth.expected(self.stack);
        let mut rest = frames.iter().peekable();
        for (index, frame) in expected.iter().enumerate() {
            while rest.peek().is_some_and(|found| self.is_foreign(found) && !self.is(found, frame)) {
                rest.next();
            }
            let Some(found) = rest.peek() else {
                if self.may_be_gone(frame) {
                    continue;
                }
                self.ends_early(all, &expected, index);
                return;
            };
            if found["function"].is_null() && found["construct"].is_null() {
                let lost = expected.len().saturating_sub(index);
                all.lacks(format!("{of}: {} has no name; {lost} frames not compared", show(found)));
                return;
            }
            if self.is(found, frame) {
                self.compare_frame(all, found, frame);
                rest.next();
            } else if !self.may_be_gone(frame) {
                all.holds(false, || {
                    format!(
                        "{of}: reported {}, in truth {}\n{}",
                        show(found),
                        tell(frame),
                        self.both(frames, &expected)
                    )
                });
                return;
            }
        }
        if let Some(more) = rest.find(|found| !self.is_foreign(found)) {
            all.holds(false, || {
                format!("{of}: outward of all that is true: {}\n{}", show(more), self.both(frames, &expected))
            });
        }
    }

    /// No frame of the program's own sources: one the truth does not speak of.
    fn is_foreign(&self, found: &Value) -> bool {
        found["construct"].is_null()
            && match found["file"].as_str() {
                Some(file) => !self.sources.contains(base_name(file)),
                // Without a name as well, nothing tells whether it is the program's.
                None => !found["function"].is_null(),
            }
    }

    /// The function and the construct agree.
    fn is(&self, found: &Value, expected: &Expected<'_>) -> bool {
        let name = found["function"].as_str().unwrap_or_default();
        let construct = match (found["construct"].as_str(), expected.frame.construct.as_deref()) {
            (None, None) => true,
            (Some(found), Some(told)) => same_construct(found, told),
            _ => false,
        };
        construct && same_function(name, &expected.frame.function)
    }

    /// Its last act was a jump, if the compiler optimised; the body of a construct is known without a frame.
    fn may_be_gone(&self, expected: &Expected<'_>) -> bool {
        expected.frame.tail && expected.frame.construct.is_none() && self.opt != Opt::O0
    }

    fn compare_frame(&self, all: &mut Comparison, found: &Value, expected: &Expected<'_>) {
        let (of, told) = (format!("{}: {}", self.of, tell(expected)), expected.frame);
        // The function and its construct: two values.
        all.compared += 1 + usize::from(told.construct.is_some());
        match found["file"].as_str() {
            Some(file) => all.equal(&format!("{of}: file"), &base_name(file), &told.file.as_str()),
            None if self.opt != Opt::O0 && told.tail => {}
            None => all.lacks(format!("{of}: file")),
        }
        match (found["line"].as_u64(), expected.line) {
            (Some(line), Line::Certain) => {
                let lines = self.lines(expected);
                all.holds(lines.iter().any(|told| u64::from(*told) == line), || {
                    format!("{of}: line reported {line}, in truth {lines:?}")
                });
            }
            (_, Line::Anywhere) => {}
            (None, Line::Certain) if self.opt != Opt::O0 && told.tail => {}
            (None, Line::Certain) => all.lacks(format!("{of}: line")),
        }
        if let Some(told) = told.construct_line {
            match found["construct_line"].as_u64() {
                Some(line) => all.equal(&format!("{of}: line of the construct"), &line, &u64::from(told)),
                None => all.lacks(format!("{of}: line of the construct")),
            }
        }
        if told.inlined {
            all.holds(found["inlined"] == true, || format!("{of}: not reported as inlined"));
        }
        match (found["lwp"].as_i64(), expected.lwp) {
            (Some(lwp), Some(told)) => all.equal(&format!("{of}: lwp"), &lwp, &i64::from(told)),
            (Some(lwp), None) => all.holds(false, || format!("{of}: reported on LWP {lwp}, in truth finished")),
            (None, Some(_)) if expected.line == Line::Certain && !told.tail => {
                all.holds(false, || format!("{of}: reported to be on no stack"));
            }
            (None, _) => {}
        }
    }

    /// The lines the frame may be reported at.
    fn lines(&self, expected: &Expected<'_>) -> Vec<u32> {
        let _ = self.toolchain;
        Vec::from([expected.frame.line])
    }

    fn ends_early(&self, all: &mut Comparison, expected: &[Expected<'_>], index: usize) {
        let lost: Vec<String> = expected.iter().skip(index).map(tell).collect();
        let (of, end) = (&self.of, &self.found["end"]);
        if end["complete"] == false {
            let why = end["reason"].as_str().unwrap_or("no reason");
            all.lacks(format!("{of}: ends before {} ({why})", lost.join(" / ")));
        } else {
            let frames = list(&self.found["frames"]);
            all.holds(false, || format!("{of}: ends before {}\n{}", lost.join(" / "), self.both(frames, expected)));
        }
    }

    /// Both stacks, for whoever has to find out why they differ.
    fn both(&self, frames: &[Value], expected: &[Expected<'_>]) -> String {
        let mut text = String::from("  reported:");
        for frame in frames {
            let _ = write!(text, "\n    {}", show(frame));
        }
        text.push_str("\n  in truth:");
        for frame in expected {
            let _ = write!(text, "\n    {}", tell(frame));
        }
        text
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Of a combined construct the runtime sees its region only: with a static schedule GCC calls for a `parallel for` what it
/// calls for a `parallel`.
fn same_construct(found: &str, told: &str) -> bool {
    found == told || (found == "parallel" && told.starts_with("parallel "))
}

/// Without its arguments, the reported name is the told one.
fn same_function(found: &str, told: &str) -> bool {
    found == told || without_arguments(found) == told
}

/// `void a::b<int(*)(int)>::c(int) const` without its return type, its argument list and what follows that. The arguments of
/// templates, and of functions that contain a lambda, stay.
pub(crate) fn without_arguments(name: &str) -> &str {
    let name = name.strip_suffix(" const").unwrap_or(name);
    let Some(inner) = name.strip_suffix(')') else { return name };
    let mut depth = 1usize;
    for (at, c) in inner.char_indices().rev() {
        match c {
            ')' | '>' => depth += 1,
            '(' | '<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let name = inner.get(..at).unwrap_or(name);
            return without_return_type(name);
        }
    }
    name
}

/// Only templates have one: what is before the last space that stands in no brackets.
fn without_return_type(name: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' | '>' | '}' => depth += 1,
            '(' | '<' | '{' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => return name.get(at + 1..).unwrap_or(name),
            _ => {}
        }
    }
    name
}

/// A reported frame, in words.
fn show(frame: &Value) -> String {
    let text = |field: &str| frame[field].as_str().unwrap_or("?").to_owned();
    let construct = match frame["construct"].as_str() {
        Some(construct) => format!(" {construct} of line {}", frame["construct_line"]),
        None => String::new(),
    };
    let inlined = if frame["inlined"] == true { ", inlined" } else { "" };
    format!("{}{construct} at {}:{}{inlined} (lwp {})", text("function"), text("file"), frame["line"], frame["lwp"])
}

/// An expected frame, in words.
fn tell(expected: &Expected<'_>) -> String {
    let frame = expected.frame;
    let construct = match (&frame.construct, frame.construct_line) {
        (Some(construct), Some(line)) => format!(" {construct} of line {line}"),
        _ => String::new(),
    };
    let line = match expected.line {
        Line::Certain => frame.line.to_string(),
        Line::Anywhere => "any line".to_owned(),
    };
    format!("{}{construct} at {}:{line}", frame.function, frame.file)
}
