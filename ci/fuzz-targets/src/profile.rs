//! Layout profiles. They are shipped, but a user may have edited one.

use ompd_layout::profile::{ExportView, Profile, select};
use ompd_layout::{Layout, Origin, Source};

/// Reads the input as a profile, writes it back, offers it to an image beside the shipped ones.
pub fn check(data: &[u8]) {
    let Some(profile) = std::str::from_utf8(data).ok().and_then(|text| Profile::parse(text).ok()) else { return };
    let text = profile.to_json().expect("what was parsed can be written");
    assert_eq!(Profile::parse(&text).ok().as_ref(), Some(&profile), "reading back gives another profile: {text}");

    for shipped in [ompd_runtime::gomp::profiles(), ompd_runtime::kmp::profiles()] {
        let Some(known) = shipped.first() else { continue };
        let code = Source::new(Origin::Code, "decoded");
        for order in [[profile.clone(), known.clone()], [known.clone(), profile.clone()]] {
            let [first, second] = &order;
            let (layout, _) =
                Layout::resolve(&[(code.clone(), first.facts.clone()), (second.source(), second.facts.clone())]);
            for of in profile.facts.fields.keys() {
                let _ = layout.extent_of(of);
            }
            assert_eq!(layout.entries().is_empty(), first.facts.is_empty() && second.facts.is_empty());
            match select(&order, &Image { profile: &profile }, &first.facts) {
                Ok(selection) => assert!(selection.by_build_id || selection.mismatches.is_empty()),
                Err(rejected) => assert_eq!(rejected.len(), order.len(), "each is rejected once"),
            }
        }
    }
}

/// The image that the profile was made for.
struct Image<'p> {
    profile: &'p Profile,
}

impl ExportView for Image<'_> {
    fn build_id(&self) -> Option<String> {
        self.profile.fingerprint.build_ids.first().cloned()
    }

    fn machine(&self) -> &str {
        &self.profile.arch
    }

    fn exports(&self, name: &str) -> bool {
        self.profile.fingerprint.exports.iter().any(|n| n == name)
    }

    fn defines_version(&self, name: &str) -> bool {
        self.profile.fingerprint.version_nodes.iter().any(|n| n == name)
    }
}
