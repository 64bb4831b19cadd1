//! The programs that know their logical stacks. What they say is sound, and their sources say the same. So does gdb,
//! where it is here, for each thread by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use test_programs::{
    Env, Opt, Running, Runtime, Skip, Toolchain, Truth, build, can_build, combinations, compare_stacks, true_stacks,
};

#[path = "common/truth.rs"]
mod truth;

use truth::check_truth;

const OPTS: [Opt; 3] = [Opt::O0, Opt::O2, Opt::O3];

/// Runs `check` on one program in every combination.
fn everywhere(program: &str, check: impl Fn(&Running, Opt) -> Result<()>) -> Result<()> {
    let combinations = combinations();
    ensure!(!combinations.is_empty(), "no toolchain and no runtime here: nothing was tested");
    for (toolchain, runtime) in combinations {
        if let Err(skip) = can_build(program, toolchain)? {
            skip.show();
            continue;
        }
        for opt in OPTS {
            let one = || -> Result<()> {
                let executable = build(program, toolchain, opt, &[])?;
                let running = Running::start(&executable, runtime, Env::Settled)?;
                check_any(&running)?;
                check(&running, opt)?;
                check_comparison(&running, opt)?;
                check_with_gdb(&running, opt)?;
                let steps = running.truth.steps();
                ensure!(running.release()?.progress == steps, "not all of {steps} threads went on");
                Ok(())
            };
            one().with_context(|| format!("{program} by {toolchain:?} {opt:?} on {runtime:?}"))?;
        }
    }
    Ok(())
}

#[test]
fn stripped_and_static_programs_know_the_same() -> Result<()> {
    for program in ["stacks", "stacks_cpp", "stacks_fortran", "stacks_shared"] {
        if let Err(skip) = can_build(program, Toolchain::Gcc)? {
            skip.show();
            continue;
        }
        for flags in [&["-s"][..], &["-static"], &["-static", "-s"]] {
            // A library is not linked statically. At the end of a program with a static libgfortran, that library calls
            // a weak symbol of pthreads that nothing defines. It was seen with GCC 12 and glibc 2.36, at address 0.
            if flags.contains(&"-static") && ["stacks_shared", "stacks_fortran"].contains(&program) {
                continue;
            }
            let executable = match build(program, Toolchain::Gcc, Opt::O2, flags) {
                Ok(executable) => executable,
                Err(error) if flags.contains(&"-static") && format!("{error:#}").contains("cannot find -l") => {
                    Skip::because(format!("no static libraries here: {error:#}")).show();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let one = || -> Result<()> {
                let running = Running::start(&executable, Runtime::Libgomp, Env::Settled)?;
                check_any(&running)?;
                let steps = running.truth.steps();
                ensure!(running.release()?.progress == steps, "not all of {steps} threads went on");
                Ok(())
            };
            one().with_context(|| format!("{program} {flags:?}"))?;
        }
    }
    Ok(())
}

/// What holds for every program that knows its stacks.
fn check_any(running: &Running) -> Result<()> {
    check_truth(running)?;
    check_sources(&running.truth)
}

/// A report of what is certain passes; one that lacks a frame, or has another, does not.
fn check_comparison(running: &Running, opt: Opt) -> Result<()> {
    let truth = &running.truth;
    let report = json!({ "stacks": true_stacks(truth) });
    let all = compare_stacks(truth, &report, running.runtime, opt);
    ensure!(all.differences.is_empty() && all.unknown.is_empty(), "{all:#?}");
    let frames: usize = truth.stacks.iter().map(|stack| stack.frames.len()).sum();
    ensure!(all.compared > frames, "{} values of {frames} frames", all.compared);
    for index in 0..truth.stacks.len() {
        let change = |change: &dyn Fn(&mut Vec<Value>)| -> Result<()> {
            let mut report = report.clone();
            change(report["stacks"][index]["frames"].as_array_mut().context("frames")?);
            let all = compare_stacks(truth, &report, running.runtime, opt);
            ensure!(!all.differences.is_empty(), "no difference in {}", report["stacks"][index]);
            Ok(())
        };
        change(&|frames| drop(frames.pop()))?;
        change(&|frames| frames.iter_mut().for_each(|frame| frame["function"] = json!("nobody")))?;
        change(&|frames| frames.truncate(1))?;
        change(&|frames| {
            let last = frames.last().cloned();
            frames.extend(last);
        })?;
    }
    Ok(())
}

/// Each frame is in the function and at the kind of line it says, each construct at its pragma.
fn check_sources(truth: &Truth) -> Result<()> {
    let mut sources = BTreeMap::new();
    for frame in truth.stacks.iter().flat_map(|stack| &stack.frames) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(&frame.file);
        if !sources.contains_key(&frame.file) {
            sources.insert(frame.file.clone(), fs::read_to_string(&file).with_context(|| file.display().to_string())?);
        }
        let text = sources.get(&frame.file).context("a source")?;
        let line = |number: u32| text.lines().nth(number as usize - 1).unwrap_or_default().trim();
        if let Some(told) = frame.line.map(line) {
            let marks = ["CALL(", "CALL_IN(", "CALL_AT(", "INLINED(", "TAIL("];
            let mark_on_line = marks.iter().any(|mark| told.contains(mark));
            let waits = ["truth_stack_hold(", "truth_stack_ready(", "truth_fortran_ready(", "#pragma omp ", "!$omp "];
            // What a signal interrupts is no call with a mark.
            let interrupted = ["raise(", "touch(", "FRAME static void touch("];
            let wait = [waits.as_slice(), &interrupted].concat();
            let told = told.trim_start_matches("call ");
            let mark_on_line = mark_on_line || told.contains("_Pragma(");
            ensure!(mark_on_line || wait.iter().any(|wait| told.starts_with(wait)), "{frame:?}: the line is {told:?}");
        }
        if let (Some(construct), Some(pragma)) = (&frame.construct, frame.construct_line) {
            let pragma = line(pragma);
            let fortran = construct.replace("for", "do");
            ensure!(
                pragma.starts_with(&format!("#pragma omp {construct}"))
                    || pragma.starts_with(&format!("!$omp {fortran}"))
                    || pragma.contains(&format!("_Pragma(\"omp {construct}")),
                "{frame:?}: the pragma is {pragma:?}"
            );
        }
    }
    Ok(())
}

/// A frame of a program's source, as gdb shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GdbFrame {
    function: String,
    file: String,
    line: u32,
}

