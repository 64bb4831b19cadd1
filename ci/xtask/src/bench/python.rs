//! What it costs to show the stacks of a Python process, beside the tools for Python.

use std::path::{Path, PathBuf};

use anyhow::Result;
use test_programs::python::{Script, interpreters, peer};
use test_programs::{Runtime, Skip, await_all_blocked};

use super::{Contestant, Row, run_contestant};

/// The main thread, and one that holds an OpenMP lock.
const THREADS: usize = 2;

/// Measures a process that hangs between Python's interpreter lock and an OpenMP lock. Returns a table, or an empty text if
/// Python or a runtime is missing.
///
/// # Errors
/// When a command fails or does not see all threads.
pub fn measure(inspect: &Path, rounds: usize) -> Result<String> {
    // py-spy does not find the version of each build: of the older ones it does.
    let interpreter = [11, 12, 10, 9, 13].into_iter().find_map(|minor| interpreters(minor).ok()?.into_iter().next());
    let library = match Runtime::Libgomp.library() {
        Ok(library) => library,
        Err(skip) => {
            skip.show();
            return Ok(String::new());
        }
    };
    let Some(interpreter) = interpreter else {
        Skip::because("no CPython here; \"ci/fetch pythons\" gets some versions").show();
        return Ok(String::new());
    };
    eprintln!("a Python process, of {} ...", interpreter.display());
    let script = Script::start_with(&interpreter, "gil_lock.py", &[&library], Path::new("/"));
    await_all_blocked(script.pid, THREADS, false)?;
    let contestants = contestants(inspect, script.pid);
    let mut rows: Vec<Row> = contestants.iter().map(|c| Row { shown: c.shown, costs: Vec::new() }).collect();
    for round in 0..=rounds {
        for turn in 0..contestants.len() {
            let which = (round + turn) % contestants.len();
            await_all_blocked(script.pid, THREADS, false)?;
            let cost = run_contestant(&contestants[which], THREADS)?;
            if round > 0 {
                rows[which].costs.push(cost);
            }
        }
    }
    Ok(table(&rows))
}

fn contestants(inspect: &Path, pid: i32) -> Vec<Contestant> {
    let pid = pid.to_string();
    let command = |shown, program: PathBuf, arguments: &[&str], mark| Contestant {
        shown,
        program,
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        mark,
    };
    let backtraces = ["-nx", "-batch", "-p", &pid, "-ex", "thread apply all bt"];
    let mut all = vec![
        command("ompd-inspect stacks PID", inspect.to_owned(), &["stacks", &pid], None),
        command("ompd-inspect PID", inspect.to_owned(), &[&pid], None),
    ];
    let py_spy = ["dump", "--native", "--pid", &pid];
    let pystack = ["remote", "--native", &pid];
    for (name, shown, arguments, mark) in [
        ("py-spy", "py-spy dump --native --pid PID", py_spy.as_slice(), "Thread "),
        ("py-spy", "py-spy dump --pid PID", &["dump", "--pid", &pid], "Thread "),
        ("pystack", "pystack remote --native PID", pystack.as_slice(), "Traceback for thread "),
    ] {
        match peer(name) {
            Ok(program) => all.push(command(shown, program, arguments, Some(mark))),
            Err(skip) => skip.show(),
        }
    }
    all.push(command("gdb -nx -batch -p PID -ex 'thread apply all bt'", "gdb".into(), &backtraces, Some("Thread ")));
    all.push(command("eu-stack -p PID", "eu-stack".into(), &["-p", &pid], Some("TID ")));
    all
}

fn table(rows: &[Row]) -> String {
    // py-spy takes less memory than this program, so that the kernel does not tell how much.
    let mut text = String::from("| Python process of 2 threads | wall time |\n|---|---|\n");
    let Some(first) = rows.first() else { return text };
    for row in rows {
        let (wall, least) = row.wall();
        text += &format!("| `{}` | {:.1} × ({wall:.1} ms, least {least:.1}) |\n", row.shown, wall / first.wall().0);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Cost;
    use std::time::Duration;

    #[test]
    fn the_table_shows_ratios_to_ours() {
        let row = |shown, milliseconds| {
            let wall = Duration::from_millis(milliseconds);
            Row { shown, costs: vec![Cost { wall, cpu: wall, peak: milliseconds << 20 }] }
        };
        let text = table(&[row("ompd-inspect stacks PID", 10), row("py-spy", 35)]);
        assert!(text.contains("| `py-spy` | 3.5 × (35.0 ms, least 35.0) |"), "{text}");
    }
}
