//! What the families' recipes for decoding code have in common.

use ompd_layout::code::{self, Expr, Limits, Run};
use ompd_layout::{Facts, Field};
use ompd_target::elf::ElfFile;

/// No struct of a runtime is larger; an offset beyond it was not an offset.
const MAX_OFFSET: i64 = 0x4000;

/// What decoding a runtime's code gave.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) facts: Facts,
    /// One line for each value that could not be decoded.
    pub(crate) failures: Vec<String>,
}

/// Runs functions of one image and files what they show.
pub(crate) struct Decoder<'a> {
    image: &'a ElfFile,
    out: Recovered,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(image: &'a ElfFile) -> Self {
        Decoder { image, out: Recovered::default() }
    }

    pub(crate) fn finish(self) -> Recovered {
        self.out
    }

    /// Executes a function symbolically.
    pub(crate) fn run(&mut self, function: &str) -> Option<Run> {
        match code::run_symbol(self.image, function, &Limits::default()) {
            Ok(run) => Some(run),
            Err(why) => {
                self.out.failures.push(format!("{function}: {why}"));
                None
            }
        }
    }

    /// Files that a function does not show what it should, with the places where decoding had to stop.
    pub(crate) fn not_found(&mut self, function: &str, what: &str, run: &Run) {
        let stops: Vec<String> = run.stops().iter().map(|s| s.to_string()).collect();
        let stops = if stops.is_empty() { String::new() } else { format!(" ({})", stops.join(", ")) };
        self.out.failures.push(format!("{function}: does not show {what}{stops}"));
    }

    /// Files where a field lies; `size` is 0 where the code does not tell how wide it is.
    pub(crate) fn field(&mut self, of: &str, name: &str, offset: i64, size: u8) {
        if (0..MAX_OFFSET).contains(&offset) {
            self.out.facts.set_field(of, name, Field { offset: offset as u64, size: size.into(), bits: None });
        }
    }

    /// Files the address of a global; the first one found stays.
    pub(crate) fn global(&mut self, name: &str, addr: u64) {
        self.out.facts.globals.entry(name.to_owned()).or_insert(addr);
    }
}

/// Values read from memory: those returned, and all loads on the way.
pub(crate) fn values(run: &Run) -> impl Iterator<Item = Expr> + '_ {
    run.returned().cloned().chain(run.loads().map(|load| load.value()))
}
