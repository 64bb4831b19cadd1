//! Stacks as their source reads: runtime frames folded, constructs named, continued where the program says they go on.

use std::cell::Cell;
use std::sync::Arc;

use ompd_process::Addr;
use ompd_python::PythonFrame;
use ompd_runtime::Origin;
use ompd_runtime::entry::{Construct as Pragma, Role};
use ompd_runtime::merge::{self, RegionCode, TaskCode};
use ompd_runtime::model::{Fact, RawSnapshot, SourceLine, TaskId, TaskKind, TeamId};

use crate::frame::{CodeOwner, End, ROOTS};
use crate::lines;
use crate::names;
use crate::outlined;
use crate::physical::Physical;
use crate::process::Process;
use crate::stitch::{Found, SegmentAt};

/// Changes of stack that one logical stack is followed through. Each leads to a region or task further out.
const MAX_HOPS: usize = 4096;
/// Frames of one logical stack.
const MAX_FRAMES: usize = 32 << 10;
/// Frames of all logical stacks together: each goes on in that of the thread that opened its region, and that may be deep.
/// Where they are used up, [`LEAST_FRAMES`] are still told of each.
const TOTAL_FRAMES: usize = 1 << 20;
/// See [`TOTAL_FRAMES`].
const LEAST_FRAMES: usize = 512;
/// Frames without a call of a runtime between them that are told: the innermost, and as many of the outermost. A deep recursion
/// is the finding, and not its every frame.
const END_FRAMES: usize = 2048;
/// What stands between a signal handler and what the signal interrupted; debuggers call it so.
const HANDLED: &str = "<signal handler called>";
/// Why a logical stack ends before its end.
const TOO_DEEP: &str = "it is too deep to be followed to its end";

/// The construct a frame is the body of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Construct {
    /// Its name without `#pragma omp` (`parallel`, `task`, …).
    pub name: Pragma,
    /// Its file, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// Line of the directive, or where `begins` says so, the line at which the code of its body begins.
    pub line: Option<u32>,
    /// `line` is that of the first code of the body: the directive itself, or the first statement in it.
    pub begins: bool,
    /// The program itself gave the frame's function to the runtime: no compiler made it of a construct. The construct,
    /// or the call in its place, is elsewhere.
    pub called: bool,
    /// The frame's function is known from the runtime's record of the construct only, which names lambdas after the function
    /// they stand in.
    pub(crate) recorded: bool,
    /// A symbol names the body.
    pub(crate) named: bool,
}

impl Construct {
    /// One whose body is a function that a compiler made, of which nothing more is known.
    fn made(name: Pragma) -> Construct {
        Construct { name, file: None, line: None, begins: false, called: false, recorded: false, named: true }
    }
}

/// How a frame came to be outward of the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// It called it, or it is the first.
    Call,
    /// A signal interrupted it.
    Signal,
    /// It opened the region the frame before it is the body of; it may be another thread's.
    Region,
    /// It is the body of the task, or region, that generated the task before it. Where that is now says nothing about where
    /// it was then: it has no line.
    Generated,
    /// It is the body of the region in which the task before it was generated; what generated the task is over, or not known.
    Around,
}

/// Which kind of code a frame executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Machine code, of whatever source.
    Compiled,
    /// A function of Python; its frame on the stack is that of the interpreter that executes it.
    Python,
}

/// One frame of a logical stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalFrame {
    /// The function of the source; for the body of a construct that which contains the construct, where it is known.
    pub function: Option<Arc<str>>,
    /// Set for bodies of constructs.
    pub construct: Option<Construct>,
    /// File of `line`, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// The line it executes, or calls from.
    pub line: Option<u32>,
    /// Inlined into the next frame.
    pub inlined: bool,
    /// The thread on whose stack it is; `None` if it is on none: the body ended in a jump, or is over.
    pub lwp: Option<i32>,
    /// Address it executes at, or its callee returns to; where it begins, if it is on no stack.
    pub addr: Option<Addr>,
    /// Module and offset in it (an address of the file).
    pub module: Option<(Arc<str>, u64)>,
    /// Its relation to the frame before.
    pub via: Via,
    /// Which kind of code it is.
    pub language: Language,
    /// Where it is on that stack; `None` if it is on none, or is only known to have been inlined there.
    pub(crate) place: Option<FramePlace>,
}

