//! A running process: what is read is true, and the process is none the worse for it.

use std::io::{BufRead, IoSliceMut, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{self, Subject};
use nix::sys::signal::{Signal, kill};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use ompd_process::{Addr, Live, OpenError, OpenOptions, ReadFault, Registers, SymbolOrigin, Target, TargetExt};
use test_programs::await_asleep;

fn open(pid: i32) -> Live {
    Live::open(pid, &OpenOptions::default()).expect("open")
}

fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    stat.rsplit(')').next().and_then(|s| s.trim().chars().next()).expect("state")
}

#[test]
fn pages_that_are_not_in_use_are_left_out_of_private_memory_alone() {
    if std::fs::File::open("/proc/self/pagemap").is_err() {
        return support::skip("the kernel does not show which pages are in use");
    }
    let program = support::compile("unused.c", "unused", &[]);
    let subject = Subject::spawn(&mut Command::new(program));
    let (private, page) = subject.known;
    let live = open(subject.pid());
    let in_use = |start: u64, from: u64, to: u64| {
        let parts = live.in_use(start + from * page..start + to * page);
        parts.iter().map(|part| ((part.start - start) / page, (part.end - start) / page)).collect::<Vec<_>>()
    };
    assert_eq!(in_use(private, 0, 64), [(0, 1), (40, 42)]);
    assert_eq!(in_use(private, 2, 20), []);
    assert_eq!(in_use(private, 30, 41), [(40, 41)]);
    for other in [subject.constant, subject.word] {
        assert_eq!(in_use(other, 0, 64), [(0, 64)]);
    }
    // Reading such a page makes the kernel enter it.
    live.read_vec(Addr(private + 20 * page), 8).expect("zeros");
    assert_eq!(in_use(private, 0, 64), [(0, 1), (20, 21), (40, 42)]);
}

#[test]
fn memory_registers_and_symbols_are_what_the_process_says() {
    for force_proc_mem in [false, true] {
        let mut subject = Subject::start(&["threads", "5"]);
        subject.ask(b'p'); // The worker is in its loop.
        let mut live =
            Live::open(subject.pid(), &OpenOptions { force_proc_mem, ..OpenOptions::default() }).expect("open");
        assert!(live.threads().is_empty());
        live.stop().expect("stop");

        let known = live.read_vec(Addr(subject.known.0), subject.known.1).expect("known data");
        assert_eq!(known, subject.known_bytes());
        let exe = live.modules().iter().find(|m| m.name() == "subject").expect("module of the executable");
        let symbol = exe.symbol("known").expect("symbol");
        assert_eq!((symbol.addr, symbol.size, symbol.tls), (Addr(subject.known.0), subject.known.1, false));
        assert_eq!(exe.symbol("main").map(|s| s.addr), Some(Addr(subject.main)));
        assert!(exe.symbol("local_mark").is_some_and(|s| s.tls));
        assert_eq!(exe.symbol_at(Addr(subject.known.0 + 9)).map(|(s, d)| (s.name, d)), Some(("known".into(), 9)));
        assert!(exe.contains(Addr(subject.known.0)) && exe.contains(Addr(subject.main)));
        assert_eq!(live.process().exe.as_deref(), support::subject().to_str());

        // Main, five waiters, one worker.
        assert_eq!(live.threads().len(), 7);
        for waiter in &subject.waiters {
            let thread = live.threads().iter().find(|t| t.lwp == waiter.tid).expect("thread");
            assert_eq!(thread.name.as_deref(), Some("waiter"));
            let registers = thread.registers.as_ref().expect("registers");
            assert_eq!(registers.thread_pointer, Some(Addr(waiter.pthread)));
            assert_eq!(live.read_u64(Addr(waiter.mark_at)), Ok(waiter.mark));
            let libc = live.module_at(registers.pc).expect("module of the program counter");
            assert!(libc.name().starts_with("libc"), "{}", libc.path);
            if cfg!(target_arch = "x86_64") {
                let call = registers.syscall.expect("blocked in a system call");
                assert_eq!((call.number, call.args[0], call.args[2]), (202, subject.word, 0));
            }
        }
        let worker = live.threads().last().expect("worker").registers.clone().expect("registers");
        assert!(exe.symbol_at(worker.pc).is_some_and(|(s, _)| s.name == "worker"));
        assert_eq!(worker.syscall, None);
        assert!(live.resume().is_some());
        assert_eq!(live.threads().len(), 7);
        assert!(live.resume().is_none());
    }
}

