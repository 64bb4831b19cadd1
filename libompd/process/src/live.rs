//! A running process.
//!
//! Opening only looks (procfs and memory reads); [`Live::stop`] holds all threads, [`Live::resume`] or dropping lets
//! them go. Nothing is written to the target, no signal is sent to it or kept from it. A stop ends some system calls
//! early, such as `epoll_wait` (signal(7)). Threads that sleep in one are left asleep, and read from procfs.

mod cpus;
mod frozen;
pub mod listing;
mod memory;
mod pages;
mod pointers;
mod procdir;
mod reads;
mod sleep;
mod still;
mod surroundings;
mod tracer;
mod unix_socket;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::arch::Arch;
use crate::elf::{DebugSearch, Debuginfod};
use crate::error::OpenError;
use crate::image::{self, Image, Mapping, Via};
use crate::memory::{Addr, ReadError, ReadFault};
use crate::module::Module;
use crate::options::{OpenOptions, Pause};
use crate::thread::{Registers, Syscall, Thread};
use crate::{ProcessInfo, Target, TargetKind};
use memory::{Memory, Times};
use pages::Pages;
use procdir::{ProcDir, Tasks};
pub use reads::ReadWatch;
use sleep::{Sleep, Sparing};
pub use still::StillRead;
use still::Stillness;
pub use surroundings::{Child, Descriptor, DescriptorKind, Holder, Holders, Socket, Surroundings, ThreadState};
use tracer::{ASLEEP, Caught, Resumed, StopError, Tracer, Wanted};

/// PF_KTHREAD in the flags of `/proc/PID/stat` (linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;
/// The vdso is a few pages; more is not read.
const MAX_VDSO: u64 = 256 << 10;

/// Why threads have no registers before they are stopped.
const NOT_YET: &str = "it has not been stopped yet";

/// How the issue begins that some threads could not be left asleep.
const NOT_SPARED: &str = "the calls that these threads slept in";
/// How the issue begins that threads without registers are.
const UNREAD: &str = "the registers of these threads cannot be read";

/// How often a refused stop is tried at most. Another tracer may let go between the refusal and the search for its
/// cause; no other cause would be the true one then.
const MAX_TRIES: u32 = 10;

/// Time between two tries while somebody else traces the process.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);
/// How long one tracer is waited for: an inspection takes less, a debugger stays.
const TRACER_STAYS: Duration = Duration::from_secs(1);
/// How long all of them are.
const TRACERS_STAY: Duration = Duration::from_secs(30);

/// How long threads may take to go back to sleep after a stop, and how often that is looked at.
const ASLEEP_AGAIN: Duration = Duration::from_millis(200);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Who else has traced the process while it was to be stopped.
#[derive(Debug, Default)]
struct OtherTracers {
    first: Option<Instant>,
    /// The last one, and since when.
    last: Option<(i32, Instant)>,
}

impl OtherTracers {
    /// True if this tracer may be expected to let go soon.
    fn is_short(&mut self, tracer: i32) -> bool {
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        let since = match self.last {
            Some((same, since)) if same == tracer => since,
            _ => self.last.insert((tracer, now)).1,
        };
        now - since < TRACER_STAYS && now - first < TRACERS_STAY
    }
}

/// A running process.
pub struct Live {
    process: ProcDir,
    /// Boot-relative start of the process: tells it from a later one with the same id.
    start_time: u64,
    pause: Pause,
    max_pause: Duration,
    arch: Arch,
    memory: Memory,
    modules: Vec<Module>,
    threads: Vec<Thread>,
    info: ProcessInfo,
    issues: Vec<String>,
    tracer: Option<Tracer>,
    /// See [`Live::woken`].
    woken: Vec<i32>,
    /// What all threads slept in when they were last read without a stop, if they did all the time.
    still: Option<Stillness>,
    /// The permission its files have to ask servers, until the first stop.
    debuginfod: Option<Debuginfod>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("pid", &self.process.pid)
            .field("stopped", &self.tracer.is_some())
            .finish_non_exhaustive()
    }
}