/// One function on the stack of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FramePlace {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// Index of its frame.
    pub(crate) frame: usize,
    /// How many functions are inlined in this one there.
    pub(crate) inner: usize,
    /// How many functions the frame has by debug information, itself and those inlined; 0 if that was not asked, or has none.
    pub(crate) functions: usize,
}

/// A call into a runtime that has not returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InCall {
    /// What the program asked for (`barrier`, `taskwait`, …), where the function says so.
    pub construct: Option<Pragma>,
    /// The function called.
    pub function: Option<Arc<str>>,
}

/// One thread's stack as its source reads.
#[derive(Debug, Clone)]
pub struct LogicalStack {
    /// The thread.
    pub lwp: i32,
    /// Innermost first.
    pub frames: Vec<LogicalFrame>,
    /// Set if the thread is inside a call of a runtime's function.
    pub in_call: Option<InCall>,
    /// It was made by a runtime and is in no region.
    pub idle: bool,
    /// What could not be said, as a sentence without its full stop; the frames before it are right all the same.
    pub gap: Option<String>,
    /// How far the thread's own stack could be followed.
    pub end: End,
}

impl LogicalFrame {
    /// A frame of which only the function is known.
    pub fn named(function: impl Into<Arc<str>>) -> LogicalFrame {
        LogicalFrame {
            function: Some(function.into()),
            construct: None,
            file: None,
            line: None,
            inlined: false,
            lwp: None,
            addr: None,
            module: None,
            via: Via::Call,
            language: Language::Compiled,
            place: None,
        }
    }

    /// Stands for so many frames of which nothing is told.
    fn left_out(count: usize) -> LogicalFrame {
        LogicalFrame::named(format!("<{count} frames left out>"))
    }
}

enum Position {
    /// Go on outward from a segment, this one included.
    Segment(usize, usize),
    /// Only its outermost frame, then outward.
    Body(usize, usize),
    /// A region of which the thread has no frame.
    Region(usize, TeamId),
    /// The call that opened a region.
    Fork(usize, TeamId),
    /// A task of which there is no frame.
    Task(usize, TaskId),
    /// The generating task of a task.
    Generating(usize, TaskId),
}

pub(crate) struct Walker<'p, 't> {
    pub(crate) process: &'p Process<'t>,
    pub(crate) snapshots: &'p [RawSnapshot],
    /// The code of the regions and tasks of each runtime.
    pub(crate) code: &'p [merge::Code],
    pub(crate) threads: &'p [Physical],
    pub(crate) found: &'p Found,
    pub(crate) left: FramesLeft,
}

/// How many frames may still be told.
pub(crate) struct FramesLeft(Cell<usize>);

impl Default for FramesLeft {
    fn default() -> Self {
        FramesLeft(Cell::new(TOTAL_FRAMES))
    }
}

impl Walker<'_, '_> {
    /// The logical stack of a thread.
    pub(crate) fn walk(&self, thread: usize) -> LogicalStack {
        let physical = &self.threads[thread];
        let first = physical.segments.first();
        let in_call = first
            .filter(|s| matches!(s.owner, CodeOwner::Runtime(_)) && !s.base)
            .map(|s| InCall { construct: s.entry.map(|e| e.construct), function: s.called.clone() });
        let mut stack = LogicalStack {
            lwp: physical.lwp,
            frames: Vec::new(),
            in_call,
            idle: false,
            gap: None,
            end: physical.backtrace.end.clone(),
        };
        let mut position = self.start(thread);
        let mut via = Via::Call;
        let most = self.left.0.get().clamp(LEAST_FRAMES, MAX_FRAMES);
        for hop in 0.. {
            let Some(at) = position else { break };
            if hop == MAX_HOPS || stack.frames.len() >= most {
                stack.gap = Some(TOO_DEEP.to_owned());
                break;
            }
            position = self.step(&mut stack, at, &mut via);
        }
        if let Some(gap) =
            physical.python.as_ref().and_then(|python| python.gap.as_ref()).filter(|_| stack.gap.is_none())
        {
            stack.gap = Some(gap.clone());
        }
        self.left.0.set(self.left.0.get().saturating_sub(stack.frames.len()));
        stack.idle = stack.frames.is_empty() && self.is_idle(physical.lwp);
        if let Some(last) = stack.frames.last_mut() {
            last.inlined = false;
        }
        borrow_names(&mut stack.frames);
        stack
    }

