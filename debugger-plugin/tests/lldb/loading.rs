//! How LLDB loads the plugin without anything of the source tree: installed.

use std::path::Path;
use std::process::Command;

use debugger_plugin::lldb::{Lldb, lldbs};
use test_programs::{Env, Opt, Running, Runtime, Toolchain, build};

use crate::common::library;

#[test]
fn installed_it_finds_the_library_below_the_prefix() {
    let prefix = tempfile::tempdir().expect("a directory");
    let install = Path::new(env!("CARGO_MANIFEST_DIR")).join("lldb/install");
    let installed = Command::new(install)
        .arg("--prefix")
        .arg(prefix.path())
        .arg("--library")
        .arg(library().join("libompd.so"))
        .output()
        .expect("the script runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let said = String::from_utf8_lossy(&installed.stdout).into_owned();
    let line = said.lines().find(|line| line.starts_with("command script import ")).expect("the line for LLDB");
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    for release in lldbs() {
        let files = "script import openmp_core, openmp_lldb; print(openmp_core.__file__, openmp_lldb.__file__)";
        let printed = Lldb::bare(&release)
            .first(line)
            .first(format!("process attach --pid {}", running.pid))
            .run(&["openmp doctor", files, line, "help openmp thread"])
            .expect("LLDB runs");
        let what = format!("LLDB {}: {printed:#?}", release.version);
        let from = prefix.path().join("lib/libompd.so");
        assert!(crate::common::words(&printed[0]).contains(&format!("from {}", from.display())), "{what}");
        assert_eq!(printed[1].matches(&prefix.path().display().to_string()).count(), 2, "{what}");
        // A second import changes nothing.
        assert_eq!(printed[2], "", "{what}");
        assert!(
            printed[3].contains("Usage: openmp thread") && printed[3].contains("openmp thread backtrace"),
            "{what}"
        );
    }
}

/// With a target that is there before the plugin, and with one that comes after it.
#[test]
fn stops_are_met_whenever_the_plugin_is_loaded() {
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("in"), directory.path().join("out"));
    std::fs::write(&input, "g").expect("a file");
    let run = format!("process launch -i {} -o {}", input.display(), output.display());
    let import = format!("command script import {}", debugger_plugin::lldb::plugin().display());
    let choose = format!("openmp settings set library {}", library().join("libompd.so").display());
    let target = format!("target create \"{}\"", program.path.display());
    for release in lldbs() {
        for order in [[&target, &import], [&import, &target]] {
            let lldb = Lldb::bare(&release).first(order[0]).first(order[1]).first(&choose);
            let printed = lldb.run(&["openmp break parallel-begin", &run, "kill"]).expect("LLDB runs");
            let what = format!("LLDB {}: {printed:#?}", release.version);
            assert!(
                printed[1].contains("A parallel region begins") && printed[1].contains("at: size2_level1"),
                "{what}"
            );
        }
    }
}
