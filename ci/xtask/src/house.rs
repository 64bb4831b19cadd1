//! Tests of the project's structure: which crate may use which, and which words belong where.
//!
//! The picture is `docs/architecture.md`: it lists the crates, their folders, and what each may use.

mod circles;
mod unsafe_code;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Parts of names and texts by which a runtime is recognised, in lower case.
const RUNTIMES: &[&str] = &["gomp", "kmp", "libomp", "libiomp"];

/// Beginnings of words by which OpenMP is recognised, in lower case.
const OPENMP: &[&str] = &["omp_", "ompt", "openmp"];

/// Folders of sources left of `runtime`, which know no OpenMP.
const LEFT: &[&str] = &["libompd/process/src", "libompd/layout/src", "libompd/python/src"];

/// The folder of `runtime`.
const RUNTIME: &str = "libompd/runtime/src";

/// Folders of sources that know no particular runtime: those right of `runtime`, and the companion's record.
const RIGHT: &[&str] = &[
    "libompd/record/src",
    "libompd/stack/src",
    "libompd/inspection/src",
    "libompd/report/src",
    "libompd/abi/src",
    "ompd-inspect/src",
];

/// A line that may have a word which is forbidden in its file.
struct Exception {
    /// The file, from the root of the repository.
    file: &'static str,
    /// Part of the line.
    line: &'static str,
    /// Why it may; shown where the exception is not needed any more.
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "libompd/process/src/debugger.rs",
        line: "nor any function of an OpenMP runtime",
        reason: "the text of an error: the caller gives the names of these functions",
    },
    Exception {
        file: "libompd/runtime/src/gnu_interface.rs",
        line: "(\"GOMP_",
        reason: "the interface of GCC, which more than one family has",
    },
    Exception { file: "libompd/runtime/src/lib.rs", line: "#[cfg(feature = ", reason: "the table of families" },
    Exception {
        file: "libompd/runtime/src/lib.rs",
        line: "not(all(feature = ",
        reason: "a build without one of the families",
    },
    Exception { file: "libompd/runtime/src/lib.rs", line: "not(any(feature = ", reason: "a build without any family" },
    Exception {
        file: "ompd-inspect/src/run/record.rs",
        line: "const IN_FRONT: ",
        reason: "the file that a program gets, which bears the runtime's name",
    },
];

const MACHINE_EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "libompd/runtime/src/gomp/mod.rs",
        line: "archs: &[",
        reason: "which instruction sets a layout holds for is known of the runtime",
    },
    Exception {
        file: "libompd/runtime/src/kmp/mod.rs",
        line: "include_str!(\"profiles/libomp-",
        reason: "a layout that holds for one machine alone is named after it",
    },
    Exception {
        file: "libompd/companion/src/block.rs",
        line: "target_arch = ",
        reason: "the companion is built for the machine it runs on, and knows no other",
    },
];

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder or the file itself, sorted; build outputs and hidden files apart.
fn files(folder: &Path) -> Vec<PathBuf> {
    if folder.is_file() {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let hidden = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with('.') || ["target", "__pycache__", "runtimes", "out"].contains(&name)
    };
    paths.into_iter().filter(|path| !hidden(path)).flat_map(|path| files(&path)).collect()
}

fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|file| file.extension().is_some_and(|own| own == extension)).collect()
}

/// A path from the root of the repository.
fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

// Crates.

/// A crate: where it is, and which crates of the workspace it uses.
#[derive(Debug, PartialEq, Eq)]
struct Crate {
    folder: String,
    uses: BTreeSet<String>,
}

