//! Variables of the frames of logical stacks.
//!
//! Debug information says where each variable is, and nothing else is shown. Memory is read as it was when the process
//! was stopped. For a live process these are the copied parts of the stacks.
//!
//! Outlined functions need care. GCC passes them one block of pointers to shared variables and describes each through
//! it. With clang each shared variable is passed by reference, and described so whatever the language. A private copy
//! has the name of the original, further in.
//!
//! Seen with clang 14, and reported for later ones as LLVM issues 107125, 110698 and 110700:
//!
//! - variables of the source are marked as artificial;
//! - arrays of variable length are described as one element;
//! - if only the running program knows the bounds of a loop, its variable is described at a slot the loop does not use.
//!
//! Where the base of a frame is the stack pointer, places are described as if it did not move while arguments are
//! pushed.

pub(crate) mod described;
mod entries;
mod globals;
mod location;
mod scope;
mod shape;
mod types;
mod values;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use ompd_process::{Addr, Target};

use crate::capture::Stacks;
use crate::frame::End;
use crate::image::{Cache, Images};
use crate::logical::{FramePlace, LogicalFrame, Via};
use crate::report::Report;

use described::Described;
use location::Surroundings;
use scope::{Declared, Level, Scope, Where};
use types::Kind;

/// Variables of one frame that are shown.
const MAX_VARIABLES: usize = 512;
/// Variables clang makes for a loop that say where it is.
const COUNTERS: &[&str] = &[".omp.iv", ".omp.lb", ".omp.ub"];

/// A variable or parameter in scope where a frame executes. Those hidden by others of their name are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the source, or that of a counter clang made (`.omp.iv`, `.omp.lb`, `.omp.ub`).
    pub name: String,
    /// Its type, as the source writes it or near to that.
    pub type_name: String,
    /// Its value as text, or why there is none. Text of the target: characters that are not printable ASCII are escaped, names
    /// of enumerators are not.
    pub value: Result<String, String>,
    /// In the body of a construct: shared with the threads, or the task, outward of it (`true`) or its own (`false`). `None`
    /// where neither is proven.
    pub shared: Option<bool>,
    /// It is a parameter of the source's function.
    pub parameter: bool,
    /// What has to be known about the value.
    pub note: Option<String>,
}

/// The variables of one frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameVariables {
    /// Parameters and variables, in the order of debug information, which is that of the source.
    pub variables: Vec<Variable>,
    /// Why they are not known, or not all.
    pub missing: Option<String>,
}

/// Reads variables of the frames of a [`Report`]. The process need not be stopped: nothing is read of a live process.
pub struct Locals<'a> {
    report: &'a Report,
    target: &'a dyn Target,
    stacks: &'a Stacks,
    images: Images<'a>,
    known: RefCell<HashMap<FramePlace, Arc<FrameVariables>>>,
}

impl std::fmt::Debug for Locals<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locals").field("report", self.report).finish_non_exhaustive()
    }
}

impl Report {
    /// The variables of its frames. `stacks` are those it was made of, `cache` may be the same or another.
    pub fn locals<'a>(&'a self, target: &'a dyn Target, stacks: &'a Stacks, cache: &Cache) -> Locals<'a> {
        let images = Images::of(target, cache);
        Locals { report: self, target, stacks, images, known: RefCell::default() }
    }
}