#[test]
fn libraries_and_the_vdso_are_modules_with_symbols() {
    let subject = Subject::start(&["threads", "1"]);
    let live = open(subject.pid());
    let libc = live.modules().iter().find(|m| m.name().starts_with("libc.so")).expect("libc");
    assert!(libc.build_id.is_some() && libc.exports("malloc") && !libc.exports("no_such_name"));
    let malloc = libc.symbol("malloc").expect("malloc");
    assert_eq!(malloc.origin, SymbolOrigin::Dynsym);
    let file = libc.file.as_ref().expect("file");
    assert_eq!(file.soname().as_deref(), Some("libc.so.6"));
    assert!(file.version_nodes().iter().any(|v| v == "GLIBC_2.17") || cfg!(not(target_arch = "x86_64")));
    let code = live.read_vec(malloc.addr, malloc.size).expect("code in memory");
    assert_eq!(file.bytes_at(malloc.addr.0 - libc.bias, malloc.size), Some(&code[..]));
    let vdso = live.modules().iter().find(|m| m.path.is_empty()).expect("vdso");
    assert!(vdso.exports("__vdso_clock_gettime") || vdso.exports("__kernel_clock_gettime"));
    let bases: Vec<_> = live.modules().iter().map(|m| m.base()).collect();
    assert!(bases.is_sorted());
}

#[test]
fn programs_linked_to_a_fixed_address_and_statically_work_too() {
    for (name, flags) in [("fixed", &["-no-pie", "-fno-pie"][..]), ("static", &["-static"][..])] {
        let path = support::compile("subject.c", name, flags);
        let subject = Subject::spawn(std::process::Command::new(&path).args(["threads", "1"]));
        let live = open(subject.pid());
        let exe = live.modules().iter().find(|m| m.name() == name).expect("executable");
        assert_eq!((exe.bias, exe.symbol("known").map(|s| s.addr)), (0, Some(Addr(subject.known.0))));
    }
}

#[test]
fn failed_reads_say_why() {
    for force_proc_mem in [false, true] {
        let mut subject = Subject::start(&["threads", "0"]);
        let mut live =
            Live::open(subject.pid(), &OpenOptions { force_proc_mem, ..OpenOptions::default() }).expect("open");
        for stopped in [false, true] {
            if stopped {
                live.stop().expect("stop");
            }
            let error = live.read(Addr(16), &mut [0; 8]).expect_err("null page");
            assert_eq!((error.addr, error.len, error.why), (Addr(16), 8, ReadFault::Unmapped));
            for addr in [u64::MAX - 3, 1 << 63, u64::MAX] {
                assert_eq!(live.read_u64(Addr(addr)).map_err(|e| e.why), Err(ReadFault::Unmapped), "{addr:#x}");
            }
            let exe = live.modules().iter().find(|m| m.name() == "subject").expect("executable");
            // bss may be followed by the heap, but `.text` is preceded by nothing.
            let start = exe.base().0;
            assert!(live.read(Addr(start - 8), &mut [0; 16]).is_err());
            assert!(live.read(Addr(start), &mut [0; 16]).is_ok());
            assert!(live.read(Addr(start), &mut []).is_ok());
        }
        live.resume();
        subject.child.kill().expect("kill");
        subject.child.wait().expect("wait");
        assert_eq!(live.read_u64(Addr(subject.known.0)).map_err(|e| e.why), Err(ReadFault::Gone));
        assert!(matches!(live.stop(), Err(OpenError::NoSuchProcess { .. })));
    }
}

#[test]
fn no_process_is_read_longer_than_it_may_be_held() {
    for force_proc_mem in [false, true] {
        let mut subject = Subject::start(&["threads", "0"]);
        let max_pause = Duration::from_millis(400);
        let options = OpenOptions { force_proc_mem, max_pause, ..OpenOptions::default() };
        let mut live = Live::open(subject.pid(), &options).expect("open");
        live.stop().expect("stop");
        let known = live.read_vec(Addr(subject.known.0), subject.known.1).expect("known data");
        let exe = live.modules().iter().find(|m| m.name() == "subject").expect("executable").base();
        while !live.is_late() {
            std::thread::yield_now();
        }
        let late = loop {
            match live.read_ranges(&[(exe, 8)]).1[..] {
                [true] => std::thread::yield_now(),
                _ => break live.read(exe, &mut [0; 8]).expect_err("too late"),
            }
        };
        assert_eq!((late.addr, late.len, late.why), (exe, 8, ReadFault::Late));
        // What was read in time stays.
        assert_eq!(live.read_vec(Addr(subject.known.0), subject.known.1).as_ref(), Ok(&known));
        assert!(live.resume().is_some());
        // Nobody is held now.
        assert!(!live.is_late() && live.read(exe, &mut [0; 8]).is_ok());
        live.stop().expect("another stop has its own time");
        assert!(live.read(exe, &mut [0; 8]).is_ok());
        live.resume();
        subject.ask(b'p');
    }
}

