//! How gdb loads the plugin without anything of the source tree: installed, so that gdb loads it at its start, and as a Python
//! package.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use debugger_plugin::Gdb;
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, build};

use crate::common::{has_gdb, library};

fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("gdb")
}

/// What `openmp doctor` says of the library it uses, in a program that has just begun a region. Both packages of the plugin have to
/// be those below `prefix`.
fn doctor(gdb: Gdb, prefix: &Path) -> String {
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let input = directory.path().join("in");
    std::fs::write(&input, "g").expect("a file");
    let mut gdb = gdb.on(&program.path);
    for (name, value) in Launch::new(&program, Runtime::Libgomp, Env::Stock).environment().expect("the runtime is here")
    {
        gdb = gdb.variable(name, value);
    }
    let run = format!("run < {} > /dev/null", input.display());
    let packages = "python import openmp_core, openmp_gdb; print(openmp_core.__file__); print(openmp_gdb.__file__)";
    let printed = gdb.run(&["break size3_level2", &run, "openmp doctor", packages, "kill"]).expect("gdb runs");
    assert_eq!(printed[3].lines().filter(|line| Path::new(line).starts_with(prefix)).count(), 2, "{}", printed[3]);
    assert!(printed[2].contains("GNU libgomp"), "{printed:#?}");
    printed[2].clone()
}

/// A data directory for gdb that is like its own, for `install` to write to.
fn data_directory(at: &Path) {
    let said = Command::new("gdb").args(["-nx", "-batch", "-ex", "show data-directory"]).output().expect("gdb runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let own = PathBuf::from(said.split('"').nth(1).expect("a directory"));
    // These are folders, and all else in them is a link.
    for folder in ["", "python", "python/gdb", "python/gdb/command"] {
        std::fs::create_dir_all(at.join(folder)).expect("a folder");
        for file in std::fs::read_dir(own.join(folder)).expect("a folder of gdb") {
            let file = file.expect("a file").path();
            let link = at.join(folder).join(file.file_name().expect("a name"));
            // gdb would write what it compiles of the plugin's file into its own folder, for all installations.
            if !["python", "gdb", "command", "__pycache__"].iter().any(|name| link.ends_with(name)) {
                std::os::unix::fs::symlink(file, link).expect("a link");
            }
        }
    }
}

/// Runs an `install`, and checks that a gdb with this data directory has the commands before and after it runs a program.
fn installs(install: &Path) {
    let prefix = tempfile::tempdir().expect("a directory");
    let data = prefix.path().join("gdb-data");
    data_directory(&data);
    let installed = Command::new(install)
        .arg("--prefix")
        .arg(prefix.path())
        .arg("--gdb-data")
        .arg(&data)
        .arg("--library")
        .arg(library().join("libompd.so"))
        .output()
        .expect("the script runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let gdb = || Gdb::bare().argument("--data-directory").argument(&data);
    let printed = gdb().run(&["openmp break parallel-begin", "help openmp status"]).expect("gdb runs");
    assert!(printed[0].contains("Stop 1  parallel-begin  (waits for a runtime to be loaded"), "{printed:#?}");
    assert!(printed[1].contains("Usage: openmp status"), "{printed:#?}");
    let text = doctor(gdb(), prefix.path());
    assert!(text.contains(&format!("from {}", prefix.path().join("lib/libompd.so").display())), "{text}");
}

#[test]
fn installed_it_is_loaded_when_gdb_starts() {
    if has_gdb() {
        installs(&plugin().join("install"));
    }
}

#[test]
fn as_a_package_it_brings_its_library() {
    if !has_gdb() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let site = directory.path().join("site");
    match pip_install(&site, plugin().as_os_str()) {
        Ok(()) => brings_its_library(&site),
        Err(why) => skip_unless_ours(&why),
    }
}

#[test]
fn an_sdist_is_whole() {
    if !has_gdb() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let [site, tools, sdist] = ["site", "tools", "sdist"].map(|name| directory.path().join(name));
    if let Err(why) = pip_install(&tools, OsStr::new("hatchling")) {
        return skip_unless_ours(&why);
    }
    let built = Command::new("python3")
        .args(["-c", "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"])
        .arg(&sdist)
        .current_dir(plugin())
        .env("PYTHONPATH", &tools)
        .output()
        .expect("python3 runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let archive = sdist.join(String::from_utf8_lossy(&built.stdout).trim());
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sdist).status().expect("tar runs");
    assert!(unpacked.success());
    let folder = archive.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".tar.gz"));
    installs(&sdist.join(folder.expect("an archive")).join("install"));
    match pip_install(&site, archive.as_os_str()) {
        Ok(()) => brings_its_library(&site),
        Err(why) => skip_unless_ours(&why),
    }
}

