//! Where a debugger can stop a process at the moment something begins or ends, and what is then so.
//!
//! OMPD names places for this (`ompd_bp_parallel_begin` and its like, OpenMP 5.2, section 20.6). Runtimes that have none pass
//! through equivalent instructions, which are found by following the code from functions that are exported. Nothing is found by
//! what its bytes look like.

pub(crate) mod constructs;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ompd_layout::Origin;
use ompd_layout::code::{self, Callee, CodeImage, Limits, Operand, Run, Transfer, TransferKind};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Machine, Registers, Symbol};

use crate::model::{RawSnapshot, RawTeam, Reason};
use crate::model::{TaskId, TeamId};

/// What begins or ends where a debugger stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopEvent {
    /// A parallel region: its team is there, and none of its implicit tasks has begun to work.
    ParallelBegin,
    /// A parallel region: all members of its team have arrived at its end.
    ParallelEnd,
    /// The code of an explicit task is about to be called.
    TaskBegin,
    /// The code of an explicit task has returned.
    TaskEnd,
    /// A thread of the runtime's own, before its first region.
    ThreadBegin,
    /// A thread of the runtime's own, after its last region.
    ThreadEnd,
    /// A thread comes to a barrier of its team, which may be the one at the end of a region.
    BarrierBegin,
    /// A thread comes to a lock that it will acquire.
    LockAcquire,
    /// A thread comes to a `critical` construct.
    CriticalAcquire,
    /// A thread comes to a `taskwait` construct.
    TaskwaitBegin,
    /// A thread comes to a worksharing loop, or to a `sections` construct.
    WorksharingBegin,
    /// A thread comes to a `single` construct.
    SingleBegin,
}

impl StopEvent {
    /// All of them.
    pub const ALL: [StopEvent; 12] = [
        StopEvent::ParallelBegin,
        StopEvent::ParallelEnd,
        StopEvent::TaskBegin,
        StopEvent::TaskEnd,
        StopEvent::ThreadBegin,
        StopEvent::ThreadEnd,
        StopEvent::BarrierBegin,
        StopEvent::LockAcquire,
        StopEvent::CriticalAcquire,
        StopEvent::TaskwaitBegin,
        StopEvent::WorksharingBegin,
        StopEvent::SingleBegin,
    ];

    /// The name of the symbol that OMPD has for it, if it has one.
    pub fn symbol(self) -> Option<&'static str> {
        Some(match self {
            StopEvent::ParallelBegin => "ompd_bp_parallel_begin",
            StopEvent::ParallelEnd => "ompd_bp_parallel_end",
            StopEvent::TaskBegin => "ompd_bp_task_begin",
            StopEvent::TaskEnd => "ompd_bp_task_end",
            StopEvent::ThreadBegin => "ompd_bp_thread_begin",
            StopEvent::ThreadEnd => "ompd_bp_thread_end",
            StopEvent::BarrierBegin
            | StopEvent::LockAcquire
            | StopEvent::CriticalAcquire
            | StopEvent::TaskwaitBegin
            | StopEvent::WorksharingBegin
            | StopEvent::SingleBegin => return None,
        })
    }
}

/// One place to stop at.
#[derive(Debug, Clone)]
pub struct StopPoint {
    /// What begins or ends when a thread gets there. Where there are several for one event, it passes through one of them.
    pub event: StopEvent,
    /// Address of the instruction in the target; the event is before it is executed.
    pub addr: Addr,
    /// True for the symbols of OMPD itself, through which runtimes pass only if they were asked to at their start. Then they pass
    /// through the other places as well.
    pub own: bool,
    /// How it was found: a symbol, or the code.
    pub origin: Origin,
    /// Which place it is, in words.
    pub place: String,
    /// What it takes for a hit to count, where getting there is not enough, in words.
    pub condition: Option<&'static str>,
    /// DWARF numbers of the registers without which less is known there.
    pub registers: Vec<u16>,
    pub(crate) kind: Kind,
}