impl Live {
    /// Opens the process `pid`, or the process that the thread `pid` belongs to, without stopping it.
    ///
    /// # Errors
    /// [`OpenError`], with the cause of a refusal found out.
    pub fn open(pid: i32, options: &OpenOptions) -> Result<Live, OpenError> {
        let mut issues = Vec::new();
        let process = find_process(pid, options, &mut issues).map_err(|error| match error {
            OpenError::NoSuchProcess { .. } if !options.proc_root.join("self").exists() => {
                OpenError::NoProcfs { proc_root: options.proc_root.clone() }
            }
            error => error,
        })?;
        let pid = process.pid;
        let stat = process.stat().map_err(|e| gone_or(e, pid, "stat"))?;
        if stat.flags & PF_KTHREAD != 0 {
            return Err(OpenError::KernelThread { pid });
        }
        // A main thread may end before the others; then only they still know the address space.
        let view = match stat.state {
            'Z' | 'X' | 'x' => {
                let living = |tid: &i32| process.task_stat(*tid).is_ok_and(|s| !matches!(s.state, 'Z' | 'X' | 'x'));
                let tids = process.tasks().map_err(|e| gone_or(e, pid, "threads"))?;
                let tid = tids.into_iter().find(living).ok_or(OpenError::Zombie { pid })?;
                issues.push(format!("the main thread of process {pid} has ended; its other threads live on"));
                ProcDir::new(&process.root, tid)
            }
            _ => process.clone(),
        };

        let refused = |e: io::Error| match e.kind() {
            io::ErrorKind::PermissionDenied => process.explain_denial(pid),
            _ => gone_or(e, pid, "memory map"),
        };
        let maps = view.maps().map_err(refused)?;
        if maps.is_empty() {
            return Err(OpenError::Zombie { pid }); // On its way out: its memory is given up already.
        }
        let Some(probe) = maps.iter().find(|m| !m.unreadable && m.mapping.path.starts_with('/')) else {
            return Err(OpenError::UnknownMachine { pid });
        };
        let probe = Addr(probe.mapping.start);
        let file = File::open(view.path("mem"));
        if options.force_proc_mem {
            file.as_ref().map_err(|e| refused(io::Error::from(e.kind())))?;
        }
        let no_file = file.is_err();
        let mappings: Vec<Mapping> = maps.iter().map(|m| m.mapping.clone()).collect();
        let memory = Memory::new(view.pid, file.ok(), options.force_proc_mem, maps, Pages::of(&view));
        match memory.read(probe, &mut [0]).map_err(|e| e.why) {
            // The file would open if access were allowed; a page beyond the end of its file is "denied" as well.
            Err(ReadFault::Denied) if no_file => return Err(process.explain_denial(pid)),
            Err(ReadFault::Gone) => return Err(OpenError::NoSuchProcess { pid }),
            _ => {}
        }

        let named: Vec<Mapping> = mappings.iter().filter(|m| m.path.starts_with('/')).cloned().collect();
        let images = image::find_images(&named, &|addr, buf| memory.read(Addr(addr), buf).is_ok());
        let exe = view.exe();
        let main = images.iter().find(|i| Some(&i.path) == exe.as_ref());
        // Without the executable any image tells: all of a process are of one machine.
        let arch = main.into_iter().chain(&images).find_map(|i| i.arch).ok_or(OpenError::UnknownMachine { pid })?;
        let debuginfod = options.debuginfod.then(Debuginfod::default);
        let mut modules: Vec<Module> = Vec::new();
        for image in &images {
            let is_exe = Some(&image.path) == exe.as_ref();
            let paths = candidates(image, is_exe, &view, options);
            let search = DebugSearch { debuginfod: debuginfod.clone(), ..debug_search(image, &view, options) };
            let file = image::open_file(image, &paths, &search);
            if let Some(text) = file.as_ref().ok().filter(|_| is_exe).and_then(|f| image::exe_not_used(options, f)) {
                issues.push(text);
            }
            issues.extend(file.as_ref().ok().and_then(|file| file.refused_sections()));
            if let Err(why) = &file {
                issues.push(format!("{}: the mapped file is not at hand ({})", image.path, why.join("; ")));
            }
            modules.push(Module {
                path: image.path.clone(),
                bias: image.bias,
                ranges: image.ranges.clone(),
                build_id: image.build_id.clone().or_else(|| file.as_ref().ok().and_then(|f| f.build_id().cloned())),
                file,
            });
        }
        modules.extend(read_vdso(&mappings, &memory));
        modules.sort_by_key(Module::base);
        let (groups, mounts) = (process.control_groups().unwrap_or_default(), cpus::mounts());
        let cpus = cpus::usable(&process, &groups, &mounts);
        // Stopped by a tracer is another letter: that tracer is a reason to be refused, later.
        let stopped = stat.state == 'T';
        // The kernel says 0 to those who may not trace the process (proc_pid_stat(5), startstack).
        let main_stack = Some(Addr(stat.startstack)).filter(|addr| !addr.is_null());
        let command = view.command();
        let environment = view.environment();
        let info = ProcessInfo {
            pid: Some(pid),
            exe,
            command,
            stopped,
            frozen: frozen::is_frozen(&groups, &mounts),
            cpus,
            main_stack,
            environment,
            inner_ids: process.inner_ids(),
            ..ProcessInfo::default()
        };
        let start_time = stat.starttime;
        let (pause, max_pause) = (options.pause, options.max_pause);
        let (threads, tracer, woken) = (Vec::new(), None, Vec::new());
        Ok(Live {
            process,
            start_time,
            pause,
            max_pause,
            arch,
            memory,
            modules,
            threads,
            info,
            issues,
            tracer,
            woken,
            still: None,
            debuginfod,
        })
    }

