//! Runtimes of unknown builds: what is decoded at the first look is in the cache at the next, and says the same.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd_process::ElfFile;
use ompd_runtime::{DECODER, DecodedCache, Origin, analyse};
use serde_json::Value;
use tempfile::TempDir;
use test_programs::{
    Env, Launch, Opt, Running, Runtime, Skip, Toolchain, Truth, build, compare, crash_core_of, native_combinations,
    unknown_build,
};

use crate::common::{self, cache_below, command, texts};

/// A copy of a runtime with another build-id: no record of it is shipped, and all else is the same.
struct Unknown {
    toolchain: Toolchain,
    runtime: Runtime,
    directory: TempDir,
    library: PathBuf,
}

impl Unknown {
    fn all() -> Vec<Unknown> {
        native_combinations().into_iter().map(|(toolchain, runtime)| Unknown::of(toolchain, runtime)).collect()
    }

    fn of(toolchain: Toolchain, runtime: Runtime) -> Unknown {
        let directory = tempfile::tempdir().expect("a directory");
        let library = unknown_build(toolchain, runtime, directory.path()).expect("a copy");
        Unknown { toolchain, runtime, directory, library }
    }

    fn launch(&self, program: &str, flags: &[&str], env: Env) -> Launch {
        let executable = build(program, self.toolchain, Opt::O2, flags).expect("the program builds");
        let path = self.directory.path().to_str().expect("a plain path");
        Launch::new(&executable, self.runtime, env).variable("LD_LIBRARY_PATH", path)
    }

    fn start(&self) -> Running {
        self.launch("barrier_missing", &[], Env::Settled).start().expect("the program starts")
    }

    /// The cache below a directory, as the command has it.
    fn cache(&self, below: &Path) -> (DecodedCache, ElfFile) {
        (DecodedCache::below(below, DECODER), ElfFile::open(&self.library).expect("the copy"))
    }
}

/// What the code of the only runtime of a report comes from.
fn code(report: &Value) -> String {
    let origins = report["runtimes"][0]["origins"].as_array().expect("origins").iter();
    let notes = origins.filter(|origin| origin["origin"] == "code").map(|origin| origin["note"].clone());
    notes.filter_map(|note| note.as_str().map(str::to_owned)).collect()
}

fn is_cached(report: &Value) -> bool {
    code(report).contains("this build is in the cache")
}

/// All that is shown of the only runtime, and each value's origin. Without the origins of its layout, and without what the kernel
/// says of threads outside of it.
fn shown(report: &Value) -> Value {
    let mut shown = report["runtimes"][0].clone();
    shown.as_object_mut().expect("a runtime").remove("origins");
    for thread in shown["threads"].as_array_mut().expect("threads") {
        thread.as_object_mut().expect("a thread").remove("outside");
    }
    shown
}

/// True if no origin has this part of the layout.
fn is_missing(report: &Value, name: &str) -> bool {
    report["runtimes"][0]["missing"].as_array().expect("parts").iter().any(|part| part == name)
}

/// Compares with the truth without a record in the cache, and with one, and says so. What is known of a build that no shipped layout
/// fits is the same both times, and right.
fn cold_and_warm(what: &str, unknown: &Unknown, truth: &Truth, target: &str) -> Vec<String> {
    let mut differences = Vec::new();
    let cache = tempfile::tempdir().expect("a directory");
    cache_below(cache.path());
    let pauses = if target.parse::<i32>().is_ok() { &["auto", "brief", "never"][..] } else { &["auto"] };
    for pause in pauses {
        // A core is read the same way at all times.
        let look = || common::json(&["--pause", pause, target]).0;
        let _ = fs::remove_dir_all(cache.path().join("ompd-inspect"));
        let (cold, warm) = (look(), look());
        assert_eq!((is_cached(&cold), is_cached(&warm)), (false, true), "{what}: {}; {}", code(&cold), code(&warm));
        let compared = |how: &str, report: &Value| {
            let compared = compare(truth, report, unknown.runtime, unknown.toolchain);
            // Directly, so that it is seen for passing tests as well.
            let _ = writeln!(
                std::io::stderr(),
                "{what}, --pause {pause}, {how} cache: {} values compared, {} differ, {} unknown",
                compared.compared,
                compared.differences.len(),
                compared.unknown.len()
            );
            compared
        };
        let (cold, warm) = (compared("cold", &cold), compared("warm", &warm));
        differences.extend(cold.differences.iter().map(|line| format!("{what}, {pause}, cold: {line}")));
        differences.extend(warm.differences.iter().map(|line| format!("{what}, {pause}, warm: {line}")));
        // Threads that run may be met elsewhere.
        if *pause != "never" {
            assert_eq!((cold.compared, &cold.unknown, &cold.lacking), (warm.compared, &warm.unknown, &warm.lacking));
        }
    }
    differences
}

