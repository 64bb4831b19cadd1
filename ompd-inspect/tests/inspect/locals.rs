//! Compares variables as `stacks --locals` shows them with the values that the programs put there. Both compilers, with and
//! without optimisation, every runtime at hand, live and from core files.

use crate::common;
use std::collections::BTreeMap;
use std::io::Write as _;

use crate::common::{run, texts};
use serde_json::Value;
use test_programs::{Env, Opt, Running, Runtime, Toolchain, build, combinations};

/// A variable as the report has it.
#[derive(Debug, Clone)]
struct Seen {
    value: Option<String>,
    unavailable: Option<String>,
    shared: Option<bool>,
    note: String,
    of: String,
}

/// The variables of one frame, by name.
type Frame = BTreeMap<String, Seen>;

fn frame(frame: &Value) -> Frame {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let variables = frame["variables"].as_array().expect("variables, asked for");
    let seen = variables.iter().map(|v| {
        let seen = Seen {
            value: text(&v["value"]),
            unavailable: text(&v["unavailable"]),
            shared: v["shared"].as_bool(),
            note: text(&v["note"]).unwrap_or_default(),
            of: text(&v["type"]).expect("a type"),
        };
        assert!(seen.value.is_some() != seen.unavailable.as_ref().is_some_and(|why| !why.is_empty()), "{v}");
        (text(&v["name"]).expect("a name"), seen)
    });
    let found: Frame = seen.collect();
    assert_eq!(found.len(), variables.len(), "a name comes twice: {variables:?}");
    found
}

/// One thread: its number and its frames, with what constructs they are the bodies of and their functions.
struct Thread {
    number: u32,
    frames: Vec<(Option<String>, Option<String>, Frame)>,
}

impl Thread {
    fn body(&self, construct: &str) -> &Frame {
        let found = self.frames.iter().find(|(c, ..)| c.as_deref() == Some(construct));
        &found.unwrap_or_else(|| panic!("thread {} has no {construct}", self.number)).2
    }

    fn function(&self, function: &str) -> &Frame {
        let found = self.frames.iter().find(|(c, f, _)| c.is_none() && f.as_deref() == Some(function));
        &found.unwrap_or_else(|| panic!("thread {} has no {function}", self.number)).2
    }
}

