//! What a symbolic run saw.

use std::fmt;

use rustc_hash::FxHashMap;

use super::expr::{Callee, Expr};

/// Bounds of a run. The defaults suffice for accessors; functions with many branches need more paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Paths followed. Places no path has reached yet are preferred, so that a low bound still covers the function.
    pub paths: usize,
    /// Instructions over all paths.
    pub instructions: usize,
    /// Times one path may take the same branch instruction; 2 lets a loop body run once and leave.
    pub visits: u8,
    /// Calls of (and tail jumps to) other functions of the image that are followed, nested this deep.
    pub inline_depth: u8,
    /// Only functions up to this many bytes are followed. Where the extent is not known, none.
    pub inline_bytes: u64,
    /// Whether calls have [`Call::beyond`]. Loads and stores of the stack are then events too, and what was loaded from there is known
    /// by its address.
    pub beyond: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { paths: 64, instructions: 40_000, visits: 2, inline_depth: 0, inline_bytes: 512, beyond: false }
    }
}

/// A read of memory other than the stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load {
    /// Address of the instruction.
    pub at: u64,
    /// Bytes read; 0 where the instruction leaves it open (string instructions).
    pub size: u8,
    /// Where.
    pub addr: Expr,
}

impl Load {
    /// The value read, as an expression.
    pub fn value(&self) -> Expr {
        Expr::load(self.size, &self.addr, self.at)
    }
}

/// A write to memory other than the stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Store {
    /// Address of the instruction.
    pub at: u64,
    /// Bytes written; 0 where the instruction leaves it open.
    pub size: u8,
    /// Where.
    pub addr: Expr,
    /// What. For a compare-and-exchange the new value.
    pub value: Expr,
    /// True for atomic instructions (`lock`, `xchg`; on aarch64 also exclusive and releasing stores).
    pub locked: bool,
}

impl Store {
    /// For `*addr += n`: n.
    pub fn increment(&self) -> Option<i64> {
        let old = self.value.split().0;
        let same = old.as_load(self.size).is_some_and(|from| *from == self.addr);
        if same { Some(self.value.split().1) } else { None }
    }
}

/// A comparison (`cmp`, `test`, `bt`; on aarch64 also `ccmp`, whether or not its condition holds, `cbz` and `tbz`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Compare {
    /// Address of the instruction.
    pub at: u64,
    /// Width of the operands in bytes.
    pub size: u8,
    /// First operand.
    pub left: Expr,
    /// Second operand. `test x, x` and `cbz x` are comparisons of x with 0.
    pub right: Expr,
    /// True for `test` of two different values, and for tests of one bit: the bits of `left` selected by `right` are compared with 0.
    pub mask: bool,
}

/// A call or tail jump.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Address of the instruction.
    pub at: u64,
    /// The function.
    pub callee: Callee,
    /// The first six integer argument registers; how many are meant is the callee's business.
    pub args: [Expr; 6],
    /// True for a jump that replaces the frame.
    pub tail: bool,
    /// What else it is given, if that is wanted ([`Limits::beyond`]). Never of a jump.
    pub beyond: Option<Box<Beyond>>,
}

/// What a call is given beyond the first six arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beyond {
    /// The stack pointer, without what the call itself pushes.
    pub stack: Expr,
    /// The seventh argument and those behind it: in registers if the machine has so many for that, else on the stack.
    pub args: [Expr; 6],
    /// What the general registers hold, by their number in the encoding.
    pub registers: Vec<Expr>,
}

impl Call {
    /// Argument number `index`, counted from 0, as far as it is noted.
    pub fn argument(&self, index: usize) -> Option<&Expr> {
        match index.checked_sub(self.args.len()) {
            None => self.args.get(index),
            Some(beyond) => self.beyond.as_ref()?.args.get(beyond),
        }
    }
}

/// An end of the function. After a tail call the value is the callee's result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Return {
    /// Address of the instruction.
    pub at: u64,
    /// The return value register.
    pub value: Expr,
}

/// Anything seen on the way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// Memory read.
    Load(Load),
    /// Memory written.
    Store(Store),
    /// Values compared.
    Compare(Compare),
    /// Function called.
    Call(Call),
    /// Function left.
    Return(Return),
}

