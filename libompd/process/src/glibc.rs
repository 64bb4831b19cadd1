//! The threads of a process as its C library lists them.
//!
//! glibc describes its own lists for debuggers: `_thread_db_*` give each field as its size in bits, its number of
//! elements and its offset (nptl_db/structs.def and nptl_db/db_info.c). The descriptors of threads are in two rings
//! (nptl/allocatestack.c). One has the threads with stacks that glibc made. The other has those with stacks of their
//! own, among them the first thread.

use std::collections::HashSet;

use crate::arch::Arch;
use crate::machine::Machine;
use crate::memory::Addr;
use crate::thread::NativeThread;

/// Where glibc states the size of its descriptor of a thread, in four bytes (nptl_db/structs.def).
pub(crate) const SIZEOF_PTHREAD: &str = "_thread_db_sizeof_pthread";
/// No descriptor is larger.
const MAX_DESCRIPTOR: u64 = 1 << 20;

/// See [`Target::pthread_distance`](crate::Target::pthread_distance); `size` is that of glibc's descriptor.
pub(crate) fn pthread_distance(machine: Machine, size: impl FnOnce() -> Option<u64>) -> Option<u64> {
    let size = || size().filter(|size| *size < MAX_DESCRIPTOR);
    machine.facts()?.thread_local.above_descriptor(size)
}

/// What the lists are read by.
pub(crate) trait Source {
    /// Where a variable of the C library or its dynamic linker is.
    fn symbol(&self, name: &str) -> Option<Addr>;

    /// Bytes of the process.
    fn bytes(&self, addr: Addr, len: usize) -> Option<Vec<u8>>;

    /// A word of the process's width.
    fn word(&self, addr: Addr, arch: Arch) -> Option<Addr> {
        let bytes = self.bytes(addr, usize::from(arch.pointer_bytes))?;
        Some(Addr(arch.byte_order.uint(&bytes)))
    }
}

/// More threads than any process has (the kernel's PID_MAX_LIMIT).
pub(crate) const MAX_THREADS: usize = 1 << 22;
/// No structure of the C library is larger.
const MAX_SIZE: u64 = 1 << 20;
/// Fields that lie this close to each other are read together.
const NEAR: u64 = 256;

/// Where a field lies in its structure, in bytes.
fn offset(source: &impl Source, arch: Arch, name: &str) -> Option<u64> {
    let bytes = source.bytes(source.symbol(name)?, 12)?;
    Some(arch.byte_order.uint(&bytes[8..])).filter(|offset| *offset < MAX_SIZE)
}

/// See [`Target::pthread_distance`](crate::Target::pthread_distance).
pub(crate) fn pointer_distance(source: &impl Source, arch: Arch) -> Option<u64> {
    let size = || {
        let bytes = source.bytes(source.symbol(SIZEOF_PTHREAD)?, 4)?;
        Some(arch.byte_order.uint(&bytes))
    };
    pthread_distance(arch.machine, size)
}

/// Where glibc keeps its list: none of it changes once the C library is loaded.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    /// Offsets into a thread's descriptor: its links, and its kernel thread id.
    links: u64,
    tid: u64,
    /// Offset of the link to the next one.
    next: u64,
    heads: [Addr; 2],
}

impl Lists {
    /// `is_static` if the program is known to have no dynamic linker.
    pub(crate) fn find(source: &impl Source, arch: Arch, is_static: bool) -> Result<Lists, String> {
        let missing =
            |what: &str| format!("the C library's list of threads was not found: the debugger does not know {what}");
        let field = |name: &str| offset(source, arch, name).ok_or_else(|| missing(name));
        let links = field("_thread_db_pthread_list")?;
        let tid = field("_thread_db_pthread_tid")?;
        let next = field("_thread_db_list_t_next")?;
        let symbol = |name: &str| source.symbol(name);
        // Since glibc 2.34 the rings begin in the dynamic linker's data; in a static program they begin in variables of
        // their own. For a static program those are tried first: what it loads may bring a dynamic linker along that
        // lists no thread. Before 2.34 the rings were in libpthread's data.
        let head = |own: &str, modern: &str, old: &str| {
            let shared = || Some(symbol("_rtld_global")?.offset(offset(source, arch, modern)?));
            let found = match is_static {
                true => symbol(own).or_else(shared).or_else(|| symbol(old)),
                false => shared().or_else(|| symbol(old)).or_else(|| symbol(own)),
            };
            found.ok_or_else(|| missing(old))
        };
        let heads = [
            head("_dl_stack_user", "_thread_db_rtld_global__dl_stack_user", "__stack_user")?,
            head("_dl_stack_used", "_thread_db_rtld_global__dl_stack_used", "stack_used")?,
        ];
        Ok(Lists { links, tid, next, heads })
    }

    /// The part of a thread's descriptor with its links and its id: where it begins, and how long it is. Both are read at once, for each
    /// read costs the debugger a call; mostly they are neighbours.
    pub(crate) fn window(&self, arch: Arch) -> (u64, u64) {
        let (low, high) = (self.links.min(self.tid), self.links.max(self.tid) + 2 * u64::from(arch.pointer_bytes));
        if high - low <= NEAR { (low, high - low) } else { (self.links, 2 * u64::from(arch.pointer_bytes)) }
    }

    /// The kernel thread id that the descriptor of a thread has: 0 while the thread is being made, and when it is over
    /// (nptl/pthread_create.c).
    pub(crate) fn lwp(&self, source: &impl Source, arch: Arch, pthread: Addr) -> Option<i32> {
        let bytes = source.bytes(pthread.offset(self.tid), 4)?;
        Some(arch.byte_order.uint(&bytes) as u32 as i32)
    }

    /// All threads that glibc lists and that have a kernel thread; an error if there are more than `most`.
    pub(crate) fn read(&self, source: &impl Source, arch: Arch, most: usize) -> Result<Vec<NativeThread>, String> {
        let Lists { links, next, heads, .. } = *self;
        let mut threads = Vec::new();
        let mut seen = HashSet::new();
        for (list, head) in heads.into_iter().enumerate() {
            let read = |at: Addr| source.word(at.offset(next), arch);
            let broken = |at: Addr| format!("the C library's list of threads breaks off at {at}");
            let mut at = read(head).ok_or_else(|| broken(head))?;
            // Before the first thread has been entered, the ring is all zero.
            while at != head && !at.is_null() {
                if !seen.insert(at) || seen.len() > most {
                    return Err("the C library's list of threads has no end".to_owned());
                }
                let pthread = at.back(links);
                let (low, length) = self.window(arch);
                source.bytes(pthread.offset(low), length as usize).ok_or_else(|| broken(at))?;
                let lwp = self.lwp(source, arch, pthread).ok_or_else(|| broken(at))?;
                if lwp > 0 {
                    threads.push(NativeThread { lwp, pthread, own_stack: list == 1 });
                }
                at = read(at).ok_or_else(|| broken(at))?;
            }
        }
        Ok(threads)
    }
}
