//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ompd_report::text::{Form, Graph, StackView, View};
use ompd_runtime::Origin;

const EXAMPLES: &str = "\
Examples:
  ompd-inspect 4711                    why does process 4711 hang?
  ompd-inspect core.4711               the same, from a core file
  ompd-inspect waits 4711              who waits for what: locks, barriers, tasks
  ompd-inspect --samples 2 4711        is it stuck, or just slow?
  ompd-inspect threads 4711            every thread: team, number, task, wait
  ompd-inspect stacks 4711             where in the source each is; those at one place in one row
  ompd-inspect --json 4711 | jq .      all of it, for programs
  ompd-inspect history 4711            what each thread did last (with the companion)
  ompd-inspect doctor 4711             how each value was found, and what is missing";

const AFTER: &str = "\
The process is stopped for a few milliseconds, only read, and goes on as before.
Exit status: 0 all was read; 1 part of it, or no OpenMP runtime found; 2 nothing was inspected.";

/// Says what every OpenMP thread, team and task of a process or core file is doing.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    before_help = EXAMPLES,
    after_help = AFTER,
    override_usage = "ompd-inspect [OPTIONS] <PID|CORE>\n       ompd-inspect <COMMAND> [OPTIONS] <PID|CORE>",
    subcommand_negates_reqs = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to show; without a command, the summary.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Process id, or path of a core file (write ./123 for a core file named 123).
    #[arg(value_name = "PID|CORE", required = true)]
    pub target: Option<String>,
    /// Options of every command.
    #[command(flatten)]
    pub options: Options,
}

/// The views.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Every thread: which OpenMP thread it is, in which team, what it executes and waits for.
    Threads(TargetArg),
    /// The tree of teams with their members and barriers.
    Teams(TargetArg),
    /// Tasks: executing, suspended, ready, blocked on dependences and detached, with the tasks that generated them.
    Tasks(TasksArgs),
    /// What waits for what: the verdict, every wait, locks with owner and waiters.
    Waits(WaitsArgs),
    /// How far worksharing loops and sections are.
    Loops(TargetArg),
    /// Internal control variables in force for each thread.
    Icvs(TargetArg),
    /// Stacks as the source reads: runtime frames folded, workers continued in the thread that opened their region, threads
    /// that read the same in one row.
    Stacks(StacksArgs),
    /// What each thread did last, as the OMPT companion has recorded it in the process: libompt_companion.so, named in
    /// OMP_TOOL_LIBRARIES when the program was started. The process is not stopped.
    History(HistoryArgs),
    /// How each runtime was found and read: files tried, origins of the offsets, what is missing.
    Doctor(TargetArg),
}

/// Arguments of `stacks`.
#[derive(Debug, Clone, Args)]
pub struct StacksArgs {
    #[command(flatten)]
    pub target: TargetArg,
    /// How to show them.
    #[command(flatten)]
    pub form: StackForm,
    /// Show each frame's parameters and variables with their values, as debug information tells; one row for each thread.
    /// Nothing else prints what is in the program's memory, which may be confidential.
    #[arg(long, conflicts_with_all = ["tree", "dot", "folded", "svg"])]
    pub locals: bool,
}

/// Arguments of `tasks`.
#[derive(Debug, Clone, Args)]
pub struct TasksArgs {
    #[command(flatten)]
    pub target: TargetArg,
    /// Each task below the one that generated it.
    #[arg(long, conflicts_with_all = ["dot", "svg"])]
    pub tree: bool,
    #[command(flatten)]
    pub form: GraphForm,
}

/// Arguments of `waits`.
#[derive(Debug, Clone, Args)]
pub struct WaitsArgs {
    #[command(flatten)]
    pub target: TargetArg,
    #[command(flatten)]
    pub form: GraphForm,
}

/// Arguments of `history`.
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// Process id, path of a core file, or of a file that the companion has written (OMPT_COMPANION_FILE).
    #[arg(value_name = "PID|CORE")]
    pub target: String,
    /// All threads together, in the order of time.
    #[arg(long)]
    pub by_time: bool,
    /// How many events of each thread, counted from the last; all with --trace and --json unless given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub last: Option<u64>,
    /// All as a trace for Perfetto (ui.perfetto.dev) or Chrome (about:tracing).
    #[arg(long, conflicts_with_all = ["by_time", "json"])]
    pub trace: bool,
}

