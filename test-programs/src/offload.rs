//! Programs that offload to devices which the host plays.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::build::{WARNINGS, file_name, home, make, out};
use crate::{Opt, Skip};

/// A program that offloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offloading {
    /// The file.
    pub program: PathBuf,
    /// The directory with the runtimes it needs, for `LD_LIBRARY_PATH`.
    pub libraries: PathBuf,
}

impl Offloading {
    /// Builds `programs/PROGRAM.c` by the clang that `ci/fetch offload` gets, or takes what a former call built.
    ///
    /// # Errors
    /// When the compiler fails, or warns; the inner error is the reason why it cannot be tried here.
    pub fn build(program: &str, opt: Opt) -> Result<Result<Offloading, Skip>> {
        let folder = home().join("runtimes/offload");
        // Written when all is there.
        if !folder.join("what").is_file() {
            let missing = folder.display();
            return Ok(Err(Skip::because(format!(
                "no compiler that offloads ({missing}); \"ci/fetch offload\" gets it"
            ))));
        }
        let compiler = folder.join("bin/clang");
        // What it needs of the system may be missing, or of another version.
        let reason = match Command::new(&compiler).arg("--version").output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = reason {
            return Ok(Err(Skip::because(format!("the compiler that offloads does not run: {reason}"))));
        }
        let sources = [format!("{program}.c"), "allow.c".to_owned()].map(|name| home().join("programs").join(name));
        let path = out()?.join(file_name(&format!("{program}-offload{}", opt.flags().join(" "))));
        make(&path, &sources, &compiler.to_string_lossy(), |command| {
            command.args(WARNINGS).arg("-std=gnu11").args(opt.flags());
            // The library for code on GPUs is not needed, and 16 MB.
            command.args(["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", "-nogpulib"]).args(&sources);
        })?;
        Ok(Ok(Offloading { program: path, libraries: folder.join("lib") }))
    }
}