    /// Stops all threads and captures their registers. Does nothing if they are stopped already.
    ///
    /// A process that a job-control stop (SIGSTOP) holds stays stopped after [`Live::resume`]; signals that arrive
    /// meanwhile are delivered then.
    ///
    /// # Errors
    /// [`OpenError`] if a thread cannot be traced, or does not stop within [`OpenOptions::max_pause`]. Everything runs
    /// again then.
    pub fn stop(&mut self) -> Result<(), OpenError> {
        self.hold(HashMap::new())
    }

    /// As [`Live::stop`], for another look right after the last one. Threads that were there then keep the name they
    /// had: reading a thousand names takes longer than all the rest.
    ///
    /// # Errors
    /// As [`Live::stop`].
    pub fn stop_again(&mut self) -> Result<(), OpenError> {
        let names = self.threads.iter().filter_map(|t| Some((t.lwp, t.name.clone()?))).collect();
        self.hold(names)
    }

    /// Changes [`OpenOptions::max_pause`] for the stops that follow.
    pub fn limit_pause(&mut self, max_pause: Duration) {
        self.max_pause = max_pause;
    }

    /// Reads the memory map and the state of the process anew, before another look a while after the last one. False if
    /// what was read of its files is out of date: the process has mapped other code, or its first thread has ended.
    ///
    /// # Errors
    /// The process has ended.
    pub fn renew(&mut self) -> Result<bool, OpenError> {
        let pid = self.process.pid;
        let stat = self.process.stat().map_err(|e| gone_or(e, pid, "stat"))?;
        if stat.starttime != self.start_time {
            return Err(OpenError::NoSuchProcess { pid });
        }
        let tid = self.memory.tid();
        let Ok(maps) = ProcDir::new(&self.process.root, tid).maps() else { return Ok(false) };
        if maps.is_empty() || tid == pid && matches!(stat.state, 'Z' | 'X' | 'x') {
            return Ok(false);
        }
        self.info.stopped = stat.state == 'T';
        Ok(self.memory.remap(maps))
    }