/// Words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The crates of the picture: their folders by its table, what they use by the lines with an arrow.
fn picture(page: &str) -> BTreeMap<String, Crate> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut crates: BTreeMap<_, _> = rows
        .filter_map(|line| {
            let mut names = quoted(line).map(str::to_owned);
            Some((names.next()?, Crate { folder: names.next()?, uses: BTreeSet::new() }))
        })
        .collect();
    let mut last = None;
    for line in page.lines() {
        // A line that begins with a blank continues the one before.
        let (name, uses) = match line.split_once(" →") {
            Some((name, uses)) => (Some(name.to_owned()), uses),
            None => (last.take().filter(|_| line.starts_with(' ')), line),
        };
        if let Some(own) = name.as_ref().and_then(|name| crates.get_mut(name)) {
            own.uses.extend(uses.split_whitespace().map(str::to_owned));
        }
        last = name;
    }
    crates
}

/// What `cargo metadata` says with these options.
fn metadata(options: &[&str]) -> serde_json::Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a document")
}

/// The crates of the workspace as cargo knows them. What only tests use is left out.
fn workspace() -> BTreeMap<String, Crate> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().expect("packages");
    let crates = packages.iter().map(|package| {
        let own = package["dependencies"].as_array().expect("dependencies").iter();
        let uses = own.filter(|used| used["path"].is_string() && used["kind"] != "dev");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().and_then(|folder| folder.canonicalize().ok()).expect("a folder");
        let uses = uses.map(|used| used["name"].as_str().expect("a name").to_owned()).collect();
        (package["name"].as_str().expect("a name").to_owned(), Crate { folder: short(&folder), uses })
    });
    crates.collect()
}

/// Where the picture and the workspace differ.
fn differences(picture: &BTreeMap<String, Crate>, workspace: &BTreeMap<String, Crate>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, own) in workspace {
        let Some(drawn) = picture.get(name) else {
            found.push(format!("{name}: not in the table"));
            continue;
        };
        if own.folder != drawn.folder {
            found.push(format!("{name}: is in {}, the table says {}", own.folder, drawn.folder));
        }
        found.extend(own.uses.difference(&drawn.uses).map(|used| format!("{name}: may not use {used}")));
        found.extend(drawn.uses.difference(&own.uses).map(|used| format!("{name}: does not use {used}")));
    }
    found.extend(picture.keys().filter(|name| !workspace.contains_key(*name)).map(|name| format!("{name}: no crate")));
    found
}

/// The oldest Rust that the workspace says it needs is enough for all that it is built with. That its own code needs no newer library is
/// checked by clippy (`incompatible_msrv`).
#[test]
fn no_dependency_needs_a_newer_rust() {
    // What was built with is there; what other systems need may not be.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = metadata(&["--locked", "--offline", "--filter-platform", &platform]);
    let version = |text: &str| -> Vec<u64> {
        let mut parts: Vec<u64> = text.split('.').map(|part| part.parse().expect("a number")).collect();
        parts.resize(3, 0);
        parts
    };
    let packages = metadata["packages"].as_array().expect("packages");
    let needed = |package: &serde_json::Value| package["rust_version"].as_str().map(version);
    let own = packages.iter().find(|package| package["name"] == "ompd-inspect").and_then(needed).expect("a version");
    let newer = packages.iter().filter(|package| needed(package).is_some_and(|needed| needed > own));
    let names: Vec<&str> = newer.filter_map(|package| package["name"].as_str()).collect();
    assert!(names.is_empty() && packages.len() > 100, "they need more than Rust {own:?}: {names:?}");
}

#[test]
fn crates_use_what_the_picture_allows() {
    let page = read(&root().join("docs/architecture.md"));
    let found = differences(&picture(&page), &workspace());
    assert!(found.is_empty(), "docs/architecture.md and Cargo.toml differ:\n{}", found.join("\n"));
}

#[test]
fn what_a_crate_may_use_its_sources_name() {
    let mut found = Vec::new();
    for (name, own) in workspace() {
        let code: Vec<_> = sources(&root().join(&own.folder)).into_iter().map(|(_, code)| code.names).collect();
        let unnamed = own.uses.iter().filter(|used| {
            let module = used.replace('-', "_");
            !code
                .iter()
                .any(|names| names.contains(&format!("{module}::")) || names.contains(&format!("use {module};")))
        });
        found.extend(unnamed.map(|used| format!("{name}: {used}")));
    }
    assert!(found.is_empty(), "dependencies that no source names:\n{}", found.join("\n"));
}

