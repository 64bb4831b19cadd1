//! `ompd-inspect`: says what every OpenMP thread, team and task of a process or core file is doing.
//!
//! The only place of the project that prints and exits. Standard output carries the result and nothing else.

#![deny(unsafe_code)]

mod args;
mod closed;
mod graphviz;
mod grounds;
mod inputs;
mod inspecting;
mod job;
mod manual;
mod many;
mod memory;
mod merge;
mod output;
mod progress;
mod redact;
mod run;
mod signals;
mod stuck;
mod terminal;
mod top;

use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::FromArgMatches as _;
use ompd_inspection::history::NoHistory;
use ompd_report::escape::escape;
use ompd_report::html;
use ompd_report::json;
use ompd_report::text;
use ompd_report::text::history::HistoryView;

use args::{Cli, Color, Command};
use inputs::{Input, not_opened};
use inspecting::{COMPLETE, Inspecting, NOT_INSPECTED, PARTIAL, open_options, status};
use many::Form;
use output::{Failure, redacted};

/// Columns of text on a page for a browser, where it goes to no terminal.
const PAGE_WIDTH: u16 = 120;

fn main() -> ExitCode {
    memory::keep();
    let arguments: Vec<_> = std::env::args_os().collect();
    let matches = args::command_line_of(&arguments).get_matches_from(&arguments);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let color = match cli.options.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    let command = cli.command.as_ref();
    if let Some(command) = command.filter(|_| !cli.targets.is_empty()) {
        wrong_usage(Some(command), "the command has to stand before the process id");
    }
    if let Some(Command::Run(args)) = command {
        return ExitCode::from(run::run(args, &cli.options, color));
    }
    match args::refuse(&matches).and_then(|()| inspect(&cli, color)) {
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
    let command = cli.command.as_ref();
    let is_nobody_named = |named: &[String]| named.is_empty() && options.name.is_none() && !options.user;
    match command {
        Some(Command::Completions(args)) => return manual::completions(args.shell, options.output()?),
        Some(Command::Manual(args)) => return manual::manual(&args.directory),
        Some(Command::History(args)) if args.target.is_empty() => wrong_usage(command, NO_TARGET),
        Some(Command::History(args)) => return history(cli, args, color),
        Some(Command::Doctor(args::DoctorArgs { why: Some(field), target })) => match &target.targets[..] {
            _ if options.children || options.name.is_some() || options.user || options.fail_on.is_some() => {
                wrong_usage(command, "--why needs one process id or core file, and gives no verdict");
            }
            [target] if !target.is_empty() => return grounds::why(field, target, options, color),
            _ => wrong_usage(command, "--why needs one process id or core file"),
        },
        Some(Command::Merge(args)) => return merge::merge(args, options, color),
        Some(Command::Job(args)) => return job::job(args, options, color),
        Some(Command::JobNode(_) | Command::Top(_)) if closed::is_closed() => {
            return Err(Failure::new("standard output is closed: there is nowhere to write the report"));
        }
        Some(Command::JobNode(args)) => return job::node(args, options),
        Some(Command::Top(args)) if is_nobody_named(&args.targets) => wrong_usage(command, "name a process id"),
        Some(Command::Top(args)) => return top::top(args, options, color),
        _ => {}
    }
    let Some((view, named)) = cli.request() else { wrong_usage(command, NO_TARGET) };
    if named.iter().any(String::is_empty) || is_nobody_named(named) {
        wrong_usage(command, NO_TARGET);
    }
    if let (None, [first, _, ..]) = (command, named)
        && let Some(failure) = inputs::mistyped(first)
    {
        return Err(failure);
    }
    if cli.html && cli.command.is_some() {
        wrong_usage(command, "--html shows all views: leave out the command");
    }
    let inspecting = Inspecting::new(options, cli.locals(), view.has_verdicts());
    let inspecting = if view == text::View::Doctor { inspecting.decoding() } else { inspecting };
    let mut output = options.output()?;
    let form = Form { view, json: options.json, width: output.width() };
    let (shown, status) = match (many::targets(options, named)?, named) {
        (None, [target, ..]) => {
            // The program ends when it has shown this. To give each part of it back takes longer than many looks.
            let inspection = ManuallyDrop::new(inspecting.inspect(target)?);
            if cli.html {
                output.hide_directories(&inspecting.directories());
                let width = output.width().unwrap_or(PAGE_WIDTH);
                output.page(|redact| page(&inspection, width, redact))?;
                return Ok(status(&inspection, options.fail_on));
            }
            let shown =
                if options.json { many::report(&inspection)? } else { rendered(&inspection, form, options.verbose)? };
            (shown, status(&inspection, options.fail_on))
        }
        (targets, _) => {
            if cli.html || !options.json && view.is_for_programs() {
                return Err(Failure::with_remedy(
                    "pages, graphs and pictures are of one process",
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

/// What is said where a target is missing.
const NO_TARGET: &str = "name a process id or a core file";

/// Ends the program as it ends for all other wrong usage, with the usage of the command.
fn wrong_usage(command: Option<&Command>, text: &str) -> ! {
    let mut cli = args::command_line();
    cli.build();
    let kind = clap::error::ErrorKind::MissingRequiredArgument;
    match command.and_then(|command| cli.find_subcommand_mut(command.name())) {
        Some(command) => command.error(kind, text).exit(),
        None => cli.error(kind, text).exit(),
    }
}

/// The text or picture of one inspection.
fn rendered(inspection: &ompd_inspection::Inspection, form: Form, verbose: bool) -> Result<String, Failure> {
    let how = text::How { width: form.width, verbose, ..text::How::default() };
    let text = text::render(inspection, form.view, how);
    if form.view.is_picture() { graphviz::svg(&text).map_err(Failure::new) } else { Ok(text) }
}

/// One inspection as a page for a browser.
fn page(inspection: &ompd_inspection::Inspection, width: u16, redact: &dyn Fn(&str) -> String) -> String {
    let graph = text::render(inspection, text::View::Waits(text::Form::Dot), text::How::default());
    let picture = graphviz::svg(&redact(&graph));
    let picture = picture.as_deref().map_err(|why| why.lines().next().unwrap_or_default());
    let tool = format!("ompd-inspect {}", args::VERSION);
    html::process(inspection, &html::Shown { picture, width, tool: &tool, redact })
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
