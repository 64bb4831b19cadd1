//! Which library function the program has called, by the stack.

use std::collections::HashMap;
use std::sync::Arc;

use ompd_process::{Addr, Module, Target, TargetExt};
use ompd_stack::{Backtrace, Code, Language, LogicalFrame, LogicalStack, source_name};

use super::model::{Call, CallSite};
use super::names::{is_library_function, is_library_source, is_system_library, mpi_name, plain_name};

/// Frames of a thread that are looked at.
const MOST_FRAMES: usize = 1024;

/// The call that a thread is in, as far as it is known.
pub(super) struct InCall {
    /// `None` if it executes code of the program, or of libraries alone.
    pub(super) call: Option<Call>,
    /// The functions of libraries it is in, innermost first.
    pub(super) functions: Vec<Arc<str>>,
    /// What the program's code has called, if that says so.
    pub(super) called: Option<Called>,
}

/// What a call instruction has called.
#[derive(Debug, Clone)]
pub(super) struct Called {
    /// Symbol of the function.
    pub(super) symbol: Arc<str>,
    /// Number of the calling frame, innermost first.
    pub(super) frame: usize,
}

/// The stacks of a process, and whose code was found at an address.
pub(super) struct Calls<'a, 't> {
    target: &'a dyn Target,
    code: &'a Code<'t>,
    report: &'a ompd_stack::Report,
    stacks: HashMap<i32, &'a LogicalStack>,
    owners: HashMap<Addr, Owner>,
    called: HashMap<Addr, Option<Arc<str>>>,
}

/// Whose code lies at an address, as far as its file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The program's.
    Program,
    /// A library's.
    Library,
    /// The program's own if it has source lines.
    WithLines,
}

impl<'a, 't> Calls<'a, 't> {
    pub(super) fn new(target: &'a dyn Target, code: &'a Code<'t>, report: &'a ompd_stack::Report) -> Calls<'a, 't> {
        let stacks = report.logical.iter().map(|stack| (stack.lwp, stack)).collect();
        Calls { target, code, report, stacks, owners: HashMap::new(), called: HashMap::new() }
    }

    /// The call that a thread is in.
    pub(super) fn of(&mut self, lwp: i32) -> InCall {
        let none = InCall { call: None, functions: Vec::new(), called: None };
        let Some(stack) = self.stacks.get(&lwp).copied().filter(|stack| stack.in_call.is_none()) else { return none };
        let own: Vec<&LogicalFrame> =
            stack.frames.iter().take_while(|frame| frame.lwp == Some(lwp)).take(MOST_FRAMES).collect();
        let at = own.iter().position(|frame| self.is_program(frame)).unwrap_or(own.len());
        // A library that calls the program back has nothing to do with what that calls. But one that was built with debug information
        // outside of the system's directories looks like the program.
        let outer = own.iter().rposition(|frame| self.is_entry(frame)).map_or(at, |entry| at.max(entry + 1));
        let at = if self.in_executable(&own[..outer]) { at } else { outer };
        let functions = own[..at].iter().filter_map(|frame| frame.function.clone()).collect();
        InCall { call: self.call(lwp, &own, at), functions, called: self.called_by(lwp, &own, at) }
    }

    /// The call of the frame with the index `at`, which is the program's.
    fn call(&mut self, lwp: i32, own: &[&LogicalFrame], at: usize) -> Option<Call> {
        // The interpreter's own code is not what its user wrote.
        let is_interpreters = self.report.is_interpreters(own.get(at)?);
        let is_python = |frame: &&LogicalFrame| frame.language == Language::Python;
        let further = own[at..].iter().position(is_python).filter(|_| is_interpreters).unwrap_or(0);
        let (at, site) = (at + further, own[at + further]);
        let is_others = |frame: &&LogicalFrame| frame.function.is_some() && !self.report.is_interpreters(frame);
        let inner = own[..at].iter().rposition(is_others).filter(|_| is_python(&site));
        let caller = inner.map_or(at, |inner| inner + 1);
        let inlined = own[caller.checked_sub(1)?].addr == own[caller].addr;
        // A frame of Python has the address in the interpreter's loop, which calls other functions of the interpreter.
        let says_nothing = inlined || is_python(&own[caller]);
        let called = if says_nothing { None } else { self.called(lwp, own[caller].addr?) };
        let function = called.or_else(|| own[..caller].iter().rev().find_map(|frame| frame.function.clone()))?;
        let (file, language) = (site.file.clone(), site.language);
        let site = CallSite { file, line: site.line, function: site.function.clone(), language };
        Some(Call { function: plain_name(&function).into(), site: Some(site) })
    }

    /// What the frame with the index `at`, which is the program's, has called.
    fn called_by(&self, lwp: i32, own: &[&LogicalFrame], at: usize) -> Option<Called> {
        let pc = own.get(at)?.addr.filter(|_| at > 0)?;
        let frames = &self.report.physical(lwp)?.frames;
        let frame = frames.iter().position(|frame| frame.pc == pc && !frame.exact)?;
        Some(Called { symbol: self.code.called(&frames[frame])?, frame })
    }

    /// The name of what the frame that executes at `pc` has called.
    fn called(&mut self, lwp: i32, pc: Addr) -> Option<Arc<str>> {
        if let Some(known) = self.called.get(&pc) {
            return known.clone();
        }
        let caller =
            self.report.physical(lwp).and_then(|backtrace: &Backtrace| backtrace.frames.iter().find(|f| f.pc == pc));
        let name = caller.and_then(|caller| self.code.called(caller)).map(|raw| source_name(&raw, None).into());
        self.called.insert(pc, name.clone());
        name
    }

    fn is_program(&mut self, frame: &LogicalFrame) -> bool {
        let by_source = frame.file.as_deref().is_some_and(is_library_source);
        if by_source || frame.function.as_deref().is_some_and(is_library_function) {
            return false;
        }
        match frame.addr.map(|addr| self.owner(addr)) {
            Some(Owner::WithLines) => frame.line.is_some(),
            owner => owner == Some(Owner::Program),
        }
    }

    /// True if the frame is that of a function of MPI in a library.
    fn is_entry(&mut self, frame: &LogicalFrame) -> bool {
        frame.function.as_deref().is_some_and(|name| mpi_name(name).is_some())
            && frame.addr.is_some_and(|addr| self.owner(addr) != Owner::Program)
    }

    /// True if one of the frames is the executable's own.
    fn in_executable(&mut self, frames: &[&LogicalFrame]) -> bool {
        frames
            .iter()
            .any(|frame| frame.addr.is_some_and(|addr| self.owner(addr) == Owner::Program) && self.is_program(frame))
    }

    fn owner(&mut self, addr: Addr) -> Owner {
        if let Some(known) = self.owners.get(&addr) {
            return *known;
        }
        // The address behind a call may belong to the next file.
        let module = self.target.module_at(addr.back(1));
        let owner = module.map_or(Owner::Program, |module| owner(module, self.target.process().exe.as_deref()));
        self.owners.insert(addr, owner);
        owner
    }
}

fn owner(module: &Module, executable: Option<&str>) -> Owner {
    let is_static = |module: &Module| module.file.as_ref().is_ok_and(|file| file.needed().is_empty());
    let is_program = module.file.as_ref().is_ok_and(|file| file.is_program()) || executable == Some(&module.path);
    match is_program {
        // It has the C library in it, which seldom has source lines.
        true if is_static(module) => Owner::WithLines,
        true => Owner::Program,
        false if module.path.is_empty() || is_system_library(&module.path) => Owner::Library,
        false => Owner::WithLines,
    }
}
