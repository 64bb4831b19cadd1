//! What `ompd-inspect` says of a process, field by field against what the process says of itself: every test program,
//! compiler and runtime at hand, live and from core files.

mod common;

use std::io::Write as _;

use serde_json::Value;
use test_programs::{Address, Env, Kind, Opt, Running, Runtime, Thread, Toolchain, Truth, Wait, build, combinations};

/// Differences found, and how much was compared.
#[derive(Default)]
struct Comparison {
    compared: usize,
    differences: Vec<String>,
}

impl Comparison {
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: &T, truth: &T) {
        self.holds(ours == truth, || format!("{what}: reported {ours:?}, in truth {truth:?}"));
    }

    fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.compared += 1;
        if !holds {
            self.differences.push(what());
        }
    }
}

fn hex(address: Address) -> Value {
    Value::from(format!("{:#018x}", address.0))
}

fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// `omp_get_schedule` has numbers, the report words.
fn schedule(kind: i32, chunk: i32, monotonic: i32, runtime: Runtime) -> String {
    let kind = match kind {
        1 => "static",
        2 => "dynamic",
        3 => "guided",
        4 => "auto",
        other => return format!("kind {other}"),
    };
    // libomp gives a static schedule without chunk the chunk 0, libgomp too; both mean none was asked for.
    let chunk = if chunk > 0 { format!(",{chunk}") } else { String::new() };
    let monotonic = if monotonic != 0 && runtime == Runtime::Libgomp { "monotonic:" } else { "" };
    format!("{monotonic}{kind}{chunk}")
}

fn compare(truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain) -> Comparison {
    let mut all = Comparison::default();
    let family = if runtime.is_kmp() { "kmp" } else { "gomp" };
    let product = match runtime {
        Runtime::Libgomp => "GNU libgomp",
        Runtime::Libomp14 => "LLVM libomp",
        Runtime::Libiomp5 => "Intel libiomp5",
    };
    all.equal("issues", &report["issues"], &Value::Array(Vec::new()));
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let Some(ours) = runtimes.iter().find(|r| r["family"] == family && r["product"] == product) else {
        all.differences.push(format!("no {product} among the {} runtimes reported", runtimes.len()));
        return all;
    };
    for other in runtimes.iter().filter(|r| r["base"] != ours["base"]) {
        all.equal("threads of an unused runtime", &other["threads"], &Value::Array(Vec::new()));
    }
    all.equal("missing", &ours["missing"], &Value::Array(Vec::new()));

    let mut lwps: Vec<i64> = truth.threads.iter().map(|t| t.lwp.into()).collect();
    lwps.sort_unstable();
    let os_threads = report["os_threads"].as_array().expect("os_threads");
    let listed: Vec<i64> = os_threads.iter().filter_map(|t| t["lwp"].as_i64()).collect();
    all.equal("threads of the process", &listed, &lwps);
    let openmp: Vec<i64> =
        os_threads.iter().filter(|t| t["openmp"] == true).filter_map(|t| t["lwp"].as_i64()).collect();
    let known = ours["threads"].as_array().expect("threads");
    let known_lwps: Vec<i64> = known.iter().filter_map(|t| t["lwp"].as_i64()).collect();
    all.equal("OpenMP threads", &openmp, &known_lwps);

    for thread in &truth.threads {
        let of = format!("{} (LWP {})", thread.role, thread.lwp);
        let found = known.iter().find(|t| t["lwp"] == thread.lwp);
        match (found, &thread.api) {
            (Some(found), _) => compare_thread(&mut all, &of, thread, found, ours, runtime, toolchain),
            // A thread that never touched OpenMP is not OpenMP's.
            (None, None) => all.compared += 1,
            (None, Some(_)) => all.differences.push(format!("{of}: not reported")),
        }
    }
    compare_queued(&mut all, truth, ours);
    all
}

