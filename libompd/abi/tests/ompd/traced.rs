//! A process under ptrace with breakpoints, all of whose threads stand still at each hit.

use std::collections::BTreeMap;

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use ompd_process::{Live, OpenOptions, Registers, Target, Thread};
use test_programs::ChangedTarget;

/// The instruction `int3`.
const BREAK: u8 = 0xcc;

/// A process of which the calling thread is the tracer.
pub struct Traced {
    pid: i32,
    /// Threads that stand still, with the signal they get when they go on; the others run.
    threads: BTreeMap<i32, Option<Option<Signal>>>,
    /// Original bytes by address.
    breakpoints: BTreeMap<u64, u8>,
    /// Threads that were seen to begin.
    pub begun: usize,
    /// A thread that has made another one stands still until the next hit, before it can say so to anybody.
    pub holds_makers: bool,
    maker: Option<i32>,
}

/// What happened.
pub enum Happened {
    /// A thread is before the instruction with the breakpoint.
    Hit(i32, u64),
    /// The process is over, with this status.
    Exited(i32),
}

fn flags() -> Option<WaitPidFlag> {
    // Children of other threads of this test are waited for elsewhere.
    Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)
}

impl Traced {
    /// A process with one thread so far.
    pub fn new(pid: i32) -> Traced {
        let main = Pid::from_raw(pid);
        let options = ptrace::Options::PTRACE_O_TRACECLONE | ptrace::Options::PTRACE_O_EXITKILL;
        ptrace::seize(main, options).expect("seize");
        ptrace::interrupt(main).expect("interrupt");
        let status = waitpid(main, flags()).expect("it stops");
        assert!(matches!(status, WaitStatus::PtraceEvent(..)), "{status:?}");
        Traced {
            pid,
            threads: BTreeMap::from([(pid, Some(None))]),
            breakpoints: BTreeMap::new(),
            begun: 0,
            holds_makers: false,
            maker: None,
        }
    }

    fn byte(&self, addr: u64, byte: u8) -> u8 {
        let pid = Pid::from_raw(self.pid);
        let at = (addr & !7) as ptrace::AddressType;
        let shift = 8 * (addr & 7);
        // Any thread that stands still will do, and the first may have ended.
        let still = self.threads.iter().find(|(_, still)| still.is_some()).map_or(pid, |(tid, _)| Pid::from_raw(*tid));
        let word = ptrace::read(still, at).expect("peek") as u64;
        let new = (word & !(0xff << shift)) | (u64::from(byte) << shift);
        ptrace::write(still, at, new as i64).expect("poke");
        (word >> shift) as u8
    }

    pub fn set_breakpoint(&mut self, addr: u64) {
        if !self.breakpoints.contains_key(&addr) {
            let original = self.byte(addr, BREAK);
            self.breakpoints.insert(addr, original);
        }
    }

    /// Lets everything run until a breakpoint is hit or the process is over. Then all threads stand still.
    pub fn run(&mut self) -> Happened {
        loop {
            let still: Vec<i32> =
                self.threads.iter().filter(|(_, still)| still.is_some()).map(|(tid, _)| *tid).collect();
            for tid in still.into_iter().filter(|tid| Some(*tid) != self.maker) {
                let signal = self.threads.insert(tid, None).flatten().flatten();
                match ptrace::cont(Pid::from_raw(tid), signal) {
                    Ok(()) | Err(Errno::ESRCH) => {}
                    Err(why) => panic!("cont {tid}: {why}"),
                }
            }
            let status = waitpid(None, flags()).expect("something happens");
            if let Some(over) = self.note(&status) {
                return Happened::Exited(over);
            }
            let Some((tid, addr)) = self.hit(&status) else { continue };
            self.stop();
            self.maker = None;
            return Happened::Hit(tid, addr);
        }
    }

