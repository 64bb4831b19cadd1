//! Choosing the profile of an image.

use std::cell::LazyCell;

use super::{Comparison, ExportView, Profile, Profiles};
use crate::facts::{FactSource, Facts, Origin};
use crate::resolve::Mismatch;

/// The profile to use for an image.
#[derive(Debug, Clone)]
pub struct Selection<'p> {
    /// The profile.
    pub profile: &'p Profile,
    /// True if the build-id is listed; else a fingerprint matched.
    pub by_build_id: bool,
    /// Decoded values that the profile also has and confirms. With 0 only the fingerprint speaks for it.
    pub confirmed: usize,
    /// Contradictions with decoded values: empty unless selected by build-id.
    pub mismatches: Vec<Mismatch>,
}

/// Why a profile is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{profile}: {why}")]
pub struct Rejection {
    /// Name of the profile.
    pub profile: String,
    /// The reason, in words.
    pub why: String,
    /// The contradictions with decoded values, when they are the reason.
    pub mismatches: Vec<Mismatch>,
}

/// Picks the profile for an image. A profile that lists the image's build-id comes first. Else it is one with a build
/// whose fingerprint matches and that contradicts no value of `decoded`. The image must then have no public name that
/// is new to [`Profiles::vocabulary`]. Of several, the one with most conditions is picked. If two equally specific
/// ones differ in their layout, none is picked, because that would be a guess.
///
/// # Errors
/// Why each of the profiles was rejected.
pub fn select<'p>(
    profiles: &'p Profiles,
    image: &impl ExportView,
    decoded: &Facts,
) -> Result<Selection<'p>, Vec<Rejection>> {
    let build_id = image.build_id();
    let stranger = LazyCell::new(|| profiles.vocabulary.stranger(image));
    let decoder = FactSource::new(Origin::Code, "decoded from the image");
    let mut rejected = Vec::new();
    let mut fitting: Vec<(usize, Selection<'p>)> = Vec::new();
    for profile in &profiles.classes {
        let mut reject =
            |why: String, mismatches| rejected.push(Rejection { profile: profile.name.clone(), why, mismatches });
        if !profile.archs.iter().any(|arch| arch == image.machine()) {
            reject(format!("is for {}, the image is for {}", profile.archs.join(" and "), image.machine()), Vec::new());
            continue;
        }
        let Comparison { confirmed, mismatches } =
            Comparison::of((&decoder, decoded), (&profile.source(), &profile.facts));
        if build_id.as_deref().is_some_and(|id| profile.knows(id)) {
            return Ok(Selection { profile, by_build_id: true, confirmed, mismatches });
        }
        let verdict = match &*stranger {
            Some(why) => Err(why.clone()),
            None => profile.build_of(image).map(|(_, score)| score),
        };
        match verdict {
            Err(why) => reject(format!("the image {why}"), Vec::new()),
            Ok(_) if !mismatches.is_empty() => {
                let why = format!("contradicts {} of {} values", mismatches.len(), mismatches.len() + confirmed);
                reject(why, mismatches);
            }
            Ok(score) => fitting.push((score, Selection { profile, by_build_id: false, confirmed, mismatches })),
        }
    }
    let best = fitting.iter().map(|(score, _)| *score).max();
    let mut candidates = fitting.into_iter().filter(|(score, _)| Some(*score) == best).map(|(_, s)| s);
    let Some(chosen) = candidates.next() else { return Err(rejected) };
    let rivals: Vec<_> = candidates.filter(|c| !same_layout(&c.profile.facts, &chosen.profile.facts)).collect();
    if rivals.is_empty() {
        return Ok(chosen);
    }
    for one in std::iter::once(chosen).chain(rivals) {
        let why = "fits, but so does another profile that differs".to_owned();
        rejected.push(Rejection { profile: one.profile.name.clone(), why, mismatches: Vec::new() });
    }
    Err(rejected)
}

fn same_layout(a: &Facts, b: &Facts) -> bool {
    a.sizes == b.sizes && a.fields == b.fields
}
