//! The threads of an interpreter and the Python frames of each.
//!
//! All is read while the process is stopped, so there are limits: they count for all threads together.

use std::collections::HashSet;
use std::sync::Arc;

use ompd_process::{Addr, Target, TargetExt};

use crate::Unknown;
use crate::code::{Code, Codes, Read};
use crate::fields::Fields;
use crate::gil::Gil;
use crate::interpreter::{Interpreter, Types, Version};
use crate::layout::{Chain, Layout, LayoutOrigin};

/// Frames of all threads together.
const FRAMES: usize = 4096;
/// Frames of one thread that are read although others used up [`FRAMES`].
const LEAST_FRAMES: usize = 64;
/// Threads of one interpreter.
const THREADS: usize = 16 << 10;
/// Interpreters of one process.
const INTERPRETERS: usize = 256;

/// The Python of a process at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// One for each CPython that is loaded; usually one or none.
    pub runtimes: Vec<Runtime>,
}

/// One CPython.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The module that has it (text of the target).
    pub path: String,
    /// Lowest address of that module.
    pub base: Addr,
    /// Its version, where it could be found out.
    pub version: Option<Version>,
    /// Where its layout comes from, if it is known.
    pub layout: Option<LayoutOrigin>,
    /// Its threads, those of subinterpreters included.
    pub threads: Vec<PythonThread>,
    /// Its GIL; with subinterpreters there may be several.
    pub gils: Vec<Gil>,
    /// Why something is missing.
    pub problem: Option<Unknown>,
}

/// A thread of an interpreter (`PyThreadState`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonThread {
    /// Its `PyThreadState`.
    pub state: Addr,
    /// The interpreter whose thread it is (`PyInterpreterState`).
    pub interpreter: Addr,
    /// What `pthread_self` returns in it.
    pub pthread: Addr,
    /// Calls of the interpreter loop, the innermost first.
    pub calls: Vec<Call>,
    /// Why calls are missing further out.
    pub problem: Option<Unknown>,
}

/// One call of the interpreter loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// An address in the loop's own stack frame; versions before 3.10 keep none.
    pub anchor: Option<Addr>,
    /// The Python functions that it executes, the innermost first.
    pub frames: Vec<PythonFrame>,
}

/// A Python function that is being executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFrame {
    /// Its frame in the interpreter's memory.
    pub at: Addr,
    /// The function.
    pub code: Arc<Code>,
    /// The line it executes; `None` if its code has none there.
    pub line: Option<u32>,
}

impl Snapshot {
    /// Reads every CPython of a process that stands still. `interpreters` are those of [`Interpreter::all`], which may have been
    /// asked before: it looks into the symbol tables of all files.
    pub fn read(target: &dyn Target, interpreters: &[Interpreter]) -> Snapshot {
        Snapshot { runtimes: interpreters.iter().map(|one| Runtime::read(target, one)).collect() }
    }
}

impl Runtime {
    fn read(target: &dyn Target, interpreter: &Interpreter) -> Runtime {
        let mut runtime = Runtime {
            path: interpreter.path.clone(),
            base: interpreter.base,
            version: interpreter.version,
            layout: interpreter.layout.as_ref().ok().map(|layout| layout.origin),
            threads: Vec::new(),
            gils: Vec::new(),
            problem: None,
        };
        runtime.problem = match (&interpreter.layout, &interpreter.types) {
            (Ok(layout), Ok(types)) => runtime.fill(target, layout, types, interpreter.runtime).err(),
            (Err(why), _) | (_, Err(why)) => Some(why.clone()),
        };
        runtime
    }

    fn fill(&mut self, target: &dyn Target, layout: &Layout, types: &Types, at: Addr) -> Result<(), Unknown> {
        let mut states = Vec::new();
        let mut gils = Vec::new();
        let walked = walk_states(target, layout, at, &mut states, &mut gils);
        let known: HashSet<Addr> = states.iter().map(|state| state.at()).collect();
        if layout.gil.in_runtime && !states.is_empty() {
            gils.push(at.offset(layout.gil.at));
        }
        self.gils = gils.into_iter().map(|gil| Gil::read(target, layout, gil, &known)).collect();
        let mut frames = Frames { target, layout, types, codes: Codes::default(), left: FRAMES };
        self.threads = states.iter().map(|state| frames.of(state)).collect();
        walked
    }
}

