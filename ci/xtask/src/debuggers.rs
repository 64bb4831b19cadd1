//! `ci/debugger-table`: which commands of the plugins work in which release of gdb and LLDB.
//!
//! The program is `steps.c`. It hangs, and is looked at after attach, in a core and by a server. Then it is let run until the next hang.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use debugger_plugin::lldb::{Lldb, LldbRelease, Server, lldbs};
use debugger_plugin::{Gdb, GdbRelease, Steps, gdbs, has_server, parts};
use test_programs::gcore;

use crate::bench::{built_beside, replace};

/// The table stands in the document between these lines.
const MARKS: [&str; 2] = ["<!-- ci/debugger-table: begin -->", "<!-- ci/debugger-table: end -->"];

/// Arguments of `debugger-table`.
#[derive(Args)]
pub struct Arguments {
    /// Write the table to docs/debugger-matrix.md too.
    #[arg(long)]
    write: bool,
}

/// A command, and what shows that it has worked.
struct Step {
    gdb: &'static str,
    lldb: &'static str,
    /// All of these are printed.
    wanted: &'static [&'static str],
}

const fn step(gdb: &'static str, lldb: &'static str, wanted: &'static [&'static str]) -> Step {
    Step { gdb, lldb, wanted }
}

/// Commands for a process that stands.
const LOOKING: [Step; 17] = [
    step("openmp status", "openmp status", &["SUSPECT", "team 2  level 2, 2 threads"]),
    step("openmp why", "openmp why", &["thread 0 of 2 in team 1", "SUSPECT"]),
    step("openmp threads", "openmp thread list", &["4 OpenMP threads in 1 pool", "1/2  2      implicit"]),
    step("openmp teams", "openmp team list", &["team 1  level 2, 2 threads"]),
    step("openmp tasks", "openmp task list", &["implicit"]),
    step("openmp waits", "openmp wait list", &["waits at a barrier (steps.c:19)"]),
    step("openmp loops", "openmp loop list", &["no team is in a worksharing region"]),
    step("openmp icvs", "openmp icv list", &["max-active-levels-var"]),
    step("openmp stacks", "openmp stack list", &["#pragma omp parallel in inner"]),
    step("openmp thread 2.1", "openmp thread select 2.1", &["thread 1 of 2 in team 2"]),
    step("openmp bt", "openmp thread backtrace", &["#pragma omp parallel in inner", "steps.c:31"]),
    step("bt", "bt", &["#pragma omp parallel in inner", "waits: barrier", "continues in Thread"]),
    step("openmp taskframes", "openmp task frames", &["inner._omp_fn.0", "0x"]),
    step("openmp print -all mine", "openmp thread print -all mine", &["2.0 ", "10", "2.1 ", "11"]),
    step("openmp apply 2 bt 1", "openmp apply 2 bt 1", &["thread 0 of team 2", "thread 1 of team 2"]),
    step("openmp status -json", "openmp status -json", &["\"schema\""]),
    step("openmp doctor", "openmp doctor", &["libompd.so"]),
];

/// Commands that let it run.
const RUNNING: [Step; 8] = [
    step("openmp break parallel-begin", "openmp breakpoint set parallel-begin", &["Stop 1  parallel-begin  (1 place"]),
    step("continue", "continue", &["A parallel region begins", "threads: 2", "steps.c:29"]),
    step("openmp delete", "openmp breakpoint delete", &[]),
    step("openmp step", "openmp thread step", &["steps.c:34"]),
    step("openmp until barrier", "openmp thread until barrier", &["steps.c:36"]),
    step("openmp catch deadlock 0.05", "openmp catch deadlock 0.05", &["DEADLOCK", "lock locks[1]"]),
    step("openmp bt", "openmp thread backtrace", &["#pragma omp parallel in main"]),
    step("detach", "detach", &["detached"]),
];

/// How a debugger comes to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Attach,
    Core,
    Remote,
    Run,
}

const SITUATIONS: [(Situation, &str); 4] = [
    (Situation::Attach, "attach"),
    (Situation::Core, "core"),
    (Situation::Remote, "remote"),
    (Situation::Run, "attach, then it runs"),
];

/// A debugger.
enum Release {
    Gdb(GdbRelease),
    Lldb(LldbRelease),
}

impl Release {
    fn name(&self) -> String {
        match self {
            Release::Gdb(release) => format!("gdb {}", release.version),
            Release::Lldb(release) => format!("LLDB {}", release.version),
        }
    }
}

