//! What the code of real, stripped runtimes gives away is what their debug information says.
#![allow(clippy::print_stdout, reason = "tests say what they skip and measured")]

use std::path::Path;

use ompd_layout::{Facts, Field};
use ompd_process::elf::ElfFile;
use ompd_runtime::{Analysis, Origin, analyse};

/// The runtime at `path`; `None`, with a line that says so, if this machine does not have it.
fn runtime(path: &Path) -> Option<Analysis> {
    match ElfFile::open(path) {
        Ok(file) => Some(analyse(&file).expect("it is an OpenMP runtime")),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

fn of(analysis: &Analysis, origin: Origin) -> Facts {
    let mut facts = analysis.origins.iter().filter(|(source, facts)| source.origin == origin && !facts.is_empty());
    facts.next().map(|(_, facts)| facts.clone()).unwrap_or_default()
}

/// First bit of a field, and its width in bits (0: not known).
fn place(field: &Field) -> (u64, u64) {
    match field.bits {
        Some(bits) => (field.offset * 8 + u64::from(bits.shift), bits.width.into()),
        None => (field.offset * 8, field.size * 8),
    }
}

/// The number of values both have. Panics where they differ.
fn agree(who: &str, facts: &Facts, truth: &Facts) -> usize {
    let mut equal = 0;
    for (of, fields) in &facts.fields {
        for (name, field) in fields {
            let Some(true_field) = truth.field(of, name) else { continue };
            let ((at, width), (true_at, true_width)) = (place(field), place(&true_field));
            assert_eq!(at, true_at, "{who}: {of}.{name}");
            assert!(width == true_width || width * true_width == 0, "{who}: {of}.{name}: {field:?}, {true_field:?}");
            equal += 1;
        }
    }
    for (name, size) in facts.sizes.iter().filter(|(name, _)| truth.sizes.contains_key(*name)) {
        assert_eq!(size, &truth.sizes[name], "{who}: sizeof({name})");
        equal += 1;
    }
    for (name, addr) in facts.globals.iter().filter(|(name, _)| truth.globals.contains_key(*name)) {
        assert_eq!(addr, &truth.globals[name], "{who}: {name}");
        equal += 1;
    }
    equal
}

#[test]
fn stripped_libgomp() {
    let Some(found) = runtime(Path::new("/usr/lib/x86_64-linux-gnu/libgomp.so.1")) else { return };
    let code = of(&found, Origin::Code);
    let truth = &found.profile.expect("a shipped profile fits").profile.facts;
    let equal = agree("libgomp", &code, truth);
    println!("{equal} values of the code equal the profile");
    assert!(equal >= 39, "only {equal}");
    // Addresses of this very build, for which there is no second source: that they are there.
    for global in ["gomp_tls_data@gottpoff", "gomp_global_icv", "default_lock", "atomic_lock"] {
        assert!(code.globals.contains_key(global), "{global}");
    }
}

#[test]
fn stripped_libomp() {
    let Some(found) = runtime(Path::new("/usr/lib/llvm-14/lib/libomp.so.5")) else { return };
    let code = of(&found, Origin::Code);
    let truth = &found.profile.expect("a shipped profile fits").profile.facts;
    let equal = agree("libomp 14", &code, truth);
    println!("{equal} values of the code equal the profile");
    assert!(equal >= 36, "only {equal}");
    for global in ["__kmp_threads", "__kmp_all_nth", "__kmp_i_lock_table"] {
        assert!(code.globals.contains_key(global), "{global}");
    }
}

/// Intel's library describes itself three times over: in debug information, in a table, and in its code.
#[test]
fn libiomp5() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes/libiomp5.so");
    let Some(found) = runtime(&path) else { return };
    let truth = of(&found, Origin::Dwarf);
    assert!(!truth.is_empty(), "its .dbg file is beside it");
    for (origin, least) in [(Origin::Table, 47), (Origin::Code, 39), (Origin::Symbol, 4)] {
        let equal = agree(origin.word(), &of(&found, origin), &truth);
        println!("{equal} values of the {origin} equal the debug information");
        assert!(equal >= least, "{origin}: only {equal}");
    }
}

/// Builds configured otherwise export the same names and have another layout. Where the code tells nothing, nobody
/// knows which of them a file is.
#[test]
fn a_layout_that_nothing_confirms_is_not_used() {
    let path = Path::new("/usr/lib/x86_64-linux-gnu/libgomp.so.1");
    let Ok(file) = ElfFile::open(path) else { return println!("skipped: no {}", path.display()) };
    let mut bytes = std::fs::read(path).expect("the library");
    let note = file.section(".note.gnu.build-id").expect("the section").to_vec();
    let at = bytes.windows(note.len()).position(|window| window == &note[..]).expect("its place in the file");
    // Behind the header and the owner's name.
    bytes[at + 16..at + note.len()].fill(1);
    let directory = tempfile::tempdir().expect("a directory");
    let other = directory.path().join("libgomp.so.1");
    std::fs::write(&other, &bytes).expect("a build that is not listed");
    let found = runtime(&other).expect("the copy");
    assert!(found.profile.is_ok_and(|chosen| !chosen.by_build_id && chosen.confirmed >= 39));

    const RET: u8 = 0xc3;
    let text = file.section(".text").expect("the section").to_vec();
    let at = bytes.windows(64).position(|window| window == &text[..64]).expect("its place in the file");
    bytes[at..at + text.len()].fill(RET);
    std::fs::write(&other, &bytes).expect("a build whose code tells nothing");
    let found = runtime(&other).expect("the copy");
    assert!(of(&found, Origin::Code).fields.is_empty());
    let why: Vec<String> = found.profile.expect_err("nothing confirms it").iter().map(ToString::to_string).collect();
    assert!(why.iter().any(|why| why.contains("no value is confirmed")), "{why:?}");
}
