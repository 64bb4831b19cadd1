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
mod objects;
mod scope;
mod shape;
mod types;
mod values;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use gimli::DebugInfoOffset;
use ompd_process::{Addr, Target, TargetExt, has_malloc_of_glibc, malloc_block_end};
use ompd_runtime::names::Expressions;

use crate::capture::Stacks;
use crate::frame::End;
use crate::image::{Cache, FileInfo, Images};
use crate::logical::{FramePlace, LogicalFrame, Via};
use crate::report::Report;

use described::Described;
use location::{Content, Surroundings};
use objects::{Memory, Object, Objects, Shapes};
use scope::{Declared, Level, Scope, Where};
use types::Kind;

/// Variables of one frame that are shown.
const MAX_VARIABLES: usize = 512;
/// Frames whose variables are looked at for objects.
const MAX_FRAMES: usize = 4096;
/// Units of debug information whose variables of static storage are looked at.
const MAX_UNITS: usize = 64;
/// Objects that are looked for.
const MAX_WANTED: usize = 512;
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
    cache: &'a Cache,
    images: OnceCell<Images<'a>>,
    known: RefCell<HashMap<FramePlace, Arc<FrameVariables>>>,
    objects: RefCell<Option<Objects>>,
    /// Threads with pointers in registers that only a stop would have shown.
    unseen: RefCell<HashSet<i32>>,
    /// See [`has_malloc_of_glibc`].
    has_malloc: OnceCell<bool>,
    /// Where blocks end, by their beginnings.
    blocks: RefCell<HashMap<Addr, Option<Addr>>>,
    wanted: Cell<usize>,
}

impl std::fmt::Debug for Locals<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locals").field("report", self.report).finish_non_exhaustive()
    }
}

