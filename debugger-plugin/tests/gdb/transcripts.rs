//! What the documentation shows as a session of gdb is what gdb prints. `UPDATE_TRANSCRIPTS=1` writes it anew.

use std::fs;
use std::path::Path;

use debugger_plugin::Gdb;
use test_programs::transcripts::{blocks, is_updated, words};
use test_programs::{Env, Executable, Launch, Opt, Runtime, Skip, Toolchain, build};

use crate::common::{has_gdb, library};

/// The columns of the terminal, and which gdb it is.
const BEFORE: [&str; 2] = ["set width 100", "show version"];

#[test]
fn sessions_of_the_page_are_current() {
    if !has_gdb() {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/gdb-plugin.md");
    let mut page = fs::read_to_string(&file).expect("the page");
    let sessions = blocks(&page, "(gdb) ");
    assert!(!sessions.is_empty(), "the page shows no session");
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hang");
    fs::copy(&executable.path, &path).expect("a copy with the name that readers know");
    let executable = Executable { path, ..executable };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/programs");
    let sources = sources.canonicalize().expect("the folder of the programs");
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    // From the last one, so that places of the others stay.
    for place in sessions.into_iter().rev() {
        let commands: Vec<String> =
            page[place.clone()].lines().filter_map(|line| line.strip_prefix("(gdb) ")).map(str::to_owned).collect();
        let all: Vec<&str> = BEFORE.into_iter().chain(commands.iter().map(String::as_str)).collect();
        let printed = Gdb::attached(&library(), &running).run(&all).expect("gdb runs");
        // Others print frames of the system otherwise.
        let is_debian_12 = printed[1].contains("GNU gdb (Debian 13.")
            && printed.iter().any(|output| output.contains("pthread_create.c"));
        if !is_debian_12 {
            Skip::because("sessions of the page: this is not gdb of Debian 12 with libc6-dbg").show();
            return;
        }
        let session: String = commands
            .iter()
            .zip(&printed[BEFORE.len()..])
            .map(|(command, output)| format!("(gdb) {command}\n{}\n", output.trim_end()))
            .collect();
        // The reader has built it in the folder with its source.
        let session = session.replace(&format!("{}/", sources.display()), "");
        if is_updated() {
            page.replace_range(place, &session);
            fs::write(&file, &page).expect("the page");
            continue;
        }
        assert_eq!(words(&page[place]), words(&session), "UPDATE_TRANSCRIPTS=1 writes what is printed now:\n{session}");
    }
}
