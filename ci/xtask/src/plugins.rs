//! `ci/plugin-table`: what the plugin for gdb can do, and what LLVM's can, on the same programs in one run.
//!
//! Each feature is asked for in a gdb of its own, so that one that fails spoils no other. A cell is `ok` only if what was printed
//! has the content that the program makes true. LLVM's plugin is used as it is, in the way that serves it best: see `peer.rs`.

mod ours;
pub mod peer;

use std::fs;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use debugger_plugin::{Gdb, Release, TO_PIPE, parts, releases};
use test_programs::{Executable, Launch, Opt, Running, Truth};

use crate::bench::{built_beside, replace};

/// The table stands in the document between these lines.
const MARKS: [&str; 2] = ["<!-- ci/plugin-table: begin -->", "<!-- ci/plugin-table: end -->"];

/// After so many seconds a gdb is ended. The slowest that answers takes two.
const PATIENCE: u32 = 20;

/// Arguments of `plugin-table`.
#[derive(Args)]
pub struct Arguments {
    /// Write the table to docs/gdb-plugin.md too.
    #[arg(long)]
    write: bool,
}

/// What a plugin may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    Init,
    Threads,
    Parallel,
    Icvs,
    Tasks,
    Waits,
    Backtrace,
    Taskframes,
    Step,
    StopPoints,
    Json,
    Verdict,
}

const FEATURES: [(Feature, &str); 12] = [
    (Feature::Init, "init"),
    (Feature::Threads, "threads"),
    (Feature::Parallel, "parallel, teams"),
    (Feature::Icvs, "icvs"),
    (Feature::Tasks, "tasks"),
    (Feature::Waits, "waits"),
    (Feature::Backtrace, "bt"),
    (Feature::Taskframes, "taskframes"),
    (Feature::Step, "step"),
    (Feature::StopPoints, "stops"),
    (Feature::Json, "JSON"),
    (Feature::Verdict, "verdict"),
];

/// How gdb comes to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    Launch,
    Attach,
    Core,
    /// After attach, and the program was started without `OMP_DEBUG`.
    Unprepared,
}

const SITUATIONS: [(Situation, &str); 4] = [
    (Situation::Launch, "launch"),
    (Situation::Attach, "attach"),
    (Situation::Core, "core"),
    (Situation::Unprepared, "attach, no `OMP_DEBUG`"),
];

/// What a plugin is asked, and what shows that it has answered.
pub struct Question {
    /// The program: a state to look at, or one that is let run.
    program: &'static str,
    /// Commands; what the last of them prints counts.
    commands: Vec<String>,
    check: fn(&Answer) -> Result<(), String>,
}

/// What was printed, and what is true.
pub struct Answer<'a> {
    /// Before the first command.
    head: &'a str,
    /// By each command.
    printed: &'a [String],
    truth: Option<&'a Truth>,
    release: &'a Release,
}

impl Answer<'_> {
    /// By the last command.
    fn last(&self) -> &str {
        self.printed.last().map_or("", String::as_str)
    }

    /// That the last command has printed all of these, however it wraps lines.
    fn has(&self, wanted: &[&str]) -> Result<(), String> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(self.last());
        match wanted.iter().find(|part| !text.contains(&words(part))) {
            None => Ok(()),
            Some(_) => Err(complaint(self.last())),
        }
    }
}

/// A plugin.
trait Plugin {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Commands that load it, before there is a program, and those that follow when the process is there.
    fn load(&self, situation: Situation) -> (Vec<String>, Vec<String>);
    /// Directories in which gdb's linker is to look for libraries.
    fn libraries(&self, release: &Release) -> Vec<PathBuf>;
    /// Commands that let a program begin, the last of which lets it run until gdb gets it back.
    fn begin(&self) -> Vec<String>;
    /// How a feature is asked for; `None` if it has no such command.
    fn question(&self, feature: Feature) -> Option<Question>;
}

