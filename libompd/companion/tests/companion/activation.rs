//! How the companion gets into a program, and out of it.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ompd_process::elf::ElfFile;
use ompt_record::block::{SYMBOL, State};
use ompt_record::ompt::{CALLBACKS, ENTRY_POINTS};
use test_programs::{Skip, built_by_cargo};

use crate::common::{Held, companion, history, libraries, program, start};

#[test]
fn preloaded() {
    let Some(program) = program("recorded", &[]) else { return };
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        let variables = [("LD_PRELOAD", &*file)];
        let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
        assert_eq!(history(running.pid()).threads.len(), 3, "{what}");
        running.end();
    }
}

/// `doctor` names the files that can start a tool, and says whether one is active.
#[test]
fn the_tool_is_named() {
    use ompd_report::text;
    let Some(program) = program("recorded", &[]) else { return };
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        for disabled in [false, true] {
            let variables = [("LD_PRELOAD", &*file), ("OMP_TOOL", if disabled { "disabled" } else { "enabled" })];
            let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
            let inspection = crate::common::inspection(&running.pid().to_string());
            assert_eq!(inspection.tools, [&*file], "{what}");
            let how = text::How { width: Some(300), verbose: false, ..Default::default() };
            let told = text::plain(&text::render(&inspection, text::View::Doctor, how));
            assert!(told.contains(&format!("{file} exports ompt_start_tool")), "{what}: {told}");
            let states = inspection.runtimes[0].threads.iter().filter(|thread| thread.ompt_state.get().is_some());
            let read = inspection.runtimes[0].instance.missing.is_empty();
            assert_eq!(states.count(), if disabled || !read { 0 } else { 3 }, "{what}");
            assert_eq!(told.contains("a tool is active in"), !disabled && read, "{what}: {told}");
            running.end();
        }
    }
}

/// `OMP_TOOL=disabled` leaves the program alone, whatever else is set.
#[test]
fn disabled() {
    use ompd_inspection::history::{NoHistory, of_target};
    use ompd_process::{Live, OpenOptions};
    let Some(program) = program("recorded", &[]) else { return };
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        let variables = [("LD_PRELOAD", &*file), ("OMP_TOOL_LIBRARIES", &*file), ("OMP_TOOL", "disabled")];
        let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
        let live = Live::open(running.pid(), &OpenOptions::default()).expect("it can be opened");
        let refused = of_target(&live, 10).expect_err("nothing was recorded");
        assert!(matches!(refused, NoHistory::NoCompanion(_)), "{what}: {refused}");
        running.end();
    }
}

/// A program that is linked with the companion, as a library and with it built in.
#[test]
fn linked_in() {
    if program("recorded", &[]).is_none() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/programs/recorded.c");
    let shared = companion();
    let beside = shared.parent().expect("a directory");
    let archive = beside.join("libompt_companion.a");
    assert!(archive.is_file(), "{} is missing", archive.display());
    let as_library = [shared.display().to_string(), format!("-Wl,-rpath,{}", beside.display())];
    let built_in = [
        "-Wl,-u,ompt_start_tool".to_owned(),
        archive.display().to_string(),
        "-lpthread".to_owned(),
        "-ldl".to_owned(),
        "-lm".to_owned(),
    ];
    for (how, arguments) in [("library", &as_library[..]), ("archive", &built_in[..])] {
        let program = directory.path().join(how);
        let mut clang = Command::new("clang-14");
        clang.args(["-O0", "-g", "-fopenmp", "-o"]).arg(&program).arg(&source).args(arguments);
        let done = clang.output().expect("clang runs");
        assert!(done.status.success(), "{how}: {}", String::from_utf8_lossy(&done.stderr));
        for (library, what) in libraries() {
            let Some(running) = Held::start(&program, library.path(), &what, &[], &[]) else { continue };
            assert_eq!(history(running.pid()).threads.len(), 3, "{how}, {what}");
            running.end();
        }
    }
}

