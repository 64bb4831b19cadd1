//! Manual pages and completions, made from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::builder::Resettable;
use clap::{Command, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use ompd_report::escape::escape;
use roff::{Roff, roman};

use crate::args::{VERSION, command_line};
use crate::inspecting::COMPLETE;
use crate::output::{Failure, Output};

/// The command.
const NAME: &str = "ompd-inspect";

/// Shells whose completions packages install, and the names by which the shells look for the files.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "ompd-inspect.bash"), (Shell::Zsh, "_ompd-inspect"), (Shell::Fish, "ompd-inspect.fish")];

/// The command line with the options that the short help hides: `clap_mangen` would write no text of theirs.
fn described(command: Command) -> Command {
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    command.mut_subcommands(described)
}

/// The command line without what its help hides, which `clap_complete` would offer.
fn completed() -> Command {
    let all = command_line();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new(NAME).version(VERSION).disable_help_flag(true).args(all.get_arguments()).subcommands(shown)
}

/// Writes the completions for one shell.
///
/// # Errors
/// They cannot be written.
pub fn completions(shell: Shell, output: Output) -> Result<u8, Failure> {
    output.document(&script(shell))?;
    Ok(COMPLETE)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut completed(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Bash { without_placeholders(&script) } else { script }
}

/// The completions for bash without the words that stand for arguments (`[PID|CORE]...`), which it would offer as they are. Where an
/// argument is a file, options are offered behind a `-` only: without a word that fits, bash offers files.
fn without_placeholders(script: &str) -> String {
    const FILES: [&str; 3] = ["CORE", "FILE", "PROGRAM"];
    let mut out = String::with_capacity(script.len());
    let (mut takes_files, mut is_behind_values) = (false, false);
    for line in script.split_inclusive('\n') {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        if let Some(words) = text.strip_prefix("opts=\"").and_then(|words| words.trim_end().strip_suffix('"')) {
            let (placeholders, kept): (Vec<&str>, Vec<&str>) =
                words.split(' ').partition(|word| word.starts_with(['[', '<']));
            let files = placeholders.iter().any(|word| FILES.iter().any(|file| word.contains(file)));
            // Beside commands, files are offered where no command fits.
            takes_files = files && !kept.contains(&"threads");
            let mut words = kept.join(" ");
            if placeholders.contains(&"<SHELL>") {
                words.push_str(&shells());
            }
            out.push_str(&format!("{indent}opts=\"{words}\"\n"));
        } else if takes_files && text.starts_with("if [[ ${cur} == -* || ${COMP_CWORD} -eq ") {
            out.push_str(&format!("{indent}if [[ ${{cur}} == -* ]] ; then\n"));
        } else if takes_files && is_behind_values && text.starts_with("COMPREPLY=( $(compgen -W ") {
            out.push_str(&format!("{indent}COMPREPLY=()\n"));
        } else {
            out.push_str(line);
        }
        is_behind_values = text.trim_end() == "esac";
    }
    out
}

/// The names of all shells, each behind a blank.
fn shells() -> String {
    let names = Shell::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    names.map(|value| format!(" {}", value.get_name())).collect()
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
    let mut command = described(command_line()).disable_help_subcommand(true);
    command.build();
    page(&command, &pages)?;
    for (shell, file) in SHELLS {
        fs::write(completions.join(file), script(shell))?;
    }
    Ok(())
}

/// Writes the page of a command, and those of its own commands.
fn page(command: &Command, pages: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        page(inner, pages)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // It would be one section with its lines filled.
    let page = Man::new(command.clone().after_help(Resettable::Reset));
    let mut text = Vec::new();
    page.render(&mut text)?;
    text.extend_from_slice(sections(&after).as_bytes());
    fs::write(pages.join(page.get_filename()), text)
}

/// What stands below the help of a command, as sections of its page. Examples keep their lines.
fn sections(after: &str) -> String {
    const STATUS: &str = "Exit status: ";
    let mut roff = Roff::new();
    let mut is_in_notes = false;
    for paragraph in after.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.is_empty()) {
        if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]).control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
            is_in_notes = false;
        } else if let Some(status) = paragraph.strip_prefix(STATUS) {
            roff.control("SH", ["EXIT STATUS"]).text([roman(status)]);
            is_in_notes = false;
        } else {
            roff.control(if is_in_notes { "PP" } else { "SH" }, if is_in_notes { vec![] } else { vec!["NOTES"] });
            roff.text([roman(paragraph)]);
            is_in_notes = true;
        }
    }
    roff.to_roff()
}
