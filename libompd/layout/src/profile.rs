//! Layouts shipped as data files.
//!
//! A profile is the layout of one build, taken from its debug information, with a [`Fingerprint`] that says which other
//! images it may be used for. Version strings never take part: vendors backport whole runtimes under an old number.

use std::fmt::Write as _;

use ompd_target::Machine;
use ompd_target::elf::ElfFile;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Origin, Source};
use crate::resolve::{Layout, Mismatch};

/// What can be asked of an image without reading its code.
pub trait ExportView {
    /// GNU build-id in lower-case hex.
    fn build_id(&self) -> Option<String>;
    /// Instruction set, in the words profiles use (`x86_64`, `aarch64`).
    fn machine(&self) -> &str;
    /// True if the dynamic symbol table defines `name`.
    fn exports(&self, name: &str) -> bool;
    /// True if the image defines the symbol version `name` (`OMP_5.1`).
    fn defines_version(&self, name: &str) -> bool;
}

impl ExportView for ElfFile {
    fn build_id(&self) -> Option<String> {
        ElfFile::build_id(self).map(ToString::to_string)
    }

    fn machine(&self) -> &str {
        machine_name(self.arch().machine)
    }

    fn exports(&self, name: &str) -> bool {
        ElfFile::exports(self, name)
    }

    fn defines_version(&self, name: &str) -> bool {
        self.version_nodes().iter().any(|n| n == name)
    }
}

/// The word profiles use for an instruction set.
pub fn machine_name(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "x86_64",
        Machine::Aarch64 => "aarch64",
        Machine::Other(_) => "other",
    }
}

/// One shipped layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Unique name, used as the source of its facts (`libgomp-gcc12-x86_64`).
    pub name: String,
    /// Runtime family, as in [`crate::Schema::family`].
    pub family: String,
    /// Instruction set the layout is for (`x86_64`).
    pub arch: String,
    /// The build the layout was read from, in words.
    pub made_from: String,
    /// Which images it fits.
    #[serde(default)]
    pub fingerprint: Fingerprint,
    /// The layout. Global addresses are those of one build and only of use with its build-id.
    pub facts: Facts,
}

/// Conditions on an image. All of them have to hold; a fingerprint without any fits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Build-ids (hex) known to have exactly this layout: any one settles the question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_ids: Vec<String>,
    /// Symbols that must be exported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<String>,
    /// Symbols that must not be exported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_exports: Vec<String>,
    /// Symbol versions that must be defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version_nodes: Vec<String>,
    /// Symbol versions that must not be defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_version_nodes: Vec<String>,
}

impl Fingerprint {
    /// True if the image's build-id is listed.
    pub fn knows(&self, image: &impl ExportView) -> bool {
        image.build_id().is_some_and(|id| self.build_ids.contains(&id))
    }

    /// The number of conditions (build-ids apart) that hold, or the first that does not, in words.
    ///
    /// # Errors
    /// The condition that failed; also if there is no condition at all.
    pub fn matches(&self, image: &impl ExportView) -> Result<usize, String> {
        let lists = [&self.exports, &self.no_exports, &self.version_nodes, &self.no_version_nodes];
        let total = lists.iter().map(|l| l.len()).sum();
        if total == 0 {
            return Err("is another build than the listed ones".to_owned());
        }
        let failed = |list: &[String], test: &dyn Fn(&str) -> bool, words: &str| match list.iter().find(|n| !test(n)) {
            Some(name) => Err(format!("{words} {name}")),
            None => Ok(()),
        };
        failed(&self.exports, &|n| image.exports(n), "does not export")?;
        failed(&self.no_exports, &|n| !image.exports(n), "exports")?;
        failed(&self.version_nodes, &|n| image.defines_version(n), "does not define the symbol version")?;
        failed(&self.no_version_nodes, &|n| !image.defines_version(n), "defines the symbol version")?;
        Ok(total)
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

    /// The file's text: sorted, one line per value, so that two profiles can be compared line by line.
    ///
    /// # Errors
    /// Never for profiles made by [`Profile::parse`] or from DWARF; serialisation errors are passed on.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let line = serde_json::to_string::<str>;
        let mut out = String::from("{\n");
        for (key, value) in
            [("name", &self.name), ("family", &self.family), ("arch", &self.arch), ("made_from", &self.made_from)]
        {
            put(&mut out, format_args!(" {}: {},\n", line(key)?, line(value)?));
        }
        let print = &self.fingerprint;
        let lists = [
            ("build_ids", &print.build_ids),
            ("exports", &print.exports),
            ("no_exports", &print.no_exports),
            ("version_nodes", &print.version_nodes),
            ("no_version_nodes", &print.no_version_nodes),
        ];
        let mut entries = Vec::new();
        for (key, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            entries.push(format!("  {}: {}", line(key)?, serde_json::to_string(list)?));
        }
        put(&mut out, format_args!(" \"fingerprint\": {},\n", block(&entries, 1)));
        let mut fields = Vec::new();
        for (of, members) in &self.facts.fields {
            let mut entries = Vec::new();
            for (name, field) in members {
                entries.push(format!("    {}: {}", line(name)?, serde_json::to_string(field)?));
            }
            fields.push(format!("   {}: {}", line(of)?, block(&entries, 3)));
        }
        let plain = |map: &std::collections::BTreeMap<String, u64>| -> Result<Vec<String>, serde_json::Error> {
            map.iter().map(|(name, value)| Ok(format!("   {}: {value}", line(name)?))).collect()
        };
        let facts = [
            format!("  \"sizes\": {}", block(&plain(&self.facts.sizes)?, 2)),
            format!("  \"fields\": {}", block(&fields, 2)),
            format!("  \"globals\": {}", block(&plain(&self.facts.globals)?, 2)),
        ];
        put(&mut out, format_args!(" \"facts\": {}\n}}\n", block(&facts, 1)));
        Ok(out)
    }

