//! Cores of programs of another machine, aarch64, which are kept in `test-programs/aarch64` with what the programs said of themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::build::home;
use crate::{GuestRuntime, Skip};

/// Their runtimes.
const RUNTIMES: [GuestRuntime; 2] = [
    GuestRuntime { suite: "bookworm", package: "libgomp1" },
    GuestRuntime { suite: "bookworm", package: "libomp5-14" },
];

/// A core, and a folder with the files that were mapped.
#[derive(Debug)]
pub struct KeptCore {
    /// Program and package of the runtime, as `hangs/lock_cycle-libgomp1`.
    pub name: String,
    /// The program.
    pub program: String,
    /// Its runtime.
    pub runtime: GuestRuntime,
    /// The core, packed by xz.
    pub core: PathBuf,
    /// The root of the file system of its machine, as far as it is needed.
    pub root: TempDir,
    /// What the program said of itself.
    pub truth: Value,
}

/// Where they are kept.
pub fn kept_cores_folder() -> PathBuf {
    home().join("aarch64")
}

/// The name of what is kept of a program on the runtime of a package.
pub fn kept_core_name(program: &str, package: &str) -> String {
    format!("{}-{package}", program.replace('/', "+"))
}

/// All that are kept, with the libraries that `ci/fetch debian` gets.
///
/// # Errors
/// When a file cannot be read or written; the inner error when a library is not here.
pub fn kept_cores() -> Result<Result<Vec<KeptCore>, Skip>> {
    let mut cores = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(kept_cores_folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".json").map(str::to_owned));
    }
    names.sort();
    for name in names {
        match open(&name)? {
            Ok(core) => cores.push(core),
            Err(skip) => return Ok(Err(skip)),
        }
    }
    ensure!(!cores.is_empty(), "there is none in {}", kept_cores_folder().display());
    Ok(Ok(cores))
}

fn open(name: &str) -> Result<Result<KeptCore, Skip>> {
    let (program, package) = name.split_once('-').context("the name has no package")?;
    let runtime = RUNTIMES.into_iter().find(|known| known.package == package).context("an unknown runtime")?;
    let libraries = home().join("runtimes/debian-trixie/arm64/libc6");
    if let Some(missing) = [&libraries, &runtime.library()].into_iter().find(|path| !path.exists()) {
        return Ok(Err(Skip::because(format!("{} is not here; \"ci/fetch debian\" gets it", missing.display()))));
    }
    let text = fs::read_to_string(kept_cores_folder().join(format!("{name}.json")))?;
    let said: Value = serde_json::from_str(&text)?;
    let root = tempfile::tempdir()?;
    let below = |path: &str| root.path().join(path.trim_start_matches('/'));
    let copy = |from: &Path, folder: &str| -> Result<()> {
        fs::create_dir_all(below(folder))?;
        fs::copy(from, below(folder).join(from.file_name().context("a file without a name")?))?;
        Ok(())
    };
    for entry in fs::read_dir(&libraries)? {
        copy(&entry?.path(), "lib")?;
    }
    copy(&runtime.library(), &runtime.folder())?;
    let to = below(said["program"].as_str().context("no path of the program")?);
    fs::create_dir_all(to.parent().context("a path without a folder")?)?;
    let packed = |ending: &str| kept_cores_folder().join(format!("{name}.{ending}"));
    let unpacked = Command::new("xz").args(["-d", "-c"]).arg(packed("xz")).output().context("xz")?;
    ensure!(unpacked.status.success(), "xz: {}", String::from_utf8_lossy(&unpacked.stderr));
    fs::write(&to, unpacked.stdout)?;
    let program = program.replace('+', "/");
    let truth = said["truth"].clone();
    Ok(Ok(KeptCore { name: format!("{program}-{package}"), runtime, core: packed("core.xz"), program, root, truth }))
}
