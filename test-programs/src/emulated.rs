//! Core files of programs on an emulated aarch64 machine, written by its Linux kernel.
//!
//! The machine has the kernel of Debian's installer, the C library and libgomp of the cross compiler, and one process
//! (`emulated/init.c`). That process starts all programs, ends them once they hang, and sends their cores through the serial
//! port.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::build::{compile_c, home};
use crate::{Opt, Skip, Truth};

/// The compiler that makes programs for the machine.
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// What emulates it.
const EMULATOR: &str = "qemu-system-aarch64";
/// Libraries of the machine, in the folder of the cross compiler.
const LIBRARIES: [&str; 4] = ["ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libgomp.so.1"];
/// Where those are.
const LIBRARY_FOLDER: &str = "/usr/aarch64-linux-gnu/lib";
/// How long the machine may take for all programs together. It takes about a minute.
const LIMIT: Duration = Duration::from_secs(400);
/// Bytes of a page that is sent.
const PAGE: usize = 4096;

/// A program to run there.
#[derive(Debug, Clone, Copy)]
pub struct Guest {
    /// What [`build`](crate::build) takes.
    pub program: &'static str,
    /// How far it is optimised.
    pub opt: Opt,
    /// Flags for the compiler.
    pub flags: &'static [&'static str],
    /// What its threads spin for (`SPIN` of the program `spinning`); without it threads sleep as soon as they wait.
    pub spins: Option<&'static str>,
}

impl Guest {
    fn name(&self) -> String {
        let flags = self.flags.concat();
        let how = self.spins.map_or_else(|| "asleep".to_owned(), |wanted| format!("spinning-{wanted}"));
        format!("{}{flags}-{:?}-{how}", self.program.replace('/', "+"), self.opt)
    }
}

/// What a program said of itself, and its core.
#[derive(Debug)]
pub struct GuestCore {
    /// The program.
    pub guest: Guest,
    /// What it said.
    pub truth: Truth,
    /// The core file.
    pub core: PathBuf,
}

/// The cores of all programs, and the files that were mapped in them.
#[derive(Debug)]
pub struct Emulated {
    /// The cores.
    pub cores: Vec<GuestCore>,
    directory: TempDir,
}

impl Emulated {
    /// The root folder of the machine, for `--lib-root`.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }
}

/// Runs the programs; the inner error is the reason why that cannot be done here.
///
/// # Errors
/// When a program cannot be built, does not tell the truth, or leaves no core.
pub fn emulate(guests: &[Guest]) -> Result<Result<Emulated, Skip>> {
    let kernel = home().join("runtimes/kernel-arm64/linux");
    if let Err(skip) = check(&kernel) {
        return Ok(Err(skip));
    }
    let directory = tempfile::tempdir().context("making a directory for a machine")?;
    let root = directory.path().join("root");
    for folder in ["lib", "programs"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for library in LIBRARIES {
        let from = Path::new(LIBRARY_FOLDER).join(library);
        fs::copy(&from, root.join("lib").join(library)).with_context(|| format!("copying {}", from.display()))?;
    }
    compile_c(COMPILER, &home().join("emulated/init.c"), &root.join("init"), &["-O2", "-static"])?;
    for guest in guests {
        let sources = if guest.program.contains('/') { home().to_owned() } else { home().join("programs") };
        let source = sources.join(format!("{}.c", guest.program));
        let flags = [&["-fopenmp"], guest.opt.flags(), guest.flags].concat();
        compile_c(COMPILER, &source, &root.join("programs").join(guest.name()), &flags)?;
    }
    let archive = directory.path().join("initrd");
    fs::write(&archive, pack(&root)?)?;
    let serial = directory.path().join("serial");
    boot(&kernel, &archive, &serial)?;

    let mut files = sent(&fs::read(&serial)?)?;
    let mut cores = Vec::new();
    for guest in guests {
        let name = guest.name();
        let mut take = |kind: &str| {
            let at = files.iter().position(|(known, _)| *known == format!("{name}.{kind}"));
            at.map(|at| files.swap_remove(at).1).with_context(|| format!("the machine sent no {kind} of {name}"))
        };
        let (told, bytes) = (take("truth")?, take("core")?);
        let told = String::from_utf8_lossy(&told).into_owned();
        let truth = Truth::read(&mut told.lines().map(|line| Ok(line.to_owned())));
        let truth = truth.with_context(|| format!("{name} said {told:?}"))?;
        ensure!(!bytes.is_empty(), "{name} left no core");
        let core = directory.path().join(format!("{name}.core"));
        fs::write(&core, bytes)?;
        cores.push(GuestCore { guest: *guest, truth, core });
    }
    Ok(Ok(Emulated { cores, directory }))
}

fn check(kernel: &Path) -> Result<(), Skip> {
    for (command, package) in [(COMPILER, "gcc-aarch64-linux-gnu"), (EMULATOR, "qemu-system-arm")] {
        if Command::new(command).arg("--version").stdout(Stdio::null()).status().is_err() {
            return Err(Skip::because(format!("no aarch64 machine is emulated: {command} is not here ({package})")));
        }
    }
    let library = Path::new(LIBRARY_FOLDER).join("libgomp.so.1");
    if !library.is_file() {
        let why = format!("no aarch64 machine is emulated: {} is not here (libgomp1-arm64-cross)", library.display());
        return Err(Skip::because(why));
    }
    if !kernel.is_file() {
        let missing = kernel.display();
        let why = format!("no aarch64 machine is emulated: {missing} is not here; \"ci/fetch kernel\" gets it");
        return Err(Skip::because(why));
    }
    Ok(())
}

fn boot(kernel: &Path, archive: &Path, serial: &Path) -> Result<()> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT.as_secs().to_string()).arg(EMULATOR);
    command.args(["-M", "virt", "-cpu", "cortex-a57", "-smp", "4", "-m", "1024", "-nic", "none", "-no-reboot"]);
    command.args(["-display", "none", "-append", "console=ttyAMA0 quiet loglevel=1 panic=-1 rdinit=/init"]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(archive);
    command.arg("-serial").arg(format!("file:{}", serial.display()));
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("starting {EMULATOR}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{EMULATOR} ended with {}: {said}", output.status);
    Ok(())
}

