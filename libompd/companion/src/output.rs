//! The files that are written where the environment says, and whether it may say so.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ompt_record::block::{Header, HeaderValues, MAGIC};

/// A variable of the environment. None counts in a program that has more rights than its user (getauxval(3), `AT_SECURE`). Else
/// the user could make it write to files of others.
pub fn variable(name: &str) -> Option<OsString> {
    // SAFETY: it takes a number and reads what the kernel has given the process.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if secure { None } else { std::env::var_os(name) }
}

/// Makes a file empty, or makes it, for its owner alone. An existing file must be a plain file of the user, with this name only.
/// Nothing else is opened to be overwritten, and the call never waits.
///
/// # Errors
/// What the kernel says, or what is there instead.
pub fn create(name: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(name)?;
    let found = file.metadata()?;
    // SAFETY: it takes nothing, and cannot fail (geteuid(2)).
    let user = unsafe { libc::geteuid() };
    let wrong = match (found.is_file(), found.uid() == user, found.nlink()) {
        (false, ..) => "it is no plain file",
        (_, false, _) => "it is another user's",
        (_, _, 2..) => "it has several names",
        _ => {
            file.set_len(0)?;
            return Ok(file);
        }
    };
    Err(io::Error::new(io::ErrorKind::AlreadyExists, wrong))
}

/// Files of one process that are kept at most.
const MOST_EARLIER: u32 = 99;

/// Renames what the same process wrote under this name before it became another program by `exec`: the first to NAME.1.
pub fn keep_earlier(name: &Path, pid: u32, began: u64) {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let Ok(mut file) = OpenOptions::new().read(true).custom_flags(flags).open(name) else { return };
    let mut bytes = [0; size_of::<Header>()];
    if file.read_exact(&mut bytes).is_err() {
        return;
    }
    let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let Some(header) = HeaderValues::from_words(&words) else { return };
    let is_block = [header.magic_first, header.magic_second] == MAGIC;
    // A flush of the same block, or the file of another run, is written over.
    if !is_block || header.pid != u64::from(pid) || header.began == began {
        return;
    }
    let numbered = |n: u32| {
        let mut numbered = name.to_owned().into_os_string();
        numbered.push(format!(".{n}"));
        PathBuf::from(numbered)
    };
    if let Some(free) = (1..=MOST_EARLIER).map(numbered).find(|name| !name.exists()) {
        // If it cannot be renamed, it is written over as any other.
        let _ = std::fs::rename(name, free);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_plain_files_of_the_user_are_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        create(&path("new")).expect("a new file").write_all(b"longer").expect("written");
        create(&path("new")).expect("one that is there").write_all(b"short").expect("written");
        assert_eq!(fs::read(path("new")).expect("read"), b"short");
        assert_eq!(path("new").metadata().expect("its rights").mode() & 0o777, 0o600, "only its owner may read it");
        symlink(path("new"), path("link")).expect("a link");
        assert!(create(&path("link")).is_err());
        fs::hard_link(path("new"), path("name")).expect("another name");
        assert_eq!(create(&path("name")).expect_err("refused").to_string(), "it has several names");
        assert_eq!(fs::read(path("new")).expect("read"), b"short");
        let fifo = std::ffi::CString::new(path("fifo").into_os_string().into_encoded_bytes()).expect("a name");
        // SAFETY: the name ends with a zero.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        // Nobody reads it: who opens it to write waits, or is told.
        assert!(create(&path("fifo")).is_err());
        assert_eq!(create(Path::new("/dev/null")).expect_err("refused").to_string(), "it is no plain file");
        assert!(create(folder.path()).is_err());
    }

    #[test]
    fn a_file_of_another_user_is_left_alone() {
        // SAFETY: it takes nothing, and cannot fail (geteuid(2)).
        if unsafe { libc::geteuid() } != 0 {
            test_programs::Skip::because("only root can give a file to another user").show();
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, b"theirs").expect("written");
        std::os::unix::fs::chown(&path, Some(1), None).expect("given away");
        assert_eq!(create(&path).expect_err("refused").to_string(), "it is another user's");
        assert_eq!(fs::read(&path).expect("read"), b"theirs");
    }

    #[test]
    fn only_a_plain_file_of_the_same_process_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let mut words = [0_u64; size_of::<Header>() / 8];
        let mut put = |at: usize, value| words[at / 8] = value;
        put(std::mem::offset_of!(Header, magic_first), MAGIC[0]);
        put(std::mem::offset_of!(Header, magic_second), MAGIC[1]);
        put(std::mem::offset_of!(Header, pid), 7);
        put(std::mem::offset_of!(Header, began), 100);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        fs::write(path("file"), bytes).expect("written");
        let exists = |name: &str| path(name).symlink_metadata().is_ok();
        symlink(path("file"), path("link")).expect("a link");
        keep_earlier(&path("link"), 7, 200);
        assert!(exists("link") && !exists("link.1"), "it is another name's");
        // Nobody writes to it: who opens it to read, and does not say otherwise, waits.
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
        keep_earlier(&path("fifo"), 7, 200);
        assert!(exists("fifo"));
        keep_earlier(&path("file"), 8, 200);
        keep_earlier(&path("file"), 7, 100);
        assert!(exists("file"), "another process, or the same block");
        keep_earlier(&path("file"), 7, 200);
        assert!(!exists("file") && exists("file.1"));
    }
}
