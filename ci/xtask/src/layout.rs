//! `cargo xtask layout`: the layout profiles shipped with `ompd-runtime` (`docs/new-runtime-version.md`).

mod check;
mod extract;
mod store;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Subcommand;
use ompd_layout::profile::Profiles;
use ompd_layout::{Facts, Schema};
use ompd_process::elf::ElfFile;
use ompd_runtime::model;

/// What to do.
#[derive(Subcommand)]
pub enum Task {
    /// Add a build to the profiles, from the debug information of a runtime.
    Extract(extract::Arguments),
    /// Tell what is known of runtimes, and compare what their profile, debug information and code say. Fails if any
    /// two contradict each other.
    Check(check::Arguments),
}

/// Runs one task.
pub fn run(task: &Task) -> Result<ExitCode> {
    match task {
        Task::Extract(arguments) => extract::run(arguments).map(|()| ExitCode::SUCCESS),
        Task::Check(arguments) => check::run(arguments),
    }
}

/// What is special about the profiles of one family.
struct Family {
    schema: &'static Schema,
    /// The profiles compiled into this program.
    shipped: fn() -> &'static Profiles,
    /// Instruction sets the layouts hold for beside that of the file they were read from.
    archs: &'static [&'static str],
    /// How public names of the family begin.
    prefixes: &'static [&'static str],
    /// Exports that count only from a number of bytes on.
    large_exports: &'static [(&'static str, u64)],
}

/// libgomp. Its structs have no member that depends on the instruction set: builds of GCC 9, 12 and 14 for both were
/// found to agree.
static GOMP: Family = Family {
    schema: &ompd_runtime::gomp::schema::SCHEMA,
    shipped: ompd_runtime::gomp::profiles,
    archs: &["aarch64", "x86_64"],
    prefixes: &["GOACC_", "GOMP_", "acc_", "omp_", "ompc_", "ompx_"],
    large_exports: &[],
};

/// libomp and libiomp5. Intel's builds describe themselves in a variable of which LLVM's have a dummy of 4 bytes.
static KMP: Family = Family {
    schema: &ompd_runtime::kmp::schema::SCHEMA,
    shipped: ompd_runtime::kmp::profiles,
    archs: &[],
    prefixes: &["GOMP_", "__kmp_", "__kmpc_", "kmp_", "kmpc_", "omp_", "ompc_", "ompt_", "ompx_"],
    large_exports: &[("__kmp_omp_debug_struct_info", 100)],
};

impl Family {
    fn of(family: model::Family) -> &'static Family {
        match family {
            model::Family::Gomp => &GOMP,
            model::Family::Kmp => &KMP,
        }
    }

    /// Where the family's profiles are kept.
    fn folder(&self) -> PathBuf {
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libompd/runtime/src");
        runtime.join(self.schema.family).join("profiles")
    }

    /// Fields of the schema no one gives, as `struct.field`; a struct without any is named alone.
    fn missing(&self, known: &[&Facts]) -> Vec<String> {
        let mut missing = Vec::new();
        for wanted in self.schema.structs {
            let of = wanted.name;
            if !known.iter().any(|f| f.sizes.contains_key(of) || f.fields.contains_key(of)) {
                missing.push(of.to_owned());
                continue;
            }
            let unknown = wanted.fields.iter().filter(|field| known.iter().all(|f| f.field(of, field.name).is_none()));
            missing.extend(unknown.map(|field| format!("{of}.{}", field.name)));
        }
        missing
    }
}

fn open(path: &Path) -> Result<ElfFile> {
    ElfFile::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Number of sizes and fields.
fn count(facts: &Facts) -> usize {
    facts.sizes.len() + facts.fields.values().map(|fields| fields.len()).sum::<usize>()
}
