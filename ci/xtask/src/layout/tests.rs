//! The shipped profiles as a whole, and the two tasks on libraries built for the purpose.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use clap::Parser;
use ompd_layout::profile::{Fingerprint, Profile, select};
use ompd_layout::{Facts, Field};
use ompd_process::elf::ElfFile;
use test_programs::Runtime;

use super::store::{Store, VOCABULARY};
use super::*;

fn all() -> Vec<Family> {
    families().map(|about| Family::of(about.name)).collect()
}

fn store(family: &Family) -> Store {
    Store::open(family.folder(), family).expect("readable")
}

#[test]
fn shipped_profiles_are_as_extract_writes_them() {
    for family in &all() {
        let store = store(family);
        assert!(!store.classes.is_empty());
        for (stem, profile) in &store.classes {
            let text = std::fs::read_to_string(family.folder().join(format!("{stem}.json"))).expect("readable");
            assert_eq!(profile.to_json().expect("serialises"), text, "{stem}");
            assert!(profile.facts.globals.is_empty(), "{stem}: addresses of one build");
            assert!(!profile.builds.is_empty() && !profile.archs.is_empty(), "{stem}");
            for (of, fields) in &profile.facts.fields {
                let wanted = family.about.schema.find(of).unwrap_or_else(|| panic!("{stem}: {of} is unknown"));
                for name in fields.keys() {
                    assert!(wanted.fields.iter().any(|f| f.name == name), "{stem}: {of}.{name}");
                }
            }
        }
        let text = std::fs::read_to_string(family.folder().join(VOCABULARY)).expect("readable");
        assert_eq!(store.vocabulary_text(), text, "{}", family.about.schema.family);
    }
}

#[test]
fn every_profile_file_is_compiled_in() {
    for family in &all() {
        let names = |classes: &mut dyn Iterator<Item = &Profile>| -> BTreeSet<String> {
            classes.map(|class| class.name.clone()).collect()
        };
        let store = store(family);
        let files = names(&mut store.classes.values());
        assert_eq!(files.len(), store.classes.len(), "names repeat");
        assert_eq!(files, names(&mut family.shipped.classes.iter()), "PROFILE_TEXTS of {}", family.about.schema.family);
        assert_eq!(store.vocabulary, family.shipped.vocabulary);
    }
}

/// No image can fit two layouts: for any two there is an export that one demands and the other forbids.
#[test]
fn shipped_fingerprints_exclude_each_other() {
    for family in &all() {
        let classes: Vec<_> = store(family).classes.into_iter().collect();
        for (n, (a_stem, a)) in classes.iter().enumerate() {
            let rivals = classes[n + 1..].iter().filter(|(_, b)| a.archs.iter().any(|arch| b.archs.contains(arch)));
            for (b_stem, b) in rivals {
                assert!(a.facts != b.facts, "{a_stem} and {b_stem} are one class");
                for (x, y) in a.builds.iter().flat_map(|x| b.builds.iter().map(move |y| (x, y))) {
                    assert!(x.fingerprint.excludes(&y.fingerprint), "{} and {}", x.made_from, y.made_from);
                }
            }
        }
    }
}

#[test]
fn fingerprints_are_made_of_known_names() {
    for family in &all() {
        let store = store(family);
        for build in store.classes.values().flat_map(|class| &class.builds) {
            let Fingerprint { exports, no_exports, export_sizes, no_export_sizes, version_nodes } = &build.fingerprint;
            let sizes = export_sizes.keys().chain(no_export_sizes.keys());
            for name in exports.iter().chain(no_exports).chain(sizes) {
                assert!(store.vocabulary.names.contains(name), "{}: {name}", build.made_from);
            }
            assert!(version_nodes.iter().all(|n| store.vocabulary.version_nodes.contains(n)), "{}", build.made_from);
            if build.fingerprint.fits_nothing() {
                assert_eq!(build.fingerprint, Fingerprint::default(), "{}", build.made_from);
                assert!(!build.build_ids.is_empty(), "{} can never be chosen", build.made_from);
                continue;
            }
            let markers: BTreeSet<String> = exports.iter().chain(no_exports).cloned().collect();
            assert_eq!(markers, store.markers(), "{}: every marker is demanded or forbidden", build.made_from);
        }
    }
}

