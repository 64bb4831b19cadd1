//! OpenMP runtimes read into one neutral model.
//!
//! [`discover`] finds the runtimes of a target and how each lays out its data; [`Runtime::snapshot`] reads one of them
//! into a [`model::RuntimeSnapshot`]. What is known about an implementation is in its own folder: [`gomp`] for GCC's
//! libgomp, [`kmp`] for LLVM's libomp and Intel's libiomp5. Nothing outside those folders knows their names.

mod bind;
pub mod companion;
pub mod entry;
pub mod evidence;
pub mod excerpt;
pub mod gomp;
mod instance;
pub mod kmp;
mod limits;
pub mod merge;
pub mod model;
pub mod names;
pub mod os;
mod owner;
#[cfg(test)]
mod partial;
pub mod process;
mod recover;
mod sources;
pub mod stops;
pub mod waits_for;
mod window;

pub use instance::{Analysis, Runtime};
pub use ompd_layout::Origin;

use ompd_process::{ElfFile, Target};

/// Finds every OpenMP runtime among the target's modules, by what they define and not by their names: vendored copies
/// are renamed, and static programs carry theirs inside the executable.
///
/// Kinds of evidence in `ignore` are not used for the layouts: so one can be checked against another.
pub fn discover(target: &dyn Target, ignore: &[Origin]) -> Vec<Box<dyn Runtime>> {
    let mut found: Vec<Box<dyn Runtime>> = Vec::new();
    for module in target.modules() {
        // libomp also exports the GOMP_ entry points, so it is asked first.
        if kmp::Kmp::is_in(target, module) {
            found.push(Box::new(kmp::Kmp::open(target, module, ignore)));
        } else if gomp::Gomp::is_in(target, module) {
            found.push(Box::new(gomp::Gomp::open(target, module, ignore)));
        }
    }
    found
}

/// Functions that every program calls which uses a runtime of a family: by them a debugger can find the runtime.
pub const WELL_KNOWN: &[&str] = &[kmp::WELL_KNOWN, gomp::WELL_KNOWN, "omp_get_thread_num"];

/// What the file of a runtime tells about its layout without a process; `None` if it is no runtime.
pub fn analyse(file: &ElfFile) -> Option<Analysis> {
    let family = if kmp::Kmp::defined_by(|name| file.exports(name)) {
        kmp::origins()
    } else if gomp::Gomp::defined_by(|name| file.exports(name)) {
        gomp::origins()
    } else {
        return None;
    };
    Some(instance::analyse(file, &family))
}

/// Where a debugger can stop a process that uses this runtime, by the addresses of the file; `None` if it is no runtime.
pub fn stops_of(file: &ElfFile) -> Option<stops::Stops> {
    let mut all = stops::Stops::default();
    if kmp::Kmp::defined_by(|name| file.exports(name)) {
        all.add(0, kmp::stops::find(file));
        let returns = kmp::named::return_register(file.arch().machine);
        all.add_named(|name| file.symbol(name), returns.as_slice(), kmp::NOT_NAMED);
    } else if gomp::Gomp::defined_by(|name| file.symbol(name).is_some()) {
        all.add(0, gomp::stops::find(file, None));
        all.add_named(|name| file.symbol(name), &[], gomp::NOT_NAMED);
    } else {
        return None;
    }
    Some(all)
}

/// True if a file is probably an OpenMP runtime, going by its name. For hints alone: copies may be called anything.
pub fn is_named_like_a_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    gomp::FILES.iter().chain(kmp::FILES).any(|file| name.starts_with(file))
}
