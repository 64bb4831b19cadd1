//! What the families' recipes for decoding code have in common.

use std::collections::BTreeSet;

use ompd_layout::code::{self, Expr, Limits, Run};
use ompd_layout::{BitRange, Facts, Field, Schema};
use ompd_process::elf::ElfFile;

/// Ends the name of a global that is the distance of a thread-local variable from the thread pointer, in bytes modulo
/// 2^64, and no address. Only programs have such: for libraries it is found when they are loaded.
pub(crate) const TPOFF: &str = "@tpoff";
/// No struct of a runtime is larger; an offset beyond it was not an offset.
const MAX_OFFSET: u64 = 0x4000;
/// Bytes of a function that are shown when it could not be made sense of.
const MAX_DUMP: usize = 256;

/// What decoding a runtime's code gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovered {
    pub(crate) facts: Facts,
    pub(crate) failures: Vec<Failure>,
}

/// A value that could not be decoded.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The function and what it does not show.
    pub(crate) text: String,
    /// The function's first bytes, 16 to a line: what somebody needs who wants to know why.
    pub(crate) dump: Vec<String>,
}

/// True if all of these values are such as decoding of this file can give. Whether it gives them is another question.
pub(crate) fn may_be_decoded(facts: &Facts, schema: &Schema, file: &ElfFile) -> bool {
    let field = |of: &str, name: &str, field: &Field| {
        let is_wanted = schema.find(of).is_some_and(|s| s.fields.iter().any(|f| f.name == name));
        let bits = field.bits.is_none_or(|bits| u64::from(bits.shift) + u64::from(bits.width) <= field.size * 8);
        is_wanted && field.offset < MAX_OFFSET && field.size <= MAX_OFFSET && bits
    };
    let loaded = file.loaded_ranges();
    let global = |name: &str, addr: u64| {
        // A distance from the thread pointer is no address.
        let lies_in = name.ends_with(TPOFF) || loaded.iter().any(|range| range.contains(&addr));
        lies_in && schema.globals.iter().any(|global| global.name == name)
    };
    facts.sizes.iter().all(|(of, size)| schema.find(of).is_some() && (1..=MAX_OFFSET).contains(size))
        && facts.fields.iter().all(|(of, fields)| fields.iter().all(|(name, at)| field(of, name, at)))
        && facts.globals.iter().all(|(name, addr)| global(name, *addr))
}

/// Where the pointer to the text lies that a function asks the length of, if that is the same one on all ways through it.
pub(crate) fn measured(run: &Run) -> Option<u64> {
    let asked = run.calls().filter(|call| call.callee.is("strlen"));
    unanimous(asked.filter_map(|call| call.args.first()?.as_load(8)?.as_const()))
}

