//! Targets that are made up, and real ones of which something is changed.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use ompd_process::{
    Addr, Arch, GENERAL, Module, ProcessInfo, ReadError, ReadFault, Registers, Target, TargetKind, Thread, live,
};

/// A target that is made up: it has what is put into it.
#[derive(Debug, Clone)]
pub struct FakeTarget {
    /// What it claims to be.
    pub kind: TargetKind,
    /// Its machine.
    pub arch: Arch,
    /// Its images. Their bytes are in its memory only if they are put there.
    pub modules: Vec<Module>,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Ranges of its memory: where each begins, and its bytes. A read lies in one of them, or fails.
    pub memory: Vec<(Addr, Vec<u8>)>,
    /// The process.
    pub process: ProcessInfo,
}

impl FakeTarget {
    /// A target of this kind and machine with nothing in it.
    pub fn new(kind: TargetKind, arch: Arch) -> FakeTarget {
        let (modules, threads, memory) = (Vec::new(), Vec::new(), Vec::new());
        FakeTarget { kind, arch, modules, threads, memory, process: ProcessInfo::default() }
    }
}

impl Target for FakeTarget {
    fn kind(&self) -> TargetKind {
        self.kind
    }

    fn arch(&self) -> Arch {
        self.arch
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let found = self.memory.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(addr.0.checked_sub(start.0)?).ok()?;
            bytes.get(from..from.checked_add(buf.len())?)
        });
        let unmapped = ReadError { addr, len: buf.len() as u64, why: ReadFault::Unmapped };
        buf.copy_from_slice(found.ok_or(unmapped)?);
        Ok(())
    }

    fn is_shared(&self, _: Addr) -> Option<bool> {
        Some(false)
    }

    fn maps(&self, _: &str) -> bool {
        false
    }

    fn surroundings(&self) -> Option<live::Surroundings> {
        None
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn process(&self) -> &ProcessInfo {
        &self.process
    }

    fn issues(&self) -> &[String] {
        &[]
    }
}

/// A thread that executes the instruction at `pc`, with zeros in all other registers but the stack pointer.
pub fn thread_at(lwp: i32, pc: Addr, sp: Addr) -> Thread {
    let registers = Registers {
        pc,
        sp,
        fp: Addr::NULL,
        thread_pointer: None,
        syscall: None,
        returned: None,
        unnumbered: false,
        general: [0; GENERAL],
        known: Registers::ALL,
    };
    Thread { lwp, name: None, registers: Ok(registers), pointer: None, signal: 0, blocked_signals: None }
}

/// Changes bytes that were read at an address.
type Change = Box<dyn Fn(Addr, &mut [u8])>;

/// Another target, of which something is changed: memory, threads, reads that fail. It counts its reads.
pub struct ChangedTarget<D> {
    inner: D,
    changes: Vec<Change>,
    failing: Option<u64>,
    limit: Option<u64>,
    asked: Cell<u64>,
    reads: Cell<u64>,
    threads: Option<Vec<Thread>>,
    pthread_distance: Option<Option<u64>>,
    shared: Vec<(Addr, Option<bool>)>,
}

impl<D> fmt::Debug for ChangedTarget<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangedTarget").field("failing", &self.failing).field("reads", &self.reads).finish()
    }
}

impl<D> ChangedTarget<D>
where
    D: Deref,
    D::Target: Target,
{
    /// A target with nothing changed yet, of a reference or a box.
    pub fn new(inner: D) -> ChangedTarget<D> {
        let (changes, reads) = (Vec::new(), Cell::new(0));
        ChangedTarget {
            inner,
            changes,
            failing: None,
            limit: None,
            asked: Cell::new(0),
            reads,
            threads: None,
            pthread_distance: None,
            shared: Vec::new(),
        }
    }

    /// Other bytes at an address.
    #[must_use]
    pub fn with_bytes(self, at: Addr, bytes: &[u8]) -> Self {
        let bytes = bytes.to_vec();
        self.with_change(move |addr, buf| {
            for (byte, place) in buf.iter_mut().zip(addr.0..) {
                let offset = place.checked_sub(at.0).and_then(|offset| usize::try_from(offset).ok());
                if let Some(other) = offset.and_then(|offset| bytes.get(offset)) {
                    *byte = *other;
                }
            }
        })
    }

    /// Bytes that are changed after each read.
    #[must_use]
    pub fn with_change(mut self, change: impl Fn(Addr, &mut [u8]) + 'static) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// The n-th read fails, counted from 0.
    #[must_use]
    pub fn with_failing_read(mut self, n: u64) -> Self {
        self.failing = Some(n);
        self
    }

    /// It is late from the n-th question on, counted from 0: see [`Target::is_late`].
    #[must_use]
    pub fn with_limit(mut self, n: u64) -> Self {
        self.limit = Some(n);
        self
    }

    /// Other threads.
    #[must_use]
    pub fn with_threads(mut self, threads: Vec<Thread>) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Another answer to [`Target::pthread_distance`].
    #[must_use]
    pub fn with_pthread_distance(mut self, distance: Option<u64>) -> Self {
        self.pthread_distance = Some(distance);
        self
    }

    /// Another answer to [`Target::is_shared`] for one address.
    #[must_use]
    pub fn with_shared(mut self, addr: Addr, shared: Option<bool>) -> Self {
        self.shared.push((addr, shared));
        self
    }

    /// How often it was asked whether it is late.
    pub fn asked(&self) -> u64 {
        self.asked.get()
    }

    /// How many reads there were.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }
}

impl<D> ompd_process::Overlay for ChangedTarget<D>
where
    D: Deref,
    D::Target: Target,
{
    type Below = D::Target;

    fn below(&self) -> &D::Target {
        &self.inner
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let n = self.reads.replace(self.reads.get() + 1);
        if self.failing == Some(n) {
            return Err(ReadError { addr, len: buf.len() as u64, why: ReadFault::NotInCore });
        }
        self.inner.read(addr, buf)?;
        self.changes.iter().for_each(|change| change(addr, buf));
        Ok(())
    }

    fn is_late(&self) -> bool {
        let n = self.asked.get();
        self.asked.set(n + 1);
        self.limit.is_some_and(|limit| n >= limit)
    }

    fn is_shared(&self, addr: Addr) -> Option<bool> {
        let changed = self.shared.iter().find(|(at, _)| *at == addr);
        changed.map_or_else(|| self.inner.is_shared(addr), |(_, shared)| *shared)
    }

    fn threads(&self) -> &[Thread] {
        self.threads.as_deref().unwrap_or_else(|| self.inner.threads())
    }

    fn pthread_distance(&self) -> Option<u64> {
        self.pthread_distance.unwrap_or_else(|| self.inner.pthread_distance())
    }
}

/// `struct user_regs_struct` of Linux on x86-64, as debuggers hand it over: what is not known is 0.
pub fn user_regs(registers: &Registers) -> Vec<u8> {
    let mut words = [0; 27];
    // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi, by their numbers in DWARF.
    let general = [15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5].map(|number| registers.general[number]);
    words[..15].copy_from_slice(&general);
    // orig_rax, rip, rsp, fs_base
    words[15] = registers.syscall.map_or(u64::MAX, |call| call.number);
    (words[16], words[19], words[21]) = (registers.pc.0, registers.sp.0, registers.thread_pointer.map_or(0, |p| p.0));
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
