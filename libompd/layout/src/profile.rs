//! Layouts shipped as data files.
//!
//! A profile is one layout class: a set of facts, and the builds of the runtime known to have exactly these. Each build
//! has a [`Fingerprint`] that says which images count as that build. Version strings never take part: vendors backport
//! whole runtimes under an old number. [`select`] chooses the profile of an image.

mod common;
mod select;
mod shipped;
mod vocabulary;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ompd_process::elf::ElfFile;
use serde::{Deserialize, Serialize};

use crate::facts::{FactSource, Facts, Origin};
use crate::resolve::{Layout, Mismatch};

pub use common::{Common, common};
pub use select::{Rejection, Selection, select};
pub use shipped::ShippedProfiles;
pub use vocabulary::Vocabulary;

/// What can be asked of an image without reading its code.
pub trait ExportView {
    /// What no other build has: the GNU build-id in lower-case hex. For a file without one that names its debug file,
    /// it is `debuglink:NAME:CRC` with that file's checksum in hex.
    fn build_id(&self) -> Option<String>;
    /// Instruction set, in the words profiles use (`x86_64`, `aarch64`).
    fn machine(&self) -> &str;
    /// Size in bytes of the exported symbol `name`; `None` if the dynamic symbol table does not define it.
    fn export_size(&self, name: &str) -> Option<u64>;
    /// Names the dynamic symbol table defines for others. May repeat.
    fn exported_names(&self) -> Vec<&str>;
    /// Symbol versions the image defines (`OMP_5.1`).
    fn version_nodes(&self) -> Vec<String>;
}

impl ExportView for ElfFile {
    fn build_id(&self) -> Option<String> {
        ElfFile::build_id(self).map(ToString::to_string).or_else(|| debug_link(self))
    }

    fn machine(&self) -> &str {
        self.arch().machine.name()
    }

    fn export_size(&self, name: &str) -> Option<u64> {
        if !self.exports(name) {
            return None;
        }
        // What is exported is also found in the dynamic symbol table first.
        self.symbol(name).map(|s| s.size)
    }

    fn exported_names(&self) -> Vec<&str> {
        ElfFile::exported_names(self).collect()
    }

    fn version_nodes(&self) -> Vec<String> {
        ElfFile::version_nodes(self)
    }
}

/// The id of a file by its `.gnu_debuglink`. That section has a file name, zeros up to a multiple of four, and the
/// CRC-32 of the named file. The CRC is in the byte order of the machine (GDB manual, "Separate Debug Files").
fn debug_link(file: &ElfFile) -> Option<String> {
    let section = file.section(".gnu_debuglink")?;
    let name = section.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    let crc = section.get((name.len() + 1).next_multiple_of(4)..)?.get(..4)?;
    let name = std::str::from_utf8(name).ok()?;
    Some(format!("debuglink:{name}:{:08x}", file.arch().byte_order.uint(crc)))
}

/// Everything shipped for one runtime family.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    /// The layout classes.
    pub classes: Vec<Profile>,
    /// All that the builds of those classes export.
    pub vocabulary: Vocabulary,
}

impl Profiles {
    /// Reads what is compiled into the program: profile files and the family's vocabulary.
    ///
    /// # Errors
    /// The first file that is not a profile.
    pub fn parse(profiles: &[&str], vocabulary: &str) -> Result<Profiles, serde_json::Error> {
        let classes = profiles.iter().map(|text| Profile::parse(text)).collect::<Result<_, _>>()?;
        Ok(Profiles { classes, vocabulary: Vocabulary::parse(vocabulary) })
    }

    /// True if a build-id (lower-case hex) is one of those listed.
    pub fn knows(&self, build_id: &str) -> bool {
        self.classes.iter().any(|class| class.knows(build_id))
    }
}

/// One layout class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Unique name in words a user can make sense of, used as the source of its facts (`libgomp class F (GCC 12)`).
    pub name: String,
    /// Runtime family, as in [`crate::Schema::family`].
    pub family: String,
    /// Instruction sets the layout holds for (`x86_64`).
    pub archs: Vec<String>,
    /// The builds known to have this layout.
    pub builds: Vec<Build>,
    /// The layout. Global addresses are those of one build and only of use with its build-id.
    pub facts: Facts,
}

/// One build of a runtime whose layout was read from debug information.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Which build, in words.
    pub made_from: String,
    /// [`ExportView::build_id`] of images known to be of the same source: any one settles the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_ids: Vec<String>,
    /// Which other images count as the same. None, if releases with the same exports are known to differ.
    #[serde(default)]
    pub fingerprint: Fingerprint,
}

/// Conditions on an image. All of them have to hold; a fingerprint that demands no export fits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Symbols that must be exported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    /// Symbols that must not be exported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_exports: Vec<String>,
    /// Symbols that must be exported with at least so many bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub export_sizes: BTreeMap<String, u64>,
    /// Symbols that must not be exported with so many bytes or more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub no_export_sizes: BTreeMap<String, u64>,
    /// The symbol versions the build defines, sorted. An image that defines any must define exactly these: they come
    /// from the linker script of one release. Builds for musl have none, and then the exports have to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version_nodes: Vec<String>,
}

