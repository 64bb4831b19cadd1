//! Names the decoder by its sources. A cache must not give what another decoder has decoded, and nobody has to remember to count
//! a number up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What decides what decoding gives: the recipes with their schemas, the decoder, what reads files, and the versions of all else.
/// Paths are relative to this package.
pub const SOURCES: [&str; 4] = ["src", "../layout/src", "../process/src", "../../Cargo.lock"];

/// The version of the package, and a hash of its sources. A source that is missing counts as one without files.
///
/// # Errors
/// A source cannot be read.
pub fn decoder(package: &Path) -> io::Result<String> {
    let mut hash = Fnv::default();
    for source in SOURCES {
        let mut files = Vec::new();
        list(&package.join(source), &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(package).unwrap_or(&file).to_string_lossy().into_owned();
            let bytes = fs::read(&file)?;
            for part in [name.as_bytes(), &(bytes.len() as u64).to_le_bytes(), &bytes] {
                hash.add(part);
            }
        }
    }
    Ok(format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hash.0))
}

fn list(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            list(&entry?.path(), files)?;
        }
    } else if path.is_file() {
        files.push(path.to_owned());
    }
    Ok(())
}

/// FNV-1a with 64 bits. Sources are not chosen to collide.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
