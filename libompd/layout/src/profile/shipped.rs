//! The profiles compiled into the program, parsed as far as they are asked for.

use std::sync::OnceLock;

use super::{ExportView, Profile, Profiles, Rejection, Selection, Vocabulary, select};
use crate::facts::Facts;

/// Everything shipped for one runtime family. Most processes have a build that a profile lists: then only that profile is parsed.
#[derive(Debug, Default)]
pub struct ShippedProfiles {
    texts: &'static [&'static str],
    vocabulary: &'static str,
    all: OnceLock<Profiles>,
    /// A build-id, and the profiles whose text has it.
    listed: OnceLock<(String, Profiles)>,
}

impl ShippedProfiles {
    /// From profile files and the family's vocabulary, as [`Profiles::parse`].
    pub const fn new(texts: &'static [&'static str], vocabulary: &'static str) -> ShippedProfiles {
        ShippedProfiles { texts, vocabulary, all: OnceLock::new(), listed: OnceLock::new() }
    }

    /// From profiles that have been parsed.
    pub fn parsed(profiles: Profiles) -> ShippedProfiles {
        ShippedProfiles { all: OnceLock::from(profiles), ..ShippedProfiles::default() }
    }

    /// All of them. They are tested to parse; if one did not, none would be used.
    pub fn all(&self) -> &Profiles {
        self.all.get_or_init(|| Profiles::parse(self.texts, self.vocabulary).unwrap_or_default())
    }

    /// [`Profiles::vocabulary`].
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.all().vocabulary
    }

    /// [`Profiles::knows`].
    pub fn knows(&self, build_id: &str) -> bool {
        self.listing(build_id).unwrap_or_else(|| self.all()).knows(build_id)
    }

    /// [`select`] among all.
    ///
    /// # Errors
    /// As [`select`].
    pub fn select(&self, image: &impl ExportView, decoded: &Facts) -> Result<Selection<'_>, Vec<Rejection>> {
        let listing = image.build_id().and_then(|build_id| self.listing(&build_id));
        let by_build_id = listing.and_then(|listing| select(listing, image, decoded).ok());
        match by_build_id.filter(|selection| selection.by_build_id) {
            Some(selection) => Ok(selection),
            None => select(self.all(), image, decoded),
        }
    }

    /// Those whose text has a build-id. `None` if all have been parsed, or another build was asked for before.
    fn listing(&self, build_id: &str) -> Option<&Profiles> {
        if self.all.get().is_some() {
            return None;
        }
        let (of, listed) = self.listed.get_or_init(|| {
            let texts = self.texts.iter().filter(|text| text.contains(build_id));
            let classes = texts.filter_map(|text| Profile::parse(text).ok()).collect();
            (build_id.to_owned(), Profiles { classes, ..Profiles::default() })
        });
        (of == build_id).then_some(listed)
    }
}