#[test]
fn an_edge_that_the_picture_lacks_is_found() {
    let drawn = picture("| `a` | `x/a` | all |\n| `b` | `x/b` | nothing |\n```\na →\n    b\nb →\n```\n");
    let row = |folder: &str, uses: &[&str]| Crate {
        folder: folder.to_owned(),
        uses: uses.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut own: BTreeMap<_, _> = [("a".to_owned(), row("x/a", &["b"])), ("b".to_owned(), row("x/b", &[]))].into();
    assert!(differences(&drawn, &own).is_empty());
    own.insert("b".to_owned(), row("x/b", &["a"]));
    assert_eq!(differences(&drawn, &own), ["b: may not use a"]);
    own.insert("b".to_owned(), row("y/b", &[]));
    own.insert("c".to_owned(), row("x/c", &[]));
    assert_eq!(differences(&drawn, &own), ["b: is in y/b, the table says x/b", "c: not in the table"]);
    own.remove("c");
    own.insert("b".to_owned(), row("x/b", &[]));
    own.insert("a".to_owned(), row("x/a", &[]));
    assert_eq!(differences(&drawn, &own), ["a: does not use b"]);
}

// Words.

/// Where the string or character literal that begins at `at` ends; `None` if none begins there.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let find = |from: usize, end: &[u8]| {
        let at = bytes.get(from..)?.windows(end.len()).position(|window| window == end)?;
        Some(from + at + end.len())
    };
    match bytes[at] {
        b'r' if at == 0 || !is_word(bytes[at - 1]) || bytes[at - 1] == b'b' || bytes[at - 1] == b'c' => {
            let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
            if bytes.get(at + 1 + hashes) != Some(&b'"') {
                return None;
            }
            let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
            find(at + 2 + hashes, &end)
        }
        b'"' => {
            let mut end = at + 1;
            while *bytes.get(end)? != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            Some(end + 1)
        }
        b'\'' if bytes.get(at + 1) == Some(&b'\\') => find(at + 3, b"'"),
        b'\'' => {
            let length = std::str::from_utf8(&bytes[at + 1..]).ok()?.chars().next()?.len_utf8();
            (bytes.get(at + 1 + length) == Some(&b'\'')).then_some(at + 2 + length)
        }
        _ => None,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the block comment that begins at `at` ends: they may contain one another.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut end, mut depth) = (at, 0);
    while end < bytes.len() {
        match &bytes[end..] {
            [b'/', b'*', ..] => (depth, end) = (depth + 1, end + 2),
            [b'*', b'/', ..] => (depth, end) = (depth - 1, end + 2),
            _ => end += 1,
        }
        if depth == 0 {
            break;
        }
    }
    end
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// A Rust file with its comments blanked, and its literals too unless they are to be kept.
fn without_comments(source: &str, keep_literals: bool) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, keep) = match &bytes[at..] {
            [b'/', b'/', ..] => {
                (bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n), false)
            }
            [b'/', b'*', ..] => (comment_end(bytes, at), false),
            _ => literal_end(bytes, at).map_or((at + 1, true), |end| (end, keep_literals)),
        };
        if !keep {
            blank(&mut out[at..end]);
        }
        at = end;
    }
    String::from_utf8(out).expect("whole characters are blanked")
}

/// Where the item behind an attribute ends: at a semicolon, or with its braces.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth -= 1;
                if depth < 0 || depth == 0 && *byte == b'}' {
                    return at + 1;
                }
            }
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// What of a Rust file is built without tests, comments blanked.
struct Code {
    /// With literals.
    text: String,
    /// Without.
    names: String,
    /// Modules that only tests have and that are files of their own.
    test_modules: Vec<String>,
}

