//! Choosing among shipped profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use ompd_layout::profile::{
    Build, ExportView, Fingerprint, Profile, Profiles, ShippedProfiles, Vocabulary, common, select,
};
use ompd_layout::{BitRange, FactSource, Facts, Field, Layout, Origin};
use ompd_process::elf::ElfFile;

#[derive(Default, Clone)]
struct Image {
    build_id: Option<&'static str>,
    exports: BTreeMap<&'static str, u64>,
    versions: BTreeSet<&'static str>,
}

impl Image {
    fn new(exports: &[&'static str]) -> Image {
        Image { exports: exports.iter().map(|name| (*name, 8)).collect(), ..Image::default() }
    }

    fn with_versions(exports: &[&'static str], versions: &[&'static str]) -> Image {
        Image { versions: versions.iter().copied().collect(), ..Image::new(exports) }
    }
}

impl ExportView for Image {
    fn build_id(&self) -> Option<String> {
        self.build_id.map(str::to_owned)
    }
    fn machine(&self) -> &str {
        "x86_64"
    }
    fn export_size(&self, name: &str) -> Option<u64> {
        self.exports.get(name).copied()
    }
    fn exported_names(&self) -> Vec<&str> {
        self.exports.keys().copied().collect()
    }
    fn version_nodes(&self) -> Vec<String> {
        self.versions.iter().map(|node| (*node).to_owned()).collect()
    }
}

fn at(offset: u64) -> Field {
    Field { offset, size: 8, bits: None }
}

fn facts(offset: u64) -> Facts {
    let mut facts = Facts::default();
    facts.sizes.insert("task".into(), 64);
    facts.set_field("task", "parent", at(offset));
    facts.set_field("task", "flag", Field { offset: 4, size: 4, bits: Some(BitRange { shift: 17, width: 1 }) });
    facts
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn build(exports: &[&str], no_exports: &[&str]) -> Build {
    let fingerprint = Fingerprint { exports: owned(exports), no_exports: owned(no_exports), ..Fingerprint::default() };
    Build { made_from: "a \"test\"".to_owned(), build_ids: Vec::new(), fingerprint }
}

fn profile(name: &str, builds: Vec<Build>, facts: Facts) -> Profile {
    Profile { name: name.to_owned(), family: "test".to_owned(), archs: owned(&["x86_64"]), builds, facts }
}

fn single(name: &str, exports: &[&str], no_exports: &[&str], facts: Facts) -> Profile {
    profile(name, vec![build(exports, no_exports)], facts)
}

/// Profiles in a world that is not closed: no name is public.
fn open(classes: &[Profile]) -> Profiles {
    let vocabulary =
        Vocabulary { version_nodes: owned(&["V1", "V2", "V3"]).into_iter().collect(), ..Vocabulary::default() };
    Profiles { classes: classes.to_vec(), vocabulary }
}

fn chosen<'p>(profiles: &'p Profiles, image: &Image, decoded: &Facts) -> Result<&'p str, Vec<String>> {
    match select(profiles, image, decoded) {
        Ok(selection) => Ok(&selection.profile.name),
        Err(rejected) => Err(rejected.iter().map(ToString::to_string).collect()),
    }
}

fn nothing() -> Facts {
    Facts::default()
}

