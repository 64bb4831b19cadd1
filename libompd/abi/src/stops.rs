//! Threads at places to stop at: what holds there is not what is read otherwise.

use std::collections::HashMap;

use ompd_process::{Debugger as _, Target};
use ompd_runtime::Runtime;
use ompd_runtime::companion::{self, AtStopPoints};
use ompd_runtime::merge::with_stop;
use ompd_runtime::model::{Fact, RawSnapshot, RawThread};
use ompd_runtime::stops::{self, AtStop, StopEvent, StopPoint};

use crate::at_stops::{Differs, PointId};
use crate::keys::{RegionKey, RuntimeKey, ThreadKey};
use crate::space::Space;
use crate::types::Rc;

/// One entry of the list: a place, or why there is none.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) runtime: String,
    pub(crate) event: stops::StopEvent,
    /// One of OMPD's own symbols.
    pub(crate) own: bool,
    pub(crate) place: Result<(PointId, StopPoint), String>,
}

impl Space {
    /// All places of all runtimes. From now on threads are recognised at them.
    pub(crate) fn stop_points(&mut self) -> Vec<Listed> {
        let mut all = Vec::new();
        for runtime in &self.runtimes {
            let info = runtime.info();
            let stops = runtime.stops(&self.target);
            let listed = |event, own, place| Listed { runtime: info.product.to_owned(), event, own, place };
            for point in &stops.points {
                let known = |(of, known): &(RuntimeKey, StopPoint)| {
                    *of == info.base && (known.addr, known.event, known.own) == (point.addr, point.event, point.own)
                };
                let index = self.stops.given.iter().position(known).unwrap_or_else(|| {
                    self.stops.given.push((info.base, point.clone()));
                    self.stops.given.len() - 1
                });
                all.push(listed(point.event, point.own, Ok((index as PointId + 1, point.clone()))));
            }
            all.extend(stops.gaps.iter().map(|(event, own, why)| listed(*event, *own, Err(why.clone()))));
        }
        all.sort_by_key(|entry| (entry.own, entry.event, entry.place.is_err()));
        all
    }

    fn point(&self, id: PointId) -> Result<&(RuntimeKey, StopPoint), Rc> {
        given(&self.stops.given, id).ok_or(Rc::BAD_INPUT)
    }

    /// The debugger says that a thread is at a place, until it says otherwise; 0 is no place.
    pub(crate) fn tell_stop(&mut self, thread: ThreadKey, id: PointId, registers: Vec<u64>) -> Result<(), Rc> {
        self.answers().thread(thread)?;
        if id == 0 {
            self.stops.told.remove(&thread);
        } else {
            let (runtime, point) = self.point(id)?;
            if *runtime != thread.runtime || registers.len() > point.registers.len() {
                return Err(Rc::BAD_INPUT);
            }
            self.stops.told.insert(thread, (id, registers));
        }
        // What was added to the snapshots for what it said before goes with it.
        self.read();
        Ok(())
    }

    /// The place that a thread is at: its number, itself, and why the hit does not count, if it does not.
    pub(crate) fn stop_of(&self, thread: ThreadKey) -> Result<(PointId, &StopPoint, Option<String>), Rc> {
        self.answers().thread(thread)?;
        let (id, holds) = self.stops.at.get(&thread).ok_or(Rc::UNAVAILABLE)?;
        let not_counted = holds.as_ref().ok().and_then(|holds| holds.not_counted.clone());
        Ok((*id, &self.point(*id)?.1, not_counted))
    }

