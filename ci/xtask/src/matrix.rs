//! `cargo xtask matrix`: every runtime that can be had by name, and how well it is read.

mod fetched;
mod layouts;

use anyhow::{Result, ensure};
use clap::Args;

use layouts::Truth;

/// Arguments of `matrix`.
#[derive(Args)]
pub struct Arguments {
    /// Write the table to docs/support-matrix.md too.
    #[arg(long)]
    write: bool,
}

/// Makes the table.
pub fn run(_: &Arguments) -> Result<()> {
    let all = fetched::all()?;
    ensure!(!all.is_empty(), "there are no runtimes; ci/fetch gets them");
    for one in &all {
        let Some(library) = &one.library else {
            println!("{}: none", one.what);
            continue;
        };
        match layouts::examine(&library.elf) {
            None => println!("{}: no runtime", one.what),
            Some(l) => {
                let truth = match &l.truth {
                    Truth::Dwarf(_) => "DWARF".to_owned(),
                    Truth::Class(profile) => profile.name.clone(),
                    Truth::None(why) => why.clone(),
                };
                println!(
                    "{} {} | {:?} | truth {truth} | code {}/{} ?{} table {}/{} ?{} | underived {}",
                    one.what,
                    fetched::machine(&library.elf),
                    l.class,
                    l.code.right,
                    l.code.wrong.len(),
                    l.code.unjudged,
                    l.table.right,
                    l.table.wrong.len(),
                    l.table.unjudged,
                    l.underived
                );
                for w in l.code.wrong.iter().chain(&l.table.wrong) {
                    println!("   {w}");
                }
            }
        }
    }
    Ok(())
}
