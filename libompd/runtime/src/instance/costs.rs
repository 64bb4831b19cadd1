//! Values of a layout that no origin gave, and what is lost with each.

use ompd_layout::{FactSource, Facts, Layout, Origin};
use ompd_process::elf::ElfFile;

use super::origins::{Cost, FamilyOrigins};
use crate::model::Lack;

/// What no origin gave, by what it costs. Members that this release does not have are not among it.
pub(super) fn missing(layout: &Layout, of: &FamilyOrigins, answers: &[(FactSource, Facts)]) -> Vec<Lack> {
    // Debug information, and the profiles made from it, have either a struct with all its members or none of it.
    let whole = |s: &str| {
        let knows = |(source, facts): &(FactSource, Facts)| {
            matches!(source.origin, Origin::Dwarf | Origin::Profile) && facts.sizes.contains_key(s)
        };
        answers.iter().any(knows)
    };
    let absent = |s: &str| {
        let leads = |(to, (from, member)): &(&str, (&str, &str))| {
            *to == s && whole(from) && layout.field(from, member).is_err()
        };
        of.led_to.iter().any(leads)
    };
    let fields = of.schema.structs.iter().filter(|s| !whole(s.name) && !absent(s.name));
    let fields = fields.flat_map(|s| s.fields.iter().map(move |f| (s.name, f.name)));
    let fields = fields.filter(|(s, f)| layout.field(s, f).is_err()).map(|(s, f)| format!("{s}.{f}"));
    let globals = of.schema.globals.iter().filter(|g| layout.global(g.name).is_err()).map(|g| g.name.to_owned());
    // Most structs are read no further than their last known field; of the others it is said what their size is for.
    let sizes = of.schema.structs.iter().filter(|s| layout.size_of(s.name).is_err());
    let sizes = sizes.map(|s| format!("sizeof({})", s.name)).filter(|name| of.costs.iter().any(|c| c.of == name));
    let all: Vec<String> = fields.chain(globals).chain(sizes).collect();
    let known = |name: &&str| match name.split_once('.') {
        Some((of, field)) => layout.field(of, field).is_ok(),
        None => layout.global(name).is_ok(),
    };
    let needless: Vec<&str> = of.alternatives.iter().filter(|pair| pair.iter().any(known)).flatten().copied().collect();
    let mut missing: Vec<Lack> = Vec::new();
    for name in all.iter().filter(|name| !needless.contains(&name.as_str())) {
        let cost = cost_of(name, of.costs);
        match missing.iter_mut().find(|lack| lack.cost == cost) {
            Some(lack) => lack.names.push(name.clone()),
            None => missing.push(Lack { cost, names: vec![name.clone()] }),
        }
    }
    missing
}

/// Takes away what this release, or a program that has the runtime built in, has no use for.
pub(super) fn drop_needless(missing: &mut Vec<Lack>, of: &FamilyOrigins, file: &ElfFile) {
    // Symbols are looked up only for what is missing.
    let is_needless = |name: &String| {
        let mut of_it = of.only_with.iter().filter(|(value, _)| value == name);
        of_it.any(|(_, with)| file.symbol(with).is_none())
    };
    for lack in missing.iter_mut() {
        lack.names.retain(|name| !is_needless(name));
    }
    missing.retain(|lack| !lack.names.is_empty());
}

/// What the missing value costs.
fn cost_of(name: &str, costs: &[Cost]) -> &'static str {
    let fitting = costs.iter().filter(|cost| name.starts_with(cost.of));
    fitting.max_by_key(|cost| cost.of.len()).map_or("what is read from it is unknown", |cost| cost.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_cost_and_every_cost_its_value() {
        for of in crate::FAMILIES.iter().map(|family| family.origins()) {
            let nothing = Layout::default();
            let mut names = Vec::new();
            for lack in missing(&nothing, &of, &[]) {
                assert_ne!(lack.cost, cost_of("", &[]), "{:?}", lack.names);
                names.extend(lack.names);
            }
            for cost in of.costs {
                assert!(names.iter().any(|name| name.starts_with(cost.of)), "no value is called {}", cost.of);
            }
        }
    }
}
