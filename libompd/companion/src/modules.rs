//! The files that are mapped into the process, for who reads the block's file later.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;

use ompt_record::modules::Mapped;

/// `NT_GNU_BUILD_ID`
const BUILD_ID: u32 = 3;

/// All of them, as the dynamic linker lists them.
pub fn mapped() -> Vec<Mapped> {
    let mut mapped: Vec<Mapped> = Vec::new();
    // SAFETY: the callback gets this vector, and runs before the call returns.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut mapped).cast()) };
    mapped
}

unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker's, and the vector of `mapped`.
    let (info, mapped) = unsafe { (&*info, &mut *data.cast::<Vec<Mapped>>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: there are so many headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let address = |svma: u64| info.dlpi_addr.wrapping_add(svma);
    let (Some(first), Some(last)) = (
        loads().map(|load| address(load.p_vaddr)).min(),
        loads().map(|load| address(load.p_vaddr).wrapping_add(load.p_memsz)).max(),
    ) else {
        return 0;
    };
    let name = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: the linker's own string.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    // The first is the program, which has no name here.
    let is_program = mapped.is_empty();
    let path = if is_program { std::env::current_exe().unwrap_or_default() } else { OsStr::from_bytes(name).into() };
    // SAFETY: the file is mapped, and its notes lie where the headers say.
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE).map(|note| unsafe {
        std::slice::from_raw_parts(address(note.p_vaddr) as *const u8, usize::try_from(note.p_memsz).unwrap_or(0))
    });
    let build_id = notes.flat_map(build_id).next().unwrap_or_default();
    let path = path.to_string_lossy().into_owned();
    mapped.push(Mapped { is_program, bias: info.dlpi_addr, first, last, build_id, path });
    0
}

/// The build-id among notes (elf(5), "Notes").
fn build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (head, behind) = rest.split_first_chunk::<12>()?;
        let [name, value, kind] = [0, 4, 8].map(|at| {
            let word = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            word.map_or(0, u32::from_ne_bytes)
        });
        let padded = |size: u32| usize::try_from(size).map(|size| size.next_multiple_of(4)).ok();
        let (of, values) = behind.split_at_checked(padded(name)?)?;
        let value = usize::try_from(value).ok()?;
        if kind == BUILD_ID && of.starts_with(b"GNU\0") {
            return values.get(..value).map(<[u8]>::to_vec);
        }
        rest = values.get(value.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_and_its_libraries_are_listed() {
        let mapped = mapped();
        let here = build_id as *const () as u64;
        assert!(mapped[0].is_program && (mapped[0].first..mapped[0].last).contains(&here), "{:?}", mapped[0]);
        assert_eq!(Some(&*mapped[0].path), std::env::current_exe().expect("its name").to_str());
        let library = mapped.iter().find(|mapped| mapped.path.contains("libc.so")).expect("the C library");
        let there = libc::malloc as *const () as u64;
        assert!(!library.is_program && (library.first..library.last).contains(&there), "{library:?}");
        assert!(!library.build_id.is_empty());
    }

    #[test]
    fn a_build_id_is_found_among_other_notes() {
        let note = |kind: u32, name: &[u8; 4], value: &[u8]| {
            let words = [4_u32, value.len() as u32, kind].map(u32::to_ne_bytes).concat();
            let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
            [words, name.to_vec(), value.to_vec(), padding].concat()
        };
        let other = note(1, b"GNU\0", &[1, 2, 3, 4, 5]);
        assert_eq!(build_id(&[other.clone(), note(3, b"GNU\0", &[7, 8, 9])].concat()), Some(vec![7, 8, 9]));
        assert_eq!(build_id(&[other.clone(), note(3, b"abc\0", &[7])].concat()), None);
        assert_eq!(build_id(&other[..other.len() - 9]), None);
    }
}