impl Code {
    fn of(source: &str) -> Code {
        const ATTRIBUTES: &[&str] = &["#[cfg(test)]", "#[cfg(all(test,", "#[test]"];
        let (mut text, mut names) = (without_comments(source, true), without_comments(source, false));
        let mut test_modules = Vec::new();
        while let Some(at) = ATTRIBUTES.iter().filter_map(|attribute| names.find(attribute)).min() {
            let behind = at + names[at..].find(']').expect("its end") + 1;
            let end = item_end(names.as_bytes(), behind);
            let item = names[behind..end].trim();
            let module = item.strip_suffix(';').and_then(|item| item.rsplit_once("mod "));
            test_modules.extend(module.map(|(_, name)| name.trim().to_owned()));
            for code in [&mut text, &mut names] {
                let mut bytes = std::mem::take(code).into_bytes();
                blank(&mut bytes[at..end]);
                *code = String::from_utf8(bytes).expect("whole characters are blanked");
            }
        }
        Code { text, names, test_modules }
    }
}

/// The code of all Rust files of a folder, apart from what only tests have.
fn sources(folder: &Path) -> Vec<(PathBuf, Code)> {
    let all: Vec<_> = with_extension(folder, "rs").into_iter().map(|file| (Code::of(&read(&file)), file)).collect();
    assert!(!all.is_empty(), "{}: no sources", folder.display());
    let tests: Vec<PathBuf> = all
        .iter()
        .flat_map(|(code, file)| {
            let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
            let folder = if is_root { file.parent().expect("a folder").to_owned() } else { file.with_extension("") };
            code.test_modules.iter().map(move |name| folder.join(name))
        })
        .collect();
    let of_tests =
        |file: &Path| tests.iter().any(|module| file.starts_with(module) || file == module.with_extension("rs"));
    all.into_iter().filter(|(_, file)| !of_tests(file)).map(|(code, file)| (file, code)).collect()
}

/// The word of a runtime in a line. `libompd` and `libompt_companion` are of this project.
fn runtime_in(line: &str) -> Option<&'static str> {
    let line = line.to_ascii_lowercase().replace("libompd", "").replace("libompt", "");
    RUNTIMES.iter().copied().find(|word| line.contains(word))
}

/// The word of OpenMP, or of a runtime, in a line.
fn openmp_in(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let begins = |word: &str| {
        lower.match_indices(word).any(|(at, _)| at == 0 || !lower.as_bytes()[at - 1].is_ascii_alphanumeric())
    };
    OPENMP.iter().copied().find(|word| begins(word)).or_else(|| runtime_in(line))
}

/// Lines of code with a forbidden word. `used` gets the numbers of exceptions that apply.
fn forbidden(
    file: &str,
    code: &str,
    word: fn(&str) -> Option<&'static str>,
    exceptions: &[Exception],
    used: &mut BTreeSet<usize>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let Some(word) = word(line) else { continue };
        let exception = |exception: &Exception| exception.file == file && line.contains(exception.line);
        match exceptions.iter().position(exception) {
            Some(index) => drop(used.insert(index)),
            None => found.push(format!("{file}:{}: `{word}`: {}", number + 1, line.trim())),
        }
    }
    found
}

/// Exceptions of which none of the numbers in `used` tells.
fn unneeded(exceptions: &[Exception], used: &BTreeSet<usize>) -> Vec<String> {
    let unused = exceptions.iter().enumerate().filter(|(index, _)| !used.contains(index));
    let words = unused.map(|(_, exception)| {
        format!("{}: the exception for `{}` ({}) is not needed", exception.file, exception.line, exception.reason)
    });
    words.collect()
}

/// The folders of the families, as the table in `runtime` lists them.
fn families() -> Vec<String> {
    let source = read(&root().join(RUNTIME).join("lib.rs"));
    let (_, table) = source.split_once("\nfamilies! {").expect("the table of families");
    let rows = table.lines().map(str::trim).take_while(|line| *line != "}");
    rows.filter_map(|row| Some(row.strip_suffix(';')?.rsplit(' ').next()?.to_owned())).collect()
}

