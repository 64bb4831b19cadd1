//! Layouts a runtime exports about itself.
//!
//! LLVM's and Intel's OpenMP runtimes define, for their own debugger library, one 64-bit variable per fact
//! (`openmp/runtime/src/ompd-specific.h`): `ompd_access__STRUCT__MEMBER` the offset, `ompd_sizeof__STRUCT__MEMBER` the
//! member's size, `ompd_sizeof__STRUCT`, and `ompd_bitfield__STRUCT__MEMBER`, the storage unit with the field set to 1.
//! The variables are zero in the file and filled by `ompd_init` when the runtime starts, so they are read from the
//! target. Fields that are bits of several are not in any of those lists.

use ompd_process::{Addr, Module, ReadError, Target};

use crate::facts::{BitRange, Facts, Field};
use crate::schema::{Schema, StructSchema};

/// How the names of all variables of a table begin.
const PREFIX: &str = "ompd_";
/// No member of a runtime's struct is larger.
const MAX_SIZE: u64 = 1 << 20;

/// What the table of `module` says about the structs of `schema`. Type names of the table are tried as the schema has
/// them and with `_t` and `_p` appended; dotted paths are not in tables.
///
/// A member counts only if the table also gives it a size. While the table is not filled in yet (the runtime has not
/// started), all of it reads as zero and gives no facts. Reads that failed are returned beside the facts.
pub fn read(target: &dyn Target, module: &Module, schema: &Schema) -> (Facts, Vec<ReadError>) {
    let mut reader = Reader { target, module, failed: Vec::new(), block: None };
    let mut facts = Facts::default();
    // Most builds have no table: then a thousand names need not be looked up.
    if !module.file.as_ref().is_ok_and(|file| file.has_symbol_with(PREFIX)) {
        return (facts, reader.failed);
    }
    for wanted in schema.structs {
        for name in type_names(wanted) {
            if let Some(size) = reader.number(&format!("ompd_sizeof__{name}")).filter(|s| (1..=MAX_SIZE).contains(s)) {
                facts.sizes.entry(wanted.name.to_owned()).or_insert(size);
            }
            for field in wanted.fields.iter().filter(|f| !f.name.contains('.')) {
                if facts.field(wanted.name, field.name).is_some() {
                    continue;
                }
                if let Some(found) = reader.member(&name, field.name).or_else(|| reader.bit(&name, field.name)) {
                    facts.set_field(wanted.name, field.name, found);
                }
            }
        }
    }
    (facts, reader.failed)
}

struct Reader<'t> {
    target: &'t dyn Target,
    module: &'t Module,
    failed: Vec<ReadError>,
    /// The block of memory that was announced last.
    block: Option<u64>,
}

/// Bytes of memory, from a multiple of so many, that are announced at once: the variables lie side by side. A page has several.
const BLOCK: u64 = 1024;

impl Reader<'_> {
    /// The bytes of one table variable, if the module has it.
    fn variable(&mut self, symbol: &str) -> Option<[u8; 8]> {
        let symbol = self.module.symbol(symbol)?;
        if symbol.tls || (symbol.size != 0 && symbol.size != 8) {
            return None;
        }
        let block = symbol.addr.0 / BLOCK;
        if self.block != Some(block) {
            self.target.prefetch(&[(Addr(block * BLOCK), BLOCK)]);
            self.block = Some(block);
        }
        let mut bytes = [0u8; 8];
        match self.target.read(symbol.addr, &mut bytes) {
            Ok(()) => Some(bytes),
            Err(error) => {
                self.failed.push(error);
                None
            }
        }
    }

    fn number(&mut self, symbol: &str) -> Option<u64> {
        let bytes = self.variable(symbol)?;
        Some(self.target.arch().byte_order.uint(&bytes))
    }

    fn member(&mut self, of: &str, name: &str) -> Option<Field> {
        let offset = self.number(&format!("ompd_access__{of}__{name}"))?;
        let size = self.number(&format!("ompd_sizeof__{of}__{name}"))?;
        ((1..=MAX_SIZE).contains(&size) && offset <= MAX_SIZE).then_some(Field { offset, size, bits: None })
    }

    fn bit(&mut self, of: &str, name: &str) -> Option<Field> {
        let bytes = self.variable(&format!("ompd_bitfield__{of}__{name}"))?;
        let size = self.number(&format!("ompd_sizeof__{of}"))?;
        let mask = match size {
            1 | 2 | 4 | 8 => self.target.arch().byte_order.uint(&bytes[..size as usize]),
            _ => return None,
        };
        // One bit: the runtime stored the value 1 into a field of width 1.
        let shift = mask.trailing_zeros() as u8;
        mask.is_power_of_two().then_some(Field { offset: 0, size, bits: Some(BitRange { shift, width: 1 }) })
    }
}

/// Spellings of a struct's type in table symbols.
fn type_names(of: &StructSchema) -> Vec<String> {
    let mut names = Vec::new();
    for name in std::iter::once(&of.name).chain(of.dwarf_names) {
        for spelling in [(*name).to_owned(), format!("{name}_t"), format!("{name}_p")] {
            if !names.contains(&spelling) {
                names.push(spelling);
            }
        }
    }
    names
}