#[test]
fn what_a_stop_has_copied_is_of_the_stop() {
    for force_proc_mem in [false, true] {
        let mut subject = Subject::start(&["threads", "1"]);
        let options = OpenOptions { force_proc_mem, ..OpenOptions::default() };
        let mut live = Live::open(subject.pid(), &options).expect("open");
        let symbol = live.modules().iter().find(|m| m.name() == "subject").and_then(|exe| exe.symbol("progress"));
        let progress = symbol.expect("the counter of the thread that runs").addr;
        let known = [(Addr(subject.known.0), 4096), (Addr(subject.known.0 + 8192), 8)];
        let mark = Addr(subject.waiters[0].mark_at);
        let look = |live: &Live| {
            live.prefetch(&[(mark, 8), (Addr(16), 8)]);
            let count = live.read_u64(progress).expect("the counter");
            assert_eq!(live.read_u64(mark), Ok(subject.waiters[0].mark));
            assert!(live.read_u64(Addr(16)).is_err());
            let (bytes, done) = live.read_ranges(&known);
            assert_eq!((&bytes[..4096], done), (&subject.known_bytes()[..4096], vec![true, true]));
            count
        };
        assert!(!live.has_plan());
        live.rehearse(look);
        // From the file behind /proc/PID/mem much cannot be read at once.
        assert_eq!(live.has_plan(), !force_proc_mem);
        live.stop().expect("stop");
        let pause = live.resume_with_copy();
        assert!(pause.is_some());
        let first = look(&live);
        while process_vm(subject.pid(), progress) == first {
            std::thread::yield_now();
        }
        assert!(force_proc_mem || look(&live) == first, "the copy changes");
        assert_eq!(live.end_copy(), !force_proc_mem);
        assert_ne!(look(&live), first, "it runs, and nothing is kept");
        if force_proc_mem {
            continue;
        }

        // What the looks before have not read is missing once.
        let constant = Addr(subject.constant & !4095);
        for is_copied in [false, true] {
            live.stop().expect("stop");
            live.resume_with_copy();
            look(&live);
            assert!(live.read_u64(constant).is_ok());
            assert_eq!(live.end_copy(), is_copied);
        }
        // A look that reads in the stop changes nothing about that.
        live.stop().expect("stop");
        look(&live);
        assert!(live.read_u64(Addr(subject.main & !4095)).is_ok());
        live.resume();
        live.stop().expect("stop");
        live.resume_with_copy();
        look(&live);
        assert!(live.read_u64(constant).is_ok());
        assert!(live.end_copy());
        // What is not to be noted is not.
        live.rehearse(|live| live.unplanned(|live| live.read_ranges(&known)));
        live.stop().expect("stop");
        live.resume_with_copy();
        live.read_ranges(&known);
        assert!(!live.end_copy());
        // What is too much for a stop is not copied, and not read to the end before it.
        live.rehearse(|live| {
            assert!(!live.is_late());
            live.read_ranges(&vec![known[0]; 10_000]);
            assert!(live.is_late());
        });
        assert!(!live.has_plan() && !live.needs_rehearsal() && !live.is_late());
        // It may be less next time.
        live.stop().expect("stop");
        look(&live);
        live.resume();
        assert!(live.needs_rehearsal());
        subject.ask(b'p');
    }
}

/// A word of a process, read by nothing of this crate.
fn process_vm(pid: i32, addr: Addr) -> u64 {
    let mut word = [0; 8];
    let remote = [RemoteIoVec { base: usize::try_from(addr.0).expect("an address"), len: word.len() }];
    let read = process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(&mut word)], &remote);
    assert_eq!(read, Ok(word.len()));
    u64::from_ne_bytes(word)
}

