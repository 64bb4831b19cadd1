//! LLVM's libomp and its twin, Intel's libiomp5.
//!
//! The runtime keeps a table of all its threads, `__kmp_threads`, from which teams, tasks and locks are reached.
//! `recover` finds the table in stripped builds, `read` does the reading. OMPT fields (state, wait id, frames) are
//! not read at all: without a tool attached the runtime leaves garbage in them.

mod described;
mod entries;
pub(crate) mod named;
mod own_settings;
mod read;
mod reason;
mod recover;
mod schema;
mod settings_table;
pub(crate) mod stops;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use ompd_layout::profile::ShippedProfiles;
use ompd_layout::{Layout, Origin};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Module, NativeThread, Registers, Target, TargetExt};

use crate::bind::Slot;
use crate::entry::{self, Entry, Locking};
use crate::evidence::Critical;
use crate::excerpt::{Excerpt, Focus, Known};
use crate::family::{About, Family, Layouts, Variables};
use crate::gnu_interface;
use crate::icvs::{Kept, texts};
use crate::instance::origins::Described;
use crate::instance::{self, Basis, FamilyOrigins, LayoutsFrom, Others, Runtime};
use crate::kmp::reason::Own;
use crate::model::{DeeperItems, Fact, IcvValue, Icvs, InstanceInfo, RawSnapshot, Reason, Setting};
use crate::noted::note;
use crate::owner::{self, CodeOwner, OwnCode};
use crate::stops::{self as places, AtStop, Found, OwnCall, OwnSymbols, StopEvent, StopPoint, Stops, Values};
use crate::version_text;
use schema::Structs;

/// The family.
#[derive(Debug)]
pub(crate) struct Libomp;

pub(crate) static FAMILY: Libomp = Libomp;

static ABOUT: About = About {
    name: "kmp",
    libraries: &["libomp", "libiomp5"],
    files: &["libomp", "libiomp"],
    // Code made by clang and Intel's compilers calls it for every region.
    well_known: "__kmpc_fork_call",
    has_tools: true,
    // `__kmp_register_library_startup`, kmp_runtime.cpp.
    registration: Some("__KMP_REGISTERED_LIB_"),
    variables: Variables {
        prefix: "KMP_",
        spins: ("KMP_BLOCKTIME", "infinite"),
        affinity: &["GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET"],
        flag,
    },
    layouts: Layouts {
        schema: &schema::SCHEMA,
        archs: &[],
        prefixes: &["GOMP_", "__kmp_", "__kmpc_", "kmp_", "kmpc_", "omp_", "ompc_", "ompt_", "ompx_"],
        // Intel's builds describe themselves in a variable of which LLVM's have a dummy of 4 bytes.
        large_exports: &[(described::SYMBOL, described::MIN_SIZE)],
    },
    reasons: reason::Own::CODES,
};

impl Family for Libomp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn defined_by(&self, defines: &dyn Fn(&str) -> bool) -> bool {
        defines(ABOUT.well_known)
    }

    fn origins(&self) -> FamilyOrigins {
        origins()
    }

    fn open(&self, target: &dyn Target, module: &Module, layouts: LayoutsFrom<'_>) -> Box<dyn Runtime> {
        Box::new(Kmp::with(target, module, &origins(), layouts))
    }

    fn icvs(&self) -> Vec<Kept> {
        read::Context::icvs()
    }

    fn stops_of(&self, file: &ElfFile) -> Stops {
        let mut stops = Stops::default();
        stops.add(0, stops::find(file));
        let returns = named::return_register(file.arch().machine);
        stops.add_named(|name| file.symbol(name), returns.as_slice(), NOT_NAMED);
        stops
    }
}

/// `true` and `false`, and the beginnings of other words (`__kmp_str_match_true`).
fn flag(text: &str) -> Option<bool> {
    texts::flag(text).or_else(|| match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "y" | "t" | ".true." | ".t." | "enabled" => Some(true),
        "0" | "off" | "no" | "n" | "f" | ".false." | ".f." | "disabled" => Some(false),
        _ => None,
    })
}