fn everywhere(program: &str, flags: &[&str], env: Env) {
    let mut differences = Vec::new();
    for unknown in Unknown::all() {
        let running = unknown.launch(program, flags, env).start().expect("the program starts");
        let what = format!("{program} on an unknown build of {:?}", unknown.runtime);
        let (truth, pid) = (&running.truth, running.pid.to_string());
        differences.extend(cold_and_warm(&format!("{what}, live"), &unknown, truth, &pid));
        let directory = tempfile::tempdir().expect("a directory for the core");
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => {
                let core = core.to_str().expect("a plain path");
                differences.extend(cold_and_warm(&format!("{what}, gcore"), &unknown, truth, core));
            }
            Err(skip) => skip.show(),
        }
        running.release().expect("the program goes on to its end after the inspections");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name), &[], Env::Settled); } )*
    };
}

// All of `truth`.
programs!(nested, lock, tasks, barrier_missing, region_end, idle, user_pthread, serialized, icvs);

#[test]
fn stripped_and_unprepared() {
    everywhere("barrier_missing", &["-s"], Env::Stock);
}

#[test]
fn crash() {
    let mut differences = Vec::new();
    for unknown in Unknown::all() {
        let directory = tempfile::tempdir().expect("a directory for the core");
        let launch = unknown.launch("crash", &[], Env::Settled);
        match crash_core_of(launch, directory.path()).expect("the program crashes") {
            Ok(crashed) => {
                let what = format!("crash on an unknown build of {:?}, kernel core", unknown.runtime);
                let core = crashed.core.to_str().expect("a plain path");
                differences.extend(cold_and_warm(&what, &unknown, &crashed.truth, core));
            }
            Err(skip) => skip.show(),
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// A record that lacks a value is used as it is: with a record nothing is decoded. Options that ask for it have all decoded.
#[test]
fn second_look_decodes_nothing() {
    for unknown in Unknown::all() {
        let running = unknown.start();
        let pid = running.pid.to_string();
        let directory = tempfile::tempdir().expect("a directory");
        cache_below(directory.path());
        common::json(&[&pid]);
        let (cache, file) = unknown.cache(directory.path());
        let facts = cache.find(&file).expect("a record");
        let analysis = analyse(&file).expect("a runtime");
        let decoded = analysis.origins.iter().find(|(source, _)| source.origin == Origin::Code).expect("code");
        assert_eq!(facts, decoded.1, "what is kept is what is decoded");

        // One that no other origin has. libiomp5 has the names of its variables.
        let globals = facts.globals.keys().map(|name| (name.clone(), None));
        let fields =
            facts.fields.iter().flat_map(|(of, fields)| fields.keys().map(move |name| (of.clone(), Some(name))));
        let without = |(of, field): (String, Option<&String>)| {
            let mut facts = facts.clone();
            if let Some(name) = field {
                facts.fields.get_mut(&of).expect("a struct").remove(name);
            } else {
                facts.globals.remove(&of);
            }
            (field.map_or(of.clone(), |name| format!("{of}.{name}")), facts)
        };
        let lacking = globals.chain(fields).map(without).find(|(name, facts)| {
            cache.keep(&file, facts).expect("a record");
            is_missing(&common::json(&[&pid]).0, name)
        });
        let (lacking, facts) =
            lacking.unwrap_or_else(|| panic!("{:?}: with a record nothing is decoded", unknown.runtime));
        assert!(is_cached(&common::json(&[&pid]).0));
        let ignoring = ["--ignore-origin", "table"];
        for options in [&["--no-cache"][..], &["--verify"], &["doctor"], &ignoring] {
            let report = common::json(&[options, &[&pid]].concat()).0;
            assert!(!is_cached(&report) && !is_missing(&report, &lacking), "{options:?}: {lacking}");
        }
        assert_eq!(cache.find(&file), Ok(facts), "they do not change it either");
        running.release().expect("the program's end");
    }
}

#[test]
fn record_that_cannot_be_right_is_ignored() {
    for unknown in Unknown::all() {
        let running = unknown.start();
        let pid = running.pid.to_string();
        let directory = tempfile::tempdir().expect("a directory");
        cache_below(directory.path());
        let right = shown(&common::json(&[&pid]).0);
        let (cache, file) = unknown.cache(directory.path());
        let path = cache.path(&file).expect("a record");
        let whole = fs::read(&path).expect("the record");
        let facts = cache.find(&file).expect("a record");
        let looks = |what: &str| {
            let report = common::json(&[&pid]).0;
            assert!(!is_cached(&report), "{what}: {}", code(&report));
            assert_eq!(shown(&report), right, "{what}");
            assert_eq!(fs::read(&path).expect("a record"), whole, "{what}: the right one took its place");
        };
        fs::write(&path, &whole[..whole.len() / 2]).expect("half of it");
        looks("truncated");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).expect("its owner may");
        looks("writable by the group");
        // As nobody writes one by accident: the checksum is right.
        let mut hostile = Vec::new();
        let mut beyond = facts.clone();
        let field = beyond.fields.values_mut().flat_map(|fields| fields.values_mut()).next();
        field.expect("a field").offset = u64::MAX - 1;
        hostile.push(("an offset beyond all structs", beyond));
        let mut elsewhere = facts.clone();
        *elsewhere.globals.values_mut().next().expect("a global") = u64::MAX - 7;
        hostile.push(("a global outside the file", elsewhere));
        let mut strange = facts.clone();
        strange.globals.insert("nobody".to_owned(), 0x1000);
        hostile.push(("a name that nobody asks for", strange));
        let mut moved = facts.clone();
        for field in moved.fields.values_mut().flat_map(|fields| fields.values_mut()) {
            field.offset += 8;
        }
        // Of a build that no shipped layout fits, only memory can contradict them: see `hostile_cache` of the runtimes' crate.
        if right["missing"].as_array().is_some_and(Vec::is_empty) {
            hostile.push(("all offsets wrong", moved));
        }
        for (what, facts) in hostile {
            cache.keep(&file, &facts).expect("a record");
            looks(what);
        }
        running.release().expect("the program's end");
    }
}

#[test]
fn without_a_directory_all_is_as_before() {
    let Some(unknown) = Unknown::all().into_iter().next() else { return };
    let running = unknown.start();
    let pid = running.pid.to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("home");
    fs::create_dir(&home).expect("a directory");
    let doctor = |change: &dyn Fn(&mut Command)| {
        let mut doctor = command();
        change(doctor.args(["doctor", &pid]));
        let (out, err, status) = texts(&doctor.output().expect("it can be started"));
        assert_eq!((err.as_str(), status), ("", 0));
        let mut report = command();
        change(report.args(["--json", &pid]));
        let (_, err, status) = texts(&report.output().expect("it can be started"));
        assert_eq!((err.as_str(), status), ("", 0));
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let none = doctor(&|command| {
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    });
    assert!(none.contains("no cache: neither XDG_CACHE_HOME nor HOME is an absolute path"), "{none}");
    let relative = doctor(&|command| {
        command.env("XDG_CACHE_HOME", "here").env_remove("HOME").current_dir(&home);
    });
    assert!(relative.contains("no cache: neither"), "{relative}");
    let device = doctor(&|command| {
        command.env("XDG_CACHE_HOME", "/dev/full");
    });
    assert!(device.contains("no cache: /dev/full/ompd-inspect: Not a directory"), "{device}");
    let by_home = |command: &mut Command| {
        command.env_remove("XDG_CACHE_HOME").env("HOME", &home);
    };
    let first = doctor(&by_home);
    assert!(first.contains("the cache has no record of this build"), "{first}");
    let second = doctor(&by_home);
    assert!(second.contains("the cache has the same"), "{second}");
    assert!(home.join(".cache/ompd-inspect").is_dir());
    assert_eq!(fs::read_dir(&home).expect("a directory").count(), 1);
    running.release().expect("the program's end");
}

/// A directory that cannot be written: root may write anywhere but in some mounts.
#[test]
fn directory_that_cannot_be_written_is_done_without() {
    let Some(unknown) = Unknown::all().into_iter().next() else { return };
    let running = unknown.start();
    let pid = running.pid.to_string();
    let directory = tempfile::tempdir().expect("a directory");
    cache_below(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o500)).expect("its owner may");
    let can_write = fs::create_dir(directory.path().join("probe")).is_ok();
    if can_write {
        Skip::because("this user may write everywhere").show();
    }
    let (report, status) = common::json(&[&pid]);
    assert_eq!((is_cached(&report), status), (false, 0));
    let again = common::json(&[&pid]).0;
    assert_eq!(is_cached(&again), can_write);
    running.release().expect("the program's end");
}

#[test]
fn commands_that_run_at_once_share_a_cache() {
    let unknown = Unknown::all();
    let all: Vec<Running> = unknown.iter().map(Unknown::start).collect();
    let directory = tempfile::tempdir().expect("a directory");
    for (unknown, running) in unknown.iter().zip(&all) {
        cache_below(directory.path());
        let pid = running.pid.to_string();
        let right = shown(&common::json(&["--no-cache", &pid]).0);
        let started: Vec<_> = (0..8)
            .map(|_| {
                let mut command = command();
                command.args(["--json", &pid]).stdout(std::process::Stdio::piped());
                command.spawn().expect("it can be started")
            })
            .collect();
        for child in started {
            let output = child.wait_with_output().expect("its output");
            let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
            assert_eq!(shown(&report), right, "{:?}", unknown.runtime);
        }
        assert!(is_cached(&common::json(&[&pid]).0));
    }
    let left = fs::read_dir(directory.path().join("ompd-inspect")).expect("the cache").count();
    assert_eq!(left, unknown.len(), "a record for each, and nothing else");
    // Directly, so that it is seen for passing tests as well.
    let _ = writeln!(std::io::stderr(), "{left} builds, each inspected by 8 commands at once");
    for running in all {
        running.release().expect("the program's end");
    }
}
