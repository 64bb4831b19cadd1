//! What memory says of a layout: whether the identities hold that hold in every process.

use std::collections::HashMap;

use ompd_layout::Origin;
use ompd_process::{Addr, ReadError, ReadFault, Target, TargetExt as _};

use crate::model::{Common, Fact, FailedCheck, Issue, RawSnapshot, Reason, Trouble};

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
pub(crate) fn checked(
    target: &dyn Target,
    first: (RawSnapshot, SelfCheck),
    plain: impl FnOnce() -> Option<RawSnapshot>,
) -> RawSnapshot {
    let mut snapshot = unrefused(first, plain);
    forget_stray_functions(target, &mut snapshot);
    snapshot
}

fn unrefused(first: (RawSnapshot, SelfCheck), plain: impl FnOnce() -> Option<RawSnapshot>) -> RawSnapshot {
    let (mut snapshot, check) = first;
    let Some(broken) = check.failure() else { return snapshot };
    let Some(mut plain) = plain() else {
        // Nobody guessed this layout, so it is the process that is odd, or was caught in the middle of something.
        snapshot.issues.insert(0, Issue::new("memory", Trouble::MemoryContradicts { broken }));
        return snapshot;
    };
    let profile = snapshot.instance.origins.iter().find(|o| o.origin == Origin::Profile && o.values > 0);
    let name = profile.map_or("profile", |p| &p.detail);
    plain.issues.insert(0, Issue::new("layout", Trouble::LayoutRefused { name: name.to_owned(), broken }));
    plain
}

/// Functions of regions and tasks that lie where nothing is mapped are not known: the record was not written yet, or is overwritten.
fn forget_stray_functions(target: &dyn Target, snapshot: &mut RawSnapshot) {
    let mut is_stray = stray(target);
    let of_teams = snapshot.teams.iter_mut().map(|team| &mut team.function);
    for function in of_teams.chain(snapshot.tasks.iter_mut().map(|task| &mut task.function)) {
        if let Some(addr) = function.get().filter(|addr| is_stray(*addr)) {
            *function = Fact::unknown(Common::FunctionNowhere { addr });
        }
    }
}

/// Tells addresses where nothing is mapped. Code that a program has made itself is in no module. Many tasks have few functions.
fn stray(target: &dyn Target) -> impl FnMut(Addr) -> bool {
    let mut known = HashMap::new();
    move |addr| {
        *known.entry(addr).or_insert_with(|| {
            let unmapped = |error: ReadError| error.why == ReadFault::Unmapped;
            target.module_at(addr).is_none() && target.read(addr, &mut [0]).is_err_and(unmapped)
        })
    }
}

#[cfg(test)]
mod tests {
    use ompd_process::{Arch, ByteOrder, Machine, TargetKind};
    use test_programs::FakeTarget;

    use super::*;

    #[test]
    fn only_what_is_not_mapped_is_stray() {
        let arch = Arch { machine: Machine::X86_64, pointer_bytes: 8, byte_order: ByteOrder::Little };
        let mut target = FakeTarget::new(TargetKind::Core, arch);
        target.memory.push((Addr(0x1000), vec![0; 16]));
        let mut is_stray = stray(&target);
        let seen = [0x1000, 0x100f, 0x1010, 0xfefe_fefe_fefe_fefe, 0x1000].map(|addr| is_stray(Addr(addr)));
        assert_eq!(seen, [false, false, true, true, false]);
    }
}