impl Locals<'_> {
    /// The variables of the frames of one of [`Report::logical`], in the same order; empty if there is no such stack.
    pub fn of(&self, stack: usize) -> Vec<Arc<FrameVariables>> {
        let Some(stack) = self.report.logical.get(stack) else { return Vec::new() };
        let frames = &stack.frames;
        let mut found: Vec<Arc<FrameVariables>> = vec![Arc::default(); frames.len()];
        // Bodies of constructs refer to frames outward of them.
        for index in (0..frames.len()).rev() {
            found[index] = match frames[index].place {
                Some(place) => {
                    let known = self.known.borrow().get(&place).cloned();
                    known.unwrap_or_else(|| {
                        let opener = opener(frames, index).and_then(|at| found.get(at));
                        let made = Arc::new(self.frame(place, opener.map(Arc::as_ref)));
                        self.known.borrow_mut().insert(place, Arc::clone(&made));
                        made
                    })
                }
                None => Arc::new(none("its frame is gone")),
            };
        }
        found
    }

    fn frame(&self, place: FramePlace, opener: Option<&FrameVariables>) -> FrameVariables {
        let thread = self.report.threads.get(place.thread);
        let Some(frame) = thread.and_then(|thread| thread.backtrace.frames.get(place.frame)) else {
            return none("its frame is gone");
        };
        if place.functions == 0 {
            return none("not looked for where source lines are not known");
        }
        let at = frame.lookup();
        let Some(image) = self.images.at(at) else { return none("no file is mapped at its code") };
        let Some(info) = &image.info else { return none("the file with its code is not at hand") };
        let address = at.back(image.bias).0;
        let Some((described, unit)) = info.debug().described(address) else {
            return none("no debug information describes its code");
        };
        let Some(scope) = described.scopes.at(&described.entries, unit, address) else {
            return none("no debug information describes its function");
        };
        let level = scope.levels.len().checked_sub(place.inner + 1).filter(|_| scope.levels.len() == place.functions);
        let Some(level) = level.map(|level| &scope.levels[level]) else {
            return none("debug information can be read in two ways here");
        };
        let stack_pointer = self.target.arch().machine.facts().map(|facts| facts.registers.stack_pointer);
        let from_stack_pointer = scope.clang && stack_pointer.is_some_and(|register| scope.base_is(register));
        let settled = from_stack_pointer.then(|| {
            let offset = stack_pointer.and_then(|register| info.frames().settled(address, register));
            let settled = offset.zip(frame.cfa).map(|(offset, cfa)| cfa.0.wrapping_sub(offset.cast_unsigned()));
            settled.ok_or("clang counts from the stack pointer, and whether that has moved here cannot be told")
        });
        let reading = Reading {
            described,
            scope: &scope,
            level,
            opener,
            surroundings: Surroundings {
                entries: &described.entries,
                unit: &scope.unit,
                bias: image.bias,
                byte_order: self.target.arch().byte_order,
                registers: &frame.registers,
                cfa: frame.cfa,
                frame_base: &scope.frame_base,
                settled,
                read: &|addr, buf| self.read(addr, buf),
            },
            stack_pointer,
        };
        reading.variables()
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), String> {
        self.stacks.read(self.target, addr, buf).map_err(|end| match end {
            End::NotCopied { copied, .. } => format!("at {addr}, beyond the {copied} bytes copied of the stack"),
            _ if self.stacks.are_copies() => format!("at {addr}, not on a copied stack"),
            _ => format!("at {addr}, which is not in the core file"),
        })
    }
}

fn none(why: &str) -> FrameVariables {
    FrameVariables { variables: Vec::new(), missing: Some(why.to_owned()) }
}

/// The frame of the function that contains a construct, in the thread that opened the region the frame is the body of.
fn opener(frames: &[LogicalFrame], body: usize) -> Option<usize> {
    let function = frames[body].construct.as_ref().and(frames[body].function.as_ref())?;
    let first = body + 1;
    let opener = frames.get(first).filter(|frame| frame.via == Via::Region)?.place?;
    let same = |frame: &&LogicalFrame| {
        frame.place.is_some_and(|place| (place.thread, place.frame) == (opener.thread, opener.frame))
    };
    let inlined =
        frames[first..].iter().take_while(same).position(|frame| frame.function.as_ref() == Some(function))?;
    Some(first + inlined)
}

/// Reads the variables of one function in one frame.
struct Reading<'a> {
    described: &'a Described,
    scope: &'a Scope,
    level: &'a Level,
    opener: Option<&'a FrameVariables>,
    surroundings: Surroundings<'a>,
    stack_pointer: Option<u16>,
}

