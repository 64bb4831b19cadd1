//! `cargo xtask layout`: layout profiles from the DWARF of a runtime.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use ompd_layout::profile::{ExportView, Fingerprint, Profile};
use ompd_layout::{Facts, Schema, dwarf};
use ompd_target::elf::ElfFile;

/// What to do.
#[derive(Subcommand)]
pub enum Task {
    /// Write a profile from the debug information of a runtime.
    Extract(Extract),
}

/// Arguments of `layout extract`.
#[derive(Args)]
pub struct Extract {
    /// The runtime, an ELF file with DWARF (or with a separate debug file that is found).
    elf: PathBuf,
    /// Runtime family; by default told from the exported functions.
    #[arg(long)]
    family: Option<FamilyName>,
    /// Name of the profile, and of its file; by default that of the ELF file.
    #[arg(long)]
    name: Option<String>,
    /// Which build this is, in words.
    #[arg(long)]
    made_from: String,
    /// A stripped build of the same source whose build-id is to be listed. It has to have the same fingerprint.
    #[arg(long)]
    fits: Vec<PathBuf>,
    /// Where to write the profile; by default standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum FamilyName {
    Gomp,
    Kmp,
}

/// How builds of one family are told apart: exported functions that came with one major version each. Present ones
/// become conditions, and so do absent ones.
struct Family {
    schema: &'static Schema,
    /// Exported by every member of the family and by no other.
    known_by: &'static str,
    markers: &'static [&'static str],
}

/// libgomp; from GCC 9, 10, 11, 12, 13, 14 on. Builds for musl have no symbol versions, so functions it is.
const GOMP: Family = Family {
    schema: &ompd_runtime::gomp::schema::SCHEMA,
    known_by: "GOMP_parallel",
    markers: &[
        "omp_pause_resource",
        "acc_attach",
        "omp_fulfill_event",
        "omp_display_env",
        "omp_in_explicit_task",
        "GOMP_is_alloc",
    ],
};

/// libomp; from LLVM 11, 13, 14, 15, 16, 17, 18, 19, 21, 22, 23 on. The last three only Intel's library has, which
/// mixes features of several LLVM releases with a layout of its own (the very last also LLVM 16 and later).
const KMP: Family = Family {
    schema: &ompd_runtime::kmp::schema::SCHEMA,
    known_by: "__kmpc_fork_call",
    markers: &[
        "GOMP_loop_nonmonotonic_dynamic_start",
        "__kmpc_masked",
        "__kmpc_scope",
        "__kmpc_copyprivate_light",
        "__kmpc_fork_call_if",
        "__kmpc_process_loop_nest_rectang",
        "__kmpc_set_thread_limit",
        "__kmpc_dispatch_deinit",
        "omp_get_memspace_num_resources",
        "omp_get_uid_from_device",
        "omp_cgroup_mem_space",
        "__kmpc_get_timestamp",
        "__kmpc_get_current_task",
        "__kmp_omp_debug_struct_info",
    ],
};

/// Runs one task.
pub fn run(task: &Task) -> Result<()> {
    match task {
        Task::Extract(arguments) => extract(arguments),
    }
}

fn extract(arguments: &Extract) -> Result<()> {
    let file = open(&arguments.elf)?;
    // libomp exports the entry points of libgomp too, so it is asked first.
    let family = match arguments.family {
        Some(FamilyName::Gomp) => &GOMP,
        Some(FamilyName::Kmp) => &KMP,
        None => match [&KMP, &GOMP].into_iter().find(|f| file.exports(f.known_by)) {
            Some(family) => family,
            None => bail!("{} is no OpenMP runtime: say --family", arguments.elf.display()),
        },
    };
    let mut facts = dwarf::extract_elf(&file, family.schema)?;
    ensure!(!facts.fields.is_empty(), "none of the {} structs is in the debug information", family.schema.family);
    report_missing(family.schema, &facts);
    // Addresses move with every build, and the builds listed are others.
    facts.globals.clear();

    let mut fingerprint = Fingerprint::default();
    for marker in family.markers {
        let list = if file.exports(marker) { &mut fingerprint.exports } else { &mut fingerprint.no_exports };
        list.push((*marker).to_owned());
    }
    for path in &arguments.fits {
        let other = open(path)?;
        if let Err(why) = fingerprint.matches(&other) {
            bail!("{} {why}: not the same source", path.display());
        }
        let id = ExportView::build_id(&other).with_context(|| format!("{} has no build-id", path.display()))?;
        fingerprint.build_ids.push(id);
    }

    let stem = arguments.elf.file_stem().map(|s| s.to_string_lossy().into_owned());
    let profile = Profile {
        name: arguments.name.clone().or(stem).context("say --name")?,
        family: family.schema.family.to_owned(),
        arch: file.machine().to_owned(),
        made_from: arguments.made_from.clone(),
        fingerprint,
        facts,
    };
    let text = profile.to_json()?;
    ensure!(Profile::parse(&text)? == profile, "the profile does not read back as written");
    match &arguments.out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?,
        None => print!("{text}"),
    }
    Ok(())
}

fn open(path: &Path) -> Result<ElfFile> {
    ElfFile::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Fields this build does not have, or has under another name.
fn report_missing(schema: &Schema, facts: &Facts) {
    for wanted in schema.structs {
        if !facts.sizes.contains_key(wanted.name) {
            eprintln!("not found: {}", wanted.name);
            continue;
        }
        for field in wanted.fields.iter().filter(|f| facts.field(wanted.name, f.name).is_none()) {
            eprintln!("not found: {}.{}", wanted.name, field.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every profile in the repository.
    fn shipped() -> Vec<(PathBuf, String, Profile)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libompd/runtime/src");
        let mut found = Vec::new();
        for family in ["gomp", "kmp"] {
            let folder = root.join(family).join("profiles");
            for entry in std::fs::read_dir(&folder).expect("the folder exists") {
                let path = entry.expect("readable").path();
                let text = std::fs::read_to_string(&path).expect("readable");
                let profile = Profile::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert_eq!(profile.family, family, "{}", path.display());
                found.push((path, text, profile));
            }
        }
        assert!(!found.is_empty());
        found
    }

    #[test]
    fn shipped_profiles_are_as_extract_writes_them() {
        for (path, text, profile) in shipped() {
            assert_eq!(profile.to_json().expect("serialises"), text, "{}", path.display());
            assert_eq!(path.file_stem().and_then(|s| s.to_str()), Some(profile.name.as_str()));
            assert!(profile.facts.globals.is_empty(), "{}: addresses of one build", path.display());
            let family = if profile.family == "gomp" { &GOMP } else { &KMP };
            for (of, fields) in &profile.facts.fields {
                let wanted = family.schema.find(of).unwrap_or_else(|| panic!("{}: {of} is unknown", path.display()));
                for name in fields.keys() {
                    assert!(wanted.fields.iter().any(|f| f.name == name), "{}: {of}.{name}", path.display());
                }
            }
        }
    }

    /// No image can fit two profiles: for any two there is a function that one demands and the other forbids.
    #[test]
    fn shipped_fingerprints_exclude_each_other() {
        let all = shipped();
        for (n, (_, _, a)) in all.iter().enumerate() {
            for (_, _, b) in all[n + 1..].iter().filter(|(_, _, b)| b.family == a.family && b.arch == a.arch) {
                let against = |x: &Profile, y: &Profile| {
                    x.fingerprint.exports.iter().any(|e| y.fingerprint.no_exports.contains(e))
                };
                assert!(against(a, b) || against(b, a), "{} and {}", a.name, b.name);
            }
        }
    }
}