/// Runs a program that twice loads and unloads a library with OpenMP in it, on each runtime, and checks what this companion records.
/// The program sends itself the signal, if any, before and after it unloads the library.
fn load_and_unload(companion: &Path, signal: Option<i32>) {
    if program("recorded", &[]).is_none() {
        return;
    }
    const PLUGIN: &str = "void work(void) {\n#pragma omp parallel num_threads(2)\n  {}\n}\n";
    const HOST: &str = r#"#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
  int signal = count > 2 ? atoi(arguments[2]) : 0;
  for (int n = 0; n < 2; n++) {
    void *plugin = dlopen(arguments[1], RTLD_NOW);
    if (!plugin) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    ((void (*)(void))dlsym(plugin, "work"))();
    if (signal) raise(signal);
    dlclose(plugin);
    if (signal) raise(signal);
  }
  puts("ready");
  fflush(stdout);
  getchar();
  puts("done");
  return 0;
}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let build = |name: &str, source: &str, arguments: &[&str]| {
        let (file, made) = (directory.path().join(format!("{name}.c")), directory.path().join(name));
        std::fs::write(&file, source).expect("it is written");
        let done = Command::new("clang-14").arg(&file).arg("-o").arg(&made).args(arguments).output();
        let done = done.expect("clang runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        made
    };
    let plugin = build("plugin.so", PLUGIN, &["-fopenmp", "-shared", "-fPIC"]);
    let host = build("host", HOST, &["-ldl"]);
    let companion = companion.display().to_string();
    let signal = signal.map(|signal| signal.to_string());
    for (library, what) in libraries() {
        // Older ones, as libomp 13, crash in their `ompt_get_task_info` outside of regions.
        let signal = signal.as_deref().filter(|_| what.ends_with("runtimes/libiomp5.so"));
        let variables = [Some(("OMP_TOOL_LIBRARIES", &*companion)), signal.map(|n| ("OMPT_COMPANION_SNAPSHOT", n))];
        let variables: Vec<(&str, &str)> = variables.into_iter().flatten().collect();
        let arguments: Vec<&str> = plugin.to_str().into_iter().chain(signal).collect();
        let Some(running) = Held::start(&host, library.path(), &what, &variables, &arguments) else { continue };
        let history = history(running.pid());
        let regions: Vec<u64> = (history.threads.iter().flat_map(|thread| &thread.events))
            .filter(|event| event.kind == 3)
            .map(|event| event.region)
            .collect();
        assert_eq!(regions, [1, 2], "{what}");
        assert!(history.issues.is_empty(), "{what}: {:?}", history.issues);
        // LLVM's stay loaded, and have not ended then.
        let state = if what.ends_with("libiomp5.so") { State::Ended } else { State::Recording };
        assert_eq!(history.state, state, "{what}");
        // Each thread has one ring that it is in.
        let mut own: Vec<u64> = history.threads.iter().filter(|of| of.ended.is_none()).map(|of| of.lwp).collect();
        own.sort_unstable();
        assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "{what}: {own:?}");
        running.end();
    }
}

/// libiomp5 is unloaded with the library that brought it, and would take the companion along.
#[test]
fn the_runtime_goes_and_comes_again() {
    load_and_unload(&companion(), None);
}

/// The signal handler asks no runtime that has been unloaded.
#[test]
fn the_signal_comes_before_and_after_the_runtime_is_unloaded() {
    load_and_unload(&built_by_cargo("libompt_companion_snapshots.so"), Some(libc::SIGUSR2));
}

/// Users load `libompt_companion.so`.
#[test]
fn only_the_library_for_tests_has_a_signal_handler() {
    let sets_handlers = |name: &str| {
        let file = ElfFile::open(&built_by_cargo(name)).expect("a library");
        assert!(file.exported_names().any(|name| name == SYMBOL), "{name} is no companion");
        // The name of the function, among those of the dynamic linker.
        let names = file.section(".dynstr").expect("names");
        names.windows(11).any(|window| window == b"\0sigaction\0")
    };
    assert!(sets_handlers("libompt_companion_snapshots.so"));
    assert!(!sets_handlers("libompt_companion.so"));
}

