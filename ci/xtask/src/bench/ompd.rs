//! What `libompd.so` asks of a debugger, beside Intel's library for the same questions about the same process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ompd_process::{Live, OpenOptions, Target};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, await_all_blocked, build};

use super::{Limit, built_beside, median_and_least};

/// Team sizes. Of the last the total is judged.
const SIZES: [usize; 3] = [4, 16, 64];
/// Questions as the client names them, and as the table does.
const ROWS: [(&str, &str); 5] = [
    ("init", "open the process"),
    ("threads", "threads and states"),
    ("parallel", "regions and members"),
    ("tasks", "tasks and functions"),
    ("icvs", "control variables"),
];
/// Those that are counted in the total.
const TOTAL: [&str; 3] = ["threads", "parallel", "tasks"];
/// By a debugger that says when the process has run, the callbacks may be this part of the other library's.
const MOST_PART: f64 = 0.2;

/// Callbacks, bytes of memory that they read, and processor time, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    callbacks: u64,
    bytes: u64,
    microseconds: f64,
}

/// One team, and what each of the contestants cost by question: the other library, ours, and ours told of stops.
pub struct Asked {
    threads: usize,
    costs: [BTreeMap<String, Cost>; 3],
}

/// Measures, or says why not.
///
/// # Errors
/// When a program does not build, start or answer.
pub fn measure(rounds: usize) -> Result<Vec<Asked>> {
    let theirs = match Toolchain::Clang.check().and_then(|()| Runtime::Libiomp5.library()) {
        Ok(runtime) => runtime.with_file_name("libiomp5_db.so"),
        Err(skip) => {
            skip.show();
            return Ok(Vec::new());
        }
    };
    if !theirs.is_file() {
        eprintln!("Intel's libiomp5_db.so is not here; ci/setup gets it");
        return Ok(Vec::new());
    }
    let ours = built_beside("libompd.so")?;
    let directory = tempfile::tempdir()?;
    let client = client(directory.path())?;
    let program = build("many", Toolchain::Clang, Opt::O2, &[])?;
    let mut all = Vec::new();
    for threads in SIZES {
        eprintln!("{threads} threads for a debugger ...");
        // Without this theirs does not tell of states.
        let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
        let team = launch.argument(&threads.to_string()).start()?;
        await_all_blocked(team.pid, threads, false)?;
        let list = directory.path().join("symbols");
        fs::write(&list, thread_local(&team)? + &symbols(team.pid)?)?;
        await_all_blocked(team.pid, threads, false)?;
        let mut costs: [BTreeMap<String, Vec<Cost>>; 3] = Default::default();
        for _ in 0..rounds {
            let contestants = [(&theirs, "--count"), (&ours, "--count"), (&ours, "--count-stops")];
            for (costs, (library, mode)) in costs.iter_mut().zip(contestants) {
                for (name, cost) in ask(&client, mode, library, &team, &list)? {
                    costs.entry(name).or_default().push(cost);
                }
            }
        }
        all.push(Asked { threads, costs: costs.map(|rows| rows.into_iter().filter_map(middle).collect()) });
    }
    Ok(all)
}

/// The counts, which are the same in all rounds, with the middle time.
fn middle((name, costs): (String, Vec<Cost>)) -> Option<(String, Cost)> {
    let (microseconds, _) = median_and_least(costs.iter().map(|cost| cost.microseconds))?;
    Some((name, Cost { microseconds, ..*costs.last()? }))
}

/// The debugger in C that the tests of the library use.
fn client(directory: &Path) -> Result<PathBuf> {
    let resources = Command::new("clang-14").arg("-print-resource-dir").output().context("clang-14")?;
    let header = Path::new(String::from_utf8(resources.stdout)?.trim()).join("include/omp-tools.h");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libompd/abi/tests/client/client.c");
    let out = directory.join("client");
    let mut command = Command::new("gcc");
    command.args(["-std=gnu11", "-O2"]).arg(format!("-DOMP_TOOLS_H=\"{}\"", header.display()));
    let done = command.arg("-o").arg(&out).arg(source).arg("-ldl").output().context("gcc")?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(out)
}

/// All symbols of the process, as lines of name and address.
fn symbols(pid: i32) -> Result<String> {
    let live = Live::open(pid, &OpenOptions::default())?;
    let mut lines = String::new();
    for module in live.modules() {
        let Ok(file) = &module.file else { continue };
        let own = file.symbols_with_prefix("").map(|symbol| symbol.name);
        let names: BTreeSet<String> = file.exported_names().map(str::to_owned).chain(own).collect();
        for name in names.iter().filter(|name| !name.contains(char::is_whitespace)) {
            if let Some(symbol) = module.symbol(name).filter(|symbol| !symbol.tls) {
                writeln!(lines, "{name} {:x}", symbol.addr.0)?;
            }
        }
    }
    Ok(lines)
}

/// Where the thread-local variable lies in each thread by which theirs knows threads, in the same form.
fn thread_local(team: &Running) -> Result<String> {
    let script = "python\nfor t in gdb.selected_inferior().threads():\n    t.switch()\n    \
                  print('at', t.ptid[1], int(gdb.parse_and_eval('(long)&__kmp_gtid')))\nend\n";
    let file = tempfile::NamedTempFile::with_suffix(".gdb")?;
    fs::write(file.path(), script)?;
    let mut command = Command::new("gdb");
    let done = command.args(["-nx", "-batch", "-p", &team.pid.to_string(), "-x"]).arg(file.path()).output()?;
    let mut lines = String::new();
    for line in String::from_utf8_lossy(&done.stdout).lines().filter_map(|line| line.strip_prefix("at ")) {
        let (lwp, addr) = line.split_once(' ').context("a thread and an address")?;
        let thread = team.truth.thread(lwp.parse()?).context("gdb sees a thread that is none of the program's")?;
        writeln!(lines, "__kmp_gtid@{:x} {:x}", thread.pthread.0, addr.parse::<u64>()?)?;
    }
    ensure!(!lines.is_empty(), "gdb does not say where __kmp_gtid is");
    Ok(lines)
}

