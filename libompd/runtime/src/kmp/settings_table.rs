//! Where a stripped libomp keeps its settings: `__kmp_stg_table` (kmp_settings.cpp) has of each its name, and the function that prints
//! it. What that function reads, and no other one does, is the setting.

use std::collections::BTreeMap;

use ompd_layout::code::{self, Event, Limits, Run};
use ompd_process::elf::{ElfFile, Reloc};

/// A variable of the runtime's image: its address there, and its size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) svma: u64,
    pub(super) size: u64,
}

/// Members of `kmp_setting_t`: the name, and behind it the functions that parse and print.
const PARSE: u64 = 8;
const PRINT: u64 = 16;
/// No name of a setting has as many bytes.
const NAME: u64 = 64;
/// What so many of these functions read is about how to print.
const COMMON: usize = 3;

/// The variables of the settings with these names, as far as the code shows them.
pub(super) fn variables(image: &ElfFile, names: &[&'static str]) -> BTreeMap<&'static str, Variable> {
    let printers = printers(image, names);
    // What is common to fewer could not be told from what is one's own.
    if printers.len() <= COMMON {
        return BTreeMap::new();
    }
    let read: BTreeMap<&'static str, Vec<Variable>> =
        printers.into_iter().filter_map(|(name, entry)| Some((name, read_by(image, entry)?))).collect();
    let readers = |of: &Variable| read.values().filter(|all| all.iter().any(|one| one.svma == of.svma)).count();
    let own = read.iter().filter_map(|(name, all)| {
        let mut own = all.iter().filter(|one| readers(one) <= COMMON);
        let found = *own.next()?;
        own.next().is_none().then_some((*name, found))
    });
    own.collect()
}

/// The functions that print these settings. An entry of the table is a pointer to the name, and behind it two pointers
/// to code. In an image that has not been loaded yet these are relocations. A name that is there twice is not used: the
/// table has each once. The work of following a function must be paid for only once a name.
fn printers(image: &ElfFile, names: &[&'static str]) -> BTreeMap<&'static str, u64> {
    let relocations = image.relocations();
    let executable = image.executable_ranges();
    let pointee = |of: &Reloc| if of.symbol.is_none() { u64::try_from(of.addend).ok() } else { None };
    let code = |slot: u64| {
        let entry = pointee(relocations.get(&slot)?)?;
        executable.iter().any(|range| range.contains(&entry)).then_some(entry)
    };
    let entry = |(slot, relocation): (&u64, &Reloc)| {
        let print = code(slot.checked_add(PRINT)?)?;
        code(slot.checked_add(PARSE)?)?;
        let text = image.bytes_at(pointee(relocation)?, NAME)?;
        let text = text.split(|byte| *byte == 0).next()?;
        Some((*names.iter().find(|name| name.as_bytes() == text)?, print))
    };
    let mut found: BTreeMap<&'static str, Option<u64>> = BTreeMap::new();
    for (name, print) in relocations.iter().filter_map(entry) {
        found.entry(name).and_modify(|one| *one = None).or_insert(Some(print));
    }
    found.into_iter().filter_map(|(name, print)| Some((name, print?))).collect()
}

/// The variables that a function reads, as numbers; `None` if not all of it could be followed.
fn read_by(image: &ElfFile, entry: u64) -> Option<Vec<Variable>> {
    let run: Run = code::run(image, entry, &Limits::default()).ok()?;
    let mut read: Vec<Variable> = Vec::new();
    for event in run.events() {
        let Event::Load(load) = event else { continue };
        let Some(svma) = load.addr.as_const() else { continue };
        // Addresses of other variables are in the table of offsets, which the linker fills.
        if matches!(load.size, 4 | 8) && !image.relocations().contains_key(&svma) {
            let one = Variable { svma, size: load.size.into() };
            if !read.contains(&one) {
                read.push(one);
            }
        }
    }
    run.stops().is_empty().then_some(read)
}