/// pip before 21.3 copies the folder elsewhere.
#[test]
fn the_folder_alone_is_no_package() {
    let directory = tempfile::tempdir().expect("a directory");
    let alone = directory.path().join("gdb");
    let copied = Command::new("cp").arg("-R").arg(plugin()).arg(&alone).status().expect("cp runs");
    assert!(copied.success());
    match pip_install(&directory.path().join("site"), alone.as_os_str()) {
        Ok(()) => panic!("a package without the core was built"),
        Err(why) if why.contains("openmp_core is missing: neither ") => {}
        Err(why) => skip_unless_ours(&why),
    }
}

/// Has pip build and install a package.
///
/// # Errors
/// What pip says.
fn pip_install(site: &Path, what: &OsStr) -> Result<(), String> {
    let pip = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"])
        .arg(site)
        .arg(what)
        .env("OMPD_LIBRARY", library().join("libompd.so"))
        .output();
    match pip {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(why) => Err(format!("python3 cannot be run: {why}")),
    }
}

/// What is wrong with the package itself is no reason to skip.
fn skip_unless_ours(why: &str) {
    assert!(!why.contains("hatch_build.py"), "{why}");
    Skip::because(format!("pip does not build the package: {}", why.lines().last().unwrap_or_default())).show();
}

fn brings_its_library(site: &Path) {
    let gdb = Gdb::bare().variable("PYTHONPATH", Some(site)).first("python import openmp_gdb; openmp_gdb.register()");
    let text = doctor(gdb, site);
    assert!(text.contains(&format!("from {}", site.join("openmp_gdb/libompd.so").display())), "{text}");
}

#[test]
fn through_links_it_finds_the_library_beside_the_files() {
    if !has_gdb() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("a path");
    let real = root.join("share/ompd/gdb");
    // Nothing above the links has the library.
    let elsewhere = tempfile::tempdir().expect("a directory");
    let links = elsewhere.path().canonicalize().expect("a path");
    for package in ["openmp_core", "openmp_gdb"] {
        let sources = if package == "openmp_core" { plugin().join("..") } else { plugin() }.join(package);
        for folder in [&real, &links] {
            std::fs::create_dir_all(folder.join(package)).expect("a folder");
        }
        for file in std::fs::read_dir(sources).expect("a folder") {
            let file = file.expect("a file").path();
            let Some(name) = file.file_name().filter(|_| file.extension().is_some_and(|of| of == "py")) else {
                continue;
            };
            let copy = real.join(package).join(name);
            std::fs::copy(&file, &copy).expect("a copy");
            std::os::unix::fs::symlink(&copy, links.join(package).join(name)).expect("a link");
        }
    }
    std::fs::create_dir(root.join("lib")).expect("a folder");
    let installed = root.join("lib/libompd.so");
    std::fs::copy(library().join("libompd.so"), &installed).expect("a copy");
    let gdb = Gdb::bare().variable("PYTHONPATH", Some(&links)).first("python import openmp_gdb; openmp_gdb.register()");
    let text = doctor(gdb, &links);
    assert!(text.contains(&format!("from {}", installed.display())), "{text}");
}

/// gef changes settings of gdb, the selection and what is printed at stops. The plugin does its work beside it.
#[test]
fn beside_gef() {
    let gef = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/runtimes/gef/gef.py");
    if !gef.is_file() {
        return Skip::because("gef is not here; \"ci/fetch gdb\" gets it").show();
    }
    if !has_gdb() {
        return;
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    let home = tempfile::tempdir().expect("a directory");
    let input = home.path().join("in");
    std::fs::write(&input, "g").expect("a file");
    let mut gdb = Gdb::bare().variable("HOME", Some(home.path())).variable("TERM", Some("xterm"));
    for (name, value) in launch.environment().expect("the runtime is here") {
        gdb = gdb.variable(name, value);
    }
    let printed = gdb
        .on(&program.path)
        .first(format!("source {}", gef.display()))
        .first(format!("source {}", debugger_plugin::plugin().display()))
        .first(format!("set openmp library {}", library().join("libompd.so").display()))
        .first("gef config context.enable False")
        .first("break main")
        .first(format!("run < {} > /dev/null", input.display()))
        .run(&[
            "gef config context.clear_screen",
            "openmp break parallel-begin",
            "continue",
            "openmp delete",
            "openmp step",
            "openmp threads",
            "bt",
            "openmp thread 0.0",
            "openmp print -all regions",
            "kill",
        ])
        .expect("gdb runs");
    let what = format!("{printed:#?}");
    // gef is there.
    assert!(printed[0].contains("context.clear_screen"), "{what}");
    assert!(printed[1].contains("Stop 1  parallel-begin") && printed[2].contains("A parallel region begins"), "{what}");
    assert!(printed[4].contains("begin_end.c:"), "{what}");
    assert!(printed[5].contains("0/2  1      implicit"), "{what}");
    assert!(printed[6].contains("#pragma omp parallel in "), "{what}");
    assert!(printed[7].contains("thread 0 of 2 in team 0"), "{what}");
    // gef has numbers printed in base 16.  The other thread may not be in the region yet, and has a line of its own then.
    let of_the_team = printed[8].starts_with("0.0-1  ") || printed[8].contains("\n0.1  ");
    assert!(of_the_team && printed[8].contains("0x"), "{what}");
}