/// The thread states of all interpreters, and the GIL of each interpreter that has one of its own.
fn walk_states(
    target: &dyn Target,
    layout: &Layout,
    runtime: Addr,
    states: &mut Vec<Fields>,
    gils: &mut Vec<Addr>,
) -> Result<(), Unknown> {
    let mut seen = HashSet::new();
    let mut interpreter = target.read_ptr(runtime.offset(layout.interpreters_head))?;
    while !interpreter.is_null() {
        if seen.len() == INTERPRETERS {
            return Err(Unknown::TooMany { what: "interpreters", limit: INTERPRETERS });
        }
        if !seen.insert(interpreter) {
            return Err(Unknown::Not { what: "interpreter", at: interpreter });
        }
        if !layout.gil.in_runtime {
            let gil = target.read_ptr(interpreter.offset(layout.gil.at))?;
            if !gil.is_null() && !gils.contains(&gil) {
                gils.push(gil);
            }
        }
        let mut state = target.read_ptr(interpreter.offset(layout.threads_head))?;
        while !state.is_null() {
            if states.len() == THREADS {
                return Err(Unknown::TooMany { what: "threads", limit: THREADS });
            }
            if target.is_late() {
                return Err(Unknown::Late);
            }
            let fields = Fields::read(target, state, layout.thread_size, "thread of an interpreter")?;
            if !seen.insert(state) || fields.ptr(layout.thread_interpreter) != interpreter {
                return Err(Unknown::Not { what: "thread of an interpreter", at: state });
            }
            state = fields.ptr(layout.thread_next);
            states.push(fields);
        }
        interpreter = target.read_ptr(interpreter.offset(layout.interpreter_next))?;
    }
    Ok(())
}

/// Follows frames.
struct Frames<'a> {
    target: &'a dyn Target,
    layout: &'a Layout,
    types: &'a Types,
    codes: Codes,
    left: usize,
}