impl HistoryArgs {
    /// How many events of each thread are wanted.
    pub fn most(&self, json: bool) -> u64 {
        /// As many as one can look through.
        const FEW: u64 = 20;
        self.last.unwrap_or(if self.trace || json { u64::MAX } else { FEW })
    }
}

/// As a graph: what waits for what, or which task depends on which.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct GraphForm {
    /// The graph for Graphviz.
    #[arg(long)]
    pub dot: bool,
    /// The graph as an SVG picture, drawn by Graphviz (`dot`), which has to be installed.
    #[arg(long)]
    pub svg: bool,
}

impl GraphForm {
    fn chosen(&self, otherwise: Form) -> Form {
        match (self.dot, self.svg) {
            (true, _) => Form::Dot,
            (_, true) => Form::Svg,
            _ => otherwise,
        }
    }
}

/// The forms of `stacks`.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct StackForm {
    /// One row for each thread.
    #[arg(long)]
    pub all: bool,
    /// All stacks as one tree, outermost frames first.
    #[arg(long)]
    pub tree: bool,
    /// The tree for Graphviz.
    #[arg(long)]
    pub dot: bool,
    /// The tree in lines of `frame;frame;frame count`, for flame graph tools.
    #[arg(long)]
    pub folded: bool,
    /// The tree as a flame graph, an SVG picture for any browser.
    #[arg(long)]
    pub svg: bool,
}

/// The positional argument.
#[derive(Debug, Clone, Args)]
pub struct TargetArg {
    /// Process id, or path of a core file (write ./123 for a core file named 123).
    #[arg(value_name = "PID|CORE")]
    pub target: String,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Executable the core came from, where it is not found by itself.
    #[arg(long, global = true, value_name = "FILE")]
    pub exe: Option<PathBuf>,
    /// Directory with the target's file system or libraries, tried first.
    #[arg(long, global = true, value_name = "DIR")]
    pub lib_root: Option<PathBuf>,
    /// Directory with separate debug files, tried before /usr/lib/debug; may be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    pub debug_dir: Vec<PathBuf>,
    /// Ask debuginfod for debug files that are not here: runs debuginfod-find, which asks the servers named in
    /// DEBUGINFOD_URLS over the network, before the process is stopped.
    #[arg(long, global = true)]
    pub debuginfod: bool,
    /// Where procfs is mounted.
    #[arg(long, global = true, value_name = "DIR", default_value = "/proc")]
    pub proc_root: PathBuf,
    /// Longest time to hold a process for one look, in milliseconds; what could not be read by then is told.
    #[arg(long, global = true, value_name = "MS", default_value = "5000", value_parser = milliseconds)]
    pub max_pause: Duration,
    /// How often to look at a process: with 2 or more, what has changed between the first and the last look is shown, which
    /// tells slow from stuck.
    #[arg(long, global = true, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub samples: u32,
    /// Time between two looks, in seconds (0.5, 2s) or milliseconds (500ms).
    #[arg(long, global = true, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub interval: Duration,
    /// Do without one source of layouts (dwarf, table, symbol, code or profile), to check the others against it; may be
    /// repeated.
    #[arg(long, global = true, value_enum, value_name = "ORIGIN", hide_possible_values = true)]
    pub ignore_origin: Vec<OriginName>,
    /// Print one JSON document, with the origin of every value (schema: docs/report.schema.json).
    #[arg(long, global = true)]
    pub json: bool,
    /// Show where values come from; in `doctor`, every value of the layout.
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to use colour: auto (on a terminal, unless NO_COLOR is set), always or never.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    /// Print this help.
    #[arg(short, long, global = true, action = clap::ArgAction::HelpShort)]
    pub help: Option<bool>,
}

/// A source of layouts.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum OriginName {
    /// Debug information.
    Dwarf,
    /// Tables the runtime exports about itself.
    Table,
    /// Symbol tables.
    Symbol,
    /// The runtime's instructions.
    Code,
    /// Layouts shipped with this program.
    Profile,
}

