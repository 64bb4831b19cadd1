//! Locks of each kind, their owners and those who wait for them.

use super::*;

const TICKET: u64 = 0;
const QUEUING: u64 = 1;
const DRDPA: u64 = 3;
const NEST_TAS: u64 = 5;
const NEST_FUTEX: u64 = 6;
const NEST_QUEUING: u64 = 8;

impl Made {
    /// A team of three, and a table of locks with this entry at this index.
    fn with_lock(kind: u64, index: u64, size: impl Fn(&schema::Structs) -> SizeOf) -> (Made, Addr) {
        let mut made = Made::new();
        made.team(3);
        let lock = made.made(size);
        let entry = made.runtime.structs.indirect_lock.size.get().expect("a size");
        let rows = made.zeros(8 * 4);
        let row = made.zeros(1024 * entry);
        for at in 0..4 {
            let empty = if at == index / 1024 { row } else { made.zeros(1024 * entry) };
            made.write(rows.offset(8 * at), empty.0, 8);
        }
        let at = row.offset(index % 1024 * entry);
        made.set(at, |s| s.indirect_lock.lock, lock.0);
        made.set(at, |s| s.indirect_lock.kind, kind);
        let table = made.variable(schema::LOCK_TABLE);
        made.set(table, |s| s.lock_table.table, rows.0);
        made.set(table, |s| s.lock_table.nrow_ptrs, 4);
        made.set(table, |s| s.lock_table.next, index + 1);
        (made, lock)
    }

    /// A queuing lock that is held, with the first and the last of its waiters: numbers plus one.
    fn queuing(kind: u64, head: i64, tail: u64) -> (Made, Addr) {
        let (mut made, lock) = Made::with_lock(kind, 0, |s| s.queuing.size);
        made.set(lock, |s| s.queuing.initialized, lock.0);
        made.set(lock, |s| s.queuing.head_id, head.cast_unsigned());
        made.set(lock, |s| s.queuing.tail_id, tail);
        made.set(lock, |s| s.queuing.depth_locked, u64::MAX);
        (made, lock)
    }

    fn only_lock(&self) -> Option<RawLock> {
        let found = self.snapshot();
        assert_eq!(found.issues, []);
        assert!(found.locks.len() < 2);
        found.locks.into_iter().next()
    }
}

#[test]
fn queuing_lock_without_waiters_is_held() {
    let (made, object) = Made::queuing(QUEUING, -1, 0);
    let lock = made.only_lock().expect("a lock");
    assert_eq!((lock.object, lock.kind.get(), lock.held.get()), (object, Some(LockKind::Lock), Some(true)));
    assert_eq!((lock.owner.value(), &lock.waiters[..], lock.queued), (None, &[][..], true));
    assert_eq!((lock.depth, lock.variable_word), (None, Some(0)));
    assert_eq!(lock.name.as_deref(), Some("#0 (its variable is unknown)"));
    let (free, _) = Made::queuing(QUEUING, 0, 0);
    assert!(free.only_lock().is_none(), "nobody holds it");
}

#[test]
fn waiters_of_a_queuing_lock_are_in_the_order_in_which_they_get_it() {
    // Thread 3 is the first, then thread 2.
    let (mut made, object) = Made::queuing(QUEUING, 3, 2);
    let first = made.thread(3);
    made.set(first, |s| s.info.next_waiting, 2);
    let waiting = [2, 3].map(|lwp| made.thread(lwp));
    waiting.into_iter().for_each(|thread| made.set(thread, |s| s.info.spin_here, 1));
    let found = made.snapshot();
    assert_eq!(found.locks[0].waiters, [3, 2]);
    let wait = |at: usize| found.threads[at].wait.value().cloned().flatten();
    assert_eq!(wait(0), None);
    for at in [1, 2] {
        let wait = wait(at).expect("a wait");
        assert_eq!((wait.kind, wait.object, wait.lock), (WaitKind::Lock, object, Some(LockId(0))));
        assert_eq!((wait.over.get(), wait.name.as_deref()), (Some(false), Some("#0 (its variable is unknown)")));
    }
}

#[test]
fn queue_with_a_thread_that_does_not_exist_is_an_issue() {
    let (made, _) = Made::queuing(QUEUING, 9, 9);
    let found = made.snapshot();
    assert_eq!(found.issues.len(), 1);
    assert_eq!((found.locks[0].held.get(), found.locks[0].queued), (Some(true), false), "its waiters are unknown");
}

#[test]
fn lock_that_was_destroyed_is_not_shown() {
    let (mut made, lock) = Made::queuing(QUEUING, -1, 0);
    made.set(lock, |s| s.queuing.initialized, 0);
    assert!(made.only_lock().is_none());
}

#[test]
fn critical_is_no_lock_of_the_program() {
    let (mut made, lock) = Made::queuing(QUEUING, -1, 0);
    made.set(lock, |s| s.queuing.flags, 1);
    let lock = made.only_lock().expect("a lock");
    assert_eq!((lock.kind.get(), lock.name, lock.variable_word), (Some(LockKind::Critical), None, None));
}

