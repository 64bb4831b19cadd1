//! What the command tells of threads, teams, tasks and control variables, and OMPD has functions for, those functions tell too.

use std::collections::BTreeMap;
use std::io::Write as _;

use ompd::api::*;
use ompd::extension::{ompdx_get_descriptor, ompdx_get_parallel_function, ompdx_report_json};
use ompd::types::*;
use ompd_runtime::icvs::REGISTRY;
use serde_json::Value;
use test_programs::{
    Env, HANGS, Launch, Opt, Runtime, Skip, Toolchain, build, can_build, combinations, native_combinations,
};

use crate::debugger::{Held, Session, out, take};

/// What was compared, and what the functions did not tell.
#[derive(Default)]
struct Told {
    equal: usize,
    different: Vec<String>,
    missing: BTreeMap<String, usize>,
}

impl Told {
    /// Something of the report that the functions have to tell as well.
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, of: &str, report: &T, told: Result<T, Rc>) {
        match told {
            Ok(told) if told == *report => self.equal += 1,
            Ok(told) => self.different.push(format!("{what} of {of}: {told:?}, in the report {report:?}")),
            Err(rc) => *self.missing.entry(format!("{what}: {rc:?}")).or_default() += 1,
        }
    }
}

/// A value that is known.
fn value(fact: &Value) -> Option<&Value> {
    fact.get("value")
}

fn hex(text: &Value) -> u64 {
    let text = text.as_str().expect("an address").trim_start_matches("0x");
    u64::from_str_radix(text, 16).expect("an address")
}

fn descriptor<T>(handle: *mut T) -> Result<u64, Rc> {
    out(|at: *mut Address| unsafe { ompdx_get_descriptor(handle.cast(), at) }).map(|at| at.address)
}

/// A control variable's value as OMPD's texts have it.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Bool(flag) => Some(u8::from(*flag).to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn icv<T>(told: &mut Told, session: &Session, name: &str, of: &str, handle: *mut T, report: &Value) {
    let Some(report) = text_of(report) else { return };
    let text = session.icv_text(handle, name);
    // OMPD has the chunk with every schedule.
    let with_chunk = |text: &str| name == "run-sched-var" && text.starts_with(&format!("{report},"));
    let text = text.map(|text| if with_chunk(&text) { report.clone() } else { text });
    told.same(name, of, &report, text);
}

struct Compared<'a> {
    session: &'a Session,
    teams: &'a [Value],
    tasks: &'a [Value],
}