    fn region(&self, runtime: usize, team: TeamId) -> Option<&RegionCode> {
        self.code.get(runtime)?.teams.get(team.0)
    }

    fn task(&self, runtime: usize, task: TaskId) -> Option<&TaskCode> {
        self.code.get(runtime)?.tasks.get(task.0)
    }

    fn is_idle(&self, lwp: i32) -> bool {
        let mut known = self.snapshots.iter().filter_map(|s| s.thread_by_lwp(lwp)).peekable();
        known.peek().is_some() && known.any(crate::levels::is_idle)
    }

    /// Why nothing is said of the region of a thread that a runtime made.
    fn why_no_region(&self, lwp: i32) -> Option<String> {
        let mut known = self.snapshots.iter().filter_map(|s| s.thread_by_lwp(lwp)).peekable();
        let why = match known.peek() {
            Some(_) => known.find_map(|thread| thread.team.why().or(thread.thread_num.why()))?.to_string(),
            None => "it was not found among the runtime's threads".to_owned(),
        };
        Some(format!("which region it is in, if any, is not known: {why}"))
    }

    /// Where to begin: at the innermost frame, unless the thread executes a task that has no frame of its own.
    fn start(&self, thread: usize) -> Option<Position> {
        let physical = &self.threads[thread];
        let innermost = physical.segments.first()?;
        if let CodeOwner::Runtime(runtime) = innermost.owner
            && let Some(task) = self.found.current.get(&(thread, runtime))
            && !self.found.tasks.contains_key(&(runtime, *task))
            && !self.found.direct.contains_key(&(runtime, *task))
            && !self.found.doubtful.contains(&(thread, runtime))
        {
            return Some(Position::Task(runtime, *task));
        }
        Some(Position::Segment(thread, 0))
    }

    fn step(&self, stack: &mut LogicalStack, at: Position, via: &mut Via) -> Option<Position> {
        match at {
            Position::Segment(thread, segment) => self.segment(stack, thread, segment, via),
            Position::Body(thread, segment) => {
                if !self.threads[thread].segments[segment].jumped {
                    self.emit(stack, thread, segment, via, true);
                }
                self.emit_jumped(stack, thread, segment, via);
                self.outward(stack, thread, segment, via)
            }
            Position::Region(runtime, team) => {
                self.emit_region(stack, runtime, team, *via);
                Some(Position::Fork(runtime, team))
            }
            Position::Fork(runtime, team) => {
                *via = Via::Region;
                match self.found.forks.get(&(runtime, team)) {
                    Some((thread, segment)) => Some(Position::Segment(*thread, segment + 1)),
                    None => {
                        stack.gap = Some(self.why_no_fork(runtime, team));
                        None
                    }
                }
            }
            Position::Task(runtime, task) => {
                self.emit_task(stack, runtime, task, *via);
                Some(Position::Generating(runtime, task))
            }
            Position::Generating(runtime, task) => self.generating(stack, runtime, task, via),
        }
    }

    fn segment(&self, stack: &mut LogicalStack, thread: usize, index: usize, via: &mut Via) -> Option<Position> {
        let physical = &self.threads[thread];
        let Some(segment) = physical.segments.get(index) else {
            if !physical.backtrace.end.is_complete() {
                stack.gap = Some(physical.backtrace.end.to_string());
            }
            return None;
        };
        match segment.owner {
            CodeOwner::Program => {
                self.emit(stack, thread, index, via, false);
                self.emit_jumped(stack, thread, index, via);
                self.outward(stack, thread, index, via)
            }
            // Nothing of the program lies further in: the bodies that would are gone.
            _ => match self.found.regions.get(&(thread, index)) {
                Some((runtime, level)) => Some(Position::Region(*runtime, level.team)),
                None if segment.base => {
                    if !self.is_idle(physical.lwp) {
                        stack.gap = self.why_no_region(physical.lwp);
                    }
                    None
                }
                None => Some(Position::Segment(thread, index + 1)),
            },
        }
    }

