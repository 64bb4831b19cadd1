//! Tells the program its version, and the commit it is built from.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=OMPD_COMMIT");
    let commit = given().or_else(packaged).or_else(checked_out);
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit {
        Some(commit) => format!("{version} (commit {commit})"),
        None => version,
    };
    println!("cargo::rustc-env=OMPD_INSPECT_VERSION={version}");
}

/// The commit named by `OMPD_COMMIT`, for builds from an archive without a repository.
fn given() -> Option<String> {
    env::var("OMPD_COMMIT").ok().filter(|commit| !commit.is_empty())
}

/// What `cargo package` has noted.
fn packaged() -> Option<String> {
    let noted = ".cargo_vcs_info.json";
    println!("cargo::rerun-if-changed=Cargo.toml");
    let text = fs::read_to_string(noted).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(short)
}

/// The commit of the checkout.
fn checked_out() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // Each commit and checkout adds a line to this file.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    // Another repository that this one was put into is not meant.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    git(&["rev-parse", "HEAD"]).as_deref().map(short)
}

fn short(commit: &str) -> String {
    commit.chars().take(12).collect()
}
