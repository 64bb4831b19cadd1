//! A process that somebody else holds: a debugger, which is asked for memory and for symbols.
//!
//! That is what OMPD's callbacks offer (OpenMP 5.2, section 20.4): no list of modules, none of threads, no registers. Modules are
//! found through the dynamic linker's list of them, threads through the C library's, both in memory. Where the dynamic linker
//! says nothing, the images that hold well-known functions are found by walking down from those to their ELF headers.

mod interface;
mod memory;
mod modules;
mod rebuilt;
mod start;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::arch::Arch;
use crate::environment;
use crate::glibc::{self, Lists};
use crate::live::Surroundings;
use crate::machine::CallSite;
use crate::memory::{Addr, ReadError, read_each};
use crate::module::Module;
use crate::options::OpenOptions;
use crate::thread::{NativeThread, Thread};
use crate::{ProcessInfo, Target, TargetKind};
pub use interface::Debugger;
use memory::Memory;
use modules::LinkMap;
use start::Start;

/// Why a process could not be looked at through a debugger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebuggedError {
    /// Nothing of the process could be found.
    #[error(
        "no program was found in the process: the debugger knows neither the dynamic linker's list of modules \
         (_r_debug) nor any function of an OpenMP runtime"
    )]
    NoImage,
    /// The debugger and the images disagree about the width of a pointer.
    #[error("the debugger says that pointers have {said} bytes, and the program has {found}")]
    Width {
        /// As the debugger says.
        said: u8,
        /// As the ELF headers say.
        found: u8,
    },
}

/// Why there are no registers of a thread that nobody has asked about.
const NOT_OFFERED: &str = "a debugger is not asked for all registers by OMPD's callbacks";

/// A process held by a debugger.
#[derive(Debug)]
pub struct Debugged<D> {
    memory: Memory<D>,
    arch: Arch,
    modules: Vec<Module>,
    link_map: Option<LinkMap>,
    start: Option<Start>,
    threads: Vec<Thread>,
    natives: Vec<NativeThread>,
    /// Where the C library lists its threads; as long as the modules stay.
    lists: Option<Lists>,
    /// System calls whose numbers code shows, by the address behind them; as long as the modules stay.
    call_sites: HashMap<Addr, Option<CallSite>>,
    /// How far thread pointers lie above descriptors, as of the last look.
    distance: Option<u64>,
    info: ProcessInfo,
    issues: Vec<String>,
    options: OpenOptions,
    anchors: Vec<String>,
    thread_issues: Vec<String>,
    /// How much could be read below the ends of stacks when they were searched last.
    stacks: RefCell<HashMap<u64, u64>>,
}

impl<D: Debugger> Debugged<D> {
    /// Looks at the process that `debugger` holds, and finds its modules. Its threads are found by the first
    /// [`look`](Debugged::look). `pointer_bytes` is the size of its pointers as the debugger says; `anchors`
    /// are functions in whose images the caller is interested, should the dynamic linker not tell of any.
    ///
    /// # Errors
    /// [`DebuggedError`].
    pub fn open(
        debugger: D,
        pointer_bytes: u8,
        anchors: &[&str],
        options: &OpenOptions,
    ) -> Result<Debugged<D>, DebuggedError> {
        let memory = Memory::new(debugger);
        let arch = modules::machine(&memory, anchors).ok_or(DebuggedError::NoImage)?;
        if arch.pointer_bytes != pointer_bytes {
            return Err(DebuggedError::Width { said: pointer_bytes, found: arch.pointer_bytes });
        }
        let mut debugged = Debugged {
            memory,
            arch,
            modules: Vec::new(),
            link_map: None,
            start: None,
            threads: Vec::new(),
            natives: Vec::new(),
            lists: None,
            call_sites: HashMap::new(),
            distance: None,
            info: ProcessInfo::default(),
            issues: Vec::new(),
            options: options.clone(),
            anchors: anchors.iter().map(|&name| name.to_owned()).collect(),
            thread_issues: Vec::new(),
            stacks: RefCell::default(),
        };
        debugged.look_modules();
        if debugged.modules.is_empty() { Err(DebuggedError::NoImage) } else { Ok(debugged) }
    }

