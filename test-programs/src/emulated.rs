//! Programs on an emulated aarch64 machine: what they said of themselves, what `ompd-inspect` says of them there, and the core
//! files that its Linux kernel writes.
//!
//! The machine has the kernel of Debian's installer, the C library of the cross compiler or of a later Debian, the OpenMP runtimes
//! that the programs need, the command, and one process (`src/bin/guest.rs`) that does what [`guest`](crate::guest) describes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::build::{Target, build_for, home};
use crate::guest::{COMMAND, Look, PLAN, PROGRAMS, Planned, SERVER, Settles, VERSION, is_serving, received};
use crate::runtime::directory_with_link;
use crate::{Opt, Runtime, Skip, Toolchain, Truth};

/// The compiler that makes programs for the machine.
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// What comes with it, for what it made.
const STRIP: &str = "aarch64-linux-gnu-strip";
/// What emulates it.
const EMULATOR: &str = "qemu-system-aarch64";
/// Where the libraries of the cross compiler are.
const CROSS_LIBRARIES: &str = "/usr/aarch64-linux-gnu/lib";
/// Those of them that programs need.
const LIBRARIES: [&str; 9] = [
    "ld-linux-aarch64.so.1",
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libgfortran.so.5",
];
/// Names a folder with the commands for the machine.
const COMMANDS: &str = "OMPD_AARCH64_COMMANDS";
/// How long the machine may take for all programs together.
const LIMIT: Duration = Duration::from_secs(2100);

/// The libomp that programs are linked with.
const LINKED: GuestRuntime = GuestRuntime { suite: "bookworm", package: "libomp5-14" };

/// A runtime for the machine, as `ci/fetch debian` gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuestRuntime {
    /// The release of Debian.
    pub suite: &'static str,
    /// Its package.
    pub package: &'static str,
}

impl GuestRuntime {
    /// The family, as the kit names it.
    pub fn runtime(self) -> Runtime {
        if self.package.starts_with("libomp") { Runtime::Libomp14 } else { Runtime::Libgomp }
    }

    /// The compiler it belongs to.
    pub fn toolchain(self) -> Toolchain {
        if self.runtime().is_kmp() { Toolchain::Clang } else { Toolchain::Gcc }
    }

    /// What `ci/fetch` says that it is.
    ///
    /// # Errors
    /// It is not here.
    pub fn what(self) -> Result<String> {
        let file = self.fetched().join("what");
        Ok(fs::read_to_string(&file).with_context(|| file.display().to_string())?.trim_end().to_owned())
    }

    fn fetched(self) -> PathBuf {
        home().join(format!("runtimes/debian-{}/arm64/{}", self.suite, self.package))
    }

    /// Its file.
    pub fn library(self) -> PathBuf {
        self.fetched().join(if self.runtime().is_kmp() { "libomp.so.5" } else { "libgomp.so.1" })
    }

    /// Its folder on the machine.
    pub fn folder(self) -> String {
        format!("/runtimes/{}-{}", self.suite, self.package)
    }
}

/// The kernel of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestKernel {
    /// Of Debian 12: pages of 4 KiB, addresses of 48 bits.
    Usual,
    /// Of Debian 13: pages of 16 KiB, addresses of 52 bits.
    LargePages,
}

impl GuestKernel {
    fn file(self) -> PathBuf {
        home().join(match self {
            GuestKernel::Usual => "runtimes/kernel-arm64/linux",
            GuestKernel::LargePages => "runtimes/kernel-arm64-16k/linux",
        })
    }
}

/// A program to run there.
#[derive(Debug, Clone)]
pub struct Guest {
    /// What [`build`](crate::build) takes.
    pub program: &'static str,
    /// How far it is optimised.
    pub opt: Opt,
    /// Flags for the compiler.
    pub flags: &'static [&'static str],
    /// What it runs on.
    pub runtime: GuestRuntime,
    /// Further variables of its environment.
    pub variables: Vec<(&'static str, &'static str)>,
    /// When it is inspected.
    pub settles: Settles,
    /// How it is inspected.
    pub looks: Vec<Look>,
    /// The user whom it and the inspections belong to; the superuser by default.
    pub user: Option<u32>,
}

