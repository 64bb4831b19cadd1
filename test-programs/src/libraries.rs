//! Libraries by the hundred, for programs that load them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::build::make;

/// Functions of each library: about as many as a small module of Python has.
const FUNCTIONS: usize = 200;

/// So many libraries, as `0.so` and so on: one is built by gcc, and the others are copies of it with other build-ids.
///
/// # Errors
/// When gcc cannot be run or fails, or a file cannot be written.
pub fn libraries(count: usize) -> Result<TempDir> {
    /// Bytes of a build-id by SHA-1.
    const LENGTH: u32 = 20;
    /// NT_GNU_BUILD_ID (elf.h).
    const KIND: u32 = 3;
    let directory = tempfile::tempdir().context("a directory for libraries")?;
    let source = directory.path().join("library.c");
    let text: String = (0..FUNCTIONS)
        .map(|number| {
            let room = number % 17 + 1;
            format!("int f{number}(int x) {{ volatile int a[{room}]; a[0] = x; return a[0] + {number}; }}\n")
        })
        .collect();
    fs::write(&source, text).context("writing a library")?;
    let built = directory.path().join("library.so");
    make(&built, std::slice::from_ref(&source), "gcc", |command| {
        command.args(["-O2", "-fPIC", "-shared", "-Wl,--build-id=sha1"]).arg(&source);
    })?;
    let mut bytes = fs::read(&built).context("reading a library")?;
    // The note: length of the name, length of the build-id, kind, name.
    let numbers = [4, LENGTH, KIND];
    let head: Vec<u8> = numbers.iter().flat_map(|word| word.to_ne_bytes()).chain(*b"GNU\0").collect();
    let note = bytes.windows(head.len()).position(|part| part == head).context("the library has no build-id")?;
    let at = note + head.len();
    for number in 0..count {
        let id = bytes.get_mut(at..at + 4).context("the build-id of the library is cut off")?;
        id.copy_from_slice(&u32::try_from(number)?.to_ne_bytes());
        fs::write(file(directory.path(), number), &bytes).context("writing a library")?;
    }
    Ok(directory)
}

fn file(directory: &Path, number: usize) -> std::path::PathBuf {
    directory.join(format!("{number}.so"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Toolchain;

    #[test]
    fn libraries_differ_in_their_build_id() -> Result<()> {
        if let Err(skip) = Toolchain::Gcc.check() {
            skip.show();
            return Ok(());
        }
        let directory = libraries(2)?;
        let id = |number: usize| -> Result<_> {
            let file = ompd_process::elf::ElfFile::open(&file(directory.path(), number))?;
            file.build_id().cloned().context("no build-id")
        };
        anyhow::ensure!(id(0)? != id(1)?);
        Ok(())
    }
}