/// Intel's builds have layouts of their own, and releases with the same exports differ. None is known by its exports,
/// and LLVM's profiles refuse what has Intel's table.
#[test]
fn intel_and_llvm_never_share_a_profile() {
    for (stem, class) in store(&Family::of("kmp")).classes {
        for build in &class.builds {
            let intel = build.made_from.starts_with("Intel");
            assert_eq!(stem.starts_with("libiomp5"), intel, "{stem}");
            assert_eq!(build.fingerprint.fits_nothing(), intel, "{stem}");
            assert_eq!(build.fingerprint.no_export_sizes.contains_key("__kmp_omp_debug_struct_info"), !intel, "{stem}");
        }
    }
}

/// The runtimes of this machine get a profile that contradicts neither their code nor their debug information.
#[test]
fn runtimes_at_hand_pass_the_check() {
    for runtime in Runtime::available() {
        let file = open(&runtime.library().expect("is available")).expect("opens");
        let verdict = check::verdict(&file, true).expect("a runtime");
        assert_eq!(verdict.contradictions, 0, "{}", verdict.text);
        assert!(verdict.profile.is_some(), "{}", verdict.text);
    }
}

/// Compiles a shared library of C source, with a version script if it is to have symbol versions.
fn library(folder: &Path, name: &str, source: &str, script: Option<&str>) -> ElfFile {
    let (code, out) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&code, source).expect("writable");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-g", "-Wl,--build-id", "-fno-eliminate-unused-debug-types", "-w", "-o"]);
    gcc.arg(&out).arg(&code);
    if let Some(script) = script {
        let path = folder.join(format!("{name}.map"));
        std::fs::write(&path, script).expect("writable");
        gcc.arg(format!("-Wl,--version-script={}", path.display()));
    }
    assert!(gcc.status().expect("gcc runs").success(), "{source}");
    open(&out).expect("opens")
}

/// A library that exports what a build of GCC 14's libgomp is known by, and `more`, under its symbol versions and those
/// of `nodes`.
fn like_gcc_14(folder: &Path, name: &str, more: &str, nodes: &[&str]) -> ElfFile {
    let class = &store(&Family::of("gomp")).classes["libgomp-class-g"];
    let print = &class.builds.iter().find(|b| b.made_from.starts_with("GCC 14")).expect("is there").fingerprint;
    let mut source = format!("void GOMP_barrier(void) {{}}\n{more}\n");
    for export in &print.exports {
        let _ = writeln!(source, "void {export}(void) {{}}");
    }
    let mut all = print.version_nodes.clone();
    all.extend(nodes.iter().map(|n| (*n).to_owned()));
    let mut script = String::new();
    for (n, node) in all.iter().enumerate() {
        let _ = writeln!(script, "{node} {{ {} }};", if n == 0 { "global: *;" } else { "" });
    }
    library(folder, name, &source, Some(&script))
}

