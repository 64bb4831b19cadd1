//! Programs whose device is the processor, by OpenCL.

use std::path::PathBuf;

use anyhow::Result;

use crate::build::{WARNINGS, file_name, home, make, out};
use crate::{Offloading, Opt, Skip, Toolchain};

impl Offloading {
    /// Builds `programs/PROGRAM.c` for the runtime that `ci/fetch opencl` gets, or takes what a former call built.
    ///
    /// # Errors
    /// When the compiler fails, or warns; the inner error is the reason why it cannot be tried here.
    pub fn by_opencl(program: &str) -> Result<Result<Offloading, Skip>> {
        let folder = home().join("runtimes/opencl");
        // Written when all is there.
        if !folder.join("what").is_file() {
            let missing = folder.display();
            return Ok(Err(Skip::because(format!("no device by OpenCL ({missing}); \"ci/fetch opencl\" gets it"))));
        }
        if let Err(skip) = Toolchain::Clang.check() {
            return Ok(Err(skip));
        }
        let libraries = folder.join("lib");
        let source = home().join("programs").join(format!("{program}.c"));
        let path: PathBuf = out()?.join(file_name(&format!("{program}-opencl")));
        make(&path, std::slice::from_ref(&source), Toolchain::Clang.command(), |command| {
            command.args(WARNINGS).args(["-std=gnu11", "-fopenmp"]).args(Opt::O0.flags()).arg(&source);
            command.arg("-L").arg(&libraries).args(["-lomptarget", "-Wl,--allow-shlib-undefined"]);
        })?;
        Ok(Ok(Offloading { program: path, libraries }))
    }

    /// The variables by which such a program finds its device.
    pub fn opencl_variables(&self) -> Vec<(&'static str, String)> {
        let folder = self.libraries.display().to_string();
        vec![
            ("OCL_ICD_FILENAMES", format!("{folder}/libintelocl.so")),
            ("OCL_ICD_VENDORS", folder),
            ("LIBOMPTARGET_PLUGIN", "OPENCL".to_owned()),
            ("LIBOMPTARGET_DEVICETYPE", "CPU".to_owned()),
            ("OMP_TARGET_OFFLOAD", "mandatory".to_owned()),
        ]
    }
}