impl Guest {
    fn build(&self) -> Result<PathBuf> {
        let mut flags: Vec<String> = self.flags.iter().map(|flag| (*flag).to_owned()).collect();
        if self.runtime.runtime().is_kmp() {
            // One program runs on all releases: this one needs no newer C library than the compilers have.
            let directory = directory_with_link("libomp.so", &LINKED.library())?;
            flags.push(format!("-L{}", directory.display()));
        }
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let built = build_for(Target::Aarch64, self.program, self.runtime.toolchain(), self.opt, &flags)?;
        Ok(built.path)
    }

    fn name(&self, index: usize) -> String {
        format!("{index}-{}{}", self.program.replace('/', "+"), self.flags.concat())
    }
}

/// What a program said of itself, what the command said of it there, and its core.
#[derive(Debug)]
pub struct GuestResult {
    /// Its name on the machine.
    pub name: String,
    /// The program.
    pub guest: Guest,
    /// Why there is nothing of it, or not all.
    pub error: Option<String>,
    /// What it said.
    pub truth: Option<Truth>,
    /// What the command printed, by the name of the look: on standard output, and its exit status before standard error.
    pub looks: BTreeMap<String, (String, String)>,
    /// The core file.
    pub core: Option<PathBuf>,
}

/// What came of all programs, and the files that were mapped in them.
#[derive(Debug)]
pub struct Emulated {
    /// In the order of the programs.
    pub results: Vec<GuestResult>,
    kernel: String,
    directory: TempDir,
}

impl Emulated {
    /// The release of its kernel.
    pub fn kernel(&self) -> &str {
        self.kernel.trim_end()
    }

    /// The path of a program on the machine.
    pub fn path(&self, result: &GuestResult) -> String {
        format!("{PROGRAMS}/{}", result.name)
    }

    /// The file of a program.
    pub fn program(&self, result: &GuestResult) -> PathBuf {
        self.root().join(self.path(result).trim_start_matches('/'))
    }

    /// The root folder of the machine, for `--lib-root`.
    pub fn root(&self) -> PathBuf {
        self.directory.path().join("root")
    }
}

/// What a debugger needs of a program that is left to it.
#[derive(Debug)]
pub struct Served<'a> {
    /// The socket at which the server of the machine listens.
    pub socket: &'a Path,
    /// The root folder of the machine, with the files that the process has mapped.
    pub root: &'a Path,
    /// The file of the program.
    pub program: &'a Path,
}

