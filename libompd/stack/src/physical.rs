//! The stack of one thread, cut where the program calls a runtime and a runtime calls the program.

use std::ops::Range;
use std::sync::Arc;

use ompd_process::Addr;
use ompd_runtime::Between;
use ompd_runtime::entry::{Entry, Role};

use crate::frame::{Backtrace, CodeOwner, Frame};
use crate::outlined;
use crate::process::Process;
use crate::python::PythonStack;

/// Consecutive frames of one owner.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Never [`CodeOwner::System`].
    pub(crate) owner: CodeOwner,
    /// Indices of its frames; the first is the innermost.
    pub(crate) frames: Range<usize>,
    /// What is outward of it was interrupted by a signal, and did not call.
    pub(crate) interrupts: bool,
    /// For a runtime: what the program called it for.
    pub(crate) entry: Option<Entry>,
    /// Name of the function the program called.
    pub(crate) called: Option<Arc<str>>,
    /// For the program: the runtime outward of it calls it as the body of a region.
    pub(crate) region: bool,
    /// For the program: the runtime outward of it calls it as a task.
    pub(crate) task: bool,
    /// For the body of a construct: where the function begins that the runtime called, if that is known.
    pub(crate) begins: Option<Addr>,
    /// For the body of a construct: that function is not on the stack, because it ended in a jump to the outermost frame's.
    pub(crate) jumped: bool,
    /// For a runtime at the end of a stack: the thread began in it.
    pub(crate) base: bool,
    /// For a runtime: its innermost frame called a function of the program that has left the stack. That function ended
    /// in a jump into the runtime.
    pub(crate) left: bool,
    /// Where that function begins, if it is the body of a region and known.
    pub(crate) vanished: Option<Addr>,
}

impl Segment {
    /// For a runtime: it was called to generate tasks, and what it calls is one of those, whichever that is.
    pub(crate) fn generates(&self) -> bool {
        match self.entry.map(|entry| entry.role) {
            Some(Role::GeneratesTask) => true,
            Some(Role::GeneratesTasks) => self.frames.len() == 1,
            _ => false,
        }
    }
}

/// The stack of one thread.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) lwp: i32,
    pub(crate) backtrace: Backtrace,
    /// Innermost first.
    pub(crate) segments: Vec<Segment>,
    /// What to show of its Python functions, if it has any.
    pub(crate) python: Option<PythonStack>,
}

impl Physical {
    pub(crate) fn of(process: &Process<'_>, lwp: i32, backtrace: Backtrace) -> Physical {
        let mut owners: Vec<CodeOwner> = backtrace.frames.iter().map(|f| process.owner(f.lookup())).collect();
        assign_between(process, &backtrace.frames, &mut owners);
        let complete = backtrace.end.is_complete();
        let frame = |n: usize| FrameOwner {
            owner: owners[n],
            exact: backtrace.frames[n].exact,
            calls_program: calls_program(process, &backtrace.frames, &owners, n, complete),
        };
        let mut owners: Vec<FrameOwner> = (0..owners.len()).map(frame).collect();
        assign_all(&mut owners);
        let mut physical = Physical { lwp, segments: cut(&owners), backtrace, python: None };
        let complete = physical.backtrace.end.is_complete();
        for index in 0..physical.segments.len() {
            physical.explain(process, index, complete);
        }
        physical
    }