impl GdbFrame {
    /// The compiler made it of a construct.
    fn is_outlined(&self) -> bool {
        self.function.contains("._omp_fn.") || self.function.starts_with(".omp_")
    }

    /// Clang makes two functions of a construct: the body, and one that calls it.
    fn only_calls(&self, body: &GdbFrame) -> bool {
        let of_region = body.function.contains("_debug__") && !self.function.contains("_debug__");
        (of_region && self.function.starts_with(".omp_outlined.")) || self.function.starts_with(".omp_task_entry.")
    }
}

/// By LWP, innermost first: the frames of which gdb knows a source that the truth names.
fn gdb_stacks(running: &Running) -> Result<Result<BTreeMap<i32, Vec<GdbFrame>>, Skip>> {
    let sources: BTreeSet<&str> =
        running.truth.stacks.iter().flat_map(|stack| &stack.frames).map(|frame| frame.file.as_str()).collect();
    let mut command = Command::new("gdb");
    // Without this gdb may ask the network for debug files.
    command.env_remove("DEBUGINFOD_URLS").args(["-nx", "-batch", "-p"]).arg(running.pid.to_string());
    for set in ["print frame-arguments none", "print entry-values no"] {
        command.arg("-ex").arg(format!("set {set}"));
    }
    let output = match command.args(["-ex", "thread apply all bt"]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err(Skip::because("gdb is not here to compare with")));
        }
        Err(error) => return Err(error).context("running gdb"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut stacks: BTreeMap<i32, Vec<GdbFrame>> = BTreeMap::new();
    let mut lwp = 0;
    for line in text.lines() {
        if let Some((_, rest)) = line.strip_prefix("Thread ").and_then(|rest| rest.split_once("(LWP ")) {
            let number = rest.split_once(')').context("a thread's number")?.0;
            lwp = number.parse()?;
            stacks.entry(lwp).or_default();
        } else if let Some((call, place)) = line.strip_prefix('#').and_then(|line| line.rsplit_once(" at ")) {
            let Some((path, number)) = place.rsplit_once(':') else { continue };
            let file = path.rsplit('/').next().unwrap_or_default();
            if !sources.contains(file) {
                continue;
            }
            let call = call.split_once(' ').map_or("", |(_, call)| call).trim_start();
            let call = call.split_once(" in ").filter(|(at, _)| at.starts_with("0x")).map_or(call, |(_, call)| call);
            let function = call.rsplit_once(" (").map_or(call, |(function, _)| function);
            let frame = GdbFrame { function: function.to_owned(), file: file.to_owned(), line: number.parse()? };
            stacks.entry(lwp).or_default().push(frame);
        }
    }
    ensure!(!stacks.is_empty(), "gdb shows no thread: {}", String::from_utf8_lossy(&output.stderr));
    Ok(Ok(stacks))
}

