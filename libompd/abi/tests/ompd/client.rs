//! A debugger written in C, compiled against the declarations that LLVM ships, on live processes; and what the library asks of others.

use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd::types::*;
use ompd_target::{Live, OpenOptions, Target};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

/// The shared library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    let own = std::env::current_exe().expect("where this test is");
    let library = own.with_file_name("libompd.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// The header with the declarations, where a clang has brought one.
fn header() -> Option<PathBuf> {
    let directory = Command::new("clang-14").arg("-print-resource-dir").output().ok()?;
    let directory = String::from_utf8(directory.stdout).ok()?;
    Some(Path::new(directory.trim()).join("include/omp-tools.h")).filter(|header| header.is_file())
}

/// The client, by one compiler.
fn client(directory: &Path, compiler: &str, header: &Path) -> Option<PathBuf> {
    let out = directory.join(format!("client-{compiler}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client/client.c");
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-pedantic"]);
    command.arg(format!("-DOMP_TOOLS_H=\"{}\"", header.display())).arg("-o").arg(&out).arg(source).arg("-ldl");
    match command.output() {
        Ok(done) => assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr)),
        Err(why) => {
            skip(&format!("{compiler}: {why}"));
            return None;
        }
    }
    Some(out)
}

/// All symbols of a process, as lines of name and address.
fn symbols(pid: i32, file: &Path) {
    let live = Live::open(pid, &OpenOptions::default()).expect("open");
    let mut lines = String::new();
    for module in live.modules() {
        let Ok(elf) = &module.file else { continue };
        for name in elf.exported_names() {
            if let Some(symbol) = module.symbol(name).filter(|symbol| !symbol.tls) {
                lines.push_str(&format!("{name} {:x}\n", symbol.addr.0));
            }
        }
    }
    std::fs::write(file, lines).expect("a list of symbols");
}

/// Return codes that are right whatever the runtime.
const RETURNS: &[(&str, &str)] = &[
    ("ompd_get_api_version", "0 202411"),
    ("ompd_initialize", "0"),
    ("ompd_process_initialize", "0"),
    ("ompd_device_initialize", "5"),
    ("ompd_get_device_thread_id_kinds", "0 2"),
    ("ompd_get_thread_handle", "0"),
    ("ompd_get_device_from_thread", "0 1"),
    ("ompd_get_curr_parallel_handle", "0"),
    ("ompd_get_enclosing_parallel_handle", "0"),
    ("ompd_get_thread_in_parallel", "0"),
    ("ompd_thread_handle_compare", "0 0"),
    ("ompd_get_curr_task_handle", "0"),
    ("ompd_get_task_parallel_handle", "0"),
    ("ompd_get_task_in_parallel", "0"),
    ("ompd_task_handle_compare", "0 0"),
    ("ompd_get_scheduling_task_handle", "1"),
    // This debugger has no registers to offer.
    ("ompd_get_task_frame", "1"),
    ("ompd_enumerate_states", "0 19"),
    ("ompd_get_display_control_vars", "0"),
    ("ompd_rel_display_control_vars", "0 1"),
    ("ompd_enumerate_icvs", "0 1"),
    ("ompd_get_icv_from_scope", "0 1"),
    ("ompd_get_icv_string_from_scope", "0 1"),
    ("ompd_rel_task_handle", "0"),
    ("ompd_rel_parallel_handle", "0"),
    ("ompd_rel_thread_handle", "0"),
    ("ompd_rel_address_space_handle", "0"),
    ("ompd_finalize", "0"),
    // Every string and array came from the client and was given back to it.
    ("allocated", "0"),
];

/// Those that depend on the runtime are only expected to be there.
const OTHERS: &[&str] = &[
    "ompd_get_version_string",
    "ompd_get_omp_version",
    "ompd_get_omp_version_string",
    "ompd_get_thread_id",
    "ompd_parallel_handle_compare",
    "ompd_get_generating_task_handle",
    "ompd_get_task_function",
    "ompd_get_state",
    "ompd_get_tool_data",
];

fn drive(client: &Path, running: &Running, list: &Path, under: &[&str]) {
    let lwp = running.truth.coordinator.to_string();
    let mut words: Vec<String> = under.iter().map(|&word| word.to_owned()).collect();
    words.push(client.display().to_string());
    words.extend([library().display().to_string(), running.pid.to_string(), lwp.clone(), list.display().to_string()]);
    let done = Command::new(&words[0]).args(&words[1..]).output().expect("the client runs");
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    assert!(done.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::trim);
    for (name, returned) in RETURNS {
        assert_eq!(line(name), Some(*returned), "{name}: {text}");
    }
    assert!(OTHERS.iter().all(|name| line(name).is_some()), "{text}");
    assert_eq!(line("ompd_get_thread_id"), Some(&*format!("0 {lwp}")));
    assert!(!text.contains("WRITE"), "the library never writes");
    // All 37 functions.
    assert_eq!(RETURNS.len() + OTHERS.len() - 1, 37);
}