    /// Fills in what the call into or out of a segment tells.
    fn explain(&mut self, process: &Process<'_>, index: usize, complete: bool) {
        let frames = &self.backtrace.frames;
        let segment = &self.segments[index];
        let next = self.segments.get(index + 1);
        match segment.owner {
            CodeOwner::Program => {
                let region = next.filter(|_| !segment.interrupts).is_some_and(|next| {
                    let CodeOwner::Runtime(runtime) = next.owner else { return false };
                    let only = self.is_only_runtime_frame(process, index + 1);
                    let names = names(process, &frames[next.frames.clone()]);
                    let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
                    process.runtimes[runtime].invokes_region(&names, only && next_is_last(self, index + 1))
                });
                let drives = |runtime: usize| {
                    let outermost = process.symbol(frames[segment.frames.end - 1].lookup());
                    outermost.is_some_and(|symbol| process.runtimes[runtime].drives_device(&symbol.name))
                };
                let called = next.filter(|n| !segment.interrupts && n.owner != CodeOwner::Program);
                // What drives a device is no body of the program.
                let called = called.filter(|n| !matches!(n.owner, CodeOwner::Runtime(runtime) if drives(runtime)));
                let body = called.and_then(|next| {
                    let outermost = &frames[segment.frames.end - 1];
                    body(process, outermost, &frames[next.frames.start], region)
                });
                let segment = &mut self.segments[index];
                (segment.region, segment.task) = (region, !region && body.is_some());
                (segment.begins, segment.jumped) = body.unwrap_or_default();
            }
            CodeOwner::Runtime(runtime) => {
                let outermost = &frames[segment.frames.end - 1];
                let called = match next {
                    Some(next) if !segment.interrupts => {
                        let caller = &frames[next.frames.start];
                        process.callee(caller).filter(|addr| process.owner(*addr) == segment.owner)
                    }
                    _ => None,
                };
                let name = called.and_then(|addr| process.symbol(addr)).map(|s| Arc::clone(&s.name));
                let name =
                    name.or_else(|| next.and_then(|_| process.symbol(outermost.lookup())).map(|s| Arc::clone(&s.name)));
                let entry = name.as_deref().and_then(|name| process.runtimes[runtime].entry(name));
                let base = next.is_none() && complete;
                let vanished = self.vanished(process, index, runtime, base);
                let segment = &mut self.segments[index];
                (segment.called, segment.entry, segment.base, segment.vanished) = (name, entry, base, vanished);
            }
            CodeOwner::System => {}
        }
    }

    /// True if the innermost frame of a segment has called the runtime and not returned from it.
    pub(crate) fn entered(&self, segment: usize) -> bool {
        let inner = segment.checked_sub(1).map(|s| &self.segments[s]);
        inner.is_some_and(|s| matches!(s.owner, CodeOwner::Runtime(_)) && !s.interrupts)
    }

    /// True if the segment has one frame of the runtime itself, the C library's apart.
    fn is_only_runtime_frame(&self, process: &Process<'_>, index: usize) -> bool {
        let segment = &self.segments[index];
        let frames = &self.backtrace.frames[segment.frames.clone()];
        frames.iter().filter(|f| process.owner(f.lookup()) == segment.owner).count() == 1
    }

    /// See [`Segment::vanished`]. A call through a register that calls preserve names the function called for as long as
    /// that has not returned.
    fn vanished(&self, process: &Process<'_>, index: usize, runtime: usize, base: bool) -> Option<Addr> {
        let segment = &self.segments[index];
        let frames = &self.backtrace.frames[segment.frames.clone()];
        let names = names(process, frames);
        let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
        let only = base && self.is_only_runtime_frame(process, index);
        if !segment.left || !process.runtimes[runtime].invokes_region(&names, only) {
            return None;
        }
        process.callee(frames.first()?).filter(|addr| process.owner(*addr) == CodeOwner::Program)
    }
}

/// Where the body of a construct begins, if `outermost` may be its outermost frame; and whether it has left the stack.
///
/// A runtime's frame `caller` called the body. Its beginning is `None` if unknown. It may have left the stack by a jump
/// to the function of `outermost`.
///
/// Runtimes call other functions as well, such as a program's own `malloc`. A body is recognised by its name. A body
/// that has jumped to a function with an ordinary name is recognised by a call through a pointer. `certain` says that
/// it is a body.
fn body(process: &Process<'_>, outermost: &Frame, caller: &Frame, certain: bool) -> Option<(Option<Addr>, bool)> {
    let own = process.function_start(outermost.lookup());
    let is_body = |name: &str| outlined::outlined(name).is_some();
    let symbol = process.symbol(outermost.lookup());
    if symbol.as_ref().is_some_and(|symbol| is_body(&symbol.name)) {
        // Of two bodies with the same code, GCC makes one a jump to the other (-fipa-icf).
        let called = process.callee_if_seen(caller).filter(|callee| Some(*callee) != own);
        let folded = called.filter(|callee| own.is_some_and(|own| process.jumps(*callee, own)));
        return Some(folded.map_or((own, false), |callee| (Some(callee), true)));
    }
    let by_pointer = process.calls_by_pointer(caller);
    let callee = process.callee(caller).filter(|addr| process.owner(*addr) == CodeOwner::Program);
    match callee.filter(|_| by_pointer || certain) {
        Some(callee) if Some(callee) != own => {
            let named = process.symbol(callee).is_none_or(|symbol| is_body(&symbol.name));
            (certain || named).then_some((Some(callee), true))
        }
        Some(_) => (certain || symbol.is_none()).then_some((own, false)),
        // Without a name there is nothing to tell the one from the other.
        None if symbol.is_none() => Some((own, false)),
        None => {
            let helper = symbol.is_some_and(|symbol| outlined::is_helper(&symbol.name));
            (certain || by_pointer && !helper).then_some((None, true))
        }
    }
}

