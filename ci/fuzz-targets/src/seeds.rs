//! Inputs to start from: small, valid, and made here out of what the compilers of this machine produce.

mod cores;
mod processes;
pub mod python;

use ompd_runtime::family::{families, profiles};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use ompd_layout::code::functions;
use ompd_layout::profile::Profile;
use ompd_process::ElfFile;

use processes::List;

use crate::{block, calls, code, dwarf, image, merge, stack, walks};

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The target it is for, as in [`crate::TARGETS`].
    pub target: &'static str,
    /// A file name.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Compilers, and flags that change what they produce: first those that are always there.
const BUILDS: [(&str, &str, &[&str]); 12] = [
    ("gcc", "shapes.c", &["-O2", "-g"]),
    ("gcc", "shapes.c", &["-O0", "-g", "-gdwarf-4", "-fdebug-types-section"]),
    ("gcc", "shapes.c", &["-O2", "-g", "-gdwarf-2", "-gstrict-dwarf"]),
    ("gcc", "shapes.c", &["-Os", "-g1", "-gz"]),
    ("gcc", "shapes.c", &["-O3", "-mtls-dialect=gnu2", "-s"]),
    ("g++", "shapes.cpp", &["-O2", "-g"]),
    ("g++", "shapes.cpp", &["-O2", "-g", "-gdwarf-4", "-fdebug-types-section"]),
    ("g++", "shapes.cpp", &["-O1", "-g", "-gdwarf-3"]),
    ("clang-14", "shapes.c", &["-O2", "-g"]),
    ("clang-14", "shapes.c", &["-O0", "-gdwarf-4", "-fdebug-types-section"]),
    ("clang-14", "shapes.cpp", &["-O1", "-g"]),
    ("clang-14", "shapes.c", &["-O2", "-g", "-gdwarf-5", "-gz"]),
];
/// An object file for another machine: there need not be a linker for it.
const AARCH64: [&str; 5] =
    ["--target=aarch64-linux-gnu", "-O2", "-c", "-ffreestanding", "-Wno-unused-command-line-argument"];
/// Functions of each runtime at hand that serve as code.
const LIBRARY_FUNCTIONS: usize = 120;
/// Longer ones are left out.
const MAX_FUNCTION: u64 = 400;

/// Makes all seeds.
///
/// # Errors
/// There is no gcc, or what it made cannot be read. Other compilers may be missing.
pub fn make() -> anyhow::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let mut add = |target, name: String, bytes| seeds.push(Seed { target, name, bytes });

    let scratch = tempfile::tempdir()?;
    for (number, (compiler, source, flags)) in BUILDS.into_iter().enumerate() {
        let name = format!("{number}-{compiler}");
        let Some(library) = compile(scratch.path(), compiler, source, flags)? else { continue };
        let file = ElfFile::open(&library)?;
        let section = |name: &str| file.section(name).unwrap_or_default().into_owned();
        if let Some(bytes) = dwarf::join(file.arch().byte_order, section) {
            add("dwarf", name.clone(), bytes);
        }
        add("code", name.clone(), code_seed(&file, ".text")?);
        let whole = std::fs::read(file.path())?;
        // Behind the sections: a stack with numbers, addresses of code and of the stack by turns.
        let words: Vec<u8> = (0..200u8).flat_map(|n| [n % 4, n.wrapping_mul(37), n % 32, 0, 0]).collect();
        if let Some(bytes) = sections(&file, &stack::FRAME_SECTIONS) {
            add("frames", name.clone(), [&bytes[..], &words].concat());
        }
        if let Some(bytes) = sections(&file, &stack::LINE_SECTIONS) {
            add("lines", name.clone(), bytes);
        }
        for (list, how) in [(List::Whole, "listed"), (List::None, "found"), (List::Crowded, "crowded")] {
            // One crowd is enough, and takes long.
            let wanted = list != List::Crowded || number == 0;
            if let Some(bytes) = processes::make(&whole, list).filter(|_| wanted) {
                add("debugged", format!("{name}-{how}"), bytes);
            }
        }
        add("elf", name, whole);
    }
    for turn in 0..8u8 {
        let words = (0..=255u8).flat_map(|n| [n.wrapping_mul(turn | 1) % 25, n, turn.wrapping_mul(n), n % 8, 0]);
        add("stack", format!("words-{turn}"), words.collect());
    }
    if let Some(object) = compile(scratch.path(), "clang-14", "shapes.c", &AARCH64)? {
        add("code", "aarch64".into(), code_seed(&ElfFile::open(&object)?, ".text")?);
    }
    for (name, code) in library_functions()? {
        add("code", name, code);
    }
    for (number, fault) in calls::debugger::FAULTS.into_iter().enumerate() {
        let plan = calls::debugger::Plan { fault, first: 40 * number as u64, every: number as u64 };
        let number = number as u8;
        let header =
            calls::Header { version: number & 3, subject: number & 1, generous: number & 2 != 0, fresh: false, plan };
        add("calls", format!("all-{number}"), calls::inputs::all_functions(header));
        if number < 2 {
            add("calls", format!("opening-{number}"), calls::inputs::opening(header));
            add("calls", format!("life-{number}"), calls::inputs::life(header));
            add("calls", format!("random-{number}"), calls::inputs::random(number.into()));
        }
    }
    for (name, bytes) in cores::make() {
        add("core", name, bytes);
    }
    for shipped in families().filter_map(|about| profiles(about.name)) {
        for profile in &shipped.classes {
            add("profile", profile.name.clone(), thinned(profile).to_json()?.into_bytes());
        }
        let mut vocabulary = shipped.vocabulary.clone();
        for names in [&mut vocabulary.names, &mut vocabulary.version_nodes] {
            *names = std::mem::take(names).into_iter().take(3).collect();
        }
        let family = shipped.classes.first().map_or("no", |profile| &profile.family);
        add("profile", format!("{family}-vocabulary"), vocabulary.to_text().into_bytes());
    }
    for (name, bytes) in merge::samples() {
        add("merge", name, bytes);
    }
    for (name, bytes) in python::make() {
        add("python", name, bytes);
    }
    for core in 0..walks::CORES as u8 {
        // Of each some words, all over the list, and each change in turn.
        let change = |n: u16| {
            let [[at, at_high], [other, other_high]] = [n.wrapping_mul(37), n.wrapping_mul(101)].map(u16::to_le_bytes);
            [at, at_high, n as u8 % 6, other, other_high, n as u8, 0, 0, 0, 0]
        };
        let input = std::iter::once(core).chain((0..8).map(|n| n + 8 * u16::from(core)).flat_map(change));
        add("walks", format!("core-{core}"), input.collect());
    }
    add("block", "sample".to_owned(), block::sample());
    Ok(seeds)
}