    /// What lies outward of a segment of the program.
    fn outward(&self, stack: &mut LogicalStack, thread: usize, index: usize, via: &mut Via) -> Option<Position> {
        let physical = &self.threads[thread];
        let segment = &physical.segments[index];
        let next = physical.segments.get(index + 1);
        if segment.interrupts {
            *via = Via::Signal;
            return Some(Position::Segment(thread, index + 1));
        }
        let Some(next) = next else {
            if !physical.backtrace.end.is_complete() {
                stack.gap = Some(physical.backtrace.end.to_string());
            }
            return None;
        };
        let CodeOwner::Runtime(runtime) = next.owner else { return Some(Position::Segment(thread, index + 1)) };
        if segment.region {
            *via = Via::Region;
            if let Some((runtime, level)) = self.found.regions.get(&(thread, index)) {
                return Some(match self.found.forks.get(&(*runtime, level.team)) {
                    Some((thread, fork)) => Position::Segment(*thread, fork + 1),
                    None => Position::Fork(*runtime, level.team),
                });
            }
            // Which region of the runtime's it is does not matter for the thread that opened it.
            if !next.base && physical.segments.get(index + 2).is_some() {
                return Some(Position::Segment(thread, index + 2));
            }
            stack.gap = Some(match physical.backtrace.end.is_complete() {
                true => "which of the runtime's regions this is the body of is not known".to_owned(),
                false => physical.backtrace.end.to_string(),
            });
            return None;
        }
        if !segment.task || self.is_target_body(thread, index) {
            return Some(Position::Segment(thread, index + 1));
        }
        match self.found.task_at.get(&(thread, index)) {
            // It executes in the midst of the one that generated it.
            _ if next.generates() => {
                *via = Via::Generated;
                Some(Position::Segment(thread, index + 2))
            }
            Some((runtime, task)) => {
                if self.is_beneath(*runtime, *task, thread, index + 2) {
                    *via = Via::Generated;
                    return Some(Position::Segment(thread, index + 2));
                }
                Some(Position::Generating(*runtime, *task))
            }
            None => {
                // Not known which task it is: it belongs to the region that the runtime was called in.
                let region = (index + 1..physical.segments.len())
                    .find_map(|s| self.found.regions.get(&(thread, s)).filter(|(r, _)| *r == runtime));
                stack.gap =
                    Some("which of the runtime's tasks this is, and what generated it, is not known".to_owned());
                *via = Via::Around;
                region.map(|(runtime, level)| Position::Region(*runtime, level.team))
            }
        }
    }

    /// True if the task that generated `task` is what lies at a segment.
    fn is_beneath(&self, runtime: usize, task: TaskId, thread: usize, segment: usize) -> bool {
        let snapshot = &self.snapshots[runtime];
        let Some(generating) = snapshot.task(task).and_then(|t| t.generating.flat()) else { return false };
        if self.found.tasks.get(&(runtime, generating)) == Some(&(thread, segment)) {
            return true;
        }
        self.implicit_place(runtime, generating) == Some((thread, segment))
    }

    /// Where the body of an implicit task is.
    fn implicit_place(&self, runtime: usize, task: TaskId) -> Option<SegmentAt> {
        let task = self.snapshots[runtime].task(task)?;
        if task.kind.get() != Some(TaskKind::Implicit) {
            return None;
        }
        self.found.bodies.get(&(runtime, task.team.flat()?, task.member?)).copied()
    }

    fn generating(&self, stack: &mut LogicalStack, runtime: usize, task: TaskId, via: &mut Via) -> Option<Position> {
        *via = Via::Generated;
        let snapshot = &self.snapshots[runtime];
        let task = snapshot.task(task)?;
        let Some(id) = task.generating.flat() else {
            stack.gap = Some(match task.generating.why() {
                Some(why) => format!("what generated the task is not known: {why}"),
                None => "the task that generated it is over".to_owned(),
            });
            // The region is known all the same.
            *via = Via::Around;
            return task.team.flat().map(|team| Position::Region(runtime, team));
        };
        let generating = snapshot.task(id)?;
        match generating.kind.get() {
            Some(TaskKind::Implicit) => {
                let team = generating.team.flat();
                match self.implicit_place(runtime, id) {
                    Some((thread, segment)) => Some(Position::Body(thread, segment)),
                    None => team.map(|team| Position::Region(runtime, team)),
                }
            }
            Some(kind) if kind.is_explicit() => match self.found.tasks.get(&(runtime, id)) {
                Some((thread, segment)) => Some(Position::Body(*thread, *segment)),
                None => Some(Position::Task(runtime, id)),
            },
            _ => None,
        }
    }