/// Why there are no symbols of OMPD.
pub(crate) const NOT_NAMED: &str = "this build has no symbol of that name left, or was built without support for OMPD";

/// One libomp or libiomp5 in one process.
#[derive(Debug)]
pub struct Kmp {
    info: InstanceInfo,
    base: Addr,
    own_code: OwnCode,
    layout: Layout,
    bias: u64,
    structs: Structs,
    /// A team may have a list of numbers of threads of its own; `None`: whether that is so in this release is not known.
    lists_of_teams: Option<bool>,
    /// Mapped ranges of the C library: the runtime waits through it.
    libc: Vec<std::ops::Range<u64>>,
    /// Itself with other layouts, should memory contradict this one.
    others: Others<Kmp>,
    /// Where it can be stopped, once that was asked for.
    stops: OnceCell<Stops>,
    /// OMPD's own symbols, once a debugger may be at one.
    own: OnceCell<Option<OwnSymbols>>,
    /// It was found to pass through them.
    passes_own: AtomicBool,
    /// Whether a thread may be at a symbol of OMPD's without an enter frame, once somebody has asked.
    enters_unnoted: OnceCell<bool>,
    own_calls: OnceCell<Result<Vec<OwnCall>, String>>,
    /// The last look at a whole process has shown that the layout fits.
    fits: AtomicBool,
}

/// The layouts shipped for this family.
static PROFILES: ShippedProfiles = ShippedProfiles::new(PROFILE_TEXTS, include_str!("profiles/exports.txt"));

const PROFILE_TEXTS: &[&str] = &[
    include_str!("profiles/libomp-11.json"),
    include_str!("profiles/libomp-13.json"),
    include_str!("profiles/libomp-14.json"),
    include_str!("profiles/libomp-15.json"),
    include_str!("profiles/libomp-16.json"),
    include_str!("profiles/libomp-17.json"),
    include_str!("profiles/libomp-18.json"),
    include_str!("profiles/libomp-19.json"),
    include_str!("profiles/libomp-13-aarch64.json"),
    include_str!("profiles/libomp-14-aarch64.json"),
    include_str!("profiles/libomp-15-aarch64.json"),
    include_str!("profiles/libomp-16-aarch64.json"),
    include_str!("profiles/libomp-17-aarch64.json"),
    include_str!("profiles/libomp-18-aarch64.json"),
    include_str!("profiles/libomp-19-aarch64.json"),
    include_str!("profiles/libiomp5-2024.1.json"),
    include_str!("profiles/libiomp5-2024.2.json"),
    include_str!("profiles/libiomp5-2025.0.json"),
    include_str!("profiles/libiomp5-2025.1.json"),
    include_str!("profiles/libiomp5-2025.3.json"),
    include_str!("profiles/libiomp5-2026.0.json"),
    include_str!("profiles/libiomp5-2026.2.json"),
];

/// What the layout of this family can be had from.
pub(crate) fn origins() -> FamilyOrigins {
    FamilyOrigins {
        family: ABOUT.name,
        schema: ABOUT.layouts.schema,
        profiles: &PROFILES,
        costs: schema::COSTS,
        recover: recover::recover,
        decoded: include_str!("profiles/decoded.txt"),
        described: Some(Described { symbol: described::SYMBOL, min_size: described::MIN_SIZE, read: described::read }),
        // The walk over the table ends by the count where the capacity is not known.
        alternatives: &[[schema::ALL_NTH, schema::THREADS_CAPACITY]],
        names: &schema::NAMES,
        only_with: &[
            (schema::NTEAMS, "omp_get_max_teams"),
            (schema::TEAMS_THREAD_LIMIT, "omp_get_teams_thread_limit"),
            (schema::TARGET_OFFLOAD, "__kmpc_get_target_offload"),
            (schema::AFFINITY_FORMAT, "omp_get_affinity_format"),
            ("kmp_base_team.t_nested_nth", schema::SETS_LISTS),
            // No function tells where these are.
            (schema::DISPLAY_AFFINITY, schema::DISPLAY_AFFINITY),
            (schema::TOOL, schema::TOOL),
            (schema::TOOL_LIBRARIES, schema::TOOL_LIBRARIES),
            (schema::TOOL_VERBOSE_INIT, schema::TOOL_VERBOSE_INIT),
            (schema::OMPD_STATE, schema::OMPD_STATE),
            (schema::OPENMP_VERSION, schema::OPENMP_VERSION),
        ],
        led_to: &[("kmp_task_pri", ("kmp_base_task_team", "tt_task_pri_list"))],
    }
}

