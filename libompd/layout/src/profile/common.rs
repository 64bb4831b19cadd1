//! What is known of an image that is of one of several releases.

use super::{Comparison, ExportView, Profile, Profiles, Rejection};
use crate::facts::{FactSource, Facts, Origin};

/// What all profiles agree on that an image may have.
#[derive(Debug, Clone)]
pub struct Common<'p> {
    /// The profiles that may be the image's; one or more.
    pub classes: Vec<&'p Profile>,
    /// The values all of them have, and have alike. No globals.
    pub facts: Facts,
    /// Decoded values that every one of them confirms.
    pub confirmed: usize,
}

impl Common<'_> {
    /// Who its facts come from.
    pub fn source(&self) -> FactSource {
        let names: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
        FactSource::new(Origin::Profile, names.join(" and "))
    }
}

/// What is known of an image that shows only a part of its runtime. A program with the runtime built in has only
/// those of its functions that were needed, and `image` shows these. No fingerprint fits then, for it needs the names
/// that are missing as much as those that are there. So no profile is chosen. Instead a profile is ruled out if the
/// image has public names that exclude each of its builds. It is also ruled out if it contradicts a value of
/// `decoded`. What all remaining profiles agree on holds, whichever of them is the right one. As in
/// [`super::select`], a public name that is new to [`Profiles::vocabulary`] rules out all of them.
///
/// # Errors
/// Why each of the profiles was ruled out, if all are.
pub fn common<'p>(
    profiles: &'p Profiles,
    image: &impl ExportView,
    decoded: &Facts,
) -> Result<Common<'p>, Vec<Rejection>> {
    let decoder = FactSource::new(Origin::Code, "decoded from the image");
    let stranger = profiles.vocabulary.stranger(image);
    let mut rejected = Vec::new();
    let mut left: Vec<(&Profile, usize)> = Vec::new();
    for profile in &profiles.classes {
        let mut reject =
            |why: String, mismatches| rejected.push(Rejection { profile: profile.name.clone(), why, mismatches });
        if !profile.archs.iter().any(|arch| arch == image.machine()) {
            reject(format!("is for {}, the image is for {}", profile.archs.join(" and "), image.machine()), Vec::new());
            continue;
        }
        if let Some(why) = &stranger {
            reject(format!("the image {why}"), Vec::new());
            continue;
        }
        let no_builds = Err("is another build than the listed ones".to_owned());
        let allowed = profile.builds.iter().map(|b| b.fingerprint.allows(image)).fold(no_builds, Result::or);
        let Comparison { confirmed, mismatches } =
            Comparison::of((&decoder, decoded), (&profile.source(), &profile.facts));
        match allowed {
            Err(why) => reject(format!("the image {why}"), Vec::new()),
            Ok(()) if !mismatches.is_empty() => {
                let why = format!("contradicts {} of {} values", mismatches.len(), mismatches.len() + confirmed);
                reject(why, mismatches);
            }
            Ok(()) => left.push((profile, confirmed)),
        }
    }
    let Some(confirmed) = left.iter().map(|(_, confirmed)| *confirmed).min() else { return Err(rejected) };
    let classes: Vec<&Profile> = left.into_iter().map(|(profile, _)| profile).collect();
    let facts = agreed(&classes);
    Ok(Common { classes, facts, confirmed })
}

/// The values that all profiles have, and have alike.
fn agreed(classes: &[&Profile]) -> Facts {
    let Some((first, others)) = classes.split_first() else { return Facts::default() };
    let mut facts = Facts { globals: Default::default(), ..first.facts.clone() };
    facts.sizes.retain(|name, size| others.iter().all(|other| other.facts.sizes.get(name) == Some(size)));
    for (of, fields) in &mut facts.fields {
        fields.retain(|name, field| others.iter().all(|other| other.facts.field(of, name) == Some(*field)));
    }
    facts.fields.retain(|_, fields| !fields.is_empty());
    facts
}
