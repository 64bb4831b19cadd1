//! GCC's libgomp.
//!
//! libgomp keeps no table of its threads: each has a `gomp_thread` in thread-local storage, and everything else is
//! reached from there. `recover` finds that storage and what else a stripped library gives away, `read` does the
//! reading. A stripped build's offsets come from a profile, cross-checked with what was decoded.

mod read;
mod recover;
pub mod schema;

use std::sync::OnceLock;

use ompd_layout::Origin;
use ompd_layout::profile::Profile;
use ompd_target::{Addr, Module, Target};

use crate::instance::{self, FamilyOrigins, Runtime};
use crate::model::{Family, InstanceInfo, RuntimeSnapshot, Wait, WaitKind};
use crate::names::Namer;
use schema::Structs;

/// One libgomp in one process.
#[derive(Debug)]
pub struct Gomp {
    info: InstanceInfo,
    base: Addr,
    structs: Structs,
    /// Where the dynamic linker leaves the distance from the thread pointer to `gomp_thread`.
    tls_slot: Result<Addr, String>,
    global_icv: Option<(Addr, Origin)>,
    max_active_levels: Option<(Addr, Origin)>,
    default_lock: Option<(Addr, Origin)>,
    atomic_lock: Option<(Addr, Origin)>,
}

/// The layouts shipped for this family.
pub fn profiles() -> &'static [Profile] {
    static PROFILES: OnceLock<Vec<Profile>> = OnceLock::new();
    PROFILES.get_or_init(|| instance::parse_profiles(PROFILE_TEXTS))
}

const PROFILE_TEXTS: &[&str] = &[
    include_str!("profiles/libgomp-gcc9-x86_64.json"),
    include_str!("profiles/libgomp-gcc10-x86_64.json"),
    include_str!("profiles/libgomp-gcc11-x86_64.json"),
    include_str!("profiles/libgomp-gcc12-x86_64.json"),
    include_str!("profiles/libgomp-gcc13-x86_64.json"),
    include_str!("profiles/libgomp-gcc14-x86_64.json"),
];

/// What the layout of this family can be had from.
pub(crate) fn origins() -> FamilyOrigins {
    FamilyOrigins {
        family: Family::Gomp,
        schema: &schema::SCHEMA,
        profiles: profiles(),
        recover: recover::recover,
        described: None,
        alternatives: &[["gomp_task_icv.max_active_levels_var", schema::MAX_ACTIVE_LEVELS]],
    }
}

impl Gomp {
    /// True if these are the definitions of a libgomp. libomp has them as well: it is to be asked first.
    pub(crate) fn defined_by(defines: impl Fn(&str) -> bool) -> bool {
        // A static program has only what it uses; whoever opens a region has the function that starts its team.
        defines("GOMP_barrier") || defines("gomp_team_start")
    }

    /// True if the module is, or contains, a libgomp.
    pub(crate) fn is_in(target: &dyn Target, module: &Module) -> bool {
        Gomp::defined_by(|name| instance::defines(target, module, name))
            || instance::known_by_build_id(module, profiles())
    }

    /// Finds the layout of the libgomp in `module`.
    pub(crate) fn open(target: &dyn Target, module: &Module) -> Gomp {
        let (layout, info) = instance::resolve(target, module, "GNU libgomp", &origins());
        let global = |name| instance::global(&layout, module, name);
        let tls_slot = global(schema::TLS_SLOT)
            .map(|(slot, _)| slot)
            .ok_or_else(|| "where this libgomp keeps its threads could not be found in its code".to_owned());
        Gomp {
            base: module.base(),
            structs: Structs::bind(&layout),
            tls_slot,
            global_icv: global(schema::GLOBAL_ICV),
            max_active_levels: global(schema::MAX_ACTIVE_LEVELS),
            default_lock: global(schema::DEFAULT_LOCK),
            atomic_lock: global(schema::ATOMIC_LOCK),
            info,
        }
    }

    fn owns(&self, target: &dyn Target, addr: Addr) -> bool {
        instance::is_in(target, self.base, addr)
    }
}

impl Runtime for Gomp {
    fn info(&self) -> &InstanceInfo {
        &self.info
    }

    fn snapshot(&self, target: &dyn Target) -> RuntimeSnapshot {
        read::Reader::snapshot(self, target)
    }

    fn name(&self, target: &dyn Target, snapshot: &mut RuntimeSnapshot) {
        Namer::new(target).name_all(snapshot, name_critical);
    }
}

/// GCC makes a variable `.gomp_critical_user_NAME` for each named `critical` (gcc/omp-low.cc).
fn name_critical(wait: &mut Wait) {
    let Some(name) = wait.name.as_deref() else { return };
    if let Some(critical) = name.trim_start_matches('.').strip_prefix("gomp_critical_user_") {
        wait.name = Some(format!("critical ({critical})"));
        wait.kind = WaitKind::Critical;
    }
}