impl Report {
    /// The variables of its frames. `stacks` are those it was made of, `cache` may be the same or another.
    pub fn locals<'a>(&'a self, target: &'a dyn Target, stacks: &'a Stacks, cache: &'a Cache) -> Locals<'a> {
        let (images, known, objects, unseen, has_malloc, blocks, wanted) = Default::default();
        Locals { report: self, target, stacks, cache, images, known, objects, unseen, has_malloc, blocks, wanted }
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

    /// True if one more object may be looked for.
    fn may_want(&self) -> bool {
        self.wanted.replace(self.wanted.get().saturating_add(1)) < MAX_WANTED
    }

    /// The variables that are in scope on the stacks.
    fn objects(&self) -> Objects {
        let mut seen: HashSet<FramePlace> = HashSet::new();
        let mut units: HashSet<(u64, Option<DebugInfoOffset>)> = HashSet::new();
        let mut shapes = Shapes::default();
        let (mut globals, mut variables, mut pointees) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_cut = false;
        for frame in self.report.logical.iter().flat_map(|stack| &stack.frames) {
            let Some(place) = frame.place.filter(|place| !seen.contains(place)) else { continue };
            is_cut |= seen.len() >= MAX_FRAMES;
            if is_cut {
                break;
            }
            seen.insert(place);
            let of_frame = self.with_frame(place, |reading, file| {
                let unit = (reading.surroundings.bias, reading.scope.unit.header.debug_info_offset());
                if units.len() < MAX_UNITS && units.insert(unit) {
                    globals.extend(reading.static_objects(file, &mut shapes));
                }
                reading.objects(frame.function.as_deref(), file, &mut shapes)
            });
            let Ok(of_frame) = of_frame else { continue };
            variables.extend(of_frame.variables);
            pointees.extend(of_frame.pointees);
            self.unseen.borrow_mut().extend(of_frame.unseen);
        }
        // They are there in every frame, so what leads from them is the better name.
        globals.append(&mut variables);
        Objects::new(shapes, globals, pointees, is_cut)
    }

    fn frame(&self, place: FramePlace, opener: Option<&FrameVariables>) -> FrameVariables {
        self.with_frame(place, |reading, _| reading.variables(opener)).unwrap_or_else(none)
    }

    /// Calls `then` with what reads the variables of a frame, and the file with its code.
    ///
    /// # Errors
    /// Why they are not known.
    fn with_frame<R>(
        &self,
        place: FramePlace,
        then: impl FnOnce(&Reading<'_>, &Rc<FileInfo>) -> R,
    ) -> Result<R, &'static str> {
        let thread = self.report.threads.get(place.thread);
        let frame = thread.and_then(|thread| thread.backtrace.frames.get(place.frame)).ok_or("its frame is gone")?;
        if place.functions == 0 {
            return Err("not looked for where source lines are not known");
        }
        let at = frame.lookup();
        let images = self.images.get_or_init(|| Images::of(self.target, self.cache));
        let image = images.at(at).ok_or("no file is mapped at its code")?;
        let info = image.info.as_ref().ok_or("the file with its code is not at hand")?;
        let address = at.back(image.bias).0;
        let (described, unit) = info.debug().described(address).ok_or("no debug information describes its code")?;
        let scope = described.scopes.at(&described.entries, unit, address);
        let scope = scope.ok_or("no debug information describes its function")?;
        let level = scope.levels.len().checked_sub(place.inner + 1).filter(|_| scope.levels.len() == place.functions);
        let level = level.map(|level| &scope.levels[level]).ok_or("debug information can be read in two ways here")?;
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
        Ok(then(&reading, info))
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), String> {
        self.stacks.read(self.target, addr, buf).map_err(|end| match end {
            End::NotCopied { copied, .. } => format!("at {addr}, beyond the {copied} bytes copied of the stack"),
            End::Unused(_) => format!("at {addr}, in a page of the stack that is not in use"),
            _ if self.stacks.are_copies() => format!("at {addr}, not on a copied stack"),
            _ => format!("at {addr}, which is not in the core file"),
        })
    }
}

fn none(why: &str) -> FrameVariables {
    FrameVariables { variables: Vec::new(), missing: Some(why.to_owned()) }
}

impl Expressions for Locals<'_> {
    fn of_object(&self, addr: Addr, waiter: Option<i32>) -> Option<String> {
        if addr.is_null() || !self.may_want() {
            return None;
        }
        let found = self.objects.borrow_mut().get_or_insert_with(|| self.objects()).expression(addr, self);
        if let (None, Some(lwp)) = (&found, waiter.filter(|lwp| self.unseen.borrow().contains(lwp))) {
            self.cache.note_unseen(lwp);
        }
        found
    }

    fn lock_with(&self, content: u32) -> Option<String> {
        if !self.may_want() {
            return None;
        }
        self.objects.borrow_mut().get_or_insert_with(|| self.objects()).lock_with(content, self)
    }
}

impl Memory for Locals<'_> {
    fn pointer(&self, addr: Addr) -> Option<Addr> {
        let mut bytes = vec![0; usize::from(self.target.arch().pointer_bytes)];
        match self.stacks.read(self.target, addr, &mut bytes) {
            Ok(()) => Some(Addr(self.target.arch().byte_order.uint(&bytes))),
            // What is on a stack, and was not copied, may be gone.
            Err(End::NotCopied { .. } | End::Unused(_)) => None,
            Err(_) => self.target.read_ptr(addr).ok(),
        }
    }

    fn word(&self, addr: Addr) -> Option<u32> {
        let mut bytes = [0; 4];
        match self.stacks.read(self.target, addr, &mut bytes) {
            Ok(()) => u32::try_from(self.target.arch().byte_order.uint(&bytes)).ok(),
            Err(End::NotCopied { .. } | End::Unused(_)) => None,
            Err(_) => self.target.read_u32(addr).ok(),
        }
    }

    fn block_end(&self, start: Addr) -> Option<Addr> {
        if !*self.has_malloc.get_or_init(|| has_malloc_of_glibc(self.target)) {
            return None;
        }
        *self.blocks.borrow_mut().entry(start).or_insert_with(|| malloc_block_end(self.target, start))
    }
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

