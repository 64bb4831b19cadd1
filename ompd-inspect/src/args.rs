//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ompd_process::Pause;
use ompd_report::text::{Form, Graph, StackView, View};
use ompd_runtime::Origin;
use ompd_runtime::waits_for::Certainty;

use crate::job::{By, JobName};
use crate::output::{Failure, Output};
use crate::redact::Redactor;

const AFTER: &str = "\
Examples:
  ompd-inspect 4711                    why does process 4711 hang?
  ompd-inspect core.4711               the same, from a core file
  ompd-inspect --samples 2 4711        is it stuck, or just slow?
  ompd-inspect stacks 4711             where in the source is each thread?
  ompd-inspect waits 4711              which thread waits for what?
  ompd-inspect --name solver           every process called solver
  ompd-inspect job 4711                all ranks of a Slurm job
  ompd-inspect -o report.json --json 4711         everything, for programs
  ompd-inspect run --timeout 60s -- ./app in.dat  report if it hangs

Exit status: 0 all was read; 1 something was not, or there is no OpenMP; \
2 nothing was inspected; 3 a verdict named by --fail-on.";

const AFTER_RUN: &str = "\
The program keeps the standard input, output and error of ompd-inspect. Reports go to standard error. \
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the program.

A process that uses no processor time for --idle is inspected. It hangs if the verdict is DEADLOCK, or \
SUSPECT with --fail-on suspect. When it hangs or its time is over, it and the processes it started get \
SIGTERM, then SIGKILL.

Exit status: that of the program, 128+N if signal N ended it; 3 it hung; 124 its time was over; \
125 ompd-inspect failed; 126 the program cannot be executed; 127 there is no such program.";

const AFTER_JOB: &str = "\
ompd-inspect must be installed on every host, at the same path or at --inspector. The job's own launcher \
starts it there (srun --overlap, ssh or clush). It inspects the ranks of its host. All hosts look at the \
same time of their clocks.

Examples:
  ompd-inspect job 4711               every rank of job 4711 of Slurm
  ompd-inspect job 4711.0             every rank of its first step
  ompd-inspect job --pid 2266         every rank that mpirun 2266 started
  ompd-inspect job --hosts n[1-64] --name app   processes called app, by ssh
  ompd-inspect job --cores 'core.*'   core files of ranks
  ompd-inspect job --samples 2 4711   which ranks move?
  ompd-inspect job --top 4711         a live view, every 2 seconds
  ompd-inspect job --json -o job.json 4711      for programs, and for merge

Exit status: 0 every rank was inspected; 1 some were not, or hosts did not answer; 2 no rank was inspected; \
3 a verdict named by --fail-on.";

const AFTER_TOP: &str = "\
Keys on a terminal: q quit, p pause, s sort, i hide idle threads, + and - interval, Enter stack, ? help. \
Without a terminal each refresh is a block of lines. The default interval is 2 seconds. The view ends when \
the processes end, after --count refreshes, or when you end it.

Each refresh stops each process once, for at most half of the interval or --max-pause. A DEADLOCK is shown \
when two looks confirm it, a SUSPECT when looks confirm it for 0.5 seconds. With --json each refresh is \
one line (schema: docs/top.schema.json).

Examples:
  ompd-inspect top 4711                      what each thread does, every 2 s
  ompd-inspect top --interval 500ms 4711     more often (at least 200ms)
  ompd-inspect top --name solver             every process called solver
  ompd-inspect top --count 3 4711 > log      three refreshes as plain lines
  ompd-inspect top --json --count 1 4711     one refresh as a line of JSON";

const AFTER_MERGE: &str = "\
Ranks are known by what their launcher has put into their environment (Open MPI, MPICH, PMIx, Slurm and \
others). The result of --json can be merged again. The order does not matter.

Examples:
  ompd-inspect merge rank*.json               the ranks of a job in one report
  ompd-inspect merge --tree rank*.json        their stacks as one tree
  ompd-inspect merge --html -o job.html rank*.json   one page for a browser

