//! The locks that functions on the stacks acquire, by their code.
//!
//! A runtime may not record which thread owns a lock. The code of a function on a stack shows which locks it has
//! acquired before the place it has reached, and not released since. Functions that it has called count with what they acquire and
//! release. This holds as far as addresses of code are in the order of execution. It is an inference: a branch may have
//! skipped the call. [`LockCall::leads`] says whether the code leads from the call to the place. If a thread waits for the lock, an
//! earlier call in its function counts only if it does. What a function that was called acquires counts only then, too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use ompd_process::{Addr, Target};
use ompd_runtime::Runtime;
use ompd_runtime::model::SourceLine;

use crate::calls::{self, CallTo};
use crate::frame::{CodeOwner, Frame};
use crate::image::Cache;
use crate::lines::line_at;
use crate::physical::Physical;
use crate::process::Process;
use crate::report::Report;

/// Frames of one thread whose code is looked at, from the innermost on.
const FRAMES: usize = 64;
/// Calls within calls that are followed: helpers of helpers.
const DEPTH: usize = 3;
/// Functions that are looked at because others call them, and the bytes of each: helpers are small.
const CALLED: usize = 1024;
const BYTES_OF_CALLED: u64 = 2 << 10;

/// A call that acquires a lock, made by a function on a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockCall {
    /// The thread.
    pub lwp: i32,
    /// The variable that the call was given (`omp_lock_t`, or the compiler's for a critical construct). `None` if the code
    /// gives none of static storage: then the function may have released it since.
    pub variable: Option<Addr>,
    /// Where the call is in the source.
    pub line: Option<SourceLine>,
    /// The thread is in this call. Otherwise it has passed it, and the function on its stack has not released the lock since.
    pub waits: bool,
    /// The code leads from this call to the place that the function has reached, as far as it can be followed. True also where the
    /// function made an indirect call, which is not followed.
    pub leads: bool,
}

impl Report {
    /// The calls that acquire locks in the functions on all stacks. `runtimes` are those the report was made of.
    pub fn lock_calls(&self, target: &dyn Target, runtimes: &[Box<dyn Runtime>], cache: &Cache) -> Vec<LockCall> {
        let process = Process::new(target, runtimes, cache);
        let code = Code { process: &process, effects: RefCell::default() };
        // Threads share nearly all their functions.
        let mut known: HashMap<(Addr, bool), Vec<LockCall>> = HashMap::new();
        let mut all = Vec::new();
        for thread in &self.threads {
            let own = thread.segments.iter().filter(|segment| segment.owner == CodeOwner::Program);
            let frames = own.flat_map(|segment| thread.backtrace.frames.get(segment.frames.clone())).flatten();
            let mut waits = false;
            for frame in frames.take(FRAMES) {
                let calls = known.entry((frame.pc, frame.exact)).or_insert_with(|| code.of_frame(frame));
                waits |= calls.iter().any(|call| call.waits);
                all.extend(calls.iter().map(|call| LockCall { lwp: thread.lwp, ..call.clone() }));
            }
            if !waits {
                all.extend(waited_for(&process, thread));
            }
        }
        let mut jumped: HashMap<Addr, Vec<LockCall>> = HashMap::new();
        for stack in &self.logical {
            // Of a function that has left the stack by a jump, only where it begins is known.
            let Some(body) = stack.frames.first().filter(|frame| frame.lwp.is_none()).and_then(|frame| frame.addr)
            else {
                continue;
            };
            let calls = jumped.entry(body).or_insert_with(|| code.of_jumped(body));
            all.extend(calls.iter().map(|call| LockCall { lwp: stack.lwp, ..call.clone() }));
        }
        all
    }

    /// Those of the functions, by where they begin, that release no lock: all their code could be followed.
    pub fn without_release(
        &self,
        target: &dyn Target,
        runtimes: &[Box<dyn Runtime>],
        cache: &Cache,
        functions: BTreeSet<Addr>,
    ) -> BTreeSet<Addr> {
        let process = Process::new(target, runtimes, cache);
        let code = Code { process: &process, effects: RefCell::default() };
        let releases_none = |begins: &Addr| {
            let effect = code.effect(*begins, DEPTH);
            process.owner(*begins) == CodeOwner::Program && !effect.is_part && effect.releases.is_empty()
        };
        functions.into_iter().filter(releases_none).collect()
    }
}

/// The call that the innermost frame of the program is in, if that acquires a lock whose variable comes from registers and memory.
fn waited_for(process: &Process<'_>, thread: &Physical) -> Option<LockCall> {
    let number = thread.segments.iter().find(|segment| segment.owner == CodeOwner::Program)?.frames.start;
    let frame = thread.backtrace.frames.get(number).filter(|frame| !frame.exact)?;
    let callee = process.callee(frame)?;
    let locking = lock_call(process, callee).filter(|call| call.acquires)?;
    let frames = &thread.backtrace.frames;
    let variable = calls::argument_value(process.target, &process.images, frames, number, locking.argument)?;
    Some(LockCall {
        lwp: thread.lwp,
        variable: Some(variable),
        line: line_at(process, frame.lookup()),
        waits: true,
        leads: true,
    })
}

fn lock_call(process: &Process<'_>, callee: Addr) -> Option<ompd_runtime::entry::Locking> {
    let CodeOwner::Runtime(runtime) = process.owner(callee) else { return None };
    process.runtimes[runtime].lock_call(&process.symbol(callee)?.name)
}