/// What the variables of one frame lead to.
#[derive(Default)]
struct FrameObjects {
    variables: Vec<Object>,
    /// What those point to that are in registers.
    pointees: Vec<Object>,
    /// The thread, if a pointer is in a register that only a stop would have shown.
    unseen: Option<i32>,
}

/// Reads the variables of one function in one frame.
struct Reading<'a> {
    described: &'a Described,
    scope: &'a Scope,
    level: &'a Level,
    surroundings: Surroundings<'a>,
    stack_pointer: Option<u16>,
}

impl Reading<'_> {
    fn variables(&self, opener: Option<&FrameVariables>) -> FrameVariables {
        let visible = self.visible();
        let missing = (visible.len() > MAX_VARIABLES).then(|| format!("only {MAX_VARIABLES} are shown"));
        let variables =
            visible.into_iter().take(MAX_VARIABLES).map(|declared| self.variable(declared, opener)).collect();
        FrameVariables { variables, missing }
    }

    /// The variables as objects, and what those point to that are in registers.
    fn objects(&self, function: Option<&str>, file: &Rc<FileInfo>, shapes: &mut Shapes) -> FrameObjects {
        let mut found = FrameObjects::default();
        for declared in self.visible().into_iter().take(MAX_VARIABLES) {
            let Some(of) = declared.described.clone().filter(|_| !declared.name.starts_with('.')) else { continue };
            let described = self.described.types.get(&self.described.entries, Some(&of));
            if self.is_dead_slot(declared, &described.kind) || self.level.removed.contains(&declared.name) {
                continue;
            }
            let text = match function {
                Some(function) => format!("{function}::{}", declared.name),
                None => declared.name.clone(),
            };
            match self.surroundings.locate(&declared.location, described.size) {
                Ok(Content::Memory(at)) => found.variables.extend(shapes.variable(text, at, &of, file)),
                Ok(Content::Bytes(bytes)) => {
                    let address_size = usize::from(self.scope.unit.encoding().address_size);
                    let bytes: Option<Vec<u8>> = bytes.into_iter().collect();
                    let value = bytes.filter(|bytes| bytes.len() == address_size);
                    let value = value.map(|bytes| Addr(self.surroundings.byte_order.uint(&bytes)));
                    found.pointees.extend(value.and_then(|value| shapes.pointee(text, &of, value, file)));
                }
                Err(_) if described.kind == Kind::Pointer => found.unseen = found.unseen.or(self.unseen(declared)),
                Err(_) => {}
            }
        }
        found
    }

    /// The thread, if only a stop would have shown the register that a variable is in.
    fn unseen(&self, declared: &Declared) -> Option<i32> {
        let Where::At(expression) = &declared.location else { return None };
        let steps = shape::steps(expression, self.scope.unit.encoding())?;
        let [shape::Step::InRegister(register)] = steps[..] else { return None };
        self.surroundings.registers.unseen(register)
    }

    /// The variables of static storage that the unit of the function defines.
    fn static_objects(&self, file: &Rc<FileInfo>, shapes: &mut Shapes) -> Vec<Object> {
        let all = globals::variables(&self.described.entries, &self.scope.unit);
        let object = |variable: globals::Global| {
            let at = Addr(variable.address.wrapping_add(self.surroundings.bias));
            shapes.variable(variable.name, at, &variable.of, file)
        };
        all.into_iter().filter_map(object).collect()
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

    fn variable(&self, declared: &Declared, opener: Option<&FrameVariables>) -> Variable {
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
            self.ask_opener(&mut variable, by_reference, opener);
        }
        variable
    }

    /// The frame that opened the region has the variable itself.
    fn ask_opener(&self, variable: &mut Variable, by_reference: bool, opener: Option<&FrameVariables>) {
        let original = opener.and_then(|frame| frame.variables.iter().find(|v| v.name == variable.name));
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
