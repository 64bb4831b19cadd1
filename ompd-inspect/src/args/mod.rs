//! The command line: the commands, and the view and targets that it asks for.

mod commands;
mod help;
mod options;
mod unused;
mod values;

use clap::{Parser, Subcommand};
use ompd_report::text::{Form, View};

pub use commands::{
    CompletionsArgs, DoctorArgs, HistoryArgs, JobArgs, ManualArgs, MergeArgs, MergeForm, NodeArgs, RunArgs, StacksArgs,
    TargetArg, TasksArgs, TopArgs, WaitsArgs,
};
pub use options::Options;
pub use unused::{command_line, command_line_of, refuse};
pub use values::{Color, FailOn};

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
    after_help = help::AFTER,
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

/// The commands.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Show each thread: team, number, state, what it waits for.
    Threads(TargetArg),
    /// Show teams as a tree, with members and barriers.
    Teams(TargetArg),
    /// Show tasks: state, generating task, dependences.
    ///
    /// A task executes, is suspended, is ready, waits for the tasks it depends on, is detached, or is on a device.
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
    Doctor(DoctorArgs),
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
            Some(Command::Doctor(args)) => (View::Doctor, &args.target),
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
            Some(Command::Stacks(args)) => (View::Stacks(args.view()), &args.target),
        };
        Some((view, &arg.targets))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ompd_report::text::StackView;
    use ompd_runtime::waits_for::Certainty;

    use super::*;

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
