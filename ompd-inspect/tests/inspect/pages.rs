//! What the views say of programs that stand still, word for word; and that a narrow terminal gets the same words.

use crate::common::command;
use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use nix::pty::{OpenptyResult, Winsize, openpty};
use test_programs::{Env, HANGS, Launch, Opt, Running, Runtime, Toolchain, build, combinations};

/// What the command writes to a terminal of this width.
pub fn on_terminal(columns: u16, view: &[&str], pid: i32) -> String {
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(Some(&size), None).expect("a terminal");
    let mut command = command();
    command.args(view).args(["--color", "never", &pid.to_string()]).stdout(Stdio::from(slave)).stderr(Stdio::piped());
    let mut child = command.spawn().expect("ompd-inspect can be started");
    // The command has the other end of the terminal still.
    drop(command);
    let (mut master, mut text) = (File::from(master), Vec::new());
    // When the last who had the other end open is gone, reading fails (EIO).
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = master.read(&mut piece) {
        text.extend_from_slice(&piece[..length]);
    }
    assert!(child.wait().expect("its end").success(), "{view:?} in {columns} columns");
    String::from_utf8(text).expect("text").replace("\r\n", "\n")
}

fn words(text: &str) -> Vec<&str> {
    // How long it was stopped differs from one look to the next, and whether it was.
    let (before, how) = text.split_once("live, ").expect("how it was read");
    let ends = how.match_indices('\n').map(|(at, _)| at + 1).find(|at| !how[*at..].starts_with(' '));
    let rest = &how[ends.expect("what follows")..];
    let mut words: Vec<&str> = before.split_whitespace().chain(rest.split_whitespace()).collect();
    words.sort_unstable();
    words
}

/// Views of one process. Without a width limit, they are compared without what differs from run to run. In 80 columns no line is
/// longer, and no word is broken or lost.
fn pages(program: &str, running: &Running, views: &[&[&str]]) {
    let mut numbers: Vec<i32> = running.truth.threads.iter().map(|t| t.lwp).chain([running.pid]).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut filters: Vec<(String, &str)> = numbers.iter().map(|lwp| (format!(r"\b{lwp}\b"), "[LWP]")).collect();
    let fixed = [
        // Numbers of descriptors, and other processes.
        (r"truth\.h:\d+", "truth.h:[N]"),
        (r"of pipe \d+ \([^)]*\)", "of [PIPE]"),
        (r"See what process \d+ does: `ompd-inspect \d+`", "See what process [PID] does: `ompd-inspect [PID]`"),
        // How long numbers are decides where lines break and columns begin.
        (r"\n {4,}", " "),
        (r"(\S) {2,}", "$1  "),
        // How many threads were stopped depends on which of them were asleep.
        (r"live, (not stopped|(\d+ threads? )?stopped for \d+\.\d ms)", "live, [HOW]"),
        (r"on \d+ cpus?( \([^)]*\))?", "on [N] cpus"),
        (r"stacksize-var  \d+", "stacksize-var  [BYTES]"),
        (r"num-procs-var  \d+", "num-procs-var  [N]"),
        (r"0x[0-9a-f]+", "[ADDRESS]"),
        (r" /\S+", " [PATH]"),
    ];
    filters.extend(fixed.map(|(pattern, text)| (pattern.to_owned(), text)));
    for view in views {
        let wide = on_terminal(200, view, running.pid);
        let narrow = on_terminal(80, view, running.pid);
        for (text, columns) in [(&wide, 200), (&narrow, 80)] {
            // A path may be longer than any line.
            let longest = text.lines().filter(|line| !line.contains("  /")).map(|line| line.chars().count()).max();
            assert!(longest <= Some(columns), "{program} {view:?} in {columns} columns: {text}");
        }
        assert_eq!(words(&wide), words(&narrow), "{program} {view:?}:\n{wide}\n{narrow}");
        // On a telephone: tables become records, and only paths are longer than a line.
        let tiny = on_terminal(40, view, running.pid);
        let longest = tiny.lines().filter(|line| !line.contains('/')).map(|line| line.chars().count()).max();
        assert!(longest <= Some(40), "{program} {view:?} in 40 columns: {tiny}");
        let filters = filters.iter().map(|(pattern, text)| (pattern.as_str(), *text)).collect::<Vec<_>>();
        insta::with_settings!({ omit_expression => true, filters => filters }, {
            insta::assert_snapshot!(format!("{program}_{}", view.concat().replace('-', "_")), wide);
        });
    }
}

fn hang(program: &str, flags: &[&str]) -> Running {
    let case = HANGS.iter().find(|case| case.program == program && case.flags == flags).expect("a hang of the kit");
    let executable = build(case.program, Toolchain::Gcc, Opt::O2, case.flags).expect("the program builds");
    Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs")
}

#[test]
fn a_cycle_of_locks() {
    pages("lock_cycle", &hang("hangs/lock_cycle", &["-DNEST"]), &[&["waits"], &["teams"]]);
}

#[test]
fn a_cycle_through_dependences() {
    let running = hang("hangs/depend_cycle", &["-DNEST"]);
    pages("depend_cycle", &running, &[&["waits"], &["tasks"], &["tasks", "--tree"]]);
}

#[test]
fn a_turn_that_does_not_come() {
    pages("ordered_skip", &hang("hangs/ordered_skip", &[]), &[&["waits"], &["loops"]]);
}

#[test]
fn a_region_inside_that_got_one_thread() {
    pages("nested_exhausted", &hang("hangs/nested_exhausted", &[]), &[&["waits"]]);
}

#[test]
fn a_barrier_that_lacks_one() {
    if !combinations().contains(&(Toolchain::Clang, Runtime::Libomp14)) {
        return;
    }
    let executable = build("barriers", Toolchain::Clang, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&executable, Runtime::Libomp14, Env::Settled).variable("BARRIER", "sections");
    // More than one might be more than there are processors, which would be said.
    let launch = launch.variable("OMP_NUM_THREADS", "1");
    let running = launch.start().expect("the program starts");
    pages("barriers", &running, &[&["waits"], &["teams"], &["icvs"]]);
    running.release().expect("the program's end");
}
