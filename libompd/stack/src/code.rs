//! Where in the source an address of code is, for addresses that are on no stack.

use std::sync::Arc;

use ompd_process::{Addr, Target};

use crate::calls;
use crate::frame::Frame;
use crate::image::Cache;
use crate::outlined;
use crate::process::Process;

/// Looks up addresses of code in the files of a process. What was looked up is remembered.
pub struct Code<'t> {
    process: Process<'t>,
}

impl std::fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

/// What is known of an address. All texts are the target's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodePlace {
    /// The function of the source, of the body of a construct the one that contains the construct.
    pub function: Option<Arc<str>>,
    /// Its file, as the compiler wrote it.
    pub file: Option<Arc<str>>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// The mapped file.
    pub module: Option<Arc<str>>,
    /// The address in that file.
    pub offset: Option<u64>,
}

impl<'t> Code<'t> {
    /// That of a process.
    pub fn of(target: &'t dyn Target, cache: &Cache) -> Code<'t> {
        Code { process: Process::new(target, &[], cache) }
    }

    /// The symbol of the function that a frame has called, if its code shows which. That function is named even where
    /// it has left the stack by a jump to another.
    pub fn called(&self, caller: &Frame) -> Option<Arc<str>> {
        let callee = self.process.callee(caller)?;
        Some(Arc::clone(&self.process.symbol(callee)?.name))
    }

    /// Argument number `index`, an address, of the call that frame `number` of `frames` (innermost first) is in. It
    /// comes from the code and the current registers and memory. `None` where the code does not show it.
    pub fn argument_address(&self, frames: &[Frame], number: usize, index: u8) -> Option<Addr> {
        calls::argument_value(self.process.target, &self.process.images, frames, number, index)
    }

    /// As [`Code::argument_address`], of an argument that is a number.
    pub fn argument_number(&self, frames: &[Frame], number: usize, index: u8) -> Option<u64> {
        calls::argument_number(self.process.target, &self.process.images, frames, number, index)
    }

    /// Where the function that begins at `function` stores its arguments number `indices` in one object: for each the offsets in that.
    /// `None` unless its code shows that.
    pub fn stores_of_arguments(&self, function: Addr, indices: &[u8]) -> Option<Vec<Vec<i64>>> {
        calls::stores_of_arguments(&self.process.images, function, indices)
    }

    /// The part of the static variable at `variable` that lies `offset` bytes behind its beginning, as `[2].lock`.
    /// Empty for the variable itself. `None` if debug information does not say.
    pub fn part_of_variable(&self, variable: Addr, offset: u64) -> Option<String> {
        self.process.part_of_variable(variable, offset)
    }

    /// Where the call is that returns to `addr`; nothing is known of 0.
    pub fn of_return_address(&self, addr: Addr) -> CodePlace {
        if addr.0 == 0 {
            return CodePlace::default();
        }
        // The instruction behind a call may belong to another line, or to another function.
        let call = addr.back(1);
        let (module, offset) = self.process.module(addr).map_or((None, None), |(name, at)| (Some(name), Some(at)));
        let frames = self.process.source(call);
        // Compilers' helpers that copy variables call no runtime. Where debug information shows such a call, it
        // mistakes other code for the helper. That code was inlined into the body of a task and has no line of its own.
        let is_helper = |function: &Option<Arc<str>>| function.as_deref().is_some_and(outlined::is_helper);
        let innermost = frames.iter().find(|frame| !is_helper(&frame.function)).or(frames.first());
        CodePlace {
            function: innermost.and_then(|frame| frame.function.clone()),
            file: innermost.and_then(|frame| frame.file.clone()),
            line: innermost.and_then(|frame| frame.line),
            module,
            offset,
        }
    }
}
