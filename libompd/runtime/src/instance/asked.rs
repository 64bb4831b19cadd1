//! The origins of a layout, asked one after the other: debug information, tables, symbols, instructions, and shipped profiles.

use ompd_layout::decoded::{self, NotCached};
use ompd_layout::profile::{self, ExportView, Rejection, Selection};
use ompd_layout::{FactSource, Facts, Origin, Schema, dwarf};
use ompd_process::elf::ElfFile;

use super::origins::FamilyOrigins;
use crate::model::OriginReport;
use crate::owner::BuiltIn;
use crate::recover::{TPOFF, may_be_decoded};

/// What the cache is for.
#[derive(Clone, Copy, Default)]
pub(super) enum CacheUse<'a> {
    /// Nothing.
    #[default]
    None,
    /// Its record is used, or there is one from now on.
    Use(&'a decoded::Cache),
    /// Something contradicts its record. What is decoded takes its place.
    Doubt(&'a decoded::Cache),
    /// It is reported what its record is.
    Compare(&'a decoded::Cache),
}

/// The origins asked so far, most trusted first.
#[derive(Default)]
pub(super) struct Asked<'a> {
    pub(super) answers: Vec<(FactSource, Facts)>,
    pub(super) reports: Vec<OriginReport>,
    /// Kinds of evidence that are not to be used.
    pub(super) ignore: Vec<Origin>,
    /// Code is decoded even if the build is known.
    pub(super) anew: bool,
    pub(super) cache: CacheUse<'a>,
    /// What the code says is from the cache.
    pub(super) is_cached: bool,
}

impl Asked<'_> {
    pub(super) fn add(&mut self, source: FactSource, facts: Facts, note: Option<String>) {
        let (facts, note) = match self.ignore.contains(&source.origin) {
            true => (Facts::default(), Some("not to be used".to_owned())),
            false => (facts, note),
        };
        let values = facts.sizes.len() + facts.globals.len() + facts.fields.values().map(|f| f.len()).sum::<usize>();
        let detail = source.detail.to_string();
        self.reports.push(OriginReport { origin: source.origin, detail, values, note, details: Vec::new() });
        self.answers.push((source, facts));
    }

    /// Files what only somebody who looks into the origin added last wants to know.
    pub(super) fn details(&mut self, lines: Vec<String>) {
        if let Some(report) = self.reports.last_mut() {
            report.details = lines;
        }
    }

    /// From the debug information of the file or its companion. The file itself is called by the name the target knows
    /// it by, not by the one it was opened under.
    pub(super) fn dwarf(&mut self, file: &ElfFile, path: &str, of: &FamilyOrigins) {
        let detail = match file.debug_companion() {
            Some(companion) if !file.has_dwarf() => companion.path().display().to_string(),
            _ => path.to_owned(),
        };
        let (mut facts, note) = match dwarf::extract_elf(file, of.schema) {
            Ok(facts) => (facts, file.missing_supplement()),
            Err(why) => (Facts::default(), Some(why.to_string())),
        };
        if file.is_program() {
            of.names.only_own(&mut facts);
        }
        self.add(FactSource::new(Origin::Dwarf, detail), facts, note);
        self.details(file.debug_search().into_iter().map(|place| format!("looked at {place}")).collect());
    }

    /// From the table the runtime describes itself with, if it has one: `bytes` reads `size` bytes at an address of the
    /// file, `address` turns a word read from one into an address of the file.
    pub(super) fn described(
        &mut self,
        file: &ElfFile,
        path: &str,
        of: &FamilyOrigins,
        bytes: &dyn Fn(u64, u64) -> Result<Vec<u8>, String>,
        address: &dyn Fn(u64, u64) -> Option<u64>,
    ) {
        /// Far larger than any such table.
        const MAX_SIZE: u64 = 64 << 10;
        let Some(described) = &of.described else { return };
        let symbol = file.symbol(described.symbol).filter(|s| !s.tls);
        let Some(symbol) = symbol.filter(|s| (described.min_size..MAX_SIZE).contains(&s.size)) else { return };
        let at = symbol.addr.0;
        let read = bytes(at, symbol.size).and_then(|bytes| {
            (described.read)(&bytes, file.arch().byte_order, &|offset, value| address(at.saturating_add(offset), value))
        });
        let (facts, note) = match read {
            Ok(facts) => (facts, None),
            Err(why) => (Facts::default(), Some(why)),
        };
        self.add(FactSource::new(Origin::Table, format!("{} of {path}", described.symbol)), facts, note);
    }

    /// From whatever symbol tables are left, and from the instructions.
    pub(super) fn symbols_and_code(&mut self, file: &ElfFile, path: &str, of: &FamilyOrigins) {
        self.add(FactSource::new(Origin::Symbol, path), from_symbols(file, of), None);
        // Who checks kinds of evidence against each other wants to see what the code says now.
        let known = (!self.anew && self.ignore.is_empty()).then(|| decoded::find(of.decoded, file)).flatten();
        if let Some(facts) = known {
            let note = "decoded before: this build is known; --verify decodes it anew";
            return self.add(FactSource::new(Origin::Code, path), facts, Some(note.to_owned()));
        }
        if let CacheUse::Use(cache) = self.cache
            && let Ok(facts) = cached(cache, file, of.schema)
        {
            self.is_cached = true;
            let note = "decoded before: this build is in the cache; --no-cache or --verify decodes it anew";
            return self.add(FactSource::new(Origin::Code, path), facts, Some(note.to_owned()));
        }
        let recovered = (of.recover)(file);
        let failures = (!recovered.failures.is_empty())
            .then(|| format!("{} things could not be decoded; -v says which", recovered.failures.len()));
        let compared = match self.cache {
            CacheUse::Use(cache) | CacheUse::Doubt(cache) => {
                // Whether it can be kept does not matter now. A record that is right already is left alone.
                if !recovered.facts.is_empty() && cache.find(file).as_ref() != Ok(&recovered.facts) {
                    let _ = cache.keep(file, &recovered.facts);
                }
                None
            }
            CacheUse::Compare(cache) if decoded::find(of.decoded, file).is_none() => {
                Some(compared(cache, file, of.schema, &recovered.facts))
            }
            CacheUse::Compare(_) | CacheUse::None => None,
        };
        let notes: Vec<String> = failures.into_iter().chain(compared).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        self.add(FactSource::new(Origin::Code, path), recovered.facts, note);
        let lines = recovered
            .failures
            .into_iter()
            .flat_map(|f| std::iter::once(f.text).chain(f.dump.into_iter().map(|line| format!("  {line}"))));
        self.details(lines.collect());
    }

    /// The profile for an image. Builds configured otherwise (without OMPT, say) export the same and have another
    /// layout. So for a build that is not listed, another source has to confirm at least one value. A caller that
    /// ignores the code has decided otherwise.
    pub(super) fn select(
        &self,
        of: &FamilyOrigins,
        image: &impl ExportView,
    ) -> Result<Selection<'static>, Vec<Rejection>> {
        let chosen = of.profiles.select(image, &self.all())?;
        if chosen.by_build_id || chosen.confirmed > 0 || self.ignore.contains(&Origin::Code) {
            return Ok(chosen);
        }
        let why = "fits by what the image exports, but no value is confirmed by its code".to_owned();
        Err(vec![Rejection { profile: chosen.profile.name.clone(), why, mismatches: Vec::new() }])
    }

    /// What is shipped for a program that has the runtime built in: see [`profile::common`]. Its code has to confirm
    /// some of it whatever else is not to be looked at, for there is no fingerprint that could.
    pub(super) fn common(&self, of: &FamilyOrigins, file: &ElfFile) -> Result<Shipped, Vec<Rejection>> {
        let common = profile::common(of.profiles.all(), &BuiltIn::of(file), &self.all())?;
        let source = common.source();
        if common.confirmed == 0 {
            let why = "may be the one of a built-in runtime, but no value is confirmed by its code".to_owned();
            return Err(vec![Rejection { profile: source.detail.to_string(), why, mismatches: Vec::new() }]);
        }
        let confirmed = common.confirmed;
        let note = match common.classes.len() {
            1 => format!("of all that are known no other is possible, {confirmed} values confirmed by other origins"),
            _ => format!("what those have in common that are possible, {confirmed} values confirmed by other origins"),
        };
        Ok(Shipped { source, facts: common.facts, note })
    }

    /// What they know together; where two know the same, the word of the more trusted one.
    fn all(&self) -> Facts {
        let mut all = Facts::default();
        for (_, facts) in &self.answers {
            for (of, fields) in &facts.fields {
                let known = all.fields.entry(of.clone()).or_default();
                for (name, field) in fields {
                    known.entry(name.clone()).or_insert(*field);
                }
            }
            for (name, size) in &facts.sizes {
                all.sizes.entry(name.clone()).or_insert(*size);
            }
        }
        all
    }
}

