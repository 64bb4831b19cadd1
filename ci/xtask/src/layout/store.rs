//! The profile files of one family on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use ompd_layout::profile::{Profile, Vocabulary};

use super::Family;

/// Name of the vocabulary file beside the profiles.
pub const VOCABULARY: &str = "exports.txt";

/// Comment at the head of a vocabulary file.
const HEAD: &str = "\
# Public names and symbol versions of every release that has a profile. A runtime with more than these is of none of
# them, and gets no profile. Kept up by `cargo xtask layout extract`.
#   prefix*   how public names begin      @version   a symbol version      name   an exported name
";

/// The profiles and the vocabulary of a family.
pub struct Store {
    folder: PathBuf,
    /// Stems of the files read.
    found: Vec<String>,
    /// Layout classes by the stem of their file's name.
    pub classes: BTreeMap<String, Profile>,
    pub vocabulary: Vocabulary,
}

impl Store {
    /// Reads a folder of profiles; an empty one is the beginning of a family.
    pub fn open(folder: PathBuf, family: &Family) -> Result<Store> {
        let mut classes = BTreeMap::new();
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|e| e != "json") {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let profile = Profile::parse(&text).with_context(|| format!("{} is no profile", path.display()))?;
            ensure!(profile.family == family.about.schema.family, "{} is for another family", path.display());
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            classes.insert(stem, profile);
        }
        let path = folder.join(VOCABULARY);
        let mut vocabulary = match fs::read_to_string(&path) {
            Ok(text) => Vocabulary::parse(&text),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound && classes.is_empty() => Vocabulary::default(),
            Err(why) => return Err(why).with_context(|| format!("cannot read {}", path.display())),
        };
        vocabulary.prefixes.extend(family.about.prefixes.iter().map(|p| (*p).to_owned()));
        Ok(Store { folder, found: classes.keys().cloned().collect(), classes, vocabulary })
    }

    /// Exports that tell builds apart: all that any fingerprint demands or forbids.
    pub fn markers(&self) -> BTreeSet<String> {
        let prints = self.classes.values().flat_map(|class| &class.builds).map(|build| &build.fingerprint);
        prints.flat_map(|print| print.exports.iter().chain(&print.no_exports)).cloned().collect()
    }

    /// The text of the vocabulary file.
    pub fn vocabulary_text(&self) -> String {
        format!("{HEAD}{}", self.vocabulary.to_text())
    }

    /// Writes what differs from the files and deletes those of classes that are no more. Says what it did.
    pub fn save(&self) -> Result<Vec<String>> {
        let mut texts = BTreeMap::from([(VOCABULARY.to_owned(), self.vocabulary_text())]);
        for (stem, profile) in &self.classes {
            let text = profile.to_json()?;
            ensure!(Profile::parse(&text)? == *profile, "{stem} does not read back as written");
            texts.insert(format!("{stem}.json"), text);
        }
        let mut changed = Vec::new();
        for (name, text) in texts {
            let path = self.folder.join(&name);
            if fs::read_to_string(&path).is_ok_and(|old| old == text) {
                continue;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            changed.push(format!("wrote {name}"));
        }
        for stem in self.found.iter().filter(|stem| !self.classes.contains_key(*stem)) {
            let path = self.folder.join(format!("{stem}.json"));
            fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
            changed.push(format!("deleted {stem}.json"));
        }
        Ok(changed)
    }
}
