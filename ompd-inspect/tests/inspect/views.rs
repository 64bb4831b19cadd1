//! What the views look like, whoever reads them: a narrow terminal, a file, a program, a reader that has seen enough.

use crate::common;
use std::fs::{self, File};
use std::process::{Command, Stdio};

use crate::common::{Schema, bounded, command, texts};
use serde_json::Value;
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, STEADY_PROGRAMS, Toolchain, build, combinations};

/// Every view.
const VIEWS: [&[&str]; 18] = [
    &[],
    &["threads"],
    &["teams"],
    &["tasks"],
    &["icvs"],
    &["doctor"],
    &["threads", "-v"],
    &["teams", "-v"],
    &["tasks", "-v"],
    &["icvs", "-v"],
    &["doctor", "-v"],
    &["stacks"],
    &["stacks", "--all"],
    &["stacks", "--tree"],
    &["stacks", "--locals"],
    &["stacks", "-v"],
    &["waits"],
    &["waits", "-v"],
];

/// Columns where nobody says how many there are.
const WIDTH: usize = 80;

/// gcc's programs on libgomp and clang's on libomp 14, as far as they are here.
fn native() -> Vec<(Toolchain, Runtime)> {
    let natives = [(Toolchain::Gcc, Runtime::Libgomp), (Toolchain::Clang, Runtime::Libomp14)];
    combinations().into_iter().filter(|pair| natives.contains(pair)).collect()
}

fn start(program: &str, toolchain: Toolchain, runtime: Runtime) -> Running {
    let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
    Running::start(&executable, runtime, Env::Settled).expect("the program starts")
}

/// What a complete inspection writes to standard output.
fn shown(command: &mut Command) -> String {
    let (out, err, status) = texts(&bounded(command));
    assert_eq!((err.as_str(), status), ("", 0), "{command:?}: {out}");
    out
}

fn assert_no_control(what: &str, text: &str) {
    let control = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{what}: {text:?}");
}

/// The only control sequences are styles (ECMA-48, SGR), each line's ended before its end.
fn assert_only_styles(what: &str, text: &str) {
    for line in text.lines() {
        let sequences = line.split('\u{1b}').skip(1);
        let codes = sequences.map(|rest| rest.strip_prefix('[').and_then(|r| Some(r.split_once('m')?.0)));
        let codes: Vec<&str> = codes.map(|c| c.unwrap_or_else(|| panic!("{what}: no style: {line:?}"))).collect();
        let is_style = |codes: &&str| codes.chars().all(|c| c.is_ascii_digit() || c == ';');
        assert!(codes.iter().all(is_style), "{what}: {line:?}");
        assert!(codes.last().is_none_or(|last| *last == "0"), "{what}: a style goes on: {line:?}");
    }
}

/// A line breaks between words, so that only a word (a path, as a rule) that does not fit makes one longer. A row of a table, which
/// one blank begins, is one line: this is no terminal.
fn assert_fits(what: &str, text: &str) {
    /// What may stand before a path.
    const LEAD: usize = 30;
    let is_row = |line: &&str| line.starts_with(' ') && !line.starts_with("  ");
    let sentences = text.lines().filter(|line| !is_row(line));
    for line in sentences.filter(|line| line.chars().count() > WIDTH) {
        let unbreakable = line.split(' ').any(|word| word.contains('/') && word.chars().count() > WIDTH - LEAD);
        // Fixed text of `doctor`, six columns too long.
        assert!(unbreakable, "{what}: {} columns: {line}", line.chars().count());
    }
}

#[test]
fn views_fit_a_terminal_and_do_not_command_it() {
    let mut seen = 0;
    for (toolchain, runtime) in native() {
        for program in ["nested", "lock", "tasks", "idle"] {
            let running = start(program, toolchain, runtime);
            let pid = running.pid.to_string();
            for view in VIEWS {
                let what = format!("{program} on {runtime:?}, {view:?}");
                for color in [&[][..], &["--color", "never"]] {
                    let text = shown(command().args(view).args(color).arg(&pid));
                    let title = format!("Process {pid} (");
                    assert!(text.lines().any(|line| line.starts_with(&title)), "{what}: {text}");
                    assert!(
                        ["live, not stopped", "stopped for "].iter().any(|how| text.contains(how)),
                        "{what}: {text}"
                    );
                    assert_no_control(&what, &text);
                    assert_fits(&what, &text);
                    let trailing = text.lines().find(|line| line.ends_with(' '));
                    assert_eq!(trailing, None, "{what}: blanks at the end of a line");
                }
                let colored = shown(command().args(view).args(["--color", "always"]).arg(&pid));
                assert!(colored.contains('\u{1b}'), "{what}: no colour: {colored}");
                assert_only_styles(&what, &colored);
                seen += 1;
            }
            // Asked for by the environment (https://no-color.org, https://bixense.com/clicolors).
            let forced = shown(command().env("CLICOLOR_FORCE", "1").arg(&pid));
            assert!(forced.contains('\u{1b}'), "{forced}");
            let refused = shown(command().env("CLICOLOR_FORCE", "1").args(["--color", "never"]).arg(&pid));
            assert_no_control("--color never", &refused);
            running.release().expect("the program's end");
        }
    }
    assert!(seen > 0, "no compiler and runtime to look at");
}

