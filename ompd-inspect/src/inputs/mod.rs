//! What an argument names: a process, a core file, a compressed core, or standard input.
//!
//! A compressed core is recognised by its first bytes and unpacked to a file without a name.

mod crash_report;
mod decoders;
mod hints;
mod unpack;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use ompd_process::core::Core;
use ompd_process::{OpenError, OpenOptions};

use crate::output::Failure;
use crate::progress::Progress;
use decoders::Packing;
use unpack::{Unpacked, Unpacking};

pub use hints::{mistyped, not_opened};

/// The argument that stands for standard input.
pub const STANDARD_INPUT: &str = "-";
/// What standard input is called in messages.
const ITS_NAME: &str = "standard input";

/// What is to be inspected.
#[derive(Debug)]
pub enum Input {
    /// A process, or a file that is a core as it is: opened by its name.
    Named,
    /// A core that was unpacked or copied.
    Core(Box<Core>),
}

/// Unpacks or copies what the argument names, if that is needed.
///
/// # Errors
/// The file cannot be read, unpacked or opened as a core.
pub fn open(target: &str, options: &OpenOptions) -> Result<Input, Failure> {
    if target == STANDARD_INPUT {
        return standard_input(options);
    }
    if target.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Input::Named);
    }
    let path = Path::new(target);
    // What is no regular file is refused by the one who opens it as a core.
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return Ok(Input::Named);
    }
    // Not blocked by a pipe that took the place of the file.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = file.map_err(|source| not_opened(target, OpenError::Io { what: target.to_owned(), source }))?;
    match Packing::of(&start(&file)) {
        None => Ok(Input::Named),
        Some(packing) => unpack(Some(packing), &file, target, options),
    }
}

/// The first bytes of a file.
fn start(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; decoders::LOOKED_AT];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

fn standard_input(options: &OpenOptions) -> Result<Input, Failure> {
    let input = io::stdin();
    if input.is_terminal() {
        return Err(Failure::with_remedy(
            "standard input is a terminal, not a core file",
            "send a core file to it: ompd-inspect - < core",
        ));
    }
    let file = input.as_fd().try_clone_to_owned().map(File::from);
    let file = file.map_err(|error| Failure::new(format!("{ITS_NAME} cannot be read: {error}")))?;
    // A file that a shell has opened is read in place.
    if file.metadata().is_ok_and(|meta| meta.is_file()) {
        return match Packing::of(&start(&file)) {
            None => opened(Core::of_file(file, Path::new(ITS_NAME), options), None),
            Some(packing) => unpack(Some(packing), &file, ITS_NAME, options),
        };
    }
    let mut first = Vec::new();
    (&file)
        .take(decoders::LOOKED_AT as u64)
        .read_to_end(&mut first)
        .map_err(|error| Failure::new(format!("{ITS_NAME} cannot be read: {error}")))?;
    if first.is_empty() {
        return Err(Failure::with_remedy(
            "standard input is empty",
            "look whether the command in front of the pipe wrote a core file to its standard output",
        ));
    }
    let packing = Packing::of(&first);
    unpack(packing, first.as_slice().chain(&file), ITS_NAME, options)
}

/// Unpacks a core, or copies it where it is not packed, and opens the result.
fn unpack(packing: Option<Packing>, from: impl Read, name: &str, options: &OpenOptions) -> Result<Input, Failure> {
    let doing = if packing.is_some() { "unpacking" } else { "reading" };
    let progress = Progress::of(&format!("{doing} {name}"));
    let Unpacked { file, damage } =
        Unpacking::new(packing, name).run(from, &mut |bytes| progress.at(|| format!("{} MiB", bytes >> 20)))?;
    drop(progress);
    opened(Core::of_file(file, Path::new(name), options), damage)
}

/// The core, with what was wrong with the file it came in.
fn opened(core: Result<Core, OpenError>, damage: Option<unpack::Damage>) -> Result<Input, Failure> {
    match (core, damage) {
        (Ok(mut core), damage) => {
            if let Some(damage) = damage {
                core.add_issue(damage.to_string());
            }
            Ok(Input::Core(Box::new(core)))
        }
        // What is left of a damaged file is no core: the damage is the cause.
        (Err(_), Some(damage)) => Err(damage.into()),
        (Err(error), None) => Err(error.into()),
    }
}