impl Kmp {
    /// True if the process was started with `OMP_DEBUG=enabled`. The runtime then sets a bit in `ompd_state`, passes
    /// through OMPD's symbols, and keeps what OMPT reports to tools (ompd-specific.cpp). `None` where that variable is
    /// not known.
    fn is_debugged(&self, target: &dyn Target) -> Option<bool> {
        // What was set is not taken back.
        if !self.passes_own.load(Ordering::Relaxed) {
            let (addr, _) = self.global(schema::OMPD_STATE)?;
            let is_set = target.read_uint(addr, 8).ok()? & 1 == 1;
            self.passes_own.store(is_set, Ordering::Relaxed);
        }
        Some(self.passes_own.load(Ordering::Relaxed))
    }

    pub(crate) fn with(target: &dyn Target, module: &Module, origins: &FamilyOrigins, layouts: LayoutsFrom<'_>) -> Kmp {
        let intel = module.symbol(described::SYMBOL).is_some_and(|s| s.size >= described::MIN_SIZE);
        let product = if intel { "Intel libiomp5" } else { "LLVM libomp" };
        let instance::Resolved { layout, info, basis } = instance::resolve(target, module, product, origins, layouts);
        Kmp { others: Others::of(basis), ..Kmp::of_layout(target, module, origins, layout, info) }
    }

    fn of_layout(
        target: &dyn Target,
        module: &Module,
        origins: &FamilyOrigins,
        layout: Layout,
        info: InstanceInfo,
    ) -> Kmp {
        let own_code = OwnCode::of(module, origins.names, origins.profiles);
        Kmp::bind(target, module, layout, info, own_code)
    }

    fn bind(target: &dyn Target, module: &Module, layout: Layout, info: InstanceInfo, own_code: OwnCode) -> Kmp {
        // Before glibc 2.34 the functions for threads are in a library of their own.
        let is_libc = |module: &&Module| module.exports("__libc_start_main") || module.exports("pthread_cond_wait");
        let libc = target.modules().iter().filter(is_libc).flat_map(|module| module.ranges.clone()).collect();
        // A program has only the functions it uses.
        let says = module.file.as_ref().is_ok_and(|file| !file.is_program());
        let sets_lists = says.then(|| module.exports(schema::SETS_LISTS));
        Kmp {
            lists_of_teams: layout.field("kmp_base_team", "t_nested_nth").map_or(sets_lists, |_| Some(true)),
            base: module.base(),
            own_code,
            bias: module.bias,
            structs: Structs::bind(&layout),
            layout,
            libc,
            info,
            others: Others::of(Basis::default()),
            stops: OnceCell::new(),
            own: OnceCell::new(),
            passes_own: AtomicBool::new(false),
            enters_unnoted: OnceCell::new(),
            own_calls: OnceCell::new(),
            fits: AtomicBool::new(false),
        }
    }

    /// The same with its code decoded, if what the code says was in the cache.
    fn decoded_anew(&self, target: &dyn Target) -> Option<&Kmp> {
        let make = |module: &Module, layouts: LayoutsFrom<'_>| Kmp::with(target, module, &origins(), layouts);
        self.others.decoded_anew(target, self.info.base, make)
    }

    /// The same without the shipped profile, if one was used.
    fn without_profile(&self, target: &dyn Target) -> Option<&Kmp> {
        let origins = origins();
        let make = |module: &Module, layout, info| Kmp::of_layout(target, module, &origins, layout, info);
        self.others.without_profile(target, &self.info, &origins, make)
    }

    fn global(&self, name: &'static str) -> Option<(Addr, Origin)> {
        let addr = Addr(self.layout.global(name).ok()?).offset(self.bias);
        note(addr, 0, 0, name);
        Some((addr, self.layout.global_source(name)?.origin))
    }

