//! What a report says of a process, field by field against what the process says of itself.

use serde_json::Value;

use crate::{Address, Api, Kind, Runtime, TaskState, Thread, Toolchain, Truth, Wait};

/// The outcome of [`compare`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// How many values were compared with the truth; those in the lists are among them.
    pub compared: usize,
    /// What the report says to be unknown, or does not have: one line each.
    pub unknown: Vec<String>,
    /// What the report says and is not true: one line each.
    pub differences: Vec<String>,
    /// What the report itself says to be lacking: its issues, and the parts of the layout nobody knows. Not counted.
    pub lacking: Vec<String>,
}

impl Comparison {
    /// All that is wrong, unknown or lacking, one line each.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        [&self.differences, &self.unknown, &self.lacking].into_iter().flatten()
    }

    /// Compares what has to be known.
    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: &T, truth: &T) {
        self.holds(ours == truth, || format!("{what}: reported {ours:?}, in truth {truth:?}"));
    }

    pub(crate) fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        self.compared += 1;
        if !holds {
            self.differences.push(what());
        }
    }

    /// Compares a value of the report that may be unknown.
    fn fact(&mut self, what: &str, fact: &Value, truth: &Value) {
        if let Some(value) = self.known(what, fact) {
            self.equal(what, value, truth);
        }
    }

    /// The value, or nothing, after noting that it is unknown.
    fn known<'v>(&mut self, what: &str, fact: &'v Value) -> Option<&'v Value> {
        match fact.get("unknown") {
            Some(why) => {
                self.lacks(format!("{what}: {}", why.as_str().unwrap_or("no reason")));
                None
            }
            None => Some(&fact["value"]),
        }
    }

    pub(crate) fn lacks(&mut self, what: String) {
        self.compared += 1;
        self.unknown.push(what);
    }
}

/// The elements of a list of the report; a list that is not there has none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The element that an index in the report names.
fn element<'v>(elements: &'v [Value], index: &Value) -> Option<&'v Value> {
    elements.get(usize::try_from(index.as_u64()?).ok()?)
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