/// What is known of a thread that is at a place to stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The function that starts a team is about to run: the region's function and the team are its arguments.
    TeamStart,
    /// The last barrier of a team is passed, and its thread 0 is still in it.
    TeamEnd,
    /// A task is about to be called, and its function may be in an operand.
    TaskCall(Option<Operand>),
    /// A task has returned, or there was nothing to call: it has no function.
    TaskReturn,
    /// The thread's current region is the one that begins or ends, and its task has been switched to the implicit one of it.
    InRegion,
    /// The same of a region that one thread executes, where all such that are nested in each other share an implicit task.
    InSerialized,
    /// The runtime's function of a new thread is about to run: the thread's descriptor is its argument.
    Launch,
    /// The thread's region and task are those that the event is about.
    AsRead,
    /// A symbol of OMPD's, reached from several places.
    Named,
}

/// The places of one runtime.
#[derive(Debug, Clone, Default)]
pub struct Stops {
    /// Those that were found.
    pub points: Vec<StopPoint>,
    /// What has no place, or not one for all cases, and why. True: of OMPD's own symbols.
    pub gaps: Vec<(StopEvent, bool, String)>,
}

impl Stops {
    /// The place at this address; of several, an equivalent one rather than OMPD's symbol.
    pub fn at(&self, addr: Addr) -> Option<&StopPoint> {
        let here = || self.points.iter().filter(|point| point.addr == addr);
        here().find(|point| !point.own).or_else(|| here().next())
    }

    /// Adds places of a file to those of a process.
    pub(crate) fn add(&mut self, bias: u64, found: Found) {
        for site in found.sites {
            self.points.push(StopPoint {
                event: site.event,
                addr: Addr(site.at).offset(bias),
                own: false,
                origin: Origin::Code,
                place: site.place,
                condition: site.condition,
                registers: site.registers,
                kind: site.kind,
            });
        }
        self.gaps.extend(found.gaps.into_iter().map(|(event, why)| (event, false, why)));
        self.points.sort_by_key(|point| (point.event, point.own, point.addr));
    }

    /// Adds OMPD's own symbols.
    pub(crate) fn add_named(&mut self, symbol: impl Fn(&str) -> Option<Symbol>, registers: &[u16], absent: &str) {
        for event in StopEvent::ALL {
            let Some(plain) = event.symbol() else { continue };
            match named(event, &symbol) {
                Some(symbol) => self.points.push(StopPoint {
                    event,
                    addr: symbol.addr,
                    own: true,
                    origin: Origin::Symbol,
                    place: format!("entry of {plain}"),
                    condition: Some("the runtime passes through it if it was started with OMP_DEBUG=enabled"),
                    registers: registers.to_vec(),
                    kind: Kind::Named,
                }),
                None => self.gaps.push((event, true, absent.to_owned())),
            }
        }
        self.points.sort_by_key(|point| (point.event, point.own, point.addr));
    }
}

/// OMPD's own symbols in a runtime that passes through them.
#[derive(Debug, Clone, Default)]
pub struct OwnSymbols {
    /// Where the code of each lies.
    pub symbols: Vec<(StopEvent, Range<u64>)>,
}

impl OwnSymbols {
    /// Those that these names lead to.
    pub(crate) fn find(symbol: impl Fn(&str) -> Option<Symbol>) -> OwnSymbols {
        let code = |event| {
            let symbol = named(event, &symbol)?;
            Some((event, symbol.addr.0..symbol.addr.0.saturating_add(symbol.size.max(1))))
        };
        OwnSymbols { symbols: StopEvent::ALL.into_iter().filter_map(code).collect() }
    }

    /// The event of the symbol that has this instruction, and where its code begins.
    pub fn at(&self, pc: Addr) -> Option<(StopEvent, Addr)> {
        let (event, code) = self.symbols.iter().find(|(_, code)| code.contains(&pc.0))?;
        Some((*event, Addr(code.start)))
    }
}

/// A call of one of OMPD's own symbols in the code of a runtime.
#[derive(Debug, Clone)]
pub struct OwnCall {
    /// Where it returns to.
    pub returns: Addr,
    /// What the symbol is for.
    pub event: StopEvent,
    /// The function that calls.
    pub caller: String,
}

