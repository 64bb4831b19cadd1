//! Who is queued for which lock.

use std::collections::HashSet;

use ompd_layout::Origin;
use ompd_target::{Addr, TargetExt};

use super::super::schema;
use super::{Idle, RawThread, Reader};
use crate::bind::{View, Why};
use crate::limits;
use crate::model::*;

/// Entries in one row of the lock table (`KMP_I_LOCK_CHUNK`).
const LOCKS_PER_ROW: u64 = 1024;
/// Lock kinds of the table that are queues (`enum kmp_indirect_locktag_t`): queuing and nested_queuing.
const QUEUING: [u64; 2] = [1, 8];

impl Reader<'_> {
    /// Set from the moment a thread queues up for a queuing lock until it is handed over
    /// (`__kmp_acquire_queuing_lock_timed_template`).
    pub(super) fn queued_for_lock(&self, thread: &RawThread) -> Result<bool, Why> {
        Ok(matches!(thread.idle, Idle::No) && thread.view.flag(&self.kmp.structs.info.spin_here)?)
    }

    /// Every lock and critical of an indirect kind is in a table. A queuing lock knows its first and last waiter; the
    /// threads in between are chained. Who holds it is not recorded.
    pub(super) fn read_locks(&mut self) {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let mut read = || -> Result<(), Why> {
            let mut table = self.global(schema::LOCK_TABLE)?;
            let mut seen = HashSet::new();
            let mut visited = 0;
            while !table.is_null() && seen.insert(table) {
                let view = View::read(self.target, table, s.lock_table.size)?;
                let (rows, used) = (view.ptr(&s.lock_table.table)?, u64::from(view.u32(&s.lock_table.next)?));
                let width = u64::from(self.target.arch().pointer_bytes);
                if view.u32(&s.lock_table.nrow_ptrs).is_ok_and(|rows| used > u64::from(rows) * LOCKS_PER_ROW) {
                    return Err(Why::Inconsistent(format!("the table of locks at {table} contradicts itself")));
                }
                let entry_size = s.indirect_lock.size.get()?;
                for index in 0..used {
                    visited += 1;
                    if visited > limits::LOCKS {
                        return Err(Why::Inconsistent(format!(
                            "more than {} locks; the rest is not looked at",
                            limits::LOCKS
                        )));
                    }
                    let row = self.target.read_ptr(rows.offset(index / LOCKS_PER_ROW * width))?;
                    let entry =
                        View::read(self.target, row.offset(index % LOCKS_PER_ROW * entry_size), s.indirect_lock.size)?;
                    if QUEUING.contains(&entry.uint(&s.indirect_lock.kind)?) {
                        let (lock, is_last) = (entry.ptr(&s.indirect_lock.lock)?, index);
                        if !lock.is_null() {
                            self.read_lock(lock, is_last)?;
                        }
                    }
                }
                table = view.ptr(&s.lock_table.next_table).unwrap_or(Addr::NULL);
            }
            Ok(())
        };
        if let Err(why) = read() {
            self.issue("locks", why);
        }
    }

    pub(super) fn read_lock(&mut self, addr: Addr, index: u64) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let lock = View::read(self.target, addr, s.queuing.size)?;
        // A live lock points to itself; entries of destroyed locks are reused or stale.
        let alive = lock.ptr(&s.queuing.initialized)? == addr;
        self.check.note("no lock points to itself", alive);
        if !alive {
            return Ok(());
        }
        let critical = lock.uint(&s.queuing.flags)? & 1 != 0;
        let location = self.line_in(&lock, &s.queuing.location).value().cloned();
        let (mut next, last) = (lock.int(&s.queuing.head_id)?, lock.int(&s.queuing.tail_id)?);
        let name = if critical { None } else { Some(format!("lock #{index} of the runtime's table")) };
        let kind = if critical { WaitKind::Critical } else { WaitKind::Lock };
        for _ in 0..limits::TEAM_SIZE {
            if next <= 0 {
                break;
            }
            self.budget.spend(1)?;
            let gtid = (next - 1) as u32;
            let Some(waiter) = self.by_gtid.get(&gtid).map(|i| &self.threads[*i]) else {
                return Err(Why::Inconsistent(format!(
                    "the lock at {addr} names gtid {gtid} as a waiter, which does not exist"
                )));
            };
            let origin = s.queuing.head_id.origin().unwrap_or(Origin::Profile);
            let wait = Wait { name: name.clone(), location: location.clone(), ..Wait::new(kind, addr, origin) };
            self.lock_waits.insert(gtid, wait);
            if next == last {
                break;
            }
            next = waiter.view.int(&s.info.next_waiting)?;
        }
        Ok(())
    }
}