impl Reading<'_> {
    fn variables(&self) -> FrameVariables {
        let visible = self.visible();
        let missing = (visible.len() > MAX_VARIABLES).then(|| format!("only {MAX_VARIABLES} are shown"));
        let variables = visible.into_iter().take(MAX_VARIABLES).map(|declared| self.variable(declared)).collect();
        FrameVariables { variables, missing }
    }

    /// clang made the function from the body of a construct.
    fn is_clangs(&self) -> bool {
        self.scope.clang && self.level.outlined
    }

    /// What is declared and not hidden by another of its name. In one block a variable hides a parameter: it is clang's
    /// private copy of what that refers to.
    fn visible(&self) -> Vec<&Declared> {
        let rank = |declared: &Declared| (declared.block, !declared.parameter);
        let mut best: HashMap<&str, &Declared> = HashMap::new();
        for declared in self.level.declared.iter().filter(|declared| self.is_of_interest(declared)) {
            let other = best.entry(&declared.name).or_insert(declared);
            if rank(declared) >= rank(other) {
                *other = declared;
            }
        }
        let is_best =
            |declared: &&Declared| best.get(declared.name.as_str()).is_some_and(|b| std::ptr::eq(*b, *declared));
        self.level.declared.iter().filter(is_best).collect()
    }

    fn is_of_interest(&self, declared: &Declared) -> bool {
        let name = declared.name.as_str();
        if name.starts_with('.') {
            return self.is_clangs() && COUNTERS.contains(&name);
        }
        // clang's mark says nothing in such functions.
        !declared.artificial || name == "this" || self.is_clangs() && !name.starts_with("__")
    }

    fn variable(&self, declared: &Declared) -> Variable {
        let described = self.described.types.get(&self.described.entries, declared.described.as_ref());
        let mut variable = Variable {
            name: declared.name.clone(),
            type_name: described.name.clone(),
            value: Err(String::new()),
            shared: None,
            parameter: declared.parameter && !self.level.outlined,
            note: None,
        };
        let mut by_reference = false;
        if self.level.outlined && !declared.name.starts_with('.') {
            if let Kind::Reference(referred) = &described.kind {
                by_reference = self.scope.clang && declared.parameter;
                // In C only the compiler makes references.
                if by_reference && self.scope.is_c {
                    variable.type_name.clone_from(&referred.name);
                }
                variable.shared = by_reference.then_some(true);
            } else if declared.through_data {
                variable.shared = Some(true);
            } else if self.is_own(declared) {
                variable.shared = Some(false);
            }
        }
        if self.is_dead_slot(declared, &described.kind) {
            variable.shared = None;
            variable.value =
                Err("not shown: where clang describes it, such a loop need not keep it; .omp.iv counts the \
                                  iterations"
                    .to_owned());
            return variable;
        }
        if by_reference && self.level.removed.contains(&declared.name) {
            variable.shared = None;
            variable.value = Err("the function's own variable of this name was optimized out".to_owned());
            return variable;
        }
        let content = self.surroundings.locate(&declared.location, described.size);
        let order = self.surroundings.byte_order;
        variable.value = content.and_then(|content| values::text(&described, &content, order, self.surroundings.read));
        if declared.name == COUNTERS[0] && self.is_clangs() {
            variable.note = Some("counts the loop's iterations from 0, while between .omp.lb and .omp.ub".to_owned());
        }
        if variable.shared == Some(true) {
            self.ask_opener(&mut variable, by_reference);
        }
        variable
    }

    /// The frame that opened the region has the variable itself.
    fn ask_opener(&self, variable: &mut Variable, by_reference: bool) {
        let original = self.opener.and_then(|frame| frame.variables.iter().find(|v| v.name == variable.name));
        let Some(original) = original else { return };
        if by_reference && self.scope.is_c && original.type_name != variable.type_name {
            let seeming = std::mem::replace(&mut variable.type_name, original.type_name.clone());
            variable.value.clone_from(&original.value);
            variable.note =
                Some(format!("from the frame that opened the region: clang describes it as {seeming} here"));
        } else if let (Err(_), Ok(value)) = (&variable.value, &original.value) {
            variable.value = Ok(value.clone());
            variable.note = Some("from the frame that opened the region".to_owned());
        }
    }

    /// Its place is the frame's own, so that each thread has another one. GCC also gives an outlined function copies of
    /// shared variables that the construct only reads (gcc/gimplify.cc: omp_shared_to_firstprivate_optimizable). So a
    /// variable that is not declared within the construct proves nothing.
    fn is_own(&self, declared: &Declared) -> bool {
        if !self.scope.clang && declared.block == self.level.top {
            return false;
        }
        let Where::At(expression) = &declared.location else { return false };
        let steps = shape::steps(expression, self.scope.unit.encoding());
        steps.is_some_and(|steps| shape::is_own(&steps, self.stack_pointer.as_slice()))
    }

    /// clang may describe the variable of a loop at a slot it made for the check whether the loop has any iterations.
    /// It is unknown for which variables it does so. All that it made in the loop's block are suspected if their type
    /// may be a loop's. OpenMP 5.2, 4.4.1 allows integers, pointers and in C++ iterators. There is no such slot if the
    /// compiler knew the bounds.
    fn is_dead_slot(&self, declared: &Declared, kind: &Kind) -> bool {
        let loops = match kind {
            Kind::Signed | Kind::Unsigned | Kind::Char { .. } | Kind::Enumeration { .. } | Kind::Pointer => true,
            Kind::Structure { .. } | Kind::Reference(_) | Kind::Other => !self.scope.is_c,
            Kind::Float | Kind::Boolean | Kind::Text(_) | Kind::Array { .. } => false,
        };
        let made = loops && declared.artificial && !declared.parameter && !declared.name.starts_with('.');
        self.is_clangs() && self.level.captures && made && {
            let counts = |other: &Declared| other.block == declared.block && other.name == COUNTERS[0];
            declared.block != self.level.top || self.level.declared.iter().any(counts)
        }
    }
}