/// What goes wrong is told, since nobody would miss it before it is too late.
#[test]
fn what_goes_wrong_is_told() {
    let Some(program) = program("recorded", &[]) else { return };
    let (name, companion) = crate::common::by_libraries();
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().display().to_string();
    let mut tried = 0;
    for (library, what) in libraries() {
        let run = |limit: &str, file: &str| {
            let mut shell = Command::new("sh");
            // It waits for a line before it ends.
            shell.args(["-c", &format!("{limit} echo | \"$0\"")]).arg(&program.path);
            shell.env("LD_LIBRARY_PATH", library.path()).env(name, &companion).env("OMPT_COMPANION_FILE", file);
            let done = shell.stdin(Stdio::null()).output().expect("a shell");
            (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
        };
        let (whole, text) = run("", "");
        if !whole {
            Skip::because(format!("{what}: {}", text.trim_end())).show();
            continue;
        }
        assert_eq!(text, "", "{what}");
        let wrong = [
            (directory.clone(), "directory"),
            (format!("{directory}/none/file"), "No such file"),
            // Nothing else than a file of the user's own is written over.
            ("/dev/null".to_owned(), "it is no plain file"),
        ];
        for (file, why) in wrong {
            let (whole, text) = run("", &file);
            assert!(whole, "{what}: {text}");
            let told = format!("ompt_companion: OMPT_COMPANION_FILE={file}: it could not be written: ");
            assert!(text.starts_with(&told) && text.contains(why) && text.lines().count() == 1, "{what}: {text}");
        }
        let wrong = [
            ("OMPT_COMPANION_EVENTS=many", "it is no number from 64 to 1048576; 4096 is taken"),
            ("OMPT_COMPANION_EVENTS=63", "it is no number from 64 to 1048576; 4096 is taken"),
            ("OMPT_COMPANION_THREADS=0", "it is no number from 1 to 65536; 1024 is taken"),
            ("OMPT_COMPANION_START=later", "it is neither \"recording\" nor \"paused\"; it records"),
        ];
        for (setting, why) in wrong {
            let told = format!("ompt_companion: {setting}: {why}\n");
            assert_eq!(run(&format!("export {setting};"), ""), (true, told), "{what}");
        }
        let (whole, text) = run("export OMP_TOOL_VERBOSE_INIT=stderr;", "");
        assert!(whole && text.contains("ompt_companion: entry points of the runtime:\n"), "{what}: {text}");
        // Less than the block takes.
        let (_, text) = run("ulimit -v 250000;", "");
        assert!(text.contains("ompt_companion: there is no memory"), "{what}: {text}");
        tried += 1;
    }
    assert!(tried > 0, "no runtime was tried");
}

/// Callbacks of optional events on the host, which all runtimes at hand make.
const HOST_EVENTS: [u8; 15] = [11, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30];

/// Callbacks that a runtime may answer nothing but "always" to, since 5.0; those of drafts are the ones up to 13.
const MUST_BE_ALWAYS: [u8; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 33, 34, 35];

/// Whether a runtime has the OMPT of a draft, by the path of its file.
fn is_draft(what: &str) -> bool {
    ["openmp-2018.0.3-", "openmp-2019.0-"].iter().any(|name| what.contains(name))
}

/// The entry points that a runtime has, by the path of its file. From the runtimes' headers, by hand.
fn entry_points_of(what: &str) -> Vec<&'static str> {
    let of_5_0 = ["ompt_get_task_memory", "ompt_finalize_tool"];
    [
        "ompt_enumerate_states",
        "ompt_enumerate_mutex_impls",
        "ompt_set_callback",
        "ompt_get_callback",
        "ompt_get_thread_data",
        "ompt_get_num_procs",
        "ompt_get_num_places",
        "ompt_get_place_proc_ids",
        "ompt_get_place_num",
        "ompt_get_partition_place_nums",
        "ompt_get_proc_id",
        "ompt_get_state",
        "ompt_get_parallel_info",
        "ompt_get_task_info",
        "ompt_get_task_memory",
        "ompt_get_target_info",
        "ompt_get_num_devices",
        "ompt_get_unique_id",
        "ompt_finalize_tool",
    ]
    .into_iter()
    .filter(|name| !(is_draft(what) && of_5_0.contains(name)))
    .collect()
}

