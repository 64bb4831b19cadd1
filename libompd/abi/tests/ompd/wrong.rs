//! Debuggers that do everything wrong, and such that load the library again and again.

use std::path::{Path, PathBuf};
use std::process::Command;

use test_programs::{Env, Launch, Opt, Running, Skip, build, native_combinations};

use crate::client::{CHECKED_LIBRARY, SANITIZED, VALGRIND, compiled, has_valgrind, header, library, skip, symbols};

/// Runs a client under something, and returns what it has printed.
fn run(under: &[&str], client: &Path, arguments: &[String], set: &[(&str, &str)]) -> String {
    let mut words: Vec<String> = under.iter().map(|&word| word.to_owned()).collect();
    words.push(client.display().to_string());
    words.extend_from_slice(arguments);
    let done = Command::new(&words[0]).args(&words[1..]).envs(set.iter().copied()).output().expect("the client runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

/// Calls in a wrong order. Returns how often each code was returned.
fn wrong(
    under: &[&str],
    client: &Path,
    what: &Path,
    running: &Running,
    list: &Path,
    seed: u64,
    steps: u64,
) -> Vec<u64> {
    let what = what.display().to_string();
    let lwp = running.truth.coordinator.to_string();
    let list = list.display().to_string();
    let library = library().display().to_string();
    let text = run(under, client, &[library, what, lwp, list, seed.to_string(), steps.to_string()], &[]);
    assert!(text.ends_with("\nallocated 0\n"), "all that the debugger gave came back, seed {seed}: {text}");
    assert!(!text.contains("WRITE"), "the library never writes");
    let codes = text.lines().find_map(|line| line.strip_prefix("codes ")).expect("codes");
    codes.split(' ').map(|count| count.parse().expect("a number")).collect()
}

#[test]
fn wrong_orders_and_callbacks_that_fail_and_lie_do_no_harm() {
    let header = header();
    let directory = tempfile::tempdir().expect("a directory");
    let client = |flags: &[&str]| -> Option<PathBuf> {
        compiled("wrong", directory.path(), "gcc", &header, flags).inspect_err(|why| skip(why)).ok()
    };
    let (Some(plain), sanitized) = (client(&[]), client(SANITIZED)) else { return };
    let is_checked = std::env::var_os(CHECKED_LIBRARY).is_some();
    assert!(!is_checked || sanitized.is_some(), "nothing can load the library");
    let mut valgrind = !is_checked && has_valgrind();
    let mut codes = vec![0; 14];
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        std::fs::write(format!("/proc/{}/coredump_filter", running.pid), "0x7f").expect("what goes into a core");
        let core = running.gcore(directory.path()).expect("gcore runs").inspect_err(Skip::show).ok();
        let live = PathBuf::from(running.pid.to_string());
        for client in [(!is_checked).then_some(&plain), sanitized.as_ref()].into_iter().flatten() {
            for (what, seeds) in [(Some(&live), 1..=3), (core.as_ref(), 4..=5)] {
                let Some(what) = what else { continue };
                for seed in seeds {
                    let returned = wrong(&[], client, what, &running, &list, seed, 800);
                    codes.iter_mut().zip(returned).for_each(|(all, own)| *all += own);
                }
            }
        }
        // Once is enough: it is the library that is looked at.
        if std::mem::take(&mut valgrind) {
            wrong(VALGRIND, &plain, &live, &running, &list, 4, 400);
        }
    }
    // Done, unavailable, stale, bad input, error and no memory: a client that is refused everything would show nothing.
    assert!([0, 1, 2, 3, 4, 10].iter().all(|&rc| codes[rc] > 0) && codes[0] > 500, "{codes:?}");
}

#[test]
fn nothing_is_lost_when_it_is_loaded_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let client = compiled("client", directory.path(), "gcc", &header(), &[]).inspect_err(|why| skip(why));
    let Ok(client) = client else { return };
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        let arguments = [
            "--again".to_owned(),
            library().display().to_string(),
            running.pid.to_string(),
            running.truth.coordinator.to_string(),
            list.display().to_string(),
        ];
        // What malloc keeps at hand for the next one that asks, it counts as used.
        let tunables = "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0";
        let text = run(&[], &client, &arguments, &[("GLIBC_TUNABLES", tunables)]);
        let used: Vec<&str> = text.lines().map(|line| line.splitn(3, ' ').last().expect("a number")).collect();
        // At first there is what is made once.
        assert_eq!(used.len(), 12, "{text}");
        assert!(used[2..].iter().all(|own| own == used.last().expect("there are some")), "{runtime:?}: {text}");
    }
}