fn compare_thread(
    all: &mut Comparison,
    of: &str,
    thread: &Thread,
    found: &Value,
    runtime_report: &Value,
    runtime: Runtime,
    toolchain: Toolchain,
) {
    let teams = runtime_report["teams"].as_array().expect("teams");
    let Some(api) = &thread.api else {
        if thread.wait == Wait::Idle {
            all.equal(&format!("{of}: role"), &found["role"]["value"], &"idle worker".into());
            all.equal(&format!("{of}: wait"), &found["wait"]["value"]["kind"], &"next region".into());
            all.equal(&format!("{of}: state"), &found["state"]["value"]["name"], &"idle".into());
            all.holds(found["team"].get("value").is_some_and(Value::is_null), || {
                format!("{of}: team {}", found["team"])
            });
        }
        return;
    };
    let value = |key: &str| found[key]["value"].clone();
    all.equal(&format!("{of}: thread_num"), &value("thread_num"), &api.thread_num.into());
    // From the innermost team outwards: sizes, thread numbers, membership.
    let mut team = found["team"]["value"].as_u64();
    let mut num = api.thread_num;
    // A thread is a member of an enclosing team itself only if it was thread 0 all the way.
    let mut member = true;
    all.equal(&format!("{of}: in a team"), &team.is_some(), &(api.level > 0));
    for level in (1..=api.level).rev() {
        let Some(entry) = team.and_then(|index| teams.get(index as usize)) else {
            all.differences.push(format!("{of}: no team at level {level}"));
            break;
        };
        let truth = &api.levels[level as usize];
        let what = format!("{of}: level {level}");
        all.equal(&format!("{what}: level"), &entry["level"]["value"], &level.into());
        all.equal(&format!("{what}: size"), &entry["size"]["value"], &truth.team_size.into());
        all.equal(&format!("{what}: serialized"), &entry["serialized"]["value"], &(truth.team_size == 1).into());
        all.equal(&format!("{what}: ancestor number"), &num, &truth.ancestor_thread_num);
        if member {
            all.equal(&format!("{what}: member"), &entry["members"][num as usize], &thread.lwp.into());
        }
        member &= num == 0;
        num = entry["primary_num"]["value"].as_i64().unwrap_or(-1) as i32;
        team = entry["parent"]["value"].as_u64();
    }
    all.equal(&format!("{of}: beyond level 1"), &team, &None);
    if let Some(entry) = found["team"]["value"].as_u64().and_then(|index| teams.get(index as usize)) {
        all.equal(&format!("{of}: active level of team"), &entry["active_level"]["value"], &api.active_level.into());
    }

    let icv = |key: &str| found["icvs"][key]["value"].clone();
    all.equal(&format!("{of}: levels-var"), &icv("levels"), &api.level.into());
    all.equal(&format!("{of}: active-levels-var"), &icv("active_levels"), &api.active_level.into());
    all.equal(&format!("{of}: nthreads-var"), &icv("nthreads"), &api.max_threads.into());
    all.equal(&format!("{of}: dyn-var"), &icv("dynamic"), &(api.dynamic != 0).into());
    all.equal(&format!("{of}: max-active-levels-var"), &icv("max_active_levels"), &api.max_active_levels.into());
    let sched = schedule(api.schedule_kind, api.schedule_chunk, api.schedule_monotonic, runtime);
    all.equal(&format!("{of}: run-sched-var"), &icv("schedule"), &sched.into());
    // The API says INT_MAX where there is no limit.
    let limit = if api.thread_limit == i32::MAX { Value::Null } else { api.thread_limit.into() };
    all.equal(&format!("{of}: thread-limit-var"), &icv("thread_limit"), &limit);
    let bind = ["false", "true", "primary", "close", "spread"].get(api.proc_bind as usize).copied();
    if let Some(bind) = bind {
        all.equal(&format!("{of}: bind-var"), &icv("bind"), &bind.into());
    }

    compare_wait(all, of, thread, found, runtime);
    let Some(task) = &thread.task else { return };
    let Some(entry) = found["task"]["value"].as_u64().map(|index| &runtime_report["tasks"][index as usize]) else {
        all.differences.push(format!("{of}: no task ({})", found["task"]));
        return;
    };
    let kind = entry["kind"]["value"].as_str().unwrap_or("unknown");
    let expected = match task.kind {
        Kind::Initial => "initial",
        Kind::Implicit => "implicit",
        Kind::Explicit => "explicit",
    };
    all.equal(&format!("{of}: task kind"), &kind, &expected);
    all.equal(&format!("{of}: task state"), &entry["state"]["value"], &"running".into());
    all.equal(&format!("{of}: task's thread"), &entry["lwp"], &thread.lwp.into());
    all.equal(&format!("{of}: final"), &entry["final"]["value"], &(api.in_final != 0).into());
    // What the compiler made of the construct calls the body: the return address lies in it. GCC's function is the one
    // the runtime knows; clang's entry may have the real body in a function of its own next to it.
    let function = number(&entry["function"]["value"]["addr"]);
    match (task.kind, function) {
        (Kind::Explicit, None) => all.differences.push(format!("{of}: function of an explicit task unknown")),
        (Kind::Explicit | Kind::Implicit, Some(function)) if toolchain == Toolchain::Gcc => {
            let distance = task.called_from.0.wrapping_sub(function);
            all.holds(distance < 0x400, || {
                format!("{of}: function {function:#x}, called from {:#x}", task.called_from.0)
            });
        }
        (Kind::Explicit | Kind::Implicit, Some(function)) => {
            let distance = task.called_from.0.abs_diff(function);
            all.holds(distance < 0x4000, || {
                format!("{of}: function {function:#x}, called from {:#x}", task.called_from.0)
            });
        }
        _ => {}
    }
}

