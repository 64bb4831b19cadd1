//! This project's plugin.

use std::path::PathBuf;

use debugger_plugin::{Release, plugin};
use serde_json::Value;
use test_programs::{Comparison, compare, compare_verdicts};

use super::{Answer, Feature, Plugin, Question, RUNS, Situation, complaint};

/// The plugin with its library.
pub struct Ours {
    pub library: PathBuf,
}

impl Plugin for Ours {
    fn name(&self) -> &'static str {
        "This plugin:"
    }

    fn load(&self, _: Situation) -> (Vec<String>, Vec<String>) {
        let source = format!("source {}", plugin().display());
        (vec![source, format!("set openmp library {}", self.library.display())], vec!["thread 1".to_owned()])
    }

    fn libraries(&self, _: &Release) -> Vec<PathBuf> {
        Vec::new()
    }

    fn begin(&self) -> Vec<String> {
        vec!["run".to_owned()]
    }

    fn question(&self, feature: Feature) -> Option<Question> {
        let nested = |command: &str, check: fn(&Answer) -> Result<(), String>| Question {
            program: "nested",
            commands: vec![command.to_owned()],
            check,
        };
        let runs = |commands: &[&str], check: fn(&Answer) -> Result<(), String>| Question {
            program: RUNS,
            commands: commands.iter().map(|&command| command.to_owned()).collect(),
            check,
        };
        Some(match feature {
            Feature::Init => nested("openmp init", |answer| {
                let product = if answer.release.runtime.is_kmp() { "omp" } else { "GNU libgomp" };
                answer.has(&[product, "/"])
            }),
            Feature::Threads => nested("openmp threads", threads),
            Feature::Parallel => nested("openmp teams", |answer| {
                answer.has(&["level 1, 3 threads, parallel in main", "level 2, 2 threads, parallel in outer_body"])?;
                let teams = answer.last().lines().filter(|line| line.trim_start().starts_with("team ")).count();
                if teams == 4 { Ok(()) } else { Err(format!("{teams} teams")) }
            }),
            Feature::Icvs => nested("openmp icvs", |answer| {
                answer.has(&["levels-var 2", "active-levels-var 2", "max-active-levels-var 2", "nthreads-var 4"])
            }),
            Feature::Tasks => nested("openmp tasks", |answer| {
                let rows = |kind: &str| answer.last().lines().filter(|line| line.contains(kind)).count();
                answer.has(&["outer_body (nested.c", "main (nested.c"])?;
                let counts = (rows(" implicit "), rows(" initial "));
                if counts == (9, 1) { Ok(()) } else { Err(format!("{counts:?} tasks")) }
            }),
            Feature::Waits => nested("openmp waits", |answer| {
                answer.has(&["barrier (nested.c:16)", "missing: thread 1 of team 1", "missing: thread 1 of team 3"])
            }),
            Feature::Backtrace => nested("bt", |answer| {
                answer.has(&["inner_body", "#pragma omp parallel in outer_body", "[waits: barrier]"])
            }),
            Feature::Taskframes => nested("openmp taskframes -json", |answer| {
                let rows: Vec<Value> = serde_json::from_str(answer.last()).map_err(|_| complaint(answer.last()))?;
                let number = |value: &Value| u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
                let frames: Vec<_> = rows.iter().map(|row| (number(&row["enter"]), number(&row["exit"]))).collect();
                super::peer::frames(&frames)
            }),
            Feature::Step => runs(&["openmp step", "openmp bt"], |answer| {
                answer.has(&["#pragma omp parallel in size2_level1", "main"])
            }),
            Feature::StopPoints => runs(&["openmp break parallel-begin", "continue"], |answer| {
                answer.has(&["A parallel region begins", "threads: 2", "met by: the initial task", "begin_end.c:"])
            }),
            Feature::Json => nested("openmp status -json", |answer| {
                let truth = answer.truth.ok_or("nothing is known")?;
                let toolchain = answer.release.toolchain("nested");
                told(&compare(truth, &report(answer)?, answer.release.runtime, toolchain))
            }),
            Feature::Verdict => Question {
                program: "hangs/lock_cycle",
                commands: vec!["openmp status".to_owned(), "openmp status -json".to_owned()],
                check: |answer| {
                    let truth = answer.truth.ok_or("nothing is known")?;
                    let recorded = truth.owners_recorded(answer.release.runtime);
                    if !answer.printed[1].contains("DEADLOCK") {
                        return Err(complaint(&answer.printed[1]));
                    }
                    told(&compare_verdicts(truth, &report(answer)?, recorded))
                },
            },
        })
    }
}

/// Each thread in its place, waiting or not as it says.
fn threads(answer: &Answer) -> Result<(), String> {
    answer.has(&["barrier (nested.c:16)", "truth.h:"])?;
    let truth = answer.truth.ok_or("nothing is known")?;
    for thread in &truth.threads {
        let number = thread.api.as_ref().map_or(-1, |api| api.thread_num);
        let place = format!("{number}/2");
        let lwp = thread.lwp.to_string();
        let row = answer.last().lines().find(|line| line.split_whitespace().any(|word| word == lwp));
        if !row.is_some_and(|row| row.split_whitespace().any(|word| word == place)) {
            return Err(format!("LWP {lwp}: {row:?}"));
        }
    }
    Ok(())
}

fn report(answer: &Answer) -> Result<Value, String> {
    let text = answer.last();
    let from = text.find('{').ok_or_else(|| complaint(text))?;
    serde_json::from_str(&text[from..]).map_err(|_| complaint(text))
}

fn told(found: &Comparison) -> Result<(), String> {
    match found.all().next() {
        None if found.compared > 0 => Ok(()),
        None => Err("nothing was compared".to_owned()),
        Some(line) => Err(line.clone()),
    }
}
