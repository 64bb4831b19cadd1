//! Debug files from a server, with a `debuginfod-find` of our own: asked only when allowed, never once the process has
//! been stopped, and not believed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Subject};
use ompd_process::elf::ElfFile;

/// A stripped program, its debug file, and a program that answers for a server.
struct Server {
    dir: tempfile::TempDir,
    program: PathBuf,
    debug: PathBuf,
    id: String,
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::tempdir().expect("directory");
        let at = |name: &str| dir.path().join(name);
        let (program, debug) = (at("stripped"), at("whole.debug"));
        support::run(Command::new("objcopy").arg("--strip-all").arg(support::subject()).arg(&program));
        support::run(Command::new("objcopy").arg("--only-keep-debug").arg(support::subject()).arg(&debug));
        let id = ElfFile::open(&program).expect("ELF").build_id().expect("build-id").to_string();
        for below in ["bin", "store"] {
            std::fs::create_dir(at(below)).expect("directory");
        }
        // It writes down how it was called, and who traced the process at that moment.
        let text = format!(
            "#!/bin/sh\n\
             tracer=$(sed -n 's/^TracerPid:[[:space:]]*//p' \"/proc/$SUBJECT/status\")\n\
             echo \"$* tracer $tracer\" >>'{dir}/log'\n\
             test -e \"{dir}/store/$2\" && echo \"{dir}/store/$2\" && exit 0\n\
             echo 'Server query failed: No such file or directory' >&2\n\
             exit 1\n",
            dir = dir.path().display()
        );
        std::fs::write(at("script"), text).expect("script");
        let target = at("bin/debuginfod-find");
        support::run(Command::new("install").args(["-m", "755"]).arg(at("script")).arg(target));
        Server { program, debug, id, dir }
    }

    /// Puts a file where the server finds it under the build-id of the program.
    fn offer(&self, file: &Path) -> PathBuf {
        let place = self.dir.path().join("store").join(&self.id);
        std::fs::copy(file, &place).expect("copy");
        place
    }

    /// What the search in a fresh process said, with this server to ask and programs found in `path`.
    fn search_with(&self, path: &str, args: &[&str], steps: &[&str]) -> Vec<String> {
        let subject = Subject::spawn(Command::new(&self.program).args(["threads", "1"]));
        let pid = subject.pid().to_string();
        let mut command = support::example("debug_search", args);
        let out = command.arg(&pid).args(steps).env("PATH", path).env("SUBJECT", &pid).output().expect("run");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
    }

    fn search(&self, args: &[&str], steps: &[&str]) -> Vec<String> {
        let path = format!("{}:{}", self.dir.path().join("bin").display(), std::env::var("PATH").expect("PATH"));
        self.search_with(&path, args, steps)
    }

    /// How often and how it was called.
    fn calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}

#[test]
fn without_permission_nothing_is_run() {
    let server = Server::start();
    server.offer(&server.debug);
    let lines = server.search(&[], &["stripped"]);
    assert!(lines.iter().any(|l| l.contains(&format!("{}.debug: ", &server.id[2..]))), "{lines:?}");
    assert!(!lines.iter().any(|l| l.contains("debuginfod") || l.ends_with(": used")), "{lines:?}");
    assert_eq!(server.calls(), [""; 0]);
}

#[test]
fn with_permission_it_is_asked_by_build_id_before_the_stop_and_never_after() {
    let server = Server::start();
    let place = server.offer(&server.debug);
    let lines = server.search(&["--debuginfod"], &["stripped", "--stop", "stripped"]);
    let used = format!("stripped: {}: used", place.display());
    assert_eq!(lines.iter().filter(|l| **l == used).count(), 2, "{lines:?}");
    let calls = [format!("debuginfo {} tracer 0", server.id)];
    assert_eq!(server.calls(), calls);

    let lines = server.search(&["--debuginfod"], &["--stop", "stripped"]);
    assert!(lines.iter().any(|l| l.contains("not asked, because the process has been stopped")), "{lines:?}");
    assert_eq!(server.calls(), calls);
}

#[test]
fn what_it_delivers_is_verified() {
    let server = Server::start();
    let lines = server.search(&["--debuginfod"], &["stripped"]);
    assert!(lines.iter().any(|l| l.ends_with("Server query failed: No such file or directory")), "{lines:?}");

    let other = "0123456789abcdef0123456789abcdef01234567";
    let flags = ["-pie", "-fPIE", &format!("-Wl,--build-id=0x{other}")];
    let place = server.offer(&support::compile("subject.c", "other-build", &flags));
    let lines = server.search(&["--debuginfod"], &["stripped"]);
    let refused = |l: &String| [other, &server.id, &place.to_string_lossy()].iter().all(|part| l.contains(*part));
    assert!(lines.iter().any(refused) && !lines.iter().any(|l| l.ends_with(": used")), "{lines:?}");

    // Without the program there is a line that says so.
    let lines = server.search_with("/no/such/directory", &["--debuginfod"], &["stripped"]);
    assert!(lines.iter().any(|l| l.contains("no such program in PATH")), "{lines:?}");
    assert_eq!(server.calls().len(), 2);
}

#[test]
fn a_file_without_build_id_cannot_be_asked_for() {
    let server = Server::start();
    let program = server.dir.path().join("nameless");
    let mut objcopy = Command::new("objcopy");
    support::run(
        objcopy.args(["--strip-all", "--remove-section=.note.gnu.build-id"]).arg(&server.program).arg(&program),
    );
    let nameless = Server { program, ..server };
    let lines = nameless.search(&["--debuginfod"], &["nameless"]);
    assert!(lines.iter().any(|l| l.contains("no build-id to ask debuginfod for")), "{lines:?}");
    assert_eq!(nameless.calls(), [""; 0]);
}

/// The supplementary file of a program is asked for as well, under its own build-id.
#[test]
fn supplementary_files_are_asked_for_too() {
    if !support::have("dwz") {
        return support::skip("dwz is not installed");
    }
    let server = Server::start();
    let dir = server.dir.path();
    let (first, second, common) = (dir.join("first"), dir.join("second"), dir.join("common"));
    for copy in [&first, &second] {
        support::copy_program(support::subject(), copy);
    }
    support::run(Command::new("dwz").arg("-m").arg(&common).args(["-M", "common"]).args([&first, &second]));
    let id = ElfFile::open(&common).expect("ELF").build_id().expect("build-id").to_string();
    let place = dir.join("store").join(&id);
    std::fs::rename(&common, &place).expect("rename");
    let split = Server { program: first, ..server };
    let lines = split.search(&["--debuginfod"], &["first"]);
    assert!(lines.contains(&format!("first: {}: used", place.display())), "{lines:?}");
    assert_eq!(split.calls(), [format!("debuginfo {id} tracer 0")]);
}
