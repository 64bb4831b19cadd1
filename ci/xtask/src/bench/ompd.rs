//! What `libompd.so` asks of a debugger, beside the libraries of Intel's and LLVM's runtimes for the same questions about the same
//! process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use ompd_process::{Live, OpenOptions, Target};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, await_all_blocked, build};

use super::goals::Goal;
use super::{Limit, built_beside, median_and_least};

/// Team sizes. Of the last the total is judged.
const SIZES: [usize; 3] = [4, 16, 64];
/// Questions as the client names them, and as the table does.
const ROWS: [(&str, &str); 6] = [
    ("init", "open the process"),
    ("threads", "threads and states"),
    ("parallel", "regions and members"),
    ("tasks", "tasks and functions"),
    ("frames", "frames of tasks"),
    ("icvs", "control variables"),
];
/// Those that are counted in the total.
const TOTAL: [&str; 3] = ["threads", "parallel", "tasks"];
/// By a debugger that says when the process has run, the callbacks may be this part of the other library's.
const MOST_PART: f64 = 0.25;

/// Callbacks, those of them that read memory and the bytes that they read, and processor time, in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    callbacks: u64,
    reads: u64,
    bytes: u64,
    microseconds: f64,
}

/// One team, and what each of the contestants cost by question: the other library, ours, and ours told of stops.
pub struct Asked {
    other: &'static str,
    threads: usize,
    costs: [BTreeMap<String, Cost>; 3],
}

/// Another library, and the runtime it comes with.
struct Other {
    name: &'static str,
    library: PathBuf,
    runtime: Runtime,
    /// Where the loader has to look for that runtime first.
    directory: Option<PathBuf>,
}

/// Those that are here; says of the others what is missing.
fn others() -> Vec<Other> {
    let mut found = Vec::new();
    match Runtime::Libiomp5.library().map(|runtime| runtime.with_file_name("libiomp5_db.so")) {
        Ok(library) if library.is_file() => {
            found.push(Other { name: "Intel", library, runtime: Runtime::Libiomp5, directory: None });
        }
        Ok(_) => eprintln!("Intel's libiomp5_db.so is not here; ci/setup gets it"),
        Err(skip) => skip.show(),
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes/llvm-ompd/build");
    let (library, directory) = (built.join("libompd/src/libompd.so"), built.join("runtime/src"));
    match library.is_file() && directory.join("libomp.so").is_file() {
        true => {
            let directory = Some(directory);
            found.push(Other { name: "LLVM", library, runtime: Runtime::Libomp14, directory });
        }
        false => eprintln!("LLVM's library and its runtime with OMPD are not here; ci/llvm-ompd builds both"),
    }
    found
}

/// Measures, or says why not.
///
/// # Errors
/// When a program does not build, start or answer.
pub fn measure(rounds: usize) -> Result<Vec<Asked>> {
    if let Err(skip) = Toolchain::Clang.check() {
        skip.show();
        return Ok(Vec::new());
    }
    let ours = built_beside("libompd.so")?;
    let directory = tempfile::tempdir()?;
    let client = client(directory.path())?;
    let program = build("many", Toolchain::Clang, Opt::O2, &[])?;
    let mut all = Vec::new();
    for (other, threads) in others().iter().flat_map(|other| SIZES.map(|threads| (other, threads))) {
        eprintln!("{threads} threads for a debugger, beside {}'s library ...", other.name);
        // Without this theirs does not tell of states.
        let mut launch = Launch::new(&program, other.runtime, Env::Settled).variable("OMP_DEBUG", "enabled");
        if let Some(directory) = &other.directory {
            let link = directory.join("libomp.so.5");
            if !link.exists() {
                std::os::unix::fs::symlink("libomp.so", &link)?;
            }
            launch = launch.variable("LD_LIBRARY_PATH", &directory.to_string_lossy());
        }
        let team = launch.argument(&threads.to_string()).start()?;
        await_all_blocked(team.pid, threads, false)?;
        let list = directory.path().join("symbols");
        fs::write(&list, thread_local(&team)? + &symbols(team.pid)?)?;
        await_all_blocked(team.pid, threads, false)?;
        let mut costs: [BTreeMap<String, Vec<Cost>>; 3] = Default::default();
        for _ in 0..rounds {
            let contestants = [(&other.library, "--count"), (&ours, "--count"), (&ours, "--count-stops")];
            for (costs, (library, mode)) in costs.iter_mut().zip(contestants) {
                for (name, cost) in ask(&client, mode, library, &team, &list)? {
                    costs.entry(name).or_default().push(cost);
                }
            }
        }
        let costs = costs.map(|rows| rows.into_iter().filter_map(middle).collect());
        all.push(Asked { other: other.name, threads, costs });
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
            Cost {
                callbacks: numbers[..5].iter().sum(),
                reads: numbers[0],
                bytes: numbers[5],
                microseconds: numbers[7] as f64,
            },
        ));
    }
    Ok(rows)
}

