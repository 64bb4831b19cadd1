//! Test programs run on a fetched runtime, and what `ompd-inspect` says of them against what they say of themselves.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use ompd_process::Machine;
use ompd_process::elf::ElfFile;
use serde_json::Value;
use test_programs::{
    Comparison, Env, Launch, Opt, Running, Runtime, Toolchain, Truth, build, compare, compare_stacks, mapped_files,
};

use super::fetched::{LibC, Library, glibc};

/// The family of GCC's runtime.
pub const GNU: &str = "gomp";

/// Nested teams, tasks in every state, every kind of lock; stacks across threads, those without frames among them.
pub const PROGRAMS: [&str; 5] = ["nested", "tasks", "lock", "stacks", "stacks_tail"];

/// What came of all programs together.
#[derive(Debug, Default)]
pub struct Outcome {
    pub compared: usize,
    pub unknown: Vec<String>,
    pub wrong: Vec<String>,
    /// What the reports themselves say to be lacking.
    pub lacking: Vec<String>,
}

/// Live and from a core; `Err` holds why it was not tried.
pub type Trial = Result<Outcome, String>;

/// How a program is made to run on a library.
struct Way {
    toolchain: Toolchain,
    /// What the kit takes it for.
    runtime: Runtime,
    /// The name under which programs ask for it.
    name: &'static str,
    /// The C library to use instead of the machine's.
    libc: Option<PathBuf>,
    flags: Vec<String>,
}

/// Runs all programs on this library.
///
/// # Errors
/// When a program can be started and then does not do what it should.
pub fn run(inspect: &Path, library: &Library, family: &str, libc: Option<&LibC>) -> Result<(Trial, Trial)> {
    let way = match way(&library.elf, family, libc)? {
        Ok(way) => way,
        Err(why) => return Ok((Err(why.clone()), Err(why))),
    };
    let scratch = tempfile::tempdir().context("making a directory")?;
    let file = library.path.canonicalize()?;
    symlink(&file, scratch.path().join(way.name)).context("linking the library")?;
    let mut path = scratch.path().display().to_string();
    if let Some(libc) = &way.libc {
        path = format!("{path}:{}", libc.display());
    }

    let mut live = Outcome::default();
    let mut core: Trial = Ok(Outcome::default());
    for program in PROGRAMS {
        let flags: Vec<&str> = way.flags.iter().map(String::as_str).collect();
        let executable = build(program, way.toolchain, Opt::O2, &flags)?;
        // The kit needs a runtime of the machine; the variable then leads past it.
        let stand_in = stand_in(family)?;
        let mut launch = Launch::new(&executable, stand_in, Env::Settled).variable("LD_LIBRARY_PATH", &path);
        if family == GNU {
            // Before GCC 11 a limit of active levels does not by itself allow nested regions.
            launch = launch.variable("OMP_NESTED", "true");
        }
        let running = launch.start().with_context(|| format!("{program} on {}", file.display()))?;
        ensure!(mapped_files(running.pid)?.contains(&file), "{program} does not run on {}", file.display());
        let judge = |target: &str| judge(inspect, target, &running.truth, &way);
        live.add(program, judge(&running.pid.to_string())?);
        core = match (core, dump(&running, scratch.path())?) {
            (Ok(mut core), Ok(file)) => {
                core.add(program, judge(&file.display().to_string())?);
                fs::remove_file(file).context("removing a core")?;
                Ok(core)
            }
            (Ok(_), Err(why)) | (Err(why), _) => Err(why),
        };
        let steps = running.truth.steps();
        let finished = running.release().with_context(|| format!("{program} on {} after it", file.display()))?;
        ensure!(finished.progress == steps, "{program} made {} steps of {steps}", finished.progress);
    }
    Ok((Ok(live), core))
}

