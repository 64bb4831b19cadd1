//! The search for a separate debug file and for its supplementary file.
//!
//! The GDB manual describes the first under "Debugging Information in Separate Files". `dwz -m` moves what several
//! debug files share into a supplementary file (dwz(1), DWARF 5 section 7.3.6).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::FileHeader;
use object::{Endianness, Object};

use super::debuginfod::Debuginfod;
use super::{ElfFile, by_class};
use crate::source::Source;
use crate::symbol::BuildId;

/// Where distributions put debug files.
const SYSTEM_DEBUG_DIR: &str = "/usr/lib/debug";
/// PATH_MAX of Linux: no file has a longer path.
const MAX_PATH: usize = 4096;

/// The places where debug files of one ELF file may lie.
#[derive(Debug, Clone, Default)]
pub(crate) struct DebugSearch {
    /// Debug directories, best first; the system's own is tried after them.
    pub debug_dirs: Vec<PathBuf>,
    /// Directories the file lies in, as this process sees them. Empty: the directory of its path.
    pub file_dirs: Vec<PathBuf>,
    /// The directory the target knows the file by, for the search below debug directories.
    pub target_dir: Option<PathBuf>,
    /// Directories that hold a file system of the target's (a copy of it, or a container's), best first.
    pub roots: Vec<PathBuf>,
    /// Asked last, if it may be.
    pub debuginfod: Option<Debuginfod>,
}

impl DebugSearch {
    fn all_debug_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.debug_dirs.clone();
        dirs.push(PathBuf::from(SYSTEM_DEBUG_DIR));
        dirs
    }

    /// The same places, for a file that lies where this process sees it.
    fn for_debug_file(&self) -> DebugSearch {
        DebugSearch { file_dirs: Vec::new(), target_dir: None, ..self.clone() }
    }
}

/// What `.gnu_debugaltlink` says.
#[derive(Debug)]
pub(super) struct AltLink {
    /// Path of the supplementary file, absolute or relative to the file with the link.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: BuildId,
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
    let mut found = None;
    for (path, crc) in candidates(file, search, &mut log) {
        found = accept(check(file, &path, crc), &mut log);
        if found.is_some() {
            break;
        }
    }
    if let (None, Some(server)) = (&found, &search.debuginfod) {
        match file.build_id() {
            Some(id) => {
                let asked = server.fetch(id).and_then(|path| check(file, &path, None));
                found = accept(asked, &mut log);
            }
            None => log.push(format!("{}: no build-id to ask debuginfod for", file.path().display())),
        }
    }
    (found.map(|f| Arc::new(f.with_debug_search(search.for_debug_file()))), log)
}

/// Finds the supplementary file of the DWARF in `file`, and reports what was tried. Both are empty if it has none.
///
/// The path in the link comes from a file that may be hostile. It is tried like any other name: only the build-id
/// decides.
pub(super) fn find_supplement(file: &ElfFile, search: &DebugSearch) -> (Option<Arc<ElfFile>>, Vec<String>) {
    let mut log = Vec::new();
    let link = match by_class!(file, alt_link, file.source()) {
        Ok(None) => return (None, log),
        Ok(Some(link)) => link,
        Err(why) => {
            log.push(format!("{}: .gnu_debugaltlink is malformed: {why}", file.path().display()));
            return (None, log);
        }
    };
    let mut found = None;
    for path in supplement_candidates(file, &link, search) {
        found = accept(check_supplement(&link, &path), &mut log);
        if found.is_some() {
            break;
        }
    }
    if let (None, Some(server)) = (&found, &search.debuginfod) {
        let asked = server.fetch(&link.build_id).and_then(|path| check_supplement(&link, &path));
        found = accept(asked, &mut log);
    }
    (found.map(Arc::new), log)
}

/// Notes the outcome of one try.
fn accept(tried: Result<ElfFile, String>, log: &mut Vec<String>) -> Option<ElfFile> {
    match tried {
        Ok(file) => {
            log.push(format!("{}: used", file.path().display()));
            Some(file)
        }
        Err(why) => {
            log.push(why);
            None
        }
    }
}

/// Where a debug file of that build-id lies below each debug directory.
fn by_build_id(id: &BuildId, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let hex = id.to_string();
    // A build-id of one byte would leave no file name.
    let Some((directory, name)) = hex.split_at_checked(2).filter(|(_, name)| !name.is_empty()) else {
        return Vec::new();
    };
    let below = format!(".build-id/{directory}/{name}.debug");
    debug_dirs.iter().map(|d| d.join(&below)).collect()
}

/// Paths to try, each with the CRC-32 it must have if it comes from a debug link.
fn candidates(file: &ElfFile, search: &DebugSearch, log: &mut Vec<String>) -> Vec<(PathBuf, Option<u32>)> {
    let mut paths = Vec::new();
    let debug_dirs = search.all_debug_dirs();
    match file.build_id() {
        Some(id) => paths.extend(by_build_id(id, &debug_dirs).into_iter().map(|path| (path, None))),
        None => log.push(format!("{}: no build-id to search by", file.path().display())),
    }
    let Some((name, crc)) = by_class!(file, debug_link, file.source()) else {
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
        let got = crc32fast::hash(
            found
                .source()
                .get(0..found.source().len())
                .ok_or_else(|| format!("{}: it is not read to its end", path.display()))?,
        );
        if got != wanted {
            return refuse(format!("CRC-32 {got:08x} is not the {wanted:08x} of the debug link"));
        }
    }
    Ok(found)
}