/// Why a path was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The bytes are no instruction.
    BadInstruction,
    /// The path ran out of the executable segments.
    OutsideImage,
    /// A jump through a register or table.
    IndirectJump(Expr),
    /// [`Limits::instructions`] or [`Limits::paths`] was reached with paths left over.
    Limit,
}

/// A path that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// Address in the file.
    pub at: u64,
    /// Why.
    pub why: StopReason,
    /// The bytes there, as far as the file has them.
    pub bytes: Vec<u8>,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            StopReason::BadInstruction => write!(f, "no instruction at {:#x}", self.at)?,
            StopReason::OutsideImage => write!(f, "{:#x} is outside the code", self.at)?,
            StopReason::IndirectJump(to) => write!(f, "jump through {to} at {:#x}", self.at)?,
            StopReason::Limit => write!(f, "too many paths, first left out at {:#x}", self.at)?,
        }
        f.write_str(", bytes:")?;
        self.bytes.iter().try_for_each(|b| write!(f, " {b:02x}"))
    }
}

/// The result of a symbolic run: events in the order they were first seen, and which path saw which.
#[derive(Debug, Clone)]
pub struct Run {
    entry: u64,
    events: Vec<Event>,
    known: FxHashMap<Event, u32>,
    paths: Vec<Vec<u32>>,
    stops: Vec<Stop>,
    instructions: usize,
}

impl Run {
    pub(super) fn new(entry: u64) -> Run {
        Run {
            entry,
            events: Vec::new(),
            known: FxHashMap::default(),
            paths: Vec::new(),
            stops: Vec::new(),
            instructions: 0,
        }
    }

    /// Address of the function in the file.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Values returned, each once.
    pub fn returned(&self) -> impl Iterator<Item = &Expr> {
        self.returns().map(|r| &r.value)
    }

    /// Ends of the function.
    pub fn returns(&self) -> impl Iterator<Item = &Return> {
        self.events.iter().filter_map(|e| if let Event::Return(r) = e { Some(r) } else { None })
    }

    /// Memory reads.
    pub fn loads(&self) -> impl Iterator<Item = &Load> {
        self.events.iter().filter_map(|e| if let Event::Load(l) = e { Some(l) } else { None })
    }

    /// Memory writes.
    pub fn stores(&self) -> impl Iterator<Item = &Store> {
        self.events.iter().filter_map(|e| if let Event::Store(s) = e { Some(s) } else { None })
    }

    /// Comparisons.
    pub fn compares(&self) -> impl Iterator<Item = &Compare> {
        self.events.iter().filter_map(|e| if let Event::Compare(c) = e { Some(c) } else { None })
    }

    /// Calls and tail jumps.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.events.iter().filter_map(|e| if let Event::Call(c) = e { Some(c) } else { None })
    }

    /// All events, each once.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events of every path in execution order.
    pub fn paths(&self) -> impl Iterator<Item = impl Iterator<Item = &Event>> {
        self.paths.iter().map(|path| path.iter().map(|&n| &self.events[n as usize]))
    }

    /// Paths that were given up and why.
    pub fn stops(&self) -> &[Stop] {
        &self.stops
    }

    /// Instructions executed.
    pub fn instructions(&self) -> usize {
        self.instructions
    }

    /// Files an event for the path with the trace `trace`.
    pub(super) fn note(&mut self, trace: &mut Vec<u32>, event: Event) {
        // Most were seen on another path.
        let number = match self.known.get(&event) {
            Some(number) => *number,
            None => {
                let next = self.events.len() as u32;
                self.events.push(event.clone());
                self.known.insert(event, next);
                next
            }
        };
        trace.push(number);
    }

    pub(super) fn end_path(&mut self, trace: Vec<u32>) {
        self.paths.push(trace);
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        if !self.stops.contains(&stop) {
            self.stops.push(stop);
        }
    }

    pub(super) fn count_instruction(&mut self) -> usize {
        self.instructions += 1;
        self.instructions
    }

    pub(super) fn path_count(&self) -> usize {
        self.paths.len()
    }
}
