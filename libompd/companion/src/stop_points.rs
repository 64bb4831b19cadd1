//! The stop points of OMPD (`ompd_bp_...`; OpenMP 5.2, 20.6), where the runtime has none.
//!
//! `OMP_DEBUG=enabled` asks for them. The functions are in a library of their own. It is loaded only then, and only if no symbol
//! of the runtime has such a name. Else a debugger would stop twice, or at the wrong one.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use ompt_record::block::{STOPS_LIBRARY, Stop};

use crate::block::Recorder;
use crate::ompt::Lookup;
use crate::settings::say;
use crate::{advertise, modules, output};

/// The functions, in the order of [`Stop::ALL`]; null until they are called.
static FUNCTIONS: [AtomicPtr<libc::c_void>; 6] = [const { AtomicPtr::new(null_mut()) }; 6];

/// Loads the stop points if the user asks for them and the runtime with this look-up function has none. Returns whether callbacks are
/// to call them.
pub fn prepare(lookup: Lookup) -> bool {
    let is_wanted = output::variable("OMP_DEBUG")
        .is_some_and(|value| value.to_string_lossy().trim().eq_ignore_ascii_case("enabled"));
    if !is_wanted {
        return false;
    }
    match has_own(lookup) {
        Ok(true) => false,
        Ok(false) => load(),
        Err(why) => {
            say(&format!("OMP_DEBUG=enabled: no stop points, since the runtime's symbols cannot be read: {why}"));
            false
        }
    }
}

/// The calling thread passes through a stop point. The block says so meanwhile, for a debugger that does not tell registers.
pub fn pass(stop: Stop) {
    // Of a thread without a ring nobody could say what holds there.
    let Some(place) = Recorder::own() else { return };
    let index = stop as usize - 1;
    let Some(function) = FUNCTIONS.get(index).map(|function| function.load(Acquire)).filter(|f| !f.is_null()) else {
        return;
    };
    // SAFETY: what is not null was found by `load` under the name of a function without arguments, in a library that stays.
    let function = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(function) };
    let word = place.stop();
    // A signal handler may come to a stop point as well.
    let before = word.load(Relaxed);
    word.store(stop as u64, Release);
    function();
    word.store(before, Release);
}

/// Finds the functions in their library. It is beside the companion, or wherever libraries are.
fn load() -> bool {
    let beside = advertise::own_file().and_then(|own| {
        let own = Path::new(OsStr::from_bytes(own.to_bytes())).canonicalize().ok()?;
        Some(own.with_file_name(STOPS_LIBRARY)).filter(|file| file.is_file())
    });
    let name = beside.unwrap_or_else(|| PathBuf::from(STOPS_LIBRARY));
    let Ok(name) = CString::new(name.into_os_string().into_vec()) else { return false };
    // SAFETY: a string of C's. The library has no initialisers, and is never unloaded.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE) };
    if library.is_null() {
        say(&format!("OMP_DEBUG=enabled: no stop points, since {STOPS_LIBRARY} was not found"));
        return false;
    }
    for (place, stop) in FUNCTIONS.iter().zip(Stop::ALL) {
        // SAFETY: a handle of the loader, and a string of C's.
        place.store(unsafe { libc::dlsym(library, stop.symbol().as_ptr()) }, Release);
    }
    true
}

/// Whether a symbol of the file with this function, or of its debug file on this machine, is a stop point. Those of libomp and libiomp5
/// are local, so that the loader does not tell.
fn has_own(lookup: Lookup) -> io::Result<bool> {
    let at = lookup as usize as u64;
    let mapped = modules::mapped().into_iter().find(|mapped| (mapped.first..mapped.last).contains(&at));
    let mapped =
        mapped.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the file of the runtime is not known"))?;
    let file = if mapped.is_program { "/proc/self/exe" } else { &mapped.path };
    if names_stop_points(Path::new(file))? {
        return Ok(true);
    }
    let hex: String = mapped.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let debug_file =
        hex.split_at_checked(2).map(|(folder, name)| format!("/usr/lib/debug/.build-id/{folder}/{name}.debug"));
    // Where there is none, there are no more symbols.
    Ok(debug_file.is_some_and(|file| names_stop_points(Path::new(&file)).unwrap_or(false)))
}