/// The family that a file is of, by its folder.
fn family_of<'f>(file: &Path, families: &'f [String]) -> Option<&'f str> {
    let folder = root().join(RUNTIME);
    families.iter().map(String::as_str).find(|family| file.starts_with(folder.join(family)))
}

#[test]
fn words_are_where_they_belong() {
    let families = families();
    let (mut found, mut used) = (Vec::new(), BTreeSet::new());
    for folder in LEFT {
        for (file, code) in sources(&root().join(folder)) {
            found.extend(forbidden(&short(&file), &code.text, openmp_in, EXCEPTIONS, &mut used));
        }
    }
    for folder in RIGHT.iter().chain([&RUNTIME]) {
        for (file, code) in sources(&root().join(folder)) {
            if family_of(&file, &families).is_none() {
                found.extend(forbidden(&short(&file), &code.text, runtime_in, EXCEPTIONS, &mut used));
            }
        }
    }
    found.extend(unneeded(EXCEPTIONS, &used));
    assert!(found.is_empty(), "words of a runtime or of OpenMP where they do not belong:\n{}", found.join("\n"));
}

/// Lines that name one of the modules.
fn naming(file: &str, names: &str, modules: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in names.lines().enumerate() {
        let mut words = line.split(|of: char| !of.is_alphanumeric() && of != '_');
        if let Some(word) = words.find(|word| modules.contains(word)) {
            found.push(format!("{file}:{}: `{word}`: {}", number + 1, line.trim()));
        }
    }
    found
}

#[test]
fn families_do_not_name_each_other() {
    let families = families();
    assert!(families.iter().any(|family| family == "gomp") && families.len() > 1, "{families:?}");
    let mut found = Vec::new();
    for (file, code) in sources(&root().join(RUNTIME)) {
        let own = family_of(&file, &families);
        let others: Vec<_> = families.iter().map(String::as_str).filter(|family| Some(*family) != own).collect();
        if own.is_some() {
            found.extend(naming(&short(&file), &code.names, &others));
        }
    }
    assert!(found.is_empty(), "a family names another one:\n{}", found.join("\n"));
}

#[test]
fn a_forbidden_word_is_found_in_code_and_not_in_comments_or_tests() {
    let found = |source: &str, word| forbidden("x.rs", &Code::of(source).text, word, EXCEPTIONS, &mut BTreeSet::new());
    for line in ["let gomp = 1;", "f(\"GOMP_parallel\")", "use crate::kmp::X;", "r#\"libomp.so\"#", "struct Kmp;"] {
        assert_eq!(found(line, runtime_in).len(), 1, "{line}");
        assert_eq!(found(line, openmp_in).len(), 1, "{line}");
        let hidden = [
            format!("// {line}"),
            format!("/* /* */ {line} */"),
            format!("/// {line}\nstruct X;"),
            format!("#[cfg(test)]\nmod tests {{\n {line}\n}}"),
            format!("#[test]\nfn f() -> [u8; 2] {{\n {line}\n}}"),
        ];
        for source in hidden {
            assert_eq!(found(&source, runtime_in), [""; 0], "{source}");
            assert_eq!(found(&format!("{source}\n{line}"), runtime_in).len(), 1, "{source}");
        }
    }
    for line in ["\"omp_get_level\"", "let ompt_state = 1;", "// no\n\"an OpenMP runtime\""] {
        assert_eq!(found(line, openmp_in).len(), 1, "{line}");
        assert_eq!(found(line, runtime_in), [""; 0], "{line}");
    }
    for line in ["\"libompd.so\"", "\"// \"; 'a'; '\\''; b'\"';", "fn f<'a>(_: &'a str) {}", "comp_dir: \"prompt\""] {
        assert_eq!(found(line, openmp_in), [""; 0], "{line}");
        assert_eq!(found(&format!("{line} \"__kmpc\""), openmp_in).len(), 1, "{line}");
    }
    let code = Code::of("use crate::kmp::X; // kmp\nf(\"kmp\"); __kmp_x(); #[cfg(test)] mod kmp;");
    assert_eq!(naming("x.rs", &code.names, &["kmp"]).len(), 1);
    assert_eq!(code.test_modules, ["kmp"]);
}

