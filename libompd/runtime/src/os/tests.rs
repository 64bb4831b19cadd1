//! What the kernel shows of threads, by targets that are made up.

use ompd_process::{Arch, TargetKind};
use test_programs::{ChangedTarget, FakeTarget, thread_at};

use super::*;
use crate::handmade::with_symbols;
use crate::model::{Wait, WaitKind};
use crate::samples::{FUTEX, Process, fact, locked, wait};

/// On some machines a thread that is about to make a call looks as one does that is in it.
#[test]
fn a_call_that_may_not_have_begun_proves_nothing() {
    let target = FakeTarget::new(TargetKind::Core, Arch::AARCH64);
    let of = |name: &str, begun| {
        let number = target.arch().machine.call_number(name).expect("a number");
        blocked(&target, &Pointers::default(), 1, Syscall { number, args: [0; 6], begun })
    };
    for name in ["write", "read", "wait4", "ppoll"] {
        assert_eq!((of(name, true), of(name, false)), (Blocked::Outside(name), Blocked::No));
    }
}

#[test]
fn calls_without_a_time_limit() {
    let target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    let of = |name: &str, args| {
        let number = target.arch().machine.call_number(name).expect("a number");
        blocked(&target, &Pointers::default(), 1, Syscall { number, args, begun: true })
    };
    // The limit is a pointer, in the argument of this number.
    for (name, limit) in [
        ("semtimedop", 3),
        ("futex_waitv", 3),
        ("mq_timedreceive", 4),
        ("mq_timedsend", 4),
        ("recvmmsg", 4),
        ("futex_wait", 4),
    ] {
        let mut args = [1; 6];
        assert_eq!(of(name, args), Blocked::No, "{name}");
        args[limit] = 0;
        assert_eq!(of(name, args), Blocked::Outside(name));
    }
    for name in ["msgsnd", "sendmmsg", "openat", "preadv"] {
        assert_eq!(of(name, [1; 6]), Blocked::Outside(name));
    }
}

#[test]
fn handlers_that_may_let_threads_go_on() {
    let mask = |numbers: &[u32]| numbers.iter().fold(0, |mask, n| mask | 1 << (n - 1));
    let of = |numbers: &[u32]| signals(Some(mask(numbers)), [None, Some(mask(&[12]))]);
    let named = |numbers: &[u32]| of(numbers).numbers().collect::<Vec<_>>();
    assert!(!of(&[]).may_arrive());
    // What Python handles, and a program with fault handlers on the C library's own signals.
    assert!(!of(&[2]).may_arrive() && of(&[2]).ask_to_end());
    assert!([3, 15, 24].iter().all(|number| !of(&[*number]).may_arrive() && of(&[*number]).ask_to_end()));
    let errors = of(&[4, 6, 7, 8, 11, 32, 33]);
    assert!(!errors.may_arrive() && !errors.ask_to_end());
    assert_eq!((named(&[2, 10]), of(&[10]).of_timers()), (vec![10], false));
    assert_eq!((named(&[2, 17]), of(&[17]).of_timers()), (vec![17], false));
    assert_eq!((named(&[10, 14, 64]), of(&[10, 14]).of_timers()), (vec![10, 14, 64], true));
    assert!(of(&[34]).of_timers() && of(&[64]).of_timers());
    // One thread blocks it, another is not known to.
    assert_eq!(named(&[12]), [12]);
    assert!(!signals(Some(mask(&[12, 14])), [Some(mask(&[12, 14])), Some(mask(&[14, 12, 3]))]).may_arrive());
    // A core.
    assert_eq!(signals(None, [None]), Signals::NotRecorded);
    // While a handler is executed, that its thread blocks the signal proves nothing.
    let mut target = FakeTarget::new(TargetKind::Live, Arch::X86_64);
    let mut thread = thread_at(1, Addr(0x1000), Addr(0x7000));
    (thread.blocked_signals, target.process.handled_signals) = (Some(mask(&[12])), Some(mask(&[12, 15])));
    target.threads.push(thread);
    assert!(!read(&target).signals.may_arrive());
    assert_eq!(signals_at_handler(&target), Signals::Handled(mask(&[12, 15])));
    assert!(Signals::NotRecorded.may_arrive());
}

