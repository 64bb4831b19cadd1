//! Choosing among shipped profiles.

use std::collections::BTreeSet;

use ompd_layout::profile::{ExportView, Fingerprint, Profile, select};
use ompd_layout::{BitRange, Facts, Field};

#[derive(Default)]
struct Image {
    build_id: Option<&'static str>,
    exports: BTreeSet<&'static str>,
    versions: BTreeSet<&'static str>,
}

impl ExportView for Image {
    fn build_id(&self) -> Option<String> {
        self.build_id.map(str::to_owned)
    }
    fn machine(&self) -> &str {
        "x86_64"
    }
    fn exports(&self, name: &str) -> bool {
        self.exports.contains(name)
    }
    fn defines_version(&self, name: &str) -> bool {
        self.versions.contains(name)
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

fn profile(name: &str, exports: &[&str], no_exports: &[&str], facts: Facts) -> Profile {
    let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    Profile {
        name: name.to_owned(),
        family: "test".to_owned(),
        arch: "x86_64".to_owned(),
        made_from: "a \"test\"".to_owned(),
        fingerprint: Fingerprint { exports: list(exports), no_exports: list(no_exports), ..Fingerprint::default() },
        facts,
    }
}

fn chosen<'p>(profiles: &'p [Profile], image: &Image, decoded: &Facts) -> Result<&'p str, Vec<String>> {
    match select(profiles, image, decoded) {
        Ok(selection) => Ok(&selection.profile.name),
        Err(rejected) => Err(rejected.iter().map(ToString::to_string).collect()),
    }
}

#[test]
fn written_profiles_read_back_and_unknown_keys_are_refused() {
    let mut one = profile("one", &["a"], &["b"], facts(8));
    one.fingerprint.build_ids.push("00ff".to_owned());
    one.fingerprint.version_nodes.push("OMP_5.1".to_owned());
    let text = one.to_json().expect("serialises");
    assert_eq!(Profile::parse(&text).expect("reads back"), one);
    assert!(text.lines().any(|l| l == r#"    "parent": {"offset":8,"size":8}"#), "one line per field:\n{text}");
    assert!(Profile::parse(&text.replace("made_from", "made_with")).is_err());
    let empty = Profile { facts: Facts::default(), fingerprint: Fingerprint::default(), ..one };
    assert_eq!(Profile::parse(&empty.to_json().expect("serialises")).expect("reads back"), empty);
}

#[test]
fn fingerprints_decide_and_decoded_values_have_a_veto() {
    let profiles = [profile("old", &["a"], &["b"], facts(8)), profile("new", &["a", "b"], &[], facts(16))];
    let old = Image { exports: ["a"].into(), ..Image::default() };
    let new = Image { exports: ["a", "b"].into(), ..Image::default() };
    assert_eq!(chosen(&profiles, &old, &Facts::default()), Ok("old"));
    assert_eq!(chosen(&profiles, &new, &facts(16)), Ok("new"));

    let selection = select(&profiles, &new, &facts(16)).expect("as above");
    assert_eq!((selection.confirmed, selection.by_build_id), (3, false));

    let rejected = select(&profiles, &new, &facts(8)).expect_err("contradicts");
    assert_eq!(rejected[0].why, "the image exports b");
    assert_eq!(rejected[1].why, "contradicts 1 of 3 values");
    assert_eq!(rejected[1].mismatches[0].name, "task.parent");

    // Sizes that one side does not know are no contradiction, and globals belong to one build.
    let mut vague = Facts::default();
    vague.set_field("task", "parent", Field { offset: 16, size: 0, bits: None });
    vague.globals.insert("g".into(), 1);
    let mut with_globals = profiles;
    with_globals[1].facts.globals.insert("g".into(), 2);
    assert_eq!(chosen(&with_globals, &new, &vague), Ok("new"));
}

#[test]
fn version_nodes_and_machines_are_conditions() {
    let mut one = profile("one", &[], &[], facts(8));
    let image = Image { versions: ["OMP_5.0"].into(), ..Image::default() };
    let why = chosen(std::slice::from_ref(&one), &image, &Facts::default()).expect_err("no condition at all");
    assert_eq!(why, ["one: the image is another build than the listed ones"]);
    one.fingerprint.version_nodes = vec!["OMP_5.0".to_owned()];
    one.fingerprint.no_version_nodes = vec!["OMP_5.1".to_owned()];
    assert_eq!(chosen(std::slice::from_ref(&one), &image, &Facts::default()), Ok("one"));
    let newer = Image { versions: ["OMP_5.0", "OMP_5.1"].into(), ..Image::default() };
    let why = chosen(std::slice::from_ref(&one), &newer, &Facts::default()).expect_err("newer");
    assert_eq!(why, ["one: the image defines the symbol version OMP_5.1"]);
    one.arch = "aarch64".to_owned();
    let why = chosen(std::slice::from_ref(&one), &image, &Facts::default()).expect_err("another machine");
    assert_eq!(why, ["one: is for aarch64, the image is for x86_64"]);
}

#[test]
fn a_build_id_settles_it_but_contradictions_are_told() {
    let mut listed = profile("listed", &["no such export"], &[], facts(8));
    listed.fingerprint.build_ids.push("abcd".to_owned());
    let profiles = [profile("fits", &["a"], &[], facts(16)), listed];
    let image = Image { build_id: Some("abcd"), exports: ["a"].into(), ..Image::default() };
    let selection = select(&profiles, &image, &facts(16)).expect("listed");
    assert_eq!((selection.profile.name.as_str(), selection.by_build_id), ("listed", true));
    assert_eq!(selection.mismatches.len(), 1);
}

#[test]
fn the_more_specific_wins_and_a_tie_is_no_choice() {
    let image = Image { exports: ["a", "b"].into(), ..Image::default() };
    let profiles = [profile("loose", &["a"], &[], facts(8)), profile("tight", &["a", "b"], &[], facts(16))];
    assert_eq!(chosen(&profiles, &image, &Facts::default()), Ok("tight"));
    let tied = [profile("x", &["a"], &[], facts(8)), profile("y", &["b"], &[], facts(16))];
    let why = chosen(&tied, &image, &Facts::default()).expect_err("either could be it");
    assert_eq!(why.len(), 2);
    assert!(why[0].ends_with("fits, but so does another profile that differs"), "{why:?}");
    let same = [profile("x", &["a"], &[], facts(8)), profile("y", &["b"], &[], facts(8))];
    assert_eq!(chosen(&same, &image, &Facts::default()), Ok("x"));
}
