//! Which functions of libgomp are reported, and why others are not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSymbol as _};

/// Files named `libgomp…` below a folder.
fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&path, found);
        } else if name.starts_with("libgomp") && name.contains(".so") {
            found.push(path);
        }
    }
}

/// The table of functions that are not reported: patterns, in which a star stands for any text.
fn patterns() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gomp-ompt.md");
    let page = fs::read_to_string(page).expect("the page");
    let section = page.split("## Functions that are not reported").nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("a text");
    let rows =
        section.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('|').nth(1).expect("a column"));
    rows.flat_map(|column| column.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
    }
}

#[test]
fn each_function_of_each_libgomp_is_reported_or_has_a_reason() {
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes"), &mut files);
    for folder in ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"] {
        files.extend(fs::canonicalize(Path::new(folder).join("libgomp.so.1")).ok());
    }
    let reported: BTreeSet<String> =
        gomp_ompt::NAMES.iter().map(|name| name.to_str().expect("a name").to_owned()).collect();
    let (patterns, mut used) = (patterns(), BTreeSet::new());
    let (mut seen, mut unexplained, mut twice) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    // Programs call no plugin.
    let is_plugin =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libgomp-plugin-"));
    for path in files.iter().filter(|path| !is_plugin(path)) {
        let bytes = fs::read(path).expect("it can be read");
        let Ok(file) = object::File::parse(&*bytes) else { continue };
        // LLVM's runtime has these functions as well, and the name for programs of GCC.
        if file.dynamic_symbols().any(|symbol| symbol.name() == Ok("__kmpc_fork_call")) {
            continue;
        }
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() != object::SymbolKind::Text || !["GOMP_", "omp_"].iter().any(|p| name.starts_with(p)) {
                continue;
            }
            seen.insert(name.to_owned());
            let by: Vec<&String> = patterns.iter().filter(|pattern| matches(pattern, name)).collect();
            used.extend(by.iter().map(|pattern| (*pattern).clone()));
            match (reported.contains(name), by.is_empty()) {
                (false, true) => _ = unexplained.insert(name.to_owned()),
                (true, false) => _ = twice.insert(name.to_owned()),
                _ => {}
            }
        }
    }
    if seen.is_empty() {
        return test_programs::Skip::because("no libgomp is here").show();
    }
    assert!(unexplained.is_empty(), "neither reported nor in docs/gomp-ompt.md: {unexplained:?}");
    assert!(twice.is_empty(), "reported, and in the table of those that are not: {twice:?}");
    let unused: Vec<_> = patterns.iter().filter(|pattern| !used.contains(*pattern)).collect();
    // Older libgomps have fewer functions.
    assert!(files.len() < 5 || unused.is_empty(), "no function of {} files has these names: {unused:?}", files.len());
    let unknown: Vec<_> = reported.iter().filter(|name| !seen.contains(*name) && *name != "omp_control_tool").collect();
    assert!(files.len() < 5 || unknown.is_empty(), "no libgomp has these: {unknown:?}");
}