impl Fingerprint {
    /// True if no image matches, so that only listed build-ids count.
    pub fn fits_nothing(&self) -> bool {
        self.exports.is_empty() && self.export_sizes.is_empty()
    }

    /// The number of conditions that hold, or the first that does not, in words.
    ///
    /// # Errors
    /// The condition that failed, as a sentence about the image without its subject; also if no export is demanded.
    pub fn matches(&self, image: &impl ExportView) -> Result<usize, String> {
        if self.fits_nothing() {
            return Err("is another build than the listed ones".to_owned());
        }
        if let Some(name) = self.exports.iter().find(|n| image.export_size(n).is_none()) {
            return Err(format!("does not export {name}"));
        }
        if let Some(name) = self.no_exports.iter().find(|n| image.export_size(n).is_some()) {
            return Err(format!("exports {name}"));
        }
        let at_least = |(name, bytes): &(&String, &u64)| image.export_size(name).is_some_and(|size| size >= **bytes);
        if let Some((name, bytes)) = self.export_sizes.iter().find(|entry| !at_least(entry)) {
            return Err(format!("does not export {name} with {bytes} bytes or more"));
        }
        if let Some((name, bytes)) = self.no_export_sizes.iter().find(at_least) {
            return Err(format!("exports {name} with {bytes} bytes or more"));
        }
        let nodes = image.version_nodes();
        if !nodes.is_empty() {
            if let Some(node) = nodes.iter().find(|n| !self.version_nodes.contains(n)) {
                return Err(format!("defines the symbol version {node}"));
            }
            if let Some(node) = self.version_nodes.iter().find(|n| !nodes.contains(n)) {
                return Err(format!("does not define the symbol version {node}"));
            }
        }
        let exports = self.exports.len() + self.no_exports.len();
        Ok(exports + self.export_sizes.len() + self.no_export_sizes.len() + nodes.len())
    }

    /// Checks whether an image that has only some of the build's public names may be that build. A program that has the
    /// runtime built in is such an image. A missing name proves nothing; a name that should not be there does.
    ///
    /// # Errors
    /// The condition that failed, as a sentence about the image without its subject.
    pub fn allows(&self, image: &impl ExportView) -> Result<(), String> {
        if self.fits_nothing() {
            return Err("is another build than the listed ones".to_owned());
        }
        match self.no_exports.iter().find(|name| image.export_size(name).is_some()) {
            Some(name) => Err(format!("has {name}")),
            None => Ok(()),
        }
    }

    /// The number of demanded exports an image has and of forbidden ones it has not.
    fn likeness(&self, image: &impl ExportView) -> usize {
        let present = self.exports.iter().filter(|name| image.export_size(name).is_some()).count();
        present + self.no_exports.iter().filter(|name| image.export_size(name).is_none()).count()
    }

    /// True if no image can match both by what it exports: one demands what the other forbids. Symbol versions do not
    /// count, for there are builds without.
    pub fn excludes(&self, other: &Fingerprint) -> bool {
        let against = |a: &Fingerprint, b: &Fingerprint| {
            a.exports.iter().any(|name| b.no_exports.contains(name))
                || a.export_sizes.iter().any(|(name, least)| {
                    b.no_exports.contains(name) || b.no_export_sizes.get(name).is_some_and(|limit| limit <= least)
                })
        };
        self.fits_nothing() || other.fits_nothing() || against(self, other) || against(other, self)
    }
}

impl Profile {
    /// Reads a profile file.
    ///
    /// # Errors
    /// Not JSON, or not a profile; unknown keys are refused.
    pub fn parse(text: &str) -> Result<Profile, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// True if a build-id (lower-case hex) is listed.
    pub fn knows(&self, build_id: &str) -> bool {
        self.builds.iter().any(|build| build.build_ids.iter().any(|id| id == build_id))
    }

    /// The build an image counts as, with the number of its conditions: the one with most of them among those whose
    /// fingerprint matches.
    ///
    /// # Errors
    /// Why it is not the build whose exports are most like the image's.
    pub fn build_of(&self, image: &impl ExportView) -> Result<(&Build, usize), String> {
        let mut why = (0, "is another build than the listed ones".to_owned());
        let mut best: Option<(&Build, usize)> = None;
        for build in &self.builds {
            match build.fingerprint.matches(image) {
                Ok(score) if best.is_none_or(|(_, other)| score > other) => best = Some((build, score)),
                Ok(_) => {}
                Err(reason) => {
                    let likeness = build.fingerprint.likeness(image);
                    if likeness >= why.0 {
                        why = (likeness, reason);
                    }
                }
            }
        }
        best.ok_or(why.1)
    }

