//! The stack of one thread, cut where the program calls a runtime and a runtime calls the program.

use std::ops::Range;
use std::sync::Arc;

use ompd_process::Addr;
use ompd_runtime::entry::{Entry, Role};

use crate::frame::{Backtrace, CodeOwner, Frame};
use crate::outlined;
use crate::process::Process;

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
    /// For a runtime: the function of the program that a frame of it called as the body of a region, and that is not on the
    /// stack any more because it ended in a jump.
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
}

impl Physical {
    pub(crate) fn of(process: &Process<'_>, lwp: i32, backtrace: Backtrace) -> Physical {
        let mut owners: Vec<CodeOwner> = backtrace.frames.iter().map(|f| process.owner(f.lookup())).collect();
        let exact: Vec<bool> = backtrace.frames.iter().map(|frame| frame.exact).collect();
        assign_all(&mut owners, &exact);
        let mut physical = Physical { lwp, segments: cut(&owners, &backtrace.frames), backtrace };
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
                let called = next.filter(|n| !segment.interrupts && n.owner != CodeOwner::Program);
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
                let vanished = if index == 0 { self.vanished(process, index, runtime, base) } else { None };
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
    /// that has not returned; if it is not the frame further in, it is gone.
    fn vanished(&self, process: &Process<'_>, index: usize, runtime: usize, base: bool) -> Option<Addr> {
        let segment = &self.segments[index];
        let own: Vec<&Frame> = self.backtrace.frames[segment.frames.clone()]
            .iter()
            .filter(|f| process.owner(f.lookup()) == segment.owner)
            .collect();
        let names: Vec<Option<Arc<str>>> =
            own.iter().map(|frame| Some(Arc::clone(&process.symbol(frame.lookup())?.name))).collect();
        let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
        own.iter().enumerate().filter(|(_, frame)| !frame.exact).find_map(|(place, frame)| {
            let outermost = base && place + 1 == own.len();
            if !process.runtimes[runtime].invokes_region(&names[place..], outermost) {
                return None;
            }
            process.callee(frame).filter(|addr| process.owner(*addr) == CodeOwner::Program)
        })
    }
}

/// If `outermost`, called by a runtime's frame `caller`, may be the outermost frame of the body of a construct: where the
/// function begins that was called, if that is known, and whether it has left the stack by a jump to that of `outermost`.
///
/// Runtimes call other functions as well, such as a program's own `malloc`. A body is told from those by its name; or if it
/// has jumped to a function with an ordinary name, by a pointer having been called. `certain` says that it is a body.
fn body(process: &Process<'_>, outermost: &Frame, caller: &Frame, certain: bool) -> Option<(Option<Addr>, bool)> {
    let own = process.function_start(outermost.lookup());
    let is_body = |name: &str| outlined::outlined(name).is_some();
    let symbol = process.symbol(outermost.lookup());
    if symbol.as_ref().is_some_and(|symbol| is_body(&symbol.name)) {
        return Some((own, false));
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

/// Gives the C library's frames to others. `exact` says of each frame whether it did not call the one further in: what a
/// signal interrupted has nothing to do with what the handler called.
fn assign_all(owners: &mut [CodeOwner], exact: &[bool]) {
    let mut at = 0;
    for part in exact.chunk_by(|_, outer| !outer) {
        assign_system(&mut owners[at..at + part.len()]);
        at += part.len();
    }
}

/// Gives the C library's frames to those they work for: to the runtime when it called them or the thread began in them
/// before it came to the runtime; else to the program.
fn assign_system(owners: &mut [CodeOwner]) {
    let mut at = 0;
    while at < owners.len() {
        if owners[at] != CodeOwner::System {
            at += 1;
            continue;
        }
        let end = owners[at..].iter().position(|o| *o != CodeOwner::System).map_or(owners.len(), |n| at + n);
        let inner = at.checked_sub(1).map(|i| owners[i]);
        let outer = owners.get(end).copied();
        let owner = match (inner, outer) {
            (None, Some(CodeOwner::Runtime(i))) | (Some(CodeOwner::Runtime(i)), None) => CodeOwner::Runtime(i),
            (Some(CodeOwner::Runtime(i)), Some(CodeOwner::Runtime(j))) if i == j => CodeOwner::Runtime(i),
            _ => CodeOwner::Program,
        };
        owners[at..end].fill(owner);
        at = end;
    }
}

fn cut(owners: &[CodeOwner], frames: &[Frame]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for (index, owner) in owners.iter().enumerate() {
        // What a signal interrupted begins a segment of its own.
        let interrupted = index > 0 && frames[index].exact;
        match segments.last_mut() {
            Some(last) if last.owner == *owner && !interrupted => last.frames.end = index + 1,
            last => {
                if let Some(last) = last {
                    last.interrupts = interrupted;
                }
                segments.push(Segment {
                    owner: *owner,
                    frames: index..index + 1,
                    interrupts: false,
                    entry: None,
                    called: None,
                    region: false,
                    task: false,
                    base: false,
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
    use super::{CodeOwner, assign_all};

    #[test]
    fn what_a_signal_interrupted_is_not_the_handlers() {
        use CodeOwner::{Program, Runtime, System};
        // A handler, the C library's return from it, and a wait of the runtime in the C library.
        let mut owners = [Program, System, System, Runtime(0), Program];
        assign_all(&mut owners, &[true, false, true, false, false]);
        assert_eq!(owners, [Program, Program, Runtime(0), Runtime(0), Program]);
        // The same frames without a signal: the program called the C library, and that the runtime.
        let mut owners = [Program, System, System, Runtime(0), Program];
        assign_all(&mut owners, &[true, false, false, false, false]);
        assert_eq!(owners, [Program, Program, Program, Runtime(0), Program]);
    }
}
