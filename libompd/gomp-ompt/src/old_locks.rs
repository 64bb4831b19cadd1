//! Locks of GCC before 4.4, which are smaller than those of today if they are nestable.
//!
//! libgomp has each function of locks twice. The first version has the name [`OLD`]. A file that is linked against it says so in its
//! table of symbols. The loader binds both versions to this library, whose functions have none, so the table is read here.

use std::ffi::CStr;
use std::ops::Range;

use crate::names::{Entry, NAMES};

/// libgomp's first version of the functions of locks.
pub const OLD: &CStr = c"OMP_1.0";

/// Functions of locks that a file asks for at that version: bits, by number of the entry point from `omp_init_lock` on.
pub type OldLocks = u32;

/// The bit of an entry point; 0 for those that are not for locks.
pub fn bit(entry: usize) -> OldLocks {
    const FIRST: usize = Entry::omp_init_lock as usize;
    const LAST: usize = Entry::omp_test_nest_lock_ as usize;
    if (FIRST..=LAST).contains(&entry) { 1 << (entry - FIRST) } else { 0 }
}

/// The entries of a dynamic section that are read (elf.h).
mod tag {
    pub const NULL: usize = 0;
    pub const PLTRELSZ: usize = 2;
    pub const STRTAB: usize = 5;
    pub const SYMTAB: usize = 6;
    pub const RELA: usize = 7;
    pub const RELASZ: usize = 8;
    pub const JMPREL: usize = 23;
    pub const VERSYM: usize = 0x6fff_fff0;
    pub const VERNEED: usize = 0x6fff_fffe;
    pub const VERNEEDNUM: usize = 0x6fff_ffff;
}

/// A relocation (`Elf64_Rela`).
#[repr(C)]
struct Relocation {
    offset: u64,
    kind: u32,
    symbol: u32,
    addend: i64,
}

/// Which functions of locks a loaded file asks for at the first version.
///
/// # Safety
/// The file is loaded at `base`, has its dynamic section `dynamic` bytes from there, and takes this range.
pub unsafe fn asked_for(base: usize, dynamic: usize, range: &Range<usize>) -> OldLocks {
    let section = base.wrapping_add(dynamic) as *const [usize; 2];
    let value = |wanted: usize| {
        // SAFETY: the section ends with an entry of this tag.
        let entries = (0..).map(|n| unsafe { *section.add(n) }).take_while(|[tag, _]| *tag != tag::NULL);
        entries.filter(|[tag, _]| *tag == wanted).map(|[_, value]| value).next()
    };
    let inside = |place: &usize| range.contains(place);
    // glibc has put addresses in the place of offsets, other loaders have not.
    let place = |wanted| value(wanted).map(|value| if value < base { base + value } else { value }).filter(inside);
    // No loader does that here.
    let needed = value(tag::VERNEED).map(|value| base.wrapping_add(value)).filter(inside);
    let (Some(strings), Some(symbols), Some(versions), Some(needed)) =
        (place(tag::STRTAB), place(tag::SYMTAB), place(tag::VERSYM), needed)
    else {
        return 0;
    };
    // SAFETY: tables of a file that the loader has read in the same way.
    let text = |offset: u32| unsafe { CStr::from_ptr((strings as *const std::ffi::c_char).add(offset as usize)) };
    // SAFETY: as above.
    let Some(old) = (unsafe { number_of(OLD, needed, value(tag::VERNEEDNUM).unwrap_or(0), text) }) else { return 0 };
    let tables = [(tag::JMPREL, tag::PLTRELSZ), (tag::RELA, tag::RELASZ)];
    let relocations = tables.into_iter().flat_map(|(table, size)| {
        let (table, size) = (place(table).unwrap_or(0), value(size).unwrap_or(0));
        let count = if table == 0 { 0 } else { size / size_of::<Relocation>() };
        // SAFETY: as above.
        (0..count).map(move |n| unsafe { (*(table as *const Relocation).add(n)).symbol as usize })
    });
    let of_version = relocations.filter(|symbol| {
        // SAFETY: a number for each symbol.
        *symbol != 0 && unsafe { *(versions as *const u16).add(*symbol) } & 0x7fff == old
    });
    let names = of_version.map(|symbol| {
        const SYMBOL: usize = 24;
        // SAFETY: the first word of the symbol (`Elf64_Sym`).
        text(unsafe { *((symbols + symbol * SYMBOL) as *const u32) })
    });
    let entry_of = |name: &CStr| NAMES.iter().position(|known| *known == name).unwrap_or(usize::MAX);
    // Most functions of the first version are no functions of locks.
    let locks = names.filter(|name| name.to_bytes().ends_with(b"lock") || name.to_bytes().ends_with(b"lock_"));
    locks.map(|name| bit(entry_of(name))).fold(0, |all, one| all | one)
}

/// The number that a file has for a version.
///
/// # Safety
/// `needed` is a table of `count` files with the versions that are needed of each, and `text` takes the offsets of their names.
unsafe fn number_of(version: &CStr, needed: usize, count: usize, text: impl Fn(u32) -> &'static CStr) -> Option<u16> {
    let mut file = needed;
    for _ in 0..count {
        // `Elf64_Verneed`: version, count, name, offset of the first version, offset of the next file.
        // SAFETY: as the caller says.
        let (versions, first, next) =
            unsafe { (*((file + 2) as *const u16), *((file + 8) as *const u32), *((file + 12) as *const u32)) };
        let mut one = file + first as usize;
        for _ in 0..versions {
            // `Elf64_Vernaux`: hash, flags, number, name, offset of the next.
            // SAFETY: as the caller says.
            let (number, name, next) =
                unsafe { (*((one + 6) as *const u16), *((one + 8) as *const u32), *((one + 12) as *const u32)) };
            if text(name) == version {
                return Some(number & 0x7fff);
            }
            one += next as usize;
        }
        file += next as usize;
    }
    None
}