/// All of a process's threads, in the order of their numbers.
fn threads(running: &Running, target: &str) -> Vec<Thread> {
    let (report, status) = common::json(&["stacks", "--locals", target]);
    assert_eq!(status, 0);
    let mut threads: Vec<Thread> = running
        .truth
        .threads
        .iter()
        .map(|known| {
            let stacks = report["stacks"].as_array().expect("stacks");
            let stack = stacks.iter().find(|s| s["lwp"] == known.lwp).expect("the thread's stack");
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let frames = stack["frames"].as_array().expect("frames").iter();
            Thread {
                number: known.api.as_ref().and_then(|api| u32::try_from(api.thread_num).ok()).expect("a number"),
                frames: frames.map(|f| (text(&f["construct"]), text(&f["function"]), frame(f))).collect(),
            }
        })
        .collect();
    threads.sort_by_key(|t| t.number);
    assert_eq!(threads.iter().map(|t| t.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    threads
}

#[derive(Debug, Default)]
struct Tally {
    equal: usize,
    unavailable: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Tally {
    /// Compares a variable with what it must be. It may be unavailable only if `all` is not set.
    fn compare(&mut self, what: &str, frame: &Frame, name: &str, value: &str, all: bool) {
        match frame.get(name) {
            Some(Seen { value: Some(seen), .. }) if seen == value => self.equal += 1,
            Some(Seen { unavailable: Some(_), .. }) if !all => {
                *self.unavailable.entry(name.to_owned()).or_default() += 1
            }
            other => self.wrong.push(format!("{what}: {name} is {value}, and shown: {other:?}")),
        }
    }
}

/// Inspects a program everywhere, live and from a core, and gives each result to `check`.
fn everywhere(program: &str, check: impl Fn(&mut Tally, &str, &[Thread], Toolchain, Opt, bool)) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2, Opt::O3] {
            let executable = build(program, toolchain, opt, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let directory = tempfile::tempdir().expect("a directory for the core");
            let mut targets = vec![(running.pid.to_string(), true)];
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => targets.push((core.to_str().expect("a plain path").to_owned(), false)),
                Err(skip) => skip.show(),
            }
            for (target, live) in targets {
                let what =
                    format!("{program} {toolchain:?} {opt:?} on {runtime:?}, {}", if live { "live" } else { "core" });
                let mut tally = Tally::default();
                check(&mut tally, &what, &threads(&running, &target), toolchain, opt, live);
                // Directly, so that it is seen for passing tests as well.
                let (equal, other) = (tally.equal, &tally.unavailable);
                let _ = writeln!(std::io::stderr(), "{what}: {equal} values equal, unavailable: {other:?}");
                compared += tally.equal;
                wrong.extend(tally.wrong);
            }
            running.release().expect("the program goes on to its end");
        }
    }
    assert!(compared > 0, "nothing was compared");
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the threads of `locals.c` have of their own in the region, by name.
fn own(number: u32) -> Vec<(&'static str, String)> {
    let n = u64::from(number);
    let iteration = 3 + 10 * n;
    let values: Vec<String> = (0..8).map(|k| (n * 1000 + k).to_string()).collect();
    vec![
        ("number", n.to_string()),
        ("mine", (100 + n).to_string()),
        ("first", (70 + n).to_string()),
        ("values", format!("{{{}, …}}", values.join(", "))),
        ("fraction", format!("{n}.25")),
        ("color", if n % 2 == 1 { "BLUE" } else { "GREEN" }.to_owned()),
        ("point", format!("{{x = {n}, y = -1.5, inner = …, name = 0x0}}")),
        ("text", format!("\"{}\\\"b\\n\"", ["a", "b", "c", "d"][number as usize])),
        ("odd", (n % 2 == 1).to_string()),
        ("length", (65000 + n).to_string()),
        ("i", iteration.to_string()),
        ("square", (iteration * iteration).to_string()),
    ]
}

const SHARED: [(&str, &str); 3] =
    [("shared_count", "1234"), ("shared_ratio", "2.5"), ("shared_point", "{x = -7, y = 0.125, inner = …, name = 0x0}")];

#[test]
fn every_kind_of_variable() {
    everywhere("locals", |tally, what, threads, toolchain, opt, live| {
        let all = opt == Opt::O0;
        for thread in threads {
            let what = format!("{what}, thread {}", thread.number);
            let body = thread.body("parallel");
            for (name, value) in own(thread.number) {
                tally.compare(&what, body, name, &value, all);
                let seen = &body[name];
                // GCC's outlined functions have copies of what is shared as well: their clauses cannot be told.
                let proven = toolchain == Toolchain::Clang || !matches!(name, "mine" | "first");
                if all && proven || seen.shared.is_some() {
                    assert_eq!(seen.shared, proven.then_some(false), "{what}: {name}");
                }
            }
            for (name, value) in SHARED {
                tally.compare(&what, body, name, value, all);
                assert_eq!(body[name].shared, Some(true), "{what}: {name}");
                tally.compare(&what, thread.function("main"), name, value, all);
            }
            assert_eq!(body["shared_count"].of, "int", "{what}");
            // Where it points, and that all agree on it.
            let pointers: Vec<&Option<String>> =
                threads.iter().map(|t| &t.body("parallel")["shared_pointer"].value).collect();
            assert!(pointers.windows(2).all(|pair| pair[0] == pair[1]), "{what}: {pointers:?}");
            if all {
                assert_eq!(body["pointer"].value, *pointers[0], "{what}");
                tally.compare(&what, thread.function("main"), "first", "70", true);
                let hold = thread.function("hold");
                tally.compare(&what, hold, "number", &thread.number.to_string(), true);
                tally.compare(&what, hold, "argument", &(3 + 10 * thread.number).to_string(), true);
            }
            if toolchain == Toolchain::Clang {
                tally.compare(&what, body, ".omp.iv", &thread.number.to_string(), all);
            } else {
                // Whatever the level: GCC keeps what others may look at in memory, and says where.
                for name in ["mine", "first", "values", "fraction", "color", "point", "text", "odd", "length", "square"]
                {
                    assert!(body[name].value.is_some(), "{what}: {name} is {:?}", body[name]);
                }
            }
            if thread.number == 3 {
                let task = thread.body("task");
                let square = (33 * 33).to_string();
                tally.compare(&what, task, "inside", &(33 * 33 + 1).to_string(), all);
                // libomp keeps what is private to a task where it keeps the task, and that is on no stack.
                let on_heap = toolchain == Toolchain::Clang && live;
                tally.compare(&what, task, "square", &square, all && !on_heap);
                tally.compare(&what, task, "number", "3", all && !on_heap);
                tally.compare(&what, task, "i", "33", all && !on_heap);
                if on_heap && all {
                    let why = task["square"].unavailable.as_deref();
                    assert!(why.is_some_and(|why| why.ends_with("not on a copied stack")), "{what}: {why:?}");
                }
            }
        }
    });
}

#[test]
fn what_clang_describes_wrongly() {
    everywhere("locals_loop", |tally, what, threads, toolchain, opt, _live| {
        let all = opt == Opt::O0;
        for thread in threads {
            let what = format!("{what}, thread {}", thread.number);
            let number = f64::from(thread.number);
            let iteration = 3.0 + 10.0 * number;
            let body = thread.body("parallel");
            tally.compare(&what, body, "total", &iteration.to_string(), all);
            tally.compare(&what, body, "extra", &(iteration / 2.0).to_string(), all);
            tally.compare(&what, body, "fixed", "{0.5, 1.5, 2.5}", all);
            assert_eq!(body["fixed"].shared, Some(true), "{what}");
            let main = thread.function("main");
            if toolchain == Toolchain::Clang {
                tally.compare(&what, body, ".omp.iv", &number.to_string(), all);
                let why = body["i"].unavailable.as_deref().unwrap_or_default();
                assert!(why.contains(".omp.iv"), "{what}: {:?}", body["i"]);
                assert_eq!(
                    (&body["variable"].value, &body["variable"].of),
                    (&main["variable"].value, &main["variable"].of)
                );
                assert!(body["variable"].note.contains("clang describes it as double here"), "{what}: {body:?}");
            } else {
                tally.compare(&what, body, "i", &iteration.to_string(), all);
            }
            if all {
                tally.compare(&what, main, "total", "1000", true);
                tally.compare(&what, main, "bound", "43", true);
            }
        }
    });
}

#[test]
fn nothing_is_shown_that_was_not_asked_for() {
    let Some((toolchain, runtime)) = combinations().into_iter().find(|(_, runtime)| *runtime != Runtime::Libiomp5)
    else {
        return;
    };
    let executable = build("locals", toolchain, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
    let pid = running.pid.to_string();
    let shown = |args: &[&str]| {
        let (out, err, status) = texts(&run(args));
        assert_eq!((err.as_str(), status), ("", 0), "{args:?}");
        out
    };
    for args in [&["stacks", &pid] as &[&str], &["stacks", "--all", "-v", &pid], &["--json", &pid], &["-v", &pid]] {
        let text = shown(args);
        assert!(!text.contains("shared_count") && !text.contains("variables"), "{args:?}: {text}");
    }
    let text = shown(&["stacks", "--locals", &pid]);
    assert!(text.contains("shared_count: int = 1234 (shared)"), "{text}");
    assert!(text.contains("number: int = 1 (private)"), "{text}");
    running.release().expect("the program goes on to its end");
}

/// Debug information that says anything at all: the command ends by itself, with a report or without, and says so.
#[test]
fn damaged_debug_information() {
    const VARIANTS: u64 = 24;
    let executable = build("locals", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let directory = tempfile::tempdir().expect("a directory");
    let core = match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    running.release().expect("the program goes on to its end");
    let sound = std::fs::read(&executable.path).expect("the executable");
    let file = ompd_process::ElfFile::open(&executable.path).expect("an ELF file");
    let sections = [".debug_info", ".debug_loclists", ".debug_abbrev", ".debug_rnglists"];
    let places: Vec<_> = sections.iter().filter_map(|name| Some(file.plain_section(name)?.1.place())).collect();
    assert!(places.len() >= 3, "{places:?}");
    let damaged = directory.path().join("damaged");
    let mut shown = 0;
    for variant in 1..=VARIANTS {
        let mut random = test_programs::Random::new(variant.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = sound.clone();
        let place = &places[(variant as usize) % places.len()];
        for _ in 0..=variant {
            let at = place.start + random.below(place.len());
            bytes[at] = random.number() as u8;
        }
        std::fs::write(&damaged, &bytes).expect("a file");
        let (exe, core) = (damaged.to_str().expect("plain"), core.to_str().expect("plain"));
        let mut command = common::command();
        command.args(["stacks", "--locals", "--exe", exe, core]);
        let (out, err, status) = texts(&common::bounded(&mut command));
        assert!(matches!(status, 0 | 1), "variant {variant}: {status}: {err}");
        shown += usize::from(out.contains("shared_count"));
    }
    // Most of it is still sound each time, or nothing would have been tried.
    assert!(shown > VARIANTS as usize / 4, "variables were shown {shown} times");
}