/// Makes the table, and prints it.
///
/// # Errors
/// When something needed is missing.
pub fn run(arguments: &Arguments) -> Result<()> {
    let library = built_beside("libompd.so")?;
    let library = library.parent().context("the folder of the library")?;
    let mut releases: Vec<Release> = gdbs().into_iter().map(Release::Gdb).collect();
    releases.sort_by_key(|release| if let Release::Gdb(release) = release { release.version } else { 0 });
    let mut others = lldbs();
    others.sort_by_key(|release| release.version);
    releases.extend(others.into_iter().map(Release::Lldb));
    ensure!(!releases.is_empty(), "there is neither gdb nor LLDB");
    let names: Vec<String> = releases.iter().map(Release::name).collect();
    let (mut text, mut notes) = (String::new(), Vec::new());
    for (situation, shown) in SITUATIONS {
        let steps: &[Step] = if situation == Situation::Run { &RUNNING } else { &LOOKING };
        let columns: Vec<Vec<String>> = releases
            .iter()
            .map(|release| {
                eprintln!("{}, {shown} ...", release.name());
                match printed(release, library, situation, steps) {
                    Ok(printed) => steps.iter().zip(printed).map(|(step, text)| cell(step, &text)).collect(),
                    Err(why) => vec![format!("{:#}", why.root_cause()); steps.len()],
                }
            })
            .collect();
        text += &format!("| {shown} | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
        for (at, step) in steps.iter().enumerate() {
            text += &format!("| `{}` |", step.gdb);
            for column in &columns {
                text += &format!(" {} |", noted(&mut notes, &column[at], step));
            }
            text += "\n";
        }
        text += "\n";
    }
    for (number, note) in notes.iter().enumerate() {
        text += &format!("- {}: {note}\n", number + 1);
    }
    print!("{text}");
    if arguments.write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/debugger-matrix.md");
        let old = fs::read_to_string(&file).context("reading docs/debugger-matrix.md")?;
        fs::write(&file, replace(&old, &text, MARKS)?).context("writing docs/debugger-matrix.md")?;
    }
    Ok(())
}

/// `ok`, or the number of the note that says what was printed instead.
fn noted(notes: &mut Vec<String>, cell: &str, step: &Step) -> String {
    if cell == "ok" {
        return cell.to_owned();
    }
    let note = format!("`{}`: {}", step.gdb, cell.replace('|', "\\|"));
    let number = notes.iter().position(|one| *one == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    format!("no [{}]", number + 1)
}

/// `ok`, or the part that is not there with the first line that was printed.
fn cell(step: &Step, text: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = words(text);
    match step.wanted.iter().find(|part| !all.contains(&words(part))) {
        None => "ok".to_owned(),
        Some(part) => {
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
            format!("`{part}` is wanted; printed: `{}`", line.chars().take(120).collect::<String>())
        }
    }
}

/// What a debugger prints at each step.
fn printed(release: &Release, library: &Path, situation: Situation, steps: &[Step]) -> Result<Vec<String>> {
    let process = Steps::hanging()?;
    let directory = tempfile::tempdir()?;
    let core = match situation {
        Situation::Core => Some(gcore(process.pid, directory.path())?.map_err(|skip| anyhow!("{skip}"))?),
        _ => None,
    };
    let go = format!("open('/proc/{}/fd/0', 'w').write('gg')", process.pid);
    match release {
        Release::Gdb(release) => {
            if situation == Situation::Remote {
                has_server().map_err(|skip| anyhow!("{skip}"))?;
            }
            let mut gdb = match &core {
                Some(core) => Gdb::core(library, &process.program, core),
                None => Gdb::process(library, process.pid.unsigned_abs(), situation == Situation::Remote),
            };
            if situation == Situation::Run {
                gdb = gdb.first(format!("python {go}"));
            }
            let commands: Vec<&str> = steps.iter().map(|step| step.gdb).collect();
            let (_, text) = gdb.by(release).start(&commands)?.printed()?;
            let found = parts(&text);
            ensure!(found.len() > steps.len(), "gdb has ended before");
            Ok(found)
        }
        Release::Lldb(release) => {
            let server = match situation {
                Situation::Remote => Some(Server::attached(release, process.pid)?.map_err(|skip| anyhow!("{skip}"))?),
                _ => None,
            };
            let mut lldb = match (&core, &server) {
                (Some(core), _) => Lldb::core(release, library, &process.program, core),
                (_, Some(server)) => Lldb::remote(release, library, server),
                _ => Lldb::new(release, library).first(format!("process attach --pid {}", process.pid)),
            };
            if situation == Situation::Run {
                lldb = lldb.first(format!("script {go}"));
            }
            let mut commands: Vec<&str> = steps.iter().map(|step| step.lldb).collect();
            if server.is_some() {
                // At its end, LLDB kills a process that it has not attached to itself.
                commands.push("detach");
            }
            lldb.run(&commands)
        }
    }
}