/// The files that `init.c` has sent.
fn sent(serial: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    const MARK: &[u8] = b"\nFILE ";
    let mut files = Vec::new();
    let mut rest = serial;
    while let Some(at) = rest.windows(MARK.len()).position(|bytes| bytes == MARK) {
        rest = &rest[at + MARK.len()..];
        let end = rest.iter().position(|byte| *byte == b'\n').context("a line that does not end")?;
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let (name, size) = line.rsplit_once(' ').with_context(|| format!("a line without a size: {line}"))?;
        let mut left: usize = size.parse().with_context(|| format!("the size in {line}"))?;
        rest = &rest[end + 1..];
        let mut bytes = Vec::new();
        while left > 0 {
            let page = left.min(PAGE);
            match rest.split_first() {
                Some((0, behind)) => {
                    bytes.resize(bytes.len() + page, 0);
                    rest = behind;
                }
                Some((1, behind)) if behind.len() >= page => {
                    bytes.extend_from_slice(&behind[..page]);
                    rest = &behind[page..];
                }
                _ => bail!("{name} is cut off, or damaged, {left} bytes before its end"),
            }
            left -= page;
        }
        files.push((name.to_owned(), bytes));
    }
    ensure!(rest.windows(4).any(|bytes| bytes == b"\nEND"), "the machine did not come to its end");
    Ok(files)
}

/// An archive of all files below a folder, as the kernel unpacks it (initramfs buffer format, "newc").
fn pack(root: &Path) -> Result<Vec<u8>> {
    const FOLDER: u32 = 0o040_755;
    const FILE: u32 = 0o100_755;
    let mut archive = Vec::new();
    let mut add = |name: &str, mode: u32, bytes: &[u8]| -> Result<()> {
        write!(archive, "070701{:08x}{mode:08x}{:024x}{:08x}", 0, 0, 0)?;
        write!(archive, "{:08x}{:032x}{:08x}{:08x}", bytes.len(), 0, name.len() + 1, 0)?;
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(4), 0);
        Ok(())
    };
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let name = path.to_str().context("a plain name")?;
            if entry.file_type()?.is_dir() {
                add(name, FOLDER, &[])?;
                open.push(path.clone());
            } else {
                add(name, FILE, &fs::read(entry.path())?)?;
            }
        }
    }
    add("TRAILER!!!", 0, &[])?;
    Ok(archive)
}