impl Asked {
    fn callbacks(&self, contestant: usize, name: &str) -> f64 {
        self.costs[contestant].get(name).map_or(f64::NAN, |cost| cost.callbacks as f64)
    }
}

/// For any question at most so many times the callbacks of the other library: fields are read one by one, as there, and then
/// confirmed.
const FOR_ONE: f64 = 1.4;

/// What is counted, and at most how many times as much of it there may be as of another library.
type Bound = (&'static str, fn(&Cost) -> u64, f64);

/// For all questions together, after the process was opened, at most so many times the callbacks, the reads and the bytes.
/// The other libraries believe a handle. Ours reads for each question whether its thread still has the region and the task.
const WHOLE_WALK: [Bound; 3] =
    [("callbacks", |cost| cost.callbacks, 1.1), ("reads", |cost| cost.reads, 2.7), ("bytes", |cost| cost.bytes, 4.6)];

/// Reads by which a process of 64 threads is opened.
const TO_OPEN: f64 = 100.0;

/// For each of the threads of the largest team at most so many times the reads as of the next smaller.
const LINEAR: f64 = 1.1;

impl Asked {
    /// The same of all questions but the first.
    fn walk(&self, contestant: usize, of: fn(&Cost) -> u64) -> f64 {
        let costs = &self.costs[contestant];
        ROWS[1..].iter().filter_map(|(name, _)| costs.get(*name)).map(|cost| of(cost) as f64).sum()
    }
}

/// What may be asked for at most.
pub fn limits(all: &[Asked]) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut limit = |what: String, measured: f64, unit, most: f64| {
        limits.push(Limit { what, measured, unit, kept: measured <= most });
    };
    for asked in all {
        let part = |name: &str| asked.callbacks(1, name) / asked.callbacks(0, name);
        let most = ROWS[1..].iter().map(|(name, _)| part(name)).fold(0.0, f64::max);
        let (threads, other) = (asked.threads, asked.other);
        let what = format!(
            "callbacks of a debugger at {threads} threads for any question, at most {FOR_ONE} × those for {other}'s library"
        );
        limit(what, most, "×", FOR_ONE);
    }
    for (before, asked) in all.iter().zip(all.iter().skip(1)) {
        let (threads, other) = (asked.threads, asked.other);
        if threads != SIZES[SIZES.len() - 1] || before.other != other {
            continue;
        }
        for (name, of, most) in WHOLE_WALK {
            let what = format!(
                "{name} of a debugger at {threads} threads for all questions, at most {most} × those for {other}'s library"
            );
            limit(what, asked.walk(1, of) / asked.walk(0, of), "×", most);
        }
        let each = |asked: &Asked| asked.walk(1, |cost| cost.reads) / asked.threads as f64;
        let what = format!(
            "reads of a debugger for each of {threads} threads, on {other}'s runtime, at most {LINEAR} × those for each of {}",
            before.threads
        );
        limit(what, each(asked) / each(before), "×", LINEAR);
        let opened = asked.costs[1].get("init").map_or(f64::NAN, |cost| cost.reads as f64);
        limit(format!("reads to open a process on {other}'s runtime, at most {TO_OPEN}"), opened, "reads", TO_OPEN);
        let total = |contestant| TOTAL.iter().map(|name| asked.callbacks(contestant, name)).sum::<f64>();
        let what = format!(
            "callbacks of a debugger that tells of stops at {threads} threads, threads, regions and tasks, at most {MOST_PART} × \
             those for {other}'s library"
        );
        limit(what, total(2) / total(0), "×", MOST_PART);
    }
    limits
}

