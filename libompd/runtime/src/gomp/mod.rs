//! GCC's libgomp.
//!
//! libgomp keeps no table of its threads: each has a `gomp_thread` in thread-local storage, and everything else is
//! reached from there. `recover` finds that storage and what else a stripped library gives away, `read` does the
//! reading. A stripped build's offsets come from a profile, cross-checked with what was decoded.

mod front;
mod read;
mod reason;
mod recover;
mod schema;
pub(crate) mod stops;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};

use ompd_layout::profile::ShippedProfiles;
use ompd_layout::{Layout, Origin};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Module, Target};

use crate::entry::{self, Entry, Locking};
use crate::evidence::Naming;
use crate::excerpt::{Excerpt, Focus};
use crate::family::{About, Family, Layouts, Variables};
use crate::gnu_interface;
use crate::gomp::reason::Own;
use crate::icvs::{Kept, texts};
use crate::instance::{self, Basis, Between, FamilyOrigins, LayoutsFrom, Others, Runtime};
use crate::model::{DeeperItems, Fact, Icvs, InstanceInfo, RawSnapshot, Setting};
use crate::owner::{CodeOwner, OwnCode};
use crate::stops::{AtStop, Found, StopPoint, Stops, Values};
use crate::version_text;
use front::Front;
use schema::Structs;

/// The family.
#[derive(Debug)]
pub(crate) struct Libgomp;

pub(crate) static FAMILY: Libgomp = Libgomp;

static ABOUT: About = About {
    name: "gomp",
    libraries: &["libgomp"],
    files: &["libgomp"],
    // Code made by GCC calls it for every region since GCC 4.9, and all later releases export it.
    well_known: "GOMP_parallel",
    has_tools: false,
    registration: None,
    variables: Variables {
        prefix: "GOMP_",
        spins: ("GOMP_SPINCOUNT", "infinity"),
        affinity: &["GOMP_CPU_AFFINITY", "KMP_AFFINITY", "KMP_HW_SUBSET"],
        flag: texts::flag,
    },
    layouts: Layouts {
        schema: &schema::SCHEMA,
        // No struct has a member that depends on the instruction set: builds of GCC 9, 12 and 14 for both were found to agree.
        archs: &["aarch64", "x86_64"],
        prefixes: &["GOACC_", "GOMP_", "acc_", "omp_", "ompc_", "ompx_"],
        large_exports: &[],
    },
    reasons: reason::Own::CODES,
};

impl Family for Libgomp {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Other runtimes, and tools that come before this one, have the entry points for constructs as well. None has the Fortran
    /// routines for arguments of eight bytes, which are here since the first release (`OMP_1.0` in libgomp.map). A static
    /// program has only what it uses; one that opens a region has the function that starts its team.
    fn defined_by(&self, defines: &dyn Fn(&str) -> bool) -> bool {
        defines("GOMP_barrier") && defines("omp_set_dynamic_8_") || defines("gomp_team_start")
    }

    fn origins(&self) -> FamilyOrigins {
        origins()
    }

    fn open(&self, target: &dyn Target, module: &Module, layouts: LayoutsFrom<'_>) -> Box<dyn Runtime> {
        Box::new(Gomp::with(target, module, &origins(), layouts))
    }

    fn icvs(&self) -> Vec<Kept> {
        read::Context::icvs()
    }

    fn stops_of(&self, file: &ElfFile) -> Stops {
        let mut stops = Stops::default();
        stops.add(0, stops::find(file, None));
        stops.add_named(|name| file.symbol(name), &[], NOT_NAMED);
        stops
    }
}

/// Why there are no symbols of OMPD.
pub(crate) const NOT_NAMED: &str = "libgomp has no such symbol";

/// One libgomp in one process.
#[derive(Debug)]
pub struct Gomp {
    info: InstanceInfo,
    own_code: OwnCode,
    structs: Structs,
    distance: Result<Distance, Own>,
    global_icv: Option<(Addr, Origin)>,
    max_active_levels: Option<(Addr, Origin)>,
    default_lock: Option<(Addr, Origin)>,
    atomic_lock: Option<(Addr, Origin)>,
    cancel: Option<(Addr, Origin)>,
    max_task_priority: Option<(Addr, Origin)>,
    available_cpus: Option<(Addr, Origin)>,
    places: Option<(Addr, Origin)>,
    places_len: Option<(Addr, Origin)>,
    def_allocator: Option<(Addr, Origin)>,
    nteams: Option<(Addr, Origin)>,
    teams_thread_limit: Option<(Addr, Origin)>,
    affinity_format: Option<(Addr, Origin)>,
    /// Control variables that are lists, and how many items those have.
    nthreads_list: [Option<(Addr, Origin)>; 2],
    bind_list: [Option<(Addr, Origin)>; 2],
    /// Whether it has events of tasks (GCC 11 and later), where that can be told.
    events: Option<bool>,
    /// What stands in front of it and reports to tools.
    front: Option<Front>,
    /// Itself with other layouts, should memory contradict this one.
    others: Others<Gomp>,
    /// Where it can be stopped, once that was asked for.
    stops: OnceCell<Stops>,
    /// The last look at a whole process has shown that the layout fits.
    fits: AtomicBool,
}