#[test]
fn owner_of_a_nest_lock_is_the_thread_whose_number_it_has() {
    let of = |owner, depth, change: fn(&mut Made)| {
        let (mut made, lock) = Made::queuing(NEST_QUEUING, -1, 0);
        made.set(lock, |s| s.queuing.owner_id, owner);
        made.set(lock, |s| s.queuing.depth_locked, depth);
        change(&mut made);
        let lock = made.snapshot().locks.remove(0);
        assert_eq!(lock.kind.get(), Some(LockKind::NestLock));
        (lock.owner.flat(), lock.depth)
    };
    assert_eq!(of(2, 3, |_| ()), (Some(Owner::Thread(2)), Some(3)));
    assert_eq!(of(1, 1, |_| ()), (Some(Owner::Thread(1)), Some(1)));
    assert_eq!(of(0, 0, |_| ()), (None, None), "it is about to be set");
    assert_eq!(of(8, 1, |_| ()), (Some(Owner::Gone(7)), Some(1)), "no thread has that number");
    // Threads that were not found may have it.
    assert_eq!(of(8, 1, |made| made.target.threads[0].pointer = None), (None, Some(1)));
}

#[test]
fn ticket_lock_is_held_while_a_ticket_was_given_that_is_not_served() {
    let of = |next, serving, own: fn(Addr) -> u64| {
        let (mut made, lock) = Made::with_lock(TICKET, 5, |s| s.ticket.size);
        made.set(lock, |s| s.ticket.self_, own(lock));
        made.set(lock, |s| s.ticket.next_ticket, next);
        made.set(lock, |s| s.ticket.now_serving, serving);
        made.only_lock().map(|lock| (lock.held.get(), lock.variable_word, lock.owner.value().cloned()))
    };
    assert_eq!(of(4, 3, |lock| lock.0), Some((Some(true), Some(10), None)));
    assert_eq!(of(0, u64::from(u32::MAX), |lock| lock.0), Some((Some(true), Some(10), None)), "the number began anew");
    assert_eq!(of(4, 4, |lock| lock.0), None);
    assert_eq!(of(4, 3, |_| 0), None, "it was destroyed");
}

#[test]
fn drdpa_lock_is_held_while_the_next_ticket_is_not_served() {
    let of = |next: u64, served: u64| {
        let (mut made, lock) = Made::with_lock(DRDPA, 0, |s| s.drdpa.size);
        let polls = made.zeros(8 * 4);
        made.set(lock, |s| s.drdpa.initialized, lock.0);
        made.set(lock, |s| s.drdpa.polls, polls.0);
        made.set(lock, |s| s.drdpa.mask, 3);
        made.set(lock, |s| s.drdpa.next_ticket, next);
        made.write(polls.offset(8 * (next & 3)), served, 8);
        made.only_lock().map(|lock| lock.held.get())
    };
    assert_eq!(of(6, 2), Some(Some(true)), "that place was served a round before");
    assert_eq!(of(6, 5), Some(Some(true)));
    assert_eq!(of(6, 6), None);
    assert_eq!(of(6, 7), None);
}

#[test]
fn nest_lock_of_one_word_names_its_owner_in_it() {
    let tas = |word, depth| {
        let (mut made, lock) = Made::with_lock(NEST_TAS, 0, |s| s.tas.size);
        made.set(lock, |s| s.tas.poll, word);
        made.set(lock, |s| s.tas.depth_locked, depth);
        made.only_lock().map(|lock| (lock.owner.flat(), lock.depth))
    };
    let futex = |word, depth| {
        let (mut made, lock) = Made::with_lock(NEST_FUTEX, 0, |s| s.futex.size);
        made.set(lock, |s| s.futex.poll, word);
        made.set(lock, |s| s.futex.depth_locked, depth);
        made.only_lock().map(|lock| (lock.owner.flat(), lock.depth))
    };
    let second = Some((Some(Owner::Thread(2)), Some(1)));
    assert_eq!(tas((2 << 8) | 3, 1), second);
    assert_eq!(tas(3, 0), None, "it is free");
    assert_eq!(tas((2 << 8) | 8, 1), None, "what is left of it");
    assert_eq!(tas((2 << 8) | 3, 0), Some((Some(Owner::Thread(2)), None)));
    // With or without somebody that sleeps for it.
    assert_eq!(futex((4 << 8) | 5, 1), second);
    assert_eq!(futex((5 << 8) | 5, 1), second);
    assert_eq!(futex(5, 0), None);
    assert_eq!(futex((4 << 8) | 3, 1), None);
}

#[test]
fn locks_of_all_rows_of_all_tables_are_read() {
    let index = |index| {
        let (mut made, lock) = Made::with_lock(QUEUING, index, |s| s.queuing.size);
        made.set(lock, |s| s.queuing.initialized, lock.0);
        made.set(lock, |s| s.queuing.head_id, u32::MAX.into());
        made
    };
    for at in [0, 1, 1023, 1024, 2049] {
        let lock = index(at).only_lock().expect("a lock");
        assert_eq!(lock.variable_word, Some(at as u32 * 2));
    }
    // The table continues in another one, after two entries of which none is in use.
    let mut made = index(1024);
    let first = made.variable(schema::LOCK_TABLE);
    let (next, size) = (made.made(|s| s.lock_table.size), made.runtime.structs.lock_table.size.get().expect("a size"));
    for at in (0..size).step_by(8) {
        let word = made.target.read_u64(first.offset(at)).expect("a word");
        made.write(next.offset(at), word, 8);
    }
    let empty = made.zeros(1024 * made.runtime.structs.indirect_lock.size.get().expect("a size"));
    let rows = made.zeros(8);
    made.write(rows, empty.0, 8);
    made.set(first, |s| s.lock_table.table, rows.0);
    made.set(first, |s| s.lock_table.next, 2);
    made.set(first, |s| s.lock_table.next_table, next.0);
    assert_eq!(made.only_lock().expect("a lock").variable_word, Some((1024 + 2) * 2));
    // More entries than it has rows for.
    made.set(next, |s| s.lock_table.next, 4 * 1024 + 1);
    let (found, _) = made.checked();
    assert_eq!((found.locks.len(), found.issues.len()), (0, 1));
}