    /// Stops all threads. `names` are those of threads that are known already.
    fn hold(&mut self, mut names: HashMap<i32, String>) -> Result<(), OpenError> {
        if self.tracer.is_some() {
            return Ok(());
        }
        let pid = self.process.pid;
        // Nothing slow happens while the target is held: no server is asked, and names are read before.
        if let Some(servers) = &self.debuginfod {
            servers.close();
        }
        let tids = self.process.tasks().map_err(|e| gone_or(e, pid, "threads"))?;
        let sparing = Sparing::of(self.arch.machine);
        let rewinds = self.arch.machine.facts().is_some_and(|facts| facts.kernel_set.rewound.is_some());
        let look = |tasks: &mut Tasks, tid| {
            let name = (!names.contains_key(&tid)).then(|| tasks.name(tid)).flatten();
            let call = rewinds.then(|| Sleep::call_of(tasks, tid)).flatten();
            (sparing.sleep_among(&self.process, tasks, tid).is_some(), name, call)
        };
        let seen = Tasks::ask_all(&self.process, &tids, look).map_err(|e| gone_or(e, pid, "threads"))?;
        let mut sleepers = HashSet::new();
        let mut calls = HashMap::new();
        for (tid, (sleeps, name, call)) in tids.into_iter().zip(seen) {
            sleepers.extend(sleeps.then_some(tid));
            calls.extend(call.map(|call| (tid, call)));
            names.extend(name.map(|name| (tid, name)));
        }
        // Without registers, only the C library says which thread of the runtime's a thread is.
        let sleepers = if sleepers.is_empty() || self.knows_pointers(sleepers.iter().copied()) {
            sleepers
        } else {
            self.not_spared(sleepers)
        };
        self.memory.prepare();
        let (begun, tracer, mut caught) = self.trace(&sleepers, &sparing, &HashSet::new())?;
        // What is held now cannot end and be replaced, nor execute another program; but it might have been before.
        if let Err(other) = self.check_same() {
            drop(tracer);
            return Err(other);
        }
        self.still = None;
        caught.sort_by_key(|caught| caught.lwp);
        let thread = |Caught { lwp, registers, blocked_signals }| {
            let name = names.get(&lwp).cloned();
            Thread { lwp, name, registers, pointer: None, signal: 0, blocked_signals }
        };
        self.threads = caught.into_iter().map(thread).collect();
        self.note_unread();
        self.info.handled_signals = self.process.status().ok().map(|status| status.sigcgt);
        self.hold_memory(begun);
        self.find_calls();
        self.begin_calls(&calls);
        if self.threads.iter().any(|thread| thread.thread_pointer().is_none()) {
            self.find_pointers();
        }
        self.tracer = Some(tracer);
        Ok(())
    }

    /// Stops all threads but those of `left`, and those of `sleepers` that `sparing` leaves asleep. When that began, and what was caught.
    fn trace(
        &self,
        sleepers: &HashSet<i32>,
        sparing: &Sparing,
        left: &HashSet<i32>,
    ) -> Result<(Instant, Tracer, Vec<Caught>), OpenError> {
        let pid = self.process.pid;
        let mut denied = 0;
        let mut others = OtherTracers::default();
        loop {
            let begun = Instant::now();
            let wanted = Wanted {
                process: self.process.clone(),
                arch: self.arch,
                max_wait: self.max_pause / 4 * 3,
                max_pause: self.max_pause,
                sleepers: sleepers.clone(),
                sparing: sparing.clone(),
                left: left.clone(),
            };
            match Tracer::stop(wanted) {
                Ok((tracer, caught)) => return Ok((begun, tracer, caught)),
                Err(StopError::Refused { tid }) => match self.process.explain_denial(tid) {
                    OpenError::Denied { .. } if denied < MAX_TRIES => {
                        denied += 1;
                        std::thread::sleep(BETWEEN_TRIES);
                    }
                    OpenError::OtherTracer { tracer, .. } if others.is_short(tracer) => {
                        denied = 0;
                        std::thread::sleep(BETWEEN_TRIES);
                    }
                    error => return Err(error),
                },
                Err(StopError::Late { tid, state, waited }) => {
                    return Err(OpenError::NotStopped { pid, tid, state, waited });
                }
                Err(StopError::Lost { tid, refused }) => {
                    // Another thread of it may have executed a program, and have this id now.
                    self.check_same()?;
                    return Err(OpenError::Lost { pid, tid, source: refused.into() });
                }
                Err(StopError::Gone) => return Err(OpenError::NoSuchProcess { pid }),
                Err(StopError::Io(what, source)) => return Err(OpenError::Io { what: what.into(), source }),
            }
        }
    }

    /// From now on the process is held, or was begun to be: its memory is read for so long.
    fn hold_memory(&mut self, begun: Instant) {
        self.memory.hold(self.times(begun));
    }

    /// Until when it may be held.
    fn times(&self, begun: Instant) -> Times {
        Times { late: begun + self.max_pause / 8 * 7, over: begun + self.max_pause }
    }

    /// An error if the process is not the one that was opened, or executes another program.
    fn check_same(&self) -> Result<(), OpenError> {
        let pid = self.process.pid;
        let stat = self.process.stat().ok().filter(|stat| stat.starttime == self.start_time);
        let Some(stat) = stat else { return Err(OpenError::NoSuchProcess { pid }) };
        match self.info.main_stack {
            Some(main_stack) if stat.startstack != main_stack.0 => Err(OpenError::Executed { pid }),
            _ => Ok(()),
        }
    }