    /// True in the runtime's module. It waits through the C library, which a program may have built in as well.
    fn may_own(&self, target: &dyn Target, addr: Addr) -> bool {
        owner::is_in(target, self.base, addr)
    }

    /// True for a thread that works, if it certainly executes code of the program. It must not be in a call of an OMPD
    /// symbol at which more holds than memory shows. The runtime notes where it was entered (`enter_frame`) before it
    /// calls such a symbol. There are three exceptions: the begin of a serialized region, the end of an undeferred
    /// task, and calls by functions of GCC's interface.
    fn executes_program(&self, target: &dyn Target, thread: Addr) -> bool {
        let s = &self.structs;
        let read = || -> Result<bool, Reason> {
            let task = target.read_ptr(thread.offset(s.info.current_task.offset()?))?;
            if task.is_null() || !target.read_ptr(task.offset(s.taskdata.enter_frame.offset()?))?.is_null() {
                return Ok(false);
            }
            let team = target.read_ptr(thread.offset(s.info.team.offset()?))?;
            let is_zero = |slot: &Slot| Ok::<_, Reason>(target.read_u32(team.offset(slot.offset()?))? == 0);
            // That of a root counts as serialized.
            Ok(is_zero(&s.team.serialized)? || is_zero(&s.team.level)?)
        };
        self.is_debugged(target) == Some(true) && !self.may_enter_unnoted(target) && read() == Ok(true)
    }

    /// False if no module of the process calls functions that lead to a symbol of OMPD's without an enter frame.
    fn may_enter_unnoted(&self, target: &dyn Target) -> bool {
        const NAMES: [&[u8]; 2] = [b"GOMP_", b"__kmpc_omp_task_complete_if0"];
        *self.enters_unnoted.get_or_init(|| {
            let others = target.modules().iter().filter(|module| module.base() != self.info.base);
            others.filter(|module| !module.name().starts_with("linux-vdso")).any(|module| {
                let names = module.file.as_ref().ok().and_then(|file| file.section(".dynstr"));
                let has = |names: &[u8], name: &[u8]| names.windows(name.len()).any(|part| part == name);
                names.is_none_or(|names| NAMES.iter().any(|name| has(&names, name)))
            })
        })
    }

    fn in_libc(&self, addr: Addr) -> bool {
        self.libc.iter().any(|range| range.contains(&addr.0))
    }
}

impl Runtime for Kmp {
    fn info(&self) -> &InstanceInfo {
        &self.info
    }

    fn snapshot(&self, target: &dyn Target) -> RawSnapshot {
        let plain = || Some(read::snapshot(self.without_profile(target)?, target).0);
        let first = read::snapshot(self, target);
        // Memory counts for more than a cache.
        if first.1.failure().is_some()
            && let Some(decoded) = self.decoded_anew(target)
        {
            return decoded.snapshot(target);
        }
        self.fits.store(first.1.failure().is_none(), Ordering::Relaxed);
        instance::checked(target, first, plain)
    }

    fn excerpt(&self, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
        self.fits.load(Ordering::Relaxed).then(|| read::excerpt(self, target, focus))?
    }

    fn index(&self, target: &dyn Target, natives: &[NativeThread]) -> Option<Vec<Known>> {
        let found = read::index(self, target, natives)?;
        self.fits.store(true, Ordering::Relaxed);
        Some(found)
    }

    fn kept_state(&self, target: &dyn Target, thread: Known, alive: &dyn Fn(Known) -> bool) -> Option<u32> {
        let fits = self.fits.load(Ordering::Relaxed) && self.is_debugged(target) == Some(true);
        fits.then(|| read::kept_state(self, target, thread, alive))?
    }

    fn settings(&self, target: &dyn Target) -> Option<Vec<Setting>> {
        self.fits.load(Ordering::Relaxed).then(|| read::Context::new(self, target).settings())
    }

    fn setting(&self, target: &dyn Target, name: &str) -> Option<Setting> {
        self.fits.load(Ordering::Relaxed).then(|| read::Context::setting(self, target, name))?
    }

    fn own_settings(&self, target: &dyn Target) -> Vec<(&'static str, IcvValue)> {
        own_settings::read(target, self.info.base)
    }