/// Names of the functions of the first few frames.
fn names(process: &Process<'_>, frames: &[Frame]) -> Vec<Option<Arc<str>>> {
    const LOOKED_AT: usize = 4;
    let name = |frame: &Frame| Some(Arc::clone(&process.symbol(frame.lookup())?.name));
    frames.iter().take(LOOKED_AT).map(name).collect()
}

fn next_is_last(physical: &Physical, index: usize) -> bool {
    index + 1 == physical.segments.len() && physical.backtrace.end.is_complete()
}

/// What is known of whom a frame belongs to.
#[derive(Debug, Clone, Copy)]
struct FrameOwner {
    owner: CodeOwner,
    /// It did not call the frame further in: what a signal interrupted has nothing to do with what the handler called.
    exact: bool,
    /// It is a runtime's, and called a function of the program.
    calls_program: bool,
}

/// True if frame `n` is a runtime's and called a function of the program, whatever lies further in. A function whose
/// last act is a jump leaves the stack to the one it jumps to.
fn calls_program(process: &Process<'_>, frames: &[Frame], owners: &[CodeOwner], n: usize, complete: bool) -> bool {
    let frame = &frames[n];
    let (CodeOwner::Runtime(runtime), Some(inner)) = (owners[n], n.checked_sub(1)) else { return false };
    if frame.exact || owners[inner] == CodeOwner::Program {
        return !frame.exact;
    }
    // A library between program and runtime calls the runtime by pointers, and is called so in place of bodies.
    let between = |frame: &Frame| process.runtimes[runtime].stands_between(process.target, frame.lookup());
    match (between(frame), between(&frames[inner])) {
        (Some(Between::Forwards), _) | (None, Some(_)) => return false,
        _ => {}
    }
    match process.callee(frame) {
        Some(callee) => process.owner(callee) == CodeOwner::Program,
        // Runtimes call bodies by pointers, and their own interface never.
        None if owners[inner] == owners[n] && process.calls_by_pointer(frame) => {
            let is_entry = process.symbol(frames[inner].lookup());
            let is_entry = is_entry.is_some_and(|symbol| process.runtimes[runtime].entry(&symbol.name).is_some());
            let outermost = complete && owners[n + 1..].iter().all(|owner| *owner != owners[n]);
            let names = names(process, &frames[n..]);
            let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
            is_entry || process.runtimes[runtime].invokes_region(&names, outermost)
        }
        None => false,
    }
}

/// Gives frames of a library between program and runtimes to the runtime that it called, or that called it: a process may have
/// several runtimes behind one such library.
fn assign_between(process: &Process<'_>, frames: &[Frame], owners: &mut [CodeOwner]) {
    let between = |n: usize| {
        let CodeOwner::Runtime(runtime) = owners[n] else { return false };
        process.runtimes[runtime].stands_between(process.target, frames[n].lookup()).is_some()
    };
    let between: Vec<bool> = (0..frames.len()).map(between).collect();
    let mut at = 0;
    for run in between.chunk_by(|a, b| a == b) {
        let end = at + run.len();
        let beside = [at.checked_sub(1), Some(end)].into_iter().flatten().filter_map(|n| owners.get(n).copied());
        let runtime = beside.into_iter().find(|owner| matches!(owner, CodeOwner::Runtime(_)));
        if let Some(runtime) = runtime.filter(|_| run.first() == Some(&true)) {
            owners[at..end].fill(runtime);
        }
        at = end;
    }
}