/// What the cache says of the code of a file.
fn cached(cache: &decoded::Cache, file: &ElfFile, schema: &Schema) -> Result<Facts, NotCached> {
    let facts = cache.find(file)?;
    if may_be_decoded(&facts, schema, file) {
        return Ok(facts);
    }
    let path = cache.path(file).unwrap_or_default();
    Err(NotCached::Ignored { path, why: "it has values that no code of the file can give" })
}

/// The same beside what was decoded now, in words.
fn compared(cache: &decoded::Cache, file: &ElfFile, schema: &Schema, decoded: &Facts) -> String {
    let at = || cache.path(file).map(|path| format!(" ({})", path.display())).unwrap_or_default();
    match cached(cache, file, schema) {
        Ok(facts) if facts == *decoded => format!("the cache has the same{}", at()),
        Ok(_) => format!("the cache has other values, remove it{}", at()),
        Err(NotCached::Missing) => format!("the cache has no record of this build{}", at()),
        Err(why) => format!("no cache: {why}"),
    }
}

/// What the shipped profiles give.
pub(super) struct Shipped {
    pub(super) source: FactSource,
    pub(super) facts: Facts,
    /// How it came to be used.
    pub(super) note: String,
}

impl From<Selection<'static>> for Shipped {
    fn from(chosen: Selection<'static>) -> Shipped {
        let mut facts = chosen.profile.facts.clone();
        // Addresses of globals move with every build.
        if !chosen.by_build_id {
            facts.globals.clear();
        }
        let how = if chosen.by_build_id { "a build that is known" } else { "fits by what it exports" };
        let note = format!("{how}, {} values confirmed by other origins", chosen.confirmed);
        Shipped { source: chosen.profile.source(), facts, note }
    }
}

/// Addresses of the schema's globals from whatever symbol table is left. In a program a name has to be the runtime's
/// own to count: a variable called `default_lock` may be anybody's.
fn from_symbols(file: &ElfFile, of: &FamilyOrigins) -> Facts {
    let mut facts = Facts::default();
    let program = file.is_program();
    for global in of.schema.globals.iter().filter(|global| !program || of.names.is_internal(global.name)) {
        let value = match global.name.strip_suffix(TPOFF) {
            Some(variable) => file.symbol(variable).and_then(|s| file.thread_pointer_offset(&s)).map(|o| o as u64),
            None => file.symbol(global.name).filter(|s| !s.tls).map(|s| s.addr.0),
        };
        if let Some(value) = value {
            facts.globals.insert(global.name.to_owned(), value);
        }
    }
    facts
}
