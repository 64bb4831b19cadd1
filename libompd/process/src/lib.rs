//! The process under inspection, and nothing about OpenMP.
//!
//! A [`Target`] answers five questions:
//!
//! - what machine it is ([`Arch`]);
//! - which bytes lie at an address;
//! - which modules (executable and shared libraries) are mapped where;
//! - which threads exist, with which registers;
//! - which process it is.
//!
//! Three drivers implement it: [`live`] for a running process, [`core`] for a core file, [`debugger`] for what a
//! debugger holds. [`listed`] is a process of which nothing but the names of its files is left.
//!
//! Addresses of the target are [`Addr`], never pointers or `usize`: a 32-bit or big-endian core opens on any host.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub mod arch;
pub mod core;
pub mod debugger;
pub mod elf;
mod environment;
pub mod error;
mod glibc;
mod image;
pub mod jit;
pub mod listed;
pub mod live;
pub mod machine;
mod malloc;
pub mod memory;
pub mod module;
pub mod moment;
pub mod options;
mod overlay;
pub mod programs;
mod registers;
mod source;
mod symbol;
pub mod thread;

pub use crate::core::Core;
pub use arch::{Arch, ByteOrder};
pub use debugger::{Debugged, DebuggedError, Debugger};
pub use elf::{ElfFile, Reloc};
pub use environment::Environment;
pub use error::{DenialCause, ElfError, OpenError};
pub use jit::JitObjects;
pub use listed::{Listed, ListedFile};
pub use live::Live;
pub use machine::Machine;
pub use malloc::{has_malloc_of_glibc, malloc_block_end};
pub use memory::{Addr, ReadError, ReadFault};
pub use module::{Module, NeededBy, needed_by};
pub use options::{OpenOptions, Pause};
pub use overlay::Overlay;
pub use source::{FilePart, MAX_FILE};
pub use symbol::{BuildId, Symbol, SymbolOrigin};
pub use thread::{GENERAL, NativeThread, Registers, Syscall, Thread};

/// What kind of source the bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A running process, read while its threads are stopped.
    Live,
    /// A core file.
    Core,
    /// Whatever a debugger holds and is asked about.
    Debugged,
}

/// Facts about the process as a whole.
#[derive(Debug, Clone, Default)]
pub struct ProcessInfo {
    /// Process id, where the source records it.
    pub pid: Option<i32>,
    /// Name of the executable as the target saw it (a path in the target's mount namespace).
    pub exe: Option<String>,
    /// Command line, arguments joined by spaces, as far as recorded.
    pub command: Option<String>,
    /// The signal that ended the process (cores of crashes only).
    pub signal: Option<i32>,
    /// Another process or the terminal sent that signal: the program did nothing wrong, somebody wanted it to end, and a core of it.
    pub signal_sent: bool,
    /// It is stopped by job control (`SIGSTOP`, Ctrl-Z, a shell): nothing in it moves until it gets `SIGCONT`. Never said
    /// of cores.
    pub stopped: bool,
    /// Its control group is frozen, as of opening it: nothing in it moves until the group is thawed. Live processes only.
    pub frozen: bool,
    /// Another process traces it and has stopped all its threads, as debuggers do: nothing in it moves until that one lets it. Live
    /// processes only.
    pub held_by: Option<Holder>,
    /// Signals it has handlers for, as of the last stop: bit N-1 for signal N (`SigCgt`, proc_pid_status(5)). Live processes
    /// only: a core does not record them.
    pub handled_signals: Option<u64>,
    /// The processors it may use, as of opening it. Live processes only: a core does not record them.
    pub cpus: Option<Cpus>,
    /// Where the stack began that the process was started with, that of its first thread: its frames lie below. Live processes
    /// only.
    pub main_stack: Option<Addr>,
    /// The environment it was started with.
    pub environment: Environment,
    /// If it is in a PID namespace within that of the reader: the kernel thread ids of its threads by their ids there, as of opening it
    /// (pid_namespaces(7)). Its memory has the latter. Live processes only.
    pub inner_ids: Option<BTreeMap<i32, i32>>,
}

impl ProcessInfo {
    /// The kernel thread id of the thread that has this id in the memory of the process. `None` if it is not known.
    pub fn thread_of_id(&self, id: i32) -> Option<i32> {
        match &self.inner_ids {
            Some(ids) => ids.get(&id).copied(),
            None => Some(id),
        }
    }
}

/// A process that traces another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: i32,
    /// Its name (`comm`, raw text: escape before printing).
    pub name: String,
}