    /// Forgets what was read: the process may have run. What is asked from now on is read anew. True if modules have come or
    /// gone since.
    pub fn refresh(&mut self) -> bool {
        self.forget();
        self.look()
    }

    /// Forgets what was read and nothing else. Modules and threads are those of the last look: a caller that relies on
    /// them has to check that they are still there.
    pub fn forget(&mut self) {
        self.memory.forget();
        // Also where the debugger offers them for all: a question about one thread does without those of the others.
        for thread in &mut self.threads {
            thread.registers = Err(NOT_OFFERED.to_owned());
        }
    }

    /// True if the thread of the last look still is one, and the same.
    pub fn is_alive(&self, native: NativeThread) -> bool {
        let lwp = self.lists.as_ref().and_then(|lists| lists.lwp(&self.memory, self.arch, native.pthread));
        lwp == Some(native.lwp)
    }

    /// True if it is certain that no module has come since the last look.
    pub fn has_no_new_modules(&self) -> bool {
        match &self.link_map {
            Some(map) => map.has_not_grown(&self.memory, self.arch),
            None => LinkMap::is_unused(&self.memory, self.arch),
        }
    }

    /// Brings modules and threads up to date without forgetting what was read. True if modules have come or gone.
    pub fn look(&mut self) -> bool {
        let changed = self.look_modules();
        self.look_threads();
        changed
    }

    fn look_modules(&mut self) -> bool {
        let link_map = LinkMap::read(&self.memory, self.arch);
        let changed = self.modules.is_empty() || link_map != self.link_map;
        if changed {
            self.issues.clear();
            // What the kernel has put there is not the program's to change, and is large.
            self.start = Start::find(&self.memory, self.arch);
            self.info.main_stack = self.start.as_ref().map(|start| start.stack);
            self.info.environment = match &self.start {
                Some(start) => environment::from_stack(self, |kind| start.auxv(kind)),
                None => environment::Environment::unknown("where the program was started is not known to the debugger"),
            };
            let (memory, arch, start, options) = (&self.memory, self.arch, self.start.as_ref(), &self.options);
            let names = start.map_or_else(Vec::new, |start| start.names(memory, &self.info.environment));
            self.modules = match &link_map {
                Some(map) => map.modules(memory, arch, start, &names, options, &mut self.issues),
                None => modules::of_anchors(memory, arch, (start, &names), &self.anchors, options, &mut self.issues),
            };
            self.info.exe = self.modules.iter().map(|module| &module.path).find(|path| names.contains(*path)).cloned();
            self.link_map = link_map;
            self.lists = None;
            self.call_sites.clear();
        }
        changed
    }

    /// Brings threads up to date, without forgetting what was read.
    pub fn look_threads(&mut self) {
        self.thread_issues.clear();
        let lists = match self.lists.take() {
            Some(lists) => Ok(lists),
            None => Lists::find(&self.memory, self.arch, self.is_static()),
        };
        self.distance = glibc::pointer_distance(&self.memory, self.arch);
        let offered = self.memory.debugger().offers_registers();
        let mut all = if offered { self.memory.debugger().all_registers(self.arch) } else { HashMap::new() };
        if let (Ok(lists), Some(distance)) = (&lists, self.distance) {
            let pointers = all.values().filter_map(|registers| registers.thread_pointer);
            let (low, length) = lists.window(self.arch);
            let descriptors: Vec<_> = pointers.map(|at| (at.back(distance).offset(low), length)).collect();
            self.memory.prefetch(&descriptors);
        }
        let natives = lists.and_then(|lists| {
            let natives = lists.read(&self.memory, self.arch, glibc::MAX_THREADS)?;
            self.lists = Some(lists);
            Ok(natives)
        });
        self.natives = match natives {
            Ok(natives) => natives,
            Err(why) => {
                self.thread_issues.push(why);
                Vec::new()
            }
        };
        let distance = self.distance;
        // Who is not among them runs, or has just come.
        let asked_for_all = !all.is_empty();
        let mut registers = |native: &NativeThread| match all.remove(&native.lwp) {
            Some(registers) => Ok(registers),
            None if asked_for_all => Err(format!("the debugger has no registers of thread {}", native.lwp)),
            None if offered => self.memory.debugger().registers(*native, self.arch),
            None => Err(NOT_OFFERED.to_owned()),
        };
        let thread = |native: &NativeThread| Thread {
            lwp: native.lwp,
            name: None,
            registers: registers(native),
            pointer: distance.map(|distance| native.pthread.offset(distance)),
            signal: 0,
            blocked_signals: None,
        };
        self.threads = self.natives.iter().map(thread).collect();
        self.threads.sort_by_key(|thread| thread.lwp);
        for registers in self.threads.iter_mut().filter_map(|thread| thread.registers.as_mut().ok()) {
            registers.find_number(self.arch, &self.modules, &mut self.call_sites);
            registers.find_call(self.arch, &|addr, buf| self.memory.read(addr, buf).is_ok());
        }
        // Nearly every question is about what threads are in the middle of, and where they began.
        const PART: u64 = 3072;
        let ends = self.used_stacks().flat_map(|used| {
            let outermost = used.end.saturating_sub(PART).max(used.start);
            [(Addr(used.start), PART.min(used.end - used.start)), (Addr(outermost), used.end - outermost)]
        });
        let ends: Vec<_> = ends.collect();
        self.memory.prefetch(&ends);
    }

