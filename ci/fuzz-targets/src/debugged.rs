//! A process that a debugger holds, whose memory is the input. It has the dynamic linker's list, ELF headers, hash
//! tables and notes, the C library's lists of threads, and the first stack.

use std::cell::Cell;
use std::collections::BTreeSet;

use ompd_process::{
    Addr, Arch, Debugged, Debugger, NativeThread, OpenOptions, ReadFault, Registers, Target as _, TargetExt as _,
};

/// Symbols the debugger knows. An input begins with a place for each, two little-endian bytes in units of eight bytes;
/// all ones for a symbol it does not know.
pub const SYMBOLS: [&str; 16] = [
    "_r_debug",
    "__libc_stack_end",
    "_rtld_global",
    "__stack_user",
    "stack_used",
    "_thread_db_pthread_list",
    "_thread_db_pthread_tid",
    "_thread_db_list_t_next",
    "_thread_db_rtld_global__dl_stack_user",
    "_thread_db_rtld_global__dl_stack_used",
    "_thread_db_sizeof_pthread",
    "GOMP_parallel",
    "__kmpc_fork_call",
    "omp_get_thread_num",
    "ompd_dll_locations",
    "__kmp_openmp_version",
];
/// Where memory begins.
pub const BASE: u64 = 0x1_0000;
/// The same memory lies at the end of the address space once more, but for so many bytes.
const BEYOND: u64 = 16;
/// Where memory of this length begins for the second time.
pub fn again(length: usize) -> u64 {
    0u64.wrapping_sub(length as u64 + BEYOND)
}

/// The most reads for an empty input, and for each byte of input. The search for an ELF header covers as many pages as
/// a large program has. It runs below each of a few symbols, and for a module that is not at its recorded address.
const READS: (u64, u64) = (1 << 20, 64);
/// The most bytes that are read, likewise. Modules are read as a whole if their files are missing. There are at most
/// thousands of modules, and each may need a look at one page.
const BYTES: (u64, u64) = (64 << 20, 256);
/// Stacks of more threads are not looked at here.
const MOST_THREADS: usize = 64;

#[derive(Debug)]
struct Process<'d> {
    symbols: [Option<Addr>; SYMBOLS.len()],
    memory: &'d [u8],
    reads: Cell<u64>,
    bytes: Cell<u64>,
}

impl Debugger for Process<'_> {
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        self.reads.set(self.reads.get() + 1);
        self.bytes.set(self.bytes.get() + buf.len() as u64);
        let from = addr.0.checked_sub(again(self.memory.len())).or_else(|| addr.0.checked_sub(BASE));
        let from = from.and_then(|from| usize::try_from(from).ok()).ok_or(ReadFault::Unmapped)?;
        let bytes = from.checked_add(buf.len()).and_then(|end| self.memory.get(from..end));
        buf.copy_from_slice(bytes.ok_or(ReadFault::Unmapped)?);
        Ok(())
    }

    fn symbol(&self, name: &str) -> Option<Addr> {
        self.symbols[SYMBOLS.iter().position(|own| *own == name)?]
    }

    fn offers_registers(&self) -> bool {
        true
    }

    fn registers(&self, native: NativeThread, arch: Arch) -> Result<Registers, String> {
        let mut bytes = vec![0; Registers::kernel_bytes(arch).ok_or("of another machine")?];
        self.read(native.pthread, &mut bytes).map_err(|_| "not readable")?;
        Registers::of_kernel(arch, &bytes).ok_or_else(|| "of another machine".to_owned())
    }
}

/// Opens the process and looks at everything that it says is there.
pub fn check(data: &[u8]) {
    open(data);
}

/// What was found of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Modules, and those of them of which the file could be put together.
    pub modules: (usize, usize),
    /// Names that the modules export.
    pub names: usize,
    /// Threads.
    pub threads: usize,
    /// Whether there are variables of the environment.
    pub environment: bool,
}

/// The same, and tells what was found; `None` if nothing was.
pub fn open(data: &[u8]) -> Option<Found> {
    let (header, memory) = data.split_at_checked(2 * SYMBOLS.len())?;
    let mut symbols = [None; SYMBOLS.len()];
    for (symbol, place) in symbols.iter_mut().zip(header.chunks_exact(2)) {
        let place = u16::from_le_bytes([place[0], place[1]]);
        *symbol = (place != u16::MAX).then(|| Addr(BASE + 8 * u64::from(place)));
    }
    let process = Process { symbols, memory, reads: Cell::new(0), bytes: Cell::new(0) };
    let mut debugged = Debugged::open(process, 8, &ompd_runtime::family::well_known(), &OpenOptions::default()).ok()?;
    let within = |debugged: &Debugged<Process<'_>>, what: &str| {
        let (reads, bytes) = (debugged.debugger().reads.take(), debugged.debugger().bytes.take());
        let length = memory.len() as u64;
        assert!(reads <= READS.0 + READS.1 * length, "{what}: {reads} reads of {length} bytes");
        assert!(bytes <= BYTES.0 + BYTES.1 * length, "{what}: {bytes} bytes of {length} are read");
    };
    within(&debugged, "opened");
    assert!(!debugged.refresh(), "nothing has changed");
    within(&debugged, "looked at again");

    let (mut whole, mut names) = (0, 0);
    let mut bases = BTreeSet::new();
    for module in debugged.modules() {
        assert!(bases.insert(module.base()), "two modules in one place");
        assert!(!module.ranges.is_empty() && module.ranges.iter().all(|r| r.start < r.end), "{:?}", module.ranges);
        let Ok(file) = &module.file else { continue };
        whole += 1;
        let _ = (module.name(), module.build_id.as_ref(), file.needed(), file.soname(), file.has_names());
        for name in file.exported_names() {
            let _ = file.symbol(name);
            names += 1;
        }
        for at in file.relocations().keys() {
            let _ = file.symbol_at(Addr(*at));
        }
        for range in file.executable_ranges() {
            let _ = file.function_range(range.start);
        }
    }
    assert!(debugged.natives().iter().all(|native| native.lwp > 0));
    let threads = debugged.threads().len();
    let environment = debugged.process().environment.get("OMP_NUM_THREADS");
    let found =
        Found { modules: (debugged.modules().len(), whole), names, threads, environment: environment == Ok(Some("4")) };
    for addr in [0, BASE, BASE + 1, u64::MAX - 7, u64::MAX] {
        let _ = (debugged.read_ptr(Addr(addr)), debugged.read_cstr(Addr(addr), 100), debugged.mapping(Addr(addr)));
    }
    debugged.ask_registers(1);
    if threads <= MOST_THREADS && debugged.arch().machine.facts().is_some() {
        let runtimes = ompd_runtime::discover(&debugged, &[]);
        crate::stack::look_at(&debugged, &runtimes, &ompd_stack::Cache::default());
    }
    Some(found)
}
