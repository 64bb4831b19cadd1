//! Cores written by hand, for machines and oddities that this machine does not produce. The writer shares nothing with
//! the reader.

use std::path::PathBuf;

use crate::support;
use ompd_process::{Addr, Arch, ByteOrder, Core, Machine, OpenError, OpenOptions, ReadFault, Target, TargetExt};

/// Appends integers of a machine to bytes.
#[derive(Clone, Copy)]
struct Writer {
    big_endian: bool,
    wide: bool,
}

impl Writer {
    fn int(self, out: &mut Vec<u8>, value: u64, size: usize) {
        let bytes = value.to_le_bytes();
        let part = &bytes[..size];
        if self.big_endian { out.extend(part.iter().rev()) } else { out.extend(part) }
    }

    fn word(self, out: &mut Vec<u8>, value: u64) {
        self.int(out, value, if self.wide { 8 } else { 4 });
    }

    fn note(self, out: &mut Vec<u8>, owner: &str, kind: u64, desc: &[u8]) {
        for value in [owner.len() as u64 + 1, desc.len() as u64, kind] {
            self.int(out, value, 4);
        }
        for part in [format!("{owner}\0").as_bytes(), desc] {
            out.extend(part);
            out.resize(out.len().next_multiple_of(4), 0);
        }
    }

    /// A thread status: `registers` follow the fixed part.
    fn status(self, lwp: u64, registers: &[u64]) -> Vec<u8> {
        let mut out = vec![0; if self.wide { 32 } else { 24 }];
        self.int(&mut out, lwp, 4);
        out.resize(if self.wide { 112 } else { 72 }, 0);
        registers.iter().for_each(|r| self.word(&mut out, *r));
        self.word(&mut out, 0); // pr_fpvalid
        out
    }

    /// A core with these notes and segments `(address, bytes, size in memory)`. With `many`, the number of segments is
    /// given the way it is when it does not fit its field.
    fn core(self, machine: u64, notes: &[u8], segments: &[(u64, &[u8], u64)], many: bool) -> Vec<u8> {
        let (header, entry) = if self.wide { (64, 56) } else { (52, 32) };
        let count = segments.len() as u64 + 1;
        let section = header + entry * count as usize;
        let mut content = section + 64;
        let mut out = b"\x7fELF".to_vec();
        out.extend([1 + u8::from(self.wide), 1 + u8::from(self.big_endian), 1]);
        out.resize(16, 0);
        for (value, size) in [(4, 2), (machine, 2), (1, 4)] {
            self.int(&mut out, value, size);
        }
        for value in [0, header as u64, section as u64] {
            self.word(&mut out, value);
        }
        self.int(&mut out, 0, 4);
        let number = if many { 0xffff } else { count };
        for value in [header as u64, entry as u64, number, 64, u64::from(many), 0] {
            self.int(&mut out, value, 2);
        }
        let mut body: Vec<u8> = Vec::new();
        let all =
            std::iter::once((4, 0, notes, 0)).chain(segments.iter().map(|(at, data, size)| (1, *at, *data, *size)));
        for (kind, at, data, size) in all {
            let (offset, stored) = (content as u64, data.len() as u64);
            self.int(&mut out, kind, 4);
            if self.wide {
                self.int(&mut out, 6, 4);
            }
            for value in [offset, at, 0, stored, size] {
                self.word(&mut out, value);
            }
            if !self.wide {
                self.int(&mut out, 6, 4);
            }
            self.word(&mut out, 1);
            content += data.len();
            body.extend(data);
        }
        // Section header 0, of which only sh_info matters.
        out.resize(section + if self.wide { 44 } else { 28 }, 0);
        self.int(&mut out, count, 4);
        out.resize(section + 64, 0);
        out.extend(body);
        out
    }
}

fn open(name: &str, bytes: &[u8]) -> Result<Core, OpenError> {
    let path: PathBuf = support::scratch().join(format!("synthetic-{name}"));
    std::fs::write(&path, bytes).expect("write");
    Core::open(&path, &OpenOptions::default())
}