// Machines.

/// The folders with a file or a folder for each machine.
const MACHINES: &[&str] =
    &["libompd/process/src/machine", "libompd/layout/src/code/machine", "libompd/gomp-ompt/src/machine"];

/// Code that tries machines out.
const TRIALS: &[&str] = &["ci/fuzz-targets", "test-programs"];

/// Names of machines, and what decodes the instructions and numbers the system calls of one.
const OF_A_MACHINE: &[&str] = &[
    "Machine::X86_64",
    "Machine::AARCH64",
    "Arch::X86_64",
    "Arch::AARCH64",
    "EM_X86_64",
    "EM_AARCH64",
    "iced_x86",
    "yaxpeax",
    "syscalls::",
    "target_arch",
    "x86_64",
    "aarch64",
];

fn machine_in(line: &str) -> Option<&'static str> {
    OF_A_MACHINE.iter().copied().find(|word| line.contains(word))
}

#[test]
fn no_other_source_names_a_machine() {
    let allowed: Vec<PathBuf> = MACHINES.iter().chain(TRIALS).map(|folder| root().join(folder)).collect();
    let (mut found, mut used, mut looked_at) = (Vec::new(), BTreeSet::new(), 0);
    for own in workspace().values() {
        for (file, code) in sources(&root().join(&own.folder)) {
            let of_tests = file.components().any(|part| part.as_os_str() == "tests");
            // This file has the words.
            if of_tests || file.ends_with("house.rs") || allowed.iter().any(|folder| file.starts_with(folder)) {
                continue;
            }
            looked_at += 1;
            found.extend(forbidden(&short(&file), &code.text, machine_in, MACHINE_EXCEPTIONS, &mut used));
        }
    }
    assert!(looked_at > 200, "only {looked_at} sources");
    found.extend(unneeded(MACHINE_EXCEPTIONS, &used));
    assert!(found.is_empty(), "these belong into {MACHINES:?}:\n{}", found.join("\n"));
}

// The plugin.

/// Modules that only an adapter of the plugin imports.
const DEBUGGERS: &[&str] = &["gdb", "lldb", "openmp_gdb", "openmp_lldb"];

/// Words by which a module is imported whose name is no word of the line.
const HIDDEN_IMPORTS: &[&str] = &["__import__", "importlib"];

/// Words of gdb's language, of its commands, and of the code that it prints.
const GDB_WORDS: &[&str] =
    &["$_", "info locals", "info threads", "info symbol", "thread apply", "frame apply", "set print", "bt 3", "callq"];

/// The debugger that a line of Python imports, or how it may import one.
fn debugger_in(line: &str) -> Option<&'static str> {
    if let Some(word) = HIDDEN_IMPORTS.iter().find(|word| line.contains(**word)) {
        return Some(word);
    }
    let line = line.trim_start();
    let names = line.strip_prefix("import ").or_else(|| line.strip_prefix("from ")?.split(" import ").next())?;
    let first = |name: &str| name.trim().split(['.', ' ']).next().map(str::to_owned);
    let imported: Vec<_> = names.split(',').filter_map(first).collect();
    DEBUGGERS.iter().copied().find(|debugger| imported.iter().any(|name| name == debugger))
}

/// The word of gdb's that a line has, in code, help or comment.
fn gdb_word_in(line: &str) -> Option<&'static str> {
    GDB_WORDS.iter().copied().find(|word| line.contains(word))
}