    /// Finds out which system calls threads are in, where only the code tells.
    fn find_calls(&mut self) {
        for registers in self.threads.iter_mut().filter_map(|thread| thread.registers.as_mut().ok()) {
            registers.find_call(self.arch, &|addr, buf| self.memory.read(addr, buf).is_ok());
        }
    }

    /// Threads that slept in a system call before the stop, and are at the instruction that makes the same call now, were in it: the
    /// kernel has put them back. Without that, they may be about to make it.
    fn begin_calls(&mut self, calls: &HashMap<i32, Syscall>) {
        for thread in &mut self.threads {
            let Ok(Registers { syscall: Some(call), .. }) = &mut thread.registers else { continue };
            let before = calls.get(&thread.lwp);
            call.begun |= before.is_some_and(|before| (before.number, before.args) == (call.number, call.args));
        }
    }

    /// Threads that are stopped though that ends their calls: said once.
    fn not_spared(&mut self, sleepers: HashSet<i32>) -> HashSet<i32> {
        let mut lwps: Vec<i32> = sleepers.into_iter().collect();
        lwps.sort_unstable();
        let text = format!(
            "the calls that these threads slept in were ended early by the stop, with EINTR (the C library does not say where they keep \
             their thread-local variables): {lwps:?}"
        );
        if !self.issues.iter().any(|issue| issue.starts_with(NOT_SPARED)) {
            self.issues.push(text);
        }
        HashSet::new()
    }

    /// Threads that stopped in this look, and whose registers could not be read all the same.
    fn note_unread(&mut self) {
        let unread = |thread: &Thread| {
            let why = thread.registers.as_ref().err().filter(|why| *why != ASLEEP && *why != still::RAN)?;
            Some((thread.lwp, why.clone()))
        };
        let (lwps, reasons): (Vec<i32>, Vec<String>) = self.threads.iter().filter_map(unread).unzip();
        self.issues.retain(|issue| !issue.starts_with(UNREAD));
        self.issues.extend(reasons.first().map(|why| format!("{UNREAD} ({why}): {lwps:?}")));
    }

    /// Lets all threads run on, and gives how long they were held; `None` if they were not. The registers captured stay
    /// available; memory read from now on is that of a running process.
    pub fn resume(&mut self) -> Option<Duration> {
        let pause = self.let_go()?;
        self.memory.release();
        Some(pause)
    }

    /// As [`Live::resume`], but until [`Live::end_copy`] memory is still that of the stop: what the look before had read was copied.
    pub fn resume_with_copy(&mut self) -> Option<Duration> {
        let pause = self.let_go()?;
        self.memory.run_on();
        Some(pause)
    }

    fn let_go(&mut self) -> Option<Duration> {
        let Resumed { pause, woken } = self.tracer.take()?.resume();
        self.woken = woken;
        for thread in self.threads.iter_mut().filter(|t| t.name.is_none()) {
            thread.name = self.process.task_name(thread.lwp);
        }
        Some(pause)
    }
}

impl Live {
    /// True if a stop copies what the look before it has read, so that the process may run again at once.
    pub fn has_plan(&self) -> bool {
        self.memory.has_plan()
    }

    /// True if the look before has shown neither what a stop has to copy, nor that it is too much.
    pub fn needs_rehearsal(&self) -> bool {
        self.memory.needs_rehearsal()
    }

    /// Reads the process while it runs, only to learn what is to be copied in the next stop: what is read may be torn. It is late
    /// ([`Target::is_late`]) once that is too much to be copied.
    pub fn rehearse<T>(&mut self, read: impl FnOnce(&Live) -> T) {
        if self.tracer.is_some() {
            return;
        }
        let thread = |lwp| Thread {
            lwp,
            name: None,
            registers: Err(NOT_YET.to_owned()),
            pointer: None,
            signal: 0,
            blocked_signals: None,
        };
        self.threads = self.process.tasks().unwrap_or_default().into_iter().map(thread).collect();
        self.memory.rehearse();
        self.find_pointers();
        drop(read(self));
        self.memory.release();
    }

