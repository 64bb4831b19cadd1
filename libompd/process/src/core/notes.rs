//! The notes of a core file (linux/fs/binfmt_elf.c, fill_note_info; elfcore.h; core(5)).

use std::collections::BTreeMap;

use nix::sys::signal::Signal;

use crate::arch::Arch;
use crate::image::Headers;
use crate::thread::{Registers, Thread};

const NT_PRSTATUS: u32 = 1;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_SIGINFO: u32 = 0x5349_4749;
/// Members of `siginfo_t` (linux/include/uapi/asm-generic/siginfo.h), on machines of 64 bits.
const SI_CODE: usize = 8;
const SI_PID: usize = 16;
const NT_FILE: u32 = 0x4649_4c45;
/// Signals whose default action is a core dump (signal(7)); the numbers are the same on x86-64 and aarch64.
const CORE_SIGNALS: [i32; 10] = [3, 4, 5, 6, 7, 8, 11, 24, 25, 31];

/// An entry of NT_FILE: addresses `start..end` map `path` from byte `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MappedFile {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub path: String,
}

/// What the notes say.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub threads: Vec<Thread>,
    pub pid: Option<i32>,
    /// `pr_psargs`: the first 80 bytes of the command line.
    pub command: Option<String>,
    /// `pr_fname`: name of the first thread of the process, when the kernel wrote the core.
    leader: Option<String>,
    pub files: Option<Vec<MappedFile>>,
    pub auxv: BTreeMap<u64, u64>,
    /// Signal of the first thread.
    pub signal: Option<i32>,
    /// Who sent it.
    pub sender: Option<Sender>,
    /// GDB wrote the core (`gcore`): no signal ended the process.
    pub by_gdb: bool,
    pub issues: Vec<String>,
}

/// Where the fields of `struct elf_prstatus` and `struct elf_prpsinfo` lie, by width of a long.
struct Offsets {
    pr_pid: usize,
    pr_reg: usize,
    ps_pid: usize,
    ps_fname: usize,
    ps_args: usize,
}

const LP64: Offsets = Offsets { pr_pid: 32, pr_reg: 112, ps_pid: 24, ps_fname: 40, ps_args: 56 };
const ILP32: Offsets = Offsets { pr_pid: 24, pr_reg: 72, ps_pid: 12, ps_fname: 28, ps_args: 44 };

/// Reads integers of the target's byte order from a note.
struct Fields<'a> {
    data: &'a [u8],
    arch: Arch,
}

impl Fields<'_> {
    fn uint(&self, at: usize, size: usize) -> Option<u64> {
        Some(self.arch.byte_order.uint(self.data.get(at..at.checked_add(size)?)?))
    }

    fn i32(&self, at: usize) -> Option<i32> {
        self.uint(at, 4).map(|v| v as u32 as i32)
    }

    fn word(&self, index: usize) -> Option<u64> {
        let size = usize::from(self.arch.pointer_bytes);
        self.uint(index.checked_mul(size)?, size)
    }

    fn words(&self, at: usize, count: usize) -> Option<Vec<u64>> {
        let raw = self.data.get(at..at.checked_add(8 * count)?)?;
        Some(raw.chunks_exact(8).map(|bytes| self.arch.byte_order.uint(bytes)).collect())
    }

    fn text(&self, at: usize, size: usize) -> Option<String> {
        let raw = self.data.get(at..at.checked_add(size)?)?;
        let end = raw.iter().position(|&b| b == 0).unwrap_or(raw.len());
        Some(String::from_utf8_lossy(&raw[..end]).trim_end().to_owned()).filter(|s| !s.is_empty())
    }
}