    fn why_no_fork(&self, runtime: usize, team: TeamId) -> String {
        let snapshot = &self.snapshots[runtime];
        let primary = snapshot.team(team).and_then(|t| t.members.first().copied().flatten());
        let physical = primary.and_then(|lwp| self.threads.iter().find(|t| t.lwp == lwp));
        match (primary, physical) {
            (Some(lwp), Some(physical)) if !physical.backtrace.end.is_complete() => {
                format!(
                    "the stack of thread {lwp}, which opened the region, cannot be followed: {}",
                    physical.backtrace.end
                )
            }
            (Some(lwp), Some(_)) => {
                format!("which call on the stack of thread {lwp} opened the region is not certain")
            }
            _ => "the thread that opened the region is not known".to_owned(),
        }
    }

    /// Appends the frames of a segment of the program, or only its outermost, without its line.
    fn emit(&self, stack: &mut LogicalStack, thread: usize, index: usize, via: &mut Via, only_outermost: bool) {
        let physical = &self.threads[thread];
        let segment = &physical.segments[index];
        let mut frames: Vec<(LogicalFrame, Option<Arc<str>>)> = Vec::new();
        let left_out = segment.frames.len().saturating_sub(2 * END_FRAMES);
        let middle = segment.frames.start + END_FRAMES..segment.frames.start + END_FRAMES + left_out;
        for number in segment.frames.clone() {
            if middle.contains(&number) {
                if number == middle.start {
                    frames.push((LogicalFrame::left_out(left_out), None));
                }
                continue;
            }
            // Each may stand for hundreds that were inlined into each other.
            if frames.len() >= MAX_FRAMES {
                stack.gap = Some(TOO_DEEP.to_owned());
                break;
            }
            let frame = &physical.backtrace.frames[number];
            if let Some(python) = &physical.python {
                if let Some(functions) = python.at(number) {
                    let module = self.process.module(frame.pc);
                    let of = |function| (python_frame(function, physical.lwp, frame.pc, module.clone()), None);
                    frames.extend(functions.iter().map(of));
                    continue;
                }
                if python.hides(number) {
                    continue;
                }
            }
            let sources = self.process.source(frame.lookup());
            let described = sources.iter().any(|source| source.language.is_some() || source.file.is_some());
            let functions = if described { sources.len() } else { 0 };
            for (inner, source) in sources.iter().enumerate() {
                let raw = source.raw.clone();
                // A wrapper and the body it calls are one construct: the body has the line.
                if let (Some((_, Some(inner))), Some(outer)) = (frames.last(), raw.as_deref())
                    && outlined::is_body_of(inner, outer)
                {
                    let (body, name) = frames.last_mut().expect("it has just been looked at");
                    body.inlined = source.inlined;
                    if outlined::outlined(outer).is_some_and(|o| o.wrapper == outlined::Wrapper::Task)
                        && let Some(construct) = &mut body.construct
                    {
                        construct.name = Pragma::Task;
                    }
                    // Which function contains the construct, the wrapper's name may tell.
                    body.function = body.function.take().or_else(|| source.function.clone());
                    *name = raw;
                    continue;
                }
                let body = source.raw.as_deref().and_then(outlined::outlined);
                let module = self.process.module(frame.pc);
                // Called by the program itself, it is a region executed by this thread alone, or a task at once.
                let construct = body.as_ref().map(|body| {
                    Construct::made(match body.wrapper {
                        outlined::Wrapper::Task => Pragma::Task,
                        outlined::Wrapper::Target => Pragma::Target,
                        outlined::Wrapper::Debug => Pragma::Parallel,
                    })
                });
                let function = source.function.clone();
                frames.push((
                    LogicalFrame {
                        function,
                        construct,
                        file: source.file.clone(),
                        line: source.line,
                        inlined: source.inlined,
                        lwp: Some(physical.lwp),
                        addr: Some(frame.pc),
                        module,
                        via: Via::Call,
                        language: Language::Compiled,
                        place: Some(FramePlace { thread, frame: number, inner, functions }),
                    },
                    raw,
                ));
            }
        }
        if index + 1 == physical.segments.len() && physical.backtrace.end.is_complete() {
            let is_root = |raw: &Option<Arc<str>>| raw.as_deref().is_some_and(|raw| ROOTS.contains(&raw));
            // Of a stripped program those outward of the C library's have no names.
            let own = |raw: &Option<Arc<str>>| raw.is_some() && !is_root(raw);
            let outer = frames.iter().rposition(|(_, raw)| own(raw)).map_or(0, |last| last + 1);
            if let Some(root) = frames[outer..].iter().position(|(_, raw)| is_root(raw)) {
                frames.truncate(outer + root);
            }
        }
        // The C library's piece of code that a handler returns to has no name of its own.
        if let Some((trampoline, _)) = frames.last_mut().filter(|(f, _)| segment.interrupts && f.function.is_none()) {
            trampoline.function = Some(Arc::from(HANDLED));
        }
        // Code that the body shares with another body, which was not opened.
        if let Some((outermost, raw)) =
            frames.last_mut().filter(|(frame, _)| segment.jumped && frame.construct.is_some())
        {
            (outermost.construct, outermost.function) = (None, raw.clone());
        }
        if let Some((outermost, _)) = frames.last_mut().filter(|_| !segment.jumped)
            && let Some((name, line)) = self.construct(thread, index)
        {
            fill(outermost, name, line);
        }
        for (frame, _) in &mut frames {
            if let Some(construct) = frame.construct.as_ref().filter(|_| frame.file.is_none()) {
                frame.file = construct.file.clone();
            }
        }
        if !only_outermost {
            self.correct_call(stack, thread, index, *via, &mut frames);
        }
        let first = if only_outermost { frames.len().saturating_sub(1) } else { 0 };
        for (mut frame, _) in frames.drain(first..) {
            frame.via = std::mem::replace(via, Via::Call);
            if only_outermost {
                frame.line = None;
            }
            stack.frames.push(frame);
        }
    }

