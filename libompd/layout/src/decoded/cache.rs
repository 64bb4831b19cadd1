//! What was decoded on this machine before, of builds of which no record is shipped.
//!
//! Each build has a file in a directory of the user. An account that can write there can also change the user's programs. Still,
//! no file is trusted. A file is ignored if another user could have written it, or if its checksum is wrong. The caller compares a
//! record with all other origins.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use ompd_process::elf::ElfFile;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use crate::facts::Facts;

/// The directory below the user's directory for caches.
const FOLDER: &str = "ompd-inspect";
/// What a file begins with.
const TITLE: &str = "ompd-inspect: decoded code";
/// Bytes of a file at most. Those of known runtimes have about three thousand.
const MOST_BYTES: u64 = 64 << 10;
/// Files that are kept. A static program has one for each time it was built.
const MOST_FILES: usize = 64;
/// How the name of a file begins that is not complete.
const NEW: &str = ".new-";
/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;

/// Why there is no record, or none can be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCached {
    /// The program was started with rights that who has started it does not have, or it cannot be known.
    #[error("this program may have more rights than who has started it, so it takes no directory from the environment")]
    Privileged,
    /// The environment names no directory.
    #[error("neither XDG_CACHE_HOME nor HOME is an absolute path")]
    NoDirectory,
    /// The file cannot be told from others.
    #[error("the file has no build-id")]
    NoKey,
    /// There is none of this build.
    #[error("no record of this build")]
    Missing,
    /// What is there is not used.
    #[error("{}: {why}", path.display())]
    Ignored {
        /// What is there.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// The system refuses it.
    #[error("{}: {error}", path.display())]
    System {
        /// What.
        path: PathBuf,
        /// How.
        error: rustix::io::Errno,
    },
}

/// Records of builds in a directory of the user. There need be no such directory: then it has none and keeps none.
#[derive(Debug, Clone)]
pub struct Cache {
    place: Result<Place, NotCached>,
    decoder: String,
}

#[derive(Debug, Clone)]
struct Place {
    base: PathBuf,
    folder: PathBuf,
}

impl Cache {
    /// The cache of the user: below `XDG_CACHE_HOME`, else `HOME/.cache`. `decoder` stands for all that decides what decoding gives:
    /// records of another one are ignored.
    pub fn of_user(decoder: &str) -> Cache {
        let directory = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = || directory("XDG_CACHE_HOME").or_else(|| Some(directory("HOME")?.join(".cache")));
        match (may_be_privileged(), base()) {
            (false, Some(base)) => Cache::below(&base, decoder),
            (false, None) => Cache { place: Err(NotCached::NoDirectory), decoder: decoder.to_owned() },
            (true, _) => Cache { place: Err(NotCached::Privileged), decoder: decoder.to_owned() },
        }
    }

    /// The cache below a directory.
    pub fn below(base: &Path, decoder: &str) -> Cache {
        let place = Place { base: base.to_owned(), folder: base.join(FOLDER) };
        Cache { place: Ok(place), decoder: decoder.to_owned() }
    }

    /// Where the record of a file is, or would be.
    pub fn path(&self, file: &ElfFile) -> Option<PathBuf> {
        Some(self.place.as_ref().ok()?.folder.join(self.name(&key(file)?)))
    }

    fn place(&self) -> Result<&Place, NotCached> {
        self.place.as_ref().map_err(Clone::clone)
    }