/// Gives the C library's frames to others.
fn assign_all(frames: &mut [FrameOwner]) {
    let mut at = 0;
    let lengths: Vec<usize> = frames.chunk_by(|_, outer| !outer.exact).map(<[_]>::len).collect();
    for length in lengths {
        assign_system(&mut frames[at..at + length]);
        at += length;
    }
}

/// Gives the C library's frames to the runtime or the program. The runtime gets them when it called them, or when the
/// thread began in them before it came to the runtime. The program gets the others.
fn assign_system(frames: &mut [FrameOwner]) {
    let mut at = 0;
    while at < frames.len() {
        if frames[at].owner != CodeOwner::System {
            at += 1;
            continue;
        }
        let end = frames[at..].iter().position(|f| f.owner != CodeOwner::System).map_or(frames.len(), |n| at + n);
        let inner = at.checked_sub(1).map(|i| frames[i].owner);
        let outer = frames.get(end).map(|f| if f.calls_program { CodeOwner::Program } else { f.owner });
        let owner = match (inner, outer) {
            (None, Some(CodeOwner::Runtime(i))) | (Some(CodeOwner::Runtime(i)), None) => CodeOwner::Runtime(i),
            (Some(CodeOwner::Runtime(i)), Some(CodeOwner::Runtime(j))) if i == j => CodeOwner::Runtime(i),
            _ => CodeOwner::Program,
        };
        frames[at..end].iter_mut().for_each(|frame| frame.owner = owner);
        at = end;
    }
}

fn cut(frames: &[FrameOwner]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        // What a signal interrupted begins a segment of its own, and so does what called a function that is gone.
        let interrupted = index > 0 && frame.exact;
        let left = frame.calls_program && index > 0 && frames[index - 1].owner != CodeOwner::Program;
        match segments.last_mut() {
            Some(last) if last.owner == frame.owner && !interrupted && !left => last.frames.end = index + 1,
            last => {
                if let Some(last) = last {
                    last.interrupts = interrupted;
                }
                segments.push(Segment {
                    owner: frame.owner,
                    frames: index..index + 1,
                    interrupts: false,
                    entry: None,
                    called: None,
                    region: false,
                    task: false,
                    base: false,
                    left,
                    vanished: None,
                    begins: None,
                    jumped: false,
                });
            }
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::{CodeOwner, FrameOwner, assign_all, cut};

    fn frames(of: &[(CodeOwner, bool)]) -> Vec<FrameOwner> {
        of.iter().map(|(owner, exact)| FrameOwner { owner: *owner, exact: *exact, calls_program: false }).collect()
    }

    fn owners(mut frames: Vec<FrameOwner>) -> Vec<CodeOwner> {
        assign_all(&mut frames);
        frames.iter().map(|frame| frame.owner).collect()
    }

    #[test]
    fn what_a_signal_interrupted_is_not_the_handlers() {
        use CodeOwner::{Program, Runtime, System};
        // A handler, the C library's return from it, and a wait of the runtime in the C library.
        let signal = [(Program, true), (System, false), (System, true), (Runtime(0), false), (Program, false)];
        assert_eq!(owners(frames(&signal)), [Program, Program, Runtime(0), Runtime(0), Program]);
        // The same frames without a signal: the program called the C library, and that the runtime.
        let call = [(Program, true), (System, false), (System, false), (Runtime(0), false), (Program, false)];
        assert_eq!(owners(frames(&call)), [Program, Program, Program, Runtime(0), Program]);
    }

    #[test]
    fn what_left_the_stack_separates_two_calls_of_the_runtime() {
        use CodeOwner::{Program, Runtime, System};
        let of = [(System, true), (Runtime(0), false), (Runtime(0), false), (Program, false)];
        let mut inner = frames(&of);
        inner[2].calls_program = true;
        assign_all(&mut inner);
        let segments: Vec<_> = cut(&inner).into_iter().map(|s| (s.owner, s.frames, s.left)).collect();
        assert_eq!(
            segments,
            [(Runtime(0), 0..2, false), (Runtime(0), 2..3, true), (Program, 3..4, false)],
            "the C library's frame waits for the inner call"
        );
        // A body that jumps into the C library leaves its frame to that.
        let mut jumped = frames(&[(System, true), (Runtime(0), false), (Program, false)]);
        jumped[1].calls_program = true;
        assert_eq!(owners(jumped), [Program, Runtime(0), Program]);
    }
}