Exit status: 0 all reports were read; 1 some were not, or a process was not inspected; 2 no report was read.";

const AFTER_COMPLETIONS: &str = "\
Examples:
  source <(ompd-inspect completions bash)      in ~/.bashrc
  ompd-inspect completions zsh > ~/.zfunc/_ompd-inspect
  ompd-inspect completions fish > ~/.config/fish/completions/ompd-inspect.fish";

/// Options that few need: `--help` leaves them out, `--help-all` and `help` show them.
const EXPERT: &str = "Expert options";

/// The version, and the commit it was built from if that is known.
pub const VERSION: &str = env!("OMPD_INSPECT_VERSION");

/// Reports why an OpenMP program hangs, and what its threads, teams and tasks do.
///
/// It reads a process or a core file, and changes nothing. Threads that run are stopped for milliseconds.
#[derive(Debug, Parser)]
#[command(
    version = VERSION,
    max_term_width = 100,
    after_help = AFTER,
    override_usage = "ompd-inspect [OPTIONS] <PID|CORE>...\n       ompd-inspect <COMMAND> [OPTIONS] <PID|CORE>...",
    subcommand_precedence_over_arg = true,
    disable_help_flag = true
)]
pub struct Cli {
    /// What to show; without a command, the summary.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Process ids or core files (- for standard input).
    ///
    /// A core may be compressed. Write ./123 for a core file named 123.
    #[arg(value_name = "PID|CORE")]
    pub targets: Vec<String>,
    /// Print one page for a browser, with all views (use -o FILE).
    ///
    /// The page needs no network and no other file. Its picture of waits is drawn by Graphviz (dot), if that is installed.
    #[arg(long, conflicts_with = "json")]
    pub html: bool,
    /// Options of every command.
    #[command(flatten)]
    pub options: Options,
}

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

/// The command line. The help of a command leaves out the options that it does not use.
pub fn command_line() -> clap::Command {
    use clap::CommandFactory as _;
    let all = Cli::command();
    let hidden = |id: &&str| {
        let option = all.get_arguments().find(|option| option.get_id() == *id);
        option.map(|option| option.clone().hide(true))
    };
    UNUSED.iter().fold(all.clone(), |line, (name, options)| {
        line.mut_subcommand(name, |command| command.args(options.iter().filter_map(hidden)))
    })
}

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Show each thread: team, number, state, what it waits for.
    Threads(TargetArg),
    /// Show teams as a tree, with members and barriers.
    Teams(TargetArg),
    /// Show tasks: state, generating task, dependences.
    ///
    /// A task executes, is suspended, is ready, waits for the tasks it depends on, or is detached.
    Tasks(TasksArgs),
    /// Show what waits for what, and owner and waiters of each lock.
    Waits(WaitsArgs),
    /// Show the progress of worksharing loops and sections.
    Loops(TargetArg),
    /// Show the OpenMP settings (ICVs) in force for each thread.
    Icvs(TargetArg),
    /// Show stacks as the source reads, equal stacks in one row.
    ///
    /// Frames of the runtime are folded. The stack of a worker continues in the thread that opened its region.
    Stacks(StacksArgs),
    /// Show what each thread did last, if the companion recorded it.
    ///
    /// The companion is libompt_companion.so. It records if OMP_TOOL_LIBRARIES names it when the program starts. The process
    /// is not stopped.
    History(HistoryArgs),
    /// Show how each runtime was found and read, and what is missing.
    Doctor(TargetArg),
    /// Show a live view of threads, loops, tasks and barriers.
    Top(TopArgs),
    /// Run a program; report when it hangs or its time is over.
    ///
    /// A parent may inspect its child also where kernel.yama.ptrace_scope is 1.
    Run(RunArgs),
    /// Show all ranks of a Slurm or MPI job, the ranks that differ first.
    Job(JobArgs),
    /// Merge JSON reports of ranks into one report.
    Merge(MergeArgs),
    /// Print completions for a shell.
    Completions(CompletionsArgs),
    /// Write manual pages and completions into a directory, for packages.
    #[command(hide = true)]
    Manual(ManualArgs),
    /// What `job` starts on each host.
    #[command(hide = true)]
    JobNode(NodeArgs),
}

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
    #[arg(long, hide_short_help = true, help_heading = EXPERT, value_name = "TIME", default_value = "1s", value_parser = duration)]
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
    /// Inspect a process that used no processor time for this long.
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

