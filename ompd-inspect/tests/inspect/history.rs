//! What threads did last, as the companion has recorded it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use test_programs::{Case, Env, HANGS, Launch, Opt, Running, Runtime, Skip, Toolchain, build, built_by_cargo};

use crate::common::{self, Schema};
use crate::pages::on_terminal;

/// A cycle of locks on libomp with the companion.
fn recorded() -> Option<Running> {
    if let Err(skip) = Runtime::Libomp14.library() {
        skip.show();
        return None;
    }
    let file = built_by_cargo("libompt_companion.so");
    let case: Case = HANGS[0];
    assert_eq!((case.program, case.flags), ("hangs/lock_cycle", &[][..]));
    if let Err(skip) = test_programs::can_build(case.program, Toolchain::Clang).expect("the program is there") {
        skip.show();
        return None;
    }
    let program = build(case.program, Toolchain::Clang, Opt::O2, case.flags).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libomp14, Env::Settled);
    let launch = launch.variable("OMP_TOOL_LIBRARIES", &file.to_string_lossy());
    Some(launch.start_hanging().expect("it hangs"))
}

fn shown(arguments: &[&str]) -> String {
    let (text, error, status) = common::texts(&common::run(&[&["history"], arguments].concat()));
    assert_eq!((status, &*error), (0, ""), "{text}");
    text
}

#[test]
fn history_fits_a_terminal() {
    let Some(running) = recorded() else { return };
    let one_by_one = on_terminal(80, &["history"], running.pid);
    let by_time = on_terminal(80, &["history", "--by-time", "--last", "5"], running.pid);
    for text in [&one_by_one, &by_time] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("wants lock") && text.contains("lock_cycle.c:"), "{text}");
    }
    for thread in &running.truth.threads {
        assert!(one_by_one.contains(&format!("(LWP {},", thread.lwp)), "{one_by_one}");
    }
    assert!(by_time.lines().filter(|line| line.contains("lock_cycle.c:")).count() <= 5 * running.truth.threads.len());
}

#[test]
fn history_as_json_is_what_the_schema_says() {
    let Some(running) = recorded() else { return };
    let schema = Schema::of("history");
    let history: Value = serde_json::from_str(&shown(&["--json", &running.pid.to_string()])).expect("JSON");
    assert_eq!(schema.faults(&history), [""; 0]);
    assert_eq!(history["schema"], "ompd-inspect-history/1");
    assert_eq!(history["pid"], running.pid);
    let threads = history["threads"].as_array().expect("threads");
    for thread in &running.truth.threads {
        let of = threads.iter().find(|of| of["lwp"] == thread.lwp).expect("every thread of the program");
        let events = of["events"].as_array().expect("events");
        assert_eq!(of["total"], events.len(), "all are there when JSON is asked for");
    }
    let mut wrong = history.clone();
    wrong["threads"][0]["events"][0]["time"] = Value::from("now");
    assert!(!schema.faults(&wrong).is_empty());
}

/// What begins on a thread ends on it, in the opposite order, or not at all: so viewers draw it.
#[test]
fn history_as_a_trace_is_nested() {
    let Some(running) = recorded() else { return };
    let trace: Value = serde_json::from_str(&shown(&["--trace", &running.pid.to_string()])).expect("JSON");
    let entries = trace["traceEvents"].as_array().expect("entries");
    let mut open = std::collections::BTreeMap::<i64, i64>::new();
    let mut last = f64::MIN;
    for entry in entries.iter().filter(|entry| entry["ph"] != "M") {
        let (time, thread) = (entry["ts"].as_f64().expect("a time"), entry["tid"].as_i64().expect("a thread"));
        assert!(time >= last, "{entry}");
        last = time;
        match entry["ph"].as_str().expect("a phase") {
            "B" => *open.entry(thread).or_default() += 1,
            "E" => *open.entry(thread).or_default() -= 1,
            "b" | "e" => assert!(entry["id"].is_string() && entry["cat"].is_string(), "{entry}"),
            "i" => assert_eq!(entry["s"], "t"),
            other => panic!("{other}: {entry}"),
        }
        assert!(open.get(&thread).is_none_or(|open| *open >= 0), "something ends that has not begun: {entry}");
    }
    // Every thread that hangs is in something that has not ended.
    for thread in &running.truth.threads {
        assert!(open.get(&thread.lwp.into()).is_some_and(|open| *open > 0), "{open:?}");
    }
}