    /// The file's text: one line per value, so that two profiles can be compared line by line.
    ///
    /// # Errors
    /// Never for profiles made by [`Profile::parse`] or from DWARF; serialisation errors are passed on.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let line = serde_json::to_string::<str>;
        let mut out = String::from("{\n");
        for (key, value) in [("name", &self.name), ("family", &self.family)] {
            put(&mut out, format_args!(" {}: {},\n", line(key)?, line(value)?));
        }
        put(&mut out, format_args!(" \"archs\": {},\n", serde_json::to_string(&self.archs)?));
        let builds = self.builds.iter().map(build_json).collect::<Result<Vec<_>, _>>()?;
        put(&mut out, format_args!(" \"builds\": {},\n", block('[', &builds, 1, ']')));
        let mut fields = Vec::new();
        for (of, members) in &self.facts.fields {
            let mut entries = Vec::new();
            for (name, field) in members {
                entries.push(format!("    {}: {}", line(name)?, serde_json::to_string(field)?));
            }
            fields.push(format!("   {}: {}", line(of)?, block('{', &entries, 3, '}')));
        }
        let plain = |map: &BTreeMap<String, u64>| -> Result<Vec<String>, serde_json::Error> {
            map.iter().map(|(name, value)| Ok(format!("   {}: {value}", line(name)?))).collect()
        };
        let facts = [
            format!("  \"sizes\": {}", block('{', &plain(&self.facts.sizes)?, 2, '}')),
            format!("  \"fields\": {}", block('{', &fields, 2, '}')),
            format!("  \"globals\": {}", block('{', &plain(&self.facts.globals)?, 2, '}')),
        ];
        put(&mut out, format_args!(" \"facts\": {}\n}}\n", block('{', &facts, 1, '}')));
        Ok(out)
    }

    /// Who its facts come from.
    pub fn source(&self) -> FactSource {
        FactSource::new(Origin::Profile, self.name.as_str())
    }
}

/// How two origins compare on what both know.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Values both have and agree on.
    pub confirmed: usize,
    /// Values they disagree on; the first origin's is the one kept.
    pub mismatches: Vec<Mismatch>,
}

impl Comparison {
    /// Compares sizes and fields. Globals move with every build and are not looked at.
    pub fn of(a: (&FactSource, &Facts), b: (&FactSource, &Facts)) -> Comparison {
        let local = |facts: &Facts| Facts { globals: BTreeMap::new(), ..facts.clone() };
        Comparison::of_one_build((a.0, &local(a.1)), (b.0, &local(b.1)))
    }

    /// Compares globals too, as two origins of one and the same file can be.
    pub fn of_one_build(a: (&FactSource, &Facts), b: (&FactSource, &Facts)) -> Comparison {
        let globals = a.1.globals.keys().filter(|name| b.1.globals.contains_key(*name)).count();
        let sizes = a.1.sizes.keys().filter(|name| b.1.sizes.contains_key(*name)).count();
        let fields = a.1.fields.iter().flat_map(|(of, fields)| fields.keys().map(move |name| (of, name)));
        let fields = fields.filter(|(of, name)| b.1.field(of, name).is_some()).count();
        let (_, mismatches) = Layout::resolve(&[(a.0.clone(), a.1.clone()), (b.0.clone(), b.1.clone())]);
        Comparison { confirmed: (globals + sizes + fields).saturating_sub(mismatches.len()), mismatches }
    }
}

fn build_json(build: &Build) -> Result<String, serde_json::Error> {
    let print = &build.fingerprint;
    let mut entries = vec![format!("   \"made_from\": {}", serde_json::to_string(&build.made_from)?)];
    if !build.build_ids.is_empty() {
        entries.push(format!("   \"build_ids\": {}", serde_json::to_string(&build.build_ids)?));
    }
    let mut conditions = Vec::new();
    let lists = [("exports", &print.exports), ("no_exports", &print.no_exports)];
    for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        conditions.push(format!("    \"{key}\": {}", serde_json::to_string(list)?));
    }
    let sizes = [("export_sizes", &print.export_sizes), ("no_export_sizes", &print.no_export_sizes)];
    for (key, map) in sizes.into_iter().filter(|(_, map)| !map.is_empty()) {
        conditions.push(format!("    \"{key}\": {}", serde_json::to_string(map)?));
    }
    if !print.version_nodes.is_empty() {
        conditions.push(format!("    \"version_nodes\": {}", serde_json::to_string(&print.version_nodes)?));
    }
    entries.push(format!("   \"fingerprint\": {}", block('{', &conditions, 3, '}')));
    Ok(format!("  {}", block('{', &entries, 2, '}')))
}

fn block(open: char, entries: &[String], indent: usize, close: char) -> String {
    if entries.is_empty() {
        return format!("{open}{close}");
    }
    format!("{open}\n{}\n{}{close}", entries.join(",\n"), " ".repeat(indent))
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}