/// What is done while a program is left to a debugger.
type Client<'a> = &'a mut dyn FnMut(&Served<'_>) -> Result<()>;

/// Runs the programs; the inner error is the reason why that cannot be done here.
///
/// # Errors
/// When a program cannot be built, or the machine does not come to its end.
pub fn emulate(kernel: GuestKernel, guests: &[Guest]) -> Result<Result<Emulated, Skip>> {
    run(kernel, guests, None)
}

/// Runs one program and leaves it to a debugger, which detaches from it.
///
/// # Errors
/// As [`emulate`], or as the client has it.
pub fn emulate_served(guest: &Guest, client: Client<'_>) -> Result<Result<Emulated, Skip>> {
    run(GuestKernel::Usual, std::slice::from_ref(guest), Some(client))
}

fn run(kernel: GuestKernel, guests: &[Guest], client: Option<Client<'_>>) -> Result<Result<Emulated, Skip>> {
    let kernel = kernel.file();
    let commands = std::env::var_os(COMMANDS).map(PathBuf::from);
    let commands = commands.unwrap_or_else(|| home().join("../target/aarch64-unknown-linux-gnu/release"));
    let server = home().join("runtimes/gdbserver-arm64/gdbserver");
    let server = client.is_some().then_some(server.as_path());
    if let Err(skip) = check(&kernel, &commands, server, guests) {
        return Ok(Err(skip));
    }
    let directory = tempfile::tempdir().context("making a directory for a machine")?;
    let root = directory.path().join("root");
    lay_out(&root, &commands, server, guests)?;
    let archive = directory.path().join("initrd");
    fs::write(&archive, pack(&root)?)?;
    let serial = match client {
        None => boot(&kernel, &archive, &[], &mut |_| Ok(()))?,
        Some(client) => {
            let socket = directory.path().join("debugger");
            let name = guests.first().context("no program")?.name(0);
            let program = root.join(PROGRAMS.trim_start_matches('/')).join(&name);
            let port = format!("socket,path={},server=on,wait=off,id=debugger", socket.display());
            let arguments = ["-chardev", &port, "-device", "pci-serial,chardev=debugger"];
            let mut is_over = false;
            boot(&kernel, &archive, &arguments, &mut |so_far| {
                if is_over || !is_serving(so_far, &name) {
                    return Ok(());
                }
                is_over = true;
                client(&Served { socket: &socket, root: &root, program: &program })
            })?
        }
    };
    fs::remove_file(&archive)?;

    let mut files: BTreeMap<String, Vec<u8>> = received(&serial)?.into_iter().collect();
    drop(serial);
    let kernel = files.remove(VERSION).context("the machine did not name its kernel")?;
    let kernel = String::from_utf8_lossy(&kernel).into_owned();
    let mut results = Vec::new();
    for (index, guest) in guests.iter().enumerate() {
        let name = guest.name(index);
        let mut take = |kind: &str| files.remove(&format!("{name}.{kind}"));
        let mut text = |kind: &str| take(kind).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let error = text("error");
        let truth = text("truth").map(|told| serde_json::from_str(&told)).transpose();
        let truth = truth.with_context(|| format!("what {name} said"))?;
        let looks = guest.looks.iter().filter_map(|look| {
            let both = (text(&format!("{}.out", look.name))?, text(&format!("{}.err", look.name))?);
            Some((look.name.clone(), both))
        });
        let looks = looks.collect();
        let core = take("core").map(|bytes| -> Result<PathBuf> {
            let core = directory.path().join(format!("{name}.core"));
            fs::write(&core, bytes)?;
            Ok(core)
        });
        results.push(GuestResult { name, guest: guest.clone(), error, truth, looks, core: core.transpose()? });
    }
    Ok(Ok(Emulated { results, kernel, directory }))
}

/// What emulates the machine, with its version.
///
/// # Errors
/// It cannot be run.
pub fn emulator() -> Result<String> {
    let output = Command::new(EMULATOR).arg("--version").output().with_context(|| format!("running {EMULATOR}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().next().unwrap_or_default();
    // "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"
    let version = line.split_whitespace().nth(3).with_context(|| format!("no version: {line}"))?;
    Ok(format!("QEMU {version}"))
}

fn check(kernel: &Path, commands: &Path, server: Option<&Path>, guests: &[Guest]) -> Result<(), Skip> {
    for (command, package) in [(COMPILER, "gcc-aarch64-linux-gnu"), (EMULATOR, "qemu-system-arm")] {
        if Command::new(command).arg("--version").stdout(Stdio::null()).status().is_err() {
            return Err(Skip::because(format!("no aarch64 machine is emulated: {command} is not here ({package})")));
        }
    }
    let libraries: BTreeSet<PathBuf> = guests.iter().map(|guest| guest.runtime.library()).collect();
    let needed = [(kernel.to_owned(), "\"ci/fetch kernel\" gets it"), (commands.join("guest"), "ci/cross builds it")];
    let server = server.map(|file| (file.to_owned(), "\"ci/fetch kernel\" gets it"));
    let libraries = libraries.into_iter().map(|file| (file, "\"ci/fetch debian\" gets it"));
    for (file, remedy) in needed.into_iter().chain(server).chain(libraries) {
        if !file.is_file() {
            let why = format!("no aarch64 machine is emulated: {} is not here; {remedy}", file.display());
            return Err(Skip::because(why));
        }
    }
    Ok(())
}

/// Fills the root folder of the machine.
fn lay_out(root: &Path, commands: &Path, server: Option<&Path>, guests: &[Guest]) -> Result<()> {
    let copy = |from: &Path, to: &str| -> Result<()> {
        let to = root.join(to.trim_start_matches('/'));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(from, &to).with_context(|| format!("copying {}", from.display()))?;
        Ok(())
    };
    let newer = home().join("runtimes/debian-trixie/arm64/libc6");
    for library in LIBRARIES {
        let folders = [&newer, Path::new(CROSS_LIBRARIES)];
        let found = folders.iter().map(|folder| folder.join(library)).find(|file| file.is_file());
        // Without it, programs in its language do not start, and say so.
        if let Some(from) = found {
            copy(&from, &format!("/lib/{library}"))?;
        }
    }
    for (from, to) in [("guest", "/init"), ("ompd-inspect", COMMAND)] {
        copy(&commands.join(from), to)?;
        // Lines of its own code would be nine tenths of it.
        let mut strip = Command::new(STRIP);
        let done =
            strip.arg(root.join(to.trim_start_matches('/'))).status().with_context(|| format!("running {STRIP}"))?;
        ensure!(done.success(), "{STRIP} ended with {done}");
    }
    if let Some(server) = server {
        copy(server, SERVER)?;
    }
    let mut plan = Vec::new();
    for (index, guest) in guests.iter().enumerate() {
        let name = guest.name(index);
        copy(&guest.build()?, &format!("{PROGRAMS}/{name}"))?;
        let library = guest.runtime.library();
        let file = library.file_name().and_then(|name| name.to_str()).context("a plain name")?;
        copy(&library, &format!("{}/{file}", guest.runtime.folder()))?;
        plan.push(Planned {
            name,
            program: guest.program.to_owned(),
            toolchain: guest.runtime.toolchain(),
            opt: guest.opt,
            runtime: guest.runtime.runtime(),
            libraries: guest.runtime.folder(),
            variables: guest.variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            settles: guest.settles,
            looks: guest.looks.clone(),
            serves: server.is_some(),
            user: guest.user,
        });
    }
    fs::write(root.join(PLAN.trim_start_matches('/')), serde_json::to_vec(&plan)?)?;
    Ok(())
}

/// Starts the machine and waits for its end; what it has sent. `sent` is shown all of it whenever more has come.
fn boot(
    kernel: &Path,
    archive: &Path,
    arguments: &[&str],
    sent: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT.as_secs().to_string()).arg(EMULATOR);
    command.args(["-M", "virt", "-cpu", "max", "-smp", "2", "-m", "2048", "-nic", "none", "-no-reboot"]);
    command.args(["-display", "none", "-monitor", "none", "-serial", "stdio"]).args(arguments);
    command.args(["-append", "console=ttyAMA0 quiet loglevel=1 panic=-1 rdinit=/init"]);
    command.arg("-kernel").arg(kernel).arg("-initrd").arg(archive);
    let errors = tempfile::tempfile().context("making a file for errors")?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    let mut machine = command.spawn().with_context(|| format!("starting {EMULATOR}"))?;
    let mut port = machine.stdout.take().context("no pipe from the machine")?;
    let mut serial = Vec::new();
    let mut piece = vec![0; 1 << 16];
    let read = loop {
        match port.read(&mut piece) {
            Ok(0) => break Ok(()),
            Ok(size) => serial.extend_from_slice(&piece[..size]),
            Err(error) => break Err(error.into()),
        }
        if let Err(error) = sent(&serial) {
            break Err(error);
        }
    };
    if read.is_err() {
        // `timeout` passes it on.
        let _ = kill(Pid::from_raw(machine.id().cast_signed()), Signal::SIGTERM);
    }
    let status = machine.wait()?;
    read?;
    let mut said = String::new();
    (&errors).rewind()?;
    (&errors).read_to_string(&mut said)?;
    if !status.success() {
        let last = serial.windows(6).rposition(|bytes| bytes == b"\nFILE ").map(|at| &serial[at + 1..]);
        let last = last.and_then(|rest| rest.split(|byte| *byte == b'\n').next()).map(String::from_utf8_lossy);
        bail!("{EMULATOR} ended with {status} after {last:?}: {said}");
    }
    Ok(serial)
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
