//! What the documentation shows as a session of LLDB is what LLDB prints. `UPDATE_TRANSCRIPTS=1` writes it anew.

use std::fs;
use std::path::Path;

use debugger_plugin::lldb::{Lldb, lldbs};
use test_programs::transcripts::{blocks, is_updated, words};
use test_programs::{Env, Executable, Launch, Opt, Runtime, Skip, Toolchain, build};

use crate::common::library;

#[test]
fn sessions_of_the_page_are_current() {
    let Some(lldb) = lldbs().into_iter().find(|lldb| lldb.version == 19) else {
        Skip::because("sessions of the page: LLDB 19 is not here").show();
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lldb-plugin.md");
    let mut page = fs::read_to_string(&file).expect("the page");
    let sessions = blocks(&page, "(lldb) ");
    assert!(!sessions.is_empty(), "the page shows no session");
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hang");
    fs::copy(&executable.path, &path).expect("a copy with the name that readers know");
    let executable = Executable { path, ..executable };
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    // From the last one, so that places of the others stay.
    for place in sessions.into_iter().rev() {
        let commands: Vec<String> =
            page[place.clone()].lines().filter_map(|line| line.strip_prefix("(lldb) ")).map(str::to_owned).collect();
        let printed = Lldb::attached(&lldb, &library(), &running)
            .first("settings set term-width 100")
            .run(&commands)
            .expect("LLDB runs");
        // Others print frames of the system otherwise.
        if !printed.iter().any(|output| output.contains("__clone3 at clone3.S")) {
            Skip::because("sessions of the page: this is not Debian 12 with libc6-dbg").show();
            return;
        }
        let session: String = commands
            .iter()
            .zip(&printed)
            .map(|(command, output)| format!("(lldb) {command}\n{}\n", output.trim_end()))
            .collect();
        if is_updated() {
            page.replace_range(place, &session);
            fs::write(&file, &page).expect("the page");
            continue;
        }
        assert_eq!(words(&page[place]), words(&session), "UPDATE_TRANSCRIPTS=1 writes what is printed now:\n{session}");
    }
}