fn ask(client: &Path, mode: &str, library: &Path, team: &Running, list: &Path) -> Result<Vec<(String, Cost)>> {
    let mut command = Command::new(client);
    command.arg(mode).arg(library).arg(team.pid.to_string()).arg(list);
    command.args(team.truth.threads.iter().map(|thread| format!("{:x}", thread.pthread.0)));
    let done = command.output()?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    let mut rows = Vec::new();
    for line in String::from_utf8(done.stdout)?.lines() {
        let (name, numbers) = line.split_once(' ').context("a row")?;
        let numbers = numbers.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        // Reading, symbols, thread contexts, conversions, memory; then bytes, calls and time.
        ensure!(numbers.len() == 8, "{line}");
        rows.push((
            name.to_owned(),
            Cost { callbacks: numbers[..5].iter().sum(), bytes: numbers[5], microseconds: numbers[7] as f64 },
        ));
    }
    Ok(rows)
}

impl Asked {
    fn callbacks(&self, contestant: usize, name: &str) -> f64 {
        self.costs[contestant].get(name).map_or(f64::NAN, |cost| cost.callbacks as f64)
    }
}

/// At most so many callbacks for one of Intel's library: fields are read one by one, as there, and then confirmed.
const FOR_ONE: f64 = 1.4;

/// The same for all questions together, after the process was opened.
const WHOLE_WALK: f64 = 1.2;

/// The callbacks for every question but the first, and the total.
pub fn limits(all: &[Asked]) -> Vec<Limit> {
    let mut limits = Vec::new();
    for asked in all {
        let part = |name: &str| asked.callbacks(1, name) / asked.callbacks(0, name);
        let most = ROWS[1..].iter().map(|(name, _)| part(name)).fold(0.0, f64::max);
        let what = format!(
            "callbacks of a debugger at {} threads for any question, at most {FOR_ONE} × those for Intel's library",
            asked.threads
        );
        limits.push(Limit { what, measured: most, unit: "×", kept: most <= FOR_ONE });
    }
    if let Some(last) = all.last() {
        let [theirs, ours] = [0, 1].map(|contestant| {
            let costs = &last.costs[contestant];
            ROWS[1..].iter().filter_map(|(name, _)| costs.get(*name)).map(|cost| cost.callbacks as f64).sum::<f64>()
        });
        let part = ours / theirs;
        let what = format!(
            "callbacks of a debugger at {} threads for all questions, at most {WHOLE_WALK} × those for Intel's library",
            last.threads
        );
        limits.push(Limit { what, measured: part, unit: "×", kept: part <= WHOLE_WALK });
        let total = |contestant| TOTAL.iter().map(|name| last.callbacks(contestant, name)).sum::<f64>();
        let part = total(2) / total(0);
        let what = format!(
            "callbacks of a debugger that tells of stops at {} threads, threads, regions and tasks, at most {MOST_PART} × \
             those for Intel's library",
            last.threads
        );
        limits.push(Limit { what, measured: part, unit: "×", kept: part <= MOST_PART });
    }
    limits
}

fn size(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1e3)
}

/// The rows of the document.
pub fn table(all: &[Asked]) -> String {
    let mut text = String::from(
        "| threads | question | Intel's library | `libompd.so` | `libompd.so`, told of stops |\n|---:|---|---|---|---|\n",
    );
    for asked in all {
        for (name, shown) in ROWS {
            let [theirs, ours, told] = &asked.costs;
            let (Some(theirs), Some(ours), Some(told)) = (theirs.get(name), ours.get(name), told.get(name)) else {
                continue;
            };
            let cell = |cost: &Cost| {
                let part = cost.callbacks as f64 / theirs.callbacks as f64;
                format!("{} ({part:.2} ×), {}, {:.2} ms", cost.callbacks, size(cost.bytes), cost.microseconds / 1e3)
            };
            text += &format!(
                "| {} | {shown} | {}, {}, {:.2} ms | {} | {} |\n",
                asked.threads,
                theirs.callbacks,
                size(theirs.bytes),
                theirs.microseconds / 1e3,
                cell(ours),
                cell(told)
            );
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(callbacks: [u64; 3]) -> Asked {
        let rows = |callbacks| {
            ROWS.iter()
                .map(|(name, _)| ((*name).to_owned(), Cost { callbacks, bytes: 2500, microseconds: 1500.0 }))
                .collect()
        };
        Asked { threads: 64, costs: callbacks.map(rows) }
    }

    #[test]
    fn limits_hold_by_row_and_in_total() {
        let kept = |callbacks| limits(&[asked(callbacks)]).iter().map(|limit| limit.kept).collect::<Vec<_>>();
        assert_eq!(kept([100, 120, 20]), [true, true, true]);
        assert_eq!(kept([100, 121, 20]), [true, false, true]);
        assert_eq!(kept([100, 141, 21]), [false, false, false]);
        assert!(limits(&[]).is_empty());
    }

    #[test]
    fn the_table_has_a_row_for_each_question() {
        let text = table(&[asked([100, 50, 10])]);
        assert!(
            text.contains("| 64 | control variables | 100, 2.5 kB, 1.50 ms | 50 (0.50 ×), 2.5 kB, 1.50 ms | 10 (0.10 ×), 2.5 kB, 1.50 ms |"),
            "{text}"
        );
        assert_eq!(text.lines().filter(|line| line.starts_with("| 64")).count(), ROWS.len());
    }
}
