//! What is decoded of runtimes that are proved, written down so that a look at a process need not decode it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use ompd_layout::decoded;
use ompd_process::elf::ElfFile;

use super::fetched::Fetched;
use super::layouts::{Layouts, examine};

/// What a file of records begins with.
const HEAD: &str = "# Made by `cargo xtask matrix --records`; do not edit.";

/// Writes the records of all that are proved. Those of builds that are not here stay as they are.
pub fn write(all: &[Fetched]) -> Result<()> {
    let mut families: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for Fetched { what, library } in all {
        let Some(library) = library else { continue };
        let layouts = examine(&library.elf).with_context(|| format!("{what} is no OpenMP runtime"))?;
        if !layouts.is_proved() {
            println!("no record: {what}: what is decoded is not confirmed");
            continue;
        }
        let Some(line) = decoded::record(&library.elf, &layouts.decoded) else {
            println!("no record: {what}: nothing tells this build from others");
            continue;
        };
        let (key, facts) = line.split_once(' ').context("a key and facts")?;
        families.entry(layouts.family).or_default().insert(key.to_owned(), facts.to_owned());
    }
    for (family, mut records) in families {
        let shipped = ompd_runtime::decoded(family).with_context(|| format!("{family} is no family"))?;
        for (key, facts) in
            shipped.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
        {
            records.entry(key.to_owned()).or_insert_with(|| facts.to_owned());
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libompd/runtime/src").join(family);
        let file = folder.join("profiles/decoded.txt");
        let lines: String = records.iter().map(|(key, facts)| format!("{key} {facts}\n")).collect();
        fs::write(&file, format!("{HEAD}\n{lines}")).with_context(|| format!("writing {}", file.display()))?;
        println!("{family}: {} records, {} bytes", records.len(), lines.len());
    }
    Ok(())
}

/// Whether there is a record of this file.
///
/// # Errors
/// There is one, and decoding says something else.
pub fn check(file: &ElfFile, layouts: &Layouts) -> Result<bool> {
    let shipped = ompd_runtime::decoded(layouts.family).unwrap_or_default();
    let Some(recorded) = decoded::find(shipped, file) else { return Ok(false) };
    ensure!(recorded == layouts.decoded, "the record of what is decoded is another: run cargo xtask matrix --records");
    ensure!(layouts.is_proved(), "it has a record of what is decoded, and nothing confirms that");
    Ok(true)
}
