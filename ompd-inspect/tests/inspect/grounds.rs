//! `doctor --why`: the bytes that it names, against what the command says when they are changed in a core.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ompd_report::fields::{self, Fields};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Segments, Skip, Toolchain, build, native_combinations};

use crate::common::{self, Schema, bounded, command, texts};

/// Bytes of a target, as the document has them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Bytes {
    address: u64,
    size: u64,
    field: String,
}

fn hex(text: &Value) -> u64 {
    let digits = text.as_str().and_then(|text| text.strip_prefix("0x")).expect("an address");
    u64::from_str_radix(digits, 16).expect("an address")
}

/// What a value rests on.
fn why(field: &str, target: &str) -> (Value, Vec<Bytes>) {
    let (out, err, status) = texts(&bounded(command().args(["doctor", "--json", "--why", field, target])));
    // On a busy machine there may be no time to change each word alone.
    assert!(status < 2 && err.is_empty(), "{field}: {out}{err}");
    let document: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(Schema::of("grounds").faults(&document), [""; 0]);
    let bytes = document["bytes"].as_array().expect("bytes").iter().map(|bytes| Bytes {
        address: hex(&bytes["address"]),
        size: bytes["size"].as_u64().expect("a size"),
        field: bytes["field"].as_str().unwrap_or_default().to_owned(),
    });
    let bytes = bytes.collect();
    (document, bytes)
}

fn values(target: &str) -> Fields {
    fields::of(&common::json(&[target]).0)
}

/// Changes the bytes at an address in a core, for as long as `then` takes.
fn with_changed<T>(core: &Path, of: &Bytes, change: impl Fn(u8) -> u8, then: impl FnOnce() -> T) -> T {
    let (at, _) = Segments::of(core).expect("a core").find(of.address).expect("memory in the core");
    let file = File::options().read(true).write(true).open(core).expect("the core");
    let mut before = vec![0; of.size as usize];
    file.read_exact_at(&mut before, at).expect("it is read");
    let changed: Vec<u8> = before.iter().map(|byte| change(*byte)).collect();
    file.write_all_at(&changed, at).expect("it is written");
    let result = then();
    file.write_all_at(&before, at).expect("it is written");
    result
}

/// A search is thousands of looks.
fn one_of_each_family() -> Vec<(Toolchain, Runtime)> {
    native_combinations().into_iter().filter(|(_, runtime)| *runtime != Runtime::Libiomp5).collect()
}

/// The four members of a region, all asleep: two wait for locks, two for them.
fn hanging(toolchain: Toolchain, runtime: Runtime) -> Running {
    let program = build("hangs/lock_cycle", toolchain, Opt::O2, &[]).expect("lock_cycle");
    Launch::new(&program, runtime, Env::Settled).start_hanging().expect("it hangs")
}

/// Gives `check` a core of such a process, for one runtime of each family.
fn with_cores(check: impl Fn(&str, Runtime, &Running, &Path)) {
    for (toolchain, runtime) in one_of_each_family() {
        let running = hanging(toolchain, runtime);
        let folder = tempfile::tempdir().expect("a folder");
        match running.gcore(folder.path()).expect("gcore runs") {
            Ok(core) => check(&format!("{toolchain:?}, {runtime:?}"), runtime, &running, &core),
            Err(skip) => return skip.show(),
        }
    }
}