/// The calls of OMPD's own symbols in a file, with where they return to in it.
pub(crate) fn own_calls(image: &ElfFile) -> Vec<OwnCall> {
    let branches = Branches::of(image);
    let symbols =
        StopEvent::ALL.into_iter().filter_map(|event| Some((event, named(event, &|name: &str| image.symbol(name))?)));
    let calls_of = |(event, symbol): (StopEvent, Symbol)| {
        let calls = branches.callers(symbol.addr.0).into_iter();
        let calls = calls.filter(|(_, transfer)| matches!(transfer.kind, TransferKind::Call(_)));
        let call = |(entry, transfer): (u64, Transfer)| OwnCall {
            returns: Addr(transfer.next),
            event,
            caller: branches.name(entry),
        };
        calls.map(call).collect::<Vec<_>>()
    };
    symbols.flat_map(calls_of).collect()
}

/// OMPD's symbol for an event, which mostly is a local one, and in some builds one of C++.
fn named(event: StopEvent, symbol: &impl Fn(&str) -> Option<Symbol>) -> Option<Symbol> {
    let plain = event.symbol()?;
    // `void ompd_bp_parallel_begin()` in the Itanium ABI.
    let mangled = format!("_Z{}{plain}v", plain.len());
    [plain, &mangled].into_iter().find_map(symbol).filter(|symbol| !symbol.tls)
}

/// What holds of a thread that is at such a place. What is `None` is as it is read otherwise.
#[derive(Debug, Clone, Default)]
pub struct AtStop {
    /// Why the hit is none of the event, if it is not.
    pub not_counted: Option<String>,
    /// The region that begins or ends.
    pub region: Option<TeamId>,
    /// The task that met it, or the one that begins or ends; the reason if it is not known.
    pub task: Option<Result<TaskId, String>>,
    /// What a snapshot of the memory does not show yet: [`merge::with_stop`](crate::merge::with_stop) adds it.
    pub lacking: Vec<Lacking>,
}

/// What holds at a stop, and the runtime's memory does not show yet.
#[derive(Debug, Clone)]
pub enum Lacking {
    /// Which thread of the kernel's the descriptor is of.
    Lwp {
        /// Address of the descriptor.
        descriptor: Addr,
        /// The thread.
        lwp: i32,
    },
    /// A team that no thread knows yet. It comes last in the snapshot.
    Team(Box<RawTeam>),
    /// The function of a task.
    Function {
        /// The task.
        task: TaskId,
        /// Where its function begins.
        begins: Addr,
    },
}

/// The task that met the construct of which this is an implicit task.
pub(crate) fn encountering(snapshot: &RawSnapshot, implicit: TaskId) -> Result<TaskId, String> {
    let task = snapshot.task(implicit).ok_or("the task was not read")?;
    let none = "its implicit task was generated by none";
    let unknown = || task.generating.why().map_or_else(|| none.to_owned(), Reason::to_string);
    task.generating.flat().ok_or_else(unknown)
}

/// The values of registers by their DWARF numbers, as far as they are known.
pub type Values<'a> = &'a dyn Fn(u16) -> Option<u64>;

/// The values of all registers of a thread.
pub fn values(registers: &Registers) -> impl Fn(u16) -> Option<u64> + '_ {
    |number| registers.get(number)
}

/// DWARF numbers of the registers that arguments are passed in (System V ABI; AAPCS64).
pub(crate) fn argument_register(machine: Machine, number: u8) -> Option<u16> {
    machine.facts()?.registers.arguments.get(usize::from(number)).copied()
}

/// A place in a file.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) event: StopEvent,
    pub(crate) at: u64,
    pub(crate) place: String,
    pub(crate) condition: Option<&'static str>,
    pub(crate) registers: Vec<u16>,
    pub(crate) kind: Kind,
}

impl Site {
    pub(crate) fn new(event: StopEvent, at: u64, kind: Kind, place: impl Into<String>) -> Site {
        Site { event, at, place: place.into(), condition: None, registers: Vec::new(), kind }
    }
}

/// The places of a file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) sites: Vec<Site>,
    pub(crate) gaps: Vec<(StopEvent, String)>,
}

