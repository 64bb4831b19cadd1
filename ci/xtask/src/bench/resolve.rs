//! What finding a runtime's layout costs. It is done before the process is stopped.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ompd_process::elf::ElfFile;
use ompd_runtime::{Origin, analyse};
use test_programs::Runtime;

use super::{Limit, median_and_least};

/// Most that may take, in milliseconds, without debug information and with it.
const MOST: [f64; 2] = [20.0, 100.0];

/// One runtime, resolved a number of times.
pub struct Resolution {
    what: String,
    /// It has debug information.
    dwarf: bool,
    milliseconds: Vec<f64>,
}

/// Resolves the layout of every runtime at hand, `rounds` times after one that does not count.
///
/// # Errors
/// When a file cannot be read or its layout is not known: then there is nothing to measure.
pub fn measure(rounds: usize) -> Result<Vec<Resolution>> {
    let mut all = Vec::new();
    for runtime in [Runtime::Libgomp, Runtime::Libomp14, Runtime::Libiomp5] {
        match runtime.library() {
            Ok(library) => all.push(one(runtime, &library, rounds)?),
            Err(skip) => skip.show(),
        }
    }
    Ok(all)
}

fn one(runtime: Runtime, library: &Path, rounds: usize) -> Result<Resolution> {
    let mut resolution = Resolution { what: format!("{runtime:?}"), dwarf: false, milliseconds: Vec::new() };
    for round in 0..=rounds {
        let began = Instant::now();
        // A file opened anew: what one look has parsed, the next must not find.
        let file = ElfFile::open(library)?;
        let analysis = analyse(&file).with_context(|| format!("{} is no runtime", library.display()))?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        resolution.dwarf = analysis.origins.iter().any(|(source, f)| source.origin == Origin::Dwarf && !f.is_empty());
        ensure!(analysis.profile.is_ok() || resolution.dwarf, "the layout of {} is not known", library.display());
        if round > 0 {
            resolution.milliseconds.push(took);
        }
    }
    Ok(resolution)
}

/// The measurements as a table.
pub fn table(resolutions: &[Resolution]) -> String {
    let mut text = String::from("| runtime | debug information | finding its layout |\n|---|---|---|\n");
    for resolution in resolutions {
        let (median, least) = resolution.summary();
        let dwarf = if resolution.dwarf { "yes" } else { "none" };
        text += &format!("| {} | {dwarf} | {median:.1} ms (least {least:.1}) |\n", resolution.what);
    }
    text + "\n"
}

impl Resolution {
    fn summary(&self) -> (f64, f64) {
        median_and_least(self.milliseconds.iter().copied()).unwrap_or_default()
    }

    /// Whether it was fast enough.
    pub fn limit(&self) -> Limit {
        let most = MOST[usize::from(self.dwarf)];
        let (median, _) = self.summary();
        let dwarf = if self.dwarf { "with" } else { "without" };
        Limit {
            what: format!("layout of {} {dwarf} debug information, at most {most} ms", self.what),
            measured: median,
            unit: "ms",
            kept: median <= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_may_take_longer() {
        let kept = |dwarf, milliseconds: f64| {
            Resolution { what: "a runtime".to_owned(), dwarf, milliseconds: vec![milliseconds] }.limit().kept
        };
        assert!(kept(false, 20.0) && !kept(false, 20.1));
        assert!(kept(true, 20.1) && !kept(true, 100.1));
    }
}
