//! `cargo xtask coverage`: what the documents on OMPT and OMPD describe, and the tests that show it works here. Tests look at a
//! process from outside and from inside. The table is `docs/seed-coverage.md`. A test checks that it is current and that the
//! tests it names exist.

mod rows;
mod run;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use rows::ROWS;

/// Arguments of `coverage`.
#[derive(Args)]
pub struct Arguments {
    /// Write the table to docs/seed-coverage.md.
    #[arg(long)]
    write: bool,
    /// Run the tests that the table names, and fail if one is skipped.
    #[arg(long)]
    run: bool,
    /// Run those of this package alone; may be given several times.
    #[arg(long, requires = "run")]
    package: Vec<String>,
}

/// A mechanism that the documents describe.
pub struct Row {
    /// Its number, by which it keeps its place.
    pub number: u32,
    /// Which documents.
    pub documents: &'static str,
    /// What it is.
    pub mechanism: &'static str,
    /// For who looks from outside: the library for debuggers, the command, the plugin.
    pub outside: Side,
    /// For the tool inside the process.
    pub inside: Side,
}

/// What one of the two sides does about a mechanism.
pub enum Side {
    /// It works, as these tests show: `file::test`.
    Works(&'static [&'static str]),
    /// It works, with this restriction.
    Partly(&'static str, &'static [&'static str]),
    /// It cannot work on the runtimes there are, for this reason; tests that show it.
    Impossible(&'static str, &'static [&'static str]),
    /// There is nothing to do on this side.
    None,
}

/// Prints the table, or writes it.
///
/// # Errors
/// If a test is named that there is not, or the file cannot be written; with `--run`, if a test shows nothing here.
pub fn run(arguments: &Arguments) -> Result<()> {
    let page = page()?;
    if arguments.run {
        let sides = ROWS.iter().flat_map(|row| [&row.outside, &row.inside]);
        return run::run(&root(), &sides.flat_map(tests).copied().collect(), &arguments.package);
    }
    if arguments.write {
        std::fs::write(document(), page).context("docs/seed-coverage.md")?;
    } else {
        print!("{page}");
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> PathBuf {
    root().join("docs/seed-coverage.md")
}

/// The document. Every test in it is there.
fn page() -> Result<String> {
    let mut page = String::from(HEAD);
    for (n, row) in (1..).zip(ROWS) {
        ensure!(row.number == n, "row {} is the {n}th", row.number);
        let (outside, inside) = (cell(&row.outside)?, cell(&row.inside)?);
        let Row { number, documents, mechanism, .. } = row;
        writeln!(page, "| {number} | {documents} | {mechanism} | {outside} | {inside} |")?;
    }
    Ok(page)
}

fn cell(side: &Side) -> Result<String> {
    let tests = tests(side);
    let text = match side {
        Side::Works(_) => String::new(),
        Side::Partly(but, _) => format!("{but}. "),
        Side::Impossible(why, _) => format!("**impossible**: {why}. "),
        Side::None => "–".to_owned(),
    };
    let proven = matches!(side, Side::Works(_) | Side::Partly(..));
    ensure!(!proven || !tests.is_empty(), "no test is named: {text}");
    let names: Vec<String> = tests.iter().map(|test| checked(test)).collect::<Result<_>>()?;
    Ok((text + &names.join(", ")).trim_end().to_owned())
}

/// The tests that a side names.
fn tests(side: &Side) -> &'static [&'static str] {
    match side {
        Side::Works(tests) | Side::Partly(_, tests) | Side::Impossible(_, tests) => tests,
        Side::None => &[],
    }
}

/// The name of a test, as the table shows it, if the file has such a test.
fn checked(test: &str) -> Result<String> {
    let Some((file, name)) = test.split_once("::") else { bail!("{test} has no file") };
    let path = root().join(file);
    let source = std::fs::read_to_string(&path).with_context(|| format!("{test}: no such file"))?;
    // Some tests are made by macros, which take the name only.
    let is_there = source.contains(&format!("fn {name}(")) || source.contains(&format!("{name},\n"));
    ensure!(is_there, "{file} has no test {name}");
    let file = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".rs");
    Ok(format!("`{file}::{name}`"))
}

const HEAD: &str = "\
# What OMPT and OMPD describe, and what of it works

A row for each mechanism that one of five documents describes: the OMPT technical report (TR2), its second version (V2), the draft of
OpenMP 5.0 with callbacks and device look-up (D5), OMPD's entry points in the runtime (5.0), and device tracing (5.1). *Outside* is what
`libompd.so`, `ompd-inspect` and the plugin for gdb do about it; *inside* is what the companion does, in the process. A name is that of a
test which shows it. The runtimes are libomp 9 to 23 and libiomp5 2018 to 2026, and, outside, libgomp.

`cargo xtask coverage --write` makes this page; a test fails if it is not current, or names a test that there is not.
`cargo xtask coverage --run` runs the tests that it names, and refuses one that is skipped; `ci/fetch` with the steps `wheels`, `offload`
and `opencl` gets what they need.

| # | in | mechanism | outside | inside |
|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_current_and_its_tests_exist() {
        let page = super::page().expect("every test is there");
        let committed = std::fs::read_to_string(super::document()).expect("docs/seed-coverage.md");
        assert!(committed == page, "docs/seed-coverage.md is not current: run `cargo xtask coverage --write`");
    }
}
