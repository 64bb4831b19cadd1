//! Layout profiles and vocabularies. They are shipped, but someone may have edited one.

use ompd_layout::profile::{ExportView, Fingerprint, Profile, Profiles, Vocabulary, select};
use ompd_layout::{FactSource, Layout, Origin};
use ompd_runtime::family::{families, profiles};

/// Reads the input as a vocabulary and as a profile, writes them back, offers the profile to an image of its own beside
/// shipped ones.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let vocabulary = Vocabulary::parse(text);
    assert_eq!(Vocabulary::parse(&vocabulary.to_text()), vocabulary, "reading back gives another vocabulary");
    let Ok(profile) = Profile::parse(text) else { return };
    let text = profile.to_json().expect("what was parsed can be written");
    assert_eq!(Profile::parse(&text).ok().as_ref(), Some(&profile), "reading back gives another profile: {text}");

    let image = Image { profile: &profile, fingerprint: profile.builds.first().map(|build| &build.fingerprint) };
    for shipped in families().filter_map(|about| profiles(about.name)) {
        let Some(known) = shipped.classes.first() else { continue };
        for (first, second) in [(&profile, known), (known, &profile)] {
            let code = FactSource::new(Origin::Code, "decoded");
            let (layout, _) = Layout::resolve(&[(code, first.facts.clone()), (second.source(), second.facts.clone())]);
            for of in profile.facts.fields.keys() {
                let _ = layout.extent_of(of);
            }
            let mut vocabulary = shipped.vocabulary.clone();
            for _ in 0..2 {
                let all = Profiles { classes: vec![first.clone(), second.clone()], vocabulary: vocabulary.clone() };
                match select(&all, &image, &first.facts) {
                    Ok(selection) => assert!(selection.by_build_id || selection.mismatches.is_empty()),
                    Err(rejected) => assert_eq!(rejected.len(), all.classes.len(), "each is rejected once"),
                }
                // Once as a stranger, once not.
                vocabulary.learn(&image);
                assert_eq!(vocabulary.stranger(&image), None);
            }
        }
    }
    for (a, b) in profile.builds.iter().zip(profile.builds.iter().skip(1)) {
        let (a, b) = (&a.fingerprint, &b.fingerprint);
        assert_eq!(a.excludes(b), b.excludes(a));
    }
}

/// The image that a profile was made for.
struct Image<'p> {
    profile: &'p Profile,
    fingerprint: Option<&'p Fingerprint>,
}

impl ExportView for Image<'_> {
    fn build_id(&self) -> Option<String> {
        self.profile.builds.get(1)?.build_ids.first().cloned()
    }

    fn machine(&self) -> &str {
        self.profile.archs.first().map_or("x86_64", |arch| arch)
    }

    fn export_size(&self, name: &str) -> Option<u64> {
        let print = self.fingerprint?;
        print.export_sizes.get(name).copied().or(print.exports.iter().any(|n| n == name).then_some(8))
    }

    fn exported_names(&self) -> Vec<&str> {
        self.fingerprint.map_or_else(Vec::new, |print| print.exports.iter().map(String::as_str).collect())
    }

    fn version_nodes(&self) -> Vec<String> {
        self.fingerprint.map_or_else(Vec::new, |print| print.version_nodes.clone())
    }
}