#[test]
fn written_profiles_read_back_and_unknown_keys_are_refused() {
    let mut first = build(&["a"], &["b"]);
    first.build_ids.push("00ff".to_owned());
    first.fingerprint.version_nodes.push("V1".to_owned());
    first.fingerprint.export_sizes.insert("table".to_owned(), 100);
    let mut second = build(&["a", "b"], &[]);
    second.fingerprint.no_export_sizes.insert("table".to_owned(), 100);
    let one = profile("one", vec![first, second], facts(8));
    let text = one.to_json().expect("serialises");
    assert_eq!(Profile::parse(&text).expect("reads back"), one);
    assert!(text.lines().any(|l| l == r#"    "parent": {"offset":8,"size":8}"#), "one line per field:\n{text}");
    assert!(Profile::parse(&text.replace("made_from", "made_with")).is_err());
    assert!(Profile::parse(&text.replace("no_exports", "without_exports")).is_err());
    let empty = Profile { facts: nothing(), builds: Vec::new(), ..one };
    assert_eq!(Profile::parse(&empty.to_json().expect("serialises")).expect("reads back"), empty);
}

#[test]
fn fingerprints_decide_and_decoded_values_have_a_veto() {
    let mut profiles = open(&[single("old", &["a"], &["b"], facts(8)), single("new", &["a", "b"], &[], facts(16))]);
    let (old, new) = (Image::new(&["a"]), Image::new(&["a", "b"]));
    assert_eq!(chosen(&profiles, &old, &nothing()), Ok("old"));
    assert_eq!(chosen(&profiles, &new, &facts(16)), Ok("new"));

    let selection = select(&profiles, &new, &facts(16)).expect("as above");
    assert_eq!((selection.confirmed, selection.by_build_id), (3, false));

    let rejected = select(&profiles, &new, &facts(8)).expect_err("contradicts");
    assert_eq!(rejected[0].why, "the image exports b");
    assert_eq!(rejected[1].why, "contradicts 1 of 3 values");
    assert_eq!(rejected[1].mismatches[0].name, "task.parent");

    // Sizes that one side does not know are no contradiction, and globals belong to one build.
    let mut vague = nothing();
    vague.set_field("task", "parent", Field { offset: 16, size: 0, bits: None });
    vague.globals.insert("g".into(), 1);
    profiles.classes[1].facts.globals.insert("g".into(), 2);
    assert_eq!(chosen(&profiles, &new, &vague), Ok("new"));
}

#[test]
fn symbol_versions_are_all_or_none() {
    let mut one = single("one", &["a"], &[], facts(8));
    one.builds[0].fingerprint.version_nodes = owned(&["V1", "V2"]);
    let profiles = open(&[one]);
    let asked = |versions: &[&'static str]| chosen(&profiles, &Image::with_versions(&["a"], versions), &nothing());
    assert_eq!(asked(&["V1", "V2"]), Ok("one"));
    assert_eq!(asked(&[]), Ok("one"), "builds for musl have none");
    let refused = |why: &str| Err(vec![format!("one: the image {why}")]);
    assert_eq!(asked(&["V1"]), refused("does not define the symbol version V2"));
    assert_eq!(asked(&["V1", "V2", "V3"]), refused("defines the symbol version V3"));
}

#[test]
fn machines_are_conditions_and_a_fingerprint_needs_an_export() {
    let mut profiles = open(&[single("one", &[], &["b"], facts(8))]);
    let image = Image::new(&["a"]);
    let why = chosen(&profiles, &image, &nothing()).expect_err("absence proves nothing");
    assert_eq!(why, ["one: the image is another build than the listed ones"]);
    profiles.classes[0].builds[0].fingerprint.exports = owned(&["a"]);
    assert_eq!(chosen(&profiles, &image, &nothing()), Ok("one"));
    profiles.classes[0].archs = owned(&["aarch64", "riscv64"]);
    let why = chosen(&profiles, &image, &nothing()).expect_err("another machine");
    assert_eq!(why, ["one: is for aarch64 and riscv64, the image is for x86_64"]);
}

#[test]
fn sizes_of_exports_are_conditions() {
    let mut large = build(&["a"], &[]);
    large.fingerprint.export_sizes.insert("table".to_owned(), 100);
    let mut small = build(&["a"], &[]);
    small.fingerprint.no_export_sizes.insert("table".to_owned(), 100);
    assert!(large.fingerprint.excludes(&small.fingerprint) && small.fingerprint.excludes(&large.fingerprint));
    assert!(!large.fingerprint.excludes(&large.fingerprint));
    let profiles = open(&[profile("large", vec![large], facts(8)), profile("small", vec![small], facts(16))]);
    let mut image = Image::new(&["a"]);
    assert_eq!(chosen(&profiles, &image, &nothing()), Ok("small"));
    image.exports.insert("table", 4);
    assert_eq!(chosen(&profiles, &image, &nothing()), Ok("small"));
    image.exports.insert("table", 100);
    assert_eq!(chosen(&profiles, &image, &nothing()), Ok("large"));
}

#[test]
fn any_build_of_a_class_will_do_and_the_nearest_one_gives_the_reason() {
    let builds = vec![build(&["a"], &["b", "c"]), build(&["a", "b"], &["c"]), build(&["a", "b", "c"], &["d"])];
    let profiles = open(&[profile("class", builds, facts(8))]);
    for exports in [&["a"][..], &["a", "b"], &["a", "b", "c"]] {
        assert_eq!(chosen(&profiles, &Image::new(exports), &nothing()), Ok("class"), "{exports:?}");
    }
    let why = chosen(&profiles, &Image::new(&["a", "b", "c", "d"]), &nothing()).expect_err("has d");
    assert_eq!(why, ["class: the image exports d"]);
    let why = chosen(&profiles, &Image::new(&["b"]), &nothing()).expect_err("lacks a");
    assert_eq!(why, ["class: the image does not export a"]);
}

#[test]
fn a_public_name_no_release_has_rules_out_every_profile() {
    let text = "# names\nomp_*\nGOMP_*\n@V1\nomp_one\n\nGOMP_one\n";
    let one = single("one", &["omp_one"], &[], facts(8));
    let mut profiles = Profiles::parse(&[&one.to_json().expect("serialises")], text).expect("parses");
    let known = Image::new(&["omp_one", "GOMP_one", "main", "ompt_start_tool"]);
    assert_eq!(chosen(&profiles, &known, &nothing()), Ok("one"), "other names are the program's own");

    let newer = Image::new(&["omp_one", "omp_two", "GOMP_two"]);
    let why = chosen(&profiles, &newer, &nothing()).expect_err("newer");
    assert_eq!(why, ["one: the image exports GOMP_two (and 1 more), which no known release does"]);
    let newer = Image::with_versions(&["omp_one"], &["V1", "V2"]);
    let why = chosen(&profiles, &newer, &nothing()).expect_err("newer");
    assert_eq!(why, ["one: the image defines the symbol version V2, which no known release has"]);

    // The very build that was looked at stays known.
    profiles.classes[0].builds[0].build_ids.push("abcd".to_owned());
    let listed = Image { build_id: Some("abcd"), ..Image::new(&["omp_two"]) };
    assert_eq!(chosen(&profiles, &listed, &nothing()), Ok("one"));

    let mut vocabulary = profiles.vocabulary;
    vocabulary.learn(&newer);
    vocabulary.learn(&Image::new(&["omp_two", "main"]));
    assert_eq!(vocabulary.to_text(), "GOMP_*\nomp_*\n@V1\n@V2\nGOMP_one\nomp_one\nomp_two\n");
    assert_eq!(Vocabulary::parse(&vocabulary.to_text()), vocabulary);
}

#[test]
fn a_build_id_settles_it_but_contradictions_are_told() {
    let mut listed = single("listed", &["no such export"], &[], facts(8));
    listed.builds[0].build_ids.push("abcd".to_owned());
    let profiles = open(&[single("fits", &["a"], &[], facts(16)), listed]);
    assert!(profiles.knows("abcd") && !profiles.knows("abc"));
    let image = Image { build_id: Some("abcd"), ..Image::new(&["a"]) };
    let selection = select(&profiles, &image, &facts(16)).expect("listed");
    assert_eq!((selection.profile.name.as_str(), selection.by_build_id), ("listed", true));
    assert_eq!(selection.mismatches.len(), 1);
}

#[test]
fn the_more_specific_wins_and_a_tie_is_no_choice() {
    let image = Image::new(&["a", "b"]);
    let profiles = open(&[single("loose", &["a"], &[], facts(8)), single("tight", &["a", "b"], &[], facts(16))]);
    assert_eq!(chosen(&profiles, &image, &nothing()), Ok("tight"));
    let tied = open(&[single("x", &["a"], &[], facts(8)), single("y", &["b"], &[], facts(16))]);
    let why = chosen(&tied, &image, &nothing()).expect_err("either could be it");
    assert_eq!(why.len(), 2);
    assert!(why[0].ends_with("fits, but so does another profile that differs"), "{why:?}");
    let same = open(&[single("x", &["a"], &[], facts(8)), single("y", &["b"], &[], facts(8))]);
    assert_eq!(chosen(&same, &image, &nothing()), Ok("x"));
}

/// Some vendors ship without build-ids, but name the debug file and its checksum.
#[test]
fn a_debug_link_stands_in_for_a_build_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let run = |command: &mut Command| assert!(command.status().expect("runs").success(), "{command:?}");
    std::fs::write(at("source.c"), "int here;").expect("writable");
    // The digits are what the check value of CRC-32 is defined for.
    std::fs::write(at("its.dbg"), "123456789").expect("writable");
    for (name, option) in [("without.so", "-Wl,--build-id=none"), ("with.so", "-Wl,--build-id=0x00ff")] {
        run(Command::new("gcc").args(["-shared", option, "-o"]).arg(at(name)).arg(at("source.c")));
        let id = || ExportView::build_id(&ElfFile::open(&at(name)).expect("opens"));
        let note = (name == "with.so").then(|| "00ff".to_owned());
        assert_eq!(id(), note);
        run(Command::new("objcopy").arg("--add-gnu-debuglink").arg(at("its.dbg")).arg(at(name)));
        assert_eq!(id(), note.or_else(|| Some("debuglink:its.dbg:cbf43926".to_owned())));
    }
}

#[test]
fn offsets_at_the_end_of_all_numbers_are_compared_as_well() {
    let with = |offset| {
        let mut facts = facts(8);
        facts.set_field("task", "flag", Field { offset, size: 4, bits: Some(BitRange { shift: 17, width: 1 }) });
        facts
    };
    let far = [(u64::MAX, u64::MAX), (u64::MAX / 8 + 1, 0)].map(|(a, b)| {
        let origins = [("a", with(a)), ("b", with(b))];
        let origins = origins.map(|(name, facts)| (FactSource::new(Origin::Profile, name), facts));
        Layout::resolve(&origins).1.len()
    });
    assert_eq!(far, [0, 1]);
}

/// The names of the profiles that may be a program's, and its layout; or why none may.
fn possible<'p>(
    profiles: &'p Profiles,
    image: &Image,
    decoded: &Facts,
) -> Result<(Vec<&'p str>, Facts, usize), Vec<String>> {
    match common(profiles, image, decoded) {
        Ok(found) => {
            let names = found.classes.iter().map(|class| class.name.as_str()).collect();
            Ok((names, found.facts, found.confirmed))
        }
        Err(rejected) => Err(rejected.iter().map(ToString::to_string).collect()),
    }
}

#[test]
fn of_several_possible_layouts_only_what_they_agree_on_counts() {
    let mut newer = facts(8);
    newer.set_field("task", "late", at(48));
    newer.set_field("task", "moved", at(16));
    newer.globals.insert("lock".into(), 0x1000);
    let mut newest = newer.clone();
    newest.sizes.insert("task".into(), 72);
    newest.set_field("task", "moved", at(24));
    newest.set_field("team", "only_here", at(0));
    let profiles = open(&[
        single("old", &["a", "b"], &["c", "d"], facts(0)),
        single("newer", &["a", "b", "c"], &["d"], newer.clone()),
        profile(
            "newest",
            vec![build(&["a", "b", "c", "d"], &[]), build(&["a", "b", "c", "d", "e"], &[])],
            newest.clone(),
        ),
    ]);
    let mut decoded = nothing();
    decoded.set_field("task", "parent", at(8));

    // A name that is missing says nothing; what was decoded contradicts the oldest.
    let (names, agreed, confirmed) = possible(&profiles, &Image::new(&["a"]), &decoded).expect("two may be");
    assert_eq!((names, confirmed), (vec!["newer", "newest"], 1));
    let mut expected = facts(8);
    expected.sizes.clear();
    expected.set_field("task", "late", at(48));
    assert_eq!(agreed, expected);

    // A name that only the newest has, or a value, leaves one.
    let (names, all, _) = possible(&profiles, &Image::new(&["d"]), &decoded).expect("one may be");
    assert_eq!(names, ["newest"]);
    assert_eq!(all, Facts { globals: BTreeMap::new(), ..newest });
    let mut more = decoded.clone();
    more.set_field("task", "moved", at(16));
    let (names, all, confirmed) = possible(&profiles, &Image::new(&["a"]), &more).expect("one may be");
    assert_eq!((names, confirmed), (vec!["newer"], 2));
    assert_eq!(all, Facts { globals: BTreeMap::new(), ..newer });

    // With nothing decoded nothing is ruled out by values, and the caller is told that nothing is confirmed.
    let (names, agreed, confirmed) = possible(&profiles, &Image::new(&["a"]), &nothing()).expect("all may be");
    assert_eq!((names.len(), confirmed), (3, 0));
    assert_eq!(agreed.field("task", "parent"), None);

    // Values that no profile has: none may be.
    more.set_field("task", "parent", at(40));
    let why = possible(&profiles, &Image::new(&["a"]), &more).expect_err("none may be");
    assert_eq!(why.len(), 3, "{why:?}");
    assert!(why.iter().all(|line| line.contains("contradicts")), "{why:?}");
}

#[test]
fn a_program_with_a_public_name_that_is_new_may_be_of_no_known_release() {
    let vocabulary = Vocabulary::parse("omp_*\nomp_known\n");
    let profiles = Profiles { classes: vec![single("one", &["omp_known"], &[], facts(8))], vocabulary };
    let mut decoded = nothing();
    decoded.set_field("task", "parent", at(8));
    assert!(possible(&profiles, &Image::new(&["omp_known", "main"]), &decoded).is_ok());
    let why = possible(&profiles, &Image::new(&["omp_known", "omp_new"]), &decoded).expect_err("a stranger");
    assert!(why[0].contains("omp_new"), "{why:?}");
}

#[test]
fn of_a_build_that_is_listed_only_its_profile_is_parsed() {
    let mut one = single("one", &["a"], &[], facts(8));
    one.builds[0].build_ids.push("abcd".to_owned());
    let one: &'static str = one.to_json().expect("serialises").leak();
    let other: &'static str = single("other", &["b"], &[], facts(16)).to_json().expect("serialises").leak();
    let listed = Image { build_id: Some("abcd"), ..Image::new(&["b"]) };
    let same_id_in_words = Image { build_id: Some("test"), ..Image::new(&["b"]) };
    let name = |profiles: &ShippedProfiles, image: &Image| {
        profiles.select(image, &nothing()).map(|selection| selection.profile.name.clone()).map_err(|why| why.len())
    };

    // With a text that is no profile, all together are none.
    let broken: &'static [&'static str] = vec![one, "no profile", other].leak();
    let profiles = ShippedProfiles::new(broken, "@V1\n");
    assert_eq!(name(&profiles, &listed), Ok("one".to_owned()));
    assert!(profiles.knows("abcd"));
    assert_eq!(name(&profiles, &Image::new(&["b"])), Err(0));

    // All are asked if none lists the build, whatever was asked for before and whatever else a text has in it.
    let whole: &'static [&'static str] = vec![one, other].leak();
    for images in [[&listed, &same_id_in_words], [&same_id_in_words, &listed]] {
        let profiles = ShippedProfiles::new(whole, "@V1\n@V2\n@V3\n");
        for image in images {
            let expected = if image.build_id == Some("abcd") { "one" } else { "other" };
            assert_eq!(name(&profiles, image), Ok(expected.to_owned()));
        }
        assert!(profiles.knows("abcd") && !profiles.knows("test"));
    }
}
