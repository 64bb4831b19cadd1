//! Python functions in place of the interpreter loop that executes them.
//!
//! A call of the loop is found by an address in its own stack frame. Versions of CPython that keep none are matched in
//! order, by the name of the loop's function. Each of its stack frames has to hold the address of the Python frame.

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_process::{Addr, Target, Thread};
use ompd_python::{Call, GilState, Interpreter, LayoutOrigin, PythonFrame, PythonThread, Runtime, Snapshot};

use crate::capture::Stacks;
use crate::frame::{Backtrace, CodeOwner};
use crate::names;
use crate::process::Process;

/// The function of CPython that executes Python code.
const LOOP: &str = "_PyEval_EvalFrameDefault";
/// Functions that acquire the GIL: the one that waits, and exported ones that it is inlined into.
const TAKE_GIL: [&str; 3] = ["take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread"];
/// The function of the C library in which threads wait for the GIL.
const TIMED_WAIT: &str = "pthread_cond_";
/// Bytes of one stack frame in which the address of a Python frame is looked for.
const SEARCHED: u64 = 16 << 10;

/// One CPython of a process, and its threads.
#[derive(Debug, Clone)]
pub struct Python {
    /// The module that has it (text of the target).
    pub path: String,
    /// Its version, where it could be found out.
    pub version: Option<String>,
    /// Where its layout comes from, if it is known.
    pub layout: Option<LayoutOrigin>,
    /// Threads that it knows.
    pub threads: Vec<i32>,
    /// How many threads it knows that the process does not have: fork left them behind.
    pub gone: usize,
    /// Its GIL; with subinterpreters there may be several.
    pub gils: Vec<Gil>,
    /// Why something is missing.
    pub problem: Option<String>,
}

/// The global interpreter lock.
#[derive(Debug, Clone)]
pub struct Gil {
    /// Who holds it, or why that is unknown.
    pub holder: Result<GilHolder, String>,
    /// Threads that sleep until they get it.
    pub waiting: Vec<i32>,
}

/// Who holds a GIL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GilHolder {
    /// Nobody.
    Nobody,
    /// The thread with this id.
    Thread(i32),
    /// A thread that the process does not have: fork left it behind.
    Gone,
}

/// What to show of a thread's stack in place of its frames.
#[derive(Debug, Default)]
pub(crate) struct PythonStack {
    /// By index of the frame: the Python functions it executes, the innermost first.
    shown: BTreeMap<usize, Vec<PythonFrame>>,
    /// Frames of the interpreter that say nothing.
    hidden: HashSet<usize>,
    /// Why Python frames are missing.
    pub(crate) gap: Option<String>,
}

impl PythonStack {
    /// The Python functions that a frame stands for.
    pub(crate) fn at(&self, frame: usize) -> Option<&[PythonFrame]> {
        self.shown.get(&frame).map(Vec::as_slice)
    }

    /// True if nothing is shown of a frame.
    pub(crate) fn hides(&self, frame: usize) -> bool {
        self.hidden.contains(&frame)
    }

    /// True if nothing is known of Python in this stack.
    fn is_empty(&self) -> bool {
        self.shown.is_empty() && self.gap.is_none()
    }

    /// The Python frames on the stack of the thread in which `pthread_self` returns `pthread`.
    pub(crate) fn of(
        process: &Process<'_>,
        python: &Snapshot,
        stacks: &Stacks,
        pthread: Addr,
        backtrace: &Backtrace,
    ) -> Option<PythonStack> {
        let mut stack = PythonStack::default();
        for runtime in &python.runtimes {
            let search = Search { process, stacks, runtime, backtrace };
            // The newest comes first. One that fork left behind may have had the same stack before.
            let mut seen = HashSet::new();
            let own = runtime.threads.iter().filter(|state| state.pthread == pthread);
            for state in own.filter(|state| seen.insert(state.interpreter)) {
                search.place(state, &mut stack);
            }
        }
        if stack.is_empty() {
            return None;
        }
        if !stack.shown.is_empty() {
            stack.hide(process, python, backtrace);
        }
        Some(stack)
    }

    /// Hides the interpreter's own frames: all between Python functions, and of those further in all that lead to other code.
    fn hide(&mut self, process: &Process<'_>, python: &Snapshot, backtrace: &Backtrace) {
        let modules = process.target.modules();
        let bases: HashSet<Addr> = python.runtimes.iter().map(|runtime| runtime.base).collect();
        let first = self.shown.keys().next().copied().unwrap_or(0);
        let mut led_out = false;
        for (index, frame) in backtrace.frames.iter().enumerate().filter(|(index, _)| !self.shown.contains_key(index)) {
            let module = process.images.index_at(frame.lookup()).and_then(|index| modules.get(index));
            let Some(module) = module else { continue };
            let whole = Interpreter::is_interpreters(&module.path);
            if !whole && !bases.contains(&module.base()) {
                led_out |= index < first && process.owner(frame.lookup()) != CodeOwner::System;
                continue;
            }
            let symbol = process.symbol(frame.lookup());
            let name = symbol.as_ref().map(|symbol| &*symbol.name);
            // In a program with the interpreter built into it, names tell which code is the interpreter's.
            let own = whole || name.is_some_and(|name| name.trim_start_matches('_').starts_with("Py"));
            // A loop whose Python function is unknown is shown as it is.
            let known = name.is_none_or(|name| name != LOOP) || index < first;
            let inner = index < first && !led_out;
            if own && known && (!inner || name.is_none_or(is_glue)) {
                self.hidden.insert(index);
            }
        }
    }
}