impl Found {
    /// Where the file of the runtime is not at hand.
    pub(crate) fn without_file() -> Found {
        let why = "the file of the runtime is not at hand, and its code is not read from memory";
        Found { sites: Vec::new(), gaps: StopEvent::ALL.into_iter().map(|event| (event, why.to_owned())).collect() }
    }

    pub(crate) fn site(&mut self, site: Site) {
        if !self.sites.iter().any(|known| known.at == site.at && known.event == site.event) {
            self.sites.push(site);
        }
    }

    /// Says so if not everything was looked at.
    pub(crate) fn close(mut self, branches: &Branches<'_>) -> Found {
        if branches.is_exhausted() {
            for event in StopEvent::ALL {
                self.gap(event, "the file has too much code to look at all of it");
            }
        }
        self
    }

    pub(crate) fn gap(&mut self, event: StopEvent, why: impl Into<String>) {
        self.gaps.push((event, why.into()));
    }
}

/// Places of one kind that are looked at; runtimes have a dozen. With each, all branches of the file are gone through.
pub(crate) const MAX_PLACES: usize = 256;
/// Instructions that are executed in all functions together: three times what the largest runtime needs.
const MAX_INSTRUCTIONS: usize = 20_000_000;

/// All calls and jumps of an image, by function.
pub(crate) struct Branches<'a> {
    pub(crate) image: &'a ElfFile,
    functions: BTreeMap<u64, Function>,
    executed: Cell<usize>,
}

struct Function {
    end: u64,
    transfers: Vec<Transfer>,
}

impl<'a> Branches<'a> {
    pub(crate) fn of(image: &'a ElfFile) -> Branches<'a> {
        let mut all = Branches { image, functions: BTreeMap::new(), executed: Cell::new(0) };
        // What is exported calls itself through stubs.
        let mut stubs: BTreeMap<u64, u64> = BTreeMap::new();
        let mut behind_stub = |at: u64| {
            *stubs.entry(at).or_insert_with(|| {
                let name = code::stub_of(image, at);
                name.and_then(|name| CodeImage::symbol(image, &name)).unwrap_or(at)
            })
        };
        for range in code::functions(image) {
            // What lies in a function that cannot be decoded is not met: whoever looks for all of something counts on what is seen.
            let Some(mut transfers) = code::transfers(image, range.clone()) else { continue };
            for transfer in &mut transfers {
                match &mut transfer.kind {
                    TransferKind::Call(to) => *to = behind_stub(*to),
                    TransferKind::Jump(to) if !range.contains(to) => *to = behind_stub(*to),
                    _ => {}
                }
            }
            all.functions.insert(range.start, Function { end: range.end, transfers });
        }
        all
    }

    /// Executes a function symbolically, unless too much has been.
    pub(crate) fn run(&self, entry: u64, limits: &Limits) -> Option<Run> {
        if self.is_exhausted() {
            return None;
        }
        let run = code::run(self.image, entry, limits).ok()?;
        self.executed.set(self.executed.get().saturating_add(run.instructions()).saturating_add(1));
        Some(run)
    }

    /// True if not everything was looked at.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.executed.get() >= MAX_INSTRUCTIONS
    }

    /// True if it is this function of the C library that is called, in another image or, in a static program, in this one.
    pub(crate) fn calls(&self, callee: &Callee, name: &str) -> bool {
        match callee {
            Callee::Named(_) => callee.is(name),
            Callee::Internal(entry) => CodeImage::symbol(self.image, name) == Some(*entry),
            Callee::Pointer(_) => false,
        }
    }

    /// The function around an address.
    pub(crate) fn function(&self, at: u64) -> Option<Range<u64>> {
        let (start, function) = self.functions.range(..=at).next_back()?;
        (at < function.end).then_some(*start..function.end)
    }

    /// What the function that begins there does.
    pub(crate) fn of_function(&self, entry: u64) -> &[Transfer] {
        self.functions.get(&entry).map_or(&[], |function| &function.transfers)
    }

    /// The instruction at an address.
    pub(crate) fn at(&self, at: u64) -> Option<Transfer> {
        let function = self.function(at)?;
        self.of_function(function.start).iter().find(|transfer| transfer.at == at).copied()
    }

