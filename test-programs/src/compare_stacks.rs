//! What a report says of logical stacks against what the process says of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::compare::list;
use crate::stacks::{Expected, Line};
use crate::{Comparison, Kind, Opt, Runtime, Stack, StackFrame, Truth, Wait};

/// Beginnings of names of functions that belong to a runtime, and never to a logical stack.
const RUNTIME_PREFIXES: [&str; 6] = ["GOMP_", "gomp_", "__kmp", "__kmpc_", "kmp_", "omp_"];

/// Compares the field `stacks` of a report, of a process that runs on `runtime`, with what the process says of its
/// logical stacks.
///
/// Which frames are expected: see [`Truth::stacks`] and the rule at `Truth::expected`. Of the report may be more:
///
/// - frames of other source files than those the truth names, or of none, anywhere: the program's own helpers, the C
///   library, a signal frame. But none of the runtime.
/// - the stacks of threads that are idle.
///
/// Of the report may be less where it says so: frames before one that is `around` them.
///
/// Names are compared as [`StackFrame::has_name`] says, files by their base names. Of a combined construct (`parallel for`)
/// `parallel` is enough. Lines are the same with GCC 12 and clang 14 at every optimisation level. They are the line of the call,
/// and for a construct, however it is compiled, that of its pragma.
///
/// What nothing can show, such as a name or a line in a stripped program, is unknown, not a difference. So is a stack that
/// reports itself as incomplete, from where it ends.
pub fn compare_stacks(truth: &Truth, report: &Value, runtime: Runtime, opt: Opt) -> Comparison {
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
    compare_task_frames(truth, report, opt, &mut all);
    let sources: BTreeSet<&str> =
        truth.stacks.iter().flat_map(|s| &s.frames).map(|frame| frame.file.as_str()).collect();
    for stack in &truth.stacks {
        let role = truth.thread(stack.lwp).map_or("", |thread| thread.role.as_str());
        let of = format!("{role} (LWP {})", stack.lwp);
        match stacks.iter().find(|found| found["lwp"] == stack.lwp) {
            Some(found) => Pair { truth, stack, found, sources: &sources, of, opt }.compare(&mut all),
            None => all.lacks(format!("{of}: no stack reported")),
        }
    }
    all
}

/// The field `stacks` of a report that tells what is certain, and nothing else.
pub fn true_stacks(truth: &Truth) -> Value {
    let frame = |expected: Expected<'_>| {
        let told = expected.frame;
        let mut frame = json!({ "function": told.function, "file": told.file });
        let mut add = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                frame[field] = value;
            }
        };
        add("construct", told.construct.as_deref().map(Value::from));
        add("construct_line", told.construct_line.map(Value::from));
        add("line", told.line.filter(|_| expected.line == Line::Certain).map(Value::from));
        add("inlined", told.inlined.then_some(Value::from(true)));
        add("lwp", expected.lwp.map(Value::from));
        frame
    };
    let stack = |stack: &Stack| {
        let frames: Vec<Value> = truth.expected(stack).into_iter().map(frame).collect();
        json!({ "lwp": stack.lwp, "frames": frames, "end": { "complete": true } })
    };
    Value::Array(truth.stacks.iter().map(stack).collect())
}