#[test]
fn a_library_with_one_name_too_many_gets_no_profile() {
    let folder = tempfile::tempdir().expect("a folder");
    let chosen = |file: &ElfFile| match select(Family::of("gomp").shipped, file, &Facts::default()) {
        Ok(selection) => Ok(selection.profile.name.clone()),
        Err(rejected) => Err(rejected.into_iter().map(|r| r.why).collect::<Vec<_>>()),
    };
    let gcc_14 = like_gcc_14(folder.path(), "same", "void my_own(void) {}", &[]);
    assert!(chosen(&gcc_14).expect("fits").starts_with("libgomp class G"));

    let newer = like_gcc_14(folder.path(), "newer", "void omp_of_the_future(void) {}", &[]);
    let why = chosen(&newer).expect_err("unheard of");
    let reason = "the image exports omp_of_the_future, which no known release does";
    assert!(why.iter().all(|w| w == reason), "{why:?}");

    let versions = like_gcc_14(folder.path(), "versions", "", &["GOMP_77.0"]);
    let why = chosen(&versions).expect_err("unheard of");
    assert!(why.iter().all(|w| w.contains("the symbol version GOMP_77.0, which no known release has")), "{why:?}");

    // Known versions in a combination no release has, as vendor branches make them.
    let vendor = like_gcc_14(folder.path(), "vendor", "", &["GOMP_5.1.3"]);
    let why = chosen(&vendor).expect_err("a mixture");
    assert!(why.iter().any(|w| w == "the image defines the symbol version GOMP_5.1.3"), "{why:?}");
}

/// C source of a runtime that is no libgomp but has some of its structs, laid out with `gap` bytes in front.
fn small_runtime(gap: u32, exports: &[&str]) -> String {
    let mut source = format!(
        "struct gomp_team_state {{ void *team; unsigned team_id, level, active_level; }};
         struct gomp_thread {{ char gap[{gap}]; struct gomp_team_state ts; }};
         struct gomp_thread one;\n"
    );
    for export in exports {
        let _ = writeln!(source, "void {export}(void) {{}}");
    }
    source
}

#[derive(Parser)]
struct ExtractLine {
    #[command(flatten)]
    arguments: extract::Arguments,
}

fn run_extract(into: &Path, file: &ElfFile, made_from: &str, rest: &[&str]) -> anyhow::Result<()> {
    let into = into.to_str().expect("plain");
    let elf = file.path().to_str().expect("plain");
    let line = ["extract", elf, "--into", into, "--made-from", made_from];
    let parsed = ExtractLine::try_parse_from(line.iter().chain(rest)).expect("parses");
    extract::run(&parsed.arguments)
}