    /// The same by a look at the thread alone, where the debugger offers its registers and that tells. Most hits that do not count are
    /// of programs that hit a place often.
    pub(crate) fn stop_of_thread(&mut self, thread: ThreadKey) -> Option<(PointId, &StopPoint, Option<String>)> {
        let excerpt = self.look_at_thread(thread)?;
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == thread.runtime)?;
        let native = self.target.natives().iter().find(|native| Some(native.lwp) == thread.lwp)?;
        let pc = self.target.debugger().registers(*native, self.target.arch()).ok()?.pc;
        let (id, point) = self.stops.at_address(thread.runtime, pc)?;
        let not_counted = runtime.not_counted(&self.target, &excerpt, point).ok()?;
        Some((id, point, not_counted))
    }

    /// What the debugger has said of stops holds no longer.
    pub(crate) fn forget_stops(&mut self) {
        self.stops.told.clear();
    }

    /// Finds the threads that are at places to stop at: the snapshots of the runtimes, with what is only known there.
    pub(crate) fn find_stops(&mut self, snapshots: Vec<RawSnapshot>) -> Vec<RawSnapshot> {
        self.stops.at.clear();
        self.stops.own.clear();
        let companions = self.companions_stops();
        let mut found = Vec::with_capacity(snapshots.len());
        for (runtime, mut snapshot) in self.runtimes.iter().zip(snapshots) {
            let base = runtime.info().base;
            let key = |snapshot: &RawSnapshot, lwp| {
                let thread = snapshot.thread_by_lwp(lwp)?;
                Some(ThreadKey { runtime: base, descriptor: thread.descriptor, lwp: thread.lwp })
            };
            // By what the debugger says, and then by registers.
            for (thread, (id, values)) in self.stops.told.iter().filter(|(thread, _)| thread.runtime == base) {
                let Some((_, point)) = given(&self.stops.given, *id) else { continue };
                let lwp = snapshot.threads.iter().find(|t| t.descriptor == thread.descriptor).and_then(|t| t.lwp);
                let Some(lwp) = lwp else { continue };
                let value = |number: u16| {
                    let at = point.registers.iter().position(|register| *register == number)?;
                    values.get(at).copied()
                };
                let mut holds = runtime.at_stop(&self.target, &snapshot, lwp, point, &value);
                snapshot = with_lacking(snapshot, &mut holds);
                self.stops.at.insert(*thread, (*id, holds));
            }
            for thread in self.target.threads() {
                let Ok(registers) = &thread.registers else { continue };
                let Some((id, point)) = self.stops.at_address(base, registers.pc) else { continue };
                if key(&snapshot, thread.lwp).is_some_and(|known| self.stops.told.contains_key(&known)) {
                    continue;
                }
                let mut holds = runtime.at_stop(&self.target, &snapshot, thread.lwp, point, &stops::values(registers));
                snapshot = with_lacking(snapshot, &mut holds);
                if let Some(known) = key(&snapshot, thread.lwp) {
                    self.stops.at.insert(known, (id, holds));
                }
            }
            if let Some(own) = runtime.own_symbols(&self.target) {
                for thread in self.target.threads() {
                    let Some(known) = key(&snapshot, thread.lwp).filter(|key| !self.stops.at.contains_key(key)) else {
                        continue;
                    };
                    let differs = match (&thread.registers, self.stops.searched.get(&known)) {
                        (Ok(registers), _) if own.at(registers.pc).is_some() => {
                            let mut holds = runtime.at_own_symbol(&self.target, &snapshot, thread.lwp, registers);
                            snapshot = with_lacking(snapshot, &mut holds);
                            Differs::of(holds)
                        }
                        (Ok(_), _) | (Err(_), None) => continue,
                        (Err(_), Some(calls)) => {
                            perhaps_at_own(&self.target, &**runtime, &snapshot, thread.lwp, calls.as_deref())
                        }
                    };
                    self.stops.own.insert(known, differs);
                }
            }
            if let Some(companions) = &companions {
                let differ = at_companions(&self.target, &**runtime, &snapshot, companions);
                self.stops.own.extend(differ.into_iter().filter(|(key, _)| !self.stops.at.contains_key(key)));
            }
            found.push(snapshot);
        }
        found
    }

    /// Looks for a companion that calls stop points.
    pub(crate) fn know_companion(&mut self) {
        let there = companion::has_stop_points(&self.target);
        self.stops.companion = if there { companion::words(&self.target) } else { Vec::new() };
    }

    /// Which threads a companion has led to stop points, if one calls them; or why that cannot be read.
    pub(crate) fn companions_stops(&self) -> Option<Result<AtStopPoints, String>> {
        let read = companion::at_stop_points(&self.target, &self.stops.companion)?;
        Some(read.map_err(|why| why.to_string()))
    }

    /// True if a thread may be at one of OMPD's own symbols, though the debugger has not said so. If the debugger gives its
    /// program counter, the answer is certain. Else the thread may be there if its stack has the return address of a call that
    /// leads there. `up_to_date`: the process was read at this moment.
    pub(crate) fn may_be_at_own(&mut self, thread: ThreadKey, up_to_date: bool) -> bool {
        // If the process was read at this moment, the threads at these symbols were found then.
        if !up_to_date
            && self.companions_stops().is_some_and(|found| found.is_err() || found.is_ok_and(|at| differs(&at)))
        {
            return true;
        }
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == thread.runtime);
        let Some((runtime, lwp)) = runtime.zip(thread.lwp) else { return false };
        let Some(own) = runtime.own_symbols(&self.target) else { return false };
        if self.stops.told.contains_key(&thread) {
            return false;
        }
        if let Some(known) = self.stops.searched.get(&thread) {
            return known.as_ref().map_or(true, |calls| !calls.is_empty());
        }
        // Registers that are known, and all that are offered where the process was read, were looked at then.
        if self.target.threads().iter().any(|thread| thread.lwp == lwp && thread.registers.is_ok()) {
            return false;
        }
        let native = self.target.natives().iter().find(|native| native.lwp == lwp).copied();
        let (debugger, arch) = (self.target.debugger(), self.target.arch());
        let offered = native.filter(|_| debugger.offers_registers() && !up_to_date);
        let offered = offered.and_then(|native| Some(debugger.registers(native, arch).ok()?.pc));
        if offered.is_none() && !runtime.may_be_at_own_symbol(&self.target, thread.descriptor) {
            self.stops.searched.insert(thread, Ok(Vec::new()));
            return false;
        }
        if offered.is_none() {
            debugger.introduce(self.target.natives());
        }
        if let Some(pc) = offered.or_else(|| debugger.program_counter(native?, arch)) {
            let is_there = own.at(pc).is_some();
            if is_there && offered.is_none() {
                self.stops.asked.insert(lwp);
            }
            return is_there;
        }
        if debugger.takes_expressions() {
            // A search ends where nothing is mapped any more, and such a debugger may not survive that.
            self.stops.searched.insert(thread, Err("the debugger does not tell the thread's registers".to_owned()));
            return true;
        }
        let calls = runtime.own_calls(&self.target).and_then(|calls| {
            let by_return: HashMap<u64, usize> =
                calls.iter().enumerate().map(|(index, call)| (call.returns.0, index)).collect();
            let mut found = self.target.find_on_stack(lwp, |word| by_return.get(&word).copied())?;
            found.sort_unstable();
            found.dedup();
            Ok(found)
        });
        let perhaps = calls.as_ref().map_or(true, |calls| !calls.is_empty());
        self.stops.searched.insert(thread, calls);
        perhaps
    }

    /// The function that holds the code of a region, as far as the runtime or a stop tells.
    pub(crate) fn region_function(&mut self, key: RegionKey) -> Result<ompd_process::Addr, Rc> {
        if matches!(key, RegionKey::Outermost(_)) {
            return Err(Rc::UNAVAILABLE);
        }
        let known = |space: &Space| {
            let team = space.answers().team(key)?.2;
            Ok::<_, Rc>(team.function.value().map(|function| function.addr))
        };
        if let Some(found) = known(self)? {
            return Ok(found);
        }
        self.enrich();
        known(self)?.ok_or(Rc::UNAVAILABLE)
    }
}

