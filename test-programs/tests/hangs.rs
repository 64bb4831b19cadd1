//! Programs that hang and healthy ones: each has its source, and those of Python are as they say. What each of the others says is
//! checked where it is inspected.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use test_programs::{Case, Env, HANGS, HEALTHY, Launch, check_waits, mapped_files, thread_states};

#[test]
fn python_forks_and_hangs() -> Result<()> {
    for library in ["faiss", "sklearn"] {
        let launch = match Launch::python("fork_child", Env::Stock) {
            Ok(launch) => launch,
            Err(skip) => {
                skip.show();
                return Ok(());
            }
        };
        let running = launch.argument(library).argument("truth").start_hanging()?;
        let faults = running.truth.contradictions();
        ensure!(faults.is_empty(), "{faults:#?}");
        ensure!(thread_states(running.pid)?.len() == 1, "the child has started threads");
        check_waits(&running)?;
    }
    Ok(())
}

#[test]
fn python_uses_two_pools() -> Result<()> {
    let launch = match Launch::python("two_pools", Env::Stock) {
        Ok(launch) => launch,
        Err(skip) => {
            skip.show();
            return Ok(());
        }
    };
    let mut running = launch.start_healthy()?;
    running.await_round(5)?;
    let mapped = mapped_files(running.pid)?;
    let runtimes = mapped.iter().filter(|file| file.to_string_lossy().contains("libgomp")).count();
    ensure!(runtimes == 2, "{runtimes} libgomps are mapped");
    // Three teams of three, and those of the matrix library.
    ensure!(thread_states(running.pid)?.len() >= 9, "the teams are missing");
    Ok(())
}

#[test]
fn every_program_has_its_source() -> Result<()> {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (directory, cases) in [("hangs", HANGS), ("healthy", HEALTHY)] {
        let mut sources = BTreeSet::new();
        for entry in fs::read_dir(home.join(directory))? {
            let path = entry?.path();
            let stem = path.file_stem().context("a source without a name")?;
            sources.insert(format!("{directory}/{}", stem.to_string_lossy()));
        }
        let known: BTreeSet<String> = cases.iter().map(|case| case.program.to_owned()).collect();
        ensure!(sources == known, "{sources:?} are there, {known:?} are run");
        let different: BTreeSet<&Case> = cases.iter().collect();
        ensure!(different.len() == cases.len(), "a case of {directory} is there twice");
    }
    Ok(())
}