    /// Who its facts come from.
    pub fn source(&self) -> Source {
        Source::new(Origin::Profile, self.name.as_str())
    }
}

/// The profile to use for an image.
#[derive(Debug, Clone)]
pub struct Selection<'p> {
    /// The profile.
    pub profile: &'p Profile,
    /// True if the build-id is listed; else the fingerprint matched.
    pub by_build_id: bool,
    /// Decoded values that the profile also has and confirms. With 0 only the fingerprint speaks for it.
    pub confirmed: usize,
    /// Contradictions with decoded values: empty unless selected by build-id.
    pub mismatches: Vec<Mismatch>,
}

/// Why a profile is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{profile}: {why}")]
pub struct Rejection {
    /// Name of the profile.
    pub profile: String,
    /// The reason, in words.
    pub why: String,
    /// The contradictions with decoded values, when they are the reason.
    pub mismatches: Vec<Mismatch>,
}

/// Picks the profile for an image: one that lists its build-id; else one whose fingerprint matches and that does not
/// contradict a single value of `decoded`. Of several, the one with most conditions; if two equally specific ones
/// differ in their layout, none, for picking one would be a guess.
///
/// # Errors
/// Why each of the profiles was rejected.
pub fn select<'p>(
    profiles: &'p [Profile],
    image: &impl ExportView,
    decoded: &Facts,
) -> Result<Selection<'p>, Vec<Rejection>> {
    let mut rejected = Vec::new();
    let mut fitting: Vec<(usize, Selection<'p>)> = Vec::new();
    for profile in profiles {
        let reject = |why: String, mismatches| Rejection { profile: profile.name.clone(), why, mismatches };
        if profile.arch != image.machine() {
            rejected.push(reject(format!("is for {}, the image is for {}", profile.arch, image.machine()), Vec::new()));
            continue;
        }
        let (confirmed, mismatches) = compare(profile, decoded);
        if profile.fingerprint.knows(image) {
            return Ok(Selection { profile, by_build_id: true, confirmed, mismatches });
        }
        match profile.fingerprint.matches(image) {
            Err(why) => rejected.push(reject(format!("the image {why}"), Vec::new())),
            Ok(_) if !mismatches.is_empty() => {
                let why = format!("contradicts {} of {} values", mismatches.len(), mismatches.len() + confirmed);
                rejected.push(reject(why, mismatches));
            }
            Ok(score) => fitting.push((score, Selection { profile, by_build_id: false, confirmed, mismatches })),
        }
    }
    let best = fitting.iter().map(|(score, _)| *score).max();
    let mut candidates = fitting.into_iter().filter(|(score, _)| Some(*score) == best).map(|(_, s)| s);
    let Some(chosen) = candidates.next() else { return Err(rejected) };
    let rivals: Vec<_> = candidates.filter(|c| !same_layout(&c.profile.facts, &chosen.profile.facts)).collect();
    if rivals.is_empty() {
        return Ok(chosen);
    }
    for one in std::iter::once(chosen).chain(rivals) {
        let why = "fits, but so does another profile that differs".to_owned();
        rejected.push(Rejection { profile: one.profile.name.clone(), why, mismatches: Vec::new() });
    }
    Err(rejected)
}

/// Values both have and agree on, and the contradictions. Globals move with every build and are not compared.
fn compare(profile: &Profile, decoded: &Facts) -> (usize, Vec<Mismatch>) {
    let sizes = decoded.sizes.keys().filter(|n| profile.facts.sizes.contains_key(*n)).count();
    let fields = decoded
        .fields
        .iter()
        .flat_map(|(of, fields)| fields.keys().map(move |name| (of, name)))
        .filter(|(of, name)| profile.facts.field(of, name).is_some())
        .count();
    let code = Facts { globals: Default::default(), ..decoded.clone() };
    let shipped = Facts { globals: Default::default(), ..profile.facts.clone() };
    let decoder = Source::new(Origin::Code, "decoded from the image");
    let (_, mismatches) = Layout::resolve(&[(decoder, code), (profile.source(), shipped)]);
    ((sizes + fields).saturating_sub(mismatches.len()), mismatches)
}

fn same_layout(a: &Facts, b: &Facts) -> bool {
    a.sizes == b.sizes && a.fields == b.fields
}

fn block(entries: &[String], indent: usize) -> String {
    if entries.is_empty() {
        return "{}".to_owned();
    }
    format!("{{\n{}\n{}}}", entries.join(",\n"), " ".repeat(indent))
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(text);
}