impl Notes {
    /// Reads the notes in `data`, one note segment. Unknown notes are skipped; malformed ones become issues.
    pub fn read(&mut self, headers: &Headers, data: &[u8]) {
        let arch = headers.arch;
        let offsets = if arch.pointer_bytes == 8 { &LP64 } else { &ILP32 };
        // The thread pointer follows the NT_PRSTATUS of its thread.
        let thread_pointer = arch.machine.facts().and_then(|facts| facts.kernel_set.thread_pointer_note);
        for note in headers.notes(data, 4) {
            let fields = Fields { data: note.desc, arch };
            match (note.name, note.n_type) {
                ("CORE", NT_PRSTATUS) => match prstatus(&fields, offsets) {
                    Some(thread) => self.threads.push(thread),
                    None => self.issues.push(format!("a thread status note of {} bytes is too short", note.desc.len())),
                },
                ("LINUX", kind) if Some(kind) == thread_pointer => {
                    let tls = fields.uint(0, 8);
                    if let Some(Ok(r)) = self.threads.last_mut().map(|t| t.registers.as_mut()) {
                        r.thread_pointer = tls.map(crate::memory::Addr);
                    }
                }
                ("CORE", NT_PRPSINFO) => {
                    self.pid = fields.i32(offsets.ps_pid);
                    self.command = fields.text(offsets.ps_args, 80);
                    self.leader = fields.text(offsets.ps_fname, 16);
                }
                ("CORE", NT_AUXV) => {
                    let pairs = (0..).step_by(2).map_while(|i| Some((fields.word(i)?, fields.word(i + 1)?)));
                    self.auxv.extend(pairs.take_while(|(kind, _)| *kind != 0));
                }
                // The kernel writes one, after the first thread; gdb one for each thread.
                ("CORE", NT_SIGINFO) if self.threads.len() <= 1 => {
                    self.signal = fields.i32(0);
                    self.sender =
                        fields.i32(SI_CODE).zip(fields.i32(SI_PID)).and_then(|(code, pid)| Sender::of(code, pid));
                }
                ("CORE", NT_FILE) => match mapped_files(&fields) {
                    Ok(files) => self.files = Some(files),
                    Err(why) => self.issues.push(format!("the list of mapped files (NT_FILE) is malformed: {why}")),
                },
                ("GDB", _) => self.by_gdb = true,
                _ => {}
            }
        }
    }

    /// Whether another process or the terminal sent the signal.
    pub fn is_sent(&self) -> bool {
        match self.sender {
            Some(Sender::Process(pid)) => Some(pid) != self.pid,
            Some(Sender::Kernel) => self.signal == Some(Signal::SIGQUIT as i32),
            None => false,
        }
    }

    /// Settles what can be said only after all notes were read.
    pub fn finish(&mut self) {
        let first = self.threads.first().map(|t| t.signal);
        for (index, thread) in self.threads.iter_mut().enumerate() {
            // The kernel notes the signal that ended the process in the status of every thread. The thread that
            // received it comes first. gdb notes the signal a thread was stopped with.
            if self.by_gdb || index > 0 {
                thread.signal = 0;
            }
            if !self.by_gdb && Some(thread.lwp) == self.pid {
                thread.name = self.leader.take();
            }
        }
        // gdb before version 12 leaves no mark of its own, but records signals that do not end a process with a core.
        self.signal = if self.by_gdb { None } else { self.signal.or(first).filter(|s| CORE_SIGNALS.contains(s)) };
    }
}

/// Who sent a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A process; 0 for one outside of the PID namespace.
    Process(i32),
    /// The kernel: a terminal, if the signal is one of those that keys send.
    Kernel,
}

impl Sender {
    /// By `si_code` and `si_pid` (sigaction(2)); `None` where the signal is for what the thread itself has done.
    fn of(code: i32, pid: i32) -> Option<Sender> {
        const USER: i32 = 0;
        const KERNEL: i32 = 0x80;
        const QUEUE: i32 = -1;
        const TKILL: i32 = -6;
        match code {
            USER | QUEUE | TKILL => Some(Sender::Process(pid)),
            KERNEL => Some(Sender::Kernel),
            _ => None,
        }
    }
}

fn prstatus(fields: &Fields<'_>, offsets: &Offsets) -> Option<Thread> {
    let lwp = fields.i32(offsets.pr_pid)?;
    // pr_cursig, a short.
    let signal = fields.uint(12, 2)? as u16 as i16;
    Some(Thread {
        lwp,
        name: None,
        registers: registers_of(fields, offsets.pr_reg)?,
        pointer: None,
        signal: signal.into(),
        blocked_signals: None,
    })
}