    /// The breakpoint that a thread has hit; the thread is put before it again.
    fn hit(&mut self, status: &WaitStatus) -> Option<(i32, u64)> {
        let WaitStatus::Stopped(tid, Signal::SIGTRAP) = status else { return None };
        let mut registers = ptrace::getregs(*tid).expect("registers");
        let addr = registers.rip.wrapping_sub(1);
        self.breakpoints.get(&addr)?;
        registers.rip = addr;
        ptrace::setregs(*tid, registers).expect("registers");
        Some((tid.as_raw(), addr))
    }

    /// Files who stands still, began or ended. The status of the process once it is over.
    fn note(&mut self, status: &WaitStatus) -> Option<i32> {
        match status {
            WaitStatus::Stopped(tid, signal) => {
                let signal = (*signal != Signal::SIGTRAP).then_some(*signal);
                self.threads.insert(tid.as_raw(), Some(signal));
            }
            WaitStatus::PtraceEvent(tid, _, event) => {
                if self.holds_makers && *event == nix::libc::PTRACE_EVENT_CLONE {
                    self.maker = Some(tid.as_raw());
                }
                self.begun += usize::from(!self.threads.contains_key(&tid.as_raw()));
                self.threads.insert(tid.as_raw(), Some(None));
            }
            WaitStatus::Exited(tid, status) => {
                self.threads.remove(&tid.as_raw());
                return (tid.as_raw() == self.pid).then_some(*status);
            }
            WaitStatus::Signaled(tid, signal, _) => panic!("{tid} was killed by {signal}"),
            other => panic!("{other:?}"),
        }
        None
    }

    /// Makes all threads stand still.
    fn stop(&mut self) {
        while let Some(tid) = self.threads.iter().find(|(_, still)| still.is_none()).map(|(tid, _)| *tid) {
            if ptrace::interrupt(Pid::from_raw(tid)) == Err(Errno::ESRCH) {
                self.threads.remove(&tid);
                continue;
            }
            match waitpid(Pid::from_raw(tid), flags()) {
                Ok(status) => {
                    assert_eq!(self.note(&status), None, "the process ends at a breakpoint");
                    // It hits it again once it goes on.
                    self.hit(&status);
                }
                Err(_) => {
                    self.threads.remove(&tid);
                }
            }
        }
    }

    /// Takes a thread over the breakpoint that it is at; the others stand still.
    pub fn step_over(&mut self, tid: i32, addr: u64) {
        let original = self.breakpoints[&addr];
        self.byte(addr, original);
        let thread = Pid::from_raw(tid);
        ptrace::step(thread, None).expect("step");
        let status = waitpid(thread, flags()).expect("it steps");
        assert_eq!(self.note(&status), None);
        self.byte(addr, BREAK);
    }

    /// The process as it stands.
    pub fn look(&self) -> ChangedTarget<Box<Live>> {
        let live = Live::open(self.pid, &OpenOptions::default()).expect("open");
        let threads = self.threads.keys().map(|tid| {
            let regs = ptrace::getregs(Pid::from_raw(*tid)).expect("registers");
            let words = [
                regs.r15,
                regs.r14,
                regs.r13,
                regs.r12,
                regs.rbp,
                regs.rbx,
                regs.r11,
                regs.r10,
                regs.r9,
                regs.r8,
                regs.rax,
                regs.rcx,
                regs.rdx,
                regs.rsi,
                regs.rdi,
                regs.orig_rax,
                regs.rip,
                regs.cs,
                regs.eflags,
                regs.rsp,
                regs.ss,
                regs.fs_base,
                regs.gs_base,
                regs.ds,
                regs.es,
                regs.fs,
                regs.gs,
            ];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let registers = Registers::of_kernel(live.arch(), &bytes).ok_or_else(|| "not decoded".to_owned());
            let pointer = registers.as_ref().ok().and_then(|registers| registers.thread_pointer);
            Thread { lwp: *tid, name: None, registers, pointer, signal: 0, blocked_signals: None }
        });
        let threads = threads.collect();
        ChangedTarget::new(Box::new(live)).with_threads(threads)
    }
}