#[test]
fn extract_files_builds_under_their_layouts_and_keeps_them_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("profiles");
    std::fs::create_dir(&into).expect("a folder");
    let make = |name: &str, gap, exports: &[&str]| library(folder.path(), name, &small_runtime(gap, exports), None);
    let one = make("one", 8, &["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one", "my_own"]);
    let two = make("two", 8, &["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one", "GOMP_two"]);
    let three =
        make("three", 16, &["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one", "GOMP_two", "GOMP_three", "omp_three"]);
    let alike = make("alike", 24, &["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one", "GOMP_two", "GOMP_three"]);

    let refused = run_extract(&into, &one, "one", &[]).expect_err("a new layout needs a name");
    assert!(refused.to_string().contains("--class"), "{refused}");
    run_extract(&into, &one, "one", &["--class", "a", "--name", "class A", "--marker", "GOMP_one"]).expect("first");
    run_extract(&into, &two, "two", &[]).expect("the same layout");
    run_extract(&into, &three, "three", &["--class", "b", "--name", "class B"]).expect("another layout");
    let refused =
        run_extract(&into, &alike, "alike", &["--class", "c", "--name", "class C"]).expect_err("not told apart");
    assert!(refused.to_string().contains("exports do not tell it from three in b"), "{refused}");

    let read = || Store::open(into.clone(), &Family::of("gomp")).expect("readable");
    let store = read();
    assert_eq!(store.classes.keys().collect::<Vec<_>>(), ["a", "b"]);
    let words =
        |stem: &str| -> Vec<String> { store.classes[stem].builds.iter().map(|b| b.made_from.clone()).collect() };
    assert_eq!((words("a"), words("b")), (vec!["one".to_owned(), "two".to_owned()], vec!["three".to_owned()]));
    let level = store.classes["b"].facts.field("gomp_thread", "ts.level");
    assert_eq!(level, Some(Field { offset: 28, size: 4, bits: None }));
    let first = &store.classes["a"].builds[0].fingerprint;
    assert_eq!(
        (first.exports.join(" "), first.no_exports.join(" ")),
        ("GOMP_one".into(), "GOMP_three GOMP_two".into())
    );
    let names: Vec<&str> = store.vocabulary.names.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        ["GOMP_barrier", "GOMP_one", "GOMP_three", "GOMP_two", "omp_set_dynamic_8_", "omp_three"],
        "my_own is not public"
    );

    // The layout of a known build changes: it is replaced where it was, and so is its class, which it had alone.
    let moved =
        make("moved", 32, &["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one", "GOMP_two", "GOMP_three", "omp_three"]);
    run_extract(&into, &moved, "three", &[]).expect("replaced");
    assert_eq!(read().classes["b"].facts.field("gomp_thread", "ts.level").map(|f| f.offset), Some(44));
    // One that comes to have the layout of another class goes there, and its own is deleted.
    run_extract(&into, &two, "three", &[]).expect("replaced");
    assert_eq!(read().classes.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_stripped_build_is_listed_only_if_it_fits() {
    let folder = tempfile::tempdir().expect("a folder");
    let into = folder.path().join("profiles");
    std::fs::create_dir(&into).expect("a folder");
    let exports = ["GOMP_barrier", "omp_set_dynamic_8_", "GOMP_one"];
    let code = "__thread struct gomp_thread tls __attribute__((tls_model(\"initial-exec\")));
         int omp_get_level(void) { return tls.ts.level; }";
    let source = |gap| format!("{}{code}", small_runtime(gap, &exports));
    let full = library(folder.path(), "full", &source(8), None);
    let same = library(folder.path(), "same", &format!("{}\nint elsewhere;", source(8)), None);
    let other = library(folder.path(), "other", &source(16), None);
    let newer = library(folder.path(), "newer", &small_runtime(8, &["GOMP_barrier", "omp_set_dynamic_8_"]), None);
    for file in [&same, &other, &newer] {
        assert!(Command::new("strip").arg(file.path()).status().expect("strip runs").success());
    }
    let with = |file: &ElfFile| {
        let fits = file.path().to_str().expect("plain").to_owned();
        run_extract(&into, &full, "full", &["--class", "a", "--name", "A", "--marker", "GOMP_one", "--fits", &fits])
    };
    let refused = format!("{:#}", with(&newer).expect_err("lacks the marker"));
    assert!(refused.contains("is not of the same source: it does not export GOMP_one"), "{refused}");
    let refused = format!("{:#}", with(&other).expect_err("its code says another offset"));
    assert!(refused.contains("is not of the same source: gomp_thread.ts.level: code"), "{refused}");
    with(&same).expect("fits");
    let store = Store::open(into.clone(), &Family::of("gomp")).expect("readable");
    assert_eq!(store.classes["a"].builds[0].build_ids, [same.build_id().expect("has one").to_string()]);
}

#[test]
fn check_counts_what_agrees_and_what_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = "__thread struct gomp_thread tls __attribute__((tls_model(\"initial-exec\")));
         int omp_get_level(void) { return tls.ts.level; }
         int omp_get_active_level(void) { return tls.ts.level; }";
    let source = format!("{}{code}", small_runtime(8, &["GOMP_barrier", "omp_set_dynamic_8_"]));
    let file = library(folder.path(), "wrong", &source, None);
    let verdict = check::verdict(&file, false).expect("a runtime");
    assert_eq!((verdict.contradictions, verdict.profile), (1, None), "{}", verdict.text);
    assert!(verdict.text.contains("dwarf with code: 1 agree, 1 contradict each other"), "{}", verdict.text);
    assert!(verdict.text.contains("gomp_thread.ts.active_level: dwarf ("), "{}", verdict.text);
    assert!(verdict.text.contains("libgomp class F (GCC 12): the image does not export"), "{}", verdict.text);
}