/// Lines of the plugin's core for which `word` finds one.
fn in_the_core(word: fn(&str) -> Option<&'static str>) -> Vec<String> {
    let files = with_extension(&root().join("debugger-plugin/openmp_core"), "py");
    assert!(files.len() > 15, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        for (number, line) in read(&file).lines().enumerate() {
            let place = format!("{}:{}", short(&file), number + 1);
            found.extend(word(line).map(|word| format!("{place}: `{word}`: {}", line.trim())));
        }
    }
    found
}

#[test]
fn the_core_of_the_plugin_imports_no_debugger() {
    let found = in_the_core(debugger_in);
    assert!(found.is_empty(), "the core imports a debugger:\n{}", found.join("\n"));
}

#[test]
fn the_core_of_the_plugin_speaks_no_language_of_gdb() {
    let found = in_the_core(gdb_word_in);
    assert!(found.is_empty(), "words of gdb in the core: the adapter has them (`Examples`):\n{}", found.join("\n"));
}

#[test]
fn each_way_to_know_a_debugger_is_found() {
    let imports = ["import gdb", "  import os, gdb.types", "from gdb import Value", "from lldb.x import y"];
    for line in imports.into_iter().chain(["gdb = __import__('gdb')", "importlib.import_module(name)"]) {
        assert!(debugger_in(line).is_some(), "{line}");
    }
    assert_eq!(debugger_in("from . import debugger"), None);
    let words = ["openmp apply 2 bt 3", "2.0-3,6 info locals   some of them", "    $_omp_level() and its like"];
    for line in words.into_iter().chain(["if mnemonic in (\"call\", \"callq\", \"bl\"):"]) {
        assert!(gdb_word_in(line).is_some(), "{line}");
    }
    assert_eq!(gdb_word_in("openmp bt on    {debugger}'s own backtraces"), None);
}

// Pages.

/// A page without its code blocks: their lines are empty.
fn without_blocks(page: &str) -> String {
    let mut inside = false;
    let lines = page.lines().map(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        if inside || fence { "" } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The names by which links reach the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = without_blocks(page);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |of: &char| of.is_alphanumeric() || matches!(of, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// What is wrong with the links of a page.
fn broken_links(file: &Path, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in without_blocks(page).lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { file.to_owned() } else { file.parent().expect("a folder").join(path) };
            let other = (!path.is_empty()).then(|| fs::read_to_string(&target).ok());
            let has_heading = || match &other {
                None => anchors(page).contains(anchor),
                Some(other) => other.as_ref().is_some_and(|other| anchors(other).contains(anchor)),
            };
            if !path.is_empty() && !target.exists() || !anchor.is_empty() && !has_heading() {
                found.push(format!("{}:{}: no such page or heading: {link}", short(file), number + 1));
            }
        }
    }
    found
}

/// Names of files in a page that no file has: paths from the root, and ends of paths of Rust and Python files.
fn missing_files(file: &Path, page: &str, known: &[String]) -> Vec<String> {
    const FOLDERS: &[&str] = &["libompd/", "ompd-inspect/", "debugger-plugin/", "test-programs/", "ci/", "docs/"];
    let plain = |word: &&str| word.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'/' | b'-'));
    let text = without_blocks(page);
    let lines = text.lines().enumerate().flat_map(|(number, line)| quoted(line).map(move |word| (number, word)));
    let missing = |word: &str| {
        // What comes from `NAME` on stands for something else.
        let path = word.split("NAME").next().unwrap_or(word).trim_end_matches('/');
        let from_root = FOLDERS.iter().any(|folder| word.starts_with(folder));
        let source = path.ends_with(".rs") || path.ends_with(".py");
        let is_end = |known: &String| known.strip_suffix(path).is_some_and(|rest| rest.ends_with('/'));
        // The name of the JSON format looks like a file.
        let from_root = from_root && word != "ompd-inspect/1";
        // What is fetched or built by hand lies here in one checkout and not in another.
        let from_root = from_root && !word.starts_with("test-programs/runtimes/");
        from_root && !root().join(path).exists() || !from_root && source && !known.iter().any(is_end)
    };
    let lost = lines.filter(|(_, word)| plain(word) && missing(word));
    lost.map(|(number, word)| format!("{}:{}: no such file: {word}", short(file), number + 1)).collect()
}

