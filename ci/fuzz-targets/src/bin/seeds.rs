//! Writes the inputs to start from: `fuzz-seeds DIR` fills `DIR/<target>/`.

#![allow(clippy::print_stdout, reason = "a program for developers")]

use std::path::PathBuf;

use anyhow::Context as _;

fn main() -> anyhow::Result<()> {
    let to = PathBuf::from(std::env::args_os().nth(1).context("usage: fuzz-seeds DIR")?);
    let seeds = fuzz_targets::seeds::make()?;
    for (target, _) in fuzz_targets::TARGETS {
        std::fs::create_dir_all(to.join(target))?;
        let own: Vec<_> = seeds.iter().filter(|seed| seed.target == target).collect();
        for seed in &own {
            std::fs::write(to.join(target).join(&seed.name), &seed.bytes)?;
        }
        println!("{target}: {} seeds of {} bytes", own.len(), own.iter().map(|s| s.bytes.len()).sum::<usize>());
    }
    Ok(())
}
