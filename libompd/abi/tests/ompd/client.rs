//! A debugger written in C, compiled against the declarations that LLVM ships, on live processes; and what the library asks of others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd::types::*;
use ompd_process::{Live, OpenOptions, Target};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build, built_by_cargo, native_combinations};

/// The variable with the path of a library that checks its own use of memory (`ci/sanitize`). Only sanitized clients can load it.
pub const CHECKED_LIBRARY: &str = "OMPD_CHECKED_LIBRARY";

/// The shared library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    std::env::var_os(CHECKED_LIBRARY).map_or_else(|| built_by_cargo("libompd.so"), PathBuf::from)
}

pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// The header with the declarations.
pub fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/omp-tools.h")
}

/// The client, by one compiler.
pub fn client(directory: &Path, compiler: &str, header: &Path) -> Option<PathBuf> {
    compiled("client", directory, compiler, header, &[]).inspect_err(|why| skip(why)).ok()
}

/// A client, by one compiler and with more flags; why there is none where the compiler or what the flags ask for is missing.
pub fn compiled(
    name: &str,
    directory: &Path,
    compiler: &str,
    header: &Path,
    flags: &[&str],
) -> Result<PathBuf, String> {
    let out = directory.join(format!("{name}-{compiler}{}", flags.len()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/client/{name}.c"));
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-pedantic"]);
    command.args(flags);
    command.arg(format!("-DOMP_TOOLS_H=\"{}\"", header.display())).arg("-o").arg(&out).arg(source).arg("-ldl");
    let done = command.output().map_err(|why| format!("{compiler}: {why}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    // Flags may ask for a library that is packaged apart from the compiler.
    if !flags.is_empty() && !done.status.success() && said.contains("cannot find") {
        let line = said.lines().find(|line| line.contains("cannot find")).unwrap_or_default();
        return Err(format!("{compiler} {}: {line}", flags.join(" ")));
    }
    assert!(done.status.success(), "{command:?}: {said}");
    Ok(out)
}

/// A client that is checked for what it does with addresses, and for undefined behaviour.
pub const SANITIZED: &[&str] =
    &["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// What a client and the library are run under, so that their use of memory is looked at.
pub const VALGRIND: &[&str] =
    &["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];

pub fn has_valgrind() -> bool {
    let has = Command::new("valgrind").arg("--version").output().is_ok();
    if !has {
        skip("valgrind is not here: whether memory is used as it should be is not checked");
    }
    has
}

/// All symbols of a process, as lines of name and address.
pub fn symbols(pid: i32, file: &Path) {
    let live = Live::open(pid, &OpenOptions::default()).expect("open");
    let mut lines = String::new();
    for module in live.modules() {
        let Ok(elf) = &module.file else { continue };
        let own = elf.symbols_with_prefix("").map(|symbol| symbol.name);
        let names: BTreeSet<String> = elf.exported_names().map(str::to_owned).chain(own).collect();
        for name in names.iter().filter(|name| !name.contains(char::is_whitespace)) {
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

/// Calls every function about a process, or about a core of it.
fn drive(client: &Path, running: &Running, core: Option<&Path>, list: &Path, under: &[&str]) {
    let what = core.map_or(running.pid.to_string(), |core| core.display().to_string());
    let lwp = running.truth.coordinator.to_string();
    let mut words: Vec<String> = under.iter().map(|&word| word.to_owned()).collect();
    words.push(client.display().to_string());
    words.extend([library().display().to_string(), what, lwp.clone(), list.display().to_string()]);
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
    let header = header();
    let directory = tempfile::tempdir().expect("a directory");
    let clients: Vec<PathBuf> =
        ["gcc", "clang-14"].iter().filter_map(|compiler| client(directory.path(), compiler, &header)).collect();
    let mut valgrind = has_valgrind();
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        for client in &clients {
            drive(client, &running, None, &list, &[]);
        }
        // Once is enough: it is the library that is looked at.
        if std::mem::take(&mut valgrind) {
            drive(&clients[0], &running, None, &list, VALGRIND);
        }
    }
}

/// What the library does with memory of the debugger, and what it leaves of its own, by compilers' checks. They are in the client
/// and in the functions of C that the library calls; its own stores to memory valgrind sees.
#[test]
fn every_function_from_c_that_is_checked_for_addresses_and_undefined_behaviour() {
    let header = header();
    let directory = tempfile::tempdir().expect("a directory");
    let clients: Vec<PathBuf> = ["gcc", "clang-14"]
        .iter()
        .filter_map(|compiler| {
            compiled("client", directory.path(), compiler, &header, SANITIZED).inspect_err(|why| skip(why)).ok()
        })
        .collect();
    for (toolchain, runtime) in native_combinations().into_iter().filter(|_| !clients.is_empty()) {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        // Mapped files as well (core(5)): this debugger reads nothing but the core.
        std::fs::write(format!("/proc/{}/coredump_filter", running.pid), "0x7f").expect("what goes into a core");
        let core = running.gcore(directory.path()).expect("gcore runs").inspect_err(|reason| reason.show()).ok();
        for client in &clients {
            drive(client, &running, None, &list, &[]);
            if let Some(core) = &core {
                drive(client, &running, Some(core), &list, &[]);
            }
        }
    }
}

#[test]
fn structures_are_laid_out_as_the_header_says() {
    let header = header();
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
    let library = ompd_process::ElfFile::open(&library()).expect("the library");
    let mut exported: Vec<&str> = library.exported_names().collect();
    exported.sort_unstable();
    let named = RETURNS.iter().map(|(name, _)| *name).filter(|name| *name != "allocated");
    let mut expected: Vec<&str> = named.chain(OTHERS.iter().copied()).collect();
    let header = include_str!("../../include/ompd-ext.h");
    let declared = header.lines().filter_map(|line| line.strip_prefix("ompd_rc_t ")?.split('(').next());
    let declared: Vec<&str> = declared.collect();
    assert!(declared.len() >= 6 && declared.iter().all(|name| name.starts_with("ompdx_")), "{declared:?}");
    expected.extend(declared);
    expected.sort_unstable();
    assert_eq!(exported, expected);
    for needed in library.needed() {
        let known = ["libc.so", "libgcc_s.so", "ld-linux", "libm.so"];
        assert!(known.iter().any(|name| needed.starts_with(name)), "{needed}");
    }
}

/// What a library says of a thread: each line up to its last number or word, and that.
fn values(client: &Path, library: &Path, running: &Running, pthread: u64, list: &Path) -> BTreeMap<String, String> {
    let mut command = Command::new(client);
    command.arg("--values").arg(library).arg(running.pid.to_string()).arg(format!("{pthread:x}")).arg(list);
    let done = command.output().expect("the client runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let name = match words[0] {
            "icv" | "text" => 2,
            "member" | "implicit" | "function" => 3,
            "threads" | "enclosing" | "generating" => 2,
            _ => 1,
        };
        found.insert(words[..name].join(" "), words[name..].join(" "));
    }
    found
}

/// Where a thread-local variable of the runtime lies in each thread, as gdb knows it: lines for the list of symbols.
pub fn thread_local(running: &Running, name: &str) -> Option<String> {
    let script = format!(
        "python\nfor t in gdb.selected_inferior().threads():\n    t.switch()\n    \
         print('at', t.ptid[1], int(gdb.parse_and_eval('(long)&{name}')))\nend\n"
    );
    let mut file = tempfile::NamedTempFile::with_suffix(".gdb").expect("a file");
    file.write_all(script.as_bytes()).expect("a script");
    let mut command = Command::new("gdb");
    let done = command.args(["-nx", "-batch", "-p", &running.pid.to_string(), "-x"]).arg(file.path()).output().ok()?;
    let mut lines = String::new();
    for line in String::from_utf8_lossy(&done.stdout).lines().filter_map(|line| line.strip_prefix("at ")) {
        let (lwp, addr) = line.split_once(' ')?;
        let thread = running.truth.thread(lwp.parse().ok()?)?;
        lines.push_str(&format!("{name}@{:x} {:x}\n", thread.pthread.0, addr.parse::<u64>().ok()?));
    }
    Some(lines).filter(|lines| !lines.is_empty())
}

/// Why the answers of the two libraries differ where they do. `None`: they must not.
fn explained(name: &str, ours: &str, theirs: &str) -> Option<&'static str> {
    let words: Vec<&str> = name.split(' ').collect();
    match (words[0], ours, theirs) {
        ("text", _, "5 ") => {
            Some("any control variable has a text (OpenMP 5.2, 20.5.10.4), and theirs gives none of numbers")
        }
        ("text", "0 false", "0 0") => Some("bind-var is a word"),
        ("text", "0 disabled", "0 ") if name.contains("tool-verbose-init-var") => {
            Some("without a text it is disabled (OpenMP 5.2, table 2.2)")
        }
        ("enclosing" | "generating", "1", "5") => {
            Some("there is none: ompd_rc_unavailable (OpenMP 5.2, 20.5.6.2 and 20.5.7.2), not that it is unsupported")
        }
        ("function", "1 0", "0 ffffffffffffffff") => {
            Some("an initial task has no function; theirs gives what is none, and ok")
        }
        ("state", "0 258", "0 1") => {
            Some("the state of a thread that does not wait is kept for tools, which we do not rely on")
        }
        ("state", "0 18", "0 19") | ("state", "0 16", "0 20" | "0 19") => Some("theirs is kept for tools"),
        _ => None,
    }
}

/// The library of Intel's runtime; `None` where it is not here, which has been said.
pub fn library_of_intel() -> Option<PathBuf> {
    match Toolchain::Clang.check().and_then(|()| Runtime::Libiomp5.library()) {
        Ok(runtime) => {
            let library = runtime.with_file_name("libiomp5_db.so");
            if library.is_file() {
                return Some(library);
            }
            skip("Intel's libiomp5_db.so is not here; \"ci/setup\" gets it");
        }
        Err(reason) => reason.show(),
    }
    None
}

/// Writes the list of symbols, with the places of a thread-local one; false where gdb does not tell those, which has been said.
pub fn symbols_with(running: &Running, name: &str, list: &Path) -> bool {
    symbols(running.pid, list);
    let Some(own) = thread_local(running, name) else {
        skip("gdb does not say where thread-local variables are");
        return false;
    };
    let all = std::fs::read_to_string(list).expect("the list");
    std::fs::write(list, own + &all).expect("the list");
    true
}

/// Intel's own library, the only other one for a runtime that is shipped, as a second opinion.
#[test]
fn where_intels_library_answers_otherwise_it_is_known_why() {
    let header = header();
    let Some(library_of_intel) = library_of_intel() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let Some(client) = client(directory.path(), "gcc", &header) else { return };
    let program = build("nested", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    // Without this theirs does not tell of states.
    let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
    let running = launch.start().expect("it starts");
    let list = directory.path().join("symbols");
    // Theirs finds a thread by a thread-local variable.
    if !symbols_with(&running, "__kmp_gtid", &list) {
        return;
    }
    let (mut equal, mut differences) = (0, BTreeSet::new());
    for thread in &running.truth.threads {
        let ours = values(&client, &library(), &running, thread.pthread.0, &list);
        let theirs = values(&client, &library_of_intel, &running, thread.pthread.0, &list);
        assert_eq!(theirs["thread"], "0", "theirs knows the thread");
        for (name, value) in &theirs {
            let own = ours.get(name).unwrap_or_else(|| panic!("{name} is missing, theirs: {value}"));
            // What is printed beside an error says nothing.
            let failed = |value: &str| value.split(' ').nth(1).is_some_and(|rc| name.starts_with("icv") && rc != "0");
            if own == value || failed(own) && failed(value) {
                equal += 1;
            } else {
                let why = explained(name, own, value)
                    .unwrap_or_else(|| panic!("{}: {name}: ours {own}, theirs {value}", thread.role));
                differences.insert(why);
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "Intel's library: {equal} answers equal; others: {differences:#?}");
    assert!(equal > 200, "{equal}");
}