    /// Ends what [`Live::resume_with_copy`] has begun. False if something was read that had not been copied in the stop: it is of
    /// another moment than the rest.
    pub fn end_copy(&mut self) -> bool {
        self.memory.release()
    }

    /// While `read` reads, nothing is noted for the next stop. For what lies elsewhere each time.
    pub fn unplanned<T>(&self, read: impl FnOnce(&Live) -> T) -> T {
        self.memory.unplanned(|| read(self))
    }

    /// Threads that the last stop left asleep, and that have run before [`Live::resume`]: what was read is not of one moment.
    pub fn woken(&self) -> &[i32] {
        &self.woken
    }

    /// True if something was not read in the last stop because the process had been held for too long.
    pub fn was_cut_short(&self) -> bool {
        self.memory.was_cut_short()
    }

    /// Reads the process while it runs, if all its threads sleep where the last stop has met them. What is read then is of one moment
    /// as in a stop, apart from what other processes or the kernel write; it is kept. `None` if a thread does not sleep, or has moved
    /// meanwhile. The registers of that stop hold.
    pub fn read_asleep<T>(&self, read: impl FnOnce(&Live) -> T) -> Option<T> {
        let deadline = Instant::now() + ASLEEP_AGAIN;
        let before = loop {
            if let Some(asleep) = self.all_asleep() {
                break asleep;
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        };
        self.memory.keep();
        let found = read(self);
        self.memory.release();
        (self.all_asleep()? == before).then_some(found)
    }

    /// What each thread sleeps in; `None` if there are others than in the last stop, or one does not sleep where it was then.
    fn all_asleep(&self) -> Option<HashMap<i32, Sleep>> {
        let mut tids = self.process.tasks().ok()?;
        tids.sort_unstable();
        if self.tracer.is_some() || !tids.iter().eq(self.threads.iter().map(|thread| &thread.lwp)) {
            return None;
        }
        let mut tasks = Tasks::of(&self.process).ok()?;
        let sleep = |thread: &Thread| {
            let registers = thread.registers.as_ref().ok()?;
            let sleep = Sleep::of(&mut tasks, thread.lwp)?;
            (sleep.pc == registers.pc && sleep.sp == registers.sp).then_some((thread.lwp, sleep))
        };
        self.threads.iter().map(sleep).collect()
    }

    /// Processor time each thread of the process has used up to now, by kernel thread id (proc_pid_schedstat(5)).
    /// Threads whose time is unknown are left out.
    pub fn cpu_times(&self) -> HashMap<i32, Duration> {
        let tids = self.process.tasks().unwrap_or_default();
        tids.into_iter().filter_map(|tid| Some((tid, self.process.task_cpu_time(tid)?))).collect()
    }
}

impl Target for Live {
    fn kind(&self) -> TargetKind {
        TargetKind::Live
    }

    fn arch(&self) -> Arch {
        self.arch
    }

    fn prefetch(&self, ranges: &[(Addr, u64)]) {
        self.memory.prefetch(ranges);
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.memory.read(addr, buf)
    }

    fn read_ranges_into(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        self.memory.read_ranges_into(ranges, bytes)
    }

    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.memory.mapping(addr)
    }

    fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.memory.in_use(range)
    }

    fn is_late(&self) -> bool {
        self.memory.is_late()
    }

    fn is_shared(&self, addr: Addr) -> Option<bool> {
        self.memory.is_shared(addr)
    }

    fn maps(&self, path: &str) -> bool {
        self.memory.maps(path)
    }

    fn surroundings(&self) -> Option<Surroundings> {
        Some(Surroundings::of(&self.process))
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn process(&self) -> &ProcessInfo {
        &self.info
    }

    fn issues(&self) -> &[String] {
        &self.issues
    }
}

fn gone_or(e: io::Error, pid: i32, what: &str) -> OpenError {
    match e.raw_os_error() {
        Some(nix::libc::ENOENT | nix::libc::ESRCH) => OpenError::NoSuchProcess { pid },
        _ => OpenError::Io { what: format!("{what} of process {pid}"), source: e },
    }
}

