//! What is derived from the file of a runtime, against a truth that did not take part in deriving it.

use std::collections::BTreeSet;

use ompd_layout::profile::{self, Profile};
use ompd_layout::{FactSource, Facts, Layout, Origin};
use ompd_process::elf::ElfFile;
use ompd_runtime::Analysis;

/// Where the truth about a layout is from.
pub enum Truth {
    /// The debug information of this very build.
    Dwarf(Facts),
    /// The shipped layout that exported names or the build-id alone lead to: no derived value has a say in it.
    Class(&'static Profile),
    /// None, and why.
    None(String),
}

/// What one origin says, against the truth.
#[derive(Default)]
pub struct Score {
    /// Values that are as in truth.
    pub right: usize,
    /// Values that are not, with both.
    pub wrong: Vec<String>,
    /// Values the truth says nothing about.
    pub unjudged: usize,
}

/// The static half of a row.
pub struct Layouts {
    pub family: &'static str,
    /// The shipped layout in use, or `None` when none fits.
    pub class: Option<&'static str>,
    pub truth: Truth,
    pub code: Score,
    pub table: Score,
    /// Values the truth has and neither code nor table gives.
    pub underived: usize,
    /// All that the code says.
    pub decoded: Facts,
}

impl Layouts {
    /// Whether a truth confirms what was derived, and nothing that was is wrong.
    pub fn is_proved(&self) -> bool {
        let has_truth = !matches!(self.truth, Truth::None(_));
        has_truth && self.code.right > 0 && self.code.wrong.is_empty() && self.table.wrong.is_empty()
    }
}

/// Derives and compares; `None` if the file is no runtime.
pub fn examine(elf: &ElfFile) -> Option<Layouts> {
    let analysis = ompd_runtime::analyse(elf)?;
    let truth = truth(elf, &analysis);
    let symbols = said(&analysis, Origin::Symbol);
    let facts = match &truth {
        Truth::Dwarf(facts) => facts.clone(),
        Truth::Class(profile) => Facts { globals: symbols.globals, ..profile.facts.clone() },
        Truth::None(_) => Facts { globals: symbols.globals, ..Facts::default() },
    };
    let code = said(&analysis, Origin::Code);
    let table = said(&analysis, Origin::Table);
    let derived: BTreeSet<String> = names(&code).chain(names(&table)).collect();
    let wanted: BTreeSet<String> = names(&facts).collect();
    Some(Layouts {
        family: analysis.family,
        class: analysis.profile.as_ref().ok().map(|selected| selected.profile.name.as_str()),
        code: score(&facts, &code, Origin::Code),
        table: score(&facts, &table, Origin::Table),
        underived: wanted.difference(&derived).count(),
        truth,
        decoded: code,
    })
}

fn truth(elf: &ElfFile, analysis: &Analysis) -> Truth {
    let mut dwarf = said(analysis, Origin::Dwarf);
    if !dwarf.is_empty() {
        for (name, addr) in said(analysis, Origin::Symbol).globals {
            dwarf.globals.entry(name).or_insert(addr);
        }
        return Truth::Dwarf(dwarf);
    }
    let profiles = ompd_runtime::family::profiles(analysis.family).expect("it is of a family that is known");
    match profile::select(profiles, elf, &Facts::default()) {
        Ok(selected) => Truth::Class(selected.profile),
        Err(_) => Truth::None("no debug information, and no shipped layout is for what it exports".to_owned()),
    }
}

/// All that one kind of origin says.
fn said(analysis: &Analysis, origin: Origin) -> Facts {
    let mut all = Facts::default();
    for (_, facts) in analysis.origins.iter().filter(|(source, _)| source.origin == origin) {
        all.sizes.extend(facts.sizes.clone());
        all.globals.extend(facts.globals.clone());
        for (of, fields) in &facts.fields {
            all.fields.entry(of.clone()).or_default().extend(fields.clone());
        }
    }
    all
}

/// The names of all values, as [`Layout::entries`] has them.
fn names(facts: &Facts) -> impl Iterator<Item = String> {
    let sizes = facts.sizes.keys().map(|name| format!("sizeof({name})"));
    let fields = facts.fields.iter().flat_map(|(of, fields)| fields.keys().map(move |name| format!("{of}.{name}")));
    sizes.chain(fields).chain(facts.globals.keys().cloned()).collect::<Vec<_>>().into_iter()
}

fn score(truth: &Facts, derived: &Facts, origin: Origin) -> Score {
    let known: BTreeSet<String> = names(truth).collect();
    let (judged, unjudged): (Vec<_>, Vec<_>) = names(derived).partition(|name| known.contains(name));
    let truth = (FactSource::new(Origin::Profile, "truth"), truth.clone());
    let (_, mismatches) = Layout::resolve(&[truth, (FactSource::new(origin, "derived"), derived.clone())]);
    let wrong = mismatches.iter().map(|m| format!("{}: {} by {origin}, in truth {}", m.name, m.other, m.kept));
    Score { right: judged.len() - mismatches.len(), wrong: wrong.collect(), unjudged: unjudged.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompd_layout::Field;

    fn facts(fields: &[(&str, u64)]) -> Facts {
        let mut facts = Facts::default();
        for (name, offset) in fields {
            facts.set_field("thread", name, Field { offset: *offset, size: 4, bits: None });
        }
        facts
    }

    #[test]
    fn right_wrong_and_unjudged_values_are_told_apart() {
        let truth = facts(&[("a", 0), ("b", 4), ("c", 8)]);
        let score = score(&truth, &facts(&[("a", 0), ("b", 12), ("d", 16)]), Origin::Code);
        assert_eq!((score.right, score.unjudged), (1, 1));
        assert_eq!(score.wrong, ["thread.b: 0xc by code, in truth 0x4"]);
    }
}
