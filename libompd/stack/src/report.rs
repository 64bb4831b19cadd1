//! All stacks of a process at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ompd_process::{Addr, Target};
use ompd_python::Interpreter;
use ompd_runtime::Runtime;
use ompd_runtime::evidence::StackEvidence;
use ompd_runtime::merge;
use ompd_runtime::model::{RawSnapshot, RawTask, TaskId, TaskKind};

use crate::capture::Stacks;
use crate::frame::{Backtrace, CodeOwner, End};
use crate::image::Cache;
use crate::logical::{Language, LogicalFrame, LogicalStack, Walker};
use crate::physical::Physical;
use crate::process::Process;
use crate::python::{self, Python, PythonStack};
use crate::stitch::{self, Found};
use crate::unwind::{self, FramesLeft};

/// The stacks of all threads. The default is of none.
#[derive(Debug, Default)]
pub struct Report {
    /// As the source reads, in the order of the target's threads.
    pub logical: Vec<LogicalStack>,
    /// Files with code of frames that have no source lines, each with the reason.
    pub without_lines: BTreeMap<Arc<str>, String>,
    /// What they say of each runtime, in the order of the snapshots.
    pub evidence: Vec<StackEvidence>,
    /// What is known of each CPython of the process.
    pub python: Vec<Python>,
    pub(crate) threads: Vec<Physical>,
    found: Found,
}

/// The frames of all threads as they are on their stacks, those of runtimes included.
#[derive(Debug)]
pub struct Unwound {
    threads: Vec<Physical>,
}

/// The frames of a task that border on the runtime, as the addresses the stack pointer had before each was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskFrames {
    /// Thread on whose stack they are.
    pub lwp: i32,
    /// Of the task's outermost frame: the first that is not the runtime's (OpenMP 5.2, 20.5.8.5: exit frame).
    pub exit: Addr,
    /// Of the frame further out, if it is the runtime's: the one that called the task.
    pub caller: Option<Addr>,
    /// Of the task's innermost frame, if that called the runtime and has not returned from it (enter frame).
    pub enter: Option<Addr>,
}

impl Unwound {
    /// Follows the stack of each thread from frame to frame. The process need not be stopped any more.
    pub fn of(target: &dyn Target, runtimes: &[Box<dyn Runtime>], stacks: &Stacks, cache: &Cache) -> Unwound {
        let mut unwound = Unwound { threads: Vec::new() };
        unwound.repeat(target, runtimes, stacks, cache, &|_| true);
        unwound
    }

    /// Follows the stacks of those threads (LWP) once more whose registers have become known since.
    pub fn repeat(
        &mut self,
        target: &dyn Target,
        runtimes: &[Box<dyn Runtime>],
        stacks: &Stacks,
        cache: &Cache,
        is_new: &dyn Fn(i32) -> bool,
    ) {
        let process = Process::new(target, runtimes, cache);
        let kept = std::mem::take(&mut self.threads).into_iter().filter(|thread| !is_new(thread.lwp));
        let mut kept: HashMap<i32, Physical> = kept.map(|thread| (thread.lwp, thread)).collect();
        let mut left = FramesLeft::less(kept.values().map(|thread| thread.backtrace.frames.len()).sum());
        let pthreads = python::pthreads(target, &stacks.python);
        let threads = target.threads().iter().zip(&pthreads).map(|(thread, pthread)| {
            if let Some(known) = kept.remove(&thread.lwp) {
                return known;
            }
            let backtrace = match &thread.registers {
                Ok(registers) => {
                    let read = |addr| stacks.read_u64(target, addr);
                    unwind::unwind(target, &process.images, thread.lwp, registers, &mut left, &read)
                }
                Err(why) => Backtrace { frames: Vec::new(), end: End::NoRegisters(why.clone()) },
            };
            let mut physical = Physical::of(&process, thread.lwp, backtrace);
            physical.python =
                pthread.and_then(|own| PythonStack::of(&process, &stacks.python, stacks, own, &physical.backtrace));
            physical
        });
        self.threads = threads.collect();
    }
}

impl Report {
    /// True of compiled code of a Python interpreter that is not built into another program, as the name of its file says.
    pub fn is_interpreters(&self, frame: &LogicalFrame) -> bool {
        let of_file = |(file, _): &(Arc<str>, u64)| {
            let is_its = |python: &Python| python.path.rsplit('/').next() == file.rsplit('/').next();
            Interpreter::is_interpreters(file) && self.python.iter().any(is_its)
        };
        frame.language == Language::Compiled && frame.module.as_ref().is_some_and(of_file)
    }

