//! `ompd-inspect`: says what every OpenMP thread, team and task of a process or core file is doing.
//!
//! The only place of the project that prints and exits. Standard output carries the result and nothing else.

#![deny(unsafe_code)]

mod args;
mod closed;
mod graphviz;
mod inputs;
mod inspecting;
mod job;
mod manual;
mod many;
mod merge;
mod output;
mod redact;
mod run;
mod signals;
mod terminal;
mod top;

use std::io::{self, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory, Parser};
use ompd_inspection::history::NoHistory;
use ompd_report::escape::escape;
use ompd_report::json;
use ompd_report::text;
use ompd_report::text::history::HistoryView;

use args::{Cli, Color};
use inputs::{Input, not_opened};
use inspecting::{COMPLETE, Inspecting, NOT_INSPECTED, PARTIAL, open_options, status};
use many::Form;
use output::{Failure, redacted};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = match cli.options.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    if let Some(args) = cli.run() {
        return ExitCode::from(run::run(args, &cli.options, color));
    }
    match inspect(&cli, color) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let mut err = AutoStream::new(io::stderr(), color);
            // Nothing is left to be done if standard error is closed as well.
            let shown = redacted(cli.options.redactor().as_ref(), &failure.to_string()).into_owned();
            let _ = writeln!(err, "ompd-inspect: {shown}");
            ExitCode::from(NOT_INSPECTED)
        }
    }
}

fn inspect(cli: &Cli, color: ColorChoice) -> Result<u8, Failure> {
    let options = &cli.options;
    if let Some(args) = cli.completions() {
        return manual::completions(args.shell, options.output()?);
    }
    if let Some(args) = cli.manual() {
        return manual::manual(&args.directory);
    }
    if let Some(args) = cli.history() {
        return history(cli, args, color);
    }
    if let Some(args) = cli.merge() {
        return merge::merge(args, &cli.options, color);
    }
    if let Some(args) = cli.job() {
        return job::job(args, &cli.options, color);
    }
    let is_shown_repeatedly = cli.job_node().is_some() || cli.top().is_some();
    if is_shown_repeatedly && closed::is_closed() {
        return Err(Failure::new("standard output is closed: there is nowhere to write the report"));
    }
    if let Some(args) = cli.job_node() {
        return job::node(args, &cli.options);
    }
    if let Some(args) = cli.top() {
        if args.targets.is_empty() && options.name.is_none() && !options.user {
            wrong_usage("name a process id");
        }
        return top::top(args, options, color);
    }
    let (view, named) = cli.request().unwrap_or_else(|| wrong_usage("the command has to stand before the process id"));
    if named.iter().any(String::is_empty) || named.is_empty() && options.name.is_none() && !options.user {
        wrong_usage("name a process id or a core file");
    }
    let inspecting = Inspecting::new(options, cli.locals(), view.has_verdicts());
    let inspecting = if view == text::View::Doctor { inspecting.decoding() } else { inspecting };
    let mut output = options.output()?;
    let form = Form { view, json: options.json, width: output.width() };
    let (shown, status) = match (many::targets(options, named)?, named) {
        (None, [target, ..]) => {
            let inspection = inspecting.inspect(target)?;
            let shown =
                if options.json { many::report(&inspection)? } else { rendered(&inspection, form, options.verbose)? };
            (shown, status(&inspection, options.fail_on))
        }
        (targets, _) => {
            if !options.json && view.is_for_programs() {
                return Err(Failure::with_remedy(
                    "graphs and pictures are of one process",
                    "name one process id or core file, without --children, --name and --user",
                ));
            }
            let reports = many::reports(&targets.unwrap_or_default(), &inspecting, options, form)?;
            (reports.shown, reports.status)
        }
    };
    output.hide_directories(&inspecting.directories());
    if options.json { output.document(&shown) } else { output.text(&shown, color) }?;
    Ok(status)
}

/// Ends the program as it ends for all other wrong usage.
fn wrong_usage(text: &str) -> ! {
    Cli::command().error(clap::error::ErrorKind::MissingRequiredArgument, text).exit()
}

/// The text or picture of one inspection.
fn rendered(inspection: &ompd_inspection::Inspection, form: Form, verbose: bool) -> Result<String, Failure> {
    let how = text::How { width: form.width, verbose, ..text::How::default() };
    let text = text::render(inspection, form.view, how);
    if form.view.is_picture() { graphviz::svg(&text).map_err(Failure::new) } else { Ok(text) }
}

fn history(cli: &Cli, args: &args::HistoryArgs, color: ColorChoice) -> Result<u8, Failure> {
    let options = &cli.options;
    let output = options.output()?;
    let open = open_options(options);
    let most = args.most(options.json);
    let history = match inputs::open(&args.target, &open)? {
        Input::Named => ompd_inspection::history::history(&args.target, &open, most),
        Input::Core(core) => ompd_inspection::history::of_target(&*core, most),
    };
    let history = history.map_err(|error| match error {
        NoHistory::Target(error) => not_opened(&args.target, error),
        other => {
            let text = escape(&other.to_string());
            match other.remedy() {
                Some(remedy) => Failure::with_remedy(text, remedy),
                None => Failure::new(text),
            }
        }
    })?;
    if options.json {
        output.document(&many::document(&json::history::history(&history))?)?;
    } else if args.trace {
        output.with(|out| text::trace::write(&history, out))?;
    } else {
        let view = if args.by_time { HistoryView::ByTime } else { HistoryView::ByThread };
        let text = text::history::render(&history, view, output.width());
        output.text(&text, color)?;
    }
    Ok(if history.complete() { COMPLETE } else { PARTIAL })
}
