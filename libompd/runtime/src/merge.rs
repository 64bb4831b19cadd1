//! The one place where what a runtime records and all other [evidence](crate::evidence) become one model.
//!
//! A value that was read stays; evidence adds what the runtime does not keep. Only what is more exact takes the place
//! of a value. So the call that waits gives the kind of a wait. The variable by which the program knows a lock gives
//! the lock's address.

use std::collections::{HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::Addr;
use ompt_record::offload::{self, Unfinished};

use crate::companion::{Holder, Remembered};
use crate::entry::{Construct, Entry};
use crate::evidence::{Critical, Evidence, Fork, Names, StackEvidence};
use crate::model::*;
use crate::stops::Lacking;

#[cfg(test)]
mod tests;
mod waits;

/// Puts together what was read of the runtimes of a process in one stop, and the evidence of the same stop.
pub fn merge(raw: Vec<RawSnapshot>, evidence: &Evidence<'_>) -> Vec<RuntimeSnapshot> {
    let nothing = StackEvidence::default();
    let stacks = |runtime: usize| evidence.stacks.get(runtime).unwrap_or(&nothing);
    let waits: Vec<_> =
        raw.iter().enumerate().map(|(runtime, raw)| waits::waits(raw, stacks(runtime), evidence.in_program)).collect();
    let waiting: HashSet<i32> = raw.iter().zip(&waits).flat_map(|(raw, waits)| waiting(raw, waits)).collect();
    let settled = |lwp: i32| waiting.contains(&lwp) || evidence.outside.contains(&lwp);
    let trouble = evidence.companion.and_then(Remembered::trouble);
    let mut merged = Vec::with_capacity(raw.len());
    for (runtime, (raw, waits)) in raw.into_iter().zip(waits).enumerate() {
        let trouble = trouble.filter(|_| runtime == 0);
        let mut one = One::of(raw, waits, stacks(runtime), trouble);
        let instance = &one.snapshot.instance;
        let reports_from = instance.reports_from.unwrap_or(instance.base);
        if let Some(companion) = evidence.companion.filter(|c| c.runtime() == Some(reports_from)) {
            one.add_companion(companion, &settled);
        }
        one.doubt_owners();
        if let Some(names) = evidence.names {
            one.add_variables(evidence.awaited, names);
            one.find_variables(names);
            one.add_lines(names);
            one.name(names, runtime);
        }
        merged.push(one.snapshot);
    }
    merged
}

/// Threads that wait in a call of a runtime.
fn waiting(raw: &RawSnapshot, waits: &[Fact<Option<Wait>>]) -> Vec<i32> {
    let waits = raw.threads.iter().zip(waits).filter(|(_, wait)| matches!(wait, Fact::Known { value: Some(_), .. }));
    waits.filter_map(|(thread, _)| thread.lwp).collect()
}

/// The code of the regions and tasks of a runtime, as memory and stacks tell.
#[derive(Debug, Default)]
pub struct Code {
    /// Of each team.
    pub teams: Vec<RegionCode>,
    /// Of each task.
    pub tasks: Vec<TaskCode>,
}

/// The code of a region.
#[derive(Debug, Clone)]
pub struct RegionCode {
    /// Where the function of its body begins.
    pub function: Fact<Addr>,
    /// Where its construct stands.
    pub location: Fact<SourceLine>,
    /// Which construct it is.
    pub construct: Fact<Construct>,
}

/// The code of a task.
#[derive(Debug, Clone)]
pub struct TaskCode {
    /// Where its function begins; for implicit tasks the region's.
    pub function: Fact<Addr>,
    /// Where its construct stands.
    pub location: Fact<SourceLine>,
}

/// What memory and stacks together tell of the code of regions and tasks.
pub fn code(raw: &RawSnapshot, stacks: &StackEvidence) -> Code {
    let teams: Vec<RegionCode> =
        raw.teams.iter().enumerate().map(|(id, team)| region(team, TeamId(id), stacks)).collect();
    let tasks = raw.tasks.iter().enumerate().map(|(id, task)| task_code(task, TaskId(id), &teams, stacks)).collect();
    Code { teams, tasks }
}

fn region(team: &RawTeam, id: TeamId, stacks: &StackEvidence) -> RegionCode {
    let function = region_function(team, id, stacks);
    let fork = stacks.forks.get(&id);
    let entry = fork.and_then(|fork| fork.entry);
    // A runtime may keep the line of the last region that it serialized in a team, which may have ended.
    let is_stale = |fork: &Fork| {
        let (recorded, called) = (team.location.value(), fork.line.as_ref());
        team.serialized.get() == Some(true)
            && recorded.zip(called).is_some_and(|(recorded, called)| recorded.line != called.line)
    };
    let line = match fork {
        _ if team.location.value().is_some() && !fork.is_some_and(is_stale) => None,
        Some(_) if entry.is_some_and(|entry| entry.unplaced) => {
            function.value().and_then(|begins| stacks.begins.get(begins)).cloned()
        }
        Some(fork) => fork.line.clone(),
        None => None,
    };
    RegionCode {
        location: line.map_or_else(|| team.location.clone(), |line| Fact::known(line, Origin::Dwarf)),
        construct: match entry {
            Some(entry) => Fact::known(entry.construct, Origin::Stack),
            None => Fact::unknown(Common::CallNotSeen),
        },
        function,
    }
}

/// Where the function of a region begins.
pub fn region_function(team: &RawTeam, id: TeamId, stacks: &StackEvidence) -> Fact<Addr> {
    match stacks.bodies.get(&id).map(Vec::as_slice) {
        _ if team.function.value().is_some() => team.function.clone(),
        None | Some([]) => team.function.clone(),
        Some([first, rest @ ..]) if rest.iter().all(|begins| begins == first) => Fact::known(*first, Origin::Stack),
        Some(_) => Fact::unknown(CONTRADICTION),
    }
}

/// Why the function of a region is not known, although its members execute it.
const CONTRADICTION: Common = Common::StacksContradict;

/// Where the function of a task begins, as its own record and its stack tell.
pub fn task_function(task: &RawTask, id: TaskId, stacks: &StackEvidence) -> Fact<Addr> {
    match stacks.tasks.get(&id).and_then(|on_stack| on_stack.begins) {
        Some(begins) if task.function.value().is_none() => Fact::known(begins, Origin::Stack),
        _ => task.function.clone(),
    }
}

fn task_code(task: &RawTask, id: TaskId, teams: &[RegionCode], stacks: &StackEvidence) -> TaskCode {
    let own = TaskCode { function: task_function(task, id, stacks), location: task.location.clone() };
    match (task.kind.get(), task.team.flat()) {
        (Some(TaskKind::Implicit), Some(team)) if own.function.value().is_none() => {
            let Some(region) = teams.get(team.0).filter(|region| region.function.value().is_some()) else { return own };
            let location = if own.location.value().is_none() { region.location.clone() } else { own.location };
            TaskCode { function: region.function.clone(), location }
        }
        (Some(kind), _) if kind.is_explicit() && own.location.value().is_none() => {
            match own.function.value().and_then(|begins| stacks.begins.get(begins)) {
                Some(line) => TaskCode { location: Fact::known(line.clone(), Origin::Dwarf), ..own },
                None => own,
            }
        }
        _ => own,
    }
}

/// One snapshot in the making.
struct One {
    snapshot: RuntimeSnapshot,
}

impl One {
    /// What memory and stacks tell.
    fn of(raw: RawSnapshot, waits: Vec<Fact<Option<Wait>>>, stacks: &StackEvidence, trouble: Option<&Trouble>) -> One {
        let code = code(&raw, stacks);
        let in_runtime: Vec<_> = raw.threads.iter().map(|thread| waits::in_runtime(&raw, thread, stacks)).collect();
        let RawSnapshot { instance, threads, teams, tasks, locks, recorded, mut issues } = raw;
        let contradicted = |region: &RegionCode| region.function.why() == Some(&CONTRADICTION.into());
        issues.extend(
            teams
                .iter()
                .zip(&code.teams)
                .filter(|(_, region)| contradicted(region))
                .map(|(team, _)| Issue::new(format!("team {}", team.descriptor), Trouble::BodiesDiffer)),
        );
        issues.extend(trouble.map(|why| Issue::new("companion", why.clone())));
        let teams = teams.into_iter().zip(code.teams).map(|(raw, region)| Team {
            raw,
            function: region.function.map(CodeRef::new),
            location: region.location,
            construct: region.construct,
        });
        let mut task_waits = waits::of_tasks(&threads, &waits, &tasks, stacks);
        let tasks = tasks.into_iter().zip(code.tasks).enumerate().map(|(id, (raw, code))| Task {
            function: code.function.map(CodeRef::new),
            location: code.location,
            stack: stacks.tasks.get(&TaskId(id)).map(|on_stack| on_stack.lwp),
            wait: task_waits.remove(&TaskId(id)),
            ..Task::from(raw)
        });
        let mut locks: Vec<Lock> = locks.into_iter().map(Lock::from).collect();
        for (thread, wait) in threads.iter().zip(&waits) {
            let call = thread.lwp.and_then(|lwp| stacks.calls.get(&lwp)).and_then(|call| call.entry);
            let lock = wait.value().and_then(|wait| locks.get_mut(wait.as_ref()?.lock?.0));
            if let (Some(lock), Some(kind)) = (lock, call.and_then(lock_kind))
                && lock.kind.value().is_none()
            {
                lock.kind = Fact::known(kind, Origin::Stack);
                // Runtimes record who has set a nest lock.
                if kind == LockKind::NestLock && lock.owner.value().is_none() {
                    lock.owner = Fact::unknown(Common::OwnerNotFound);
                }
            }
        }
        let threads = threads.into_iter().zip(waits).zip(in_runtime);
        let threads = threads.map(|((raw, wait), in_runtime)| Thread {
            in_runtime: in_runtime.filter(|_| matches!(wait, Fact::Known { value: None, .. })),
            on_device: None,
            raw,
            wait,
        });
        let (threads, teams, tasks) = (threads.collect(), teams.collect(), tasks.collect());
        One { snapshot: RuntimeSnapshot { instance, threads, teams, tasks, locks, recorded, issues } }
    }

    fn waits_mut(&mut self) -> impl Iterator<Item = &mut Wait> {
        self.snapshot.threads.iter_mut().filter_map(|thread| thread.wait.value_mut()?.as_mut())
    }

    /// Adds what a companion remembers: where tasks were generated; the variables, owners and places of locks. A thread
    /// counts as owner only if it is `settled`. A runtime reports a lock to its tools after it has got it, and after it
    /// has let go of it. Shortly before such a report, what the companion remembers is not true yet or no longer true.
    fn add_companion(&mut self, companion: &Remembered, settled: &impl Fn(i32) -> bool) {
        for task in &mut self.snapshot.tasks {
            let creation = task.tool_data.get().and_then(|id| companion.creation(id));
            task.created = creation.and_then(|creation| site(creation.codeptr_ra));
        }
        for thread in &mut self.snapshot.threads {
            let lwp = thread.lwp.filter(|lwp| !self.snapshot.recorded.on_host.contains(lwp));
            thread.on_device = lwp.and_then(|lwp| companion.unfinished(lwp)).map(on_device);
        }
        for id in 0..self.snapshot.locks.len() {
            let lock = &self.snapshot.locks[id];
            let known_by = lock.raw.wait_id.unwrap_or(lock.object);
            let Some((variable, holder)) = companion.holder(known_by, lock.variable_word) else { continue };
            if known_by != variable {
                self.move_lock(LockId(id), variable);
            }
            self.add_holder(LockId(id), holder, settled);
        }
    }

    /// The variables of locks that lie elsewhere, as the calls give them in which threads wait: those that hold what names
    /// the lock. Where two calls give different ones, the variable stays unknown.
    fn add_variables(&mut self, awaited: &HashMap<i32, Addr>, names: &dyn Names) {
        let mut found: HashMap<LockId, HashSet<Addr>> = HashMap::new();
        for thread in &self.snapshot.threads {
            let lock = thread.wait.value().and_then(|wait| wait.as_ref()?.lock);
            let variable = thread.lwp.and_then(|lwp| awaited.get(&lwp));
            if let Some((lock, variable)) = lock.zip(variable) {
                found.entry(lock).or_default().insert(*variable);
            }
        }
        for (id, variables) in found {
            let Some(lock) = self.snapshot.locks.get(id.0) else { continue };
            let (Some(word), 1) = (lock.variable_word, variables.len()) else { continue };
            let named = variables.into_iter().find(|variable| names.word(*variable) == Some(word));
            let Some(variable) = named.filter(|variable| *variable != lock.object) else { continue };
            let name = names.expression(variable, None).unwrap_or_else(|| variable.to_string());
            let lock = &mut self.snapshot.locks[id.0];
            lock.variable = Some(variable);
            lock.name = Some(name.clone());
            for wait in self.waits_mut().filter(|wait| wait.lock == Some(id)) {
                wait.name = Some(name.clone());
            }
        }
    }

    /// Looks for the variables of locks that threads wait for and that no call has shown, by what they hold.
    fn find_variables(&mut self, names: &dyn Names) {
        for id in self.awaited() {
            let Some(lock) = self.snapshot.locks.get_mut(id.0) else { continue };
            let word = lock.variable_word.filter(|_| lock.variable.is_none() && lock.raw.object == lock.object);
            let Some((word, found)) = word.and_then(|word| Some((word, names.lock_with(word)?))) else { continue };
            let number = lock.name.as_deref().and_then(|name| name.split(' ').next()).map(str::to_owned);
            let name = format!("{} (probably {found})", number.unwrap_or_else(|| format!("{word:#x}")));
            lock.name = Some(name.clone());
            for wait in self.waits_mut().filter(|wait| wait.lock == Some(id)) {
                wait.name = Some(name.clone());
            }
        }
    }

    /// The locks that threads wait for.
    fn awaited(&self) -> HashSet<LockId> {
        let waits = self.snapshot.threads.iter().filter_map(|thread| thread.wait.value()?.as_ref());
        waits.filter_map(|wait| wait.lock).collect()
    }

    /// The variable that names a lock is what the program knows it by.
    fn move_lock(&mut self, id: LockId, variable: Addr) {
        let lock = &mut self.snapshot.locks[id.0];
        (lock.object, lock.name) = (variable, None);
        for wait in self.waits_mut().filter(|wait| wait.lock == Some(id)) {
            (wait.object, wait.name) = (variable, None);
        }
    }

    fn add_holder(&mut self, id: LockId, holder: Holder, settled: &impl Fn(i32) -> bool) {
        let lock = &mut self.snapshot.locks[id.0];
        if holder.disputed || !settled(holder.lwp) || lock.held.get() == Some(false) {
            return;
        }
        match lock.owner.get() {
            // It is the one the runtime says, whose number it has.
            Some(Some(Owner::Thread(lwp))) if lwp == holder.lwp => lock.acquired = site(holder.codeptr_ra),
            // Of a nest lock the runtime names the task.
            Some(Some(Owner::Task(_))) => lock.acquired = site(holder.codeptr_ra),
            Some(other) => {
                let differ = Trouble::OwnersDiffer { lwp: holder.lwp, owner: other };
                let issue = Issue::new(format!("lock {}", lock.object), differ);
                self.snapshot.issues.push(issue);
            }
            None => {
                lock.owner = Fact::known(Some(Owner::Thread(holder.lwp)), Origin::Companion);
                lock.acquired = site(holder.codeptr_ra);
            }
        }
    }

    /// A lock belongs to the task that has set it (OpenMP 5.2, 18.9). The thread that set it is recorded. An untied task may
    /// have gone to another one since.
    fn doubt_owners(&mut self) {
        let is_untied =
            |task: &Task| task.tied.get() == Some(false) && task.kind.get().is_some_and(TaskKind::is_explicit);
        if !self.snapshot.tasks.iter().any(is_untied) {
            return;
        }
        let by_thread = |lock: &&mut Lock| matches!(lock.owner.flat(), Some(Owner::Thread(_)));
        for lock in self.snapshot.locks.iter_mut().filter(by_thread) {
            lock.owner = Fact::unknown(Common::UntiedTaskMayHaveIt);
        }
    }

    /// Lines of the places that a companion has recorded.
    fn add_lines(&mut self, names: &dyn Names) {
        let locks = self.snapshot.locks.iter_mut().filter_map(|lock| lock.acquired.as_mut());
        let tasks = self.snapshot.tasks.iter_mut().filter_map(|task| task.created.as_mut());
        let devices = self.snapshot.threads.iter_mut().filter_map(|thread| thread.on_device.as_mut());
        let devices = devices.flat_map(|OnDevice { construct, operation }| {
            let construct = construct.as_mut().and_then(|construct| construct.called.as_mut());
            construct.into_iter().chain(operation.as_mut().and_then(|operation| operation.called.as_mut()))
        });
        for Site { code, location } in locks.chain(tasks).chain(devices) {
            *location = names.line(*code);
        }
        for task in &mut self.snapshot.tasks {
            // The call that generates a task stands where its construct does.
            if let (None, Some(Site { location: Some(line), .. })) = (task.location.value(), &task.created) {
                task.location = Fact::known(line.clone(), Origin::Companion);
            }
        }
    }

    /// Names functions and objects, and with that tells apart waits that only a name distinguishes.
    fn name(&mut self, names: &dyn Names, runtime: usize) {
        let naming = names.naming(runtime);
        let criticals = names.criticals(runtime, &self.perhaps_critical());
        for lock in &mut self.snapshot.locks {
            if let Some(Critical { variable, name }) = criticals.get(&lock.object) {
                // The lock is behind the variable, or the variable itself.
                lock.object = *variable;
                lock.name = Some(format!("critical ({name})"));
                if let Some(origin) = lock.held.origin() {
                    lock.kind = Fact::known(LockKind::Critical, origin);
                }
            }
        }
        let teams = self.snapshot.teams.iter_mut().map(|team| &mut team.function);
        for function in teams.chain(self.snapshot.tasks.iter_mut().map(|task| &mut task.function)) {
            if let Fact::Known { value: CodeRef { addr, name }, .. } = function {
                *name = names.code(*addr);
            }
        }
        for dependence in self.snapshot.tasks.iter_mut().flat_map(|task| &mut task.dependences) {
            dependence.name = names.object(dependence.addr);
            if naming.dependences_by_module && dependence.name.is_none() && !dependence.addr.is_null() {
                dependence.name = names.code(dependence.addr);
            }
        }
        for lock in self.snapshot.locks.iter_mut().filter(|lock| lock.name.is_none()) {
            lock.name = names.object(lock.object);
        }
        let waits = self.snapshot.threads.iter_mut();
        for (lwp, wait) in waits.filter_map(|thread| Some((thread.lwp, thread.wait.value_mut()?.as_mut()?))) {
            if wait.name.is_none() {
                let object = if wait.kind.is_for_lock() { names.expression(wait.object, lwp) } else { None };
                wait.name = object.or_else(|| names.code(wait.object));
            }
            if let Some(Critical { name, .. }) = criticals.get(&wait.object) {
                wait.name = Some(format!("critical ({name})"));
                if wait.kind == WaitKind::Mutex {
                    wait.kind = WaitKind::Critical;
                }
            }
            if let Some(critical) = wait.name.as_deref().and_then(naming.critical_of) {
                wait.name = Some(format!("critical ({critical})"));
                wait.kind = WaitKind::Critical;
            }
        }
        for id in self.awaited() {
            let Some(lock) = self.snapshot.locks.get_mut(id.0) else { continue };
            if lock.name.is_none() || lock.name == names.object(lock.object) {
                lock.name = names.expression(lock.object, None);
            }
        }
        if naming.locks_by_waits {
            self.name_locks_by_waits();
        }
    }

    /// Locks that may be those of named criticals.
    fn perhaps_critical(&self) -> HashSet<Addr> {
        let waits = self.snapshot.threads.iter().filter_map(|t| t.wait.value().and_then(Option::as_ref));
        let waits = waits.filter(|w| matches!(w.kind, WaitKind::Critical | WaitKind::Mutex)).map(|w| w.object);
        let critical = |lock: &&Lock| lock.kind.get().is_none_or(|kind| kind == LockKind::Critical);
        waits.chain(self.snapshot.locks.iter().filter(critical).map(|l| l.object)).collect()
    }

    /// What the waits for a lock have shown of it.
    fn name_locks_by_waits(&mut self) {
        for wait in self.snapshot.threads.iter().filter_map(|thread| thread.wait.value().and_then(Option::as_ref)) {
            let Some(lock) = wait.lock.and_then(|id| self.snapshot.locks.get_mut(id.0)) else { continue };
            let is_critical = wait.kind == WaitKind::Critical;
            // A critical's variable has a name of the compiler's.
            if lock.name.is_none() || is_critical && wait.name.is_some() {
                lock.name.clone_from(&wait.name);
            }
            if is_critical {
                lock.kind = Fact::known(LockKind::Critical, wait.origin);
            }
        }
    }
}

/// What a thread has begun on a device, by the events with which it did.
fn on_device(of: Unfinished) -> OnDevice {
    let construct = of.construct.map(|event| DeviceConstruct {
        kind: event.sub,
        device: event.flags.cast_signed(),
        called: site(event.codeptr_ra),
    });
    let operation = of.operation.map(|event| DeviceOperation {
        kind: match offload::is_submit(&event) {
            true => DeviceOperationKind::Submit { teams: event.flags },
            false => {
                let bytes = (event.flags != u32::MAX).then_some(event.flags);
                DeviceOperationKind::Data { number: event.sub, bytes }
            }
        },
        called: site(event.codeptr_ra),
    });
    OnDevice { construct, operation }
}

fn site(code: u64) -> Option<Site> {
    (code != 0).then_some(Site { code: Addr(code), location: None })
}

/// The kind of lock that a call waits for.
fn lock_kind(entry: Entry) -> Option<LockKind> {
    match entry.construct {
        Construct::SetLock => Some(LockKind::Lock),
        Construct::SetNestLock => Some(LockKind::NestLock),
        Construct::Critical => Some(LockKind::Critical),
        Construct::Atomic => Some(LockKind::Atomic),
        Construct::Target => Some(LockKind::Device),
        _ => None,
    }
}

/// What was met at places to stop at, which memory does not show yet (see [`crate::stops`]): the snapshot with it.
pub fn with_stop(mut raw: RawSnapshot, lacking: Vec<Lacking>) -> RawSnapshot {
    for lack in lacking {
        match lack {
            Lacking::Lwp { descriptor, lwp } => {
                let new = |thread: &&mut RawThread| thread.descriptor == descriptor && thread.lwp.is_none();
                if let Some(thread) = raw.threads.iter_mut().find(new) {
                    thread.lwp = Some(lwp);
                }
                raw.threads.sort_by_key(|t| (t.lwp.is_none(), t.lwp, t.gtid));
            }
            Lacking::Team(team) => {
                forget(&mut raw, team.descriptor);
                raw.teams.push(*team);
            }
            Lacking::Function { task, begins } => {
                if let Some(task) = raw.tasks.get_mut(task.0) {
                    task.function = Fact::known(begins, Origin::Registers);
                }
            }
        }
    }
    raw
}

/// Takes an ended team out of a snapshot, because a new one is in its memory now. Threads that are still leaving the
/// ended team point there, but no thread can be in the new team yet.
fn forget(raw: &mut RawSnapshot, addr: Addr) {
    const WHY: Common = Common::MemoryReused;
    let Some(old) = raw.teams.iter().position(|team| team.descriptor == addr) else { return };
    let stale = |team: &Fact<Option<TeamId>>| team.flat() == Some(TeamId(old));
    for thread in raw.threads.iter_mut().filter(|thread| stale(&thread.team)) {
        thread.team = Fact::unknown(WHY);
        thread.thread_num = Fact::unknown(WHY);
        thread.task = Fact::unknown(WHY);
    }
    for task in raw.tasks.iter_mut().filter(|task| stale(&task.team)) {
        task.team = Fact::unknown(WHY);
    }
    if let Some(team) = raw.teams.get_mut(old) {
        team.descriptor = Addr::NULL;
        team.level = Fact::unknown(WHY);
        team.members.clear();
    }
}
