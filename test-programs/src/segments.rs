//! Where a core file has the memory of the process.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};

/// The segments of a core.
#[derive(Debug)]
pub struct Segments(Vec<(Range<u64>, u64)>);

impl Segments {
    /// Reads the program headers of a core of a 64-bit machine.
    ///
    /// # Errors
    /// It is none.
    pub fn of(core: &Path) -> Result<Segments> {
        let data = fs::read(core)?;
        let header = FileHeader64::<Endianness>::parse(&data[..])?;
        let order = header.endian()?;
        let loaded = header.program_headers(order, &data[..])?.iter().filter(|of| of.p_type(order) == PT_LOAD);
        let segment = |of: &object::elf::ProgramHeader64<Endianness>| {
            let address = of.p_vaddr(order);
            (address..address.saturating_add(of.p_filesz(order)), of.p_offset(order))
        };
        Ok(Segments(loaded.map(segment).collect()))
    }

    /// The addresses of each.
    pub fn all(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(addresses, _)| addresses.clone())
    }

    /// Where in the core the byte at this address lies, and how many of the process's bytes follow there.
    pub fn find(&self, address: u64) -> Option<(u64, u64)> {
        let (addresses, at) = self.0.iter().find(|(addresses, _)| addresses.contains(&address))?;
        Some((at + (address - addresses.start), addresses.end - address))
    }
}