    /// Corrects the innermost frames of a segment whose call opened the region, or generated the task, that the stack
    /// has just left. What is known of that construct is more reliable than what debug information says of the call.
    fn correct_call(
        &self,
        stack: &mut LogicalStack,
        thread: usize,
        index: usize,
        via: Via,
        frames: &mut Vec<(LogicalFrame, Option<Arc<str>>)>,
    ) {
        let physical = &self.threads[thread];
        let entry = index.checked_sub(1).and_then(|call| physical.segments[call].entry);
        let Some(entry) = entry.filter(|e| e.unplaced) else { return };
        let caller = &physical.backtrace.frames[physical.segments[index].frames.start];
        if let Some(left) = self.process.callee(caller).filter(|at| self.process.owner(*at) == CodeOwner::Program) {
            // The line is that of a call within the program; what it called has jumped into the runtime.
            let source = self.process.source(left);
            if let Some(function) = source.last() {
                let frame = LogicalFrame {
                    function: function.function.clone(),
                    construct: None,
                    file: None,
                    line: None,
                    inlined: false,
                    lwp: Some(physical.lwp),
                    addr: Some(left),
                    module: self.process.module(left),
                    via: Via::Call,
                    language: Language::Compiled,
                    place: None,
                };
                let raw = frame.function.clone();
                frames.insert(0, (frame, raw));
            }
            return;
        }
        // A task executed while its generating task waits was generated by another call.
        let generates = index.checked_sub(1).is_some_and(|call| physical.segments[call].generates());
        let related = matches!(via, Via::Region) || via == Via::Generated && generates;
        let body = stack.frames.last().filter(|_| related);
        let Some((body, construct)) = body.and_then(|body| Some((body, body.construct.as_ref()?))) else {
            // What kind of call it is, is known all the same: its line is not to be trusted.
            if let (true, Some((frame, _))) = (entry.role.opens(), frames.first_mut()) {
                frame.line = None;
            }
            return;
        };
        if construct.called {
            // The source has this very call.
            return;
        }
        let own = frames.iter().take_while(|(frame, _)| frame.addr == Some(caller.pc));
        let (container, construct) = (body.function.clone(), construct.clone());
        let outer = frames.iter().skip(1).map(|(_, raw)| raw.as_deref()).chain([None]);
        let contains = |(frame, outer): (&LogicalFrame, Option<&str>)| match (&frame.function, &container) {
            (Some(own), Some(container)) => names::is_called(container, own, outer),
            _ => false,
        };
        let found = own.map(|(frame, _)| frame).zip(outer).position(contains);
        match found {
            // If the statement before was inlined, it seems that the function inlined there makes the call.
            Some(seeming) => {
                drop(frames.drain(..seeming));
                // What the compiler calls it, the body of the construct has for a name; the source's is better.
                let name = frames.first().and_then(|(frame, _)| frame.function.clone());
                for inner in stack.frames.iter_mut().filter(|f| f.function == container && f.construct.is_some()) {
                    inner.function = name.clone();
                }
            }
            // The function that contains the construct was inlined, and the call has lost its place in it.
            None if container.is_some() => {
                let Some((outer, raw)) = frames.first_mut() else { return };
                let inlined =
                    LogicalFrame { function: container, construct: None, inlined: true, place: None, ..outer.clone() };
                outer.line = None;
                let raw = raw.clone();
                frames.insert(0, (inlined, raw));
            }
            None => {}
        }
        if let Some((frame, _)) = frames.first_mut() {
            (frame.file, frame.line) = (construct.file.clone(), construct.line);
        }
    }