/// Functions of CPython that only call what they are given.
fn is_glue(name: &str) -> bool {
    const BEGINNINGS: [&str; 7] =
        ["PyObject_Call", "_PyObject_Call", "cfunction_", "method_", "slot_tp_", "_PyEval_", "PyEval_EvalCode"];
    name.contains("ectorcall") || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// What `pthread_self` returns in each thread, as far as it is known. Nothing is looked up where there is no Python.
pub(crate) fn pthreads(target: &dyn Target, python: &Snapshot) -> Vec<Option<Addr>> {
    let distance = if python.runtimes.is_empty() { None } else { target.pthread_distance() };
    let of = |thread: &Thread| Some(thread.thread_pointer()?.back(distance?));
    target.threads().iter().map(of).collect()
}

/// Looks for the calls of a thread's loop on its stack.
struct Search<'a, 't> {
    process: &'a Process<'t>,
    stacks: &'a Stacks,
    runtime: &'a Runtime,
    backtrace: &'a Backtrace,
}

impl Search<'_, '_> {
    fn place(&self, state: &PythonThread, stack: &mut PythonStack) {
        let loops: Vec<usize> = (0..self.backtrace.frames.len()).filter(|frame| self.is_loop(*frame)).collect();
        let mut gap = state.problem.as_ref().map(|why| format!("Python frames are missing: {why}"));
        let mut from = 0;
        for call in &state.calls {
            let found = match call.anchor {
                Some(anchor) => (from..self.backtrace.frames.len()).find(|frame| self.holds_anchor(*frame, anchor)),
                None => loops.iter().copied().find(|frame| *frame >= from && self.holds_frame(*frame, call)),
            };
            match found {
                Some(frame) => {
                    from = frame + 1;
                    if !call.frames.is_empty() {
                        stack.shown.insert(frame, call.frames.clone());
                    }
                }
                None if call.frames.is_empty() => {}
                None => {
                    let name = call.frames.first().map_or("", |frame| &*frame.code.name);
                    gap = gap.or_else(|| Some(self.why_not_found(name)));
                    break;
                }
            }
        }
        // The innermost call may be about to begin, or to end.
        let open = loops.iter().filter(|frame| !stack.shown.contains_key(frame)).count();
        let innermost = loops.first().is_some_and(|frame| !stack.shown.contains_key(frame));
        if gap.is_none() && open > usize::from(innermost) && self.backtrace.end.is_complete() {
            gap = Some("some calls of Python's interpreter loop have no Python frame".to_owned());
        }
        stack.gap = stack.gap.take().or(gap);
    }

    fn why_not_found(&self, name: &str) -> String {
        match self.backtrace.end.is_complete() {
            true => format!("the place of the Python function {name} and its callers on the stack is unknown"),
            false => self.backtrace.end.to_string(),
        }
    }

    /// True if a frame is the interpreter's.
    fn is_interpreters(&self, frame: usize) -> bool {
        let at = self.backtrace.frames[frame].lookup();
        let module = self.process.images.index_at(at).and_then(|index| self.process.target.modules().get(index));
        module.is_some_and(|module| module.base() == self.runtime.base)
    }

    /// True if it executes the loop, as the name of its function says.
    fn is_loop(&self, frame: usize) -> bool {
        let symbol = self.process.symbol(self.backtrace.frames[frame].lookup());
        let name = symbol.as_ref().and_then(|symbol| symbol.name.strip_prefix(LOOP));
        name.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) && self.is_interpreters(frame)
    }

    fn holds_anchor(&self, frame: usize, anchor: Addr) -> bool {
        area(self.process, self.backtrace, frame).is_some_and(|(start, end)| start <= anchor.0 && anchor.0 < end)
            && self.is_interpreters(frame)
    }

    /// True if a frame has the address of the Python frame of `call`.
    fn holds_frame(&self, frame: usize, call: &Call) -> bool {
        let Some(wanted) = call.frames.first().map(|frame| frame.at) else { return false };
        holds(self.process, self.stacks, self.backtrace, frame, &|word| word == wanted)
    }
}

/// The part of the stack that belongs to a frame.
fn area(process: &Process<'_>, stack: &Backtrace, frame: usize) -> Option<(u64, u64)> {
    let frames = &stack.frames;
    let start = match frame.checked_sub(1) {
        Some(inner) if !frames[frame].exact => frames[inner].cfa?.0,
        _ => frames[frame].registers.get(process.target.arch().machine.facts()?.registers.stack_pointer)?,
    };
    Some((start, frames[frame].cfa?.0)).filter(|(start, end)| start < end)
}