impl Outcome {
    fn add(&mut self, program: &str, comparison: Comparison) {
        self.compared += comparison.compared;
        let lists = [
            (&mut self.unknown, comparison.unknown),
            (&mut self.wrong, comparison.differences),
            (&mut self.lacking, comparison.lacking),
        ];
        for (all, lines) in lists {
            all.extend(lines.into_iter().map(|line| format!("{program}: {line}")));
        }
    }
}

/// The runtime of the machine that programs for a family's libraries are started with.
fn stand_in(family: &str) -> Result<Runtime> {
    match family {
        GNU => Ok(Runtime::Libgomp),
        "kmp" => Ok(Runtime::Libomp14),
        _ => bail!("no programs are started on runtimes of the family {family}"),
    }
}

/// The way to run on this library, or why it cannot be run on here.
fn way(elf: &ElfFile, family: &str, libc: Option<&LibC>) -> Result<Result<Way, String>> {
    if Some(elf.arch().machine) != Machine::host() {
        return Ok(Err("it is for another machine".to_owned()));
    }
    if let Some(musl) = elf.needed().iter().find(|name| name.contains("musl")) {
        return Ok(Err(format!("it needs {musl}, the programs are built for glibc")));
    }
    let toolchain = if family == GNU { Toolchain::Gcc } else { Toolchain::Clang };
    if let Err(skip) = toolchain.check() {
        return Ok(Err(skip.to_string()));
    }
    let (runtime, name) = match family {
        GNU => (stand_in(family)?, "libgomp.so.1"),
        _ if elf.symbol("__kmp_omp_debug_struct_info").is_some_and(|s| s.size >= 100) => {
            (Runtime::Libiomp5, "libomp.so.5")
        }
        _ => (stand_in(family)?, "libomp.so.5"),
    };
    let mut way = Way { toolchain, runtime, name, libc: None, flags: Vec::new() };
    let wanted = wanted_glibc(elf);
    if wanted <= machine_glibc()? {
        return Ok(Ok(way));
    }
    let version = wanted.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    match libc.filter(|libc| libc.version >= wanted) {
        Some(libc) => {
            way.libc = Some(libc.directory.clone());
            way.flags.push(format!("-Wl,--dynamic-linker={}", libc.linker.display()));
            Ok(Ok(way))
        }
        None => Ok(Err(format!("it needs glibc {version}"))),
    }
}

/// The newest glibc version the library asks for: the names of versions are among the strings of its symbol table.
fn wanted_glibc(elf: &ElfFile) -> Vec<u32> {
    let strings = elf.section(".dynstr").unwrap_or_default();
    let names = strings.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
    names.filter_map(glibc).max().unwrap_or_default()
}

/// The version of this machine's glibc.
pub fn machine_glibc() -> Result<Vec<u32>> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().context("running getconf")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("glibc ").context("this machine has no glibc")?;
    glibc(&format!("GLIBC_{version}")).with_context(|| format!("no version of glibc: {version}"))
}

fn dump(running: &Running, directory: &Path) -> Result<Result<PathBuf, String>> {
    Ok(running.gcore(directory)?.map_err(|skip| skip.to_string()))
}

fn judge(inspect: &Path, target: &str, truth: &Truth, way: &Way) -> Result<Comparison> {
    let output = Command::new(inspect).args(["--json", "--no-cache", target]).stdin(Stdio::null()).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).with_context(|| format!("no report: {error}"))?;
    let mut comparison = match truth.stacks.is_empty() {
        true => compare(truth, &report, way.runtime, way.toolchain),
        false => compare_stacks(truth, &report, way.runtime, Opt::O2),
    };
    let status = output.status.code();
    // 1: a part is unknown.
    let partial = !comparison.unknown.is_empty() || !comparison.lacking.is_empty();
    let expected = if partial && status == Some(1) { Some(1) } else { Some(0) };
    if status != expected {
        // They say what the process was met at.
        comparison.differences.push(format!("exit status {status:?} and not {expected:?}: {}", report["issues"]));
    }
    Ok(comparison)
}
