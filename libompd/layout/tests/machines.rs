//! What is particular to a machine stays in the folders for machines.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders with a file or a folder for each machine.
const MACHINES: [&str; 2] = ["libompd/process/src/machine", "libompd/layout/src/code/machine"];
/// Code that tries machines out.
const TRIALS: [&str; 2] = ["ci/fuzz-targets", "test-programs"];
/// Names of machines, and what decodes the instructions and numbers the system calls of one.
const WORDS: [&str; 9] = [
    "Machine::X86_64",
    "Machine::AARCH64",
    "Arch::X86_64",
    "Arch::AARCH64",
    "EM_X86_64",
    "EM_AARCH64",
    "iced_x86",
    "yaxpeax",
    "syscalls::",
];

/// The Rust sources below a folder, apart from tests and what is built.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !["target", "tests", "runtimes", "out"].iter().any(|skipped| name == *skipped) {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_other_source_names_a_machine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in ["libompd", "ompd-inspect", "ci", "debugger-plugin", "test-programs"] {
        sources(&root.join(folder), &mut found);
    }
    assert!(found.len() > 100, "only {} sources", found.len());
    let allowed: Vec<PathBuf> = MACHINES.iter().chain(&TRIALS).map(|folder| root.join(folder)).collect();
    let mut wrong = Vec::new();
    for path in found.iter().filter(|path| !allowed.iter().any(|folder| path.starts_with(folder))) {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        // Unit tests are at the end of a file.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if let Some(word) = WORDS.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "these belong into {MACHINES:?}:\n{}", wrong.join("\n"));
}