#[test]
fn what_there_was_no_time_for_is_read_while_all_threads_sleep() {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat starts");
    let (mut stdin, mut stdout) = (cat.stdin.take().expect("a pipe"), cat.stdout.take().expect("a pipe"));
    let mut answer = || {
        let mut byte = [0];
        stdin.write_all(b"x").expect("it reads");
        stdout.read_exact(&mut byte).expect("it writes");
        assert_eq!(&byte, b"x");
    };
    // It has executed cat, and reads.
    answer();
    let pid = i32::try_from(cat.id()).expect("a process id");
    let options = OpenOptions { max_pause: Duration::from_millis(400), ..OpenOptions::default() };
    let mut live = Live::open(pid, &options).expect("open");
    assert!(live.read_asleep(|_| ()).is_none(), "no stop has met it");
    // It is on its way back to sleep.
    await_asleep(pid, pid).expect("it sleeps");
    live.stop().expect("stop");
    let exe = live.modules().iter().find(|m| m.name() == "cat").expect("executable").base();
    assert!(live.read_asleep(|_| ()).is_none(), "it is held");
    live.resume();
    assert!(!live.was_cut_short());
    // A stop may have ended its call, which it begins anew.
    await_asleep(pid, pid).expect("it sleeps");
    live.stop().expect("stop");
    while !live.is_late() {
        std::thread::yield_now();
    }
    live.resume();
    assert!(live.was_cut_short());
    await_asleep(pid, pid).expect("it sleeps");
    assert_eq!(live.read_asleep(|live| live.read_u32(exe)), Some(Ok(u32::from_le_bytes(*b"\x7fELF"))));
    // It wakes, and sleeps again where it slept before.
    assert!(live.read_asleep(|_| answer()).is_none(), "it has run");
    await_asleep(pid, pid).expect("it sleeps");
    assert!(live.read_asleep(|_| ()).is_some());
    cat.kill().expect("kill");
    cat.wait().expect("wait");

    let busy = Subject::start(&["threads", "0"]);
    let mut live = open(busy.pid());
    live.stop().expect("stop");
    live.resume();
    assert!(live.read_asleep(|_| ()).is_none(), "a thread of it never sleeps");
}

#[test]
fn a_read_across_the_end_of_a_mapping_is_short() {
    let subject = Subject::start(&["threads", "0"]);
    let mut live = open(subject.pid());
    // The last mapped byte below a gap: the mapping before the vdso or the stack's end.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", subject.pid())).expect("maps");
    let stack = maps.lines().find(|l| l.ends_with("[stack]")).expect("stack");
    let end = u64::from_str_radix(stack.split(['-', ' ']).nth(1).expect("end"), 16).expect("hex");
    for stopped in [false, true] {
        if stopped {
            live.stop().expect("stop");
        }
        let error = live.read(Addr(end - 8), &mut [0; 24]).expect_err("beyond the stack");
        assert_eq!(error.why, ReadFault::Short { got: 8 });
    }
}

#[test]
fn while_stopped_there_is_no_progress_and_after_it_there_is() {
    let mut subject = Subject::start(&["threads", "3"]);
    let before = subject.ask(b'p');
    let mut live = open(subject.pid());
    for _ in 0..20 {
        live.stop().expect("stop");
        let exe = live.modules().iter().find(|m| m.name() == "subject").expect("executable");
        let progress = exe.symbol("progress").expect("symbol").addr;
        let file = OpenOptions { force_proc_mem: true, ..OpenOptions::default() };
        let first = live.read_u64(progress).expect("progress");
        // Past our own cache: a second, uncached look at the same memory.
        let second = Live::open(subject.pid(), &file).expect("open").read_u64(progress).expect("progress");
        assert_eq!(first, second);
        assert!(live.resume().is_some());
    }
    assert!(subject.ask(b'p') > before);
    live.stop().expect("stop");
    drop(live);
    subject.ask(b'p');
}

#[test]
fn prefetch_serves_reads_and_skips_what_is_not_there() {
    let subject = Subject::start(&["threads", "0"]);
    let mut live = open(subject.pid());
    live.prefetch(&[(Addr(subject.known.0), subject.known.1)]);
    live.stop().expect("stop");
    live.prefetch(&[(Addr(0), 8192), (Addr(subject.known.0), subject.known.1), (Addr(u64::MAX - 5), 64)]);
    assert_eq!(live.read_vec(Addr(subject.known.0), subject.known.1).as_deref(), Ok(&subject.known_bytes()[..]));
    assert_eq!(live.read_u64(Addr(0)).map_err(|e| e.why), Err(ReadFault::Unmapped));
}