/// Of each thread gdb has what its logical stack begins with, up to where that goes on on another thread.
fn check_with_gdb(running: &Running, opt: Opt) -> Result<()> {
    let stacks = match gdb_stacks(running)? {
        Ok(stacks) => stacks,
        Err(skip) => {
            skip.show();
            return Ok(());
        }
    };
    let truth = &running.truth;
    for stack in &truth.stacks {
        let role = truth.thread(stack.lwp).map_or("", |thread| thread.role.as_str());
        let found = stacks.get(&stack.lwp).with_context(|| format!("gdb has no thread {}", stack.lwp))?;
        let mut rest = found.iter().peekable();
        for frame in truth.beginning(stack) {
            let same = rest.peek().is_some_and(|found| {
                let named =
                    if frame.construct.is_some() { found.is_outlined() } else { frame.has_name(&found.function) };
                named && found.file == frame.file && Some(found.line) == frame.line
            });
            if same {
                let body = rest.next();
                rest.next_if(|next| frame.construct.is_some() && body.is_some_and(|body| next.only_calls(body)));
            } else {
                let gone = frame.line.is_none() || (frame.tail && opt != Opt::O0);
                ensure!(gone, "{role} (LWP {}): gdb has no {frame:?} in {found:#?}", stack.lwp);
            }
        }
    }
    Ok(())
}

#[test]
fn stacks() -> Result<()> {
    everywhere("stacks", |running, _| {
        ensure!(running.truth.stacks.len() == 19);
        Ok(())
    })
}

#[test]
fn stacks_tail() -> Result<()> {
    everywhere("stacks_tail", |running, _| {
        ensure!(running.truth.stacks.len() == 7);
        Ok(())
    })
}

#[test]
fn stacks_jump() -> Result<()> {
    everywhere("stacks_jump", |running, _| {
        ensure!(running.truth.stacks.len() == 3);
        Ok(())
    })
}

#[test]
fn stacks_regions() -> Result<()> {
    everywhere("stacks_regions", |running, _| {
        ensure!(running.truth.stacks.len() == 3);
        Ok(())
    })
}

#[test]
fn stacks_pthread() -> Result<()> {
    everywhere("stacks_pthread", |running, _| {
        ensure!(running.truth.stacks.len() == 7);
        Ok(())
    })
}

#[test]
fn stacks_shared() -> Result<()> {
    everywhere("stacks_shared", |running, _| {
        ensure!(running.truth.stacks.len() == 5);
        Ok(())
    })
}

#[test]
fn stacks_jit() -> Result<()> {
    everywhere("stacks_jit", |running, _| {
        ensure!(running.truth.stacks.len() == 6);
        Ok(())
    })
}

#[test]
fn stacks_cpp() -> Result<()> {
    everywhere("stacks_cpp", |running, _| {
        ensure!(running.truth.stacks.len() == 8);
        Ok(())
    })
}

#[test]
fn stacks_fortran() -> Result<()> {
    everywhere("stacks_fortran", |running, _| {
        ensure!(running.truth.stacks.len() == 6);
        Ok(())
    })
}

#[test]
fn stacks_signal() -> Result<()> {
    everywhere("stacks_signal", |running, _| {
        ensure!(running.truth.stacks.len() == 4);
        Ok(())
    })
}

#[test]
fn stacks_orphan() -> Result<()> {
    everywhere("stacks_orphan", |running, _| {
        let truth = &running.truth;
        ensure!(truth.stacks.len() == 3);
        ensure!(truth.stack_tasks.iter().filter(|task| task.finished).count() == 1, "{:?}", truth.stack_tasks);
        Ok(())
    })
}

#[test]
fn stacks_teams() -> Result<()> {
    everywhere("stacks_teams", |running, _| {
        ensure!(running.truth.stacks.len() == 2);
        Ok(())
    })
}
