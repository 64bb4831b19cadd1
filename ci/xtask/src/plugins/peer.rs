//! LLVM's plugin, as Debian ships it with LLVM 19.

use std::path::{Path, PathBuf};

use debugger_plugin::Release;
use test_programs::{Runtime, Skip};

use super::{Answer, Feature, Plugin, Question, RUNS, Situation, complaint};

/// What it says when it has a library.
pub const LOADED: &str = "Loaded OMPD lib successfully!";

/// The plugin, in the way that serves it best:
///
/// - its own `ompd init` starts a program that is not started yet, as its documentation has it;
/// - the directories of all OMPD libraries at hand are searched for the one that the runtime names: Intel's for libiomp5, and
///   LLVM's;
/// - threads are listed after each of them has been asked for its region, since before that it knows of none after attach;
/// - its commands are about the selected thread: that is one in the innermost region.
pub struct Peer {
    /// The script that loads it.
    pub script: PathBuf,
}

impl Peer {
    /// Where `ci/fetch debian` has got it.
    pub fn find() -> Result<Peer, Skip> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../test-programs/runtimes/debian-bookworm/amd64/libomp-19-dev/__init__.py");
        match script.canonicalize() {
            Ok(script) => Ok(Peer { script }),
            Err(_) => Err(Skip::because("LLVM's plugin for gdb is not here; \"ci/fetch debian\" gets it")),
        }
    }
}

impl Plugin for Peer {
    fn name(&self) -> &'static str {
        "LLVM's plugin (19.1), unchanged, with Intel's library for libiomp5:"
    }

    fn load(&self, situation: Situation) -> (Vec<String>, Vec<String>) {
        let source = format!("source {}", self.script.display());
        // The first thread is in the innermost region. A second `ompd init` ends gdb.
        let mut then = vec!["thread 1".to_owned()];
        if situation != Situation::Launch {
            then.push("ompd init".to_owned());
        }
        (vec![source], then)
    }

    fn libraries(&self, _: &Release) -> Vec<PathBuf> {
        let mut found = vec![PathBuf::from("/usr/lib/llvm-14/lib")];
        // The wheel has both in one directory.
        found.extend(Runtime::Libiomp5.library().ok().and_then(|library| library.parent().map(Path::to_owned)));
        found
    }

    fn begin(&self) -> Vec<String> {
        ["ompd init", "continue"].map(str::to_owned).to_vec()
    }

    fn question(&self, feature: Feature) -> Option<Question> {
        let nested = |commands: &[&str], check: fn(&Answer) -> Result<(), String>| Question {
            program: "nested",
            commands: commands.iter().map(|&command| command.to_owned()).collect(),
            check,
        };
        Some(match feature {
            Feature::Init => nested(&[], |answer| {
                let all = [answer.head, answer.last()];
                if all.iter().any(|text| text.contains(LOADED)) { Ok(()) } else { Err(complaint(answer.last())) }
            }),
            Feature::Threads => nested(&["thread apply all -ascending -s ompd parallel", "ompd threads"], |answer| {
                let known =
                    answer.last().lines().filter(|line| line.contains("is an OpenMP thread; state: ompt_state_"));
                if known.count() == 6 { Ok(()) } else { Err(complaint(answer.last())) }
            }),
            Feature::Parallel => nested(&["ompd parallel"], |answer| {
                answer.has(&["Nesting Level 2: Team Size: 2", "Nesting Level 1: Team Size: 3"])?;
                let members =
                    answer.last().lines().filter(|line| line.contains("ompt_state_") && line.contains("nested.c:"));
                if members.count() == 5 { Ok(()) } else { Err(complaint(answer.last())) }
            }),
            Feature::Icvs => nested(&["ompd icvs"], |answer| {
                answer.has(&["levels-var parallel 2", "team-size-var parallel 2", "max-active-levels-var task 2"])
            }),
            Feature::Backtrace => nested(&["ompd bt on", "bt"], |answer| {
                answer.has(&["inner_body", "\"#pragma omp parallel\""])?;
                if answer.last().contains("__kmp_") { Err("shows the runtime's frames".to_owned()) } else { Ok(()) }
            }),
            Feature::Taskframes => nested(&["ompd taskframes"], |answer| {
                let rows = answer.last().lines().filter_map(|line| {
                    let (enter, exit) = line.split_once(' ')?;
                    let number = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
                    Some((Some(number(enter)?), Some(number(exit)?)))
                });
                let zero = |frame: Option<u64>| frame.filter(|&frame| frame != 0);
                let rows: Vec<_> = rows.map(|(enter, exit)| (zero(enter), zero(exit))).collect();
                frames(&rows).map_err(|wrong| if rows.is_empty() { "stack pointers only".to_owned() } else { wrong })
            }),
            // It goes line by line; the region is behind the second one.
            Feature::Step => Question {
                program: RUNS,
                commands: ["ompd step", "backtrace 3"].repeat(4).into_iter().map(str::to_owned).collect(),
                check: |answer| {
                    let bodies = ["size2_level1._omp_fn", "omp_outlined"];
                    if answer.printed.iter().any(|text| bodies.iter().any(|body| text.contains(body))) {
                        Ok(())
                    } else {
                        Err(complaint(answer.last()))
                    }
                },
            },
            Feature::Tasks | Feature::Waits | Feature::StopPoints | Feature::Json | Feature::Verdict => return None,
        })
    }
}

/// Checks the frames of the three tasks of a thread, innermost first, as (enter, exit). Each task enters the runtime further in
/// than where it was called, and the next task is further out.
pub fn frames(rows: &[(Option<u64>, Option<u64>)]) -> Result<(), String> {
    let mut before = 0;
    for (enter, exit) in rows {
        for address in [enter, exit].into_iter().flatten() {
            if *address < before || *address - before > 1 << 30 && before != 0 {
                return Err(format!("{address:#x} behind {before:#x}"));
            }
            before = *address;
        }
    }
    // The initial task was called by nobody.
    let known = rows.iter().flat_map(|(enter, exit)| [enter, exit]).flatten().count();
    if rows.len() == 3 && known == 5 { Ok(()) } else { Err(format!("{} tasks with {known} frames", rows.len())) }
}