    /// A name of its own for each build. The key may have any character.
    fn name(&self, key: &str) -> String {
        let id = key.split('/').next().filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.len() <= 64);
        format!("{}-{:08x}", id.unwrap_or("named"), crc32fast::hash(format!("{key} {}", self.decoder).as_bytes()))
    }

    /// What the record of a file says.
    ///
    /// # Errors
    /// Why there is none that can be used.
    pub fn find(&self, file: &ElfFile) -> Result<Facts, NotCached> {
        let place = self.place()?;
        let folder = place.open()?;
        let key = key(file).ok_or(NotCached::NoKey)?;
        let name = self.name(&key);
        let path = place.folder.join(&name);
        // What is there may be anything: not waited for, and followed nowhere.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let record = rustix::fs::openat(&folder, &*name, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOENT => NotCached::Missing,
            rustix::io::Errno::LOOP => NotCached::Ignored { path: path.clone(), why: "it is a symbolic link" },
            error => NotCached::System { path: path.clone(), error },
        })?;
        let ignored = |why| NotCached::Ignored { path: path.clone(), why };
        is_own(&record, FileType::RegularFile).map_err(ignored)?;
        let mut text = String::new();
        // It may grow while it is read.
        let read = File::from(record).take(MOST_BYTES + 1).read_to_string(&mut text);
        match read {
            Ok(bytes) if bytes as u64 > MOST_BYTES => return Err(ignored("it is too large")),
            Ok(_) => {}
            Err(_) => return Err(ignored("it cannot be read as text")),
        }
        self.parse(&text, &key).map_err(ignored)
    }

    /// Keeps what was decoded of a file. What is there of it is replaced: readers see the old record or the new one.
    ///
    /// # Errors
    /// Why it cannot be kept. Nothing is left behind then.
    pub fn keep(&self, file: &ElfFile, facts: &Facts) -> Result<(), NotCached> {
        /// Threads of this process may keep the same record at once.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let place = self.place()?;
        let key = key(file).ok_or(NotCached::NoKey)?;
        let text = self.text(&key, facts).ok_or(NotCached::NoKey)?;
        place.make()?;
        let folder = place.open()?;
        let name = self.name(&key);
        let new = format!("{NEW}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let system = |error: rustix::io::Errno| NotCached::System { path: place.folder.join(&name), error };
        let opened = rustix::fs::openat(&folder, &*new, flags, Mode::RUSR | Mode::WUSR);
        let mut written = File::from(opened.map_err(system)?);
        let kept = written.write_all(text.as_bytes()).map_err(|error| errno(&error));
        let kept = kept.and_then(|()| rustix::fs::renameat(&folder, &*new, &folder, &*name));
        if let Err(error) = kept {
            // Nothing is left to be done if it cannot be removed either.
            let _ = rustix::fs::unlinkat(&folder, &*new, AtFlags::empty());
            return Err(system(error));
        }
        place.prune(&folder);
        Ok(())
    }

    /// The text of a record: title, decoder, what a shipped record has, checksum.
    fn text(&self, key: &str, facts: &Facts) -> Option<String> {
        let facts = serde_json::to_string(facts).ok()?;
        let body = format!("{TITLE}\n{}\n{key} {facts}\n", self.decoder);
        let text = format!("{body}{:08x}\n", crc32fast::hash(body.as_bytes()));
        (text.len() as u64 <= MOST_BYTES).then_some(text)
    }

    fn parse(&self, text: &str, key: &str) -> Result<Facts, &'static str> {
        let damaged = "it is damaged";
        let end = text.strip_suffix('\n').and_then(|text| text.rfind('\n')).ok_or(damaged)?;
        let (body, sum) = text.split_at(end + 1);
        if sum != format!("{:08x}\n", crc32fast::hash(body.as_bytes())) {
            return Err(damaged);
        }
        let lines: Vec<&str> = body.lines().collect();
        let [TITLE, decoder, record] = lines[..] else { return Err("it is no record") };
        if decoder != self.decoder {
            return Err("it is of another version");
        }
        let facts = record.strip_prefix(key).and_then(|record| record.strip_prefix(' '));
        let facts = facts.ok_or("it is of another build")?;
        serde_json::from_str(facts).map_err(|_| "it is no record")
    }
}

