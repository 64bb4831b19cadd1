//! Control variables that are lists, as a debugger gets them: the whole of them as text, and the first item as a number.

use ompd::api::*;
use ompd::types::*;
use test_programs::{Env, Launch, Opt, Running, build, combinations};

use crate::debugger::{Held, Session, out};

const NTHREADS: &str = "7,6,5,4";
const BIND: &str = "spread,close,master";

/// The values that a role of `lists.c` tells under a name: one for each level, from that of the task on.
fn witnessed(role: &str, name: &str) -> Vec<String> {
    let found = role.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {role}")).split(',').map(str::to_owned).collect()
}

/// A list with its last item repeated, as it counts for levels beyond its end.
fn extended(list: &str, to: usize) -> Vec<String> {
    let number = |item: &str| match item {
        "false" => "0".to_owned(),
        "primary" => "2".to_owned(),
        "close" => "3".to_owned(),
        "spread" => "4".to_owned(),
        other => other.to_owned(),
    };
    let items: Vec<String> = list.split(',').map(number).collect();
    let last = items.last().expect("an item").clone();
    items.into_iter().chain(std::iter::repeat(last)).take(to).collect()
}

/// The number, and whether there is more to it.
fn number<T>(session: &Session, handle: *mut T, name: &str) -> (Word, Rc) {
    let (id, scope) = session.icvs[name];
    let mut value = -1;
    let rc = unsafe { ompd_get_icv_from_scope(handle.cast(), scope, id, &raw mut value) };
    (value, rc)
}

/// A task: its list agrees with what the program met at each level, and its number with the first of these.
fn check_task(session: &Session, task: *mut TaskHandle, role: &str, prefix: &str, left: [usize; 2], what: &str) {
    for (name, short, left) in [("nthreads-var", "nthreads", left[0]), ("bind-var", "bind", left[1])] {
        let met = witnessed(role, &format!("{prefix}{short}"));
        let text = session.icv_text(task, name).unwrap_or_else(|rc| panic!("{what}: {name}: {rc:?}"));
        assert_eq!(extended(&text, met.len()), met, "{what}: {role}: {name}");
        assert_eq!(text.split(',').count(), left, "{what}: {role}: {name}");
        let (value, rc) = number(session, task, name);
        assert_eq!(value.to_string(), met[0], "{what}: {role}: {name}");
        assert_eq!(rc, if left > 1 { Rc::INCOMPLETE } else { Rc::OK }, "{what}: {role}: {name}");
    }
}

fn start(toolchain: test_programs::Toolchain, runtime: test_programs::Runtime, lists: bool) -> Running {
    let program = build("lists", toolchain, Opt::O0, &[]).expect("it builds");
    let mut launch = Launch::new(&program, runtime, Env::Stock).argument("9");
    if lists {
        launch = launch.variable("OMP_NUM_THREADS", NTHREADS).variable("OMP_PROC_BIND", BIND);
    }
    launch.start().expect("it starts")
}

#[test]
fn lists_as_text_and_their_first_items_as_numbers() {
    for (toolchain, runtime) in combinations() {
        for (lists, generous) in [(true, false), (true, true), (false, false)] {
            let what = format!("{toolchain:?} on {runtime:?}, lists: {lists}, registers: {generous}");
            let running = start(toolchain, runtime, lists);
            let session = Session::new(202_111, Held::live(running.pid, generous));
            for thread in &running.truth.threads {
                let handle = session.thread(thread_id::LWP, thread.lwp as u64).expect("a thread");
                let task = out(|task| unsafe { ompd_get_curr_task_handle(handle, task) }).expect("its task");
                // The task that met the region executes nothing meanwhile.
                let around =
                    out(|around| unsafe { ompd_get_generating_task_handle(task, around) }).expect("the one around it");
                let level = thread.api.as_ref().expect("a thread in a region").level as usize;
                let left = |level: usize| {
                    let items = |text: &str| text.split(',').count().saturating_sub(level).max(1);
                    if lists { [items(NTHREADS), items(BIND)] } else { [1, 1] }
                };
                check_task(&session, task, &thread.role, "", left(level), &what);
                check_task(&session, around, &thread.role, "around_", left(level - 1), &what);
                for task in [task, around] {
                    unsafe { assert_eq!(ompd_rel_task_handle(task), Rc::OK) };
                }
                unsafe { assert_eq!(ompd_rel_thread_handle(handle), Rc::OK) };
            }
            drop(session);
            running.release().expect("the program's end");
        }
    }
}

/// Debuggers that ask for OpenMP 5.0 know of no values that are incomplete, and ask threads for the number of threads.
#[test]
fn debuggers_of_openmp_5_0_get_numbers() {
    for (toolchain, runtime) in combinations() {
        let running = start(toolchain, runtime, true);
        let session = Session::new(201_811, Held::live(running.pid, false));
        for thread in &running.truth.threads {
            let handle = session.thread(thread_id::LWP, thread.lwp as u64).expect("a thread");
            let met = witnessed(&thread.role, "nthreads");
            let (value, rc) = number(&session, handle, "nthreads-var");
            assert_eq!((value.to_string(), rc), (met[0].clone(), Rc::OK), "{toolchain:?} on {runtime:?}");
            let text = session.icv_text(handle, "nthreads-var").expect("text");
            assert_eq!(extended(&text, met.len()), met, "{toolchain:?} on {runtime:?}");
            unsafe { assert_eq!(ompd_rel_thread_handle(handle), Rc::OK) };
        }
        drop(session);
        running.release().expect("the program's end");
    }
}
