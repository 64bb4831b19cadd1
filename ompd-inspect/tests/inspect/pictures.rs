//! Graphs of waits and of dependences: as text for Graphviz, drawn by it, and what is said where it is missing.

use crate::common::{bounded, command, texts};
use std::process::{Command, Stdio};

use test_programs::{Env, HANGS, Launch, Opt, Running, Runtime, Skip, Toolchain, build};

fn lock_cycle() -> Running {
    let case = HANGS.iter().find(|case| case.program == "hangs/lock_cycle" && case.flags == ["-DNEST"]);
    let case = case.expect("a hang of the kit");
    let executable = build(case.program, Toolchain::Gcc, Opt::O2, case.flags).expect("the program builds");
    Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs")
}

fn tasks_queued() -> Running {
    let executable = build("tasks_queued", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts")
}

/// What the command writes; it has to succeed.
fn shown(view: &str, form: &str, running: &Running) -> String {
    let (out, err, status) = texts(&bounded(command().args([view, form, &running.pid.to_string()])));
    assert_eq!((err.as_str(), status), ("", 0), "{view} {form}: {out}");
    out
}

/// The names of the nodes and the number of edges. Panics if a line is not a statement of a graph, or lacks something.
fn parsed(dot: &str) -> (Vec<&str>, usize) {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for line in dot.lines().filter_map(|line| line.strip_prefix("  ")) {
        let statement = line.strip_suffix(';').unwrap_or_else(|| panic!("{line}"));
        let statement = statement.split(" [").next().expect("a name");
        match statement.split_once(" -> ") {
            Some(edge) => edges.push(edge),
            None if line.contains("[label=\"") => nodes.push(statement),
            None => assert!(statement == "node" || statement == "rankdir=LR", "{line}"),
        }
    }
    for (from, to) in &edges {
        assert!(nodes.contains(from) && nodes.contains(to), "{from} -> {to} leads to no node: {dot}");
    }
    (nodes, edges.len())
}

/// Draws the graph, if there is something here to draw it with, and looks for every node and edge in the picture.
fn draw(view: &str, running: &Running) {
    let found = Command::new("dot").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Skip::because("there is no Graphviz (dot) to draw with; ci/setup gets it").show();
    }
    let dot = shown(view, "--dot", running);
    let (nodes, edges) = parsed(&dot);
    let svg = shown(view, "--svg", running);
    assert!(svg.contains("<svg ") && svg.trim_end().ends_with("</svg>"), "{view}: {svg}");
    assert_eq!(svg.matches("class=\"node\"").count(), nodes.len(), "{view}: {svg}");
    assert_eq!(svg.matches("class=\"edge\"").count(), edges, "{view}: {svg}");
}

/// Without Graphviz nothing is drawn, and it is said what to do.
fn cannot_draw(view: &str, running: &Running) {
    let empty = tempfile::tempdir().expect("a directory");
    let output = bounded(command().env("PATH", empty.path()).args([view, "--svg", &running.pid.to_string()]));
    let (out, err, status) = texts(&output);
    assert_eq!((out.as_str(), status), ("", 2), "{view}: {err}");
    let expected = "ompd-inspect: there is no Graphviz to draw with (`dot` is not in PATH)\n  remedy: install the package \
                    graphviz, or use --dot and draw it elsewhere\n";
    assert_eq!(err, expected, "{view}");
    // The text for it needs nothing.
    let (out, err, status) =
        texts(&bounded(command().env("PATH", empty.path()).args([view, "--dot", &running.pid.to_string()])));
    assert_eq!((err.as_str(), status), ("", 0), "{view}: {out}");
    assert!(out.starts_with("digraph "), "{view}: {out}");
}

fn snapshot(name: &str, text: String) {
    insta::with_settings!({
        omit_expression => true,
        filters => vec![(r"\bid \d+", "id [ID]"), (r"0x[0-9a-f]+", "[ADDRESS]")],
    }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn waits_as_a_graph() {
    let running = lock_cycle();
    let dot = shown("waits", "--dot", &running);
    let (nodes, edges) = parsed(&dot);
    assert_eq!((nodes.len(), edges), (9, 10), "{dot}");
    snapshot("waits_of_a_lock_cycle", dot);
    draw("waits", &running);
    cannot_draw("waits", &running);
}

/// A thread that waits for nothing of OpenMP has no edge that says why it is late.
#[test]
fn what_the_late_thread_does_is_in_the_graph() {
    let executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let dot = shown("waits", "--dot", &running);
    let late: Vec<&str> = dot.lines().filter(|line| line.contains("\\nread of pipe 0")).collect();
    assert!(late.len() == 1 && late[0].contains("thread 2 (id ") && late[0].contains("truth.h:"), "{dot}");
    draw("waits", &running);
    running.release().expect("the program's end");
}

#[test]
fn dependences_as_a_graph() {
    let running = tasks_queued();
    let dot = shown("tasks", "--dot", &running);
    let (nodes, edges) = parsed(&dot);
    assert_eq!((nodes.len(), edges), (6, 6), "{dot}");
    snapshot("dependences_of_queued_tasks", dot);
    draw("tasks", &running);
    cannot_draw("tasks", &running);
    running.release().expect("the program's end");
}