fn compare_wait(all: &mut Comparison, of: &str, thread: &Thread, found: &Value, runtime: Runtime) {
    let wait = &found["wait"]["value"];
    let kmp = runtime.is_kmp();
    let (kind, state) = match thread.wait {
        Wait::Lock | Wait::NestLock if kmp => ("lock", "wait_lock"),
        Wait::Lock | Wait::NestLock => ("lock or critical", "wait_mutex"),
        Wait::Critical => ("critical", "wait_critical"),
        Wait::Barrier if thread.role == "end waiter" => ("end of region", "wait_barrier_implicit_parallel"),
        Wait::Barrier => ("barrier", "wait_barrier"),
        Wait::Taskwait => ("taskwait", "wait_taskwait"),
        // libomp's taskgroup has children in it, so that memory does not tell it from a taskwait.
        Wait::Taskgroup if kmp => ("taskwait or taskgroup", ""),
        Wait::Taskgroup => ("taskgroup", "wait_taskgroup"),
        Wait::Idle => ("next region", "idle"),
        Wait::Pipe | Wait::Sleep => {
            // It is in abort(), in the C library, through which libomp waits as well: unknown is right.
            if thread.role == "crasher" && kmp && found["wait"].get("unknown").is_some() {
                return;
            }
            // Known not to wait in the runtime: a value, and that value is null.
            all.holds(found["wait"].get("value").is_some_and(Value::is_null), || {
                format!("{of}: wait reported {}, in truth not in the runtime", found["wait"])
            });
            let working = if thread.api.as_ref().is_some_and(|api| api.active_level > 0) {
                "work_parallel"
            } else {
                "work_serial"
            };
            all.equal(&format!("{of}: state"), &found["state"]["value"]["name"], &working.into());
            return;
        }
    };
    all.holds(wait["kind"] == kind, || format!("{of}: wait reported {}, in truth {kind}", found["wait"]));
    all.equal(&format!("{of}: state"), &found["state"]["value"]["name"].as_str().unwrap_or(""), &state);
    match (thread.wait, thread.wait_object) {
        // libomp's locks live in a table of the runtime; the variable only has the index.
        (Wait::Lock | Wait::NestLock | Wait::Critical, Some(object)) if !kmp => {
            all.equal(&format!("{of}: object"), &wait["object"], &hex(object));
        }
        (Wait::Critical, _) if kmp => {
            // By the variable the compiler made for it, in the program's symbol table.
            all.equal(&format!("{of}: name"), &wait["name"], &"critical (ledger)".into());
        }
        (Wait::Barrier, _) => all.equal(&format!("{of}: team of the barrier"), &wait["team"], &found["team"]["value"]),
        _ => {}
    }
}