    /// True if the program has the C library built in.
    fn is_static(&self) -> bool {
        let program = self.modules.iter().find(|module| self.info.exe.as_ref() == Some(&module.path));
        let alone =
            |module: &Module| module.file.as_ref().is_ok_and(|file| file.is_program() && file.needed().is_empty());
        self.link_map.is_none() || program.is_some_and(alone)
    }

    /// Asks for the registers of one thread, where they are not offered for all. True if they are known now.
    pub fn ask_registers(&mut self, lwp: i32) -> bool {
        let (memory, arch) = (&self.memory, self.arch);
        let native = self.natives.iter().find(|native| native.lwp == lwp);
        let Some((native, thread)) = native.zip(self.threads.iter_mut().find(|thread| thread.lwp == lwp)) else {
            return false;
        };
        if thread.registers.as_ref().is_err_and(|why| why == NOT_OFFERED) {
            thread.registers = memory.debugger().registers(*native, arch);
            if let Ok(registers) = &mut thread.registers {
                registers.find_number(arch, &self.modules, &mut self.call_sites);
                registers.find_call(arch, &|addr, buf| memory.read(addr, buf).is_ok());
            }
        }
        thread.registers.is_ok()
    }

    /// Finds words in the stacks that a thread may be on, with what is left there of calls that have returned. The thread's registers
    /// need not be known.
    ///
    /// # Errors
    /// Why not all of the stacks was searched.
    pub fn find_on_stack<T>(&self, lwp: i32, is: impl Fn(u64) -> Option<T>) -> Result<Vec<T>, String> {
        let native =
            self.natives.iter().find(|native| native.lwp == lwp).ok_or("the C library does not list the thread")?;
        let mut found = Vec::new();
        self.find_below(native.pthread, &is, &mut found)?;
        if !native.own_stack {
            let first = self.info.main_stack.ok_or("where the first thread's stack begins is not known")?;
            self.find_below(first, &is, &mut found)?;
        }
        Ok(found)
    }

