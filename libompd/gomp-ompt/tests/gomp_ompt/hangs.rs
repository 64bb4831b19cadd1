//! Programs that hang on libgomp get their verdict with the owners of all locks, as the companion knows them.

use ompd_inspection as inspection;
use ompd_process::OpenOptions;
use ompd_report::json;
use test_programs::{Env, HANGS, Launch, Opt, Toolchain, build, can_build, combinations, compare_verdicts};

use crate::common::{companion, preload};

/// The whole report on a process, as `ompd-inspect --json` prints it.
pub fn report(pid: i32) -> serde_json::Value {
    let wanted = inspection::Wanted {
        layouts: ompd_runtime::LayoutsFrom::default(),
        locals: false,
        verdicts: inspection::Verdicts::Confirmed,
        samples: 1,
        interval: std::time::Duration::ZERO,
        turns: None,
    };
    let found = inspection::inspect(&pid.to_string(), &OpenOptions::default(), wanted).expect("it can be inspected");
    serde_json::to_value(json::report(&found)).expect("it is JSON")
}

#[test]
fn verdicts_on_libgomp_know_the_owners_of_locks() {
    let Some(companion) = companion() else { return };
    let preload = preload();
    let (mut tried, mut differences) = (0, Vec::new());
    for (toolchain, runtime) in combinations() {
        if toolchain != Toolchain::Gcc || runtime.is_kmp() {
            continue;
        }
        for case in HANGS.iter().filter(|case| case.works(toolchain, runtime)) {
            // That a thread waits for a lock of its own is nearer than that nobody runs the task which would unset it.
            if case.program == "hangs/task_never_run" && case.flags.is_empty() {
                continue;
            }
            if can_build(case.program, toolchain).expect("the sources are there").is_err() {
                continue;
            }
            let executable = build(case.program, toolchain, Opt::O2, case.flags).expect("it builds");
            let launch = Launch::new(&executable, runtime, Env::Settled)
                .variable("LD_PRELOAD", &preload)
                .variable("OMP_TOOL_LIBRARIES", &companion);
            let running = launch.start_hanging().expect("it hangs");
            let owners = case.program.starts_with("hangs/lock_cycle") || case.program.starts_with("hangs/self_lock");
            let owners = owners || running.truth.owners_recorded(runtime);
            let what = format!("{} {:?} {toolchain:?} on {runtime:?}", case.program, case.flags);
            differences.extend(case.look(|| {
                let comparison = compare_verdicts(&running.truth, &report(running.pid), owners);
                comparison.all().map(|line| format!("{what}: {line}")).collect()
            }));
            tried += 1;
        }
    }
    assert!(tried > 0 || combinations().is_empty());
    assert!(
        differences.is_empty(),
        "{tried} processes, {} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