/// The goal: what a debugger that does not tell of stops is asked.
pub fn goals(all: &[Asked]) -> Vec<Goal> {
    let largest = SIZES[SIZES.len() - 1];
    let walk = |contestant, asked: &Asked| asked.walk(contestant, |cost| cost.callbacks);
    let intel = all.iter().find(|asked| asked.other == "Intel" && asked.threads == largest);
    let part = intel.map(|asked| walk(1, asked) / walk(0, asked));
    let what = format!("callbacks of a debugger at {largest} threads for all questions, to those for Intel's library");
    vec![Goal::most(what, 0.5, "×", part)]
}

fn size(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1e3)
}

/// The rows of the document.
pub fn table(all: &[Asked]) -> String {
    let mut text = String::from(
        "| runtime | threads | question | the runtime's own library | `libompd.so` | `libompd.so`, told of stops |\n\
         |---|---:|---|---|---|---|\n",
    );
    for asked in all {
        for (name, shown) in ROWS {
            let [theirs, ours, told] = &asked.costs;
            let (Some(theirs), Some(ours), Some(told)) = (theirs.get(name), ours.get(name), told.get(name)) else {
                continue;
            };
            let plain =
                |cost: &Cost| format!("{} reads, {}, {:.2} ms", cost.reads, size(cost.bytes), cost.microseconds / 1e3);
            let cell = |cost: &Cost| {
                let part = cost.callbacks as f64 / theirs.callbacks as f64;
                format!("{} ({part:.2} ×), {}", cost.callbacks, plain(cost))
            };
            text += &format!(
                "| {} | {} | {shown} | {}, {} | {} | {} |\n",
                asked.other,
                asked.threads,
                theirs.callbacks,
                plain(theirs),
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

    fn asked(threads: usize, callbacks: [u64; 3]) -> Asked {
        let rows = |callbacks| {
            let cost = Cost { callbacks, reads: callbacks, bytes: 25 * callbacks, microseconds: 1500.0 };
            ROWS.iter().map(|(name, _)| ((*name).to_owned(), cost)).collect()
        };
        Asked { other: "Intel", threads, costs: callbacks.map(rows) }
    }

    #[test]
    fn limits_hold_by_row_and_in_total() {
        let kept = |callbacks: [u64; 3]| {
            let all = [asked(16, callbacks.map(|count| count / 4)), asked(64, callbacks)];
            limits(&all).iter().map(|limit| limit.kept).collect::<Vec<_>>()
        };
        // Of any question twice; then callbacks, reads, bytes, growth, opening, stops.
        assert_eq!(kept([100, 100, 25]), [true; 8]);
        assert_eq!(kept([90, 100, 25]), [true, true, false, true, true, true, true, false]);
        assert_eq!(kept([80, 120, 20]), [false, false, false, true, true, true, false, true]);
        assert_eq!(kept([20, 100, 4]), [false, false, false, false, false, true, true, true]);
        let steep = [asked(16, [100, 10, 1]), asked(64, [100, 50, 1])];
        assert!(limits(&steep).iter().any(|limit| limit.what.contains("for each of 64") && !limit.kept));
        assert!(limits(&[]).is_empty());
    }

    #[test]
    fn the_table_has_a_row_for_each_question() {
        let text = table(&[asked(64, [100, 50, 10])]);
        let row = "| Intel | 64 | control variables | 100, 100 reads, 2.5 kB, 1.50 ms | 50 (0.50 ×), 50 reads, 1.2 kB, 1.50 ms | \
                   10 (0.10 ×), 10 reads, 0.2 kB, 1.50 ms |";
        assert!(text.contains(row), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("| Intel | 64")).count(), ROWS.len());
    }
}
