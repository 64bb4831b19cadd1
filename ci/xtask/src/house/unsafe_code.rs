//! Unsafe blocks: `docs/internals/security.md` lists how many each crate has, and for what.

use std::collections::BTreeMap;

use super::{quoted, read, root, with_extension, workspace};

/// How a block begins. In two parts, so that it is none itself.
const BLOCK: &str = concat!("unsafe", " {");

/// How many unsafe blocks a text of Rust has. Comments do not count.
fn blocks(text: &str) -> usize {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let starts_word = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.map(|line| line.match_indices(BLOCK).filter(|(at, _)| starts_word(&line[..*at])).count()).sum()
}

#[test]
fn unsafe_blocks_are_those_of_the_page() {
    let page = read(&root().join("docs/internals/security.md"));
    let rows = page.split("## Unsafe code").nth(1).expect("the table").lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeMap<String, usize> = rows
        .map(|row| {
            let count = row.split('|').nth(2).and_then(|cell| cell.trim().parse().ok()).expect("a number");
            (quoted(row).next().expect("a crate").to_owned(), count)
        })
        .collect();
    let found: BTreeMap<String, usize> = workspace()
        .into_values()
        .map(|own| {
            let sources = with_extension(&root().join(&own.folder).join("src"), "rs");
            let count = sources.iter().map(|file| blocks(&read(file))).sum();
            (own.folder, count)
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(listed, found, "the table of docs/internals/security.md, and what the sources have");
}

#[test]
fn blocks_are_counted_and_comments_are_not() {
    let text = format!("let a = {BLOCK} b() }};\n// {BLOCK} c() }}\n{BLOCK}\n  not_{BLOCK} }}\n}}");
    assert_eq!(blocks(&text), 2);
}