#[test]
fn a_reader_that_has_seen_enough() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    let help: [&[&str]; 2] = [&["--help"], &["--version"]];
    let views = VIEWS.iter().map(|view| [*view, &[&pid]].concat()).chain([vec!["--json", &pid]]);
    for args in views.chain(help.map(<[&str]>::to_vec)) {
        let mut child =
            command().args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
        drop(child.stdout.take());
        let (_, err, status) = texts(&child.wait_with_output().expect("its end"));
        assert_eq!((err.as_str(), status), ("", 0), "{args:?}");
    }
    // Output that is lost is something else.
    for args in [&["--json", &pid][..], &[&pid]] {
        let full = File::options().write(true).open("/dev/full").expect("the device that is always full");
        let output = command().args(args).stdout(full).output().expect("the command");
        let (_, err, status) = texts(&output);
        assert_eq!(status, 2, "{args:?}: {err}");
        assert!(err.starts_with("ompd-inspect: cannot write to standard output: "), "{err}");
    }
    running.release().expect("the program's end");
}

/// The name of the file becomes that of the process, of its threads, of a mapping, and part of the command line.
#[test]
fn a_program_with_a_hostile_name() {
    let built = build("idle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("x\u{1b}[31m\n\u{202e}<i>y");
    fs::copy(&built.path, &path).expect("a copy of the program");
    let running = Running::start(&Executable { path, ..built }, Runtime::Libgomp, Env::Settled).expect("its start");
    let pid = running.pid.to_string();
    let mut targets = vec![(pid, 0)];
    match running.gcore(directory.path()).expect("gcore runs") {
        // gdb notes the name with its newline written as four characters: the file is not found under that name.
        Ok(core) => targets.push((core.to_str().expect("a plain path").to_owned(), 1)),
        Err(skip) => skip.show(),
    }
    for (target, expected) in targets {
        for view in VIEWS {
            for color in ["never", "always"] {
                let (out, err, status) = texts(&bounded(command().args(view).args(["--color", color]).arg(&target)));
                assert_eq!(status, expected, "{view:?}: {err}");
                assert!(!out.contains("x\u{1b}") && !out.contains("\u{202e}"), "{view:?}: {out:?}");
                // The name as a whole is there, in one line, in the heading already.
                let heading = out.lines().find(|line| line.contains("Process"));
                assert!(heading.is_some_and(|l| l.contains("x\\u{1b}[31m\\")), "{view:?}: {out:?}");
                if color == "never" {
                    assert_no_control(&format!("{view:?}"), &out);
                }
            }
        }
        let (page, _, _) = texts(&bounded(command().args(["--html", &target])));
        assert_no_control("--html", &page);
        assert!(page.contains("x\\u{1b}[31m\\") && page.contains("&lt;i&gt;y") && !page.contains("<i>"), "{page}");
        let (out, _, _) = texts(&bounded(command().args(["--json", &target])));
        assert_no_control("--json", &out);
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert!(report["process"]["exe"].as_str().is_some_and(|exe| exe.contains("x\u{1b}[31m")), "{report}");
    }
    running.release().expect("the program's end");
}

#[test]
fn json_is_what_the_schema_says() {
    let schema = Schema::of("report");
    let check = |what: &str, target: &str| {
        let (report, status) = common::json(&[target]);
        assert_eq!(schema.faults(&report), [""; 0], "{what}");
        assert_eq!(report["schema"], "ompd-inspect/1", "{what}");
        assert_eq!(report["complete"], status == 0, "{what}");
        report
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut reports = Vec::new();
    for (toolchain, runtime) in combinations() {
        for program in STEADY_PROGRAMS {
            let running = start(program, toolchain, runtime);
            let what = format!("{program} on {runtime:?}");
            let report = check(&what, &running.pid.to_string());
            let stops = report["stops"].as_u64().expect("a number of stops");
            assert!(report["pause_ms"].as_f64().is_some_and(|pause| (pause > 0.0) == (stops > 0)), "{what}");
            reports.push(report);
            if program == "tasks" {
                match running.gcore(directory.path()).expect("gcore runs") {
                    Ok(core) => reports.push(check(&format!("core of {what}"), core.to_str().expect("a plain path"))),
                    Err(skip) => skip.show(),
                }
            }
            running.release().expect("the program's end");
        }
    }
    // The schema does refuse what it should: a key missing, a number for an address, neither value nor unknown.
    let report = reports.iter().find(|r| r["runtimes"][0]["threads"][0].is_object()).expect("a report with a thread");
    for (place, wrong) in [
        ("/schema", None),
        ("/os_threads/0/lwp", None),
        ("/runtimes/0/base", Some(Value::from(4096))),
        ("/runtimes/0/threads/0/thread_num", Some(Value::from(0))),
        ("/runtimes/0/threads/0/state", Some(serde_json::json!({"origin": "dwarf"}))),
    ] {
        let mut changed = report.clone();
        let (parent, key) = place.rsplit_once('/').expect("a place");
        let object = changed.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        match wrong {
            Some(wrong) => object.insert(key.to_owned(), wrong),
            None => object.remove(key),
        };
        assert!(!schema.faults(&changed).is_empty(), "{place} may be anything");
    }
}

#[test]
fn help() {
    // Laid out for a terminal of known width, whatever the test runs in.
    let help = |args: &[&str]| shown(command().env_remove("COLUMNS").args(args));
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("help", help(&["--help"]));
        insta::assert_snapshot!("help_threads", help(&["threads", "--help"]));
        insta::assert_snapshot!("help_top", help(&["top", "--help"]));
    });
}

/// The program of the demonstration: one look says who is missing, and why.
#[test]
fn summary_of_a_hang() {
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    let text = shown(command().arg(running.pid.to_string()));
    assert_fits("summary", &text);
    let stacks = shown(command().args(["stacks", &running.pid.to_string()]));
    // Where a sentence is broken depends on how long the numbers are.
    let text = text.replace("\n    ", " ");
    insta::with_settings!({
        omit_expression => true,
        filters => vec![
            // How long numbers are decides where lines break and columns begin.
            (r"\n {11}", " "),
            (r"(\S) {2,}", "$1  "),
            (r"Process \d+", "Process [PID]"),
            (r"LWP \d+", "LWP [LWP]"),
            (r"\bid \d+", "id [ID]"),
            (r"live, (not stopped|(\d+ threads? )?stopped for \d+\.\d ms)", "live, [HOW]"),
            (r"on \d+ cpus?( \([^)]*\))?", "on [N] cpus"),
            (r"0x[0-9a-f]+", "[ADDRESS]"),
            (r"/\S+", "[PATH]"),
        ],
    }, {
        insta::assert_snapshot!("summary_of_a_hang", text);
        insta::assert_snapshot!("stacks_of_a_hang", stacks);
    });
}

/// The tree of all stacks for other programs: each thread is in it once, and nothing else is printed.
#[test]
fn stacks_for_other_programs() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    let form = |form: &str| shown(command().args(["stacks", form, &pid]));

    let folded = form("--folded");
    let mut threads = 0;
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a stack and a number");
        threads += count.parse::<usize>().expect("a number of threads");
        assert!(stack.starts_with("main nested.c:32;#pragma omp parallel in main nested.c:34"), "{line}");
        assert!(stack.contains(";#pragma omp parallel in outer_body nested.c:23"), "{line}");
    }
    assert_eq!(threads, running.truth.threads.len(), "{folded}");
    let waiting = folded.lines().filter(|line| line.contains("inner_body nested.c:16;waits at a barrier"));
    assert_eq!(waiting.collect::<Vec<_>>().len(), 1, "{folded}");

    let dot = form("--dot");
    assert!(dot.starts_with("digraph stacks {\n") && dot.ends_with("}\n"), "{dot}");
    let nodes = dot.lines().filter(|line| line.contains("[label=")).count();
    let edges = dot.lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!(nodes, edges + 1, "one root: {dot}");
    assert!(dot.contains(r#"main nested.c:32\n6 threads"];"#), "{dot}");

    let svg = form("--svg");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert_eq!(svg.matches("<title>").count(), nodes, "a box for each place: {svg}");
    assert!(svg.contains("waits at a barrier (nested.c:16): 3 threads"), "{svg}");

    let tree = form("--tree");
    assert!(tree.contains("    6  main nested.c:32\n"), "{tree}");
    running.release().expect("the program's end");
}
