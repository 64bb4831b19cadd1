//! Options of every command.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::EXPERT;
use super::values::{Color, FailOn, OriginName, PauseWhen, duration, milliseconds};
use crate::output::{Failure, Output};
use crate::redact::Redactor;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Look N times; show what moved (slow or stuck?).
    #[arg(short = 's', long, global = true, value_name = "N", default_value = "1", hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub samples: u32,
    /// Time between looks [default: 1s; top: 2s].
    ///
    /// Give it as 0.5, 2s or 500ms.
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub interval: Option<Duration>,
    /// Inspect child processes too.
    ///
    /// The worst verdict is shown first.
    #[arg(short = 'c', long, global = true)]
    pub children: bool,
    /// Inspect every process with this name.
    #[arg(short = 'n', long, global = true, value_name = "NAME")]
    pub name: Option<String>,
    /// Inspect every process of yours that uses OpenMP.
    #[arg(short = 'u', long, global = true)]
    pub user: bool,
    /// Exit with 3 at: deadlock, suspect or waiting.
    ///
    /// A verdict that is more certain counts too.
    #[arg(long, global = true, value_enum, value_name = "VERDICT", hide_possible_values = true)]
    pub fail_on: Option<FailOn>,
    /// Print one JSON document.
    ///
    /// Its schema is docs/report.schema.json; that of several processes docs/report-list.schema.json.
    #[arg(short = 'j', long, global = true)]
    pub json: bool,
    /// Write the result to FILE.
    #[arg(short = 'o', long, global = true, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Leave out arguments, directories, and names of users and hosts.
    ///
    /// For a report that others may see. File names, functions and variables stay. Directories of the system stay too.
    #[arg(long, global = true, conflicts_with = "arguments")]
    pub redact: bool,
    /// Report the arguments of the process too, in JSON. They may be confidential.
    #[arg(long, global = true, hide_short_help = true, help_heading = EXPERT)]
    pub arguments: bool,
    /// Show where values come from.
    ///
    /// With doctor: all offsets too.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Program that a core came from, if not found.
    #[arg(long, global = true, value_name = "FILE")]
    pub exe: Option<PathBuf>,
    /// Directory that holds the target's file system or libraries, tried first.
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true, help_heading = EXPERT)]
    pub lib_root: Option<PathBuf>,
    /// Directory that holds separate debug files, tried before /usr/lib/debug; repeat for more.
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true, help_heading = EXPERT)]
    pub debug_dir: Vec<PathBuf>,
    /// Get missing debug files by debuginfod-find. It asks the servers in DEBUGINFOD_URLS over the network, before the process
    /// is stopped.
    #[arg(long, global = true, hide_short_help = true, help_heading = EXPERT)]
    pub debuginfod: bool,
    /// Where procfs is mounted.
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc", hide_short_help = true, help_heading = EXPERT)]
    pub proc_root: PathBuf,
    /// When to stop threads. auto: only threads that run, or whose stack needs registers. brief: all threads, for each look.
    /// never: no thread; a verdict then needs all threads asleep.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true,
        hide_short_help = true, help_heading = EXPERT)]
    pub pause: PauseWhen,
    /// Longest time to stop a process for one look, in milliseconds. The report says what could not be read in this time.
    #[arg(long, global = true, value_name = "MS", default_value = "5000", value_parser = milliseconds,
        hide_short_help = true, help_heading = EXPERT)]
    pub max_pause: Duration,
    /// Ignore one layout source (dwarf, table, symbol, code or profile), to check the others; repeat for more.
    #[arg(long, global = true, value_enum, value_name = "ORIGIN", hide_possible_values = true, hide_short_help = true,
        help_heading = EXPERT)]
    pub ignore_origin: Vec<OriginName>,
    /// Decode the code of each runtime, also of known builds.
    #[arg(long, global = true, hide_short_help = true, help_heading = EXPERT)]
    pub verify: bool,
    /// Do not use the cache of decoded builds in XDG_CACHE_HOME or ~/.cache.
    #[arg(long, global = true, hide_short_help = true, help_heading = EXPERT)]
    pub no_cache: bool,
    /// When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true,
        hide_short_help = true, help_heading = EXPERT)]
    pub color: Color,
    /// Print this help.
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    pub help: Option<bool>,
    /// Print this help with all options.
    #[arg(long, global = true, action = clap::ArgAction::HelpLong)]
    pub help_all: Option<bool>,
}

impl Options {
    /// What takes out of reports what `--redact` leaves out.
    pub fn redactor(&self) -> Option<Redactor> {
        self.redact.then(Redactor::of_this_user)
    }

    /// Where the result goes: see [`Output::open`].
    ///
    /// # Errors
    /// As there.
    pub fn output(&self) -> Result<Output, Failure> {
        Output::open(self.output.as_deref(), self.redactor())
    }

    /// The options that count on other hosts too, as arguments.
    pub fn for_nodes(&self) -> Vec<String> {
        let absolute =
            |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
        let mut all: Vec<(&str, Option<String>)> = vec![
            ("--proc-root", Some(absolute(&self.proc_root))),
            ("--max-pause", Some(self.max_pause.as_millis().to_string())),
            ("--pause", self.pause.to_possible_value().map(|value| value.get_name().to_owned())),
            ("--samples", Some(self.samples.to_string())),
        ];
        all.extend(self.interval.iter().map(|time| ("--interval", Some(format!("{}ms", time.as_millis())))));
        all.extend(self.exe.iter().map(|path| ("--exe", Some(absolute(path)))));
        all.extend(self.lib_root.iter().map(|path| ("--lib-root", Some(absolute(path)))));
        all.extend(self.debug_dir.iter().map(|path| ("--debug-dir", Some(absolute(path)))));
        let origins = self.ignore_origin.iter().filter_map(ValueEnum::to_possible_value);
        all.extend(origins.map(|origin| ("--ignore-origin", Some(origin.get_name().to_owned()))));
        all.extend(self.name.iter().map(|name| ("--name", Some(name.clone()))));
        let flags = [
            ("--user", self.user),
            ("--debuginfod", self.debuginfod),
            ("--verify", self.verify),
            ("--no-cache", self.no_cache),
        ];
        all.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (flag, None)));
        let words = |(name, value): (&str, Option<String>)| match value {
            // In one argument, whatever the value begins with.
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        };
        all.into_iter().map(words).collect()
    }
}
