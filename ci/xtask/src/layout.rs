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
use ompd_layout::Facts;
use ompd_layout::profile::Profiles;
use ompd_process::elf::ElfFile;
use ompd_runtime::family::{Layouts, families, profiles};

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

/// The profiles of one family.
struct Family {
    about: &'static Layouts,
    /// The profiles compiled into this program.
    shipped: &'static Profiles,
}

impl Family {
    /// The family of this name.
    fn of(name: &str) -> Family {
        let about = families().find(|about| about.name == name).expect("a family that is known");
        Family { about: &about.layouts, shipped: profiles(name).expect("it has profiles") }
    }

    /// Where the family's profiles are kept.
    fn folder(&self) -> PathBuf {
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libompd/runtime/src");
        runtime.join(self.about.schema.family).join("profiles")
    }

    /// Fields of the schema no one gives, as `struct.field`; a struct without any is named alone.
    fn missing(&self, known: &[&Facts]) -> Vec<String> {
        let mut missing = Vec::new();
        for wanted in self.about.schema.structs {
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