/// The pages whose links and names of files are checked.
fn pages() -> Vec<PathBuf> {
    let folders = ["README.md", "docs", "debugger-plugin"];
    folders.iter().flat_map(|folder| with_extension(&root().join(folder), "md")).collect()
}

#[test]
fn links_and_names_of_files_in_pages_lead_somewhere() {
    let folders = ["libompd", "ompd-inspect", "debugger-plugin", "test-programs", "ci"];
    let known: Vec<_> =
        folders.iter().flat_map(|folder| files(&root().join(folder))).map(|file| short(&file)).collect();
    let mut found = Vec::new();
    for file in pages() {
        let page = read(&file);
        found.extend(broken_links(&file, &page));
        found.extend(missing_files(&file, &page, &known));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Messages in the first column of the tables under `message` that no source has. What differs from one to the next stands in them as a
/// capital letter, `NAME`, `DIR` or an ellipsis.
fn missing_messages(page: &str, sources: &str) -> Vec<String> {
    /// A shorter part says nothing.
    const LEAST: usize = 4;
    let mut missing = Vec::new();
    let mut is_of_messages = false;
    for row in page.lines().map(|line| line.strip_prefix('|').and_then(|row| row.split('|').next()).map(str::trim)) {
        is_of_messages = row.is_some_and(|cell| is_of_messages || cell == "message");
        let message = row.filter(|_| is_of_messages).and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
        let Some(message) = message else { continue };
        let is_open = |word: &&str| ["N", "M", "T", "NAME", "DIR", "…"].contains(word);
        let words: Vec<&str> = message.split(' ').collect();
        let parts = words.split(is_open).map(|part| part.join(" "));
        let lost = parts.filter(|part| part.len() >= LEAST && !sources.contains(part.as_str()));
        missing.extend(lost.map(|part| format!("{message}: no source says `{part}`")));
    }
    missing
}

#[test]
fn messages_of_the_troubleshooting_page_are_in_the_sources() {
    let mut all = String::new();
    for (folder, extension) in [("libompd", "rs"), ("ompd-inspect/src", "rs"), ("debugger-plugin", "py")] {
        for file in with_extension(&root().join(folder), extension) {
            // A text may continue on the next line.
            let lines = read(&file).replace("\\\n", "\n");
            all.extend(lines.split_whitespace().flat_map(|word| [word, " "]));
        }
    }
    let page = read(&root().join("docs/troubleshooting.md"));
    assert!(page.contains("| `there is no process N` |"), "the page has no messages");
    let missing = missing_messages(&page, &all);
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_message_that_no_source_has_is_found() {
    let page = "| message | fix |\n|---|---|\n| `process N has ended` | x |\n| plain | x |\n\n| other |\n| `gone` |\n";
    assert_eq!(missing_messages(page, "process {} has ended"), [""; 0]);
    assert_eq!(missing_messages(page, "process {} ended").len(), 1);
}

#[test]
fn a_broken_link_is_found() {
    let file = root().join("docs/x.md");
    let page = "# A heading, and `code`\n[a](architecture.md) [b](#a-heading-and-code) [c](https://x.y)\n";
    assert_eq!(broken_links(&file, page), [""; 0]);
    assert_eq!(broken_links(&file, "[a](nothing.md)\n[b](architecture.md#nothing) [c](#nothing)").len(), 3);
    let known = ["libompd/runtime/src/gomp/mod.rs".to_owned()];
    assert_eq!(
        missing_files(&file, "`gomp/mod.rs` `ci/xtask/src/house.rs` `docs/` `x` `ci/*/src` `ci/NAME/x.rs`", &known),
        [""; 0]
    );
    assert_eq!(missing_files(&file, "`kmp/mod.rs`, `mp/mod.rs`, `ci/nothing`", &known).len(), 3);
}