fn debug_link<E: FileHeader<Endian = Endianness>>(data: &Source) -> Option<(String, u32)> {
    let elf = object::read::elf::ElfFile::<E, _>::parse(data).ok()?;
    let (name, crc) = elf.gnu_debuglink().ok()??;
    Some((std::str::from_utf8(name).ok().filter(|n| !n.is_empty())?.to_owned(), crc))
}

/// Paths to try for a supplementary file: by build-id, then by the link's path. That path is tried below the given
/// directories first, then elsewhere.
fn supplement_candidates(file: &ElfFile, link: &AltLink, search: &DebugSearch) -> Vec<PathBuf> {
    let debug_dirs = search.all_debug_dirs();
    let mut paths = by_build_id(&link.build_id, &debug_dirs);
    if link.path.is_relative() {
        let own = file.path().parent().map(Path::to_path_buf);
        let mut dirs = if search.file_dirs.is_empty() { own.into_iter().collect() } else { search.file_dirs.clone() };
        // Debug directories are full of symbolic links by build-id; the link counts from where the file really is.
        let real = std::fs::canonicalize(file.path()).ok();
        dirs.extend(real.and_then(|real| Some(real.parent()?.to_path_buf())));
        paths.extend(dirs.iter().map(|dir| join_below(dir, &link.path, &search.roots)));
    } else {
        for root in &search.roots {
            paths.push(join_below(root, &link.path, &search.roots));
        }
        let within = link.path.strip_prefix(SYSTEM_DEBUG_DIR).ok();
        for dir in &debug_dirs {
            let relative = [within, Some(link.path.as_path())];
            paths.extend(relative.into_iter().flatten().map(|path| join_below(dir, path, std::slice::from_ref(dir))));
        }
        paths.push(link.path.clone());
    }
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

/// `path` as seen from `dir`. If `dir` lies below one of `roots`, `..` does not lead out of that root, as it would not
/// for the target.
fn join_below(dir: &Path, path: &Path, roots: &[PathBuf]) -> PathBuf {
    let root = roots.iter().filter(|root| dir.starts_with(root)).max_by_key(|root| root.components().count());
    let least = root.map_or(1, |root| root.components().count());
    let mut joined = dir.to_path_buf();
    for component in path.components() {
        match component {
            Component::Normal(name) => joined.push(name),
            Component::ParentDir if joined.components().count() > least => {
                joined.pop();
            }
            _ => {}
        }
    }
    joined
}

fn check_supplement(link: &AltLink, path: &Path) -> Result<ElfFile, String> {
    let found = ElfFile::open(path).map_err(|e| e.to_string())?;
    match found.build_id() {
        Some(id) if *id == link.build_id => Ok(found),
        Some(id) => {
            Err(format!("{}: build-id {id} is not that of the supplementary file, {}", path.display(), link.build_id))
        }
        None => Err(format!("{}: no build-id, the supplementary file has {}", path.display(), link.build_id)),
    }
}

/// Reads `.gnu_debugaltlink`: a NUL-terminated path, then the build-id. `None` if there is no such section.
pub(super) fn alt_link<E: FileHeader<Endian = Endianness>>(data: &Source) -> Result<Option<AltLink>, String> {
    let elf = object::read::elf::ElfFile::<E, _>::parse(data).map_err(|e| e.to_string())?;
    let Some((path, id)) = elf.gnu_debugaltlink().map_err(|e| e.to_string())? else { return Ok(None) };
    if path.is_empty() || path.len() > MAX_PATH || id.is_empty() {
        return Err("it names no file, or no build-id".into());
    }
    Ok(Some(AltLink { path: PathBuf::from(OsStr::from_bytes(path)), build_id: BuildId(id.to_vec()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_link_is_tried_below_the_directories_given_first() {
        let own = std::env::current_exe().expect("own path");
        let file = ElfFile::open(&own).expect("this program");
        let link = AltLink { path: "/usr/lib/debug/.dwz/x.debug".into(), build_id: BuildId(vec![0xab, 0xcd]) };
        let search =
            DebugSearch { debug_dirs: vec!["/d".into()], roots: vec!["/copy".into()], ..DebugSearch::default() };
        let expected = [
            "/d/.build-id/ab/cd.debug",
            "/usr/lib/debug/.build-id/ab/cd.debug",
            "/copy/usr/lib/debug/.dwz/x.debug",
            "/d/.dwz/x.debug",
            "/d/usr/lib/debug/.dwz/x.debug",
            "/usr/lib/debug/.dwz/x.debug",
            "/usr/lib/debug/usr/lib/debug/.dwz/x.debug",
        ];
        assert_eq!(supplement_candidates(&file, &link, &search), expected.map(PathBuf::from));
    }

    #[test]
    fn a_link_cannot_climb_out_of_the_root_it_lies_in() {
        let roots = [PathBuf::from("/image"), PathBuf::from("/image/inner")];
        let join = |dir: &str, path: &str| join_below(Path::new(dir), Path::new(path), &roots);
        assert_eq!(join("/image/a/b", "../../.dwz/x"), Path::new("/image/.dwz/x"));
        assert_eq!(join("/image/a", "../../../../etc/x"), Path::new("/image/etc/x"));
        assert_eq!(join("/image/inner/a", "../../../x"), Path::new("/image/inner/x"));
        assert_eq!(join("/image", "/usr/lib/debug/x"), Path::new("/image/usr/lib/debug/x"));
        assert_eq!(join("/usr/lib/debug/.build-id/ab", "../../.dwz/./x"), Path::new("/usr/lib/debug/.dwz/x"));
        assert_eq!(join("/usr", "../../../x"), Path::new("/x"));
    }
}