/// A verdict that makes the command fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A proven hang.
    Deadlock,
    /// A hang that something from outside may end.
    Suspect,
    /// Threads that wait for one that may still let them continue.
    Waiting,
}

impl FailOn {
    /// Whether a verdict is as certain as this, or more.
    pub fn includes(self, certainty: Certainty) -> bool {
        certainty
            <= match self {
                FailOn::Deadlock => Certainty::Deadlock,
                FailOn::Suspect => Certainty::Suspect,
                FailOn::Waiting => Certainty::Waiting,
            }
    }
}

/// When to stop a process.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum PauseWhen {
    /// If it does not stand still by itself.
    Auto,
    /// For each look.
    Brief,
    /// Never.
    Never,
}

impl From<PauseWhen> for Pause {
    fn from(when: PauseWhen) -> Pause {
        match when {
            PauseWhen::Auto => Pause::Auto,
            PauseWhen::Brief => Pause::Brief,
            PauseWhen::Never => Pause::Never,
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

impl Command {
    /// The name by which it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Threads(_) => "threads",
            Command::Teams(_) => "teams",
            Command::Tasks(_) => "tasks",
            Command::Waits(_) => "waits",
            Command::Loops(_) => "loops",
            Command::Icvs(_) => "icvs",
            Command::Stacks(_) => "stacks",
            Command::History(_) => "history",
            Command::Doctor(_) => "doctor",
            Command::Top(_) => "top",
            Command::Run(_) => "run",
            Command::Job(_) => "job",
            Command::Merge(_) => "merge",
            Command::Completions(_) => "completions",
            Command::Manual(_) => "manual",
            Command::JobNode(_) => "job-node",
        }
    }
}

impl Cli {
    /// Whether variables of the program are wanted.
    pub fn locals(&self) -> bool {
        matches!(&self.command, Some(Command::Stacks(args)) if args.locals)
    }

    /// The view that is asked for, and its targets; `None` for a command that shows no view of an inspection.
    pub fn request(&self) -> Option<(View, &[String])> {
        let (view, arg) = match &self.command {
            None => return Some((View::Summary, &self.targets)),
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
            Some(
                Command::History(_)
                | Command::Run(_)
                | Command::Merge(_)
                | Command::Job(_)
                | Command::JobNode(_)
                | Command::Completions(_)
                | Command::Manual(_)
                | Command::Top(_),
            ) => return None,
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
        Some((view, &arg.targets))
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let with_unit = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (number, unit) = with_unit.unwrap_or((text, 1.0));
    let seconds: Option<f64> = number.parse().ok().map(|n: f64| n * unit);
    let seconds = seconds.filter(|s| (0.0..=604_800.0).contains(s));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time such as 1s, 0.5, 200ms, 5m or 2h is wanted, at most a week".to_owned())
}

fn fanout(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| "a number from 1 to 1024 is wanted".to_owned())
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| "a number of milliseconds is wanted".to_owned())
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
    fn times() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "-1s", "nan", "1e9s", "1d", "m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn view_and_targets() {
        let parse = |args: &[&str]| Cli::try_parse_from(args);
        let request = |cli: &Cli| cli.request().map(|(view, targets)| (view, targets.to_vec()));
        let of = |view, targets: &[&str]| Some((view, targets.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>()));
        let cli = parse(&["ompd-inspect", "--json", "4711"]).expect("summary of a pid");
        assert_eq!(request(&cli), of(View::Summary, &["4711"]));
        assert!(cli.options.json && !cli.options.debuginfod);
        let cli = parse(&["ompd-inspect", "threads", "core", "-v"]).expect("threads of a core");
        assert_eq!(request(&cli), of(View::Threads, &["core"]));
        assert!(cli.options.verbose);
        let cli = parse(&["ompd-inspect", "-v", "--json", "icvs", "1"]).expect("options first");
        assert_eq!(request(&cli), of(View::Icvs, &["1"]));
        assert!(cli.options.json && cli.options.verbose);
        let cli = parse(&["ompd-inspect", "stacks", "--locals", "1"]).expect("stacks with variables");
        assert_eq!(request(&cli), of(View::Stacks(StackView::All), &["1"]));
        assert!(cli.locals());
        assert!(!parse(&["ompd-inspect", "stacks", "1"]).expect("stacks without").locals());
        assert!(parse(&["ompd-inspect", "stacks", "--locals", "--tree", "1"]).is_err());
        let cli = parse(&["ompd-inspect", "history", "--last", "5", "core"]).expect("a history");
        assert_eq!(cli.request(), None);
        let Some(Command::History(args)) = &cli.command else { panic!("{cli:?}") };
        assert_eq!((args.most(true), &*args.target), (5, "core"));
        assert!(parse(&["ompd-inspect", "history", "--last", "0", "core"]).is_err());
    }

