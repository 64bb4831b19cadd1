//! Cores of a process that never was: three threads, one image of which the beginning is in the core.

/// Type numbers of notes (elf.h).
const NT_PRSTATUS: u64 = 1;
const NT_PRPSINFO: u64 = 3;
const NT_AUXV: u64 = 6;
const NT_ARM_TLS: u64 = 0x401;
const NT_FILE: u64 = 0x4649_4c45;
const NT_SIGINFO: u64 = 0x5349_4749;

/// Where the image is mapped.
const IMAGE: u64 = 0x40_0000;
const STACK: u64 = 0x7000_0000;
/// Bytes of the image that are in the core. A page would make larger inputs, and shows nothing more.
const HEAD: u64 = 512;

/// All cores, by name.
pub(super) fn make() -> Vec<(String, Vec<u8>)> {
    let mut cores = Vec::new();
    for (name, machine, registers, big, wide) in [
        ("x86-64", 62, 27, false, true),
        ("aarch64", 183, 34, false, true),
        ("aarch64-big", 183, 34, true, true),
        ("i386", 3, 17, false, false),
    ] {
        let writer = Writer { big, wide };
        for (by_gdb, many) in [(false, false), (true, true)] {
            let core = writer.core(machine, &writer.notes(machine, registers, by_gdb), many);
            cores.push((format!("{name}{}", if by_gdb { "-gdb" } else { "" }), core));
        }
    }
    cores
}

#[derive(Clone, Copy)]
struct Writer {
    big: bool,
    wide: bool,
}

impl Writer {
    fn int(self, out: &mut Vec<u8>, value: u64, size: usize) {
        let mut bytes = value.to_le_bytes()[..size].to_vec();
        if self.big {
            bytes.reverse();
        }
        out.extend(bytes);
    }

    fn word(self, out: &mut Vec<u8>, value: u64) {
        self.int(out, value, if self.wide { 8 } else { 4 });
    }

    fn words(self, values: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let mut out = Vec::new();
        values.into_iter().for_each(|value| self.word(&mut out, value));
        out
    }

    fn note(self, out: &mut Vec<u8>, owner: &str, kind: u64, content: &[u8]) {
        for value in [owner.len() as u64 + 1, content.len() as u64, kind] {
            self.int(out, value, 4);
        }
        for part in [format!("{owner}\0").as_bytes(), content] {
            out.extend(part);
            out.resize(out.len().next_multiple_of(4), 0);
        }
    }

    fn notes(self, machine: u64, registers: u64, by_gdb: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut information = vec![0; if self.wide { 136 } else { 124 }];
        let at = if self.wide { 24 } else { 12 };
        information[at + usize::from(self.big) * 3] = 70;
        let name = if self.wide { 40 } else { 28 };
        information[name..name + 4].copy_from_slice(b"prog");
        information[name + 16..name + 24].copy_from_slice(b"prog arg");
        self.note(&mut out, "CORE", NT_PRPSINFO, &information);
        for thread in 70..73 {
            let mut status = vec![0; if self.wide { 32 } else { 24 }];
            status[12 + usize::from(self.big)] = 11;
            self.int(&mut status, thread, 4);
            status.resize(if self.wide { 112 } else { 72 }, 0);
            // Addresses in the image and on the stack by turns: whatever the register, something is there.
            status.extend(self.words((0..registers).map(|n| if n % 2 == 0 { IMAGE + 8 * n } else { STACK + 8 * n })));
            self.word(&mut status, 0);
            self.note(&mut out, "CORE", NT_PRSTATUS, &status);
            if machine == 183 {
                self.note(&mut out, "LINUX", NT_ARM_TLS, &self.words([STACK + 64]));
            }
            if by_gdb {
                self.note(&mut out, "GDB", 1, &[0; 8]);
            }
        }
        self.note(&mut out, "CORE", NT_SIGINFO, &self.words([11, 0]));
        // AT_PHDR, AT_ENTRY, AT_SYSINFO_EHDR
        self.note(&mut out, "CORE", NT_AUXV, &self.words([3, IMAGE + 64, 9, IMAGE + 128, 33, STACK + 0x1000, 0, 0]));
        let mut files = self.words([2, 4096, IMAGE, IMAGE + HEAD, 0, IMAGE + HEAD, IMAGE + 0x3000, 1]);
        files.extend(b"/nowhere/prog\0/nowhere/prog\0");
        self.note(&mut out, "CORE", NT_FILE, &files);
        out
    }

    /// The mapped image's first bytes: an executable with one segment and a build-id.
    fn image(self, machine: u64) -> Vec<u8> {
        let mut note = Vec::new();
        self.note(&mut note, "GNU", 3, b"0123456789abcdefghij");
        let segments = [(1, 0, IMAGE, 0x3000), (4, 0x180, IMAGE + 0x180, note.len() as u64)];
        let mut out = self.headers(2, machine, &segments, false);
        out.resize(0x180, 0);
        out.extend(note);
        out.resize(HEAD as usize, 0);
        out
    }

    /// An ELF header and program headers `(type, offset, address, bytes)`. With `many`, their number is in section
    /// header 0, which comes right behind them.
    fn headers(self, kind: u64, machine: u64, segments: &[(u64, u64, u64, u64)], many: bool) -> Vec<u8> {
        let (header, entry) = if self.wide { (64, 56) } else { (52, 32) };
        let count = segments.len() as u64;
        let mut out = b"\x7fELF".to_vec();
        out.extend([1 + u8::from(self.wide), 1 + u8::from(self.big), 1]);
        out.resize(16, 0);
        for (value, size) in [(kind, 2), (machine, 2), (1, 4)] {
            self.int(&mut out, value, size);
        }
        for value in [IMAGE + 128, header, if many { header + entry * count } else { 0 }] {
            self.word(&mut out, value);
        }
        self.int(&mut out, 0, 4);
        let number = if many { 0xffff } else { count };
        for value in [header, entry, number, if many { 64 } else { 0 }, u64::from(many), 0] {
            self.int(&mut out, value, 2);
        }
        for (kind, offset, at, bytes) in segments {
            self.int(&mut out, *kind, 4);
            if self.wide {
                self.int(&mut out, 5, 4);
            }
            for value in [*offset, *at, 0, *bytes, *bytes] {
                self.word(&mut out, value);
            }
            if !self.wide {
                self.int(&mut out, 5, 4);
            }
            self.word(&mut out, 4);
        }
        if many {
            let start = out.len();
            out.resize(start + if self.wide { 44 } else { 28 }, 0);
            self.int(&mut out, count, 4);
            out.resize(start + 64, 0);
        }
        out
    }

    fn core(self, machine: u64, notes: &[u8], many: bool) -> Vec<u8> {
        let image = self.image(machine);
        let stack = self.words((0..32).map(|n| STACK + 8 * n));
        let parts: [(u64, u64, &[u8]); 4] =
            [(4, 0, notes), (1, IMAGE, &image), (1, STACK, &stack), (1, STACK + 0x1000, &image)];
        // The headers' length does not depend on what they say.
        let mut at = self.headers(4, machine, &[(0, 0, 0, 0); 4], many).len() as u64;
        let segments = parts.map(|(kind, addr, bytes)| {
            at += bytes.len() as u64;
            (kind, at - bytes.len() as u64, addr, bytes.len() as u64)
        });
        let mut out = self.headers(4, machine, &segments, many);
        parts.iter().for_each(|(_, _, bytes)| out.extend(*bytes));
        out
    }
}