/// Makes the table, and prints it.
///
/// # Errors
/// When something needed is missing, or after everything is printed and written, when a cell of our plugin is not `ok`.
pub fn run(arguments: &Arguments) -> Result<()> {
    let peer = peer::Peer::find().map_err(|skip| anyhow::anyhow!("{skip}"))?;
    let ours = ours::Ours { library: built_beside("libompd.so")? };
    let releases = releases()?;
    let mut text = String::new();
    let mut failing = Vec::new();
    let mut notes = Notes::default();
    for plugin in [&ours as &dyn Plugin, &peer] {
        text += &format!("{}\n\n| feature | situation |", plugin.name());
        for release in &releases {
            text += &format!(" {} |", release.name);
        }
        text += &format!("\n|---|---|{}\n", "---|".repeat(releases.len()));
        for (feature, name) in FEATURES {
            let Some(question) = plugin.question(feature) else {
                text += &format!("| {name} | all |{}\n", " no such command |".repeat(releases.len()));
                continue;
            };
            // Rows with the same cells are one.
            let mut rows: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
            for (situation, shown) in SITUATIONS {
                eprintln!("{} {name}, {shown} ...", plugin.name());
                let cells: Vec<String> = releases
                    .iter()
                    .map(|release| {
                        let cell = cell(plugin, &question, situation, release);
                        if cell != "ok"
                            && cell != NOTHING_RUNS
                            && std::ptr::eq(plugin, &raw const ours as *const dyn Plugin)
                        {
                            failing.push(format!("{name}, {shown}, {}: {cell}", release.name));
                        }
                        cell
                    })
                    .collect();
                match rows.iter_mut().find(|(_, before)| *before == cells) {
                    Some((situations, _)) => situations.push(shown),
                    None => rows.push((vec![shown], cells)),
                }
            }
            for (situations, cells) in rows {
                let cells: Vec<String> = cells.into_iter().map(|cell| notes.noted(cell)).collect();
                let situations =
                    if situations.len() == SITUATIONS.len() { "all".into() } else { situations.join("; ") };
                text += &format!("| {name} | {situations} | {} |\n", cells.join(" | "));
            }
        }
        text += "\n";
    }
    for (number, note) in notes.0.iter().enumerate() {
        text += &format!("- {}: {note}\n", number + 1);
    }
    print!("{text}");
    if arguments.write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gdb-plugin.md");
        let old = fs::read_to_string(&file).context("reading docs/gdb-plugin.md")?;
        fs::write(&file, replace(&old, &text, MARKS)?).context("writing docs/gdb-plugin.md")?;
    }
    ensure!(failing.is_empty(), "our plugin fails:\n{}", failing.join("\n"));
    Ok(())
}

/// What is wrong in cells, each once.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn noted(&mut self, cell: String) -> String {
        if cell == "ok" || cell == NOTHING_RUNS {
            return cell;
        }
        let number = self.0.iter().position(|note| *note == cell).unwrap_or_else(|| {
            self.0.push(cell);
            self.0.len() - 1
        });
        format!("fails [{}]", number + 1)
    }
}

/// In a core.
const NOTHING_RUNS: &str = "nothing runs";

/// `ok`, or what is wrong.
fn cell(plugin: &dyn Plugin, question: &Question, situation: Situation, release: &Release) -> String {
    if situation == Situation::Core && question.program == RUNS {
        return NOTHING_RUNS.to_owned();
    }
    match answer(plugin, question, situation, release) {
        Ok(Ok(())) => "ok".to_owned(),
        Ok(Err(wrong)) => wrong.replace('|', "\\|"),
        Err(why) => format!("{:#}", why.root_cause()).lines().next().unwrap_or_default().replace('|', "\\|"),
    }
}

/// The program that is let run.
const RUNS: &str = "begin_end";

fn answer(
    plugin: &dyn Plugin,
    question: &Question,
    situation: Situation,
    release: &Release,
) -> Result<Result<(), String>> {
    let program = match release.build(question.program, Opt::O0, &[])? {
        Ok(program) => program,
        Err(skip) => return Ok(Err(skip.to_string())),
    };
    let mut launch = release.launch(&program);
    if situation != Situation::Unprepared {
        launch = launch.variable("OMP_DEBUG", "enabled");
    }
    let (before, then) = plugin.load(situation);
    let mut commands = then;
    commands.extend(question.commands.iter().cloned());
    let (text, truth) = if question.program == RUNS {
        (running(plugin, &before, &commands, &launch, situation, release)?, None)
    } else {
        let (text, truth) = standing(plugin, &before, &commands, &launch, situation, release)?;
        (text, Some(truth))
    };
    let printed = parts(&text);
    if text.contains("A problem internal to GDB has been detected") {
        return Ok(Err("gdb itself fails: internal error".to_owned()));
    }
    if printed.len() <= commands.len() {
        let end = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Ok(Err(format!("gdb did not come back: {}", short(end))));
    }
    let printed = &printed[..commands.len()];
    let head = text.split("\n@@@ command\n").next().unwrap_or_default();
    // What goes wrong behind `ompd init`, while the program runs on, is no fault of that command.
    let before = if head.contains(peer::LOADED) { "" } else { head };
    let mut all = std::iter::once(before).chain(printed.iter().map(String::as_str));
    if let Some(wrong) = all.find(|text| text.contains("Traceback") || text.contains("Python Exception")) {
        let from = wrong.find("Traceback").or_else(|| wrong.find("Python Exception")).unwrap_or(0);
        return Ok(Err(complaint(&wrong[from..])));
    }
    Ok((question.check)(&Answer { head, printed, truth: truth.as_ref(), release }))
}