    fn icvs_of_task(&self, target: &dyn Target, task: Addr) -> Icvs {
        read::Context::icvs_of_task(self, target, task)
    }

    fn deeper_items(&self, target: &dyn Target, team: Option<Addr>, level: u32) -> DeeperItems {
        match self.fits.load(Ordering::Relaxed) {
            true => read::Context::deeper_items(self, target, team, level),
            false => DeeperItems::unknown(instance::NOT_SHOWN_TO_FIT),
        }
    }

    fn has_tools(&self) -> bool {
        true
    }

    fn openmp_version(&self, target: &dyn Target) -> Fact<u32> {
        let Some((addr, origin)) = self.global(schema::OPENMP_VERSION) else {
            // `__kmp_version_omp_api` (kmp_version.cpp), which `KMP_VERSION` has printed.
            return version_text::openmp_version(target, &self.info, b" OMP API version: ", Own::NotKept.into());
        };
        match target.read_u32(addr) {
            Ok(version) => Fact::known(version, origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// The compiler makes a variable for each critical: `.gomp_critical_user_NAME.var` (clang), or the same without
    /// `.var` (GCC). On first use the runtime leaves in it a pointer to an entry of its lock table
    /// (`__kmpc_critical_with_hint`). The first member of that entry points to the lock. For some kinds of locks the
    /// variable is the lock.
    fn criticals(&self, target: &dyn Target, wanted: &HashSet<Addr>) -> HashMap<Addr, Critical> {
        let mut criticals = HashMap::new();
        if wanted.is_empty() {
            return criticals;
        }
        for module in target.modules() {
            let Ok(file) = &module.file else { continue };
            for symbol in file.symbols_with_prefix(CRITICAL_PREFIX).filter(|s| !s.tls) {
                let variable = symbol.addr.offset(module.bias);
                let behind = target.read_ptr(variable).and_then(|entry| target.read_ptr(entry)).ok();
                let lock = [Some(variable), behind].into_iter().flatten().find(|lock| wanted.contains(lock));
                if let Some(lock) = lock {
                    criticals.insert(lock, Critical { variable, name: critical_name(&symbol.name).to_owned() });
                }
            }
        }
        criticals
    }

    fn owns_code(&self, target: &dyn Target, addr: Addr) -> bool {
        self.own_code.owner(target, addr) == CodeOwner::Runtime
    }

    /// `__kmpc_fork_call` calls it as well: `__kmp_join_call` (kmp_csupport.cpp, kmp_gsupport.cpp).
    fn ends_regions(&self) -> Option<&'static str> {
        Some("GOMP_parallel_end")
    }

    fn stops(&self, target: &dyn Target) -> &Stops {
        self.stops.get_or_init(|| {
            let mut stops = Stops::default();
            if let Some(module) = target.modules().iter().find(|module| module.base() == self.info.base) {
                match &module.file {
                    Ok(file) => stops.add(module.bias, stops::find(file)),
                    Err(_) => stops.add(module.bias, Found::without_file()),
                }
                let returns = named::return_register(target.arch().machine);
                stops.add_named(|name| module.symbol(name), returns.as_slice(), NOT_NAMED);
            }
            stops
        })
    }

    fn at_stop(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        point: &StopPoint,
        registers: Values<'_>,
    ) -> Result<AtStop, String> {
        self.facts_at(target, snapshot, lwp, point, registers)
    }

    fn not_counted(&self, _: &dyn Target, excerpt: &Excerpt, point: &StopPoint) -> Result<Option<String>, String> {
        Kmp::not_counted_at(excerpt, point)
    }

    fn own_symbols(&self, target: &dyn Target) -> Option<&OwnSymbols> {
        let own = self.own.get_or_init(|| {
            let module = target.modules().iter().find(|module| module.base() == self.info.base)?;
            Some(OwnSymbols::find(|name| module.symbol(name))).filter(|own| !own.symbols.is_empty())
        });
        let own = own.as_ref()?;
        (self.is_debugged(target) != Some(false)).then_some(own)
    }

    fn number_variable(&self, target: &dyn Target) -> Option<&'static str> {
        const NAME: &str = "__kmp_gtid";
        let module = target.modules().iter().find(|module| module.base() == self.info.base)?;
        module.symbol(NAME).filter(|symbol| symbol.tls).map(|_| NAME)
    }

    /// With `OMP_DEBUG=enabled` the runtime keeps the OMPT state of its threads. It is one of working or overhead where tasks and
    /// regions begin and end; from 0x010 to 0x100 are those of waiting.
    fn may_be_at_own_symbol(&self, target: &dyn Target, thread: Addr) -> bool {
        const WAITS: std::ops::RangeInclusive<u32> = 0x010..=0x100;
        const WORKS: u32 = 0x001;
        // That field alone: each byte costs a debugger in Python microseconds.
        let state = self.structs.info.ompt_state.offset().ok().and_then(|at| target.read_u32(thread.offset(at)).ok());
        let Some(state) = state else { return true };
        let is_elsewhere = WAITS.contains(&state) || state <= WORKS && self.executes_program(target, thread);
        !is_elsewhere
    }

    fn own_calls(&self, target: &dyn Target) -> Result<&[OwnCall], String> {
        let calls = self.own_calls.get_or_init(|| {
            let module = target.modules().iter().find(|module| module.base() == self.info.base);
            let module = module.ok_or("the runtime is no longer in the process")?;
            let file = module.file.as_ref().map_err(|_| "the file of the runtime is not at hand")?;
            let mut calls = places::own_calls(file);
            for call in &mut calls {
                call.returns = call.returns.offset(module.bias);
            }
            Ok(calls)
        });
        calls.as_deref().map_err(Clone::clone)
    }

    fn at_own_symbol(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        registers: &Registers,
    ) -> Result<AtStop, String> {
        self.hold_at(target, snapshot, lwp, registers)
    }

    fn at_companions_stop(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        event: StopEvent,
    ) -> Result<AtStop, String> {
        self.hold_at_companions(target, snapshot, lwp, event)
    }

    fn at_own_call(
        &self,
        target: &dyn Target,
        snapshot: &RawSnapshot,
        lwp: i32,
        call: &OwnCall,
    ) -> Result<AtStop, String> {
        self.hold_called_by(&call.caller, target, snapshot, lwp, call.event)
    }

    fn entry(&self, symbol: &str) -> Option<Entry> {
        entry::look_up(entries::ENTRIES, symbol).or_else(|| entry::look_up(gnu_interface::ENTRIES, symbol))
    }

    fn lock_call(&self, symbol: &str) -> Option<Locking> {
        entries::lock_call(symbol)
    }

    /// In programs built by GCC, thread 0 calls the body from the function that opened the region. The others call it
    /// through a wrapper, which has no name in a stripped library (kmp_gsupport.cpp).
    fn invokes_region(&self, functions: &[Option<&str>], _outermost: bool) -> bool {
        match functions {
            [Some(name), ..] => {
                *name == entries::INVOKES_REGIONS
                    || name.contains(entries::WRAPS_BODIES)
                    || entry::look_up(gnu_interface::ENTRIES, name).is_some_and(|e| e.role.opens())
            }
            [None, Some(name), ..] => *name == entries::INVOKES_REGIONS,
            _ => false,
        }
    }
}

/// The name of the critical that a compiler made this variable for. clang makes one for those without a name as well.
fn critical_name(variable: &str) -> &str {
    let name = variable.strip_prefix(CRITICAL_PREFIX).unwrap_or(variable);
    match name.strip_suffix(".var").unwrap_or(name) {
        "" => "unnamed",
        name => name,
    }
}

/// Prefix of the variables compilers make for named criticals (clang/lib/CodeGen/CGOpenMPRuntime.cpp, gcc/omp-low.cc).
const CRITICAL_PREFIX: &str = ".gomp_critical_user_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn criticals_are_called_as_in_the_source() {
        let names = [".gomp_critical_user_gate.var", ".gomp_critical_user_gate", ".gomp_critical_user_.var"];
        assert_eq!(names.map(critical_name), ["gate", "gate", "unnamed"]);
    }
}
