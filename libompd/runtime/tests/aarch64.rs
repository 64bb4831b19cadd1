//! What the code of Debian's aarch64 runtimes gives away is what the layouts say that are shipped for them.

#![allow(clippy::print_stdout, reason = "skips say why, and how much was compared")]

use std::path::{Path, PathBuf};

use ompd_layout::profile::{Profile, Profiles};
use ompd_layout::{Facts, Field};
use ompd_process::Machine;
use ompd_process::elf::ElfFile;
use ompd_runtime::family::profiles;
use ompd_runtime::{Origin, analyse};

/// Files below `folder` whose name starts with `name`, by path.
fn files(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            files(&entry.path(), name, found);
        } else if kind.is_file() && entry.file_name().to_string_lossy().starts_with(name) {
            found.push(entry.path());
        }
    }
    found.sort();
}

/// The aarch64 libraries called `name...` that were fetched.
fn libraries(name: &str) -> Vec<ElfFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
    let mut paths = Vec::new();
    files(&folder, name, &mut paths);
    let opened = paths.iter().map(|path| ElfFile::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    let found: Vec<ElfFile> = opened.filter(|file| file.arch().machine == Machine::AARCH64).collect();
    if found.is_empty() {
        println!("skipped: no aarch64 {name} below test-programs/runtimes");
    }
    found
}

/// The layout of the same release for aarch64.
fn same_release<'p>(profiles: &'p Profiles, file: &ElfFile) -> Option<&'p Profile> {
    let for_machine = profiles.classes.iter().filter(|class| class.archs.iter().any(|arch| arch == "aarch64"));
    let fitting = for_machine.filter_map(|class| {
        let weights = class.builds.iter().filter_map(|build| build.fingerprint.matches(file).ok());
        Some((weights.max()?, class))
    });
    let found = fitting.max_by_key(|(weight, _)| *weight).map(|(_, class)| class);
    if found.is_none() {
        println!("skipped: {} is of a release that is not known", file.path().display());
    }
    found
}

/// First bit of a field, and its width in bits (0: not known).
fn place(field: &Field) -> (u64, u64) {
    match field.bits {
        Some(bits) => (field.offset * 8 + u64::from(bits.shift), bits.width.into()),
        None => (field.offset * 8, field.size * 8),
    }
}

/// The number of fields and sizes both have, and those that differ.
fn compared(facts: &Facts, truth: &Facts) -> (usize, Vec<String>) {
    let (mut right, mut wrong) = (0, Vec::new());
    let mut count = |same: bool, what: String| if same { right += 1 } else { wrong.push(what) };
    for (of, fields) in &facts.fields {
        for (name, field) in fields {
            let Some(known) = truth.field(of, name) else { continue };
            let ((at, width), (true_at, true_width)) = (place(field), place(&known));
            let same = at == true_at && (width == true_width || width * true_width == 0);
            count(same, format!("{of}.{name}: {field:?}, but {known:?}"));
        }
    }
    for (name, size) in &facts.sizes {
        let Some(known) = truth.sizes.get(name) else { continue };
        count(size == known, format!("sizeof({name}): {size}, but {known}"));
    }
    (right, wrong)
}

/// Compares one library with what is known of its release; the number of values that are right.
fn check(file: &ElfFile, truth: &Facts, globals: &[&str]) -> usize {
    let path = file.path().display();
    let found = analyse(file).expect("it is an OpenMP runtime");
    let code = found.origins.iter().find(|(source, _)| source.origin == Origin::Code);
    let (_, facts) = code.unwrap_or_else(|| panic!("{path}: its code was not asked"));
    let (right, wrong) = compared(facts, truth);
    println!("{path}: {right} right, {} wrong", wrong.len());
    for report in found.reports.iter().filter(|r| r.origin == Origin::Code) {
        println!("  {}", report.note.as_deref().unwrap_or("everything was found"));
    }
    assert!(wrong.is_empty(), "{path}: {wrong:#?}");
    for global in globals {
        assert!(facts.globals.contains_key(*global), "{path}: {global}");
    }
    right
}

#[test]
fn libgomp_of_aarch64() {
    for file in libraries("libgomp.so.1") {
        let globals = ["gomp_tls_data@gottpoff", "gomp_global_icv", "default_lock", "atomic_lock"];
        let Some(truth) = same_release(profiles("gomp").expect("a family"), &file) else { continue };
        let right = check(&file, &truth.facts, &globals);
        assert!(right >= 36, "{}: only {right}", truth.name);
    }
}

#[test]
fn libomp_of_aarch64() {
    for file in libraries("libomp.so.5") {
        let Some(release) = same_release(profiles("kmp").expect("a family"), &file) else { continue };
        let right = check(&file, &release.facts, &["__kmp_threads", "__kmp_all_nth", "__kmp_i_lock_table"]);
        // From LLVM 13 on `ompd_init` is there. How many of its constants can be placed for certain depends on the order
        // in which the compiler stores them.
        let least = 29;
        assert!(right >= least, "{}: only {right}", release.name);
    }
}