/// Whether a string table of an ELF file has the name of a stop point in it, as C's or as C++'s.
fn names_stop_points(file: &Path) -> io::Result<bool> {
    /// `SHT_STRTAB`
    const STRINGS: u32 = 3;
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it is no ELF file of this machine");
    let file = File::open(file)?;
    let mut head = [0; size_of::<libc::Elf64_Ehdr>()];
    file.read_exact_at(&mut head, 0)?;
    // SAFETY: as many bytes as the struct has, of plain numbers.
    let head = unsafe { head.as_ptr().cast::<libc::Elf64_Ehdr>().read_unaligned() };
    let (magic, class) = (&head.e_ident[..4], head.e_ident[4]);
    if magic != b"\x7fELF"
        || class != libc::ELFCLASS64
        || usize::from(head.e_shentsize) != size_of::<libc::Elf64_Shdr>()
    {
        return Err(wrong());
    }
    let size = file.metadata()?.len();
    for index in 0..u64::from(head.e_shnum) {
        let mut section = [0; size_of::<libc::Elf64_Shdr>()];
        let at =
            index.checked_mul(section.len() as u64).and_then(|at| at.checked_add(head.e_shoff)).ok_or_else(wrong)?;
        file.read_exact_at(&mut section, at)?;
        // SAFETY: the same.
        let section = unsafe { section.as_ptr().cast::<libc::Elf64_Shdr>().read_unaligned() };
        if section.sh_type != STRINGS {
            continue;
        }
        if section.sh_size > size {
            return Err(wrong());
        }
        let mut names = vec![0; usize::try_from(section.sh_size).map_err(|_| wrong())?];
        file.read_exact_at(&mut names, section.sh_offset)?;
        if Stop::ALL.into_iter().any(|stop| contains(&names, stop.symbol())) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(names: &[u8], name: &CStr) -> bool {
    let name = name.to_bytes();
    names.windows(name.len()).any(|there| there == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_symbols_of_a_file_are_found() {
        // The strings of this test are in its data, and not in a string table.
        assert!(!names_stop_points(Path::new("/proc/self/exe")).expect("read"));
        let own = std::env::current_exe().expect("its name");
        assert!(names_stop_points(&own.with_file_name(STOPS_LIBRARY)).expect("read"));
        assert_eq!(names_stop_points(Path::new("/dev/null")).expect_err("empty").kind(), io::ErrorKind::UnexpectedEof);
    }

    /// A runtime may have some of them only.
    #[test]
    fn one_stop_point_is_enough() {
        let own = std::env::current_exe().expect("its name");
        let whole = std::fs::read(own.with_file_name(STOPS_LIBRARY)).expect("read");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        let places = |stop: Stop| {
            let name = stop.symbol().to_bytes();
            whole.windows(name.len()).enumerate().filter(move |(_, there)| *there == name).map(|(at, _)| at)
        };
        let names = Stop::ALL.map(|stop| (stop, places(stop).collect::<Vec<_>>()));
        let with = |kept: &[Stop]| {
            let mut changed = whole.clone();
            for (_, places) in names.iter().filter(|(stop, _)| !kept.contains(stop)) {
                places.iter().for_each(|at| changed[*at] = b'x');
            }
            std::fs::write(&file, changed).expect("written");
            names_stop_points(&file).expect("read")
        };
        assert!(!with(&[]));
        for stop in Stop::ALL {
            assert!(with(&[stop]), "{stop:?}");
        }
    }

    #[test]
    fn files_that_are_no_elf_files_of_this_machine_are_refused() {
        use std::mem::offset_of;
        let own = std::env::current_exe().expect("its name");
        let whole = std::fs::read(own.with_file_name(STOPS_LIBRARY)).expect("read");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = whole.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            std::fs::write(&file, changed).expect("written");
            names_stop_points(&file).map_err(|why| why.kind())
        };
        assert_eq!(with(0, b"\x7fELF"), Ok(true));
        assert_eq!(with(0, b"\x7fELG"), Err(io::ErrorKind::InvalidData));
        assert_eq!(with(4, &[libc::ELFCLASS32]), Err(io::ErrorKind::InvalidData));
        let entry = offset_of!(libc::Elf64_Ehdr, e_shentsize);
        assert_eq!(with(entry, &63_u16.to_le_bytes()), Err(io::ErrorKind::InvalidData));
        // Sections that claim to be larger than the file, be it by a byte: nothing of this size is allocated.
        let sections = offset_of!(libc::Elf64_Ehdr, e_shoff);
        let sections = u64::from_le_bytes(whole[sections..sections + 8].try_into().expect("eight bytes")) as usize;
        let tables =
            (sections..whole.len()).step_by(size_of::<libc::Elf64_Shdr>()).filter(|at| whole.get(at + 4) == Some(&3));
        let table = tables.min().expect("a string table") + offset_of!(libc::Elf64_Shdr, sh_size);
        for size in [whole.len() as u64 + 1, u64::MAX] {
            assert_eq!(with(table, &size.to_le_bytes()), Err(io::ErrorKind::InvalidData));
        }
    }
}
