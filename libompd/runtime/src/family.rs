//! Families of runtimes: one implementation of OpenMP each, and what descends from it.
//!
//! All knowledge of a family is in its folder. `FAMILIES` lists them, and nothing else in the project does.

use std::fmt;

use ompd_layout::Schema;
use ompd_layout::profile::{Profiles, ShippedProfiles};
use ompd_process::elf::ElfFile;
use ompd_process::{Module, Target};

use crate::icvs::Kept;
pub use crate::icvs::Variables;
use crate::instance::{FamilyOrigins, LayoutsFrom, Runtime};
use crate::model::{Common, NoSource, Reason, Trouble};
use crate::stops::Stops;

/// One family.
pub(crate) trait Family: Sync + fmt::Debug {
    /// What is the same in all its releases.
    fn about(&self) -> &'static About;

    /// True if a file that defines what `defines` says is a runtime of the family. A file that one listed later claims is
    /// that one's.
    fn defined_by(&self, defines: &dyn Fn(&str) -> bool) -> bool;

    /// What layouts of the family can be had from.
    fn origins(&self) -> FamilyOrigins;

    /// Finds the layout of the runtime in `module`.
    fn open(&self, target: &dyn Target, module: &Module, layouts: LayoutsFrom<'_>) -> Box<dyn Runtime>;

    /// The ICVs that the family reads, one by one. Empty if it reads none.
    fn icvs(&self) -> Vec<Kept> {
        Vec::new()
    }

    /// Where a debugger can stop a process that uses the runtime in `file`, by addresses of the file.
    fn stops_of(&self, file: &ElfFile) -> Stops;
}

/// What is the same in all releases of a family.
#[derive(Debug)]
pub struct About {
    /// Its word in reports: the runtime's own prefix, and its folder's name.
    pub name: &'static str,
    /// What its libraries are called by people.
    pub libraries: &'static [&'static str],
    /// How its files are called, unless somebody renamed them.
    pub files: &'static [&'static str],
    /// A function that every program calls which opens regions.
    pub well_known: &'static str,
    /// It implements OMPT, the interface for tools (OpenMP 5.2, chapter 19).
    pub has_tools: bool,
    /// How the names of files in `/dev/shm` begin by which its processes register; the id of the process follows. A process that is
    /// killed leaves its file.
    pub registration: Option<&'static str>,
    /// The variables of the environment it knows.
    pub variables: Variables,
    /// What holds for the layouts shipped for it.
    pub layouts: Layouts,
    /// Its own reasons why values are unknown: codes and words.
    pub reasons: &'static [(&'static str, &'static str)],
}

/// What holds for the layouts shipped for a family: by it they are made from debug information.
#[derive(Debug)]
pub struct Layouts {
    /// What is wanted of a layout.
    pub schema: &'static Schema,
    /// Instruction sets that layouts hold for beside that of the file they were read from.
    pub archs: &'static [&'static str],
    /// How public names of the family begin.
    pub prefixes: &'static [&'static str],
    /// Exports that count only from a number of bytes on.
    pub large_exports: &'static [(&'static str, u64)],
}

/// What every family's names of variables begin with.
const COMMON_PREFIX: &str = "OMP_";

pub(crate) use crate::FAMILIES;

/// What is known of each family, in the order of the table.
pub fn families() -> impl Iterator<Item = &'static About> {
    FAMILIES.iter().map(|family| family.about())
}

/// What each family says of control variables, in the order of the table.
pub fn icvs() -> impl Iterator<Item = (&'static About, Vec<Kept>)> {
    FAMILIES.iter().map(|family| (family.about(), family.icvs()))
}

/// The family of a file, by what the file defines. If several families claim it, the last listed one counts, since
/// runtimes also export the entry points of older ones.
pub(crate) fn of_definitions(defines: impl Fn(&str) -> bool) -> Option<&'static dyn Family> {
    FAMILIES.iter().rev().copied().find(|family| family.defined_by(&defines))
}

/// The family of the runtime in a module, if it is, or contains, one.
pub(crate) fn of_module(target: &dyn Target, module: &Module) -> Option<&'static dyn Family> {
    let is_in = |family: &&&dyn Family| {
        family.defined_by(&|name| defines(target, module, name)) || known_by_build_id(module, family.origins().profiles)
    };
    FAMILIES.iter().rev().find(is_in).copied()
}

/// The layouts shipped for the family of this name.
pub fn profiles(name: &str) -> Option<&'static Profiles> {
    let family = FAMILIES.iter().find(|family| family.about().name == name)?;
    Some(family.origins().profiles.all())
}

/// What names of variables begin with that OpenMP runtimes know: nothing else of an environment is looked at.
pub fn variable_prefixes() -> Vec<&'static str> {
    std::iter::once(COMMON_PREFIX).chain(families().map(|about| about.variables.prefix)).collect()
}

/// Every reason why a value may be unknown, and every trouble: codes and words, families' own last.
pub fn reasons() -> Vec<(&'static str, &'static str)> {
    let own = families().flat_map(|about| about.reasons);
    Reason::CODES.iter().chain(Common::CODES).chain(NoSource::CODES).chain(Trouble::CODES).chain(own).copied().collect()
}

/// Functions that every program calls which uses a runtime of a family: by them a debugger can find the runtime.
pub fn well_known() -> Vec<&'static str> {
    let own = FAMILIES.iter().rev().map(|family| family.about().well_known);
    own.chain(["omp_get_thread_num"]).collect()
}

/// True if a file is probably an OpenMP runtime, going by its name. For hints alone: copies may be called anything.
pub fn is_named_like_a_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    families().flat_map(|about| about.files).any(|file| name.starts_with(file))
}

/// True if the module exports `name`, or is the executable and has it built in.
///
/// Only the executable's whole symbol table is searched: it is needed for names anyway, and other modules either export
/// a runtime or have none.
fn defines(target: &dyn Target, module: &Module, name: &str) -> bool {
    let executable = target.process().exe.as_ref() == Some(&module.path);
    module.exports(name) || (executable && module.symbol(name).is_some())
}

/// True if the module's file is not at hand, but its build-id is that of a shipped layout.
fn known_by_build_id(module: &Module, profiles: &ShippedProfiles) -> bool {
    module.file.is_err() && module.build_id.as_ref().is_some_and(|id| profiles.knows(&id.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family_of(names: &[&str]) -> Option<&'static str> {
        of_definitions(|name| names.contains(&name)).map(|family| family.about().name)
    }

    /// Some exports of each runtime (libgomp.map of GCC 4.4 and 12, exports_so.txt and kmp_gsupport.cpp of LLVM). A
    /// library that comes before a runtime to see its calls has entry points alone.
    #[test]
    #[cfg(all(feature = "gomp", feature = "kmp"))]
    fn entry_points_alone_make_no_runtime() {
        let constructs =
            ["GOMP_barrier", "GOMP_critical_start", "GOMP_parallel_start", "omp_set_dynamic", "omp_set_dynamic_"];
        let with = |own: &[&'static str]| [&constructs[..], own].concat();
        assert_eq!(family_of(&with(&["omp_set_dynamic_8_"])), Some("gomp"));
        assert_eq!(family_of(&with(&["omp_set_dynamic_8_", "GOMP_parallel", "GOMP_offload_register"])), Some("gomp"));
        assert_eq!(family_of(&with(&["__kmpc_fork_call", "__kmpc_global_thread_num"])), Some("kmp"));
        assert_eq!(family_of(&constructs), None);
        assert_eq!(family_of(&["gomp_team_start"]), Some("gomp"));
    }
}