/// What the runtime offers is written where the user wants to know how tools are started, and into the block.
#[test]
fn what_the_runtime_offers_is_told() {
    let Some(program) = program("recorded", &[]) else { return };
    // Not to a file: libiomp5 ends with a double free then, with and without tools.
    let variables = [("OMP_TOOL_VERBOSE_INIT", "stdout")];
    for (library, what) in libraries() {
        let Some(running) = start(&program, library.path(), &what, &variables) else { continue };
        let text = running.output();
        let live = ompd_process::Live::open(running.pid(), &ompd_process::OpenOptions::default()).expect("it is there");
        let block = ompd_runtime::companion::find(&live, &ompd_runtime::companion::words(&live))
            .expect("a companion")
            .expect("a block");
        for (bit, entry) in ENTRY_POINTS.iter().enumerate() {
            let line = text.lines().find(|line| line.trim_start().starts_with(entry));
            let line = line.unwrap_or_else(|| panic!("{what}: nothing is said of {entry}: {text}"));
            assert_eq!(!line.contains("missing"), block.header.entry_points >> bit & 1 == 1, "{what}: {line}");
        }
        let found = (0..).zip(ENTRY_POINTS).filter(|(bit, _)| block.header.entry_points >> bit & 1 == 1);
        let found: Vec<&str> = found.map(|(_, name)| name).collect();
        assert_eq!(found, entry_points_of(&what), "{what}");
        for callback in CALLBACKS {
            let words = |line: &&str| line.split_whitespace().nth(1) == Some(callback.name);
            let line = text.lines().find(words).unwrap_or_else(|| panic!("{what}: {}: {text}", callback.name));
            let answer = line.split_whitespace().nth(2).expect("an answer");
            let header = block.header;
            let word = [header.results_first, header.results_second, header.results_third]
                [usize::from(callback.number - 1) / 16];
            let told = (word >> (4 * (u32::from(callback.number - 1) % 16)) & 15) as u8;
            let told = if told == 15 { "not" } else { ompt_record::ompt::set_result(told).expect("a known answer") };
            assert_eq!(answer, told, "{what}: {line}");
            // Runtimes without a library for devices answer "never" to what they must make always.
            let always = MUST_BE_ALWAYS.contains(&callback.number) && !(is_draft(&what) && callback.number > 13);
            let permitted = !always || ["not", "error", "always"].contains(&answer);
            assert_eq!(line.contains("(not permitted)"), !permitted, "{what}: {line}");
            if callback.number <= 7 || HOST_EVENTS.contains(&callback.number) {
                assert_eq!(answer, "always", "{what}: {line}");
            }
        }
        running.end();
    }
}

/// Of two runtimes in a process the first is recorded, and the other one is said to be left out.
#[test]
fn of_two_runtimes_the_first() {
    let Some(program) = program("two_ompt", &["-ldl"]) else { return };
    let files = |(library, what): &(tempfile::TempDir, String)| (library.path().join("libomp.so.5"), what.clone());
    let libraries = libraries();
    let mut files: Vec<_> = libraries.iter().map(files).collect();
    files.retain(|(file, what)| {
        let loads =
            Command::new("python3").args(["-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])"]).arg(file).output();
        let loads = loads.expect("python3 runs");
        let text = String::from_utf8_lossy(&loads.stderr);
        assert!(loads.status.success() || text.contains("GLIBC_"), "{what}: {text}");
        if !loads.status.success() {
            Skip::because(format!("{what}: {}", text.trim_end())).show();
        }
        loads.status.success()
    });
    let [(first, one), (second, other), ..] = &files[..] else {
        Skip::because("there are not two runtimes with OMPT that run here").show();
        return;
    };
    let (name, companion) = crate::common::by_libraries();
    let variables = [(name, &*companion), ("KMP_DUPLICATE_LIB_OK", "TRUE")];
    for ((first, one), (second, other)) in [((first, one), (second, other)), ((second, other), (first, one))] {
        let what = format!("{one}, then {other}");
        let arguments = [first, second].map(|file| file.to_str().expect("a path of text"));
        let running = Held::start(&program.path, Path::new("/nowhere"), &what, &variables, &arguments);
        let running = running.expect("both can be loaded");
        assert_eq!(running.told("region"), [["2"], ["2"]], "{what}");
        let history = history(running.pid());
        assert_eq!(history.threads.len(), 2, "{what}");
        assert_eq!(history.issues.len(), 1, "{what}: {:?}", history.issues);
        assert!(history.issues[0].starts_with("1 further OpenMP runtimes"), "{what}: {:?}", history.issues);
        running.end();
    }
}