    #[test]
    fn a_live_view() {
        let cli = Cli::try_parse_from(["ompd-inspect", "top", "--interval", "500ms", "--count", "3", "1", "2"]);
        let cli = cli.expect("a live view");
        let Some(Command::Top(args)) = &cli.command else { panic!("{cli:?}") };
        assert_eq!((args.count, args.targets.join(" ")), (Some(3), "1 2".to_owned()));
        assert_eq!((cli.options.interval, cli.request()), (Some(Duration::from_millis(500)), None));
        assert!(Cli::try_parse_from(["ompd-inspect", "top", "--count", "0", "1"]).is_err());
    }

    #[test]
    fn several_targets() {
        let parse = |args: &[&str]| Cli::try_parse_from(args).expect("a command line");
        let targets = |cli: &Cli| cli.request().map(|(_, targets)| targets.join(" "));
        assert_eq!(targets(&parse(&["ompd-inspect", "1", "2", "core"])).as_deref(), Some("1 2 core"));
        assert_eq!(targets(&parse(&["ompd-inspect", "waits", "1", "-"])).as_deref(), Some("1 -"));
        let cli = parse(&["ompd-inspect", "threads", "--name", "solver", "--fail-on", "suspect"]);
        assert_eq!((targets(&cli).as_deref(), cli.options.name.as_deref()), (Some(""), Some("solver")));
        let fails = |certainty| cli.options.fail_on.is_some_and(|on| on.includes(certainty));
        assert!(fails(Certainty::Deadlock) && fails(Certainty::Suspect));
        assert!(!FailOn::Deadlock.includes(Certainty::Suspect) && !FailOn::Suspect.includes(Certainty::Waiting));
        assert!(FailOn::Waiting.includes(Certainty::Waiting) && FailOn::Waiting.includes(Certainty::Deadlock));
    }

    #[test]
    fn a_program_and_its_arguments() {
        let parse = |args: &[&str]| Cli::try_parse_from([&["ompd-inspect", "run"], args].concat());
        for args in
            [&["--timeout", "2m", "prog", "-v", "--json"][..], &["--timeout", "2m", "--", "prog", "-v", "--json"]]
        {
            let cli = parse(args).expect("a program");
            let Some(Command::Run(run)) = &cli.command else { panic!("{cli:?}") };
            assert_eq!(
                (run.timeout, run.program.join(" ".as_ref())),
                (Some(Duration::from_secs(120)), "prog -v --json".into())
            );
            assert!(!cli.options.verbose && !cli.options.json);
        }
        assert!(parse(&["--timeout", "2m"]).is_err());
    }
}