/// The frames of each thread's task that border on the runtime.
fn compare_task_frames(truth: &Truth, report: &Value, opt: Opt, all: &mut Comparison) {
    if report["runtimes"].is_null() {
        // Only the stacks of a report.
        return;
    }
    for stack in &truth.stacks {
        let told = stack.frames.first().and_then(|frame| truth.stack_task(frame.task));
        let Some(told) = told.filter(|task| task.cfa.0 != 0 && task.kind != Kind::Initial) else { continue };
        // Where the last act was a jump, the body may be gone.
        if stack.frames.iter().take_while(|f| f.task == told.id).any(|f| f.tail || f.line.is_none()) {
            continue;
        }
        let of = format!("task of LWP {}", stack.lwp);
        let task = list(&report["runtimes"]).iter().find_map(|runtime| {
            let thread =
                list(&runtime["threads"]).iter().find(|t| t["lwp"] == stack.lwp && !t["task"]["value"].is_null())?;
            let index = usize::try_from(thread["task"]["value"].as_u64()?).ok()?;
            list(&runtime["tasks"]).get(index)
        });
        let undeferred = task.is_some_and(|task| task["kind"]["value"] == "undeferred");
        let Some(frames) = task.map(|task| &task["frames"]).filter(|frames| !frames.is_null()) else {
            // clang inlines what it calls for an undeferred task: then there is no such frame.
            if undeferred && opt != Opt::O0 {
                continue;
            }
            all.lacks(format!("{of}: its frames"));
            continue;
        };
        let address = |name: &str| {
            let digits = frames[name].as_str().and_then(|text| text.strip_prefix("0x"));
            digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        };
        all.equal(&format!("{of}: thread of its frames"), &frames["lwp"].as_i64(), &Some(i64::from(stack.lwp)));
        // clang may put a function around the body.
        all.holds(address("exit").is_some_and(|exit| exit >= told.cfa.0 && exit - told.cfa.0 < 4096), || {
            format!("{of}: exit frame {}, in truth {:?}", frames["exit"], told.cfa)
        });
        let in_program = truth.thread(stack.lwp).is_some_and(|thread| thread.wait == Wait::Pipe);
        all.holds(address("enter").is_none() == in_program, || format!("{of}: enter frame {}", frames["enter"]));
        all.holds(address("enter").is_none_or(|enter| Some(enter) <= address("exit")), || {
            format!("{of}: enter frame {} lies outward of exit frame {}", frames["enter"], frames["exit"])
        });
    }
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
            if found["function"].is_null() {
                let lost = expected.len().saturating_sub(index);
                all.lacks(format!("{of}: {} has no name; {lost} frames not compared", show(found)));
                return;
            }
            if self.is(found, frame) {
                self.compare_frame(all, found, frame);
                rest.next();
            } else if found["via"] == "around" {
                // It says that what lies between is not known.
                continue;
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
        // GNU Fortran makes a function main, which calls the main program.
        let last = expected.last().map(|expected| expected.frame);
        let is_main = |found: &Value| found["function"] == "main" && last.is_some_and(StackFrame::is_fortran);
        if let Some(more) = rest.find(|found| !self.is_foreign(found) && !is_main(found)) {
            all.holds(false, || {
                format!("{of}: outward of all that is true: {}\n{}", show(more), self.both(frames, &expected))
            });
        }
    }

    /// No frame of the program's own sources: one the truth does not speak of.
    fn is_foreign(&self, found: &Value) -> bool {
        if !found["construct"].is_null() {
            return false;
        }
        match (found["file"].as_str(), found["module"].as_str()) {
            (Some(file), _) => !self.sources.contains(base_name(file)),
            (None, _) if !found["function"].is_null() => true,
            // Without a name as well, it is the program's if it lies in it, or in its library.
            (None, Some(module)) => !base_name(module).contains(&self.truth.program.name),
            (None, None) => false,
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
        construct && expected.frame.has_name(name)
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
            None if told.line.is_none() || (self.opt != Opt::O0 && told.tail) => {}
            None => all.lacks(format!("{of}: file")),
        }
        match (found["line"].as_u64(), expected.line, told.line) {
            (_, Line::Anywhere, _) => {}
            (Some(line), Line::Certain, Some(told)) => all.equal(&format!("{of}: line"), &line, &u64::from(told)),
            (line, Line::Certain, None) => {
                all.holds(line.is_none(), || format!("{of}: line reported {line:?}, in truth at none"));
            }
            (None, Line::Certain, _) if self.opt != Opt::O0 && told.tail => {}
            (None, Line::Certain, _) => all.lacks(format!("{of}: line")),
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
            (None, Some(_)) if expected.line == Line::Certain && told.line.is_some() && !told.tail => {
                all.holds(false, || format!("{of}: reported to be on no stack"));
            }
            (None, _) => {}
        }
    }

    fn ends_early(&self, all: &mut Comparison, expected: &[Expected<'_>], index: usize) {
        let lost: Vec<String> = expected.iter().skip(index).map(tell).collect();
        let (of, end) = (&self.of, &self.found["end"]);
        let gap = self.found["gap"].as_str();
        if end["complete"] == false || gap.is_some() {
            let why = gap.or(end["reason"].as_str()).unwrap_or("no reason");
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

/// Of a combined construct the runtime sees only its region. With a static schedule GCC calls the same function for a `parallel
/// for` as for a `parallel`. A taskloop generates tasks.
fn same_construct(found: &str, told: &str) -> bool {
    found == told || (found == "parallel" && told.starts_with("parallel ")) || (found == "task" && told == "taskloop")
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
        Line::Certain => frame.line.map_or("no line".to_owned(), |line| line.to_string()),
        Line::Anywhere => "any line".to_owned(),
    };
    format!("{}{construct} at {}:{line}", frame.function, frame.file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three threads of one region. What 7 generated, and left, 8 executes; what 9 generated it executes itself, where
    /// it waits for it.
    fn truth() -> Truth {
        let opener = json!({ "task": 0, "function": "main", "file": "a.c", "line": 10 });
        let body = |task: u32, line: u32| {
            json!({ "task": task, "function": "main", "file": "a.c", "line": line,
                    "construct": "parallel for", "construct_line": 10 })
        };
        let frame =
            |task: u32, name: &str, line: u32| json!({ "task": task, "function": name, "file": "a.c", "line": line });
        let mut relax = frame(3, "ns::relax", 30);
        relax["inlined"] = json!(true);
        let task = |task: u32, line: u32| {
            json!({ "task": task, "function": "solve", "file": "a.c", "line": line,
                    "construct": "task", "construct_line": 5 })
        };
        let mut last = frame(4, "last", 50);
        last["tail"] = json!(true);
        let thread = |role: &str, lwp: i32, wait: &str| {
            let pthread = format!("{lwp:#x}");
            json!({ "thread": { "role": role, "lwp": lwp, "pthread": pthread, "wait": wait } })
        };
        let lines = [
            json!({ "program": { "name": "stacks_test", "pid": 7, "openmp": 1 } }),
            thread("generator", 7, "pipe"),
            thread("executor", 8, "pipe"),
            thread("waiter", 9, "pipe"),
            thread("parked", 6, "idle"),
            json!({ "stack_task": { "id": 0, "kind": "initial", "lwp": 7, "finished": false, "at": [opener] } }),
            json!({ "stack_task": { "id": 1, "kind": "implicit", "lwp": 7, "finished": false, "at": [body(1, 12)] } }),
            json!({ "stack_task": { "id": 2, "kind": "implicit", "lwp": 9, "finished": false,
                                    "at": [frame(2, "wait", 41), body(2, 14)] } }),
            json!({ "stack_task": { "id": 3, "kind": "explicit", "lwp": 8, "finished": false, "at": [] } }),
            json!({ "stack_task": { "id": 4, "kind": "explicit", "lwp": 9, "finished": false, "at": [] } }),
            json!({ "stack": { "lwp": 7, "frames": [body(1, 12), opener] } }),
            json!({ "stack": { "lwp": 8, "frames": [relax, task(3, 6), frame(1, "solve", 5), body(1, 11), opener] } }),
            json!({ "stack": { "lwp": 9, "frames": [last, task(4, 7), frame(2, "solve", 5), body(2, 13), opener] } }),
            json!({ "ready": true, "coordinator": 7 }),
        ];
        Truth::read(&mut lines.iter().map(|line| Ok(line.to_string()))).expect("a truth")
    }

    fn report() -> Value {
        let main = json!({ "function": "main", "file": "/src/a.c", "line": 10, "lwp": 7 });
        let body = |line: u32, lwp: i32| {
            json!({ "function": "main", "construct": "parallel", "construct_line": 10, "file": "/src/a.c",
                    "line": line, "lwp": lwp })
        };
        let task = |line: u32, lwp: i32| {
            json!({ "function": "solve", "construct": "task", "construct_line": 5, "file": "/src/a.c", "line": line,
                    "lwp": lwp })
        };
        let read = json!({ "function": "read", "module": "libc.so.6" });
        let end = json!({ "complete": true, "reason": "main" });
        json!({ "stacks": [
            { "lwp": 7, "frames": [body(12, 7), main], "end": end },
            { "lwp": 8, "end": end, "frames": [
                read,
                { "function": "helper", "file": "/src/b.c", "line": 1 },
                { "function": "void ns::relax(int (*)(int)) const", "file": "a.c", "line": 30, "lwp": 8,
                  "inlined": true },
                task(6, 8),
                body(77, 7),
                main,
            ] },
            { "lwp": 9, "end": end, "frames": [
                read,
                { "function": "last", "file": "a.c", "line": 50, "lwp": 9 },
                task(7, 9),
                { "function": "wait", "file": "a.c", "line": 41, "lwp": 9 },
                body(14, 9),
                main,
            ] },
            { "lwp": 6, "frames": [], "end": end },
        ] })
    }

    fn compare_at(opt: Opt, report: &Value) -> Comparison {
        compare_stacks(&truth(), report, Runtime::Libgomp, opt)
    }

    fn compare(report: &Value) -> Comparison {
        compare_at(Opt::O0, report)
    }

    #[test]
    fn the_truth_is_sound() {
        assert_eq!(truth().contradictions(), Vec::<String>::new());
    }

    #[test]
    fn a_true_report_passes() {
        let all = compare(&report());
        assert!(all.differences.is_empty() && all.unknown.is_empty(), "{all:#?}");
        // 11 frames, each with a name, a file, a line and an LWP, 5 of constructs, the line of one not compared.
        assert!(all.compared > 50, "{all:#?}");
    }

    /// Each frame of the report that is in the truth.
    fn frames() -> impl Iterator<Item = String> {
        let stacks = [(0, 0..2), (1, 2..6), (2, 1..6)];
        stacks.into_iter().flat_map(|(stack, frames)| frames.map(move |f| format!("/stacks/{stack}/frames/{f}")))
    }

    #[test]
    fn a_wrong_value_is_a_difference() {
        let mut tried = 0;
        for frame in frames() {
            for (field, wrong) in [
                ("function", json!("other")),
                ("construct", json!("taskloop")),
                ("construct_line", json!(99)),
                ("file", json!("b.c")),
                ("line", json!(99)),
                ("lwp", json!(99)),
                ("inlined", json!(false)),
            ] {
                let mut report = report();
                let found = report.pointer_mut(&frame).expect("a frame");
                // Of the generating task that has gone on no line is certain.
                if found[field].is_null() && field != "construct" || field == "line" && found["line"] == 77 {
                    continue;
                }
                found[field] = wrong;
                let all = compare(&report);
                assert!(!all.differences.is_empty(), "{frame}/{field}: {all:#?}");
                tried += 1;
            }
        }
        assert_eq!(tried, 60);
    }

    #[test]
    fn a_frame_too_few_or_too_many_is_a_difference() {
        for frame in frames() {
            let (place, index) = frame.rsplit_once('/').expect("a frame");
            let index: usize = index.parse().expect("a number");
            let mut less = report();
            let mut more = report();
            less.pointer_mut(place).and_then(Value::as_array_mut).expect("frames").remove(index);
            let added = json!({ "function": "added", "file": "a.c", "line": 1 });
            more.pointer_mut(place).and_then(Value::as_array_mut).expect("frames").insert(index, added.clone());
            assert_eq!(compare(&less).differences.len(), 1, "without {frame}");
            assert_eq!(compare(&more).differences.len(), 1, "before {frame}");
        }
        for (index, frame) in [(0, "GOMP_barrier"), (2, "__kmp_fork_call")] {
            let mut report = report();
            let frames = report["stacks"][index]["frames"].as_array_mut().expect("frames");
            frames.insert(1, json!({ "function": frame }));
            assert_eq!(compare(&report).differences.len(), 1, "{frame}");
        }
        let mut report = report();
        report["stacks"][0]["frames"]
            .as_array_mut()
            .expect("frames")
            .push(json!({ "function": "main", "file": "a.c" }));
        assert_eq!(compare(&report).differences.len(), 1);
    }

    #[test]
    fn a_stack_too_few_or_too_many() {
        let mut less = report();
        less["stacks"].as_array_mut().expect("stacks").remove(1);
        let all = compare(&less);
        assert_eq!((all.differences.len(), all.unknown.len()), (0, 1), "{all:#?}");
        for (lwp, wrong) in [(7, 1), (5, 1)] {
            let mut more = report();
            let stack = json!({ "lwp": lwp, "frames": [], "end": {} });
            more["stacks"].as_array_mut().expect("stacks").push(stack);
            assert_eq!(compare(&more).differences.len(), wrong, "{lwp}");
        }
        let mut idle = report();
        idle["stacks"].as_array_mut().expect("stacks").push(json!({ "lwp": 5, "frames": [] }));
        idle["runtimes"] = json!([{ "family": "gomp", "threads": [{ "lwp": 5, "role": { "value": "idle worker" } }] }]);
        assert!(compare(&idle).differences.is_empty());
        assert_eq!(compare(&json!({})).differences.len(), 1);
    }

    #[test]
    fn what_is_not_known_is_no_difference() {
        for field in ["line", "file", "construct_line"] {
            let mut report = report();
            report["stacks"][1]["frames"][3].as_object_mut().expect("a frame").remove(field);
            let all = compare(&report);
            assert_eq!((all.differences.len(), all.unknown.len()), (0, 1), "{field}: {all:#?}");
        }
        for (nameless, lost) in [
            (json!({ "address": "0x1", "module": "/bin/stacks_test-gcc-O2" }), 1),
            (json!({ "address": "0x1", "module": "/bin/stacks_test-gcc-O2", "construct": "task" }), 1),
            (json!({ "address": "0x1", "module": "libc.so.6" }), 0),
        ] {
            let mut report = report();
            report["stacks"][1]["frames"].as_array_mut().expect("frames").insert(0, nameless);
            let all = compare(&report);
            assert_eq!((all.differences.len(), all.unknown.len()), (0, lost), "{all:#?}");
        }

        let mut short = report();
        short["stacks"][2]["frames"].as_array_mut().expect("frames").truncate(4);
        assert_eq!(compare(&short).differences.len(), 1);
        short["stacks"][2]["end"] = json!({ "complete": false, "reason": "its generating task has finished" });
        let all = compare(&short);
        assert_eq!((all.differences.len(), all.unknown.len()), (0, 1), "{all:#?}");
        assert!(all.unknown[0].contains("its generating task has finished"), "{all:#?}");
    }

    #[test]
    fn a_frame_that_jumps_may_be_gone_from_optimised_code() {
        let mut report = report();
        report["stacks"][2]["frames"].as_array_mut().expect("frames").remove(1);
        assert_eq!(compare(&report).differences.len(), 1);
        assert!(compare_at(Opt::O2, &report).differences.is_empty());
    }
}