/// The number of a thread rests on a field of the runtime. A change of that field changes it, and no change of what only the number of
/// another thread rests on does.
#[test]
fn value_rests_on_its_field_and_not_on_that_of_another_thread() {
    with_cores(|what, runtime, running, core| {
        let target = core.to_str().expect("a plain path");
        let known = values(target);
        let member = |number: u64| {
            let is_it = |(name, value): &(&String, &Value)| name.ends_with(".thread_num") && **value == number;
            known.iter().find(is_it).map(|(name, _)| name.clone()).unwrap_or_else(|| panic!("{what}: {known:#?}"))
        };
        let (one, other) = (member(1), member(3));
        let [lwp, _] = [&one, &other].map(|name| name.split('.').nth(3).expect("a thread").to_owned());
        let ((document, of_one), (of_another, of_other)) =
            (why(&format!("{lwp}.thread_num"), target), why(&other, target));
        assert_eq!(
            (&document["field"], &of_another["field"]),
            (&Value::from(one.as_str()), &Value::from(other.as_str())),
            "{what}"
        );
        if [&document, &of_another].iter().any(|of| of["words_changed_alone"] != of["words"]) {
            return Skip::because("the machine is too busy to change each word alone").show();
        }
        let field = if runtime.is_kmp() { "kmp_base_info.th_info.ds.ds_tid" } else { "gomp_thread.ts.team_id" };
        // What leads to both threads counts for both.
        let own: BTreeSet<&Bytes> = of_one.iter().filter(|bytes| !of_other.contains(bytes)).collect();
        assert!(own.iter().any(|bytes| bytes.field == field), "{what}: {of_one:#?} {of_other:#?}");
        for bytes in own {
            let changed = with_changed(core, bytes, |byte| !byte, || values(target));
            assert_eq!(changed.get(&other), known.get(&other), "{what}: {bytes:?}");
            if bytes.field == field {
                assert_ne!(changed.get(&one), known.get(&one), "{what}: {bytes:?}");
            }
        }
        assert_eq!(values(target), known, "{what}: the core is as before");
        // Of the process it is the same field.
        let (_, live) = why(&format!("{lwp} thread_num"), &running.pid.to_string());
        let own_field =
            of_one.iter().find(|bytes| bytes.field == field && !of_other.contains(bytes)).expect("its field");
        assert!(live.contains(own_field), "{what}: {live:#?}");
    });
}

/// Some change of all that a verdict rests on takes it away.
#[test]
fn verdict_is_another_one_without_any_byte_it_rests_on() {
    with_cores(|what, _, _, core| {
        let target = core.to_str().expect("a plain path");
        let (document, bytes) = why("answer.word", target);
        assert_eq!(document["values"]["answer.word"], "DEADLOCK", "{what}");
        assert!(!bytes.is_empty(), "{what}: {document}");
        for bytes in &bytes {
            let changes: [fn(u8) -> u8; 4] = [|byte| !byte, |_| 0, |byte| byte ^ 0x55, |byte| byte.wrapping_add(1)];
            let is_other = |change: &fn(u8) -> u8| {
                let word = with_changed(core, bytes, change, || values(target)).remove("answer.word");
                word != Some("DEADLOCK".into())
            };
            assert!(changes.iter().any(is_other), "{what}: {bytes:?}");
        }
    });
}

#[test]
fn value_is_named_by_enough_of_its_parts() {
    let running = hanging(Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    let refused = |field: &str, parts: &[&str]| {
        let (out, err, status) = texts(&common::run(&["doctor", "--why", field, &pid]));
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        for part in parts {
            assert!(err.contains(part), "{field}: {err}");
        }
    };
    refused("thread_num", &["may be one of 4 values", "remedy: name one of runtimes.0.threads.", ".thread_num"]);
    refused("weather", &["no value is called weather", "answer.word"]);
    let (_, err, status) = texts(&common::run(&["doctor", "--why", "answer", &pid, &pid]));
    assert!(status == 2 && err.contains("--why needs one process id or core file"), "{err}");
    let (_, err, status) = texts(&common::run(&["doctor", "--why", "answer", "--pause", "never", &pid]));
    assert!(status == 2 && err.contains("leave out --pause never"), "{err}");
    // Of the search no more than its form matters here.
    let (out, err, status) = texts(&common::run(&["doctor", "--why", "process.command", "--redact", &pid]));
    assert!(status < 2 && err.is_empty(), "{out}{err}");
    assert!(out.starts_with("process.command: ") && !out.contains("/test-programs/out/"), "{out}");
}

/// A queued task whose record names a function at an address where nothing is mapped.
#[test]
fn function_that_lies_nowhere_is_not_shown() {
    let program = build("tasks", Toolchain::Gcc, Opt::O2, &[]).expect("tasks");
    let running = Running::start(&program, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let folder = tempfile::tempdir().expect("a folder");
    let core = match running.gcore(folder.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    let target = core.to_str().expect("a plain path");
    let known = values(target);
    let ready =
        known.iter().find(|(name, value)| name.ends_with(".state") && **value == "ready").expect("a queued task");
    let task = ready.0.trim_end_matches(".state");
    let (_, bytes) = why(&format!("{}.function.addr", task.rsplit_once("tasks.").expect("a task").1), target);
    let function = bytes.iter().find(|bytes| bytes.field == "gomp_task.fn").expect("the field with the function");
    let changed = with_changed(&core, function, |_| 0xfe, || values(target));
    assert_eq!(changed.get(&format!("{task}.function.code")), Some(&"function-nowhere".into()), "{changed:#?}");
    assert_eq!(changed.get(&format!("{task}.function.addr")), None);
    running.release().expect("it ends");
}