    /// The construct a segment of the program is the body of, if the runtime called it, and its line.
    fn construct(&self, thread: usize, index: usize) -> Option<(Pragma, Option<(SourceLine, bool)>)> {
        let physical = &self.threads[thread];
        let segment = &physical.segments[index];
        let next = physical.segments.get(index + 1).filter(|_| !segment.interrupts)?;
        let CodeOwner::Runtime(runtime) = next.owner else { return None };
        let described = || {
            let start = segment.begins.or_else(|| self.absent_start(thread, index))?;
            Some((lines::construct_line(self.process, start)?, true))
        };
        let (name, line) = if segment.region {
            let team = self.found.regions.get(&(thread, index)).and_then(|(_, level)| self.region(runtime, level.team));
            let name = team.and_then(|t| t.construct.get()).or_else(|| next.entry.map(|e| e.construct));
            (name.unwrap_or(Pragma::Parallel), team.and_then(|t| located(&t.location)))
        } else if segment.task && next.entry.is_none_or(|e| e.role != Role::Other) {
            let task = self.found.task_at.get(&(thread, index)).and_then(|(_, id)| self.task(runtime, *id));
            // A task that is executed at once is executed by the call that generates it.
            let generating = next.entry.filter(|_| next.generates());
            (generating.map_or(Pragma::Task, |e| e.construct), task.and_then(|t| located(&t.location)))
        } else if segment.task && self.is_target_body(thread, index) {
            // On the host.
            (Pragma::Target, None)
        } else {
            return None;
        };
        Some((name, line.or_else(described)))
    }

    /// True if a segment of the program is the body of a target region on the host, and no task that the call executes: the program
    /// has given it to that call.
    fn is_target_body(&self, thread: usize, index: usize) -> bool {
        let physical = &self.threads[thread];
        let [segment, call, caller, ..] = &physical.segments[index..] else { return false };
        let body = call.entry.filter(|entry| entry.construct == Pragma::Target).and_then(|entry| entry.body);
        let caller = physical.backtrace.frames.get(caller.frames.start);
        body.zip(caller).is_some_and(|(argument, caller)| {
            segment.begins.is_some() && self.process.function_argument(caller, argument) == segment.begins
        })
    }

    /// Where the function of a body begins that has left the stack by a jump, as the runtime tells.
    fn absent_start(&self, thread: usize, index: usize) -> Option<Addr> {
        let region = self.found.regions.get(&(thread, index));
        let team = region.and_then(|(runtime, level)| self.region(*runtime, level.team));
        let task = self.found.task_at.get(&(thread, index));
        let task = task.and_then(|(runtime, id)| self.task(*runtime, *id));
        team.map(|team| &team.function).or_else(|| task.map(|task| &task.function))?.get()
    }

    /// Appends the body of a construct that has left the stack by a jump to the segment's outermost function.
    fn emit_jumped(&self, stack: &mut LogicalStack, thread: usize, index: usize, via: &mut Via) {
        let segment = &self.threads[thread].segments[index];
        if segment.jumped
            && let Some((name, line)) = self.construct(thread, index)
        {
            let start = segment.begins.or_else(|| self.absent_start(thread, index));
            self.emit_absent(stack, name, start, line, std::mem::replace(via, Via::Call));
        }
    }