#[test]
fn an_aarch64_core_opens_on_any_host() {
    for big_endian in [false, true] {
        let w = Writer { big_endian, wide: true };
        let mut notes = Vec::new();
        for lwp in [70, 71] {
            let registers: Vec<u64> = (0..34).map(|i| lwp * 1000 + i).collect();
            w.note(&mut notes, "CORE", 1, &w.status(lwp, &registers));
            let mut tls = Vec::new();
            w.word(&mut tls, 0x7000 + lwp);
            w.note(&mut notes, "LINUX", 0x401, &tls);
            w.note(&mut notes, "NOBODY", 0x1234, b"unknown notes are skipped");
        }
        let mut data = Vec::new();
        w.word(&mut data, 0x1122_3344_5566_7788);
        let core = open("aarch64", &w.core(183, &notes, &[(0x10_0000, &data, 8)], false)).expect("open");
        let byte_order = if big_endian { ByteOrder::Big } else { ByteOrder::Little };
        assert_eq!(core.arch(), Arch { machine: Machine::AARCH64, pointer_bytes: 8, byte_order });
        assert_eq!(core.read_u64(Addr(0x10_0000)), Ok(0x1122_3344_5566_7788));
        let threads: Vec<i32> = core.threads().iter().map(|t| t.lwp).collect();
        assert_eq!(threads, [70, 71]);
        let registers = core.threads()[1].registers.clone().expect("registers");
        assert_eq!((registers.pc.0, registers.sp.0, registers.fp.0), (71_032, 71_031, 71_029));
        assert_eq!((registers.thread_pointer, registers.syscall), (Some(Addr(0x7000 + 71)), None));
    }
}

#[test]
fn a_32_bit_big_endian_core_gives_memory_and_threads_but_no_registers() {
    let w = Writer { big_endian: true, wide: false };
    let mut notes = Vec::new();
    w.note(&mut notes, "CORE", 1, &w.status(9, &[0; 48]));
    let core = open("ppc", &w.core(20, &notes, &[(0x1000, &[1, 2, 3, 4, 5, 6, 7, 8], 8)], false)).expect("open");
    assert_eq!(core.arch().machine, Machine::of_elf(20));
    assert_eq!(core.read_ptr(Addr(0x1000)), Ok(Addr(0x0102_0304)));
    assert_eq!(core.threads()[0].lwp, 9);
    assert!(core.threads()[0].registers.as_ref().is_err_and(|why| why.contains("20")));
}

#[test]
fn what_the_core_leaves_out_is_not_zero() {
    let w = Writer { big_endian: false, wide: true };
    let mut notes = Vec::new();
    w.note(&mut notes, "CORE", 1, &w.status(1, &[0; 27]));
    for many in [false, true] {
        let segments: &[(u64, &[u8], u64)] =
            &[(0x1000, &[7; 16], 0x1000), (0x3000, &[], 0x1000), (0x2000, &[9; 16], 16)];
        let core = open("gaps", &w.core(62, &notes, segments, many)).expect("open");
        let why = |at, len| core.read_vec(Addr(at), len).map_err(|e| e.why);
        assert_eq!(why(0x1000, 16), Ok(vec![7; 16]));
        assert_eq!(why(0x1000, 17), Err(ReadFault::Short { got: 16 }));
        assert_eq!(why(0x1010, 1), Err(ReadFault::NotInCore));
        assert_eq!(why(0x2000, 16), Ok(vec![9; 16]));
        assert_eq!(why(0x2010, 1), Err(ReadFault::Unmapped));
        assert_eq!(why(0x3000, 1), Err(ReadFault::NotInCore));
        assert_eq!(why(0x4000, 1), Err(ReadFault::Unmapped));
    }
}

#[test]
fn a_core_without_threads_is_refused() {
    let w = Writer { big_endian: false, wide: true };
    let whole = w.core(62, &[], &[(0x1000, &[7; 16], 16)], false);
    assert!(matches!(open("none", &whole), Err(OpenError::MalformedCore { .. })));
    let cut = &whole[..whole.len() - 5];
    assert!(matches!(open("cut", cut), Err(OpenError::Truncated { missing: 5, .. })));
}