    /// Follows all stacks, and gathers what only stacks show of the runtimes. This covers the functions of regions and
    /// tasks, which constructs they are and where these stand, and the calls threads wait in. The process need not be
    /// stopped any more.
    ///
    /// `snapshots` are those of `runtimes`, in the same order, made in the stop in which `stacks` were captured.
    pub fn of(
        target: &dyn Target,
        runtimes: &[Box<dyn Runtime>],
        snapshots: &[RawSnapshot],
        stacks: &Stacks,
        cache: &Cache,
    ) -> Report {
        let unwound = Unwound::of(target, runtimes, stacks, cache);
        Report::of_unwound(target, runtimes, snapshots, stacks, unwound, cache)
    }

    /// The same of stacks that are unwound already.
    pub fn of_unwound(
        target: &dyn Target,
        runtimes: &[Box<dyn Runtime>],
        snapshots: &[RawSnapshot],
        stacks: &Stacks,
        unwound: Unwound,
        cache: &Cache,
    ) -> Report {
        let process = Process::new(target, runtimes, cache);
        let mut threads = unwound.threads;
        let pthreads = python::pthreads(target, &stacks.python);
        let found = stitch::find(&process, snapshots, &threads);
        stitch::unfold(&process, &mut threads, &found);
        let evidence = stitch::evidence(&process, snapshots, &threads, &found);
        let code: Vec<_> = snapshots.iter().zip(&evidence).map(|(raw, stacks)| merge::code(raw, stacks)).collect();
        let (threads_of, left) = (&threads, Default::default());
        let walker = Walker { process: &process, snapshots, code: &code, threads: threads_of, found: &found, left };
        let logical: Vec<LogicalStack> = (0..threads.len()).map(|index| walker.walk(index)).collect();
        let frames = logical.iter().flat_map(|stack| &stack.frames);
        let places: BTreeSet<Addr> =
            frames.filter(|f| f.line.is_none() && f.lwp.is_some()).filter_map(|f| f.addr).collect();
        let without_lines = places.into_iter().filter_map(|addr| process.without_lines(addr)).collect();
        let backtraces: Vec<&Backtrace> = threads.iter().map(|thread| &thread.backtrace).collect();
        let python = python::report(&process, stacks, &backtraces, &pthreads);
        Report { logical, without_lines, evidence, python, threads, found }
    }

    /// Its frames alone, for another report in which more registers are known.
    pub fn into_unwound(self) -> Unwound {
        Unwound { threads: self.threads }
    }

    /// The frames of a thread as they are on its stack, those of runtimes included.
    pub fn physical(&self, lwp: i32) -> Option<&Backtrace> {
        self.threads.iter().find(|t| t.lwp == lwp).map(|t| &t.backtrace)
    }

    /// Where the initial task of a thread borders on the runtime: its outermost frames are those of the program's own with which the
    /// thread began. `None` if its stack is not known up to there.
    pub fn initial_frames(&self, lwp: i32) -> Option<TaskFrames> {
        let physical = self.threads.iter().find(|t| t.lwp == lwp)?;
        let segment = physical.segments.len().checked_sub(1)?;
        let last = &physical.segments[segment];
        if last.owner != CodeOwner::Program || !physical.backtrace.end.is_complete() {
            return None;
        }
        let frames = last.frames.clone();
        Some(TaskFrames {
            lwp,
            // Where the thread began, nothing was before.
            exit: physical.backtrace.frames.get(frames.clone())?.iter().rev().find_map(|frame| frame.cfa)?,
            caller: None,
            enter: physical.entered(segment).then(|| physical.backtrace.frames.get(frames.start)?.cfa).flatten(),
        })
    }

    /// Where a task of the runtime with this index, which is `model`, borders on the runtime; `None` if it has no frame of its own on any stack,
    /// or which it is could not be told.
    pub fn task_frames(&self, runtime: usize, task: TaskId, model: &RawTask) -> Option<TaskFrames> {
        let (thread, segment, outermost) = match model.kind.get()? {
            TaskKind::Implicit => {
                let (thread, segment) = *self.found.bodies.get(&(runtime, model.team.flat()?, model.member?))?;
                (thread, segment, None)
            }
            _ => match self.found.tasks.get(&(runtime, task)) {
                Some((thread, segment)) => (*thread, *segment, None),
                None => {
                    let ((thread, segment), frame) = *self.found.direct.get(&(runtime, task))?;
                    (thread, segment, Some(frame))
                }
            },
        };
        let physical = &self.threads[thread];
        let frames = physical.segments[segment].frames.clone();
        let last = outermost.unwrap_or(frames.end - 1);
        let outer = physical.segments.get(segment + 1).filter(|s| s.frames.contains(&(last + 1)));
        let called = outer.is_some_and(|s| matches!(s.owner, CodeOwner::Runtime(_)));
        let caller = physical.backtrace.frames.get(last + 1).filter(|_| called);
        Some(TaskFrames {
            lwp: physical.lwp,
            exit: physical.backtrace.frames.get(last)?.cfa?,
            caller: caller.and_then(|frame| frame.cfa),
            enter: if physical.entered(segment) { physical.backtrace.frames.get(frames.start)?.cfa } else { None },
        })
    }
}