/// A shared library made of one of the programs; `None` if there is no such compiler.
fn compile(to: &Path, compiler: &str, source: &str, flags: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    let out = to.join(format!("{compiler}{}.so", flags.concat()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(source);
    // No pages of padding between the segments: inputs are to be small.
    let common = ["-shared", "-fPIC", "-nostdlib", "-Wl,-z,noseparate-code,-z,norelro,--build-id", "-o"];
    match Command::new(compiler).args(flags).args(common).arg(&out).arg(source).output() {
        Ok(done) => {
            ensure!(done.status.success(), "{compiler} {flags:?}: {}", String::from_utf8_lossy(&done.stderr));
            Ok(Some(out))
        }
        Err(_) if compiler != "gcc" => Ok(None),
        Err(error) => Err(error).context("gcc"),
    }
}

/// Sections of a file as an input; `None` if one is too long.
fn sections(file: &ElfFile, names: &[&str]) -> Option<Vec<u8>> {
    let section = |name: &&str| {
        let address = file.section_range(name).map_or(0, |range| range.start);
        (address, file.section(name).unwrap_or_default().into_owned())
    };
    image::join(&names.iter().map(section).collect::<Vec<_>>())
}

/// The code in a section as two functions of equal length.
fn code_seed(file: &ElfFile, section: &str) -> anyhow::Result<Vec<u8>> {
    let code = file.section(section).context("no code")?;
    code_input(file, &code)
}

fn code_input(file: &ElfFile, code: &[u8]) -> anyhow::Result<Vec<u8>> {
    let machine = code::MACHINES.iter().find(|(_, machine)| *machine == file.arch().machine);
    let mut bytes = vec![machine.context("code of another machine")?.0, 128];
    bytes.extend(code);
    Ok(bytes)
}

/// Functions of the libgomp that gcc links, and of those for aarch64 that `ci/fetch` may have got, as different ones as
/// there are.
fn library_functions() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let asked = Command::new("gcc").arg("-print-file-name=libgomp.so.1").output().context("gcc")?;
    let mut found = Vec::new();
    let own = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    for (name, path) in [("libgomp", Some(own)), ("libgomp-aarch64", fetched("arm64", "libgomp.so.1"))] {
        let Some(path) = path else { continue };
        let file = ElfFile::open(&path)?;
        let short: BTreeSet<Vec<u8>> = functions(&file)
            .filter(|range| range.end - range.start <= MAX_FUNCTION)
            .filter_map(|range| Some(file.bytes_at(range.start, range.end - range.start)?.to_vec()))
            .collect();
        let every = short.len().div_ceil(LIBRARY_FUNCTIONS).max(1);
        for (number, code) in short.into_iter().step_by(every).enumerate() {
            found.push((format!("{name}-{number}"), code_input(&file, &code)?));
        }
    }
    Ok(found)
}

/// A file called `name` among the runtimes fetched for a machine (by Debian's name for it).
fn fetched(machine: &str, name: &str) -> Option<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes")];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = folder.read_dir().ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
        entries.sort();
        let wanted = |p: &PathBuf| p.ends_with(name) && p.to_string_lossy().contains(machine);
        if let Some(found) = entries.iter().find(|p| wanted(p)) {
            return Some(found.clone());
        }
        folders.extend(entries.into_iter().filter(|p| p.is_dir() && !p.is_symlink()));
    }
    None
}

/// A profile with a little of everything.
fn thinned(profile: &Profile) -> Profile {
    let mut thin = profile.clone();
    thin.builds.truncate(2);
    for build in &mut thin.builds {
        build.build_ids.truncate(1);
        let print = &mut build.fingerprint;
        for list in [&mut print.exports, &mut print.no_exports, &mut print.version_nodes] {
            list.truncate(2);
        }
        for sizes in [&mut print.export_sizes, &mut print.no_export_sizes] {
            *sizes = std::mem::take(sizes).into_iter().take(1).collect();
        }
    }
    let facts = &mut thin.facts;
    facts.sizes = std::mem::take(&mut facts.sizes).into_iter().take(2).collect();
    facts.fields = std::mem::take(&mut facts.fields).into_iter().take(3).collect();
    for fields in facts.fields.values_mut() {
        *fields = std::mem::take(fields).into_iter().take(3).collect();
    }
    facts.globals = std::mem::take(&mut facts.globals).into_iter().take(2).collect();
    thin
}