/// The processors a process may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Cpus {
    /// How many processors at least one thread of the process may run on, of those that are online
    /// (sched_setaffinity(2), cpuset(7)).
    pub allowed: u32,
    /// The processor time its control group may use, in processors (2.5: two and a half). It is the smallest limit of
    /// the group and the groups that contain it. `None`: there is no limit, or none that could be read.
    pub quota: Option<f64>,
    /// Of each thread by kernel thread id, in order: the processors it may run on by number, of those that are online.
    pub of_threads: Vec<(i32, Arc<[u32]>)>,
}

impl Cpus {
    /// The processors that the thread `lwp` may run on, in order.
    pub fn of_thread(&self, lwp: i32) -> Option<&[u32]> {
        let at = self.of_threads.binary_search_by_key(&lwp, |(own, _)| *own).ok()?;
        self.of_threads.get(at).map(|(_, cpus)| &**cpus)
    }
}

/// A process that can be read: stopped, or dead in a core file.
pub trait Target {
    /// Where the bytes come from.
    fn kind(&self) -> TargetKind;

    /// Machine, pointer width and byte order of the target (not of the host).
    fn arch(&self) -> Arch;

    /// Fills `buf` from the target's address space at `addr`, wholly or not at all.
    ///
    /// # Errors
    /// [`ReadError`] with the first address that could not be read and why. `buf` is then unspecified.
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError>;

    /// Announces reads to come, as `(address, length in bytes)`. The hint lets a driver fetch them together where each
    /// read costs a system call. What cannot be read is passed over; reading it later says why.
    fn prefetch(&self, ranges: &[(Addr, u64)]) {
        let _ = ranges;
    }

    /// Reads `ranges`, as `(address, length in bytes)`, one behind the other into one buffer. Returns for each range
    /// whether it was read; the bytes of the others are unspecified. Large amounts are best read like this: nothing is
    /// copied twice.
    ///
    /// A live process is asked each time, without regard to what was read of it before.
    fn read_ranges(&self, ranges: &[(Addr, u64)]) -> (Vec<u8>, Vec<bool>) {
        let mut bytes = Vec::new();
        let done = self.read_ranges_into(ranges, &mut bytes);
        (bytes, done)
    }

    /// As [`Target::read_ranges`], into a buffer that is used again: `bytes` gets the length of all ranges together, whatever
    /// was in it. A new buffer for each of thousands of reads costs as much as the reads.
    fn read_ranges_into(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        memory::read_each(ranges, bytes, |addr, buf| self.read(addr, buf).is_ok())
    }

    /// The mapping that contains `addr`, in target addresses; for a live process as of opening it. `None` if there is none,
    /// or the driver does not know.
    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        let _ = addr;
        None
    }

    /// The parts of `range` with pages that may be in use, in order (docs/internals/stops.md, "Stacks"). It is all of `range` but for
    /// private memory of a live process.
    fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        vec![range]
    }

    /// Whether walks that grow with the program's data, such as its tasks and locks, should end where they are.
    /// Otherwise a process would be held longer than allowed ([`OpenOptions::max_pause`]). What is left out is then
    /// reported.
    fn is_late(&self) -> bool {
        false
    }

    /// Whether other processes may write at `addr`, as into memory mapped with `MAP_SHARED` (mmap(2)). For a live process as
    /// of opening it. `None`: the source does not say. A core lists mapped files, and not how each is mapped.
    fn is_shared(&self, addr: Addr) -> Option<bool>;

    /// Whether a file of this path is mapped, for instance the memory of a kernel object (`anon_inode:[io_uring]`). For a live
    /// process as of opening it or of the last stop.
    fn maps(&self, path: &str) -> bool;

    /// What procfs shows of descriptors, children and other processes, to be asked once the target runs again; only running processes
    /// have it.
    fn surroundings(&self) -> Option<live::Surroundings>;

    /// ELF images mapped into the target, in address order.
    fn modules(&self) -> &[Module];

    /// Threads with their registers as of the stop. Empty for a live process that has not been stopped yet.
    fn threads(&self) -> &[Thread];

    /// How many bytes the thread pointer lies above what `pthread_self` returns in the thread.
    ///
    /// It is 0 on x86-64. On aarch64 it is the size of glibc's descriptor of a thread, which lies below the thread
    /// pointer (`TLS_DTV_AT_TP`, sysdeps/aarch64/nptl/tls.h). For debuggers glibc states that size
    /// (`_thread_db_sizeof_pthread`). `None` if the size is unknown, as with other C libraries.
    fn pthread_distance(&self) -> Option<u64> {
        let size = || {
            let stated = self.modules().iter().find_map(|module| module.symbol(glibc::SIZEOF_PTHREAD))?;
            let mut bytes = [0; 4];
            self.read(stated.addr, &mut bytes).ok()?;
            Some(self.arch().byte_order.uint(&bytes))
        };
        glibc::pthread_distance(self.arch().machine, size)
    }

    /// The process as a whole.
    fn process(&self) -> &ProcessInfo;

    /// What went wrong while opening without making the rest useless (a missing file, a truncated segment).
    fn issues(&self) -> &[String];

    /// Why a part of what the target is read from could not be read, if that happened. Memory in that part is taken for absent.
    fn unread(&self) -> Option<String> {
        None
    }
}

