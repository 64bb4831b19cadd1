//! What the first process of an emulated machine is to do, and what it sends: the two sides of [`emulate`](crate::emulate).

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::build::home;
use crate::{Opt, Runtime, Toolchain};

/// Where on the machine the plan lies.
pub const PLAN: &str = "/plan.json";
/// Where the command to be tested lies.
pub const COMMAND: &str = "/ompd-inspect";
/// Where the programs lie, each under its name.
pub const PROGRAMS: &str = "/programs";
/// The server for debuggers.
pub const SERVER: &str = "/gdbserver";
/// The second serial port, at whose other end a debugger is.
pub const DEBUGGER: &str = "/dev/ttyS0";

/// The file that names the kernel: its release.
pub const VERSION: &str = "osrelease";

/// What the line before a file begins with.
const MARK: &[u8] = b"\nFILE ";
/// What comes after the last file.
const END: &[u8] = b"\nEND\n";

/// How a program comes to the state in which it is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settles {
    /// As [`Launch::start`](crate::Launch::start) says.
    Steady,
    /// As [`Launch::start_hanging`](crate::Launch::start_hanging) says.
    Hangs,
    /// As [`Launch::start_healthy`](crate::Launch::start_healthy) says.
    Healthy,
}

/// A program to run there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The name of its file, and of what is sent about it.
    pub name: String,
    /// What [`build`](crate::build) took.
    pub program: String,
    /// What built it.
    pub toolchain: Toolchain,
    /// How far it is optimised.
    pub opt: Opt,
    /// What it runs on.
    pub runtime: Runtime,
    /// Where the runtime lies.
    pub libraries: String,
    /// Further variables of its environment.
    pub variables: Vec<(String, String)>,
    /// When it is inspected.
    pub settles: Settles,
    /// The arguments of each inspection, before the process or the core.
    pub looks: Vec<Look>,
    /// Whether it is left to a debugger after that.
    pub serves: bool,
    /// The user whom it and the inspections belong to; the superuser by default.
    pub user: Option<u32>,
}

/// One inspection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Look {
    /// What its output is called.
    pub name: String,
    /// What comes before the target.
    pub arguments: Vec<String>,
    /// Of the core that the process leaves, not of the process.
    pub of_core: bool,
    /// What `kernel.yama.ptrace_scope` is set to before it. The kernel does not let 3 be undone.
    pub ptrace_scope: Option<u32>,
}

/// What came of all programs, as it is kept for the support matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The machine, and the script of `ci`.
    pub machine: String,
    /// The day, `2026-11-26`.
    pub date: String,
    /// The release of its kernel.
    pub kernel: String,
    /// What emulated it, and its version.
    pub emulator: String,
    /// By runtime.
    pub runtimes: BTreeMap<String, KeptRuntime>,
}

/// What came of the programs on one runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRuntime {
    /// Values of reports on processes.
    pub live: KeptValues,
    /// Values of reports on cores.
    pub core: KeptValues,
    /// Programs that hang, each with a verdict that was compared.
    pub hangs: usize,
    /// Programs that are healthy, each without a verdict.
    pub healthy: usize,
    /// Cores of which the report here has the same bytes as the report there.
    pub same: usize,
}

/// Values of reports against what programs say of themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptValues {
    /// Compared.
    pub compared: usize,
    /// Of these, other than in truth.
    pub wrong: usize,
    /// Of these, said to be unknown.
    pub unknown: usize,
}

impl Kept {
    /// Where it is kept.
    pub fn file() -> PathBuf {
        home().join("aarch64.json")
    }

    /// What is kept; `None` where there is nothing.
    ///
    /// # Errors
    /// It cannot be understood.
    pub fn read() -> Result<Option<Kept>> {
        match fs::read(Kept::file()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).context("aarch64.json")?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context("aarch64.json"),
        }
    }

    /// Keeps it in place of what was kept.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(Kept::file(), text).context("aarch64.json")
    }
}

/// A file by its name and its bytes.
pub type Sent = (String, Vec<u8>);

/// Sends a file: a line `FILE <name> <bytes>`, then so many bytes, compressed. A serial port takes one byte at a time.
///
/// # Errors
/// As the reader or the writer has it.
pub fn send(to: &mut dyn Write, name: &str, from: &mut dyn Read) -> io::Result<()> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    io::copy(from, &mut packed)?;
    let packed = packed.finish()?;
    to.write_all(MARK)?;
    writeln!(to, "{name} {}", packed.len())?;
    to.write_all(&packed)
}

/// The file that says that a debugger may connect.
pub fn serving(name: &str) -> String {
    format!("{name}.serving")
}

/// Whether that file was sent.
pub fn is_serving(serial: &[u8], name: &str) -> bool {
    let line = format!("\nFILE {} ", serving(name));
    serial.windows(line.len()).any(|bytes| bytes == line.as_bytes())
}

/// Says that nothing more comes.
///
/// # Errors
/// As the writer has it.
pub fn send_end(to: &mut dyn Write) -> io::Result<()> {
    to.write_all(END)
}

/// All files that were sent.
///
/// # Errors
/// Something is missing or damaged.
pub fn received(serial: &[u8]) -> Result<Vec<Sent>> {
    let mut files = Vec::new();
    let mut rest = serial;
    while let Some(at) = rest.windows(MARK.len()).position(|bytes| bytes == MARK) {
        rest = &rest[at + MARK.len()..];
        let end = rest.iter().position(|byte| *byte == b'\n').context("a line that does not end")?;
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let (name, size) = line.rsplit_once(' ').with_context(|| format!("a line without a size: {line}"))?;
        let size: usize = size.parse().with_context(|| format!("the size in {line}"))?;
        let (packed, behind) = rest[end + 1..].split_at_checked(size).with_context(|| format!("{name} is cut off"))?;
        let mut bytes = Vec::new();
        DeflateDecoder::new(packed).read_to_end(&mut bytes).with_context(|| format!("{name} is damaged"))?;
        files.push((name.to_owned(), bytes));
        rest = behind;
    }
    ensure!(rest.windows(END.len()).any(|bytes| bytes == END), "the machine did not come to its end");
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let mut zeros = vec![0; 9000];
        zeros[5000] = 7;
        let files =
            [("a b".to_owned(), zeros), ("none".to_owned(), Vec::new()), ("text".to_owned(), b"\nFILE".to_vec())];
        let mut line = b"said by the kernel\n".to_vec();
        for (name, bytes) in &files {
            send(&mut line, name, &mut bytes.as_slice()).expect("it is sent");
        }
        received(&line).expect_err("it did not end");
        send_end(&mut line).expect("it is sent");
        assert_eq!(received(&line).expect("all"), files);
        line.truncate(line.len() - 12);
        received(&line).expect_err("it is cut off");
    }
}