impl Compared<'_> {
    fn thread(&self, told: &mut Told, thread: &Value) {
        let Some(lwp) = thread["lwp"].as_u64() else { return };
        let of = &format!("thread {lwp}");
        let handle = match self.session.thread(thread_id::LWP, lwp) {
            Ok(handle) => handle,
            Err(rc) => return told.same("handle", of, &(), Err(rc)),
        };
        told.same("descriptor", of, &hex(&thread["descriptor"]), descriptor(handle));
        if let Some(number) = value(&thread["thread_num"]).and_then(Value::as_i64) {
            told.same("thread-num-var", of, &number, self.session.icv(handle, "thread-num-var"));
        }
        if let Some(state) = value(&thread["state"]) {
            let number = state["number"].as_i64().expect("a number");
            let own = out(|state| unsafe { ompd_get_state(handle, state, std::ptr::null_mut()) });
            // A barrier's construct makes it another number.
            let at_barrier = |number: i64| (0x10..0x20).contains(&number);
            let own = own.map(|own| if at_barrier(own) && at_barrier(number) { number } else { own });
            told.same("state", of, &number, own);
        }
        self.wait_id(told, thread, of, handle);
        // A thread that is idle is in no region.
        let idle = value(&thread["role"]).is_some_and(|role| role == "idle worker");
        let team = value(&thread["team"]).filter(|_| !idle);
        let region = team.map(|team| self.team_of(told, of, handle, team));
        let task = value(&thread["task"]).and_then(Value::as_u64);
        let task = task.and_then(|task| {
            let own = out(|own| unsafe { ompd_get_curr_task_handle(handle, own) });
            told.same("current task", of, &(), own.map(drop));
            own.ok().inspect(|own| self.task(told, *own, &self.tasks[task as usize]))
        });
        for (key, report) in thread["icvs"].as_object().expect("control variables") {
            let entry = REGISTRY.iter().find(|entry| entry.key == Some(key.as_str()) && entry.ompd.is_some());
            let (Some(entry), Some(report)) = (entry, value(report)) else { continue };
            let Some((_, scope)) = self.session.icvs.get(entry.name()) else { continue };
            match *scope {
                scope::THREAD => icv(told, self.session, entry.name(), of, handle, report),
                scope::PARALLEL => {
                    if let Some(Some(region)) = region {
                        icv(told, self.session, entry.name(), of, region, report);
                    }
                }
                scope::TASK | scope::IMPLICIT_TASK => {
                    if let Some(task) = task {
                        icv(told, self.session, entry.name(), of, task, report);
                    }
                }
                _ => {}
            }
        }
    }

    /// What a thread waits for that holds a lock or the like.
    fn wait_id(&self, told: &mut Told, thread: &Value, of: &str, handle: *mut ThreadHandle) {
        let number = value(&thread["state"]).and_then(|state| state["number"].as_i64());
        let object = value(&thread["wait"]).filter(|wait| !wait.is_null()).map(|wait| hex(&wait["object"]));
        let (Some(0x40..=0x43), Some(object)) = (number, object) else { return };
        let mut state = 0;
        let wait_id = out(|wait_id| unsafe { ompd_get_state(handle, &raw mut state, wait_id) });
        told.same("wait id", of, &object, wait_id);
    }

    /// The region of a thread, and those around it.
    fn team_of(
        &self,
        told: &mut Told,
        of: &str,
        handle: *mut ThreadHandle,
        team: &Value,
    ) -> Option<*mut ParallelHandle> {
        let found = out(|region| unsafe { ompd_get_curr_parallel_handle(handle, region) });
        told.same("current region", of, &(), found.map(drop));
        let innermost = found.ok()?;
        let (mut region, mut team) = (innermost, team.clone());
        while let Some(id) = team.as_u64() {
            let own = &self.teams[id as usize];
            self.region(told, region, own, &format!("team {id}"));
            let Some(parent) = value(&own["parent"]) else { return Some(innermost) };
            let around = out(|around| unsafe { ompd_get_enclosing_parallel_handle(region, around) });
            told.same("enclosing region", of, &(), around.map(drop));
            (region, team) = (around.ok()?, parent.clone());
        }
        told.same("levels-var", of, &0, self.session.icv(region, "levels-var"));
        Some(innermost)
    }

    fn region(&self, told: &mut Told, region: *mut ParallelHandle, team: &Value, of: &str) {
        told.same("descriptor", of, &hex(&team["descriptor"]), descriptor(region));
        for (key, name) in [("level", "levels-var"), ("active_level", "active-levels-var"), ("size", "team-size-var")] {
            if let Some(number) = value(&team[key]).and_then(Value::as_i64) {
                told.same(name, of, &number, self.session.icv(region, name));
            }
        }
        if let Some(function) = value(&team["function"]).filter(|function| !function.is_null()) {
            let own = out(|at: *mut Address| unsafe { ompdx_get_parallel_function(region, at) });
            told.same("function", of, &hex(&function["addr"]), own.map(|at| at.address));
        }
        for (number, lwp) in team["members"].as_array().expect("members").iter().enumerate() {
            let Some(lwp) = lwp.as_u64() else { continue };
            let number = i32::try_from(number).expect("a number");
            let member = out(|member| unsafe { ompd_get_thread_in_parallel(region, number, member) });
            let id = member.and_then(|member| {
                out(|id: *mut u64| unsafe { ompd_get_thread_id(member, thread_id::LWP, 8, id.cast()) })
            });
            told.same("member", of, &lwp, id);
        }
    }

    /// A task, and those that generated it.
    fn task(&self, told: &mut Told, handle: *mut TaskHandle, task: &Value) {
        let (mut handle, mut task) = (handle, task);
        for _ in 0..self.tasks.len() {
            let of = &format!("task {}", task["descriptor"]);
            told.same("descriptor", of, &hex(&task["descriptor"]), descriptor(handle));
            if let Some(function) = value(&task["function"]).filter(|function| !function.is_null()) {
                let own = out(|at: *mut Address| unsafe { ompd_get_task_function(handle, at) });
                told.same("function of a task", of, &hex(&function["addr"]), own.map(|at| at.address));
            }
            if let Some(kind) = value(&task["kind"]).and_then(Value::as_str) {
                let implicit = Word::from(!["explicit", "undeferred"].contains(&kind));
                told.same("implicit-task-var", of, &implicit, self.session.icv(handle, "implicit-task-var"));
            }
            if let Some(is) = value(&task["final"]).and_then(Value::as_bool) {
                told.same("final-task-var", of, &Word::from(is), self.session.icv(handle, "final-task-var"));
            }
            let Some(generating) = value(&task["generating"]).and_then(Value::as_u64) else { return };
            let next = out(|next| unsafe { ompd_get_generating_task_handle(handle, next) });
            told.same("generating task", of, &(), next.map(drop));
            let Ok(next) = next else { return };
            (handle, task) = (next, &self.tasks[generating as usize]);
        }
    }
}

