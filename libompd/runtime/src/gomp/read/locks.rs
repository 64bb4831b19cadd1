//! Locks that threads wait for.

use std::collections::HashMap;

use ompd_layout::Origin;
use ompd_process::{Addr, TargetExt};

use super::waits::WaitReader;
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::model::*;

/// Why nobody is named as the owner of a lock.
const NO_OWNER: Own = Own::NoOwner;

impl WaitReader<'_> {
    /// The lock whose word is at `object`; `lwp` waits for it.
    pub(super) fn lock_at(&mut self, object: Addr, kind: WaitKind, lwp: i32, origin: Origin) -> LockId {
        let next = LockId(self.locks.len());
        let id = *self.lock_ids.entry(object).or_insert(next);
        if id == next {
            self.locks.push(RawLock {
                object,
                kind: match kind {
                    WaitKind::Critical => Fact::known(LockKind::Critical, origin),
                    WaitKind::Atomic => Fact::known(LockKind::Atomic, origin),
                    _ => Fact::unknown(Own::LockOrCritical),
                },
                name: self.futexes.get(&object).and_then(|futex| futex.name.clone()),
                location: None,
                owner: Fact::unknown(NO_OWNER),
                held: Fact::unknown(Common::NotRead),
                variable_word: None,
                wait_id: self.wait_id(object),
                depth: None,
                waiters: Vec::new(),
                queued: false,
            });
        }
        self.locks[id.0].waiters.push(lwp);
        id
    }

    /// By which wait id the library in front of the runtime reports the lock at `object`, if not by its address: those that the
    /// runtime keeps for itself by the functions that take them.
    fn wait_id(&self, object: Addr) -> Option<Addr> {
        let gomp = self.context.gomp;
        let is = |lock: Option<(Addr, Origin)>| lock.is_some_and(|(lock, _)| lock == object);
        let function = match () {
            () if is(gomp.default_lock) => "GOMP_critical_start",
            () if is(gomp.atomic_lock) => "GOMP_atomic_start",
            () => return None,
        };
        let modules = self.context.target.modules();
        let module = modules.iter().find(|module| gomp.front.is_some() && module.base() == gomp.info.base)?;
        module.symbol(function).map(|symbol| symbol.addr)
    }

    /// What the locks themselves say, and what follows for those that wait.
    pub(super) fn finish_locks(&mut self, waits: &mut [Fact<Option<Wait>>]) {
        let by_icv: HashMap<Addr, TaskId> =
            self.tasks.icv_addrs.iter().filter(|(_, icv)| !icv.is_null()).map(|(task, icv)| (*icv, *task)).collect();
        let mut locks = std::mem::take(&mut self.locks);
        for lock in &mut locks {
            lock.held = match self.context.target.read_u32(lock.object) {
                Ok(word) => Fact::known(word != 0, Origin::Registers),
                Err(fault) => Fact::unknown(fault),
            };
            if lock.held.get() == Some(false) {
                lock.owner = Fact::known(None, Origin::Registers);
            }
            if lock.kind.value().is_none()
                && lock.held.get() == Some(true)
                && let Ok(Some((task, depth))) = self.nest_owner(lock.object, &by_icv)
            {
                let slot = &self.context.gomp.structs.nest_lock.owner;
                lock.kind = slot.fact(Ok(LockKind::NestLock));
                lock.owner = slot.fact(Ok(Some(Owner::Task(task))));
                lock.depth = Some(depth);
            }
        }
        for wait in waits {
            let Fact::Known { value: Some(wait), origin } = wait else { continue };
            let Some(lock) = wait.lock.and_then(|id| locks.get(id.0)) else { continue };
            wait.over = match lock.held.get() {
                Some(true) => Fact::known(false, *origin),
                Some(false) if lock.waiters.len() == 1 => Fact::known(true, *origin),
                Some(false) => Fact::unknown(Own::FreeLock { waiters: lock.waiters.len() }),
                None => Fact::unknown(Own::LockUnreadable),
            };
            if lock.kind.get() == Some(LockKind::NestLock) && wait.kind == WaitKind::Mutex {
                wait.kind = WaitKind::Lock;
            }
        }
        self.locks = locks;
    }

    /// The task that holds the nest lock at `object`, and how often it has set it; nothing if it is not known to be one.
    ///
    /// A simple lock is a word, and behind it is whatever the program has there. The owner of a nest lock is the
    /// address of the control variables inside a task (`omp_set_nest_lock` in lock.c). The runtime gives that address
    /// to nobody. So a held lock is a nest lock if such an address is in the right place behind it, with a count that
    /// fits.
    fn nest_owner(&self, object: Addr, by_icv: &HashMap<Addr, TaskId>) -> Result<Option<(TaskId, u32)>, Reason> {
        let s = &self.context.gomp.structs.nest_lock;
        let view = StructData::read(self.context.target, object.back(s.lock.offset()?), s.size)?;
        let Some(task) = by_icv.get(&view.ptr(&s.owner)?) else { return Ok(None) };
        let depth = view.count(&s.count)?;
        Ok((depth > 0).then_some((*task, depth)))
    }
}