/// What is unknown of a thread that one of these calls may have led to a symbol of OMPD's, now or before. It is unknown where the
/// value at the symbol would differ from memory.
fn perhaps_at_own(
    target: &dyn Target,
    runtime: &dyn Runtime,
    snapshot: &RawSnapshot,
    lwp: i32,
    calls: Result<&[usize], &String>,
) -> Differs {
    let (calls, all) = match (calls, runtime.own_calls(target)) {
        (Ok(calls), Ok(all)) => (calls, all),
        (Err(why), _) => return Differs::unknown(why),
        (_, Err(why)) => return Differs::unknown(&why),
    };
    let thread = snapshot.thread_by_lwp(lwp);
    let mut differs = Differs::default();
    for call in calls.iter().filter_map(|call| all.get(*call)) {
        let there = Differs::of(runtime.at_own_call(target, snapshot, lwp, call));
        let why = format!("the thread may be at OMPD's symbol that {} calls", call.caller);
        let region = thread.and_then(|thread| thread.team.flat());
        if there.region.is_some_and(|there| there.ok() != region || region.is_none()) {
            differs.region = Some(Err(why.clone()));
        }
        let task = thread.and_then(|thread| thread.task.get());
        if there.task.is_some_and(|there| there.ok() != task || task.is_none()) {
            differs.task = Some(Err(why));
        }
    }
    differs
}