#[test]
fn threads_that_come_and_go_are_stopped_all_the_same() {
    let mut subject = Subject::start(&["churn"]);
    let mut live = open(subject.pid());
    for round in 0..50 {
        live.stop().unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert!(live.threads().len() >= 4);
        for task in std::fs::read_dir(format!("/proc/{}/task", subject.pid())).expect("tasks") {
            let task = task.expect("entry");
            // Ended threads may linger in the listing until they are gone; no living one may run.
            let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
            let state = stat.rsplit(')').next().and_then(|s| s.trim().chars().next()).expect("state");
            assert!(matches!(state, 't' | 'Z' | 'X'), "round {round}: {:?} is in state {state}", task.file_name());
            let known = live.threads().iter().any(|t| Some(t.lwp.to_string().as_str()) == task.file_name().to_str());
            assert!(known || state != 't', "round {round}: {:?} is not in the list", task.file_name());
        }
        live.resume();
    }
    subject.ask(b'p');
}

#[test]
fn a_process_stopped_by_job_control_stays_stopped() {
    let mut subject = Subject::start(&["threads", "2"]);
    let pid = Pid::from_raw(subject.pid());
    kill(pid, Signal::SIGSTOP).expect("SIGSTOP");
    // waitpid with WUNTRACED returns when the stop has taken effect.
    nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).expect("stopped");
    for _ in 0..10 {
        let mut live = open(subject.pid());
        live.stop().expect("stop");
        assert_eq!(live.threads().len(), 4);
        drop(live);
        // The kernel wakes each thread to let it go back into the stop, so R is seen for a moment. If the stop is lost,
        // R stays, and the count of looks ends the test.
        let back = (0..1_000_000).any(|_| {
            std::thread::yield_now();
            state(subject.pid()) == 'T'
        });
        assert!(back, "state {}", state(subject.pid()));
    }
    kill(pid, Signal::SIGCONT).expect("SIGCONT");
    subject.ask(b'p');
}

#[test]
fn no_signal_is_lost_or_added() {
    use std::sync::atomic::{AtomicBool, Ordering};
    // Many threads: a stop catches a signal only between the first and the second step of stopping its thread. Each
    // step is made for all threads before the next.
    let mut subject = Subject::start(&["threads", "150"]);
    let mut live = open(subject.pid());
    // Real-time signals queue: each one sent must be counted.
    let (pid, signal) = (subject.pid(), nix::libc::SIGRTMIN() + 3);
    let done = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !done.load(Ordering::Relaxed) {
                let value = nix::libc::sigval { sival_ptr: std::ptr::null_mut() };
                // SAFETY: sends a signal that the subject handles to the subject. Fails when the queue is full.
                if unsafe { nix::libc::sigqueue(pid, signal, value) } == 0 {
                    sent += 1;
                }
            }
            sent
        });
        for _ in 0..150 {
            live.stop().expect("stop");
            live.resume();
        }
        done.store(true, Ordering::Relaxed);
        sender.join().expect("sender")
    });
    // Another thread of the subject may still be about to count its last one, and wait for a processor.
    let limit = Instant::now() + Duration::from_secs(30);
    let mut counted = subject.ask(b's');
    while counted < sent && Instant::now() < limit {
        counted = subject.ask(b's');
    }
    assert_eq!(counted, sent);
}

#[test]
fn a_main_thread_that_ended_does_not_hide_the_others() {
    let subject = Subject::start(&["early-exit", "2"]);
    let mut live = open(subject.pid());
    live.stop().expect("stop");
    assert_eq!(live.threads().len(), 3);
    assert_eq!(live.read_vec(Addr(subject.known.0), subject.known.1).as_deref(), Ok(&subject.known_bytes()[..]));
}

#[test]
fn a_thread_id_leads_to_its_process() {
    let subject = Subject::start(&["threads", "1"]);
    let live = open(subject.waiters[0].tid);
    assert_eq!(live.process().pid, Some(subject.pid()));
    assert!(live.issues().iter().any(|i| i.contains("thread of process")));
}

