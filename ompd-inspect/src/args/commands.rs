//! Arguments and options of single commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ompd_report::text::{Form, Graph, StackView};

use super::EXPERT;
use super::help::{AFTER_COMPLETIONS, AFTER_JOB, AFTER_MERGE, AFTER_RUN, AFTER_TOP};
use super::values::{duration, fanout, lead};
use crate::job::{By, JobName};

/// Arguments of `completions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_COMPLETIONS)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Arguments of `manual`.
#[derive(Debug, Clone, Args)]
pub struct ManualArgs {
    /// Directory that gets `man1` and `completions`.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Arguments of `job`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_JOB)]
pub struct JobArgs {
    /// Job of Slurm, or a step of one: 4711, 4711.0.
    #[arg(value_name = "JOB")]
    pub job: Option<JobName>,
    /// Ranks of mpirun or mpiexec with this id, on this host.
    #[arg(long, value_name = "PID", conflicts_with = "job", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Hosts such as n[1-64],login (with --name or --user).
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["job", "pid"])]
    pub hosts: Option<String>,
    /// Core files; put a pattern in quotes.
    #[arg(long, value_name = "CORE", num_args = 1.., conflicts_with_all = ["job", "pid", "hosts"])]
    pub cores: Vec<PathBuf>,
    #[command(flatten)]
    pub form: MergeForm,
    /// Show a live view, refreshed every 2 seconds.
    #[arg(long, conflicts_with_all = ["cores", "tree", "dot", "svg", "html"])]
    pub top: bool,
    /// End the live view after N reports.
    #[arg(long, value_name = "N", requires = "top", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Program that starts ompd-inspect on hosts without Slurm: ssh, or clush of ClusterShell.
    #[arg(long, hide_short_help = true, help_heading = EXPERT, value_enum, value_name = "PROGRAM", hide_possible_values = true)]
    pub agent: Option<By>,
    /// Path of ompd-inspect on the other hosts, if it is another than here.
    #[arg(long, value_name = "PATH")]
    pub inspector: Option<String>,
    /// Longest time to wait for the answers of hosts.
    ///
    /// The report names the hosts that did not answer.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Time until all hosts look.
    ///
    /// The job's launcher needs it to start ompd-inspect everywhere.
    #[arg(long, hide_short_help = true, help_heading = EXPERT, value_name = "TIME", default_value = "1s", value_parser = lead)]
    pub lead: Duration,
    /// Number of hosts that ssh or clush asks at once.
    #[arg(long, hide_short_help = true, help_heading = EXPERT, value_name = "N", default_value = "64", value_parser = fanout)]
    pub fanout: usize,
}

/// Arguments of `job-node`.
#[derive(Debug, Clone, Args)]
pub struct NodeArgs {
    /// Ranks of this job of Slurm.
    #[arg(long)]
    pub slurm: Option<JobName>,
    /// Ranks below the daemon with this argument.
    #[arg(long)]
    pub daemon: Option<String>,
    /// Ranks below this process.
    #[arg(long)]
    pub below: Option<i32>,
    /// What this host is called.
    #[arg(long)]
    pub node: Option<String>,
    /// When to look, in milliseconds since 1970.
    #[arg(long)]
    pub at: Option<u64>,
    /// How often to look, in milliseconds; once unless given.
    #[arg(long)]
    pub every: Option<u64>,
}

/// Arguments of `top`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "ompd-inspect top [OPTIONS] <PID>...", after_help = AFTER_TOP)]
pub struct TopArgs {
    /// Process ids.
    #[arg(value_name = "PID")]
    pub targets: Vec<String>,
    /// End after N refreshes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// Arguments of `merge`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_MERGE)]
pub struct MergeArgs {
    /// Files written by ompd-inspect --json or merge --json (- for standard input).
    ///
    /// A file may hold several reports.
    #[arg(value_name = "FILE", required = true)]
    pub reports: Vec<String>,
    /// How to show them.
    #[command(flatten)]
    pub form: MergeForm,
}

/// The forms of `merge`.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct MergeForm {
    /// Show the stacks of all ranks as one tree.
    #[arg(long)]
    pub tree: bool,
    /// Print the tree for Graphviz.
    #[arg(long)]
    pub dot: bool,
    /// Print the tree as SVG, drawn by Graphviz (dot).
    #[arg(long)]
    pub svg: bool,
    /// Print a page for a browser: tree, ranks and a search.
    #[arg(long)]
    pub html: bool,
}

