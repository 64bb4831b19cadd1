//! The public names of all releases that have a profile.

use std::collections::BTreeSet;

use super::ExportView;

/// Marks a line as a name pattern when it is the last character.
const PREFIX_MARK: char = '*';
/// Marks a line as a symbol version when it is the first character, as in `name@VERSION`.
const VERSION_MARK: char = '@';

/// Every public name and symbol version that some release with a profile has.
///
/// A runtime that exports more is newer than all known releases, or another one. Its layout may have moved, whatever
/// else of its fingerprint matches. Only names with one of the family's public prefixes are judged, because a program
/// with the runtime built in exports names of its own.
///
/// The file has one entry a line: `#` begins a comment, `omp_*` is a public prefix, `@OMP_5.1` a symbol version, and
/// anything else a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// How public names begin.
    pub prefixes: BTreeSet<String>,
    /// Symbol versions.
    pub version_nodes: BTreeSet<String>,
    /// Public names.
    pub names: BTreeSet<String>,
}

impl Vocabulary {
    /// Reads a vocabulary file.
    pub fn parse(text: &str) -> Vocabulary {
        let mut all = Vocabulary::default();
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            if let Some(prefix) = line.strip_suffix(PREFIX_MARK) {
                all.prefixes.insert(prefix.to_owned());
            } else if let Some(node) = line.strip_prefix(VERSION_MARK) {
                all.version_nodes.insert(node.to_owned());
            } else {
                all.names.insert(line.to_owned());
            }
        }
        all
    }

    /// The file's text, sorted, without comments.
    pub fn to_text(&self) -> String {
        let prefixes = self.prefixes.iter().map(|p| format!("{p}{PREFIX_MARK}\n"));
        let nodes = self.version_nodes.iter().map(|n| format!("{VERSION_MARK}{n}\n"));
        let names = self.names.iter().map(|n| format!("{n}\n"));
        prefixes.chain(nodes).chain(names).collect()
    }

    /// True if a name is one of the runtime's public ones by how it begins.
    pub fn is_public(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// The public names an image exports that are in no known release, sorted.
    pub fn unknown_names(&self, image: &impl ExportView) -> BTreeSet<String> {
        let public = image.exported_names().into_iter().filter(|name| self.is_public(name));
        public.filter(|name| !self.names.contains(*name)).map(str::to_owned).collect()
    }

    /// The symbol versions an image defines that no known release has, sorted.
    pub fn unknown_nodes(&self, image: &impl ExportView) -> BTreeSet<String> {
        image.version_nodes().into_iter().filter(|node| !self.version_nodes.contains(node)).collect()
    }

    /// Why an image is of no known release, as a sentence about it without its subject; `None` if it may be of one.
    pub fn stranger(&self, image: &impl ExportView) -> Option<String> {
        let more = |count: usize| if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let nodes = self.unknown_nodes(image);
        if let Some(node) = nodes.first() {
            return Some(format!("defines the symbol version {node}{}, which no known release has", more(nodes.len())));
        }
        let names = self.unknown_names(image);
        let name = names.first()?;
        Some(format!("exports {name}{}, which no known release does", more(names.len())))
    }

    /// Adds all public names and symbol versions of an image.
    pub fn learn(&mut self, image: &impl ExportView) {
        let names = self.unknown_names(image);
        self.names.extend(names);
        self.version_nodes.extend(image.version_nodes());
    }
}