#[test]
fn what_cannot_be_opened_is_named() {
    let mut subject = Subject::start(&["threads", "0"]);
    let pid = subject.pid();
    let options = OpenOptions::default();
    assert!(matches!(Live::open(-1, &options), Err(OpenError::NoSuchProcess { pid: -1 })));
    assert!(matches!(Live::open(0, &options), Err(OpenError::NoSuchProcess { pid: 0 })));
    match std::fs::read_to_string("/proc/2/comm") {
        Ok(name) if name.trim() == "kthreadd" => {
            assert!(matches!(Live::open(2, &options), Err(OpenError::KernelThread { pid: 2 })));
        }
        _ => support::skip("no kernel threads are visible in this PID namespace"),
    }
    let elsewhere = tempfile::tempdir().expect("directory");
    let strange = OpenOptions { proc_root: elsewhere.path().to_owned(), ..OpenOptions::default() };
    assert!(matches!(Live::open(pid, &strange), Err(OpenError::NoProcfs { .. })));
    // A procfs that shows another process under this id.
    let shown = elsewhere.path().join(pid.to_string());
    std::fs::create_dir(&shown).expect("directory");
    std::fs::copy(format!("/proc/{pid}/status"), shown.join("status")).expect("copy");
    std::fs::copy("/proc/self/stat", shown.join("stat")).expect("copy");
    assert!(matches!(Live::open(pid, &strange), Err(OpenError::OtherNamespace { .. })));
    // A zombie: killed, and not waited for.
    subject.child.kill().expect("kill");
    let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).expect("tasks").count();
    while state(pid) != 'Z' || tasks() > 1 {
        std::thread::yield_now();
    }
    assert!(matches!(Live::open(pid, &options), Err(OpenError::Zombie { .. })));
}

