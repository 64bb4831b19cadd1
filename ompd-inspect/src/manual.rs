//! Manual pages and completions, made from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use ompd_report::escape::escape;

use crate::args::{Cli, VERSION};
use crate::inspecting::COMPLETE;
use crate::output::{Failure, Output};

/// Shells whose completions packages install.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// The command line with the options that the short help hides: `clap_mangen` would write no text of theirs.
fn described(command: Command) -> Command {
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    command.mut_subcommands(described)
}

/// The command line without what its help hides, which `clap_complete` would offer.
fn completed() -> Command {
    let all = Cli::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("ompd-inspect").version(VERSION).disable_help_flag(true).args(all.get_arguments()).subcommands(shown)
}

/// Writes the completions for one shell.
///
/// # Errors
/// They cannot be written.
pub fn completions(shell: Shell, output: Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut completed(), "ompd-inspect", &mut script);
    output.with(|out| out.write_all(&script))?;
    Ok(COMPLETE)
}

/// Writes `man1/ompd-inspect.1`, a page for each command, and `completions/` with a file for each of [`SHELLS`], as packages
/// install them.
///
/// # Errors
/// A file cannot be written.
pub fn manual(directory: &Path) -> Result<u8, Failure> {
    write(directory)
        .map(|()| COMPLETE)
        .map_err(|error| Failure::new(format!("cannot write to {}: {error}", escape(&directory.display().to_string()))))
}

fn write(directory: &Path) -> io::Result<()> {
    let (pages, completions) = (directory.join("man1"), directory.join("completions"));
    for created in [&pages, &completions] {
        fs::create_dir_all(created)?;
    }
    clap_mangen::generate_to(described(Cli::command()).disable_help_subcommand(true), pages)?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut completed(), "ompd-inspect", &completions)?;
    }
    Ok(())
}