/// Arguments of `run`.
#[derive(Debug, Clone, Args)]
#[command(override_usage = "ompd-inspect run [OPTIONS] [--] <PROGRAM> [ARGUMENTS]", after_help = AFTER_RUN)]
pub struct RunArgs {
    /// Longest time the program may take: 60s, 5m or 2h; no limit unless given.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Write the report as JSON to FILE when the program hangs or its time is over.
    ///
    /// Its schema is docs/report-list.schema.json.
    #[arg(long, value_name = "FILE")]
    pub on_hang: Option<PathBuf>,
    /// Inspect a process that used no processor time for this long, or some for ten times as long.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub idle: Duration,
    /// Time between SIGTERM and SIGKILL.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub kill_after: Duration,
    /// Record what each thread does: owners of locks, and the lines that took them.
    ///
    /// The program gets the companion by OMP_TOOL_LIBRARIES, and by LD_PRELOAD the library that gives libgomp OMPT.
    #[arg(long)]
    pub record: bool,
    /// The program and its arguments.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}

/// Arguments of `stacks`.
#[derive(Debug, Clone, Args)]
pub struct StacksArgs {
    #[command(flatten)]
    pub target: TargetArg,
    /// How to show them.
    #[command(flatten)]
    pub form: StackForm,
    /// Show each frame's variables; their values may be confidential.
    ///
    /// Debug information describes them. Each thread has its own row. No other option prints the program's data.
    #[arg(long, conflicts_with_all = ["tree", "dot", "folded", "svg", "redact"])]
    pub locals: bool,
}

impl StacksArgs {
    /// The form that is asked for.
    pub(super) fn view(&self) -> StackView {
        let form = &self.form;
        let chosen = [
            (form.all || self.locals, StackView::All),
            (form.tree, StackView::Tree),
            (form.dot, StackView::Graph(Graph::Dot)),
            (form.folded, StackView::Graph(Graph::Folded)),
            (form.svg, StackView::Graph(Graph::Svg)),
        ];
        chosen.iter().find(|(is_set, _)| *is_set).map_or(StackView::Rows, |(_, view)| *view)
    }
}

/// Arguments of `tasks`.
#[derive(Debug, Clone, Args)]
pub struct TasksArgs {
    #[command(flatten)]
    pub target: TargetArg,
    /// Show each task below its generating task.
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
    /// Process id, core file, or file of the companion (OMPT_COMPANION_FILE).
    #[arg(value_name = "PID|CORE")]
    pub target: String,
    /// Show all threads together, in the order of time.
    #[arg(long)]
    pub by_time: bool,
    /// Show the last N events of each thread [default: 20; with --trace or --json: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub last: Option<u64>,
    /// Print a trace for Perfetto or Chrome (about:tracing).
    #[arg(long, conflicts_with_all = ["by_time", "json"])]
    pub trace: bool,
}

impl HistoryArgs {
    /// How many events of each thread are wanted.
    pub fn most(&self, json: bool) -> u64 {
        self.last.unwrap_or(if self.trace || json { u64::MAX } else { ompd_report::text::history::FEW })
    }
}

/// Arguments of `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub target: TargetArg,
    /// Show which bytes a value rests on: answer.word, threads.4711.wait.
    ///
    /// FIELD is the name of the value in JSON, or enough of its parts. Some change of each of the bytes changes the value or makes it
    /// unknown. The process is stopped once, and copies of what was read are looked at many times.
    #[arg(long, value_name = "FIELD")]
    pub why: Option<String>,
}

/// As a graph: what waits for what, or which task depends on which.
#[derive(Debug, Clone, Args)]
#[group(multiple = false)]
pub struct GraphForm {
    /// Print the graph for Graphviz.
    #[arg(long)]
    pub dot: bool,
    /// Print the graph as SVG, drawn by Graphviz (dot).
    #[arg(long)]
    pub svg: bool,
}

impl GraphForm {
    /// The form that is asked for.
    pub(super) fn chosen(&self, otherwise: Form) -> Form {
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
    /// Show one row for each thread.
    #[arg(long)]
    pub all: bool,
    /// Show all stacks as one tree, outermost frames first.
    #[arg(long)]
    pub tree: bool,
    /// Print the tree for Graphviz.
    #[arg(long)]
    pub dot: bool,
    /// Print folded stacks, for flame graph tools.
    #[arg(long)]
    pub folded: bool,
    /// Print a flame graph as SVG, for a browser.
    #[arg(long)]
    pub svg: bool,
}

/// The positional argument.
#[derive(Debug, Clone, Args)]
pub struct TargetArg {
    /// Process ids or core files (- for standard input).
    ///
    /// A core may be compressed. Write ./123 for a core file named 123.
    #[arg(value_name = "PID|CORE")]
    pub targets: Vec<String>,
}