#[test]
fn another_tracer_is_named() {
    if !support::have("gdb") {
        return support::skip("gdb is not installed");
    }
    let subject = Subject::start(&["threads", "1"]);
    let mut gdb = std::process::Command::new("gdb")
        .args(["-q", "-nx", "-p", &subject.pid().to_string(), "-ex", "echo attached\\n"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("gdb");
    let mut out = std::io::BufReader::new(gdb.stdout.take().expect("stdout"));
    let mut line = String::new();
    while !line.contains("attached\n") {
        line.clear();
        assert!(out.read_line(&mut line).expect("gdb's output") > 0, "gdb ended");
    }
    let error = open(subject.pid()).stop().expect_err("already traced");
    assert!(
        matches!(&error, OpenError::OtherTracer { tracer, name, .. } if *tracer == gdb.id() as i32 && name == "gdb"),
        "{error}"
    );
    assert!(error.remedy().is_some_and(|r| r.contains("detach") && !r.contains("sudo")));
    drop(gdb.stdin.take());
    gdb.wait().expect("gdb ends at the end of its input");
}

/// What was read of the files of a process says nothing of the program it executes afterwards.
#[test]
fn a_process_that_executed_another_program_is_not_taken_for_the_same() {
    let mut shell = std::process::Command::new("sh")
        .args(["-c", "echo ready; read line; exec cat"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(shell.stdout.take().expect("stdout"));
    out.read_line(&mut line).expect("its output");
    let pid = i32::try_from(shell.id()).expect("a process id");
    let mut live = open(pid);
    live.stop().expect("stop");
    live.resume();
    // It stays open, and `cat` reads it.
    let mut stdin = shell.stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, b"\n").expect("a line");
    while std::fs::read_to_string(format!("/proc/{pid}/comm")).expect("comm") != "cat\n" {
        std::thread::yield_now();
    }
    let error = live.stop().expect_err("another program");
    assert!(matches!(error, OpenError::Executed { pid: own } if own == pid), "{error}");
    assert!(error.remedy().is_some());
    open(pid).stop().expect("the program that it executes now");
    drop(stdin);
    shell.wait().expect("it ends at the end of its input");
}

#[test]
fn that_no_procfs_is_mounted_is_said() {
    let options = OpenOptions { proc_root: "/nowhere".into(), ..OpenOptions::default() };
    let error = Live::open(1, &options).expect_err("no procfs");
    assert!(matches!(error, OpenError::NoProcfs { .. }) && error.remedy().is_some(), "{error}");
}

#[test]
fn a_deleted_executable_is_still_found() {
    let path = support::scratch().join("doomed");
    support::copy_program(support::subject(), &path);
    let subject = Subject::spawn(std::process::Command::new(&path).args(["threads", "0"]));
    std::fs::remove_file(&path).expect("delete");
    std::fs::write(&path, "something else").expect("replace");
    let live = open(subject.pid());
    let exe = live.modules().iter().find(|m| m.name() == "doomed").expect("executable");
    assert_eq!(exe.symbol("known").map(|s| s.addr), Some(Addr(subject.known.0)), "{:?}", exe.file);
}

/// The kernel lets everything go when the holder is killed.
#[test]
fn a_killed_holder_leaves_the_process_running() {
    let mut subject = Subject::start(&["threads", "6"]);
    for round in 0..5 {
        let mut holder = support::holder(&[&subject.pid().to_string()]).spawn().expect("start the holder");
        let mut line = String::new();
        std::io::BufReader::new(holder.stdout.take().expect("stdout")).read_line(&mut line).expect("answer");
        assert!(line.starts_with("holding 8 threads"), "round {round}: {line}");
        for task in std::fs::read_dir(format!("/proc/{}/task", subject.pid())).expect("tasks") {
            let stat = std::fs::read_to_string(task.expect("entry").path().join("stat")).expect("stat");
            assert!(stat.rsplit(')').next().is_some_and(|s| s.trim().starts_with('t')), "not held: {stat}");
        }
        holder.kill().expect("kill -9");
        holder.wait().expect("wait");
        // The thread that answers and the one that counts run again.
        subject.ask(b'p');
    }
}

/// The child of this process ends at some moment of the stop, and its exit status is not lost.
#[test]
fn the_end_of_a_child_is_left_for_its_parent_to_collect() {
    let mut ended_while_stopped = 0;
    for round in 0..400 {
        let mut child = Command::new("sh")
            .args(["-c", "echo; read line; exit 7"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut ready = [0];
        child.stdout.take().expect("a pipe").read_exact(&mut ready).expect("it runs");
        let mut live = open(child.id() as i32);
        drop(child.stdin.take());
        // From round to round a little more of its end has passed.
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_micros(2 * round) {}
        ended_while_stopped += usize::from(live.stop().is_err());
        drop(live);
        let status = child.wait().unwrap_or_else(|error| panic!("round {round}: no status of the child: {error}"));
        assert_eq!(status.code(), Some(7), "round {round}");
    }
    // Else nothing was tried.
    assert!(ended_while_stopped > 0);
}

/// A thread in uninterruptible sleep cannot be stopped, and cannot be detached from either. The others are read without
/// it, and nothing may stay behind that stops it once it wakes up.
#[test]
fn a_thread_that_cannot_stop_is_left_alone() {
    let mut subject = Subject::start(&["stuck"]);
    let (thread, child) = subject.stuck.expect("stuck thread");
    let mut live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    live.stop().expect("stop");
    for one in live.threads() {
        let registers = one.registers.as_ref().expect("registers");
        let call = registers.syscall.and_then(|call| live.arch().machine.call_name(call.number));
        assert_eq!((one.lwp == thread, registers.known == Registers::ALL), (call == Some("vfork"), one.lwp != thread));
    }
    assert!(live.threads().iter().any(|t| t.lwp == thread) && live.threads().len() > 1);
    live.resume().expect("it was held");
    subject.ask(b'p');
    // The child that the thread waits for ends; the thread goes on, and says so.
    kill(Pid::from_raw(child), Signal::SIGKILL).expect("kill");
    assert_eq!(subject.line(), "unstuck\n");
    live.stop().expect("stop");
    assert!(live.threads().iter().all(|t| t.registers.is_ok()));
    live.resume();
    subject.ask(b'p');
}

/// Its descriptors are gone with it, but for those that look at another thread.
#[test]
fn descriptors_of_a_process_whose_first_thread_has_ended() {
    let subject = Subject::start(&["early-exit"]);
    let live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    let surroundings = live.surroundings().expect("a live process");
    let input = surroundings.descriptor(0, &|| true).expect("its standard input");
    let holders = surroundings.holders(&[input.link.clone()].into());
    let of_input = &holders.by_link[&input.link];
    assert!(of_input.iter().any(|holder| holder.own && holder.reads && holder.descriptor == 0), "{of_input:?}");
    assert!(of_input.iter().all(|holder| holder.pid != std::process::id().cast_signed()), "{of_input:?}");
}

/// A thread of the process supplies a page when it is read, and is stopped as all others are. The process is let go in time, and what
/// comes after that is not of the moment of the stop.
#[test]
fn a_page_that_the_process_itself_has_to_supply() {
    let mut subject = Subject::start(&["supplied"]);
    if subject.word == 0 {
        return support::skip("this kernel does not let programs supply pages (vm.unprivileged_userfaultfd)");
    }
    let options = OpenOptions { max_pause: Duration::from_millis(200), ..OpenOptions::default() };
    let mut live = Live::open(subject.pid(), &options).expect("open");
    live.stop().expect("stop");
    assert_eq!(live.read_cstr(Addr(subject.word), 20).map_err(|error| error.why), Err(ReadFault::Late));
    subject.ask(b'p');
    let pause = live.resume().expect("it was held");
    assert!(pause >= options.max_pause, "{pause:?}");
    assert_eq!(live.read_cstr(Addr(subject.word), 20).as_deref(), Ok("supplied"));
}

#[test]
fn a_denied_access_names_the_user() {
    use std::os::unix::process::CommandExt;
    // SAFETY: has no preconditions.
    if unsafe { nix::libc::geteuid() } != 0 {
        return support::skip("only root can start a program as somebody else");
    }
    let subject = Subject::start(&["threads", "0"]);
    // Where somebody else may read it.
    let public = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .expect("directory");
    let program = public.path().join("hold");
    support::copy_program(std::path::Path::new(support::holder(&[]).get_program()), &program);
    let mut command = std::process::Command::new(&program);
    let out = match command.arg(subject.pid().to_string()).uid(65534).gid(65534).output() {
        Ok(out) => String::from_utf8_lossy(&out.stdout).into_owned(),
        Err(e) => return support::skip(&format!("the program cannot be started as another user here: {e}")),
    };
    assert!(out.contains("it runs as uid 0, this program as uid 65534"), "{out}");
    assert!(out.contains("remedy: run this program as uid 0"), "{out}");
}

/// Confines a thread (0: the calling one) to the given processors.
fn confine(tid: i32, cpus: &[usize]) -> std::io::Result<()> {
    // SAFETY: a set of processors is plain bits, for which all zeros is a value; CPU_SET and the system call stay
    // within it, as its size says.
    let done = unsafe {
        let mut set: nix::libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| nix::libc::CPU_SET(*cpu, &mut set));
        nix::libc::sched_setaffinity(tid, size_of_val(&set), &set)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The processors this test may run on, as the kernel says.
fn own_cpus() -> Vec<usize> {
    // SAFETY: as in `confine`.
    unsafe {
        let mut set: nix::libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(nix::libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        (0..nix::libc::CPU_SETSIZE as usize).filter(|cpu| nix::libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

#[test]
fn processors_are_those_any_thread_may_use() {
    use std::os::unix::process::CommandExt;
    let cpus = own_cpus();
    let count = |subject: &Subject| open(subject.pid()).process().cpus.clone().map(|c| c.allowed);
    let subject = Subject::start(&["threads", "2"]);
    assert_eq!(count(&subject), Some(cpus.len() as u32));

    let one = cpus[..1].to_vec();
    let mut command = std::process::Command::new(support::subject());
    // SAFETY: only makes a system call between fork and exec.
    unsafe { command.args(["threads", "2"]).pre_exec(move || confine(0, &one)) };
    let subject = Subject::spawn(&mut command);
    assert_eq!(count(&subject), Some(1));
    let Some(second) = cpus.get(1) else { return support::skip("there is only one processor") };
    confine(subject.waiters[1].tid, &[*second]).expect("move a thread");
    assert_eq!(count(&subject), Some(2));
    let of = |tid| open(subject.pid()).process().cpus.as_ref().and_then(|c| Some(c.of_thread(tid)?.to_vec()));
    assert_eq!(of(subject.pid()), Some(vec![cpus[0] as u32]));
    assert_eq!(of(subject.waiters[1].tid), Some(vec![*second as u32]));
    assert_eq!(of(0), None);
}

#[test]
fn the_environment_is_the_one_it_was_started_with() {
    let mut command = std::process::Command::new(support::subject());
    command.args(["threads", "1"]).env_clear().env("FIRST", "1").env("EMPTY", "").env("LAST", "a=b c");
    let subject = Subject::spawn(&mut command);
    let live = open(subject.pid());
    let environment = &live.process().environment;
    for (name, value) in [("FIRST", Some("1")), ("EMPTY", Some("")), ("LAST", Some("a=b c")), ("PATH", None)] {
        assert_eq!(environment.get(name), Ok(value), "{name}");
    }
}