/// What a call of a function does to locks. `None` stands for a lock whose variable the code does not give.
#[derive(Debug, Default)]
struct Effect {
    /// Those that it releases and has not acquired itself.
    releases: BTreeSet<Option<Addr>>,
    /// Those that are held when it returns.
    holds: BTreeSet<Option<Addr>>,
    /// Not all code that it executes was looked at.
    is_part: bool,
}

/// The code of a process, with what is known of its functions.
struct Code<'p> {
    process: &'p Process<'p>,
    effects: RefCell<HashMap<Addr, Rc<Effect>>>,
}

impl Code<'_> {
    /// The calls of one frame's function, with no thread.
    fn of_frame(&self, frame: &Frame) -> Vec<LockCall> {
        let calls = calls::calls_up_to(&self.process.images, frame.lookup());
        self.held(calls, (!frame.exact).then_some(frame.pc))
    }

    /// The jump of a function into a runtime that acquires a lock, if it has only one. What it has acquired before is left out: whether
    /// it has begun is not known here.
    fn of_jumped(&self, begins: Addr) -> Vec<LockCall> {
        let mut jumps = calls::jumps_out(&self.process.images, begins);
        jumps.retain(|jump| lock_call(self.process, jump.callee).is_some_and(|call| call.acquires));
        let [jump] = jumps[..] else { return Vec::new() };
        self.held(vec![jump], Some(jump.returns_to))
    }

    /// What a function of the program that begins there does to locks, as far as its code is followed.
    fn effect(&self, begins: Addr, depth: usize) -> Rc<Effect> {
        if let Some(known) = self.effects.borrow().get(&begins) {
            return Rc::clone(known);
        }
        if self.process.owner(begins) != CodeOwner::Program {
            return Rc::default();
        }
        if depth == 0 || self.effects.borrow().len() >= CALLED {
            return Rc::new(Effect { is_part: true, ..Effect::default() });
        }
        // One that calls itself adds nothing to itself.
        self.effects.borrow_mut().insert(begins, Rc::default());
        let is_part = !calls::are_all_known(&self.process.images, begins, BYTES_OF_CALLED);
        let mut effect = Effect { is_part, ..Effect::default() };
        for call in calls::calls_of(&self.process.images, begins, BYTES_OF_CALLED) {
            let Some(locking) = lock_call(self.process, call.callee) else {
                let own = self.effect(call.callee, depth - 1);
                own.releases.iter().for_each(|variable| effect.release(*variable));
                effect.holds.extend(own.holds.iter());
                effect.is_part |= own.is_part;
                continue;
            };
            let variable = calls::constant_argument(&self.process.images, call.returns_to, locking.argument);
            if locking.acquires {
                effect.holds.insert(variable);
            } else {
                effect.release(variable);
            }
        }
        let effect = Rc::new(effect);
        self.effects.borrow_mut().insert(begins, Rc::clone(&effect));
        effect
    }

    /// The locks that these calls of a function acquire, and do not release. The thread is in the one that returns to `within`.
    fn held(&self, calls: Vec<CallTo>, within: Option<Addr>) -> Vec<LockCall> {
        let process = self.process;
        let mut held: BTreeMap<Addr, CallTo> = BTreeMap::new();
        let mut of_unknown = None;
        let mut found = Vec::new();
        let reached = calls.iter().find(|call| within == Some(call.returns_to)).copied();
        for call in calls {
            let is_within = within == Some(call.returns_to);
            let Some(locking) = lock_call(process, call.callee) else {
                // What it has done so far, its own frame shows.
                if is_within {
                    continue;
                }
                let effect = self.effect(call.callee, DEPTH);
                if effect.is_none() {
                    continue;
                }
                // In another branch it has not been called. Which call the thread is in, is not known of an indirect one.
                let leads = reached.map(|to| calls::leads_to(&process.images, &call, &to));
                if leads == Some(false) {
                    continue;
                }
                for variable in &effect.releases {
                    match variable {
                        Some(variable) => drop(held.remove(variable)),
                        None => held.clear(),
                    }
                }
                for variable in effect.holds.iter().filter(|_| leads == Some(true)) {
                    match variable {
                        Some(variable) => drop(held.insert(*variable, call)),
                        None => of_unknown = Some(call),
                    }
                }
                continue;
            };
            let variable = calls::constant_argument(&process.images, call.returns_to, locking.argument);
            match (variable, locking.acquires) {
                (None, true) if is_within => {}
                (None, true) => of_unknown = Some(call),
                // It may be any of them, unless it is the one of which no more is known either.
                (None, false) if of_unknown.is_none() => held.clear(),
                (None, false) => {}
                (Some(variable), false) => drop(held.remove(&variable)),
                (Some(variable), true) if is_within => {
                    found.push((Some(variable), call, true));
                    held.retain(|other, before| *other != variable || calls::leads_to(&process.images, before, &call));
                }
                (Some(variable), true) => drop(held.insert(variable, call)),
            }
        }
        found.extend(held.into_iter().map(|(variable, call)| (Some(variable), call, false)));
        found.extend(of_unknown.map(|call| (None, call, false)));
        let all = found.into_iter().map(|(variable, call, waits)| LockCall {
            lwp: 0,
            variable,
            line: line_at(process, call.returns_to.back(1)),
            waits,
            leads: waits || reached.is_none_or(|reached| calls::leads_to(&process.images, &call, &reached)),
        });
        all.collect()
    }
}

impl Effect {
    fn is_none(&self) -> bool {
        self.releases.is_empty() && self.holds.is_empty()
    }

    /// A release of a lock that nothing has acquired before is one of its caller's.
    fn release(&mut self, variable: Option<Addr>) {
        if !self.holds.remove(&variable) {
            self.releases.insert(variable);
        }
    }
}