/// The distance from the thread pointer to `gomp_thread`.
#[derive(Debug, Clone, Copy)]
enum Distance {
    /// The dynamic linker leaves it in this word.
    At(Addr),
    /// It is this, in bytes modulo 2^64.
    Of(u64),
}

/// The layouts shipped for this family.
static PROFILES: ShippedProfiles = ShippedProfiles::new(PROFILE_TEXTS, include_str!("profiles/exports.txt"));

const PROFILE_TEXTS: &[&str] = &[
    include_str!("profiles/libgomp-class-c.json"),
    include_str!("profiles/libgomp-class-d.json"),
    include_str!("profiles/libgomp-class-e.json"),
    include_str!("profiles/libgomp-class-f.json"),
    include_str!("profiles/libgomp-class-g.json"),
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
        described: None,
        alternatives: &[
            ["gomp_task_icv.max_active_levels_var", schema::MAX_ACTIVE_LEVELS],
            [schema::TLS_SLOT, schema::TLS_DISTANCE],
        ],
        names: &schema::NAMES,
        only_with: &[
            (schema::DEFAULT_LOCK, "GOMP_critical_start"),
            (schema::ATOMIC_LOCK, "GOMP_atomic_start"),
            (schema::MAX_TASK_PRIORITY, "omp_get_max_task_priority"),
            (schema::AVAILABLE_CPUS, "omp_get_num_procs"),
            (schema::DEF_ALLOCATOR, "omp_get_default_allocator"),
            ("gomp_thread.ts.def_allocator", "omp_get_default_allocator"),
            (schema::NTEAMS, "omp_get_max_teams"),
            (schema::TEAMS_THREAD_LIMIT, "omp_get_teams_thread_limit"),
            (schema::AFFINITY_FORMAT, "omp_get_affinity_format"),
            (schema::PLACES, "omp_get_place_num"),
            (schema::PLACES_LEN, "omp_get_num_places"),
            ("gomp_task_icv.default_device_var", "omp_get_default_device"),
            ("gomp_thread.place", "omp_get_place_num"),
            ("gomp_thread.ts.place_partition_off", "omp_get_partition_place_nums"),
            ("gomp_thread.ts.place_partition_len", "omp_get_partition_num_places"),
        ],
        led_to: &[],
    }
}

impl Gomp {
    pub(crate) fn with(
        target: &dyn Target,
        module: &Module,
        origins: &FamilyOrigins,
        layouts: LayoutsFrom<'_>,
    ) -> Gomp {
        let instance::Resolved { layout, info, basis } =
            instance::resolve(target, module, "GNU libgomp", origins, layouts);
        Gomp { others: Others::of(basis), ..Gomp::of_layout(target, module, origins, layout, info) }
    }

    fn of_layout(
        target: &dyn Target,
        module: &Module,
        origins: &FamilyOrigins,
        layout: Layout,
        info: InstanceInfo,
    ) -> Gomp {
        let front = Front::of(target, origins.profiles);
        let info = InstanceInfo { reports_from: front.as_ref().map(|front| front.base), ..info };
        let own_code = OwnCode::of(module, origins.names, origins.profiles);
        Gomp { front, ..Gomp::bind(module, &layout, info, own_code) }
    }

    /// The same with its code decoded, if what the code says was in the cache.
    fn decoded_anew(&self, target: &dyn Target) -> Option<&Gomp> {
        let make = |module: &Module, layouts: LayoutsFrom<'_>| Gomp::with(target, module, &origins(), layouts);
        self.others.decoded_anew(target, self.info.base, make)
    }

    /// The same without the shipped profile, if one was used.
    fn without_profile(&self, target: &dyn Target) -> Option<&Gomp> {
        let origins = origins();
        let make = |module: &Module, layout, info| Gomp::of_layout(target, module, &origins, layout, info);
        self.others.without_profile(target, &self.info, &origins, make)
    }

    fn bind(module: &Module, layout: &Layout, info: InstanceInfo, own_code: OwnCode) -> Gomp {
        let global = |name| instance::resolve::global(layout, module, name);
        let built_in = layout.global(schema::TLS_DISTANCE).ok().map(Distance::Of);
        let distance = built_in.or_else(|| global(schema::TLS_SLOT).map(|(slot, _)| Distance::At(slot)));
        let program = module.file.as_ref().is_ok_and(|file| file.is_program());
        let why = match program {
            true => Own::ThreadsNotInSymbols,
            false => Own::ThreadsNotInCode,
        };
        Gomp {
            own_code,
            structs: Structs::bind(layout),
            distance: distance.ok_or(why),
            global_icv: global(schema::GLOBAL_ICV),
            max_active_levels: global(schema::MAX_ACTIVE_LEVELS),
            default_lock: global(schema::DEFAULT_LOCK),
            atomic_lock: global(schema::ATOMIC_LOCK),
            cancel: global(schema::CANCEL),
            max_task_priority: global(schema::MAX_TASK_PRIORITY),
            available_cpus: global(schema::AVAILABLE_CPUS),
            places: global(schema::PLACES),
            places_len: global(schema::PLACES_LEN),
            def_allocator: global(schema::DEF_ALLOCATOR),
            nteams: global(schema::NTEAMS),
            teams_thread_limit: global(schema::TEAMS_THREAD_LIMIT),
            affinity_format: global(schema::AFFINITY_FORMAT),
            nthreads_list: [schema::NTHREADS_LIST, schema::NTHREADS_LIST_LEN].map(global),
            bind_list: [schema::BIND_LIST, schema::BIND_LIST_LEN].map(global),
            // A program has only the functions it uses.
            events: (!program && module.file.is_ok()).then(|| module.exports("omp_fulfill_event")),
            info,
            front: None,
            others: Others::of(Basis::default()),
            stops: OnceCell::new(),
            fits: AtomicBool::new(false),
        }
    }

