//! What programs do that is hard for a library between them and their runtime. Each program ends as it does without the library.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use test_programs::{Opt, Skip};

use crate::common::{companion, library, preload, program};

/// Runs a program alone, with the library, and with the companion as its tool. Its text and its end have to be the same.
pub fn the_same(path: &Path, arguments: &[&str]) -> Option<Output> {
    let companion = companion()?;
    let run = |variables: &[(&str, &str)]| {
        // A program that hangs would keep the tests from their end.
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", "60"]).arg(path).args(arguments);
        // Threads that wait do not take the processors of those that work.
        command
            .env("OMP_WAIT_POLICY", "passive")
            .env_remove("OMP_NUM_THREADS")
            .env_remove("LD_LIBRARY_PATH")
            .envs(variables.iter().copied());
        command.output().expect("timeout starts the program")
    };
    let preload = preload();
    let alone = run(&[]);
    for variables in [&[("LD_PRELOAD", &*preload)][..], &[("LD_PRELOAD", &preload), ("OMP_TOOL_LIBRARIES", &companion)]]
    {
        let with = run(variables);
        let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&with.stderr);
        assert_eq!((text(&with), with.status), (text(&alone), alone.status), "{arguments:?} {variables:?}: {errors}");
    }
    Some(alone)
}

/// What the program of the other tests prints, and how it ends.
fn hostile(arguments: &[&str], status: i32, lines: &[&str]) {
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program("tool_hostile", opt, &[]) else { return };
        let Some(alone) = the_same(&program.path, arguments) else { return };
        let text = String::from_utf8_lossy(&alone.stdout);
        assert_eq!(text.lines().collect::<Vec<_>>(), lines, "{opt:?}");
        assert_eq!(alone.status.code(), Some(status), "{opt:?} {text}");
    }
}

#[test]
fn a_worker_replaces_the_program_by_another() {
    hostile(&["exec"], 0, &["before exec 194", "after exec 194"]);
}

#[test]
fn a_task_of_a_worker_ends_the_program() {
    hostile(&["exit"], 5, &["before exit 194"]);
}

#[test]
fn a_worker_forks_inside_a_region() {
    for how in ["fork", "fork-exit"] {
        hostile(&[how], 0, &["before fork 193", "child 6", "after fork 193"]);
    }
}

#[test]
fn a_library_whose_region_ran_is_unloaded() {
    let Some(module) = program("tool_hostile_module", Opt::O2, &["-shared", "-fPIC"]) else { return };
    let module = module.path.display().to_string();
    hostile(&["dlclose", &module], 0, &["unloaded 2123"]);
}

#[test]
fn jumps_pass_over_calls_of_the_runtime() {
    let mut lines = vec!["jumped inside 500"];
    lines.extend(["level 1", "works 192", "level 2", "works 192", "level 3", "works 192"]);
    hostile(&["longjmp"], 0, &lines);
}

#[test]
fn a_thousand_threads_have_ten_thousand_regions() {
    hostile(&["threads"], 0, &["executed 20000"]);
}

#[test]
fn regions_are_nested_64_levels_deep() {
    hostile(&["nested"], 0, &["levels 64", "executed 133"]);
}

#[test]
fn exceptions_leave_regions_and_leagues() {
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program("tool_throws", opt, &[]) else { return };
        let Some(out) = the_same(&program.path, &["out"]) else { return };
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.ends_with("caught 200, destroyed 400, members 2\n"), "{text}");
        let terminated = the_same(&program.path, &["terminate"]).expect("the companion is there");
        assert_eq!(String::from_utf8_lossy(&terminated.stdout), "terminated\n");
        assert_eq!(terminated.status.code(), Some(7));
    }
}

/// The functions of locks have two versions, for locks of different sizes.
#[test]
fn locks_of_programs_before_gcc_4_4_go_to_the_functions_for_them() {
    for language in ["c", "fortran"] {
        let Some(program) = program("old_locks", Opt::O0, &[]) else { return };
        let Some(alone) = the_same(&program.path, &[language]) else { return };
        let text = String::from_utf8_lossy(&alone.stdout);
        assert_eq!(text, "sum 900, tested 600\nbehind 111 222 111 222\n", "{language}");
    }
}

/// What a program prints that another user starts, and whether the library has written the log that the environment names.
fn as_another_user(program: &Path, folder: &Path, preload: &str, companion: &str) -> (String, bool) {
    const NOBODY: u32 = 65534;
    let log = folder.join("log");
    let output = Command::new(program)
        .arg("asks")
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .env_remove("LD_LIBRARY_PATH")
        .envs([("LD_PRELOAD", preload), ("OMP_TOOL_LIBRARIES", companion)])
        .env("OMP_TOOL_VERBOSE_INIT", &log)
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    (text, fs::remove_file(log).is_ok())
}

/// The loader ignores the preload. A library that is linked trusts none of its variables.
#[test]
fn a_set_user_id_program_takes_nothing_from_the_environment() {
    // SAFETY: it only asks the kernel.
    if unsafe { libc::geteuid() } != 0 {
        return Skip::because("only root can make a program that runs as root for another user").show();
    }
    let Some(companion) = companion() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // Another user reads and writes here, and may not be able to reach the folders that cargo makes.
    let open = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).expect("own files");
    open(folder.path(), 0o777);
    let copy = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).expect("room");
        open(&to, 0o755);
        to
    };
    let library = copy(&library(), "libgomp_ompt.so");
    let companion = copy(Path::new(&companion), "libompt_companion.so").display().to_string();
    let Some(plain) = program("tool_hostile", Opt::O0, &[]) else { return };
    // Built here: the kit keeps what it builds, and this folder's name is in the file.
    let linked = folder.path().join("built");
    let mut gcc = Command::new("gcc");
    gcc.args(["-fopenmp", "-Wl,--no-as-needed", "-o"]).arg(&linked);
    gcc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/programs/tool_hostile.c"));
    gcc.arg(&library).arg(format!("-Wl,-rpath,{}", folder.path().display()));
    assert!(test_programs::succeeds(&mut gcc), "{gcc:?}");
    for (name, program, preload) in
        [("plain", plain.path, library.display().to_string()), ("linked", linked, String::new())]
    {
        let program = copy(&program, name);
        let is = |secure, library, tool| format!("secure {secure}\nlibrary {library}\ntool {tool}\n");
        let (text, wrote) = as_another_user(&program, folder.path(), &preload, &companion);
        assert_eq!((text, wrote), (is(0, 1, 1), true), "{name}, with the rights of its user");
        open(&program, 0o4755);
        let (text, wrote) = as_another_user(&program, folder.path(), &preload, &companion);
        if text.starts_with("secure 0") {
            let reason = format!("{} is mounted without set-user-id programs", folder.path().display());
            return Skip::because(reason).show();
        }
        assert_eq!((text, wrote), (is(1, u8::from(name == "linked"), 0), false), "{name}, with the rights of root");
    }
}