/// gdb with a plugin, which finds the libraries it needs.
fn gdb(plugin: &dyn Plugin, before: &[String], release: &Release, program: Option<&Launch>) -> Result<Gdb> {
    let mut gdb = Gdb::limited(PATIENCE);
    let mut search = Vec::new();
    if let Some(launch) = program {
        for (name, value) in launch.environment()? {
            if name == "LD_LIBRARY_PATH" {
                search.extend(value.iter().map(PathBuf::from));
            } else {
                gdb = gdb.variable(name, value);
            }
        }
    }
    // Behind that of the program's runtime: another one may lie there as well.
    search.extend(plugin.libraries(release));
    if !search.is_empty() {
        gdb = gdb.variable("LD_LIBRARY_PATH", Some(std::env::join_paths(search)?));
    }
    for command in before {
        gdb = gdb.first(command);
    }
    Ok(gdb)
}

/// A program that stays as it is: what gdb prints, and what the program says of itself.
fn standing(
    plugin: &dyn Plugin,
    before: &[String],
    commands: &[String],
    launch: &Launch,
    situation: Situation,
    release: &Release,
) -> Result<(String, Truth)> {
    let executable: &Executable = launch.executable();
    if situation == Situation::Launch {
        let mut gdb = gdb(plugin, before, release, Some(launch))?.on(&executable.path);
        gdb = gdb.first(format!("set args {TO_PIPE}"));
        for command in plugin.begin() {
            gdb = gdb.first(command);
        }
        let launched = gdb.launched(launch, commands)?;
        let truth = launched.truth.clone();
        return Ok((launched.printed()?, truth));
    }
    let running: Running = debugger_plugin::started(launch)?;
    let gdb = gdb(plugin, before, release, None)?;
    let directory = tempfile::tempdir()?;
    let gdb = if situation == Situation::Core {
        let core = running.gcore(directory.path())?.map_err(|skip| anyhow::anyhow!("{skip}"))?;
        gdb.on(&executable.path).argument(core)
    } else {
        gdb.argument("-p").argument(running.pid.to_string())
    };
    Ok((gdb.start(commands)?.printed()?.1, running.truth.clone()))
}

/// A program that is let run.
fn running(
    plugin: &dyn Plugin,
    before: &[String],
    commands: &[String],
    launch: &Launch,
    situation: Situation,
    release: &Release,
) -> Result<String> {
    let directory = tempfile::tempdir()?;
    if situation == Situation::Launch {
        let input = directory.path().join("in");
        fs::write(&input, "g")?;
        let mut gdb = gdb(plugin, before, release, Some(launch))?.on(&launch.executable().path);
        gdb = gdb.first(format!("set args < {} > {}", input.display(), directory.path().join("out").display()));
        gdb = gdb.first(format!("break {BEGINS}"));
        for command in plugin.begin() {
            gdb = gdb.first(command);
        }
        return Ok(gdb.start(commands)?.printed()?.1);
    }
    let mut process = launch.spawn()?;
    let mut line = String::new();
    process.stdout.read_line(&mut line)?;
    let pid = process.child.id();
    let gdb = gdb(plugin, before, release, None)?.argument("-p").argument(pid.to_string());
    let gdb =
        gdb.first(format!("break {BEGINS}")).first(format!("shell printf g > /proc/{pid}/fd/0")).first("continue");
    let text = gdb.start(commands).and_then(debugger_plugin::Started::printed);
    // Where gdb has let it go on to its end, there is nothing to end.
    process.child.kill()?;
    process.child.wait()?;
    Ok(text?.1)
}

/// The function with the first region of the program that is let run.
const BEGINS: &str = "size2_level1";

/// The first line that says what is wrong.
fn complaint(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_error = |line: &&str| {
        let (name, rest) = line.split_once(':').unwrap_or((line, ""));
        !rest.is_empty() && !name.contains(' ') && ["Error", "error"].iter().any(|end| name.ends_with(end))
    };
    // Of a traceback it is the line behind it.
    let line = lines().find(is_error).or_else(|| lines().next());
    line.map_or_else(|| "prints nothing".to_owned(), short)
}

fn short(line: &str) -> String {
    // The same in each process.
    let words = line.split(' ').map(|word| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_number = digits.len() > 3 && digits.chars().all(|c| c.is_ascii_digit());
        match word.split_once("0x") {
            _ if is_number => word.replace(digits, "..."),
            Some((before, rest)) => format!("{before}...{}", rest.trim_start_matches(|c: char| c.is_ascii_hexdigit())),
            None => word.to_owned(),
        }
    });
    let line = words.collect::<Vec<_>>().join(" ");
    let mut text: String = line.chars().take(160).collect();
    if line.chars().count() > 160 {
        text += " ...";
    }
    format!("`{}`", text.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_traceback_the_error_is_told() {
        let text = "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: no symbol\nmore";
        assert_eq!(complaint(text), "`ValueError: no symbol`");
        assert_eq!(complaint("\nThread 1 is none\n"), "`Thread 1 is none`");
        assert_eq!(complaint(""), "prints nothing");
        assert_eq!(short("Thread 1 (7288) at 0x12ab, 42"), "`Thread 1 (...) at ..., 42`");
    }
}
