//! The stack of one thread, cut where the program calls a runtime and a runtime calls the program.

use std::ops::Range;
use std::sync::Arc;

use ompd_runtime::entry::Entry;
use ompd_target::Addr;

use crate::outlined;
use crate::process::Process;
use crate::unwind::{Backtrace, Frame};

/// Whose code a frame executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The program's, its libraries' included.
    Program,
    /// That of the runtime with this index.
    Runtime(usize),
    /// The C library's or the kernel's (vdso): it belongs to whoever is around it.
    System,
}

/// Consecutive frames of one owner.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    /// Never [`Owner::System`].
    pub(crate) owner: Owner,
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
    /// For a runtime at the end of a stack: the thread began in it.
    pub(crate) base: bool,
    /// For a runtime: the function of the program that a frame of it called as the body of a region, and that is not on the
    /// stack any more because it ended in a jump.
    pub(crate) vanished: Option<Addr>,
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
        let mut owners: Vec<Owner> = backtrace.frames.iter().map(|f| process.owner(f.lookup())).collect();
        assign_system(&mut owners);
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
            Owner::Program => {
                let region = next.filter(|_| !segment.interrupts).is_some_and(|next| {
                    let Owner::Runtime(runtime) = next.owner else { return false };
                    let only = self.is_only_runtime_frame(process, index + 1);
                    let names = names(process, &frames[next.frames.clone()]);
                    let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
                    process.runtimes[runtime].invokes_region(&names, only && next_is_last(self, index + 1))
                });
                let task = !region && !segment.interrupts && next.is_some_and(|n| n.owner != Owner::Program) && {
                    // Runtimes call other functions as well, such as a program's own `malloc`: those are no bodies of
                    // constructs, as far as their names tell.
                    let outermost = &frames[segment.frames.end - 1];
                    let symbol = process.symbol(outermost.lookup());
                    symbol.is_none_or(|symbol| outlined::outlined(&symbol.name).is_some())
                };
                let segment = &mut self.segments[index];
                (segment.region, segment.task) = (region, task);
            }
            Owner::Runtime(runtime) => {
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
            Owner::System => {}
        }
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
            process.callee(frame).filter(|addr| process.owner(*addr) == Owner::Program)
        })
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

/// Gives the C library's frames to those they work for: to the runtime when it called them or the thread began in them
/// before it came to the runtime; else to the program.
fn assign_system(owners: &mut [Owner]) {
    let mut at = 0;
    while at < owners.len() {
        if owners[at] != Owner::System {
            at += 1;
            continue;
        }
        let end = owners[at..].iter().position(|o| *o != Owner::System).map_or(owners.len(), |n| at + n);
        let inner = at.checked_sub(1).map(|i| owners[i]);
        let outer = owners.get(end).copied();
        let owner = match (inner, outer) {
            (None, Some(Owner::Runtime(i))) | (Some(Owner::Runtime(i)), None) => Owner::Runtime(i),
            (Some(Owner::Runtime(i)), Some(Owner::Runtime(j))) if i == j => Owner::Runtime(i),
            _ => Owner::Program,
        };
        owners[at..end].fill(owner);
        at = end;
    }
}

fn cut(owners: &[Owner], frames: &[Frame]) -> Vec<Segment> {
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
                });
            }
        }
    }
    segments
}
