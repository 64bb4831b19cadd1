//! Test that no files of a crate import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use super::{Code, root, short, sources, workspace};

/// Re-exports that are followed to find where a name is defined.
const RE_EXPORTS: usize = 8;

/// A path of modules and names, from the root of the crate.
type ModulePath = Vec<String>;

/// One name that a file imports.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    path: ModulePath,
    /// The name it has here; `*` for all.
    name: String,
    /// Whether other modules get it from here.
    exported: bool,
}

/// The modules of a crate, by path.
type Modules = BTreeMap<ModulePath, (PathBuf, Vec<Import>)>;

/// The module that a file of a crate is.
fn module_of(file: &Path, folder: &Path) -> ModulePath {
    let inner = file.strip_prefix(folder).expect("a file of the crate").with_extension("");
    let mut path: ModulePath = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_root = path.len() == 1 && ["lib", "main"].contains(&&*path[0]);
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

/// The names in `tree`, a part of a `use` declaration, each with its whole path.
fn names(tree: &str, before: &[String], found: &mut Vec<(ModulePath, String)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut outer = before.to_vec();
        outer.extend(tree[..open].split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let (mut depth, mut from) = (0, 0);
        for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names(&inner[from..at], &outer, found);
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    if tree.is_empty() {
        return;
    }
    let (tree, other_name) = match tree.split_once(" as ") {
        Some((tree, name)) => (tree, Some(name.trim())),
        None => (tree, None),
    };
    let mut path = before.to_vec();
    path.extend(tree.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
    // `a::{self}` is `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = other_name.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    found.push((path, name));
}

/// What a module imports of its own crate.
fn imports(code: &Code, module: &[String], children: &BTreeSet<ModulePath>) -> Vec<Import> {
    let text = &code.names;
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let visibility = text[line..at].trim();
        if !(visibility.is_empty() || visibility.starts_with("pub")) {
            continue;
        }
        let Some(end) = text[at..].find(';') else { continue };
        if text[at..at + end].contains(['$', '=', '(']) {
            continue; // in a macro
        }
        let mut all = Vec::new();
        names(&text[at + 4..at + end], &[], &mut all);
        for (path, name) in all {
            let mut base = module.to_vec();
            // An indented declaration is in a module or function within the file.
            if text[line..].starts_with(' ') {
                base.push(String::new());
            }
            let mut rest = &path[..];
            match path[0].as_str() {
                "crate" => (base, rest) = (Vec::new(), &path[1..]),
                "self" => rest = &path[1..],
                "super" => {
                    while rest.first().is_some_and(|part| part == "super") {
                        base.pop();
                        rest = &rest[1..];
                    }
                }
                child => {
                    base = module.to_vec();
                    let path: ModulePath = base.iter().cloned().chain([child.to_owned()]).collect();
                    if !children.contains(&path) {
                        continue; // another crate
                    }
                }
            }
            base.extend_from_slice(rest);
            found.push(Import { path: base, name, exported: !visibility.is_empty() });
        }
    }
    found
}

/// The module in which `path` leads to a definition.
fn definition<'m>(modules: &'m Modules, path: &[String], left: usize) -> Option<&'m ModulePath> {
    let depth = (0..=path.len()).rev().find(|depth| modules.contains_key(&path[..*depth]))?;
    let (module, (_, imports)) = modules.get_key_value(&path[..depth])?;
    let Some(name) = path.get(depth).filter(|_| left > 0) else { return Some(module) };
    let Some(import) = imports.iter().find(|import| import.exported && import.name == *name) else {
        return Some(module);
    };
    let beyond: ModulePath = import.path.iter().chain(&path[depth + 1..]).cloned().collect();
    definition(modules, &beyond, left - 1)
}

/// Circles of files that import each other, each as a list of files.
///
/// A re-export imports nothing, and a module may use what the module around it holds for all its parts.
fn circles(modules: &Modules) -> Vec<Vec<String>> {
    let mut graph: DiGraphMap<&Path, ()> = DiGraphMap::new();
    for (module, (file, imports)) in modules {
        for import in imports.iter().filter(|import| !import.exported) {
            let target = definition(modules, &import.path, RE_EXPORTS);
            if let Some(target) = target.filter(|target| !module.starts_with(target)) {
                graph.add_edge(file, &modules[target].0, ());
            }
        }
    }
    let circles = tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
    circles.map(|files| files.into_iter().map(short).collect::<BTreeSet<_>>().into_iter().collect()).collect()
}

/// The modules of the crate with these sources.
fn modules(folder: &Path, sources: Vec<(PathBuf, Code)>) -> Modules {
    let all: BTreeSet<ModulePath> = sources.iter().map(|(file, _)| module_of(file, folder)).collect();
    let module = |(file, code): (PathBuf, Code)| {
        let path = module_of(&file, folder);
        let imports = imports(&code, &path, &all);
        (path, (file, imports))
    };
    sources.into_iter().map(module).collect()
}

#[test]
fn files_of_a_crate_do_not_import_each_other_in_a_circle() {
    let mut wrong = Vec::new();
    for own in workspace().values() {
        let folder = root().join(&own.folder).join("src");
        if folder.is_dir() {
            wrong.extend(circles(&modules(&folder, sources(&folder))));
        }
    }
    assert!(wrong.is_empty(), "files that import each other in a circle:\n{wrong:#?}");
}

#[test]
fn a_circle_of_files_is_found() {
    let folder = Path::new("/x/src");
    let crate_of = |files: &[(&str, &str)]| {
        let sources = files.iter().map(|(name, text)| (folder.join(name), Code::of(text))).collect();
        circles(&modules(folder, sources))
    };
    let circle = [["/x/src/a.rs".to_owned(), "/x/src/b.rs".to_owned()]];
    let uses_b = ["use crate::b::B;", "use super::{b::{self, B}, c};", "use crate::B;"];
    for uses_b in uses_b {
        let root = ("lib.rs", "mod a;\nmod b;\npub use b::B;");
        assert_eq!(crate_of(&[root, ("a.rs", uses_b), ("b.rs", "use crate::a;")]), circle, "{uses_b}");
        assert!(crate_of(&[root, ("a.rs", uses_b), ("b.rs", "")]).is_empty(), "{uses_b}");
        let inner = "mod inner {\n    use super::*;\n    use super::super::a;\n}";
        assert_eq!(crate_of(&[root, ("a.rs", uses_b), ("b.rs", inner)]), circle, "{uses_b}");
        let test = "#[cfg(test)]\nmod tests {\n    use crate::a;\n}";
        assert!(crate_of(&[root, ("a.rs", uses_b), ("b.rs", test)]).is_empty(), "{uses_b}");
    }
}