/// `None` if the note is too short for the registers of its machine.
fn registers_of(fields: &Fields<'_>, at: usize) -> Option<Result<Registers, String>> {
    let machine = fields.arch.machine;
    Some(match (machine.facts(), fields.arch.pointer_bytes) {
        (Some(facts), 8) => {
            let set = &facts.kernel_set;
            Ok((set.decode)(&fields.words(at, set.words)?, None)?)
        }
        (None, _) => Err(format!("registers of ELF machine {} are not decoded", machine.elf())),
        _ => Err("registers of 32-bit programs are not decoded".into()),
    })
}

fn mapped_files(fields: &Fields<'_>) -> Result<Vec<MappedFile>, String> {
    let short = || "it ends early".to_owned();
    let count = fields.word(0).ok_or_else(short)?;
    let page_size = fields.word(1).ok_or_else(short)?;
    let word = usize::from(fields.arch.pointer_bytes);
    // Each entry takes three words and at least the NUL of its path.
    if count > (fields.data.len() / (3 * word + 1)) as u64 {
        return Err(format!("{count} entries do not fit into {} bytes", fields.data.len()));
    }
    let count = count as usize;
    let names = fields.data.get((2 + 3 * count) * word..).ok_or_else(short)?;
    let mut names = names.split(|&b| b == 0);
    let mut files = Vec::with_capacity(count);
    for index in 0..count {
        let entry = |i| fields.word(2 + 3 * index + i).ok_or_else(short);
        let (start, end, pages) = (entry(0)?, entry(1)?, entry(2)?);
        let offset = pages.checked_mul(page_size).ok_or("a file offset is out of range")?;
        let path = String::from_utf8_lossy(names.next().ok_or_else(short)?).into_owned();
        if start < end {
            files.push(MappedFile { start, end, offset, path });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_file(count: u64, entries: &[[u64; 3]], names: &[u8]) -> Vec<u8> {
        let mut data: Vec<u8> = [count, 4096].iter().flat_map(|w| w.to_le_bytes()).collect();
        data.extend(entries.iter().flatten().flat_map(|w| w.to_le_bytes()));
        data.extend_from_slice(names);
        data
    }

    fn parse(data: &[u8]) -> Result<Vec<MappedFile>, String> {
        mapped_files(&Fields { data, arch: Arch::X86_64 })
    }

    #[test]
    fn offsets_of_mapped_files_are_in_pages() {
        let files = parse(&note_file(2, &[[0x1000, 0x2000, 0], [0x2000, 0x5000, 3]], b"/a\0/b c\0")).unwrap();
        assert_eq!(files[1], MappedFile { start: 0x2000, end: 0x5000, offset: 0x3000, path: "/b c".into() });
    }

    #[test]
    fn hostile_counts_are_refused() {
        for count in [2, 1 << 20, u64::MAX / 24, u64::MAX] {
            assert!(parse(&note_file(count, &[[0, 1, 0]], b"/a\0")).is_err(), "{count}");
        }
        assert!(parse(&note_file(1, &[[0, 1, u64::MAX]], b"/a\0")).is_err());
        assert!(parse(b"").is_err());
    }

    #[test]
    fn statuses_shorter_than_their_registers_are_refused() {
        for len in [0, 31, 36, 112 + 8 * 27 - 1] {
            assert!(prstatus(&Fields { data: &vec![0; len], arch: Arch::X86_64 }, &LP64).is_none());
        }
        let data = vec![0; 112 + 8 * 34];
        let mut big = Arch::AARCH64;
        big.byte_order = crate::ByteOrder::Big;
        let mut marked = data.clone();
        marked[35] = 5; // pr_pid, most significant byte first.
        assert_eq!(prstatus(&Fields { data: &marked, arch: big }, &LP64).unwrap().lwp, 5);
    }
}