impl From<OriginName> for Origin {
    fn from(name: OriginName) -> Origin {
        match name {
            OriginName::Dwarf => Origin::Dwarf,
            OriginName::Table => Origin::Table,
            OriginName::Symbol => Origin::Symbol,
            OriginName::Code => Origin::Code,
            OriginName::Profile => Origin::Profile,
        }
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Cli {
    /// Whether variables of the program are wanted.
    pub fn locals(&self) -> bool {
        matches!(&self.command, Some(Command::Stacks(args)) if args.locals)
    }

    /// The history asked for, if one is.
    pub fn history(&self) -> Option<&HistoryArgs> {
        match &self.command {
            Some(Command::History(args)) if self.target.is_none() && !args.target.is_empty() => Some(args),
            _ => None,
        }
    }

    /// View and target asked for; `None` if there is no target or more than one, or if it is no view of an inspection.
    pub fn request(&self) -> Option<(View, &str)> {
        if self.command.is_some() && self.target.is_some() {
            return None;
        }
        let (view, arg) = match &self.command {
            None => return self.target.as_deref().filter(|t| !t.is_empty()).map(|target| (View::Summary, target)),
            Some(Command::Threads(arg)) => (View::Threads, arg),
            Some(Command::Teams(arg)) => (View::Teams, arg),
            Some(Command::Tasks(args)) => {
                let plain = if args.tree { Form::Tree } else { Form::Table };
                (View::Tasks(args.form.chosen(plain)), &args.target)
            }
            Some(Command::Waits(args)) => (View::Waits(args.form.chosen(Form::Table)), &args.target),
            Some(Command::Loops(arg)) => (View::Loops, arg),
            Some(Command::Icvs(arg)) => (View::Icvs, arg),
            Some(Command::Doctor(arg)) => (View::Doctor, arg),
            Some(Command::History(_)) => return None,
            Some(Command::Stacks(args)) => {
                let form = &args.form;
                let chosen = [
                    (form.all || args.locals, StackView::All),
                    (form.tree, StackView::Tree),
                    (form.dot, StackView::Graph(Graph::Dot)),
                    (form.folded, StackView::Graph(Graph::Folded)),
                    (form.svg, StackView::Graph(Graph::Svg)),
                ];
                let view = chosen.iter().find(|(is_set, _)| *is_set).map_or(StackView::Rows, |(_, view)| *view);
                (View::Stacks(view), &args.target)
            }
        };
        Some((view, arg.target.as_str())).filter(|(_, target)| !target.is_empty())
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (_, Some(number)) => (number, 1.0),
        _ => (text, 1.0),
    };
    let seconds: Option<f64> = number.parse().ok().map(|n: f64| n * unit);
    let seconds = seconds.filter(|s| (0.0..=86_400.0).contains(s));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time such as 1s, 0.5 or 200ms is wanted, at most a day".to_owned())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| "a number of milliseconds is wanted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "-1s", "nan", "1e9s", "1m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn view_and_target() {
        let parse = |args: &[&str]| Cli::try_parse_from(args);
        let cli = parse(&["ompd-inspect", "--json", "4711"]).expect("summary of a pid");
        assert_eq!(cli.request(), Some((View::Summary, "4711")));
        assert!(cli.options.json && !cli.options.debuginfod);
        let cli = parse(&["ompd-inspect", "threads", "core", "-v"]).expect("threads of a core");
        assert_eq!(cli.request(), Some((View::Threads, "core")));
        assert!(cli.options.verbose);
        let cli = parse(&["ompd-inspect", "-v", "--json", "icvs", "1"]).expect("options first");
        assert_eq!(cli.request(), Some((View::Icvs, "1")));
        assert!(cli.options.json && cli.options.verbose);
        let cli = parse(&["ompd-inspect", "stacks", "--locals", "1"]).expect("stacks with variables");
        assert_eq!(cli.request(), Some((View::Stacks(StackView::All), "1")));
        assert!(cli.locals());
        assert!(!parse(&["ompd-inspect", "stacks", "1"]).expect("stacks without").locals());
        assert!(parse(&["ompd-inspect", "stacks", "--locals", "--tree", "1"]).is_err());
        let cli = parse(&["ompd-inspect", "history", "--last", "5", "core"]).expect("a history");
        assert_eq!(cli.request(), None);
        assert_eq!(cli.history().map(|args| (args.most(true), &*args.target)), Some((5, "core")));
        assert!(parse(&["ompd-inspect", "history", "--last", "0", "core"]).is_err());
        let both = parse(&["ompd-inspect", "1", "threads", "core"]).expect("clap lets it pass");
        assert_eq!(both.request(), None);
        assert!(parse(&["ompd-inspect"]).is_err());
        assert!(parse(&["ompd-inspect", "teams"]).is_err());
    }
}