/// Compares the report with what functions tell, and says what is wrong. Each has a session of its own: what one has asked for, the
/// other does not find.
fn compare(held: impl Fn() -> Held, what: &str) -> Vec<String> {
    let reporting = Session::new(201_811, held());
    let text = take(out(|json| unsafe { ompdx_report_json(reporting.space, json) }).expect("a report"));
    drop(reporting);
    let session = &Session::new(201_811, held());
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let mut told = Told::default();
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    for runtime in runtimes {
        let list = |key: &str| runtime[key].as_array().expect("a list").as_slice();
        let compared = Compared { session, teams: list("teams"), tasks: list("tasks") };
        for thread in list("threads") {
            compared.thread(&mut told, thread);
        }
        // Of the process OMPD tells those of the runtime that has its threads: what else is loaded has one at most.
        let most = |of: &Value| of["threads"].as_array().map_or(0, Vec::len);
        if runtimes.iter().any(|other| most(other) > most(runtime)) {
            continue;
        }
        for setting in list("icvs") {
            let name = setting["name"].as_str().expect("a name");
            if let (Some(report), true) = (value(&setting["value"]), session.icvs.contains_key(name)) {
                icv(&mut told, session, name, "the process", session.space, report);
            }
        }
    }
    assert!(told.equal > 20, "{what}: {} values", told.equal);
    let missing = told.missing.iter().map(|(of, times)| format!("{of}, {times} times: not told"));
    let wrong: Vec<String> =
        told.different.iter().cloned().chain(missing).map(|line| format!("{what}: {line}")).collect();
    let _ = writeln!(std::io::stderr(), "{what}: {} told, {} wrong", told.equal, wrong.len());
    wrong
}

fn run(program: &str) {
    let mut wrong = Vec::new();
    for (toolchain, runtime) in native_combinations() {
        let can = toolchain.check().and_then(|()| runtime.library().map(drop));
        if let Err(skip) = can.and_then(|()| can_build(program, toolchain).expect("compilers answer")) {
            skip.show();
            continue;
        }
        let executable = build(program, toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start().expect("it starts");
        let directory = tempfile::tempdir().expect("a directory");
        let core = running.gcore(directory.path()).expect("gcore runs").inspect_err(Skip::show).ok();
        let what = format!("{program}, {toolchain:?} on {runtime:?}");
        wrong.extend(compare(|| Held::live(running.pid, true), &what));
        if let Some(core) = core {
            wrong.extend(compare(|| Held::core(&core, true), &format!("{what}, core")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs that hang, each once, from a core: some of their threads move, and each question is a look of its own.
#[test]
fn hangs() {
    let (mut tried, mut wrong) = (0, Vec::new());
    let cases = || HANGS.iter().filter(|case| case.flags.is_empty());
    for (number, case) in cases().enumerate() {
        let can = |toolchain: Toolchain, runtime: Runtime| {
            toolchain.check()?;
            runtime.library()?;
            can_build(case.program, toolchain).expect("the sources are there")
        };
        let all = combinations().into_iter().filter(|(toolchain, runtime)| case.works(*toolchain, *runtime));
        let here: Vec<_> = all.filter(|(toolchain, runtime)| can(*toolchain, *runtime).is_ok()).collect();
        let Some((toolchain, runtime)) = here.get(number % here.len().max(1)) else { continue };
        let executable = build(case.program, *toolchain, Opt::O2, case.flags).expect("it builds");
        let running = Launch::new(&executable, *runtime, Env::Settled).start_hanging().expect("it hangs");
        let directory = tempfile::tempdir().expect("a directory");
        let core = match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => core,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        drop(running);
        let what = format!("{} {:?}, {toolchain:?} on {runtime:?}", case.program, case.flags);
        wrong.extend(compare(|| Held::core(&core, true), &what));
        tried += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > cases().count() / 2 || combinations().is_empty(), "{tried} of {}", cases().count());
}

programs!(barrier_missing, nested, serialized, tasks, lock, icvs, idle, user_pthread, stacks_cpp, stacks_fortran);