/// What a thread of x86-64 waits for in this call.
fn in_call(name: &str, args: [u64; 6]) -> Blocked {
    let target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    let number = target.arch().machine.call_number(name).expect("a number");
    blocked(&target, &Pointers::default(), 1, Syscall { number, args, begun: true })
}

#[test]
fn only_calls_without_a_time_limit_wait_for_something_from_outside() {
    const NONE: u64 = u64::MAX;
    const LIMIT: u64 = 0x7fff_0000;
    // Of each call the position of its limit, and what it is where there is none.
    for (name, position, none) in [
        ("poll", 2, NONE),
        ("epoll_wait", 3, NONE),
        ("epoll_pwait", 3, NONE),
        ("ppoll", 2, 0),
        ("select", 4, 0),
        ("pselect6", 4, 0),
        ("epoll_pwait2", 3, 0),
        ("rt_sigtimedwait", 2, 0),
    ] {
        // No other argument matters.
        for other in [0, 1, NONE] {
            let mut args = [other; 6];
            args[position] = none;
            assert_eq!(in_call(name, args), Blocked::Outside(name), "{args:x?}");
            args[position] = LIMIT;
            assert_eq!(in_call(name, args), Blocked::No, "{name} {args:x?}");
        }
    }
    for name in ["poll", "epoll_wait"] {
        let at_once = in_call(name, [0; 6]);
        assert_eq!(at_once, Blocked::No, "{name} without waiting");
        // The upper half of the register is not part of the argument.
        assert_eq!(in_call(name, [0xffff_ffff; 6]), Blocked::Outside(name));
    }
    let endless = [
        "read",
        "readv",
        "write",
        "writev",
        "recvfrom",
        "recvmsg",
        "sendto",
        "sendmsg",
        "accept",
        "accept4",
        "connect",
        "wait4",
        "waitid",
        "pause",
        "rt_sigsuspend",
        "flock",
        "msgrcv",
        "semop",
    ];
    for name in endless {
        assert_eq!(in_call(name, [1; 6]), Blocked::Outside(name));
    }
    for name in ["nanosleep", "clock_nanosleep", "sched_yield", "exit_group"] {
        assert_eq!(in_call(name, [0; 6]), Blocked::No, "{name} ends by itself");
    }
    let unknown = Syscall { number: 0xffff, args: [0; 6], begun: true };
    let target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    assert_eq!(blocked(&target, &Pointers::default(), 1, unknown), Blocked::No);
}

/// Where the word lies on which threads sleep, and what it has.
const WORD: u64 = 0x1000;
const VALUE: u32 = 2;

/// A process whose threads 1 and 2 are in these futex calls.
fn sleepers(arch: Arch, calls: [[u64; 6]; 2]) -> FakeTarget {
    let mut target = FakeTarget::new(TargetKind::Core, arch);
    let number = arch.machine.call_number("futex").expect("a number");
    for (lwp, args) in [2, 1].into_iter().zip(calls.into_iter().rev()) {
        let mut thread = thread_at(lwp, Addr(0x40), Addr(0x7000));
        if let Ok(registers) = &mut thread.registers {
            registers.syscall = Some(Syscall { number, args, begun: true });
        }
        target.threads.push(thread);
    }
    target.memory.push((Addr(WORD), [VALUE.to_le_bytes(), [0; 4], 1u32.to_le_bytes()].concat()));
    target
}

/// What thread 1 waits for in a futex call with these arguments.
fn in_futex(args: [u64; 6]) -> Blocked {
    read(&sleepers(Arch::X86_64, [args, [0; 6]])).threads[0].blocked
}