impl Frames<'_> {
    fn of(&mut self, state: &Fields) -> PythonThread {
        let mut calls = Vec::new();
        let most = self.left.max(LEAST_FRAMES);
        let mut walk = Walk { seen: HashSet::new(), most };
        let problem = match self.layout.chain {
            Chain::Objects | Chain::ObjectsInLoops => self.objects(state, &mut walk, &mut calls),
            Chain::Loops => self.loops(state, &mut walk, &mut calls),
            Chain::Entries { loops } => self.entries(state, loops, &mut walk, &mut calls),
        };
        self.left = self.left.saturating_sub(walk.seen.len());
        let pthread = state.ptr(self.layout.thread_id);
        let interpreter = state.ptr(self.layout.thread_interpreter);
        PythonThread { state: state.at(), interpreter, pthread, calls, problem: problem.err() }
    }

    /// Frame objects, each the only one of a call.
    fn objects(&mut self, state: &Fields, walk: &mut Walk, calls: &mut Vec<Call>) -> Result<(), Unknown> {
        let layout = self.layout;
        let mut at = state.ptr(layout.thread_frame);
        let mut ended = Ok(());
        while !at.is_null() {
            let next = walk.step(self.target, at).and_then(|()| {
                let frame = Fields::read(self.target, at, layout.frame_size, "frame")?;
                if frame.ptr(layout.object_type) != self.types.frame {
                    return Err(Unknown::Not { what: "frame", at });
                }
                let code = self.codes.read(self.target, layout, self.types, frame.ptr(layout.frame_code))?;
                Ok((frame.ptr(layout.frame_previous), self.frame(&frame, &code)))
            });
            match next {
                Ok((previous, frame)) => {
                    calls.push(Call { anchor: None, frames: vec![frame] });
                    at = previous;
                }
                Err(why) => {
                    ended = Err(why);
                    break;
                }
            }
        }
        if layout.chain == Chain::ObjectsInLoops && ended.is_ok() {
            ended = self.anchor(state, walk, calls);
        }
        ended
    }

    /// Gives each of all calls of a thread its anchor, the outermost first. The innermost call may not have a frame yet.
    fn anchor(&self, state: &Fields, walk: &mut Walk, calls: &mut Vec<Call>) -> Result<(), Unknown> {
        let layout = self.layout;
        let mut anchors = Vec::new();
        let mut at = state.ptr(layout.thread_loop);
        while at != state.at().offset(layout.thread_last_loop) {
            walk.step(self.target, at)?;
            let own = Fields::read(self.target, at, layout.loop_size, "call of the interpreter loop")?;
            anchors.push(at);
            at = own.ptr(layout.loop_previous);
        }
        if anchors.len() == calls.len() + 1 {
            calls.insert(0, Call { anchor: None, frames: Vec::new() });
        }
        if anchors.len() != calls.len() {
            return Err(Unknown::Not { what: "call of the interpreter loop for each frame", at: state.at() });
        }
        calls.iter_mut().zip(anchors).for_each(|(call, anchor)| call.anchor = Some(anchor));
        Ok(())
    }

    /// Each call has its innermost frame; the outermost of its frames is marked.
    fn loops(&mut self, state: &Fields, walk: &mut Walk, calls: &mut Vec<Call>) -> Result<(), Unknown> {
        let layout = self.layout;
        let mut anchor = state.ptr(layout.thread_frame);
        while anchor != state.at().offset(layout.thread_last_loop) {
            walk.step(self.target, anchor)?;
            let own = Fields::read(self.target, anchor, layout.loop_size, "call of the interpreter loop")?;
            let previous = own.ptr(layout.loop_previous);
            let mut at = own.ptr(layout.loop_frame);
            let mut call = Call { anchor: Some(anchor), frames: Vec::new() };
            let outer = loop {
                let (frame, own) = self.internal(walk, at)?;
                call.frames.extend(own);
                at = frame.ptr(layout.frame_previous);
                if frame.u8(layout.frame_is_entry) != 0 {
                    break at;
                }
            };
            calls.push(call);
            // The frame that called it is the innermost of the call further out.
            let further = Fields::read(self.target, previous, layout.loop_size, "call of the interpreter loop")?;
            if further.ptr(layout.loop_frame) != outer {
                return Err(Unknown::Not { what: "innermost frame of a call of the interpreter loop", at: outer });
            }
            anchor = previous;
        }
        Ok(())
    }

    /// The frames of a call are followed by its entry frame.
    fn entries(&mut self, state: &Fields, loops: bool, walk: &mut Walk, calls: &mut Vec<Call>) -> Result<(), Unknown> {
        let layout = self.layout;
        let mut at = state.ptr(layout.thread_frame);
        if loops {
            let own = Fields::read(self.target, at, layout.loop_size, "call of the interpreter loop")?;
            at = own.ptr(layout.loop_frame);
        }
        let mut frames = Vec::new();
        while !at.is_null() {
            let (frame, own) = self.internal(walk, at)?;
            if frame.u8(layout.frame_owner) >= Layout::FIRST_ENTRY_OWNER {
                calls.push(Call { anchor: Some(at), frames: std::mem::take(&mut frames) });
            }
            frames.extend(own);
            at = frame.ptr(layout.frame_previous);
        }
        match frames.first() {
            None => Ok(()),
            Some(frame) => Err(Unknown::Not { what: "frame of a call of the interpreter loop", at: frame.at }),
        }
    }

    /// An internal frame (`_PyInterpreterFrame`), and what it is to people: nothing if it is an entry frame, or the function has
    /// not begun.
    fn internal(&mut self, walk: &mut Walk, at: Addr) -> Result<(Fields, Option<PythonFrame>), Unknown> {
        /// Bits of a reference that are no part of the address (`_PyStackRef`, since 3.14).
        const TAGS: u64 = 7;
        let layout = self.layout;
        walk.step(self.target, at)?;
        let frame = Fields::read(self.target, at, layout.frame_size, "frame")?;
        let owner = frame.u8(layout.frame_owner);
        if owner > Layout::FIRST_ENTRY_OWNER + 1 {
            return Err(Unknown::Not { what: "frame", at });
        }
        if owner >= Layout::FIRST_ENTRY_OWNER && layout.chain != Chain::Loops {
            return Ok((frame, None));
        }
        let code = Addr(frame.u64(layout.frame_code) & !TAGS);
        let code = self.codes.read(self.target, layout, self.types, code)?;
        let offset = code.offset(layout, frame.u64(layout.frame_instruction));
        let begun = owner == Layout::GENERATOR || !offset.is_some_and(|offset| code.is_before_start(offset));
        let own = begun.then(|| self.frame(&frame, &code));
        Ok((frame, own))
    }

    fn frame(&self, frame: &Fields, code: &Read) -> PythonFrame {
        let offset = code.offset(self.layout, frame.u64(self.layout.frame_instruction));
        let line = offset.and_then(|offset| code.line(self.layout, offset));
        PythonFrame { at: frame.at(), code: Arc::clone(&code.code), line }
    }
}

/// What a walk along frames has seen.
struct Walk {
    seen: HashSet<Addr>,
    most: usize,
}

impl Walk {
    fn step(&mut self, target: &dyn Target, at: Addr) -> Result<(), Unknown> {
        if self.seen.len() == self.most {
            return Err(Unknown::TooMany { what: "Python frames", limit: self.most });
        }
        if target.is_late() {
            return Err(Unknown::Late);
        }
        if self.seen.insert(at) { Ok(()) } else { Err(Unknown::Not { what: "frame", at }) }
    }
}
