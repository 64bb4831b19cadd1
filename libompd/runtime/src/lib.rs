//! OpenMP runtimes read into one neutral model.
//!
//! [`discover`] finds the runtimes of a target and how each lays out its data; [`Runtime::snapshot`] reads one of them
//! into a [`model::RawSnapshot`], and [`merge`] puts it together with all other [`evidence`]. What is known about an
//! implementation is in its own folder; [`family`] lists them. Nothing outside those folders knows their names.

#![cfg_attr(
    not(all(feature = "gomp", feature = "kmp")),
    expect(dead_code, reason = "what only one family uses is there for the next one")
)]
#![cfg_attr(
    not(any(feature = "gomp", feature = "kmp")),
    expect(unused_macros, unused_imports, reason = "without a family nothing declares what only families do")
)]

mod bind;
pub mod companion;
pub mod entry;
pub mod evidence;
pub mod excerpt;
pub mod family;
mod gnu_interface;
#[cfg(test)]
mod handmade;
pub mod icvs;
mod instance;
mod limits;
pub mod merge;
pub mod model;
pub mod names;
pub mod noted;
pub mod os;
pub mod outsiders;
mod owner;
#[cfg(all(test, feature = "gomp", feature = "kmp"))]
mod partial;
pub mod process;
mod recover;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod stops;
mod version_text;
pub mod waits_for;
mod window;

pub use instance::{Analysis, Between, LayoutsFrom, Runtime};
pub use ompd_layout::Origin;
pub use ompd_layout::decoded::{Cache as DecodedCache, NotCached};

use ompd_process::{ElfFile, Target};

/// Declares the families: a folder of this crate, and the feature it is built with. The order is that of reports; where
/// several claim a file, it is the last one's.
macro_rules! families {
    ($($(#[$when:meta])* $folder:ident;)+) => {
        $($(#[$when])* pub mod $folder;)+
        pub(crate) static FAMILIES: &[&dyn family::Family] = &[$($(#[$when])* &$folder::FAMILY),+];
    };
}

families! {
    #[cfg(feature = "gomp")] gomp;
    #[cfg(feature = "kmp")] kmp;
    #[cfg(test)] toy;
}

/// Names the decoder: all that decides what decoding gives (`build.rs`). What was decoded by another one is not used.
pub const DECODER: &str = env!("OMPD_DECODER");

/// The cache of the user for what is decoded, below `XDG_CACHE_HOME` or `HOME/.cache`.
pub fn decoded_cache() -> DecodedCache {
    DecodedCache::of_user(DECODER)
}

/// Finds every OpenMP runtime among the target's modules, by what they define and not by their names. Vendored copies
/// are renamed, and static programs carry theirs inside the executable.
///
/// Kinds of evidence in `ignore` are not used for the layouts, so that one kind can be checked against another.
pub fn discover(target: &dyn Target, ignore: &[Origin]) -> Vec<Box<dyn Runtime>> {
    discover_by(target, LayoutsFrom { ignore, ..LayoutsFrom::default() })
}

/// The same by more than kinds of evidence.
pub fn discover_by(target: &dyn Target, layouts: LayoutsFrom<'_>) -> Vec<Box<dyn Runtime>> {
    let modules = target.modules().iter();
    modules.filter_map(|module| Some(family::of_module(target, module)?.open(target, module, layouts))).collect()
}

/// What the file of a runtime tells about its layout without a process; `None` if it is no runtime.
pub fn analyse(file: &ElfFile) -> Option<Analysis> {
    let family = family::of_definitions(|name| file.exports(name))?;
    Some(instance::analyse(file, &family.origins()))
}

/// The shipped records of what was decoded of builds of this family before (`ompd_layout::decoded`), one on a line.
pub fn decoded(family: &str) -> Option<&'static str> {
    let family = FAMILIES.iter().find(|of| of.about().name == family)?;
    Some(family.origins().decoded)
}

/// Where a debugger can stop a process that uses this runtime, by the addresses of the file; `None` if it is no runtime.
pub fn stops_of(file: &ElfFile) -> Option<stops::Stops> {
    // A program that has a runtime built in exports nothing of it.
    let family = family::of_definitions(|name| file.exports(name))
        .or_else(|| family::of_definitions(|name| file.symbol(name).is_some()))?;
    Some(family.stops_of(file))
}