/// True if more holds than memory shows where one of these threads is.
fn differs(at: &AtStopPoints) -> bool {
    at.threads.iter().any(|thread| matches!(thread.event, StopEvent::ParallelBegin | StopEvent::ParallelEnd))
}

/// What is not as memory shows it at the stop points that the companion has led threads of a runtime to. If it cannot be said which
/// thread is at one, it may be any.
fn at_companions(
    target: &dyn Target,
    runtime: &dyn Runtime,
    snapshot: &RawSnapshot,
    found: &Result<AtStopPoints, String>,
) -> Vec<(ThreadKey, Differs)> {
    let base = runtime.info().base;
    let key = |thread: &RawThread| ThreadKey { runtime: base, descriptor: thread.descriptor, lwp: thread.lwp };
    let any = |why: &str| snapshot.threads.iter().map(|thread| (key(thread), Differs::unknown(why))).collect();
    let at = match found {
        Ok(at) if at.runtime == Some(base) => at,
        Ok(_) => return Vec::new(),
        Err(why) => return any(why),
    };
    let mut all = Vec::new();
    for stop in at.threads.iter().filter(|stop| matches!(stop.event, StopEvent::ParallelBegin | StopEvent::ParallelEnd))
    {
        let thread = snapshot.threads.iter().find(|thread| thread.tool_data.get() == Some(stop.id));
        let Some((thread, lwp)) = thread.and_then(|thread| Some((thread, thread.lwp?))) else {
            return any("a thread is at one of OMPD's symbols, and which one is not known");
        };
        let holds = runtime.at_companions_stop(target, snapshot, lwp, stop.event);
        all.push((key(thread), Differs::of(holds)));
    }
    all
}

/// The snapshot with what it lacks of a stop.
fn with_lacking(snapshot: RawSnapshot, holds: &mut Result<AtStop, String>) -> RawSnapshot {
    match holds {
        Ok(holds) => with_stop(snapshot, std::mem::take(&mut holds.lacking)),
        Err(_) => snapshot,
    }
}

fn given(all: &[(RuntimeKey, StopPoint)], id: PointId) -> Option<&(RuntimeKey, StopPoint)> {
    all.get(usize::try_from(id).ok()?.checked_sub(1)?)
}

/// Where the knowledge of a value comes from, or why it is not known, without the value.
pub(crate) fn source<T>(fact: &Fact<T>) -> Result<ompd_runtime::Origin, String> {
    match fact {
        Fact::Known { origin, .. } => Ok(*origin),
        Fact::Unknown { why } => Err(why.to_string()),
    }
}
