//! `ompd-inspect`: says what every OpenMP thread, team and task of a process or core file is doing.
//!
//! The only place of the project that prints and exits. Standard output carries the result and nothing else.

#![deny(unsafe_code)]

mod args;
mod closed;
mod graphviz;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::Parser;
use ompd_inspection::history::NoHistory;
use ompd_inspection::{Wanted, inspect};
use ompd_process::{OpenError, OpenOptions};

use ompd_report::escape::{escape, json as escape_json};
use ompd_report::text::history::HistoryView;
use ompd_report::{json, text};

use args::{Cli, Color};

/// All was read.
const COMPLETE: u8 = 0;
/// Part of it was read, or there is no OpenMP runtime.
const PARTIAL: u8 = 1;
/// Nothing was inspected. Clap uses the same status for wrong usage.
const NOT_INSPECTED: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = match cli.options.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    match run(&cli, color) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let mut err = AutoStream::new(io::stderr(), color);
            // Nothing is left to be done if standard error is closed as well.
            let _ = writeln!(err, "ompd-inspect: {failure}");
            ExitCode::from(NOT_INSPECTED)
        }
    }
}

/// Why nothing was shown, and what to do about it, ready to print.
#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let mut text = escape(&error.to_string());
        if let Some(remedy) = error.remedy() {
            text.push_str("\n  remedy: ");
            text.push_str(&escape(&remedy));
        }
        Failure(text)
    }
}

fn run(cli: &Cli, color: ColorChoice) -> Result<u8, Failure> {
    if closed::is_closed() {
        return Err(Failure("standard output is closed: there is nowhere to write the report".to_owned()));
    }
    if let Some(args) = cli.history() {
        return history(cli, args, color);
    }
    let (view, target) =
        cli.request().ok_or_else(|| Failure("name one process id or core file (see --help)".to_owned()))?;
    let options = &cli.options;
    let open = open_options(options);
    let ignore: Vec<_> = options.ignore_origin.iter().copied().map(Into::into).collect();
    let wanted = Wanted {
        ignore: &ignore,
        locals: cli.locals(),
        verdicts: options.json || view.has_verdicts(),
        samples: options.samples,
        interval: options.interval,
    };
    let inspection = inspect(target, &open, wanted).map_err(|error| not_opened(target, error))?;
    let shown = if options.json {
        let report = json::report(&inspection);
        let text =
            serde_json::to_string_pretty(&report).map_err(|e| Failure(format!("cannot write the report: {e}")))?;
        write_all(&mut io::stdout().lock(), &escape_json(&(text + "\n")))
    } else {
        let width = terminal_width();
        let mut text =
            text::render(&inspection, view, text::How { width, verbose: options.verbose, ..text::How::default() });
        if view.is_picture() {
            text = graphviz::svg(&text).map_err(Failure)?;
        }
        write_all(&mut AutoStream::new(io::stdout(), color), &text)
    };
    shown.map_err(|e| Failure(format!("cannot write to standard output: {e}")))?;
    Ok(if inspection.complete() { COMPLETE } else { PARTIAL })
}

fn open_options(options: &args::Options) -> OpenOptions {
    OpenOptions {
        exe: options.exe.clone(),
        lib_root: options.lib_root.clone(),
        debug_dirs: options.debug_dir.clone(),
        debuginfod: options.debuginfod,
        proc_root: options.proc_root.clone(),
        max_pause: options.max_pause,
        ..OpenOptions::default()
    }
}

fn history(cli: &Cli, args: &args::HistoryArgs, color: ColorChoice) -> Result<u8, Failure> {
    let options = &cli.options;
    let history = ompd_inspection::history::history(&args.target, &open_options(options), args.most(options.json));
    let history = history.map_err(|error| match error {
        NoHistory::Target(error) => not_opened(&args.target, error),
        other => {
            let mut text = escape(&other.to_string());
            if let Some(remedy) = other.remedy() {
                text.push_str("\n  remedy: ");
                text.push_str(&remedy);
            }
            Failure(text)
        }
    })?;
    let shown = if options.json {
        let report = json::history::history(&history);
        let text =
            serde_json::to_string_pretty(&report).map_err(|e| Failure(format!("cannot write the history: {e}")))?;
        write_all(&mut io::stdout().lock(), &escape_json(&(text + "\n")))
    } else if args.trace {
        let mut out = io::BufWriter::new(io::stdout().lock());
        unless_closed(text::trace::write(&history, &mut out).and_then(|()| out.flush()))
    } else {
        let view = if args.by_time { HistoryView::ByTime } else { HistoryView::ByThread };
        let text = text::history::render(&history, view, terminal_width());
        write_all(&mut AutoStream::new(io::stdout(), color), &text)
    };
    shown.map_err(|e| Failure(format!("cannot write to standard output: {e}")))?;
    Ok(if history.complete() { COMPLETE } else { PARTIAL })
}

/// Why the target was not opened, with what may have been meant.
fn not_opened(target: &str, error: OpenError) -> Failure {
    let no_process = matches!(error, OpenError::NoSuchProcess { .. });
    let mut failure = Failure::from(error);
    if no_process && std::path::Path::new(target).exists() {
        failure.0.push_str(&format!("\n  note: there is a file of that name; write ./{target} to inspect it"));
    }
    failure
}

/// Columns of standard output, if it is a terminal.
fn terminal_width() -> Option<u16> {
    io::stdout().is_terminal().then(terminal_size::terminal_size).flatten().map(|(width, _)| width.0)
}

/// A reader that has seen enough (`| head`) is no failure.
fn write_all(out: &mut impl Write, text: &str) -> io::Result<()> {
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Whoever reads what is written may have seen enough.
fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