/// Runs functions of one image and files what they show.
pub(crate) struct Decoder<'a> {
    image: &'a ElfFile,
    schema: &'static Schema,
    out: Recovered,
    /// Names on which two functions disagree: then neither is believed.
    disputed: BTreeSet<String>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(image: &'a ElfFile, schema: &'static Schema) -> Self {
        Decoder { image, schema, out: Recovered::default(), disputed: BTreeSet::new() }
    }

    pub(crate) fn finish(self) -> Recovered {
        self.out
    }

    pub(crate) fn image(&self) -> &'a ElfFile {
        self.image
    }

    /// True if the image has a function of that name. A library exports it. A program with the runtime built in has it
    /// as far as it was needed.
    pub(crate) fn has(&self, function: &str) -> bool {
        self.entry(function).is_some()
    }

    /// Where a function begins of which the image has the name. Names of internal ones are mostly stripped.
    pub(crate) fn entry(&self, function: &str) -> Option<u64> {
        self.image.symbol(function).filter(|symbol| !symbol.tls).map(|symbol| symbol.addr.0)
    }

    /// Executes an exported function symbolically.
    pub(crate) fn run(&mut self, function: &str) -> Option<Run> {
        // Helpers of a few instructions (`gomp_thread`) are calls where the compiler was told not to inline.
        self.run_within(function, &Limits { inline_depth: 2, inline_bytes: 128, ..Limits::default() })
    }

    /// The same for a function all of whose branches have to be seen, and its loops gone through more than once.
    pub(crate) fn run_far(&mut self, function: &str) -> Option<Run> {
        self.run_within(
            function,
            &Limits { paths: 256, visits: 4, inline_depth: 2, inline_bytes: 128, ..Limits::default() },
        )
    }

    fn run_within(&mut self, function: &str, limits: &Limits) -> Option<Run> {
        match code::run_symbol(self.image, function, limits) {
            Ok(run) => Some(run),
            Err(why) => {
                self.out.failures.push(Failure { text: format!("{function}: {why}"), dump: Vec::new() });
                None
            }
        }
    }

    /// Executes the function at an address found in another one; `name` is what it is called in the source.
    pub(crate) fn run_at(&mut self, name: &str, entry: u64) -> Option<Run> {
        // Internal functions are large, and what they are asked for comes early.
        self.run_at_within(name, entry, &Limits { instructions: 6000, ..Limits::default() })
    }

    /// The same for a function of which more has to be seen.
    pub(crate) fn run_at_within(&mut self, name: &str, entry: u64, limits: &Limits) -> Option<Run> {
        match code::run(self.image, entry, limits) {
            Ok(run) => Some(run),
            Err(why) => {
                self.out.failures.push(Failure { text: format!("{name}: {why}"), dump: Vec::new() });
                None
            }
        }
    }

    /// A field found before.
    pub(crate) fn known(&self, of: &str, name: &str) -> Option<Field> {
        self.out.facts.field(of, name)
    }

    /// Files that an exported function does not show what it should, with the places where decoding had to stop.
    pub(crate) fn not_found(&mut self, function: &str, what: &str, run: &Run) {
        let entry = self.image.symbol(function).map(|s| s.addr.0);
        self.not_found_at(function, entry, what, run);
    }

    /// The same for a function known by address only.
    pub(crate) fn not_found_at(&mut self, function: &str, entry: Option<u64>, what: &str, run: &Run) {
        let stops: Vec<String> = run.stops().iter().map(|s| s.to_string()).collect();
        let stops = if stops.is_empty() { String::new() } else { format!(" ({})", stops.join(", ")) };
        let text = format!("{function}: does not show {what}{stops}");
        let dump = entry.map(|entry| code::dump(self.image, entry, MAX_DUMP)).unwrap_or_default();
        let dump = dump.lines().map(str::to_owned).collect();
        self.out.failures.push(Failure { text, dump });
    }

    /// Files something that cannot be had.
    pub(crate) fn failure(&mut self, text: impl Into<String>) {
        self.out.failures.push(Failure { text: text.into(), dump: Vec::new() });
    }

    /// Files where a field lies; `size` is 0 where the code does not tell how wide it is. What the schema does not ask
    /// for is left out.
    pub(crate) fn field(&mut self, of: &str, name: &str, offset: i64, size: u8) {
        if let Ok(offset) = u64::try_from(offset) {
            self.place(of, name, Field { offset, size: size.into(), bits: None });
        }
    }

    /// Files a bit of the struct's storage unit of `size` bytes.
    pub(crate) fn bit(&mut self, of: &str, name: &str, size: u64, shift: u8) {
        self.place(of, name, Field { offset: 0, size, bits: Some(BitRange { shift, width: 1 }) });
    }

    pub(crate) fn place(&mut self, of: &str, name: &str, field: Field) {
        let wanted = self.schema.find(of).is_some_and(|s| s.fields.iter().any(|f| f.name == name));
        if !wanted || field.offset >= MAX_OFFSET {
            return;
        }
        match self.out.facts.field(of, name) {
            Some(known) if known.offset != field.offset || known.bits != field.bits => {
                let text = format!("{of}.{name} at {:#x} and at {:#x}", known.offset, field.offset);
                self.dispute(format!("{of}.{name}"), text);
                if let Some(fields) = self.out.facts.fields.get_mut(of) {
                    fields.remove(name);
                }
            }
            Some(known) if known.size != 0 => {}
            _ if self.disputed.contains(&format!("{of}.{name}")) => {}
            _ => self.out.facts.set_field(of, name, field),
        }
    }

    /// Files the size of a struct in bytes.
    pub(crate) fn size(&mut self, of: &str, bytes: u64) {
        if self.schema.find(of).is_none() || !(1..=MAX_OFFSET).contains(&bytes) {
            return;
        }
        match self.out.facts.sizes.get(of) {
            Some(&known) if known != bytes => {
                self.dispute(format!("sizeof({of})"), format!("sizeof({of}) as {known:#x} and as {bytes:#x}"));
                self.out.facts.sizes.remove(of);
            }
            _ if self.disputed.contains(&format!("sizeof({of})")) => {}
            _ => {
                self.out.facts.sizes.insert(of.to_owned(), bytes);
            }
        }
    }

    /// Files the address of a global.
    pub(crate) fn global(&mut self, name: &str, addr: u64) {
        match self.out.facts.globals.get(name) {
            Some(&known) if known != addr => {
                self.dispute(name.to_owned(), format!("{name} at {known:#x} and at {addr:#x}"));
                self.out.facts.globals.remove(name);
            }
            _ if self.disputed.contains(name) => {}
            _ => {
                self.out.facts.globals.insert(name.to_owned(), addr);
            }
        }
    }

    fn dispute(&mut self, name: String, text: String) {
        if self.disputed.insert(name) {
            self.failure(format!("two functions show {text}: neither is used"));
        }
    }
}

/// Values read from memory: those returned, and all loads on the way.
pub(crate) fn values(run: &Run) -> impl Iterator<Item = Expr> + '_ {
    run.returned().cloned().chain(run.loads().map(|load| load.value()))
}

/// The one value all items agree on; `None` if there is none, or several.
pub(crate) fn unanimous<T: PartialEq>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.all(|item| item == first).then_some(first)
}
