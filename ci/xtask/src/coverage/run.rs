//! Runs the tests that the page names, and refuses those that skipped what they show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Reasons for which a test leaves one runtime of many out, and shows its claim on the others.
const OF_ONE_RUNTIME: [&str; 3] = ["GLIBC_", "undefined symbol: __kmpc_", ", without a tool: "];

/// Runs the tests, as `file::test`, of these packages; all if none is named.
///
/// # Errors
/// Which tests failed, did not run, or were skipped, and why.
pub fn run(root: &Path, tests: &BTreeSet<&str>, packages: &[String]) -> Result<()> {
    let mut wanted = BTreeMap::new();
    for test in tests {
        let (file, name) = test.split_once("::").with_context(|| format!("{test} has no file"))?;
        let package = package_of(&root.join(file))?;
        if packages.is_empty() || packages.contains(&package) {
            wanted.insert((package, name.to_owned()), *test);
        }
    }
    ensure!(!wanted.is_empty(), "no test is of these packages");
    let filters: Vec<String> =
        wanted.keys().map(|(package, name)| format!("(package(={package}) & test(/(^|::){name}$/))")).collect();
    let mut command = Command::new("cargo");
    command.args(["nextest", "run", "--no-fail-fast", "--success-output=immediate", "--color=never"]);
    let used: BTreeSet<&str> = wanted.keys().map(|(package, _)| &**package).collect();
    used.iter().for_each(|package| {
        command.args(["-p", package]);
    });
    let output = command.arg("-E").arg(filters.join(" | ")).current_dir(root).output().context("cargo nextest")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let refused = refused(&text, wanted.keys().map(|(_, name)| &**name));
    ensure!(refused.is_empty(), "the page names tests that show nothing here:\n{}", refused.join("\n"));
    println!("{} tests ran", wanted.len());
    Ok(())
}

/// The package of a file of source.
fn package_of(file: &Path) -> Result<String> {
    let manifest = file.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| path.is_file());
    let manifest = manifest.with_context(|| format!("{} is of no package", file.display()))?;
    let text = std::fs::read_to_string(&manifest)?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(name.with_context(|| format!("{} has no name", manifest.display()))?.to_owned())
}

/// What is wrong with each of the tests, by what nextest wrote: it did not run, did not pass, or was skipped.
fn refused<'a>(output: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    // The first word of a line says how a test went, the last one is its name; what it wrote comes behind.
    let mut went: BTreeMap<&str, (bool, Vec<&str>)> = BTreeMap::new();
    let mut current = None;
    for line in output.lines().map(str::trim) {
        let status = line.split_whitespace().next().unwrap_or_default();
        if ["PASS", "FAIL", "SIGSEGV", "SIGABRT", "TIMEOUT", "Summary"].contains(&status) {
            let name = line.rsplit([' ', ':']).next().unwrap_or_default();
            current = (status != "Summary").then_some(name);
            if let Some(name) = current {
                let passed = went.entry(name).or_insert((true, Vec::new()));
                passed.0 &= status == "PASS";
            }
        } else if let (Some(reason), Some(name)) = (line.strip_prefix("skipped: "), current)
            && let Some((_, reasons)) = went.get_mut(name)
            && !OF_ONE_RUNTIME.iter().any(|of_one| reason.contains(of_one))
        {
            reasons.push(reason);
        }
    }
    names
        .filter_map(|name| match went.get(name) {
            None => Some(format!("{name} did not run")),
            Some((false, _)) => Some(format!("{name} did not pass")),
            Some((true, reasons)) => reasons.first().map(|reason| format!("{name} was skipped: {reason}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::refused;

    const OUTPUT: &str = "\
    Starting 4 tests across 3 binaries (64 tests skipped)
        PASS [   2.166s] (1/4) ompt-companion::companion activation::whole
  stderr ───
    skipped: libomp.so.5: version `GLIBC_2.38' not found

        PASS [   0.013s] (2/4) ompt-companion::companion opencl::left_out
  stderr ───
    skipped: no device by OpenCL; \"ci/fetch opencl\" gets it
        FAIL [   0.313s] (3/4) ompt-companion::device broken
        PASS [   0.005s] (4/4) ompt-record event::tests::quiet
     Summary [   3.948s] 4 tests run: 3 passed, 1 failed, 64 skipped
        FAIL [   0.313s] (3/4) ompt-companion::device broken
";

    #[test]
    fn skipped_failed_and_missing_tests_are_refused() {
        let names = ["whole", "left_out", "broken", "quiet", "absent"];
        let expected = [
            "left_out was skipped: no device by OpenCL; \"ci/fetch opencl\" gets it",
            "broken did not pass",
            "absent did not run",
        ];
        assert_eq!(refused(OUTPUT, names.into_iter()), expected);
    }
}