/// Compares a report of `ompd-inspect --json`, of a process that runs on `runtime`, with what the process says of itself.
pub fn compare(truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain) -> Comparison {
    let mut all = Comparison::default();
    let family = if runtime.is_kmp() { "kmp" } else { "gomp" };
    let product = match runtime {
        Runtime::Libgomp => "GNU libgomp",
        Runtime::Libomp14 => "LLVM libomp",
        Runtime::Libiomp5 => "Intel libiomp5",
    };
    for issue in list(&report["issues"]) {
        all.lacking.push(format!("issue: {issue}"));
    }
    let runtimes = list(&report["runtimes"]);
    let Some(ours) = runtimes.iter().find(|r| r["family"] == family && r["product"] == product) else {
        all.differences.push(format!("no {product} among the {} runtimes reported", runtimes.len()));
        return all;
    };
    for other in runtimes.iter().filter(|r| r["base"] != ours["base"]) {
        all.equal("threads of an unused runtime", &other["threads"], &Value::Array(Vec::new()));
    }
    for missing in list(&ours["missing"]) {
        all.lacking.push(format!("missing: {missing}"));
    }

    let mut lwps: Vec<i64> = truth.threads.iter().map(|t| t.lwp.into()).collect();
    lwps.sort_unstable();
    let os_threads = list(&report["os_threads"]);
    let listed: Vec<i64> = os_threads.iter().filter_map(|t| t["lwp"].as_i64()).collect();
    all.equal("threads of the process", &listed, &lwps);
    let openmp: Vec<i64> =
        os_threads.iter().filter(|t| t["openmp"] == true).filter_map(|t| t["lwp"].as_i64()).collect();
    let known = list(&ours["threads"]);
    let known_lwps: Vec<i64> = known.iter().filter_map(|t| t["lwp"].as_i64()).collect();
    all.equal("OpenMP threads", &openmp, &known_lwps);

    for thread in &truth.threads {
        let of = format!("{} (LWP {})", thread.role, thread.lwp);
        let found = known.iter().find(|t| t["lwp"] == thread.lwp);
        match (found, &thread.api) {
            (Some(found), _) => compare_thread(&mut all, &of, thread, found, ours, runtime, toolchain),
            // A thread that never touched OpenMP is not OpenMP's.
            (None, None) => all.compared += 1,
            (None, Some(_)) => all.lacks(format!("{of}: not reported")),
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
    let teams = list(&runtime_report["teams"]);
    let Some(api) = &thread.api else {
        if thread.wait == Wait::Idle {
            all.fact(&format!("{of}: role"), &found["role"], &"idle worker".into());
            if let Some(wait) = all.known(&format!("{of}: wait"), &found["wait"]) {
                all.equal(&format!("{of}: wait"), &wait["kind"], &"next region".into());
            }
            if let Some(state) = all.known(&format!("{of}: state"), &found["state"]) {
                all.equal(&format!("{of}: state"), &state["name"], &"idle".into());
            }
            all.fact(&format!("{of}: team"), &found["team"], &Value::Null);
        }
        return;
    };
    all.fact(&format!("{of}: thread_num"), &found["thread_num"], &api.thread_num.into());
    compare_teams(all, of, thread.lwp, api, found, teams);

    let sched = schedule(api.schedule_kind, api.schedule_chunk, api.schedule_monotonic, runtime);
    // The API says INT_MAX where there is no limit.
    let limit = if api.thread_limit == i32::MAX { Value::Null } else { api.thread_limit.into() };
    let mut icv = |name: &str, key: &str, truth: Value| {
        all.fact(&format!("{of}: {name}-var"), &found["icvs"][key], &truth);
    };
    icv("levels", "levels", api.level.into());
    icv("active-levels", "active_levels", api.active_level.into());
    icv("nthreads", "nthreads", api.max_threads.into());
    icv("dyn", "dynamic", (api.dynamic != 0).into());
    icv("max-active-levels", "max_active_levels", api.max_active_levels.into());
    icv("run-sched", "schedule", sched.into());
    icv("thread-limit", "thread_limit", limit);
    if let Some(bind) = ["false", "true", "primary", "close", "spread"].get(api.proc_bind as usize) {
        icv("bind", "bind", (*bind).into());
    }

    compare_wait(all, of, thread, found, runtime);
    let Some(task) = &thread.task else { return };
    let Some(index) = all.known(&format!("{of}: task"), &found["task"]) else { return };
    let Some(entry) = element(list(&runtime_report["tasks"]), index) else {
        all.differences.push(format!("{of}: no task {index}"));
        return;
    };
    let expected = match task.kind {
        Kind::Initial => "initial",
        Kind::Implicit => "implicit",
        Kind::Explicit => "explicit",
    };
    all.fact(&format!("{of}: task kind"), &entry["kind"], &expected.into());
    all.fact(&format!("{of}: task state"), &entry["state"], &"running".into());
    all.equal(&format!("{of}: task's thread"), &entry["lwp"], &thread.lwp.into());
    all.fact(&format!("{of}: final"), &entry["final"], &(api.in_final != 0).into());
    // What the compiler made of the construct calls the body: the return address lies in it. GCC's function is the one
    // the runtime knows; clang's entry may have the real body in a function of its own next to it.
    let function = number(&entry["function"]["value"]["addr"]);
    match (task.kind, function) {
        (Kind::Explicit, None) => all.lacks(format!("{of}: function of an explicit task")),
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

/// From the innermost team outwards: sizes, thread numbers, membership.
fn compare_teams(all: &mut Comparison, of: &str, lwp: i32, api: &Api, found: &Value, teams: &[Value]) {
    let Some(mut team) = all.known(&format!("{of}: team"), &found["team"]) else { return };
    all.equal(&format!("{of}: in a team"), &team.is_u64(), &(api.level > 0));
    if let Some(entry) = element(teams, team) {
        all.fact(&format!("{of}: active level of team"), &entry["active_level"], &api.active_level.into());
    }
    let mut num = i64::from(api.thread_num);
    // A thread is a member of an enclosing team itself only if it was thread 0 all the way.
    let mut member = true;
    for (level, truth) in api.levels.iter().enumerate().skip(1).rev() {
        let what = format!("{of}: level {level}");
        let Some(entry) = element(teams, team) else {
            all.differences.push(format!("{what}: no such team"));
            return;
        };
        all.fact(&format!("{what}: level"), &entry["level"], &level.into());
        all.fact(&format!("{what}: size"), &entry["size"], &truth.team_size.into());
        all.fact(&format!("{what}: serialized"), &entry["serialized"], &(truth.team_size == 1).into());
        all.equal(&format!("{what}: ancestor number"), &num, &truth.ancestor_thread_num.into());
        if member {
            match usize::try_from(num).map(|num| &entry["members"][num]) {
                Ok(Value::Null) | Err(_) => all.lacks(format!("{what}: member {num}")),
                Ok(found) => all.equal(&format!("{what}: member"), found, &lwp.into()),
            }
        }
        member &= num == 0;
        let Some(outer) = all.known(&format!("{what}: enclosing team"), &entry["parent"]) else { return };
        team = outer;
        if level > 1 {
            let Some(outer) = all.known(&format!("{what}: number outside"), &entry["primary_num"]) else { return };
            num = outer.as_i64().unwrap_or(-1);
        }
    }
    all.equal(&format!("{of}: beyond level 1"), team, &Value::Null);
}

fn compare_wait(all: &mut Comparison, of: &str, thread: &Thread, found: &Value, runtime: Runtime) {
    let kmp = runtime.is_kmp();
    // Which function the program called is not always to be seen: without it, memory does not tell these apart.
    let no_call = found["wait"]["value"].get("call").is_none();
    let (kind, state) = match thread.wait {
        Wait::Lock if no_call && !kmp => ("lock or critical", "wait_mutex"),
        // What it has behind its word tells a nest lock from the others.
        Wait::Lock | Wait::NestLock => ("lock", "wait_lock"),
        Wait::Critical => ("critical", "wait_critical"),
        Wait::Barrier if thread.role == "end waiter" => ("end of region", "wait_barrier_implicit_parallel"),
        Wait::Barrier => ("barrier", "wait_barrier"),
        Wait::Taskwait => ("taskwait", "wait_taskwait"),
        // libomp's taskgroup has children in it, as a taskwait has.
        Wait::Taskgroup if no_call && kmp => ("taskwait or taskgroup", ""),
        Wait::Taskgroup => ("taskgroup", "wait_taskgroup"),
        Wait::Idle => ("next region", "idle"),
        Wait::Ordered => ("ordered", "wait_ordered"),
        Wait::Event => ("event", ""),
        Wait::Pipe | Wait::Sleep | Wait::Yield | Wait::Join | Wait::Mutex | Wait::Other => {
            // It is in abort(), in the C library, through which libomp waits as well: unknown is right.
            if thread.role == "crasher" && kmp && found["wait"].get("unknown").is_some() {
                return;
            }
            // Known not to wait in the runtime: a value, and that value is null.
            all.fact(&format!("{of}: wait"), &found["wait"], &Value::Null);
            let working = if thread.api.as_ref().is_some_and(|api| api.active_level > 0) {
                "work_parallel"
            } else {
                "work_serial"
            };
            if let Some(state) = all.known(&format!("{of}: state"), &found["state"]) {
                all.equal(&format!("{of}: state"), &state["name"], &working.into());
            }
            return;
        }
    };
    match state {
        // Wherever memory leaves it open, or OMPT has no state for it.
        "" => all.holds(found["state"].get("unknown").is_some(), || format!("{of}: state {}", found["state"])),
        _ => {
            if let Some(found) = all.known(&format!("{of}: state"), &found["state"]) {
                all.equal(&format!("{of}: state"), &found["name"], &state.into());
            }
        }
    }
    let Some(wait) = all.known(&format!("{of}: wait"), &found["wait"]) else { return };
    all.holds(wait["kind"] == kind, || format!("{of}: wait reported {wait}, in truth {kind}"));
    match (thread.wait, thread.wait_object) {
        // libomp's locks live in a table of the runtime; the variable only has the index.
        (Wait::Lock | Wait::NestLock | Wait::Critical, Some(object)) if !kmp => {
            all.equal(&format!("{of}: object"), &wait["object"], &hex(object));
        }
        (Wait::Critical, _) if kmp => {
            // By the variable the compiler made for it, in the program's symbol table.
            all.equal(&format!("{of}: name"), &wait["name"], &"critical (ledger)".into());
        }
        (Wait::Barrier, _) => {
            if let Some(team) = all.known(&format!("{of}: team"), &found["team"]) {
                all.equal(&format!("{of}: team of the barrier"), &wait["team"], team);
            }
        }
        _ => {}
    }
}

/// Explicit tasks in the queues, by number: nobody can tell which is which before they run.
fn compare_queued(all: &mut Comparison, truth: &Truth, runtime: &Value) {
    let queued = truth.tasks.iter().filter(|t| t.state == TaskState::Queued).count();
    let ready = list(&runtime["tasks"]).iter().filter(|t| t["state"]["value"] == "ready").count();
    // Without a part of the layout the queues cannot be found, or not told from what has been run.
    if ready < queued && !list(&runtime["missing"]).is_empty() {
        all.lacks(format!("{} of {queued} tasks ready to run", queued - ready));
    } else {
        all.equal("tasks ready to run", &ready, &queued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, ProgramFacts, Task};
    use serde_json::json;

    /// One thread, number 1 of a team of 2, at a barrier.
    fn truth() -> Truth {
        let api = Api {
            thread_num: 1,
            num_threads: 2,
            level: 1,
            active_level: 1,
            levels: Vec::from([
                Level { ancestor_thread_num: 0, team_size: 1 },
                Level { ancestor_thread_num: 1, team_size: 2 },
            ]),
            in_parallel: 1,
            in_final: 0,
            max_threads: 4,
            dynamic: 0,
            schedule_kind: 2,
            schedule_chunk: 1,
            schedule_monotonic: 0,
            max_active_levels: 1,
            thread_limit: i32::MAX,
            proc_bind: 0,
            cancellation: 0,
            default_device: 0,
            max_task_priority: 0,
            num_procs: 2,
            num_places: 0,
            place_num: -1,
        };
        let (function, kind) = ("body".to_owned(), Kind::Implicit);
        let thread = Thread {
            role: "waiter".to_owned(),
            lwp: 7,
            pthread: Address(0x7000),
            wait: Wait::Barrier,
            wait_object: None,
            task: Some(Task { kind, function, address: Address(0x1000), called_from: Address(0x2010) }),
            api: Some(api),
        };
        let program = ProgramFacts { name: "one".to_owned(), pid: 7, openmp: 201_511 };
        Truth {
            program,
            threads: Vec::from([thread]),
            locks: Vec::new(),
            tasks: Vec::new(),
            coordinator: 7,
            expectation: None,
            gone: Vec::new(),
            objects: Vec::new(),
            stacks: Vec::new(),
            stack_tasks: Vec::new(),
        }
    }

    fn report() -> Value {
        let known = |value: Value| json!({ "value": value, "origin": "code" });
        json!({
            "issues": [],
            "os_threads": [{ "lwp": 7, "openmp": true }],
            "runtimes": [{
                "family": "gomp", "product": "GNU libgomp", "base": "0x1", "missing": [],
                "threads": [{
                    "lwp": 7,
                    "thread_num": known(json!(1)), "team": known(json!(0)), "task": known(json!(0)),
                    "state": known(json!({ "name": "wait_barrier" })),
                    "wait": known(json!({ "kind": "barrier", "team": 0 })),
                    "icvs": {
                        "nthreads": known(json!(4)), "dynamic": known(json!(false)),
                        "schedule": known(json!("dynamic,1")), "max_active_levels": known(json!(1)),
                        "thread_limit": known(Value::Null), "bind": known(json!("false")),
                        "levels": known(json!(1)), "active_levels": known(json!(1)),
                    },
                }],
                "teams": [{
                    "size": known(json!(2)), "level": known(json!(1)), "active_level": known(json!(1)),
                    "parent": known(Value::Null), "primary_num": known(json!(0)),
                    "serialized": known(json!(false)), "members": [null, 7],
                }],
                "tasks": [{
                    "kind": known(json!("implicit")), "state": known(json!("running")), "lwp": 7,
                    "function": known(json!({ "addr": "0x2000" })), "final": known(json!(false)),
                }],
            }],
        })
    }

    fn compare_with(report: &Value) -> Comparison {
        compare(&truth(), report, Runtime::Libgomp, Toolchain::Gcc)
    }

    /// Every place of the report that says something which can be compared.
    const PLACES: [&str; 22] = [
        "threads/0/thread_num",
        "threads/0/team",
        "threads/0/task",
        "threads/0/state",
        "threads/0/wait",
        "threads/0/icvs/nthreads",
        "threads/0/icvs/dynamic",
        "threads/0/icvs/schedule",
        "threads/0/icvs/max_active_levels",
        "threads/0/icvs/thread_limit",
        "threads/0/icvs/bind",
        "threads/0/icvs/levels",
        "threads/0/icvs/active_levels",
        "teams/0/size",
        "teams/0/level",
        "teams/0/active_level",
        "teams/0/parent",
        "teams/0/serialized",
        "tasks/0/kind",
        "tasks/0/state",
        "tasks/0/final",
        "tasks/0/function",
    ];

    #[test]
    fn a_true_report_passes() {
        let all = compare_with(&report());
        assert!(all.compared > 20, "{all:?}");
        assert_eq!((all.differences.len(), all.unknown.len(), all.lacking.len()), (0, 0, 0), "{all:?}");
    }

    #[test]
    fn a_wrong_value_is_a_difference() {
        for place in PLACES {
            let mut report = report();
            let fact = report.pointer_mut(&format!("/runtimes/0/{place}/value")).expect(place);
            // Of no value of the report, whatever its type.
            *fact = match place {
                "tasks/0/function" => json!({ "addr": "0x1" }),
                _ => json!(9),
            };
            let all = compare_with(&report);
            assert!(!all.differences.is_empty(), "{place}: {all:?}");
        }
        let mut report = report();
        report["runtimes"][0]["teams"][0]["members"][1] = json!(8);
        assert_eq!(compare_with(&report).differences.len(), 1);
    }

    #[test]
    fn an_unknown_value_is_unknown_and_no_difference() {
        for place in PLACES.iter().filter(|place| **place != "tasks/0/function") {
            let mut report = report();
            let fact = report.pointer_mut(&format!("/runtimes/0/{place}")).expect(place);
            *fact = json!({ "unknown": "somebody took it" });
            let all = compare_with(&report);
            assert!(all.differences.is_empty(), "{place}: {all:?}");
            assert!(!all.unknown.is_empty(), "{place}: {all:?}");
        }
        let mut report = report();
        report["runtimes"][0]["threads"] = json!([]);
        report["os_threads"][0]["openmp"] = json!(false);
        let all = compare_with(&report);
        assert_eq!((all.differences.len(), all.unknown.len()), (0, 1), "{all:?}");
    }
}