    /// Functions and what they do.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Transfer)> {
        self.functions.iter().flat_map(|(entry, function)| function.transfers.iter().map(|transfer| (*entry, transfer)))
    }

    /// Calls of the code at an address, and jumps to it from other functions: entry of the function and the instruction.
    pub(crate) fn callers(&self, of: u64) -> Vec<(u64, Transfer)> {
        let own = self.function(of).map(|range| range.start);
        let to = |from: u64, transfer: &Transfer| match transfer.kind {
            TransferKind::Call(target) => target == of,
            TransferKind::Jump(target) => target == of && Some(from) != own,
            _ => false,
        };
        self.all().filter(|(from, transfer)| to(*from, transfer)).map(|(from, transfer)| (from, *transfer)).collect()
    }

    /// Jumps to an address: a breakpoint behind a call is hit by them without the call.
    pub(crate) fn jumps_to(&self, at: u64) -> Vec<Transfer> {
        self.all()
            .filter(|(_, transfer)| transfer.kind == TransferKind::Jump(at))
            .map(|(_, transfer)| *transfer)
            .collect()
    }

    /// True if an instruction jumps there.
    pub(crate) fn is_jumped_to(&self, at: u64) -> bool {
        !self.jumps_to(at).is_empty()
    }

    /// The call that has just returned whenever this instruction is reached. It stands in front of the instruction.
    /// Between the two the code only leads straight on, and nothing jumps there.
    pub(crate) fn only_from_call(&self, transfer: Transfer) -> Option<u64> {
        let function = self.function(transfer.at)?;
        let before = self.of_function(function.start).iter().take_while(|other| other.at < transfer.at).last()?;
        let calls = matches!(before.kind, TransferKind::Call(_) | TransferKind::CallThrough(_));
        let between = before.next..=transfer.at;
        let entered =
            |(_, other): (u64, &Transfer)| matches!(other.kind, TransferKind::Jump(to) if between.contains(&to));
        (calls && !self.all().any(entered)).then_some(before.at)
    }

    /// True if the instruction comes straight after one of these, and nobody jumps in between.
    pub(crate) fn follows(&self, transfer: Transfer, one_of: &BTreeSet<u64>) -> bool {
        let Some(function) = self.function(transfer.at) else { return false };
        let Some(first) = one_of.range(function.start..transfer.at).next_back() else { return false };
        let straight = |other: &&Transfer| (*first..transfer.at).contains(&other.at);
        let entered = |(_, other): (u64, &Transfer)| matches!(other.kind, TransferKind::Jump(to) if *first < to && to <= transfer.at);
        !self.of_function(function.start).iter().any(|other| straight(&other)) && !self.all().any(entered)
    }

    /// Functions that are called or jumped to from this one, and from those, so many steps on.
    pub(crate) fn reached(&self, entry: u64, steps: usize) -> BTreeSet<u64> {
        let mut all = BTreeSet::from([entry]);
        let mut last = vec![entry];
        for _ in 0..steps {
            let mut next = Vec::new();
            for transfer in last.iter().flat_map(|entry| self.of_function(*entry)) {
                if let TransferKind::Call(target) | TransferKind::Jump(target) = transfer.kind
                    && let Some(function) = self.function(target)
                    && all.insert(function.start)
                {
                    next.push(function.start);
                }
            }
            last = next;
        }
        all
    }

    /// What a function that begins there is called, as far as it has a name.
    pub(crate) fn name(&self, entry: u64) -> String {
        let symbol = self.image.symbol_at(Addr(entry)).map(|(symbol, _)| symbol.name.clone());
        symbol.unwrap_or_else(|| format!("the function at {entry:#x} of the file"))
    }

    /// Addresses of the exported functions whose names begin so.
    pub(crate) fn exported(&self, prefix: &str) -> Vec<(String, u64)> {
        let mut names: Vec<&str> = self.image.exported_names().filter(|name| name.starts_with(prefix)).collect();
        names.sort_unstable();
        names.dedup();
        let entry = |name: &str| Some((name.to_owned(), CodeImage::symbol(self.image, name)?));
        names.into_iter().filter_map(entry).collect()
    }
}