/// Explicit tasks in the queues, by number: nobody can tell which is which before they run.
fn compare_queued(all: &mut Comparison, truth: &Truth, runtime: &Value) {
    let queued = truth.tasks.iter().filter(|t| t.state == test_programs::TaskState::Queued).count();
    let tasks = runtime["tasks"].as_array().expect("tasks");
    let ready = tasks.iter().filter(|t| t["state"]["value"] == "ready").count();
    all.equal("tasks ready to run", &ready, &queued);
}

fn check(what: &str, truth: &Truth, runtime: Runtime, toolchain: Toolchain, target: &str) -> Vec<String> {
    let (report, status) = common::json(&[target]);
    let mut comparison = compare(truth, &report, runtime, toolchain);
    comparison.equal("exit status of the command", &status, &0);
    // Directly, so that it is seen for passing tests as well.
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {} threads, {} values compared, {} differ",
        truth.threads.len(),
        comparison.compared,
        comparison.differences.len()
    );
    comparison.differences.iter().map(|d| format!("{what}: {d}")).collect()
}

/// Every compiler, optimisation level and runtime at hand; live, then from a core file of the same stop.
fn everywhere(program: &str) {
    let mut differences = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2] {
            let executable = build(program, toolchain, opt, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let what = format!("{program} {toolchain:?} {opt:?} on {runtime:?}");
            let pid = running.pid.to_string();
            differences.extend(check(&format!("{what}, live"), &running.truth, runtime, toolchain, &pid));
            compared += 1;
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => {
                    let core = core.to_str().expect("a plain path");
                    differences.extend(check(&format!("{what}, gcore"), &running.truth, runtime, toolchain, core));
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on to its end after the inspections");
        }
    }
    assert!(compared > 0, "no compiler and runtime to compare with");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name)); } )*
    };
}

programs!(nested, lock, tasks, barrier_missing, region_end, idle, user_pthread, serialized, icvs);

/// A crash in the middle of a nested region, as the kernel wrote it down.
#[test]
fn crash() {
    let mut differences = Vec::new();
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2] {
            let executable = build("crash", toolchain, opt, &[]).expect("the program builds");
            let directory = tempfile::tempdir().expect("a directory for the core");
            let crashed = test_programs::crash_core(&executable, runtime, Env::Settled, directory.path());
            match crashed.expect("the program crashes") {
                Ok(crashed) => {
                    let what = format!("crash {toolchain:?} {opt:?} on {runtime:?}, kernel core");
                    let core = crashed.core.to_str().expect("a plain path");
                    differences.extend(check(&what, &crashed.truth, runtime, toolchain, core));
                }
                Err(skip) => skip.show(),
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Stripped program on the stripped system libraries, without a single OpenMP variable: what users have.
#[test]
fn stripped_and_unprepared() {
    let mut differences = Vec::new();
    for (toolchain, runtime) in combinations() {
        let executable = build("barrier_missing", toolchain, Opt::O2, &["-s"]).expect("the program builds");
        let running = Running::start(&executable, runtime, Env::Stock).expect("the program starts");
        let what = format!("barrier_missing {toolchain:?} stripped, no variables, on {runtime:?}, live");
        differences.extend(check(&what, &running.truth, runtime, toolchain, &running.pid.to_string()));
        running.release().expect("the program goes on to its end");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