/// The process that `pid` or the thread of that id belongs to.
fn find_process(pid: i32, options: &OpenOptions, issues: &mut Vec<String>) -> Result<ProcDir, OpenError> {
    let asked = ProcDir::new(&options.proc_root, pid);
    let status = asked.status().map_err(|e| gone_or(e, pid, "status"))?;
    let process = match status.tgid {
        tgid if tgid == pid => asked,
        tgid => {
            issues.push(format!("{pid} is a thread of process {tgid}, which is shown"));
            ProcDir::new(&options.proc_root, tgid)
        }
    };
    // System calls take ids of this namespace. A procfs from elsewhere would name one process here and show another.
    if options.proc_root != Path::new("/proc") {
        let start = |root: &Path| ProcDir::new(root, process.pid).stat().map(|s| (s.starttime, s.comm)).ok();
        if start(&options.proc_root) != start(Path::new("/proc")) {
            return Err(OpenError::OtherNamespace { pid, proc_root: options.proc_root.clone() });
        }
    }
    Ok(process)
}

/// Where the file behind `image` may be opened, surest way first.
fn candidates(image: &Image, is_exe: bool, view: &ProcDir, options: &OpenOptions) -> Vec<(PathBuf, Via)> {
    let mut paths = Vec::new();
    if let Some(exe) = options.exe.as_ref().filter(|_| is_exe) {
        paths.push((exe.clone(), Via::User));
    }
    paths.extend(image::below_lib_root(&image.path, options));
    paths.push((view.path(&format!("map_files/{:x}-{:x}", image.first.start, image.first.end)), Via::Kernel));
    if is_exe {
        paths.push((view.path("exe"), Via::Kernel));
    }
    paths.push((image::below(&view.path("root"), &inside(&view.path("root"), &image.path)), Via::Name));
    paths.push((PathBuf::from(&image.path), Via::Name));
    paths
}

/// A path of the process as itself names it. After chroot(2) the kernel shows it with the new root in front, as far as
/// that is known here.
fn inside(root: &Path, path: &str) -> String {
    let below =
        std::fs::read_link(root).ok().and_then(|root| Path::new(path).strip_prefix(&root).ok().map(PathBuf::from));
    below.map_or_else(|| path.to_owned(), |below| Path::new("/").join(below).to_string_lossy().into_owned())
}

fn debug_search(image: &Image, view: &ProcDir, options: &OpenOptions) -> DebugSearch {
    let target_dir = Path::new(&inside(&view.path("root"), &image.path)).parent().map(Path::to_path_buf);
    let mut search = DebugSearch { debug_dirs: options.debug_dirs.clone(), target_dir, ..DebugSearch::default() };
    let mut roots: Vec<PathBuf> = options.lib_root.iter().cloned().collect();
    // In a container the debug files are in the container; otherwise its root is ours and is searched once.
    let place = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino())).ok();
    let root = view.path("root");
    if place(&root.join(".")) != place(Path::new("/")) {
        roots.push(root);
    }
    if let Some(dir) = &search.target_dir {
        search.file_dirs = roots.iter().map(|r| image::below(r, &dir.to_string_lossy())).collect();
        search.file_dirs.push(dir.clone());
    }
    search.debug_dirs.extend(roots.iter().map(|r| r.join("usr/lib/debug")));
    search.roots = roots;
    search
}

fn read_vdso(mappings: &[Mapping], memory: &Memory) -> Option<Module> {
    let map = mappings.iter().find(|m| m.path == "[vdso]")?;
    let mut bytes = vec![0; (map.end - map.start).min(MAX_VDSO) as usize];
    memory.read(Addr(map.start), &mut bytes).ok()?;
    Module::vdso(map.start, bytes)
}

#[cfg(test)]
mod tests {
    use super::inside;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_of_a_process_after_chroot_are_looked_for_below_its_root() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = |name: &str, to: &str| {
            let link = directory.path().join(name);
            symlink(to, &link).expect("a link");
            link
        };
        let jail = root("jail", "/srv/jail");
        assert_eq!(inside(&jail, "/srv/jail/usr/lib/libgomp.so.1"), "/usr/lib/libgomp.so.1");
        // A file from outside, which was open before.
        assert_eq!(inside(&jail, "/srv/jailed/program"), "/srv/jailed/program");
        assert_eq!(inside(&root("whole", "/"), "/usr/bin/program"), "/usr/bin/program");
        assert_eq!(inside(&directory.path().join("none"), "/usr/bin/program"), "/usr/bin/program");
    }
}
