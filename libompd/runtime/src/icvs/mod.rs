//! Internal control variables: which there are, what is known of each, and where their values come
//! from.
//!
//! The [`REGISTRY`] has one entry for each control variable of the specification; what is asked for
//! or shown of all of them goes by it. How a runtime keeps one is a line in its family's table
//! (`FAMILY/read/icvs.rs`). To add one is an entry, and a line for each family that has it.

mod line;
mod registry;
mod said;
mod sources;
mod variables;

pub use line::Kept;
pub(crate) use line::{Line, line};
pub use registry::*;
pub(crate) use said::{Began, texts};
pub(crate) use sources::{of_task, setting};
pub use variables::Variables;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::FAMILIES;

    #[test]
    fn each_family_reads_each_or_says_why_not() {
        let mut families = 0;
        for family in FAMILIES {
            let (kept, about) = (family.icvs(), family.about());
            if kept.is_empty() {
                continue;
            }
            families += 1;
            let is_kept = |entry: &Entry| entry.key.is_some() || entry.is_of_process();
            let wanted: Vec<_> = REGISTRY.iter().filter(|entry| is_kept(entry)).map(|entry| entry.name()).collect();
            let (of_all, own): (Vec<_>, Vec<_>) = kept.iter().partition(|kept| kept.entry.ompd.is_some());
            // Rows are shown in the order of the table, and so in the same order for all families.
            assert_eq!(of_all.iter().map(|kept| kept.entry.name()).collect::<Vec<_>>(), wanted, "{}", about.name);
            for kept in own {
                let name = kept.entry.name();
                assert!(name.starts_with(about.variables.prefix) && kept.variables.contains(&name), "{name}");
                assert!(kept.entry.is_of_process() && kept.entry.key.is_none(), "{name}");
            }
        }
        assert_eq!(families, usize::from(cfg!(feature = "gomp")) + usize::from(cfg!(feature = "kmp")));
    }
}