#[test]
fn every_function_from_c() {
    let Some(header) = header() else { return skip("no clang 14, and so no omp-tools.h") };
    let directory = tempfile::tempdir().expect("a directory");
    let clients: Vec<PathBuf> =
        ["gcc", "clang-14"].iter().filter_map(|compiler| client(directory.path(), compiler, &header)).collect();
    let mut valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !valgrind {
        skip("valgrind is not here: whether memory is used as it should be is not checked");
    }
    for runtime in Runtime::available() {
        let toolchain = if runtime == Runtime::Libgomp { Toolchain::Gcc } else { Toolchain::Clang };
        if let Err(reason) = toolchain.check() {
            reason.show();
            continue;
        }
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        for client in &clients {
            drive(client, &running, &list, &[]);
        }
        // Once is enough: it is the library that is looked at.
        if std::mem::take(&mut valgrind) {
            let under =
                ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];
            drive(&clients[0], &running, &list, &under);
        }
    }
}

#[test]
fn structures_are_laid_out_as_the_header_says() {
    let Some(header) = header() else { return skip("no clang 14, and so no omp-tools.h") };
    let directory = tempfile::tempdir().expect("a directory");
    macro_rules! offsets {
        ($lines:ident, $type:ident, $name:literal, $($field:ident = $own:ident),*) => {
            $lines.push(format!("sizeof {} {}", $name, size_of::<$type>()));
            $($lines.push(format!("offsetof {}.{} {}", $name, stringify!($field), offset_of!($type, $own)));)*
        };
    }
    let mut ours: Vec<String> = Vec::new();
    offsets!(ours, Address, "ompd_address_t", segment = segment, address = address);
    offsets!(ours, FrameInfo, "ompd_frame_info_t", frame_address = frame_address, frame_flag = frame_flag);
    offsets!(
        ours,
        TypeSizes,
        "ompd_device_type_sizes_t",
        sizeof_char = char_,
        sizeof_short = short,
        sizeof_int = int,
        sizeof_long = long,
        sizeof_long_long = long_long,
        sizeof_pointer = pointer
    );
    offsets!(
        ours,
        Callbacks,
        "ompd_callbacks_t",
        alloc_memory = alloc_memory,
        free_memory = free_memory,
        print_string = print_string,
        sizeof_type = sizeof_type,
        symbol_addr_lookup = symbol_addr_lookup,
        read_memory = read_memory,
        write_memory = write_memory,
        read_string = read_string,
        device_to_host = device_to_host,
        host_to_device = host_to_device,
        get_thread_context_for_thread_id = get_thread_context_for_thread_id
    );
    for (name, size) in [
        ("ompd_rc_t", size_of::<Rc>()),
        ("ompd_scope_t", size_of::<ScopeNumber>()),
        ("ompd_word_t", size_of::<Word>()),
        ("ompd_size_t", size_of::<Size>()),
        ("ompd_wait_id_t", size_of::<WaitId>()),
        ("ompd_icv_id_t", size_of::<IcvId>()),
        ("ompd_thread_id_t", size_of::<ThreadIdKind>()),
        ("ompd_device_t", size_of::<Device>()),
    ] {
        ours.push(format!("sizeof {name} {size}"));
    }
    for compiler in ["gcc", "clang-14"] {
        let Some(client) = client(directory.path(), compiler, &header) else { continue };
        let done = Command::new(client).arg("--layout").output().expect("the client runs");
        let theirs = String::from_utf8(done.stdout).expect("UTF-8");
        assert_eq!(ours, theirs.lines().collect::<Vec<_>>(), "{compiler}");
    }
}

#[test]
fn it_exports_the_interface_and_needs_no_openmp_itself() {
    let library = ompd_target::ElfFile::open(&library()).expect("the library");
    let mut exported: Vec<&str> = library.exported_names().collect();
    exported.sort_unstable();
    let named = RETURNS.iter().map(|(name, _)| *name).filter(|name| *name != "allocated");
    let mut expected: Vec<&str> = named.chain(OTHERS.iter().copied()).collect();
    expected.sort_unstable();
    assert_eq!(exported, expected);
    for needed in library.needed() {
        let known = ["libc.so", "libgcc_s.so", "ld-linux", "libm.so"];
        assert!(known.iter().any(|name| needed.starts_with(name)), "{needed}");
    }
}