    fn emit_region(&self, stack: &mut LogicalStack, runtime: usize, team: TeamId, via: Via) {
        let Some(team) = self.region(runtime, team) else { return };
        let function = team.function.get();
        let line = located(&team.location);
        let line = line.or_else(|| Some((lines::construct_line(self.process, function?)?, true)));
        self.emit_absent(stack, team.construct.get().unwrap_or(Pragma::Parallel), function, line, via);
    }

    fn emit_task(&self, stack: &mut LogicalStack, runtime: usize, task: TaskId, via: Via) {
        let Some(task) = self.task(runtime, task) else { return };
        self.emit_absent(stack, Pragma::Task, task.function.get(), located(&task.location), via);
    }

    /// A construct whose body is on no stack.
    fn emit_absent(
        &self,
        stack: &mut LogicalStack,
        construct: Pragma,
        function: Option<Addr>,
        line: Option<(SourceLine, bool)>,
        via: Via,
    ) {
        let mut frame = LogicalFrame {
            function: None,
            construct: None,
            file: None,
            line: None,
            inlined: false,
            lwp: None,
            addr: function,
            module: function.and_then(|f| self.process.module(f)),
            via,
            language: Language::Compiled,
            place: None,
        };
        if let Some(start) = function {
            let source = self.process.source(start);
            if let Some(source) = source.last() {
                frame.function = source.function.clone();
                frame.construct = source.body.then(|| Construct::made(construct));
            }
        } else {
            // What it is called is not known, nor whether it has a name.
            frame.construct = Some(Construct::made(construct));
        }
        fill(&mut frame, construct, line);
        stack.frames.push(frame);
    }
}

/// A Python function that the frame with its callee's return address `pc` executes.
fn python_frame(function: &PythonFrame, lwp: i32, pc: Addr, module: Option<(Arc<str>, u64)>) -> LogicalFrame {
    LogicalFrame {
        function: Some(Arc::clone(&function.code.name)),
        construct: None,
        file: Some(Arc::clone(&function.code.file)),
        line: function.line,
        inlined: false,
        lwp: Some(lwp),
        addr: Some(pc),
        module,
        via: Via::Call,
        language: Language::Python,
        place: None,
    }
}

/// A line, and whether it is that of the first code of a body: what the runtime recorded is the directive's.
fn located(fact: &Fact<SourceLine>) -> Option<(SourceLine, bool)> {
    Some((fact.value()?.clone(), fact.origin() == Some(Origin::Dwarf)))
}

fn fill(frame: &mut LogicalFrame, name: Pragma, line: Option<(SourceLine, bool)>) {
    let begins = line.as_ref().is_some_and(|(_, begins)| *begins);
    let (file, number, function) = match line {
        Some((line, _)) => (Some(Arc::from(line.file)), Some(line.line), Some(line.function)),
        None => (None, None, None),
    };
    frame.file = frame.file.take().or_else(|| file.clone());
    // Its name does not say that a compiler made it. It may have none, in a stripped program.
    let made = frame.construct.is_some();
    let called = !made && frame.function.is_some();
    let recorded = frame.function.is_none();
    frame.construct =
        Some(Construct { name, file, line: number, begins, called, recorded, named: made || function.is_some() });
    frame.function = frame.function.take().or_else(|| function.filter(|f| !f.is_empty()).map(Arc::from));
}

/// The body of a region without a name of its own belongs to the function that opened the region. Its construct is
/// where that function calls the runtime.
fn borrow_names(frames: &mut [LogicalFrame]) {
    for index in (0..frames.len().saturating_sub(1)).rev() {
        let (inner, outer) = frames.split_at_mut(index + 1);
        let (inner, outer) = (&mut inner[index], &outer[0]);
        let Some(construct) = &mut inner.construct else { continue };
        // Called by the program itself, it stands in what calls it. Of a function without a name nobody can tell whether it
        // was made of a construct.
        if construct.called || !construct.named || !matches!(outer.via, Via::Region | Via::Call) {
            continue;
        }
        if construct.recorded && outer.lwp.is_some() && outer.function.is_some() || inner.function.is_none() {
            inner.function = outer.function.clone();
        }
        if construct.line.is_none() {
            (construct.file, construct.line) = (outer.file.clone(), outer.line);
        }
    }
}
