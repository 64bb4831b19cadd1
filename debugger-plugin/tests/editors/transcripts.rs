//! What the documentation shows of an editor is what the debuggers send to one. `UPDATE_TRANSCRIPTS=1` writes it anew.

use std::fs;
use std::path::Path;

use debugger_plugin::dap::{Dap, Target};
use debugger_plugin::gdbs;
use debugger_plugin::lldb::lldbs;
use test_programs::transcripts::{blocks, is_updated, words};
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Skip, Toolchain, build};

use crate::common::{has_gdb, library};

/// What begins a line that is typed into the debug console.
const TYPED: &str = "> ";
/// The thread whose frames are shown.
const SHOWN: &str = "omp 0.3 (4)";

#[test]
fn sessions_of_the_page_are_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/editors.md");
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hang");
    fs::copy(&executable.path, &path).expect("a copy with the name that readers know");
    let executable = Executable { path, ..executable };
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    let gdb = if has_gdb() { gdbs().into_iter().find(|gdb| gdb.version == 16) } else { None };
    match gdb {
        Some(gdb) => is_current(&file, "gdb 16", &running, &executable.path, || Dap::gdb(&gdb, &library())),
        None => Skip::because("sessions of the page: gdb 16 is not here; \"ci/fetch gdb\" gets it").show(),
    }
    match lldbs().into_iter().find(|lldb| lldb.version == 19) {
        Some(lldb) => is_current(&file, "LLDB 19", &running, &executable.path, || Dap::lldb(&lldb, &library())),
        None => Skip::because("sessions of the page: LLDB 19 is not here; ci/setup gets it").show(),
    }
}

/// The blocks of the page that begin with the name of a debugger.
fn is_current(
    file: &Path,
    name: &str,
    running: &Running,
    program: &Path,
    start: impl Fn() -> anyhow::Result<Result<Dap, Skip>>,
) {
    let mut page = fs::read_to_string(file).expect("the page");
    let sessions = blocks(&page, &format!("{name}\n"));
    assert!(!sessions.is_empty(), "the page shows no session of {name}");
    // From the last one, so that places of the others stay.
    for place in sessions.into_iter().rev() {
        let mut dap = match start().expect("the debugger starts") {
            Ok(dap) => dap,
            Err(skip) => return skip.show(),
        };
        dap.attach(program, Target::Pid(running.pid)).expect("it attaches");
        let commands: Vec<String> =
            page[place.clone()].lines().filter_map(|line| line.strip_prefix(TYPED)).map(str::to_owned).collect();
        let session = session(&mut dap, name, &commands);
        dap.detach().expect("it detaches");
        // Others have other frames of the system, or none.
        if !session.contains("[worker]") || !session.contains("clone3") {
            return Skip::because("sessions of the page: this is not Debian 12 with libc6-dbg").show();
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/programs");
        let sources = sources.canonicalize().expect("the folder of the programs");
        let session = session.replace(&format!("{}/", sources.display()), "");
        if is_updated() {
            page.replace_range(place, &session);
            fs::write(file, &page).expect("the page");
            continue;
        }
        assert_eq!(words(&page[place]), words(&session), "UPDATE_TRANSCRIPTS=1 writes what is printed now:\n{session}");
    }
}

/// The threads, the frames of one of them, and what the debug console prints.
fn session(dap: &mut Dap, name: &str, commands: &[String]) -> String {
    let mut text = format!("{name}\n");
    let mut threads = dap.threads().expect("threads");
    threads.sort_by(|one, other| one.1.cmp(&other.1));
    let mut frame = None;
    for (id, name) in &threads {
        text += &format!("  {name}\n");
        if name != SHOWN {
            continue;
        }
        for shown in dap.stack(*id).expect("frames") {
            let file = shown["source"]["name"].as_str().filter(|file| file.contains('.')).unwrap_or_default();
            let line = format!("    {:50}{}", shown["name"].as_str().unwrap_or_default(), place(file, &shown["line"]));
            text += &format!("{}\n", line.trim_end());
            frame = frame.or(shown["id"].as_i64());
        }
    }
    for command in commands {
        text += &format!("{TYPED}{command}\n{}\n", dap.console(command, frame).expect("an answer"));
    }
    text
}

/// The place of a frame as an editor shows it.
fn place(file: &str, line: &serde_json::Value) -> String {
    if file.is_empty() { String::new() } else { format!(" {file}:{line}") }
}
