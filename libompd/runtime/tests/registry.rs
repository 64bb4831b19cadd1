//! The table of control variables in the documentation is what the registry says.

#![cfg(all(feature = "gomp", feature = "kmp"))]

use std::fmt::Write as _;

use ompd_runtime::family;
use ompd_runtime::icvs::{Entry, REGISTRY};

const HEAD: &str = "# Control variables

One table in the code has all internal control variables (ICVs) of the specification that are offered:
`libompd/runtime/src/icvs/registry.rs`. Reports, the C interface and this page go by it. How a family of runtimes
keeps one is a line of the family's own table (`ICVS` in `libompd/runtime/src/NAME/read/icvs.rs`).

To add one, write an entry there and a line in each family's table. A test asks each family for its line. Then run
`UPDATE_DOCS=1 cargo test -p ompd-runtime --test registry`, which writes this page, and
`UPDATE_SCHEMA=1 cargo test -p ompd-report`, which writes the schema of JSON.

JSON has those with a key in `icvs` of each thread, and where they come from in `icv_sources`; it has those of the
global and device scopes by their names in `icvs` of the runtime. OMPD numbers with `+` have names of their own.
";

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn row(entry: &Entry, variables: &[&str], families: &[String]) -> String {
    let ompd = entry.ompd.map_or_else(String::new, |ompd| {
        let aliases = ompd.aliases.iter().map(|(id, _)| format!("+{id}"));
        std::iter::once(ompd.id.to_string()).chain(aliases).collect::<Vec<_>>().join(" ")
    });
    let (name, scope) = (entry.name(), entry.scope.word());
    let (getter, key) = (code(entry.getter.as_slice()), code(entry.key.as_slice()));
    let list = if entry.is_list { ", list" } else { "" };
    format!(
        "| `{name}` | {scope}{list} | {getter} | {} | {key} | {ompd} | {} |\n",
        code(variables),
        families.join(" | ")
    )
}

#[test]
fn the_committed_table_is_current() {
    let families: Vec<_> = family::icvs().collect();
    let mut page = HEAD.to_owned();
    let names: Vec<_> = families.iter().map(|(about, _)| about.name).collect();
    let rule = "---|".repeat(6 + families.len());
    write!(page, "\n| name | scope | API | environment | JSON key | OMPD | {} |\n|{rule}\n", names.join(" | "))
        .expect("text");
    for entry in REGISTRY {
        let of = |(_, kept): &(_, Vec<ompd_runtime::icvs::Kept>)| {
            let Some(kept) = kept.iter().find(|kept| kept.entry.icv == entry.icv) else { return "model".to_owned() };
            let own = &kept.variables[entry.variables.len()..];
            let own = if own.is_empty() { String::new() } else { format!("; also {}", code(own)) };
            format!("{}{own}", kept.unread.as_ref().map_or_else(|| "read".to_owned(), |why| format!("no: {why}")))
        };
        page += &row(entry, entry.variables, &families.iter().map(of).collect::<Vec<_>>());
    }
    page += "\n`model` says that a value is read with the thread, team or task that has it. Runtimes have these of their own:\n\n";
    page += "| name | environment | |\n|---|---|---|\n";
    for kept in families.iter().flat_map(|(_, kept)| kept).filter(|kept| kept.entry.ompd.is_none()) {
        let read = kept.unread.as_ref().map_or_else(|| "read".to_owned(), |why| format!("no: {why}"));
        writeln!(page, "| `{}` | {} | {read} |", kept.entry.name(), code(&kept.variables)).expect("text");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/icvs.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).expect("writing the page");
    }
    let committed = std::fs::read_to_string(path).expect("the page");
    assert!(committed == page, "docs/icvs.md is out of date: run with UPDATE_DOCS=1");
}