/// The child of a fork continues in its own copy of the block. The threads that it does not have are reported as ended.
#[test]
fn fork() {
    let Some(program) = program("forked", &[]) else { return };
    let mut tried = 0;
    for (library, what) in libraries() {
        let Some(running) = start(&program, library.path(), &what, &[]) else { continue };
        let child: i32 = running.told("child")[0][0].parse().expect("a process id");
        assert_eq!(running.told("child")[0][1], "2", "{what}: the child has a region of two");
        let (parent, of_child) = (history(running.pid()), history(child));
        assert_eq!((parent.pid, parent.forks), (running.pid() as u64, 0), "{what}");
        assert_eq!((of_child.pid, of_child.forks), (child as u64, 1), "{what}");
        assert_eq!(parent.threads.len(), 3, "{what}");
        let threads = Path::new("/proc").join(child.to_string()).join("task");
        let living: Vec<u64> = (std::fs::read_dir(threads).expect("its threads"))
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().parse().expect("a number"))
            .collect();
        for thread in &of_child.threads {
            assert_eq!(thread.ended.is_none(), living.contains(&thread.lwp), "{what}: {}", thread.lwp);
        }
        assert!(
            of_child.threads.iter().any(|thread| thread.lwp == child as u64),
            "{what}: the thread that forked goes on"
        );
        running.end();
        tried += 1;
    }
    if tried == 0 {
        Skip::because("no runtime at hand runs the program").show();
    }
}

/// In a program with more rights than who starts it, the environment names no file that it would write.
#[test]
fn a_program_with_other_rights_writes_nothing() {
    if !nix::unistd::geteuid().is_root() {
        return Skip::because("only root can give a program to another user").show();
    }
    let Some(program) = program("recorded", &[]) else { return };
    let (name, companion) = crate::common::by_libraries();
    // Where another user comes to as well.
    let directory = tempfile::Builder::new().prefix("companion").tempdir_in("/tmp").expect("a directory");
    let open = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
    open(directory.path(), 0o777);
    let copy = |from: &Path, mode: u32| {
        let to = directory.path().join(from.file_name().expect("a name"));
        fs::copy(from, &to).expect("a copy");
        open(&to, mode);
        to
    };
    let companion = copy(Path::new(&companion), 0o755);
    let [block, init] = ["block", "init"].map(|name| directory.path().join(name));
    // The runtime writes the one without this end.
    let outputs = [block.clone(), init.with_added_extension("companion")];
    let written = || outputs.each_ref().map(|file| file.exists());
    // One after the other: some runtimes crash at the end where the second names a file, with and without tools.
    let variables = [("OMPT_COMPANION_FILE", &block), ("OMP_TOOL_VERBOSE_INIT", &init)];
    let run = |mode: u32| {
        let program = copy(&program.path, mode);
        variables.map(|(variable, file)| {
            let mut command = Command::new(&program);
            command.uid(65534).gid(65534).env(name, &companion).env(variable, file);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().expect("it starts");
            // It waits for a line before it ends.
            child.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
            let done = child.wait_with_output().expect("it ends");
            String::from_utf8_lossy(&done.stdout).into_owned()
        })
    };
    let plain = run(0o755);
    if written() != [true; 2] {
        return Skip::because(format!("the program does not run with its runtime for another user: {plain:?}")).show();
    }
    outputs.iter().for_each(|file| fs::remove_file(file).expect("it is removed"));
    let rights = run(0o4755);
    assert!(rights.iter().all(|text| text.contains("ready")), "{rights:?}");
    assert_eq!(written(), [false; 2], "files were written with the rights of another: {rights:?}");
}
