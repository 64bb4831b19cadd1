//! The headers: that of the extension is what cbindgen makes of its source, OMPD's own declares what LLVM's does, and compilers
//! take both.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn made() -> String {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(home.join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config).with_src(home.join("src/extension.rs"));
    let mut made = Vec::new();
    builder.generate().expect("cbindgen reads the source").write(&mut made);
    let mut made = String::from_utf8(made).expect("UTF-8");
    // It puts the whole name of the type in front of constants.
    for name in ["event", "origin", "item"] {
        made = made.replace(&format!("ompdx_{name}_t_"), &format!("ompdx_{name}_"));
    }
    // C++98 has no comma behind the last enumerator.
    made.replace(",\n}", "\n}")
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The compiler, or nothing where it is not here, which is said.
fn compiler(name: &str) -> Option<Command> {
    let here = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !here {
        let _ = writeln!(std::io::stderr(), "skipped: {name} is not here");
    }
    here.then(|| Command::new(name))
}

/// A source file that includes headers.
fn source(directory: &Path, headers: &[&Path]) -> PathBuf {
    let source = directory.join("source.c");
    let lines = headers.iter().map(|header| format!("#include \"{}\"\n", header.display()));
    std::fs::write(&source, lines.collect::<String>()).expect("it can be written");
    source
}

#[test]
fn all_standards_take_the_headers() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ompd, extension) = (include().join("omp-tools.h"), include().join("ompd-ext.h"));
    let twice = source(directory.path(), &[&ompd, &extension, &ompd]);
    let c = [("gcc", "c"), ("clang-14", "c")].map(|of| (of, &["c99", "c11", "c17"][..]));
    let cpp = [("g++", "c++"), ("clang-14", "c++")].map(|of| (of, &["c++98", "c++11", "c++14", "c++17", "c++20"][..]));
    let mut tried = 0;
    for ((name, language), standards) in c.into_iter().chain(cpp) {
        for standard in standards {
            let Some(mut command) = compiler(name) else { break };
            command.args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", language]);
            // What C++98 has of long long and stdint.h is an extension everywhere.
            command.arg(format!("-std={standard}")).arg("-Wno-long-long").arg("-I").arg(include()).arg(&twice);
            let said = command.output().expect("it runs");
            assert!(said.status.success(), "{name} {standard}: {}", String::from_utf8_lossy(&said.stderr));
            tried += 1;
        }
    }
    assert!(tried > 0, "no compiler is here");
}

/// All functions of OMPD that a header declares, with their types, and the values of its enumerators.
fn declared(directory: &Path, header: &Path, names: &[String]) -> Option<BTreeSet<String>> {
    let functions = directory.join("functions");
    let mut command = compiler("gcc")?;
    command.args(["-fsyntax-only", "-aux-info"]).arg(&functions).arg(source(directory, &[header]));
    assert!(command.status().expect("gcc runs").success());
    let functions = std::fs::read_to_string(functions).expect("what gcc wrote");
    let prototypes = functions.lines().filter_map(|line| line.split_once("*/ extern "));
    let mut all: BTreeSet<String> =
        prototypes.map(|(_, text)| text.to_owned()).filter(|text| text.contains(" ompd_")).collect();
    let printer = directory.join("printer.c");
    let prints = names.iter().map(|name| format!("    printf(\"{name} %lld\\n\", (long long){name});\n"));
    let text = format!(
        "#include \"{}\"\n#include <stdio.h>\nint main(void) {{\n{}    return 0;\n}}\n",
        header.display(),
        prints.collect::<String>()
    );
    std::fs::write(&printer, text).expect("it can be written");
    let program = directory.join("printer");
    let said = Command::new("gcc").arg("-o").arg(&program).arg(&printer).output().expect("gcc runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let printed = Command::new(&program).output().expect("it runs");
    all.extend(String::from_utf8(printed.stdout).expect("numbers").lines().map(str::to_owned));
    Some(all)
}

#[test]
fn ompds_own_header_declares_what_llvms_does() {
    /// Of OpenMP 5.1 and 6.0; LLVM's header has neither.
    const LATER: [&str; 2] = ["ompd_get_device_thread_id_kinds", "ompd_get_device_from_thread"];
    let Some(mut clang) = compiler("clang-14") else { return };
    let resources = clang.arg("-print-resource-dir").output().expect("clang runs");
    let resources = String::from_utf8(resources.stdout).expect("a path");
    let theirs = Path::new(resources.trim()).join("include/omp-tools.h");
    let own = include().join("omp-tools.h");
    let text = std::fs::read_to_string(&own).expect("the header");
    // Enumerators, and sizes and places of members.
    let mut names: Vec<String> = text
        .lines()
        .filter_map(|line| line.trim().split_once(" = "))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("omp") && name != "ompd_rc_incompatible_handle")
        .collect();
    assert!(names.len() > 40, "{names:?}");
    let types = ["ompd_address_t", "ompd_frame_info_t", "ompd_device_type_sizes_t", "ompd_callbacks_t", "ompd_word_t"];
    names.extend(types.map(|name| format!("sizeof({name})")));
    let directory = tempfile::tempdir().expect("a directory");
    let Some(mut ours) = declared(directory.path(), &own, &names) else { return };
    let before = ours.len();
    ours.retain(|line| !LATER.iter().any(|name| line.contains(name)));
    assert_eq!(before - ours.len(), LATER.len());
    let theirs = declared(directory.path(), &theirs, &names).expect("gcc is here");
    assert_eq!(ours, theirs);
}

/// With `OMPD_WRITE_HEADER` in the environment it is written instead.
#[test]
fn the_header_is_what_cbindgen_makes_of_the_source() {
    let header = include().join("ompd-ext.h");
    let made = made();
    if std::env::var_os("OMPD_WRITE_HEADER").is_some() {
        std::fs::create_dir_all(header.parent().expect("a directory")).expect("a directory");
        std::fs::write(&header, &made).expect("the header");
    }
    let committed = std::fs::read_to_string(&header).expect("the header");
    assert!(committed == made, "run this test with OMPD_WRITE_HEADER=1 and commit include/ompd-ext.h");
}