    fn owner(&self, target: &dyn Target, addr: Addr) -> CodeOwner {
        if self.front.as_ref().is_some_and(|front| front.has(target, addr)) {
            return CodeOwner::Runtime;
        }
        self.own_code.owner(target, addr)
    }
}

impl Runtime for Gomp {
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

    fn setting(&self, target: &dyn Target, name: &str) -> Option<Setting> {
        self.fits.load(Ordering::Relaxed).then(|| read::Context::setting(self, target, name))?
    }

    fn icvs_of_task(&self, target: &dyn Target, task: Addr) -> Icvs {
        read::Context::icvs_of_task(self, target, task)
    }

    fn deeper_items(&self, target: &dyn Target, _team: Option<Addr>, level: u32) -> DeeperItems {
        match self.fits.load(Ordering::Relaxed) {
            true => read::Context::deeper_items(self, target, level),
            false => DeeperItems::unknown(instance::NOT_SHOWN_TO_FIT),
        }
    }

    /// `omp_display_env` prints it (env.c, since GCC 4.8).
    fn openmp_version(&self, target: &dyn Target) -> Fact<u32> {
        version_text::openmp_version(target, &self.info, b"_OPENMP = '", Own::VersionNotPrinted.into())
    }

    /// It has none itself.
    fn has_tools(&self) -> bool {
        self.front.is_some()
    }

    fn naming(&self) -> Naming {
        Naming { critical_of, locks_by_waits: true, dependences_by_module: true }
    }

    fn owns_code(&self, target: &dyn Target, addr: Addr) -> bool {
        self.owner(target, addr) == CodeOwner::Runtime
    }

    fn stands_between(&self, target: &dyn Target, addr: Addr) -> Option<Between> {
        let front = self.front.as_ref().filter(|front| front.has(target, addr))?;
        Some(if front.calls_program(addr) { Between::CallsProgram } else { Between::Forwards })
    }

    fn entry(&self, symbol: &str) -> Option<Entry> {
        entry::look_up(gnu_interface::ENTRIES, symbol)
    }

    /// libgomp-plugin.h
    fn drives_device(&self, symbol: &str) -> bool {
        symbol.starts_with("GOMP_OFFLOAD_")
    }

    /// `GOMP_teams_reg` calls its function without a `gomp_team` of its own.
    fn leagues_are_levels(&self) -> bool {
        false
    }

    fn lock_call(&self, symbol: &str) -> Option<Locking> {
        gnu_interface::lock_call(symbol)
    }

    /// `GOMP_parallel` has it inlined: both lead to `gomp_team_end` (parallel.c).
    fn ends_regions(&self) -> Option<&'static str> {
        Some("GOMP_parallel_end")
    }

    fn stops(&self, target: &dyn Target) -> &Stops {
        self.stops.get_or_init(|| {
            let mut stops = Stops::default();
            if let Some(module) = target.modules().iter().find(|module| module.base() == self.info.base) {
                match &module.file {
                    Ok(file) => stops.add(module.bias, stops::find(file, self.structs.task.fn_.offset().ok())),
                    Err(_) => stops.add(module.bias, Found::without_file()),
                }
                stops.add_named(|name| module.symbol(name), &[], NOT_NAMED);
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

    fn not_counted(&self, target: &dyn Target, excerpt: &Excerpt, point: &StopPoint) -> Result<Option<String>, String> {
        self.not_counted_at(target, excerpt, point)
    }

    /// Thread 0 gets there from the function its code called. The others get there from the function their thread began
    /// with (`gomp_thread_start` in team.c). Tasks are executed further in. In a static program nothing shows which
    /// code is the C library's. So the outermost function of libgomp is not known to be outermost; but it has its name.
    fn invokes_region(&self, functions: &[Option<&str>], outermost: bool) -> bool {
        if let Some(invokes) = front::invokes_region(functions) {
            return invokes;
        }
        let first = functions.first().copied().flatten();
        outermost
            || first == Some("gomp_thread_start")
            || first.and_then(|name| self.entry(name)).is_some_and(|e| e.role.opens())
    }
}

/// GCC makes a variable `.gomp_critical_user_NAME` for each named `critical` (gcc/omp-low.cc).
fn critical_of(symbol: &str) -> Option<&str> {
    symbol.trim_start_matches('.').strip_prefix("gomp_critical_user_")
}
