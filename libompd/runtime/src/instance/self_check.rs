//! What memory says of a layout: whether the identities hold that hold in every process.

use ompd_layout::Origin;

use crate::model::{Common, FailedCheck, Issue, RawSnapshot, Reason, Trouble};

/// Identities that hold in every process whatever the program does, if the layout is right: how often each did.
///
/// A single structure may be caught half made, or be what is left of one. An identity that holds nowhere speaks against
/// the layout.
#[derive(Debug, Default)]
pub(crate) struct SelfCheck {
    /// Each identity with how often it held and how often it failed. There is a handful of them.
    seen: Vec<(&'static str, usize, usize)>,
}

impl SelfCheck {
    /// Files that an identity, told in words for the case that it fails, did or did not hold once more.
    pub(crate) fn note(&mut self, identity: &'static str, holds: bool) {
        // The same text is the same constant, as a rule: comparing addresses is enough to find it.
        let is_it = |known: &&'static str| std::ptr::eq(*known, identity) || *known == identity;
        let at = self.seen.iter().position(|(known, ..)| is_it(known)).unwrap_or_else(|| {
            self.seen.push((identity, 0, 0));
            self.seen.len() - 1
        });
        let (_, held, failed) = &mut self.seen[at];
        *(if holds { held } else { failed }) += 1;
    }

    /// Files the identities of one team.
    ///
    /// # Errors
    /// The first that does not hold: then nothing of the team may be shown.
    pub(crate) fn judge(&mut self, identities: &[(&'static str, bool)]) -> Result<(), Reason> {
        for (failing, holds) in identities {
            self.note(failing, *holds);
        }
        match identities.iter().find(|(_, holds)| !holds) {
            Some((failing, _)) => Err(Reason::from(Common::SelfCheckFailed { failing })),
            None => Ok(()),
        }
    }

    /// The first identity that failed wherever it was looked for.
    pub(crate) fn failure(&self) -> Option<FailedCheck> {
        let (identity, _, count) = self.seen.iter().find(|(_, held, failed)| *held == 0 && *failed > 0)?;
        Some(FailedCheck { identity, count: *count })
    }
}

/// The snapshot to show: `first`, unless what it met in memory speaks against its profile; then `plain`, which does
/// without.
pub(crate) fn checked(first: (RawSnapshot, SelfCheck), plain: Option<impl FnOnce() -> RawSnapshot>) -> RawSnapshot {
    let (mut snapshot, check) = first;
    let Some(broken) = check.failure() else { return snapshot };
    let Some(plain) = plain else {
        // Nobody guessed this layout, so it is the process that is odd, or was caught in the middle of something.
        snapshot.issues.insert(0, Issue::new("memory", Trouble::MemoryContradicts { broken }));
        return snapshot;
    };
    let mut plain = plain();
    let profile = snapshot.instance.origins.iter().find(|o| o.origin == Origin::Profile && o.values > 0);
    let name = profile.map_or("profile", |p| &p.detail);
    plain.issues.insert(0, Issue::new("layout", Trouble::LayoutRefused { name: name.to_owned(), broken }));
    plain
}