    /// Finds words below an address, down to where memory cannot be read.
    fn find_below<T>(&self, end: Addr, is: impl Fn(u64) -> Option<T>, found: &mut Vec<T>) -> Result<(), String> {
        const LARGE: u64 = 1 << 20;
        const PAGE: u64 = 1 << 12;
        const MOST: u64 = 64 << 20;
        let width = u64::from(self.arch.pointer_bytes);
        let end = end.0 - end.0 % width;
        let (mut at, mut step) = (end, LARGE);
        // As much as there was at an earlier look is read at once.
        let mut earlier = self.stacks.borrow().get(&end).copied();
        let mut bytes = Vec::new();
        while end - at < MOST {
            // Pieces begin where a page does.
            let length = match earlier {
                Some(length) => length,
                None if at % step == 0 => step,
                None => at % step,
            };
            let Some(low) = at.checked_sub(length) else { break };
            bytes.resize(length as usize, 0);
            if self.memory.ask(Addr(low), &mut bytes).is_ok() {
                // Most of a stack was never used.
                let used = bytes.chunks_exact(PAGE as usize).map(|page| page.iter().any(|byte| *byte != 0));
                let first = used.take_while(|used| !used).count() * PAGE as usize;
                let words = bytes[first..].chunks_exact(width as usize).map(|word| self.arch.byte_order.uint(word));
                found.extend(words.filter_map(&is));
                at = low;
                if earlier.is_some() {
                    step = PAGE;
                }
            } else if earlier.is_none() {
                if step == PAGE {
                    self.stacks.borrow_mut().insert(end, end - at);
                    return Ok(());
                }
                step /= 2;
            }
            earlier = None;
        }
        Err("the stack is too large to look at all of it".to_owned())
    }

    /// True for an address that may lie on the stack of a thread, as far as that shows without a read.
    pub fn may_be_on_stack(&self, addr: Addr) -> bool {
        /// Stacks are larger only where somebody has asked for that.
        const LARGEST: u64 = 64 << 20;
        let ends = self.natives.iter().map(|native| native.pthread).chain(self.info.main_stack);
        ends.map(|end| end.0).any(|end| addr.0 < end && end - addr.0 <= LARGEST)
    }

    /// The part in use of each thread's stack, as far as registers are known. It reaches from the stack pointer to what
    /// lies at the stack's other end. For threads of glibc that is the thread's descriptor (nptl/allocatestack.c). For
    /// the first thread it is what the kernel started the program with.
    fn used_stacks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        /// Farther away it is more likely that the thread is on a stack of the program's own.
        const DEEPEST: u64 = 64 << 20;
        let used = |thread: &Thread| {
            let sp = thread.registers.as_ref().ok()?.sp.0;
            let native = self.natives.iter().find(|native| native.lwp == thread.lwp)?;
            let ends = [Some(native.pthread), self.info.main_stack].into_iter().flatten().map(|end| end.0);
            let end = ends.filter(|end| *end > sp).min().filter(|end| end - sp <= DEEPEST)?;
            Some(sp..end)
        };
        self.threads.iter().filter_map(used)
    }

    /// The debugger.
    pub fn debugger(&self) -> &D {
        self.memory.debugger()
    }

    /// The threads the C library knows.
    pub fn natives(&self) -> &[NativeThread] {
        &self.natives
    }

    /// Why threads may be missing from [`Target::threads`].
    pub fn thread_issues(&self) -> &[String] {
        &self.thread_issues
    }
}

impl<D: Debugger> Target for Debugged<D> {
    fn kind(&self) -> TargetKind {
        TargetKind::Debugged
    }

    fn arch(&self) -> Arch {
        self.arch
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.memory.read(addr, buf).map_err(|why| ReadError { addr, len: buf.len() as u64, why })
    }

    fn prefetch(&self, ranges: &[(Addr, u64)]) {
        self.memory.prefetch(ranges);
    }

    fn read_ranges_into(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        if ranges.len() > 1 {
            self.memory.prefetch(ranges);
        }
        read_each(ranges, bytes, |addr, buf| self.read(addr, buf).is_ok())
    }

    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        let of_modules = self.modules.iter().flat_map(|module| &module.ranges).find(|range| range.contains(&addr.0));
        of_modules.cloned().or_else(|| self.used_stacks().find(|range| range.contains(&addr.0)))
    }

    fn is_shared(&self, addr: Addr) -> Option<bool> {
        self.mapping(addr).map(|_| false)
    }

    // A debugger tells neither.
    fn maps(&self, _: &str) -> bool {
        false
    }

    fn surroundings(&self) -> Option<Surroundings> {
        None
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn pthread_distance(&self) -> Option<u64> {
        self.distance
    }

    fn process(&self) -> &ProcessInfo {
        &self.info
    }

    fn issues(&self) -> &[String] {
        &self.issues
    }
}
