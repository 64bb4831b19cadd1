//! Options that a command refuses or has no use for: its help leaves them out.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _};

use super::Cli;
use crate::output::Failure;

/// What `merge` and `completions` inspect no process for.
const OF_INSPECTIONS: [&str; 18] = [
    "samples",
    "interval",
    "children",
    "name",
    "user",
    "redact",
    "arguments",
    "verbose",
    "exe",
    "lib_root",
    "debug_dir",
    "debuginfod",
    "proc_root",
    "pause",
    "max_pause",
    "ignore_origin",
    "verify",
    "no_cache",
];

/// Options that a command refuses or has no use for.
const UNUSED: [(&str, &[&str]); 7] = [
    ("history", &["samples", "interval", "children", "name", "user", "fail_on", "verbose"]),
    ("top", &["samples", "fail_on", "output", "redact"]),
    ("run", &["children", "name", "user", "json", "output"]),
    ("job", &["children", "redact"]),
    ("merge", &OF_INSPECTIONS),
    ("completions", &OF_INSPECTIONS),
    ("completions", &["fail_on", "json", "color"]),
];

/// What to do about such an option of a command that does not say so itself.
const REMEDIES: [(&str, &str); 3] = [
    ("history", "leave it out: the history is read once, and whole"),
    ("merge", "give it to the command that makes the reports, ompd-inspect --json PID > FILE"),
    ("completions", "leave it out: no process is inspected"),
];

/// The command line. The help of a command leaves out the options that it does not use.
pub fn command_line() -> clap::Command {
    hiding(|_| true)
}

/// The same for these arguments: most looks name no command that leaves options out.
pub fn command_line_of(arguments: &[OsString]) -> clap::Command {
    hiding(|command| arguments.iter().any(|argument| argument == command))
}

fn hiding(is_named: impl Fn(&str) -> bool) -> clap::Command {
    let all = Cli::command();
    let named: Vec<_> = UNUSED.iter().filter(|(name, _)| is_named(name)).collect();
    if named.is_empty() {
        return all;
    }
    let hidden = |id: &&str| {
        let option = all.get_arguments().find(|option| option.get_id() == *id);
        option.map(|option| option.clone().hide(true))
    };
    named.into_iter().fold(all.clone(), |line, (name, options)| {
        line.mut_subcommand(name, |command| command.args(options.iter().filter_map(hidden)))
    })
}

/// Refuses an option that the command would ignore.
///
/// # Errors
/// There is one.
pub fn refuse(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, own)) = matches.subcommand() else { return Ok(()) };
    let Some((_, remedy)) = REMEDIES.iter().find(|(of, _)| *of == name) else { return Ok(()) };
    let unused = UNUSED.iter().filter(|(of, _)| *of == name).flat_map(|(_, options)| options.iter());
    let mut given = unused.filter(|id| own.value_source(id) == Some(ValueSource::CommandLine));
    match given.next() {
        Some(id) => {
            let option = id.replace('_', "-");
            Err(Failure::with_remedy(format_args!("{name} has no option --{option}"), remedy))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command_line().debug_assert();
        for (name, options) in UNUSED {
            let line = command_line();
            let command = line.find_subcommand(name).expect("there is such a command");
            let hides =
                |id: &&&str| command.get_arguments().any(|option| option.get_id() == **id && option.is_hide_set());
            let shown: Vec<_> = options.iter().filter(|id| !hides(id)).collect();
            assert!(shown.is_empty(), "{name} shows {shown:?}");
        }
    }

    #[test]
    fn the_help_of_a_named_command_is_that_of_the_whole_command_line() {
        for command in command_line().get_subcommands().map(|command| command.get_name().to_owned()) {
            for arguments in [["ompd-inspect", &command, "--help"], ["ompd-inspect", "help", &command]] {
                let arguments: Vec<OsString> = arguments.map(OsString::from).to_vec();
                let help = |line: clap::Command| {
                    line.try_get_matches_from(&arguments).expect_err("help is no command line").to_string()
                };
                assert_eq!(help(command_line_of(&arguments)), help(command_line()), "{arguments:?}");
            }
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        let refused = |words: &[&str]| {
            let matches = command_line().try_get_matches_from([&["ompd-inspect"], words].concat());
            refuse(&matches.expect("a command line")).err().map(|failure| failure.to_string())
        };
        for words in [
            &["completions", "bash", "--samples", "2"][..],
            &["--verbose", "completions", "bash"],
            &["merge", "--redact", "a.json"],
            &["merge", "--max-pause", "1", "a.json"],
            &["history", "--children", "1"],
        ] {
            let text = refused(words).unwrap_or_else(|| panic!("{words:?} is not refused"));
            assert!(text.contains(" has no option --") && text.contains("remedy: "), "{words:?}: {text}");
        }
        for words in [
            &["completions", "bash", "-o", "f"][..],
            &["merge", "--json", "--fail-on", "deadlock", "a.json"],
            &["history", "--json", "1"],
            &["threads", "--verbose", "1"],
            &["--verbose", "1"],
        ] {
            assert_eq!(refused(words), None, "{words:?}");
        }
    }
}