/// scikit-learn and faiss bring a libgomp each. The functions that open regions are in the tables of symbols of scikit-learn's modules.
#[test]
fn history_of_a_fit_names_its_regions() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs");
    let interpreter = scripts.join("runtimes/venv/bin/python");
    if !interpreter.is_file() {
        let missing = interpreter.display();
        return Skip::because(format!("no Python with wheels ({missing}); \"ci/fetch python\" gets it")).show();
    }
    let mut python = Command::new(interpreter);
    python.arg(scripts.join("python/fit.py")).arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped());
    python.envs([("OMP_NUM_THREADS", "4"), ("OMPT_COMPANION_EVENTS", "65536")]);
    python.env("LD_PRELOAD", built_by_cargo("libgomp_ompt.so"));
    python.env("OMP_TOOL_LIBRARIES", built_by_cargo("libompt_companion.so"));
    let mut fit = python.spawn().expect("Python starts");
    // It ends when nobody has the other end of its input.
    let (input, output) = (fit.stdin.take(), fit.stdout.take().expect("a pipe"));
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line from Python");
    assert!(line.contains("clusters"), "{line}");

    let text = shown(&["--last", "1000000", &fit.id().to_string()]);
    let opens: Vec<&str> = text.lines().filter(|line| line.contains("opens region")).collect();
    for (function, module) in [
        ("map_to_bins", "_binning"),
        ("gradient_hessian", "_loss"),
        ("compute_histograms_brute", "histogram"),
        ("find_node_split", "splitting"),
        ("split_indices", "splitting"),
        ("update_raw_predictions", "_gradient_boosting"),
        ("predict_from_raw_data", "_predictor"),
        ("lloyd_iter_chunked_dense", "_k_means_lloyd"),
        ("inertia_dense", "_k_means_common"),
    ] {
        let file = format!(" in {module}.cpython-");
        let found = opens.iter().any(|line| line.contains(function) && line.contains(&file));
        assert!(found, "{function} in {module}: {opens:#?}");
    }
    // faiss has no symbols for its own functions.
    let nameless = opens.iter().filter(|line| !line.contains("sklearn"));
    assert!(nameless.clone().all(|line| line.contains("_swigfaiss") && line.contains(".so+0x")), "{opens:#?}");
    assert!(nameless.count() > 0, "{opens:#?}");

    // On a terminal these long names leave room for the events.
    let text = on_terminal(80, &["history", "--last", "60"], fit.id().cast_signed());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for header in text.lines().filter(|line| line.starts_with(" ago")) {
        let at = |name| header.find(name).expect("the column");
        assert!(at("where") - at("event") >= 20, "{text}");
    }
    assert!(text.contains("_k_means") && text.contains("…"), "{text}");
    drop(input);
    assert!(fit.wait().expect("Python ends").success());
}

#[test]
fn without_a_companion_there_is_no_history() {
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    let (text, error, status) = common::texts(&common::run(&["history", &running.pid.to_string()]));
    assert_eq!((status, &*text), (2, ""));
    assert!(error.contains("no companion has recorded") && error.contains("OMP_TOOL_LIBRARIES"), "{error}");
    let (_, error, status) = common::texts(&common::run(&["history", "--trace", "--by-time", "1"]));
    assert_eq!(status, 2, "{error}");
}

/// Whatever bytes a block has that the companion wrote to a file, reading it ends, and well.
#[test]
fn damaged_blocks_do_no_harm() {
    let Some(running) = recorded() else { return };
    drop(running);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("block");
    let companion = built_by_cargo("libompt_companion.so");
    let program = build("progress", Toolchain::Clang, Opt::O2, &[]).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libomp14, Env::Settled)
        .variable("OMP_TOOL_LIBRARIES", &companion.to_string_lossy())
        .variable("OMPT_COMPANION_EVENTS", "64")
        .variable("OMPT_COMPANION_FILE", &file.to_string_lossy());
    launch.start().expect("it starts").release().expect("it ends");
    let bytes = std::fs::read(&file).expect("the file is there");
    let name = file.to_string_lossy().into_owned();
    assert!(shown(&["--last", "3", &name]).contains("thread begins") || bytes.len() > 4096);
    let read = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("it can be written");
        let output = common::bounded(common::command().args(["history", &name]));
        let (text, error, status) = common::texts(&output);
        assert!([0, 1, 2].contains(&status) && !error.contains("panicked"), "{status}: {text}{error}");
    };
    for word in 0..40 {
        for value in [0, 1, 63, 1 << 16, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let mut damaged = bytes.clone();
            damaged[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
            read(&damaged);
        }
    }
    for length in [0, 1, 15, 16, 200, 207, 208, 4095, 4096, bytes.len() / 2, bytes.len() - 1] {
        read(&bytes[..length]);
    }
}
