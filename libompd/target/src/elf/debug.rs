//! The search for a separate debug file (GDB manual, "Debugging Information in Separate Files").

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;
use object::{Endianness, Object};

use super::{ElfFile, by_class};

/// Where distributions put debug files.
const SYSTEM_DEBUG_DIR: &str = "/usr/lib/debug";

/// The places where debug files of one ELF file may lie.
#[derive(Debug, Clone, Default)]
pub(crate) struct DebugSearch {
    /// Debug directories, best first; the system's own is tried after them.
    pub debug_dirs: Vec<PathBuf>,
    /// Directories the file lies in, as this process sees them. Empty: the directory of its path.
    pub file_dirs: Vec<PathBuf>,
    /// The directory the target knows the file by, for the search below debug directories.
    pub target_dir: Option<PathBuf>,
}

impl DebugSearch {
    fn all_debug_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.debug_dirs.clone();
        dirs.push(PathBuf::from(SYSTEM_DEBUG_DIR));
        dirs
    }
}

/// Finds the companion of `file`, and says what was tried.
///
/// By build-id first: that needs no checksum over a file that may be gigabytes long.
pub(super) fn find(file: &ElfFile, search: &DebugSearch) -> (Option<Arc<ElfFile>>, Vec<String>) {
    let mut log = Vec::new();
    if file.has_dwarf() {
        log.push(format!("{}: has debug information itself", file.path().display()));
        return (None, log);
    }
    for (path, crc) in candidates(file, search, &mut log) {
        match check(file, &path, crc) {
            Ok(found) => {
                log.push(format!("{}: used", path.display()));
                return (Some(Arc::new(found)), log);
            }
            Err(why) => log.push(why),
        }
    }
    (None, log)
}

/// Paths to try, each with the CRC-32 it must have if it comes from a debug link.
fn candidates(file: &ElfFile, search: &DebugSearch, log: &mut Vec<String>) -> Vec<(PathBuf, Option<u32>)> {
    let mut paths = Vec::new();
    let debug_dirs = search.all_debug_dirs();
    match file.build_id() {
        Some(id) => {
            let hex = id.to_string();
            // A build-id of one byte would leave no file name.
            if let Some((directory, name)) = hex.split_at_checked(2).filter(|(_, name)| !name.is_empty()) {
                let below = format!(".build-id/{directory}/{name}.debug");
                paths.extend(debug_dirs.iter().map(|d| (d.join(&below), None)));
            }
        }
        None => log.push(format!("{}: no build-id to search by", file.path().display())),
    }
    let Some((name, crc)) = by_class!(file, debug_link, file.bytes()) else {
        log.push(format!("{}: no .gnu_debuglink to search by", file.path().display()));
        return paths;
    };
    // The link is a bare file name; anything else would let the file point wherever it likes.
    if Path::new(&name).components().count() != 1 || name.contains('/') || name == ".." || name == "." {
        log.push(format!("{}: .gnu_debuglink is not a plain file name", file.path().display()));
        return paths;
    }
    let own = file.path().parent().map(Path::to_path_buf);
    let file_dirs =
        if search.file_dirs.is_empty() { own.clone().into_iter().collect() } else { search.file_dirs.clone() };
    for dir in &file_dirs {
        paths.push((dir.join(&name), Some(crc)));
        paths.push((dir.join(".debug").join(&name), Some(crc)));
    }
    if let Some(dir) = search.target_dir.clone().or(own) {
        let relative: PathBuf = dir.components().filter(|c| matches!(c, Component::Normal(_))).collect();
        paths.extend(debug_dirs.iter().map(|d| (d.join(&relative).join(&name), Some(crc))));
    }
    paths
}

fn check(file: &ElfFile, path: &Path, crc: Option<u32>) -> Result<ElfFile, String> {
    let found = ElfFile::open(path).map_err(|e| e.to_string())?;
    let refuse = |why: String| Err(format!("{}: {why}", path.display()));
    match (file.build_id(), found.build_id()) {
        (Some(wanted), Some(got)) if wanted != got => {
            return refuse(format!("build-id {got} is not that of {}, {wanted}", file.path().display()));
        }
        (Some(wanted), None) if crc.is_none() => return refuse(format!("no build-id, wanted {wanted}")),
        _ => {}
    }
    if !found.has_dwarf() && found.symtab().entries().is_empty() {
        return refuse("holds no debug information".into());
    }
    if let Some(wanted) = crc {
        let got = crc32fast::hash(found.bytes());
        if got != wanted {
            return refuse(format!("CRC-32 {got:08x} is not the {wanted:08x} of the debug link"));
        }
    }
    Ok(found)
}

fn debug_link<E: FileHeader<Endian = Endianness>>(data: &[u8]) -> Option<(String, u32)> {
    let elf = object::read::elf::ElfFile::<E>::parse(data).ok()?;
    let (name, crc) = elf.gnu_debuglink().ok()??;
    Some((std::str::from_utf8(name).ok().filter(|n| !n.is_empty())?.to_owned(), crc))
}