#[test]
fn thread_sleeps_on_a_private_word_that_still_has_its_value() {
    let private = |operation| [WORD, operation | FUTEX_PRIVATE, VALUE.into(), 0, 0, 0];
    for operation in [0, 9, FUTEX_CLOCK_REALTIME | 9] {
        assert_eq!(in_futex(private(operation)), Blocked::Futex(Addr(WORD)), "{operation}");
    }
    // FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_LOCK_PI
    for operation in [1, 3, 6] {
        assert_eq!(in_futex(private(operation)), Blocked::No, "{operation}");
    }
    let with = |place: usize, value| {
        let mut args = private(0);
        args[place] = value;
        in_futex(args)
    };
    assert_eq!(with(2, 3), Blocked::No, "somebody has changed the word");
    assert_eq!(with(2, (7 << 32) | u64::from(VALUE)), Blocked::Futex(Addr(WORD)), "32 bits count");
    assert_eq!(with(3, 0x7fff_0000), Blocked::No, "it ends by itself");
    assert_eq!(with(0, 0x9000), Blocked::No, "the word cannot be read");
    assert_eq!(with(1, 0), Blocked::Futex(Addr(WORD)), "no other process has the memory");
    for shared in [Some(true), None] {
        let args = [WORD, 0, VALUE.into(), 0, 0, 0];
        let target = sleepers(Arch::X86_64, [args, [0; 6]]);
        let target = ChangedTarget::new(&target).with_shared(Addr(WORD), shared);
        assert_eq!(read(&target).threads[0].blocked, Blocked::No, "another process may wake it: {shared:?}");
    }
}

#[test]
fn a_word_with_the_id_of_a_thread_behind_its_pointer_is_waited_for_until_that_thread_has_ended() {
    let joins = |arch, pointer: u64, operation, of: i32| {
        let args = [WORD, operation, VALUE.into(), 0, 0, 0];
        let mut target = sleepers(arch, [args, args]);
        for thread in target.threads.iter_mut().filter(|thread| thread.lwp == of) {
            thread.pointer = Some(Addr(pointer));
        }
        read(&target).threads[0].blocked
    };
    let joined = Blocked::Join(2);
    // struct pthread begins at the pointer, or ends there.
    for (arch, near, far, other_side) in [
        (Arch::X86_64, WORD - 8, WORD - PTHREAD_BYTES, WORD + 8),
        (Arch::AARCH64, WORD + 8, WORD + PTHREAD_BYTES, WORD - 8),
    ] {
        assert_eq!(joins(arch, near, FUTEX_WAIT, 2), joined);
        assert_eq!(joins(arch, near, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 2), joined);
        for elsewhere in [far, WORD, other_side] {
            assert_eq!(joins(arch, elsewhere, FUTEX_WAIT, 2), Blocked::Futex(Addr(WORD)), "{elsewhere:x}");
        }
        assert_eq!(joins(arch, near, FUTEX_WAIT, 1), Blocked::Futex(Addr(WORD)), "it is no other thread's");
        assert_eq!(joins(arch, near, FUTEX_WAIT | FUTEX_PRIVATE, 2), Blocked::Futex(Addr(WORD)));
    }
    // In a PID namespace the words of both threads have other ids than the kernel shows outside.
    let args = [WORD, FUTEX_WAIT, VALUE.into(), 0, 0, 0];
    let of = |own: u32, shared| {
        let mut target = sleepers(Arch::X86_64, [args, [0; 6]]);
        target.memory.push((Addr(0x2008), own.to_le_bytes().to_vec()));
        for thread in &mut target.threads {
            thread.pointer = Some(Addr(if thread.lwp == 1 { 0x2000 } else { WORD - 8 }));
        }
        let value = 77u32.to_le_bytes();
        let target = ChangedTarget::new(&target).with_bytes(Addr(WORD), &value).with_shared(Addr(WORD), shared);
        let call = Syscall { number: target.arch().machine.call_number("futex").expect("a number"), args, begun: true };
        let args = [WORD, FUTEX_WAIT, 77, 0, 0, 0];
        blocked(&target, &Pointers::of(&target), 1, Syscall { args, ..call })
    };
    assert_eq!(of(76, Some(false)), Blocked::Join(2));
    assert_eq!(of(0, Some(false)), Blocked::Futex(Addr(WORD)), "no id");
    assert_eq!(of(77, Some(false)), Blocked::Futex(Addr(WORD)), "the same id");
    assert_eq!(of(76, Some(true)), Blocked::No, "memory of another process as well");
}

