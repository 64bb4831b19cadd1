//! The tests of the plugin's core, which are Python's and need no debugger: `test_*.py` beside this file.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use test_programs::Skip;

/// How many tests there are at least: fewer means that some were not found.
const AT_LEAST: u32 = 300;

#[test]
fn the_core_without_a_debugger() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = std::env::current_exe().expect("where this test is");
    let library = own.parent().expect("a directory").join("libompd.so");
    assert!(library.is_file(), "{} is missing", library.display());
    let done = Command::new("python3")
        .args(["-m", "unittest", "discover", "--verbose", "--start-directory", "tests/openmp_core"])
        .current_dir(here)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("OMPD_LIBRARY", &library)
        .output();
    let done = match done {
        Ok(done) => done,
        Err(why) => return Skip::because(format!("python3 cannot be run: {why}")).show(),
    };
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
    for skipped in text.lines().filter(|line| line.contains("... skipped")) {
        Skip::because(skipped.to_owned()).show();
    }
    let count = text.lines().find_map(|line| line.strip_prefix("Ran ")).expect("unittest counts what it runs");
    // Directly, so that it is seen of a passing test as well.
    let _ = writeln!(std::io::stderr(), "the core of the plugin: {count}");
    let number: u32 = count.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!(number >= AT_LEAST, "{text}");
}