impl Place {
    /// Removes the oldest files if there are too many. What cannot be removed stays.
    fn prune(&self, folder: &OwnedFd) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let of_entry = |entry: fs::DirEntry| {
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.file_name()))
        };
        let mut files: Vec<_> = entries.flatten().filter_map(of_entry).collect();
        let Some(surplus) = files.len().checked_sub(MOST_FILES) else { return };
        files.sort();
        for (_, name) in files.into_iter().take(surplus) {
            let _ = rustix::fs::unlinkat(folder, &*name, AtFlags::empty());
        }
    }

    /// Makes the directory where it is missing, and the one above. Root with the environment of a user makes none: the user could not
    /// write there later.
    fn make(&self) -> Result<(), NotCached> {
        let system = |path: &Path, error| NotCached::System { path: path.to_owned(), error };
        let above = |path: &Path| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| system(path, error))?;
            let stat = rustix::fs::fstat(&folder).map_err(|error| system(path, error))?;
            let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
            let why = "it belongs to another user";
            if is_own { Ok(folder) } else { Err(NotCached::Ignored { path: path.to_owned(), why }) }
        };
        let make = |folder: OwnedFd, path: &Path| match path
            .file_name()
            .map(|name| rustix::fs::mkdirat(&folder, name, Mode::RWXU))
        {
            Some(Err(error)) if error != rustix::io::Errno::EXIST => Err(system(path, error)),
            _ => Ok(()),
        };
        if !self.base.exists()
            && let Some(parent) = self.base.parent()
        {
            make(above(parent)?, &self.base)?;
        }
        make(above(&self.base)?, &self.folder)
    }

    fn open(&self) -> Result<OwnedFd, NotCached> {
        let path = || self.folder.clone();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.folder, flags, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOENT => NotCached::Missing,
            error => NotCached::System { path: path(), error },
        })?;
        is_own(&folder, FileType::Directory).map_err(|why| NotCached::Ignored { path: path(), why })?;
        Ok(folder)
    }
}

/// Which file a record is of: as of shipped ones, and the bytes of the file and of its debug file. Both may have symbols, and
/// what is decoded depends on these.
fn key(file: &ElfFile) -> Option<String> {
    let debug = file.debug_companion().map_or(0, |debug| debug.size());
    Some(format!("{}/{:x}/{debug:x}", super::key(file)?, file.size()))
}

/// Nobody but the user can have written it.
fn is_own(opened: &OwnedFd, kind: FileType) -> Result<(), &'static str> {
    let stat: Stat = rustix::fs::fstat(opened).map_err(|_| "its owner is not known")?;
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err(if kind == FileType::Directory { "it is no directory" } else { "it is no regular file" });
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user");
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err("other users may write it");
    }
    Ok(())
}

fn errno(error: &io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO)
}

/// True unless it is certain that the program has no more rights than who has started it: the auxiliary vector says so
/// (`AT_SECURE`, getauxval(3)). A program with more rights may be unable to read it.
fn may_be_privileged() -> bool {
    fs::read("/proc/self/auxv").map_or(true, |entries| says_privileged(&entries))
}