#[test]
fn thread_in_the_call_for_a_mutex_waits_for_its_owner() {
    let args = [WORD, FUTEX_WAIT | FUTEX_PRIVATE, VALUE.into(), 0, 0, 0];
    let of = |owner: u32, in_mutex: &dyn Fn(i32) -> bool| {
        let acquires = |lwp: i32| in_mutex(lwp).then_some(Acquires::Mutex);
        let mut target = sleepers(Arch::X86_64, [[0; 6], args]);
        target.threads.iter_mut().for_each(|thread| thread.pointer = Some(Addr(0x9000)));
        let owner = owner.to_le_bytes();
        let target = ChangedTarget::new(&target).with_bytes(Addr(WORD + MUTEX_OWNER), &owner);
        let mut threads = read(&target).threads;
        find_mutexes(&mut threads, &acquires);
        assert_eq!(threads[0].blocked, Blocked::No);
        threads[1].blocked
    };
    assert_eq!(of(1, &|lwp| lwp == 2), Blocked::Mutex(Addr(WORD), 1));
    assert_eq!(of(1, &|lwp| lwp == 1), Blocked::Futex(Addr(WORD)), "it is in another call");
    assert_eq!(of(7, &|_| true), Blocked::Futex(Addr(WORD)), "there is no thread 7");
    assert_eq!(of(u32::MAX, &|_| true), Blocked::Futex(Addr(WORD)));
    // A waiting thread of a process whose threads are in no such call.
    let mut threads = [OsThread::new(1, FUTEX)];
    find_mutexes(&mut threads, &|_| Some(Acquires::Mutex));
    assert_eq!(threads[0].blocked, FUTEX);
}