/// Sized reads over any [`Target`], in the target's byte order.
pub trait TargetExt: Target {
    /// Reads an unsigned integer of `size` bytes (1, 2, 4 or 8).
    ///
    /// # Errors
    /// As [`Target::read`]; a size other than those four is [`ReadFault::BadLength`].
    fn read_uint(&self, addr: Addr, size: u64) -> Result<u64, ReadError> {
        let mut buf = [0u8; 8];
        let n = match size {
            1 | 2 | 4 | 8 => size as usize,
            _ => return Err(ReadError { addr, len: size, why: ReadFault::BadLength }),
        };
        self.read(addr, &mut buf[..n])?;
        Ok(self.arch().byte_order.uint(&buf[..n]))
    }

    /// Reads a 32-bit unsigned integer.
    ///
    /// # Errors
    /// As [`Target::read`].
    fn read_u32(&self, addr: Addr) -> Result<u32, ReadError> {
        self.read_uint(addr, 4).map(|v| v as u32)
    }

    /// Reads a 64-bit unsigned integer.
    ///
    /// # Errors
    /// As [`Target::read`].
    fn read_u64(&self, addr: Addr) -> Result<u64, ReadError> {
        self.read_uint(addr, 8)
    }

    /// Reads a pointer of the target's width.
    ///
    /// # Errors
    /// As [`Target::read`].
    fn read_ptr(&self, addr: Addr) -> Result<Addr, ReadError> {
        self.read_uint(addr, u64::from(self.arch().pointer_bytes)).map(Addr)
    }

    /// Reads `len` bytes, at most [`memory::MAX_READ`].
    ///
    /// # Errors
    /// As [`Target::read`]; a longer request is [`ReadFault::BadLength`].
    fn read_vec(&self, addr: Addr, len: u64) -> Result<Vec<u8>, ReadError> {
        if len > memory::MAX_READ {
            return Err(ReadError { addr, len, why: ReadFault::BadLength });
        }
        let mut buf = vec![0u8; len as usize];
        self.read(addr, &mut buf)?;
        Ok(buf)
    }

    /// Whether memory has these bytes at these addresses.
    fn holds<'a>(&self, pieces: impl Iterator<Item = (Addr, &'a [u8])>) -> bool {
        /// So many bytes are read at a time: they stay in a cache of the processor.
        const BATCH: usize = 256 << 10;
        let parts = pieces.flat_map(|(addr, bytes)| {
            let parts = bytes.chunks(BATCH).enumerate();
            parts.map(move |(index, part)| (addr.offset((index * BATCH) as u64), part))
        });
        let (mut ranges, mut expected, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts = parts.peekable();
        while let Some((addr, part)) = parts.next() {
            ranges.push((addr, part.len() as u64));
            expected.extend_from_slice(part);
            if expected.len() < BATCH && parts.peek().is_some() {
                continue;
            }
            let done = self.read_ranges_into(&ranges, &mut bytes);
            if !done.into_iter().all(|done| done) || bytes != expected {
                return false;
            }
            ranges.clear();
            expected.clear();
        }
        true
    }

    /// Reads a NUL-terminated string of at most `max` bytes; invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`Target::read`]; no NUL within `max` bytes is [`ReadFault::Unterminated`].
    fn read_cstr(&self, addr: Addr, max: u64) -> Result<String, ReadError> {
        let mut out = Vec::new();
        let mut at = addr;
        while (out.len() as u64) < max {
            // Up to the next 64-byte boundary: never crosses into a page the string does not touch.
            let step = (64 - (at.0 % 64)).min(max - out.len() as u64);
            let mut buf = [0u8; 64];
            let chunk = &mut buf[..step as usize];
            self.read(at, chunk)?;
            if let Some(nul) = chunk.iter().position(|&b| b == 0) {
                out.extend_from_slice(&chunk[..nul]);
                return Ok(String::from_utf8_lossy(&out).into_owned());
            }
            out.extend_from_slice(chunk);
            at = match at.checked_add(step) {
                Some(next) => next,
                None => break,
            };
        }
        Err(ReadError { addr, len: max, why: ReadFault::Unterminated })
    }

    /// The module whose mapping contains `addr`.
    fn module_at(&self, addr: Addr) -> Option<&Module> {
        self.modules().iter().find(|m| m.contains(addr))
    }
}

impl<T: Target + ?Sized> TargetExt for T {}