fn says_privileged(entries: &[u8]) -> bool {
    const AT_SECURE: usize = 23;
    const WORD: usize = size_of::<usize>();
    let words = entries.chunks_exact(WORD).map(|word| word.try_into().map_or(0, usize::from_ne_bytes));
    let words: Vec<usize> = words.collect();
    words.chunks_exact(2).find(|entry| entry[0] == AT_SECURE).is_none_or(|entry| entry[1] != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::facts::Field;

    fn own() -> ElfFile {
        ElfFile::open(&env::current_exe().expect("its path")).expect("it can be read")
    }

    fn facts(offset: u64) -> Facts {
        let mut facts = Facts::default();
        facts.set_field("thread", "number", Field { offset, size: 4, bits: None });
        facts.globals.insert("threads".to_owned(), 0x4000);
        facts
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it can be changed");
    }

    /// A cache with the record of this program, and where that is.
    fn filled() -> (tempfile::TempDir, Cache, ElfFile, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, file) = (Cache::below(directory.path(), "1"), own());
        cache.keep(&file, &facts(8)).expect("it can be kept");
        let path = cache.path(&file).expect("it has a key");
        (directory, cache, file, path)
    }

    fn ignored(cache: &Cache, file: &ElfFile) -> &'static str {
        match cache.find(file) {
            Err(NotCached::Ignored { why, .. }) => why,
            other => panic!("not ignored: {other:?}"),
        }
    }

    #[test]
    fn what_is_kept_is_found_by_its_user_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let (cache, file) = (Cache::below(&directory.path().join("made"), "1"), own());
        assert_eq!(cache.find(&file), Err(NotCached::Missing));
        cache.keep(&file, &facts(8)).expect("it can be kept");
        assert_eq!(cache.find(&file), Ok(facts(8)));
        cache.keep(&file, &facts(16)).expect("it can be replaced");
        assert_eq!(cache.find(&file), Ok(facts(16)));
        let path = cache.path(&file).expect("it has a key");
        let bits = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
        let folder = path.parent().expect("its directory");
        assert_eq!((bits(&path), bits(folder)), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder).expect("a directory").count(), 1, "nothing is left behind");
    }

    #[test]
    fn record_of_another_decoder_or_build_is_not_used() {
        let (directory, cache, file, path) = filled();
        let other = Cache::below(directory.path(), "2");
        assert_eq!(other.find(&file), Err(NotCached::Missing));
        fs::copy(&path, other.path(&file).expect("a name")).expect("a copy");
        assert_eq!(ignored(&other, &file), "it is of another version");
        let text = cache.text("00/1/2/3/0", &facts(8)).expect("a record");
        fs::write(&path, text).expect("a record of another build");
        assert_eq!(ignored(&cache, &file), "it is of another build");
    }

    #[test]
    fn each_truncated_or_changed_record_is_ignored() {
        let (_directory, cache, file, path) = filled();
        let whole = fs::read(&path).expect("the record");
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a part of it");
            assert_eq!(ignored(&cache, &file), "it is damaged", "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).expect("a changed record");
            assert!(cache.find(&file).is_err(), "{at}");
        }
        fs::write(&path, &whole).expect("the record");
        assert_eq!(cache.find(&file), Ok(facts(8)));
        fs::write(&path, vec![b'\n'; MOST_BYTES as usize + 1]).expect("a large file");
        assert_eq!(ignored(&cache, &file), "it is too large");
        fs::write(&path, b"\xff\n\n").expect("no text");
        assert_eq!(ignored(&cache, &file), "it cannot be read as text");
    }

    #[test]
    fn record_that_others_can_have_written_is_ignored_and_replaced() {
        let (_directory, cache, file, path) = filled();
        for bits in [0o620, 0o602, 0o666] {
            mode(&path, bits);
            assert_eq!(ignored(&cache, &file), "other users may write it");
        }
        fs::remove_file(&path).expect("the record");
        let elsewhere = path.with_file_name("elsewhere");
        fs::write(&elsewhere, cache.text(&key(&file).expect("a key"), &facts(8)).expect("a record")).expect("a file");
        symlink(&elsewhere, &path).expect("a link");
        assert_eq!(ignored(&cache, &file), "it is a symbolic link");
        cache.keep(&file, &facts(16)).expect("it is replaced");
        assert_eq!(cache.find(&file), Ok(facts(16)));
        assert!(fs::read_to_string(&elsewhere).expect("the file").contains(":8,"), "a link is not followed");

        let folder = path.parent().expect("its directory");
        mode(folder, 0o770);
        assert_eq!(ignored(&cache, &file), "other users may write it");
        assert!(matches!(cache.keep(&file, &facts(8)), Err(NotCached::Ignored { .. })));
        mode(folder, 0o700);
        fs::remove_file(&path).expect("the record");
        fs::create_dir(&path).expect("a directory in its place");
        assert_eq!(ignored(&cache, &file), "it is no regular file");
        assert!(cache.keep(&file, &facts(8)).is_err());
        assert_eq!(fs::read_dir(folder).expect("a directory").count(), 2, "nothing is left behind");
    }

    #[test]
    fn record_or_directory_of_another_user_is_ignored() {
        use std::os::unix::fs::chown;
        let (_directory, cache, file, path) = filled();
        if !rustix::process::geteuid().is_root() {
            test_programs::Skip::because("only root can give a file to another user").show();
            return;
        }
        chown(&path, Some(65534), None).expect("root may");
        assert_eq!(ignored(&cache, &file), "it belongs to another user");
        cache.keep(&file, &facts(16)).expect("it is replaced");
        assert_eq!(cache.find(&file), Ok(facts(16)));
        chown(path.parent().expect("its directory"), Some(65534), None).expect("root may");
        assert_eq!(ignored(&cache, &file), "it belongs to another user");
        assert!(matches!(cache.keep(&file, &facts(8)), Err(NotCached::Ignored { .. })));
        // Nothing is made in a directory of another user, such as with sudo and the user's HOME.
        let home = tempfile::tempdir().expect("a directory");
        chown(home.path(), Some(65534), None).expect("root may");
        for base in [home.path().to_owned(), home.path().join(".cache")] {
            let cache = Cache::below(&base, "1");
            assert!(matches!(cache.keep(&file, &facts(8)), Err(NotCached::Ignored { .. })));
        }
        assert_eq!(fs::read_dir(home.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn directory_that_is_a_link_or_a_pipe_in_place_of_a_record() {
        let (directory, cache, file, path) = filled();
        fs::remove_file(&path).expect("the record");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        assert_eq!(ignored(&cache, &file), "it is no regular file");
        let folder = path.parent().expect("its directory");
        let moved = directory.path().join("moved");
        fs::rename(folder, &moved).expect("another name");
        symlink(&moved, folder).expect("a link");
        assert!(matches!(cache.find(&file), Err(NotCached::System { .. })));
        assert!(cache.keep(&file, &facts(8)).is_err());
        // No directory at all, and none that could be made.
        let none = Cache::below(&file.path().join("below a file"), "1");
        assert!(matches!(none.keep(&file, &facts(8)), Err(NotCached::System { .. })));
    }

    #[test]
    fn records_kept_at_once_are_whole() {
        let (_directory, cache, file, path) = filled();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (cache, file) = (&cache, &file);
                scope.spawn(move || {
                    for round in 0..50 {
                        cache.keep(file, &facts(thread * 1000 + round)).expect("it can be kept");
                        cache.find(file).expect("it is whole");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(path.parent().expect("its directory")).expect("a directory").count(), 1);
    }

    #[test]
    fn of_many_records_the_oldest_are_removed() {
        let (_directory, cache, file, path) = filled();
        for n in 0..2 * MOST_FILES {
            let old = path.with_file_name(format!("old-{n}"));
            fs::write(&old, "").expect("a file");
            File::options()
                .write(true)
                .open(&old)
                .and_then(|f| f.set_modified(SystemTime::UNIX_EPOCH))
                .expect("a time");
        }
        cache.keep(&file, &facts(16)).expect("it can be kept");
        assert_eq!(fs::read_dir(path.parent().expect("its directory")).expect("a directory").count(), MOST_FILES);
        assert_eq!(cache.find(&file), Ok(facts(16)));
    }

    #[test]
    fn rights_are_read_from_the_auxiliary_vector() {
        let entries = |all: &[usize]| all.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        assert!(!says_privileged(&entries(&[6, 4096, 23, 0, 0, 0])));
        assert!(says_privileged(&entries(&[6, 4096, 23, 1, 0, 0])));
        assert!(says_privileged(&entries(&[6, 4096])), "it does not say");
        assert!(!may_be_privileged(), "tests are not run with more rights");
    }
}