/// The words of glibc's read-write lock, from its count of readers.
fn rwlock(words: [u32; 8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn thread_in_the_call_for_a_read_write_lock_waits_for_its_writer() {
    let of = |at: u64, words: [u32; 8], acquires: Acquires| {
        let args = [WORD, FUTEX_WAIT | FUTEX_PRIVATE, words[at as usize / 4].into(), 0, 0, 0];
        let mut target = sleepers(Arch::X86_64, [[0; 6], args]);
        target.threads.iter_mut().for_each(|thread| thread.pointer = Some(Addr(0x9000)));
        let around = [vec![0; 0x40], rwlock(words), vec![0; 0x40]].concat();
        target.memory = vec![(Addr(WORD - at - 0x40), around)];
        let mut threads = read(&target).threads;
        find_mutexes(&mut threads, &|_| Some(acquires));
        (threads[1].blocked, RwLock::around(&target, Addr(WORD)).map(|lock| lock.holder))
    };
    let sleeps = Blocked::Futex(Addr(WORD));
    let written = |writer| [0b111, 0, VALUE, 1, 0, 0, writer, 0];
    let readers = |count: u32| [count << 3 | 2, 0, VALUE, 1, 0, 0, 0, 0];
    let lock = Acquires::RwLock;
    // Readers, and a writer that is the next.
    assert_eq!(of(8, written(1), lock), (Blocked::Mutex(Addr(WORD - 8), 1), Some(RwHolder::Writer(1))));
    // Writers that are not.
    let behind = [0b11, 1, 1, VALUE, 0, 0, 1, 0];
    assert_eq!(of(12, behind, lock), (Blocked::Mutex(Addr(WORD - 12), 1), Some(RwHolder::Writer(1))));
    assert_eq!(of(8, written(1), Acquires::Mutex).0, sleeps, "it is in another call");
    assert_eq!(of(8, written(77), lock).0, sleeps, "there is no thread 77");
    assert_eq!(of(8, written(0), lock), (sleeps, None), "the writer has not said so yet, or no longer");
    assert_eq!(of(8, readers(3), lock), (sleeps, Some(RwHolder::Readers(3))));
    assert_eq!(of(12, readers(3), lock), (sleeps, None), "a writer behind one that waits");
    assert_eq!(of(8, [1, 0, VALUE, 1, 0, 0, 1, 0], lock), (sleeps, None), "it is not locked");
    assert_eq!(of(8, [0b111, 0, VALUE, 1, 0, 0, 1, 1], lock), (sleeps, None), "other processes use it");
    assert_eq!(of(8, [0b111, 0, VALUE, 1, 9, 0, 1, 0], lock), (sleeps, None), "it is none");
}

#[test]
fn threads_are_in_the_order_of_their_ids() {
    let target = sleepers(Arch::X86_64, [[0; 6]; 2]);
    assert_eq!(target.threads.iter().map(|thread| thread.lwp).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(read(&target).threads.iter().map(|thread| thread.lwp).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn thread_that_waits_for_an_interpreters_lock_waits_for_its_holder() {
    let mut threads = [OsThread::new(1, Blocked::No), OsThread::new(2, FUTEX)];
    add_interpreter_locks(&mut threads, &[(1, 2)].into());
    assert_eq!(threads.map(|thread| thread.blocked), [Blocked::Interpreter(2), FUTEX]);
    assert_eq!(threads.map(|thread| thread.blocked.is_owned()), [true, false]);
    assert!(Blocked::Mutex(Addr(WORD), 1).is_owned() && !Blocked::Join(1).is_owned());
}

#[test]
fn locks_that_other_processes_may_set_free_are_those_in_memory_that_is_not_private() {
    let of = |kind, object, variable_word, shared| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(None));
        p.snapshot.locks[0].object = Addr(WORD);
        p.snapshot.locks[0].variable_word = variable_word;
        let known = locked(lock).map(|wait| Wait { kind, ..wait });
        let alone = wait(kind, team).map(|wait| Wait { object: Addr(WORD), ..wait });
        p.member(team, FUTEX, if object { alone } else { known });
        let target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
        let target = ChangedTarget::new(&target).with_shared(Addr(WORD), shared);
        find_shared(&target, &[p.snapshot.into()]).into_iter().collect::<Vec<_>>()
    };
    for alone in [false, true] {
        assert_eq!(of(WaitKind::Lock, alone, None, Some(true)), [(Addr(WORD), Sharing::Shared)]);
        assert_eq!(of(WaitKind::Critical, alone, None, None), [(Addr(WORD), Sharing::Unknown)]);
        assert_eq!(of(WaitKind::Lock, alone, None, Some(false)), []);
        assert_eq!(of(WaitKind::Barrier, alone, None, Some(true)), [], "it waits for no lock");
    }
    assert_eq!(of(WaitKind::Lock, false, Some(5), Some(true)), [], "the lock is the runtime's");
}

#[test]
fn thread_in_sched_yield_offers_its_processor() {
    let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    let functions = [("sched_yield", 0x1000, 16), ("usleep", 0x1010, 16), ("__sched_yield", 0x1020, 16)];
    target.modules.push(with_symbols(&functions, true));
    for (lwp, pc) in [(1, 0x100f), (2, 0x1010), (3, 0x1020), (4, 0x100f), (5, 0x3000)] {
        target.threads.push(thread_at(lwp, Addr(pc), Addr(0x7000)));
    }
    let mut threads = [1, 2, 3, 4, 5, 6].map(|lwp| OsThread::new(lwp, Blocked::No));
    threads[3].blocked = FUTEX;
    find_yielding(&target, &mut threads);
    let (no, yields) = (Blocked::No, Blocked::Yields);
    assert_eq!(threads.map(|thread| thread.blocked), [yields, no, yields, FUTEX, no, no]);
}
