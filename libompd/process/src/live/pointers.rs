//! Thread pointers of threads that are not stopped.
//!
//! For each thread the kernel keeps the address of its list of robust futexes, which lies in the C library's descriptor
//! of the thread. See get_robust_list(2) and glibc's `struct pthread::robust_head`. Where the thread pointer points to
//! the descriptor, the descriptor holds its own address. So the distance between the two can be read from the process.
//! Elsewhere glibc's lists of its threads give the pointers.

use std::collections::HashMap;

use nix::errno::Errno;
use nix::libc;

use super::Live;
use super::memory::Memory;
use crate::glibc::{self, Lists, Source};
use crate::memory::Addr;
use crate::module::Module;
use crate::thread::Thread;

/// No descriptor of a thread is larger: so far below the robust list its begin is searched for.
const MAX_DESCRIPTOR: u64 = 4096;

/// By which the C library's lists are read in a process.
struct ListSource<'a> {
    modules: Vec<&'a Module>,
    memory: &'a Memory,
}

impl Source for ListSource<'_> {
    fn symbol(&self, name: &str) -> Option<Addr> {
        let module = self.modules.iter().find(|module| module.exports(name))?;
        module.symbol(name).map(|symbol| symbol.addr)
    }

    fn bytes(&self, addr: Addr, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.memory.read(addr, &mut bytes).ok().map(|()| bytes)
    }
}

impl Live {
    /// By which the C library's lists are read.
    fn lists(&self) -> ListSource<'_> {
        // Symbols of nothing else are looked up: this happens while the process is held.
        const OF_GLIBC: [&str; 3] = ["ld-", "libc.so", "libpthread"];
        let names = |module: &&Module| OF_GLIBC.iter().any(|name| module.name().starts_with(name));
        ListSource { modules: self.modules.iter().filter(names).collect(), memory: &self.memory }
    }

    /// True if the thread pointers of these threads can be found without registers.
    pub(super) fn knows_pointers(&self, mut lwps: impl Iterator<Item = i32>) -> bool {
        if lwps.next().is_some_and(|lwp| Robust::find(self, lwp).is_some()) {
            return true;
        }
        let source = self.lists();
        self.info.inner_ids.is_none()
            && glibc::pointer_distance(&source, self.arch).is_some()
            && Lists::find(&source, self.arch, false).is_ok()
    }

    /// Finds the thread pointers of threads without registers. None is found where the kernel keeps no usable robust
    /// lists and glibc's lists do not fit either. Those may have other thread ids, as in a PID namespace, or may not
    /// list all threads.
    pub(super) fn find_pointers(&mut self) {
        let mut missing: Vec<i32> =
            self.threads.iter().filter(|t| t.thread_pointer().is_none()).map(|t| t.lwp).collect();
        let mut pointers = HashMap::new();
        if let Some(robust) = missing.first().and_then(|lwp| Robust::find(self, *lwp)) {
            pointers = robust.pointers(self, &missing);
            missing.retain(|lwp| !pointers.contains_key(lwp));
        }
        if !missing.is_empty() {
            let listed = self.listed_pointers().unwrap_or_default();
            pointers.extend(missing.iter().filter_map(|lwp| Some((*lwp, *listed.get(lwp)?))));
        }
        for thread in self.threads.iter_mut().filter(|thread| thread.thread_pointer().is_none()) {
            thread.pointer = pointers.get(&thread.lwp).copied();
        }
    }

    /// Those of all threads that glibc lists, if they are the known ones of threads with registers.
    fn listed_pointers(&self) -> Option<HashMap<i32, Addr>> {
        let source = self.lists();
        let distance = glibc::pointer_distance(&source, self.arch)?;
        let lists = Lists::find(&source, self.arch, false).ok()?;
        // Some may be about to end, or have just begun.
        let most = 2 * self.threads.len() + 64;
        let listed = lists.read(&source, self.arch, most).ok()?;
        let pointers: HashMap<i32, Addr> =
            listed.iter().map(|native| (native.lwp, native.pthread.offset(distance))).collect();
        let fits = |thread: &Thread| thread.thread_pointer().is_none_or(|at| pointers.get(&thread.lwp) == Some(&at));
        self.threads.iter().all(fits).then_some(pointers)
    }
}

/// How far the robust list of a thread lies above its descriptor, in bytes: the same for all threads of a process.
#[derive(Debug, Clone, Copy)]
struct Robust {
    above: u64,
}

impl Robust {
    /// By the thread `lwp` of the process.
    fn find(live: &Live, lwp: i32) -> Option<Robust> {
        let own = live.arch.machine.facts()?.thread_local.own_addresses()?;
        let head = robust_list(lwp)?;
        // A descriptor lies at the end of other data, or of a stack: what is below may be another mapping.
        let first = live.memory.mapping(head)?.start.max(head.0.saturating_sub(MAX_DESCRIPTOR));
        let mut bytes = vec![0; usize::try_from(head.0.checked_sub(first)?).ok()?];
        live.memory.read(Addr(first), &mut bytes).ok()?;
        let width = usize::from(live.arch.pointer_bytes);
        let word = |at: u64| {
            let place = usize::try_from(at.checked_sub(first)?).ok()?;
            Some(live.arch.byte_order.uint(bytes.get(place..place + width)?))
        };
        let is_descriptor = |at: &u64| own.iter().all(|offset| word(at + offset) == Some(*at));
        let mut found = (first..head.0).step_by(width).filter(is_descriptor);
        match (found.next(), found.next()) {
            (Some(at), None) => Some(Robust { above: head.0 - at }),
            _ => None,
        }
    }

    /// The thread pointers of these threads, as far as their descriptors are where they should be.
    fn pointers(self, live: &Live, lwps: &[i32]) -> HashMap<i32, Addr> {
        let Some(own) = live.arch.machine.facts().and_then(|facts| facts.thread_local.own_addresses()) else {
            return HashMap::new();
        };
        let at = |lwp: &i32| Some((*lwp, Addr(robust_list(*lwp)?.0.checked_sub(self.above)?)));
        let mut pointers: HashMap<i32, Addr> = lwps.iter().filter_map(at).collect();
        let width = u64::from(live.arch.pointer_bytes);
        let ranges: Vec<(Addr, u64)> = pointers.values().map(|at| (*at, own.last().unwrap_or(&0) + width)).collect();
        live.memory.prefetch(&ranges);
        let holds = |at: Addr| {
            let mut word = vec![0; usize::from(live.arch.pointer_bytes)];
            live.memory.read(at, &mut word).is_ok().then(|| live.arch.byte_order.uint(&word))
        };
        pointers.retain(|_, at| own.iter().all(|offset| holds(at.offset(*offset)) == Some(at.0)));
        pointers
    }
}

/// Where the kernel keeps the robust list of a thread; `None` if it has none, or it may not be asked for.
fn robust_list(lwp: i32) -> Option<Addr> {
    let (mut head, mut length) = (0u64, 0usize);
    // SAFETY: the kernel writes a pointer and a size to the two places (get_robust_list(2)), which have room for them.
    let done = unsafe { libc::syscall(libc::SYS_get_robust_list, lwp, &raw mut head, &raw mut length) };
    Errno::result(done).ok().map(|_| Addr(head)).filter(|head| !head.is_null())
}