/// True if a register of a frame, or a word of its part of the stack, is what is wanted.
fn holds(
    process: &Process<'_>,
    stacks: &Stacks,
    stack: &Backtrace,
    frame: usize,
    wanted: &dyn Fn(Addr) -> bool,
) -> bool {
    let registers = &stack.frames[frame].registers;
    let numbers = 0..ompd_process::GENERAL as u16;
    if numbers.clone().any(|number| registers.get(number).is_some_and(|value| wanted(Addr(value)))) {
        return true;
    }
    let Some((start, end)) = area(process, stack, frame) else { return false };
    let end = end.min(start.saturating_add(SEARCHED));
    let mut words = (start.next_multiple_of(8)..end).step_by(8);
    let found = words.any(|at| stacks.read_u64(process.target, Addr(at)).is_ok_and(|word| wanted(Addr(word))));
    if !found {
        // One that only a stop shows may be it.
        for number in numbers {
            process.images.register(registers, number);
        }
    }
    found
}

/// What is known of each CPython, with the threads of the process: `backtraces` and `pthreads` are in their order.
pub(crate) fn report(
    process: &Process<'_>,
    stacks: &Stacks,
    backtraces: &[&Backtrace],
    pthreads: &[Option<Addr>],
) -> Vec<Python> {
    let own = process.target.threads().iter().zip(pthreads);
    let threads: HashMap<Addr, i32> = own.filter_map(|(thread, pthread)| Some(((*pthread)?, thread.lwp))).collect();
    let runtimes = stacks.python.runtimes.iter();
    runtimes.map(|runtime| one(process, runtime, stacks, backtraces, &threads)).collect()
}

fn one(
    process: &Process<'_>,
    runtime: &Runtime,
    stacks: &Stacks,
    backtraces: &[&Backtrace],
    threads: &HashMap<Addr, i32>,
) -> Python {
    let lwp = |state: &PythonThread| threads.get(&state.pthread).copied();
    let gil = |gil: &ompd_python::Gil| {
        let holder = match &gil.state {
            Ok(GilState::Free) => Ok(GilHolder::Nobody),
            Ok(GilState::HeldBy(state)) => {
                let holder = runtime.threads.iter().find(|own| own.state == *state).and_then(lwp);
                Ok(holder.map_or(GilHolder::Gone, GilHolder::Thread))
            }
            Err(why) => Err(why.to_string()),
        };
        let own = process.target.threads().iter().zip(backtraces);
        let waits = |thread: &Thread, stack: &Backtrace| match asleep_at(process.target, thread) {
            Some(futex) => gil.is_waited_for_at(futex),
            // What an interrupted sleep waited for, only the stack tells.
            None => gil.state.is_ok() && takes_gil(process, runtime, gil, stacks, stack),
        };
        let waiting = own.filter(|(thread, stack)| waits(thread, stack)).map(|(thread, _)| thread.lwp).collect();
        Gil { holder, waiting }
    };
    let known: HashSet<i32> = runtime.threads.iter().filter_map(lwp).collect();
    let mut lwps: Vec<i32> = known.into_iter().collect();
    lwps.sort_unstable();
    Python {
        path: runtime.path.clone(),
        version: runtime.version.map(|version| version.to_string()),
        layout: runtime.layout,
        threads: lwps,
        gone: runtime.threads.iter().filter(|state| lwp(state).is_none()).count(),
        gils: runtime.gils.iter().map(gil).collect(),
        problem: runtime.problem.as_ref().map(ToString::to_string),
    }
}

/// The futex a thread sleeps on, or has just been woken from.
fn asleep_at(target: &dyn Target, thread: &Thread) -> Option<Addr> {
    let registers = thread.registers.as_ref().ok()?;
    let call = registers.syscall.or(registers.returned)?;
    (target.arch().machine.call_name(call.number) == Some("futex")).then_some(Addr(call.args[0]))
}

/// True if a thread is in a function that acquires the GIL, and there in the C library. The function has such a name,
/// or the C library waits for the condition variable of this GIL.
fn takes_gil(
    process: &Process<'_>,
    runtime: &Runtime,
    gil: &ompd_python::Gil,
    stacks: &Stacks,
    stack: &Backtrace,
) -> bool {
    let is_library = |index: &usize| process.owner(stack.frames[*index].lookup()) == CodeOwner::System;
    let inner = (0..stack.frames.len()).take_while(is_library).count();
    let Some(frame) = stack.frames.get(inner).filter(|frame| inner > 0 && !frame.exact) else { return false };
    let module = process.images.index_at(frame.lookup()).and_then(|index| process.target.modules().get(index));
    if module.is_none_or(|module| module.base() != runtime.base) {
        return false;
    }
    let name = process.symbol(frame.lookup()).map(|symbol| names::without_clones(&symbol.name).to_owned());
    if runtime.gils.len() == 1 && name.is_some_and(|name| TAKE_GIL.contains(&&*name)) {
        return true;
    }
    let called = process.symbol(stack.frames[inner - 1].lookup());
    called.is_some_and(|called| called.name.trim_start_matches('_').starts_with(TIMED_WAIT))
        && (0..inner).any(|frame| holds(process, stacks, stack, frame, &|word| gil.is_waited_for_at(word)))
}
