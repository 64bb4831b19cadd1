//! Finding the runtimes of a process and the layout of each.

use std::collections::{HashMap, HashSet};
use std::fmt;

use ompd_layout::decoded::{self, NotCached};
use ompd_layout::profile::{self, ExportView, Profiles, Rejection, Selection};
use ompd_layout::{FactSource, Facts, Layout, Origin, Schema, dwarf, table};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Arch, ByteOrder, Module, NativeThread, NeededBy, Registers, Target, TargetExt, needed_by};

use crate::entry::{Entry, Locking};
use crate::evidence::{Critical, Naming};
use crate::excerpt::{Excerpt, Focus, Known};
use crate::model::{
    Common, DeeperItems, Fact, FailedCheck, IcvValue, Icvs, InstanceInfo, Issue, Lack, LayoutEntry, OriginReport,
    RawSnapshot, Reason, Setting, Trouble,
};
use crate::owner::{BuiltIn, OwnNames};
use crate::recover::{Recovered, TPOFF, may_be_decoded};
use crate::stops::{AtStop, OwnCall, OwnSymbols, StopEvent, StopPoint, Stops, Values};

/// One runtime of one process, ready to be read.
///
/// Making one reads only what never changes while the process runs (code, symbols, relocated slots), so it can be done
/// before the process is stopped; [`Runtime::snapshot`] is the part that needs the stop.
pub trait Runtime: fmt::Debug {
    /// Identity and layout.
    fn info(&self) -> &InstanceInfo;

    /// Reads the state of the runtime. Never fails as a whole: what could not be read is unknown, with an issue.
    fn snapshot(&self, target: &dyn Target) -> RawSnapshot;

    /// Reads a single thread, and as little as possible beside it. `None` where that does not show all that a whole
    /// snapshot would. `None` also where no snapshot has shown yet that the layout fits: then a snapshot has to be
    /// made.
    ///
    /// It has only what memory alone shows: of what a thread waits for, nothing is taken from registers.
    fn excerpt(&self, _target: &dyn Target, _focus: &Focus<'_>) -> Option<Excerpt> {
        None
    }

    /// Where the descriptors of threads are, with as few reads as that takes. It shows that what these reads need of the layout fits.
    /// `None` where only a snapshot tells.
    fn index(&self, _target: &dyn Target, _natives: &[NativeThread]) -> Option<Vec<Known>> {
        None
    }

    /// The state that the runtime itself keeps of a thread, where it is one that leaves nothing to derive. `None` for others, and
    /// where it is not certain that the thread still has this descriptor.
    fn kept_state(&self, _target: &dyn Target, _thread: Known, _alive: &dyn Fn(Known) -> bool) -> Option<u32> {
        None
    }

    /// All control variables of the process as a whole. `None` where no look has shown yet that the layout fits.
    fn settings(&self, _target: &dyn Target) -> Option<Vec<Setting>> {
        None
    }

    /// A control variable of the process as a whole, by the name it has in [`Recorded::settings`](crate::model::Recorded::settings), with as few reads as that
    /// takes. `None` if there is none of this name, or where no snapshot has shown yet that the layout fits.
    fn setting(&self, _target: &dyn Target, _name: &str) -> Option<Setting> {
        None
    }

    /// Settings of the process that this runtime alone has, by the variables of the environment that set them, as far as they can
    /// be read.
    fn own_settings(&self, _target: &dyn Target) -> Vec<(&'static str, IcvValue)> {
        Vec::new()
    }

    /// The control variables that a task has itself, also of one that no thread executes; those of its thread and team are unknown.
    /// `task` is the address of its descriptor, in a stop in which it was seen to be one.
    fn icvs_of_task(&self, _target: &dyn Target, _task: Addr) -> Icvs {
        Icvs::unknown(NOT_READ)
    }

    /// The items of control variables that are lists, for regions inside of a task's own. `team` is the address of the descriptor of
    /// the task's team, `None` outside of all regions; `level` is the task's level of nesting. An excerpt has none of them.
    fn deeper_items(&self, _target: &dyn Target, _team: Option<Addr>, _level: u32) -> DeeperItems {
        DeeperItems::unknown(NOT_READ)
    }

    /// True if the runtime implements OMPT, the interface for tools (OpenMP 5.2, chapter 19). Then tools may have filed data with
    /// threads, regions and tasks.
    fn has_tools(&self) -> bool {
        false
    }

    /// The version of OpenMP that the runtime says it implements: the value of `_OPENMP`.
    fn openmp_version(&self, _target: &dyn Target) -> Fact<u32> {
        Fact::unknown(NOT_READ)
    }

    /// How names tell apart what memory does not.
    fn naming(&self) -> Naming {
        Naming::default()
    }

    /// The variables of named criticals, by the address of their lock, where the variable is not the lock itself; of those
    /// locks that are `wanted`. Needs no stop.
    fn criticals(&self, _target: &dyn Target, _wanted: &HashSet<Addr>) -> HashMap<Addr, Critical> {
        HashMap::new()
    }

    /// True if the instruction at `addr` (an address of the target) belongs to the runtime. In a program that has the
    /// runtime built in, the symbols have to say so: false also where they leave it open.
    fn owns_code(&self, target: &dyn Target, addr: Addr) -> bool;

    /// What the code at `addr` does for a library that stands between program and runtime. `None` for other code.
    fn stands_between(&self, _target: &dyn Target, _addr: Addr) -> Option<Between> {
        None
    }

    /// What it means that the program calls the runtime's function `symbol`; `None` for functions that say nothing.
    fn entry(&self, _symbol: &str) -> Option<Entry> {
        None
    }

    /// What the runtime's function `symbol` does with a lock; `None` if it does nothing with one that its caller names.
    fn lock_call(&self, _symbol: &str) -> Option<Locking> {
        None
    }

    /// True if a function of the program that the runtime calls is the body of a region, and not a task or anything else.
    /// `functions` are the names of the functions of the runtime's frames outward of it, innermost first, where they have
    /// any; `outermost` says that the first is the one the thread began with, C library apart.
    fn invokes_region(&self, _functions: &[Option<&str>], _outermost: bool) -> bool {
        false
    }

    /// Name of a function that ends a region and opens none. It and a function that opens regions call the same
    /// function: the runtime's own one for the end of a region. `None` where there is no such pair.
    fn ends_regions(&self) -> Option<&'static str> {
        None
    }

    /// Where a debugger can stop the process when something begins or ends. What is found once is kept. Reads no memory.
    fn stops(&self, _target: &dyn Target) -> &Stops {
        static NONE: Stops = Stops { points: Vec::new(), gaps: Vec::new() };
        &NONE
    }

    /// What holds of a thread that is at such a place (one of [`Runtime::stops`]), and what the snapshot lacks there, as the
    /// region that begins. `registers` are those of the thread.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_stop(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _point: &StopPoint,
        _registers: Values<'_>,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// Why a hit of one of these places does not count, by a look at its thread alone; `None` if it counts. The excerpt has the
    /// thread's current task.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn not_counted(
        &self,
        _target: &dyn Target,
        _excerpt: &Excerpt,
        _point: &StopPoint,
    ) -> Result<Option<String>, String> {
        Err(NOT_READ.to_string())
    }

    /// OMPD's own symbols, if the runtime has them and was not found to pass them by. A debugger may have stopped at
    /// one without having asked where it can stop.
    fn own_symbols(&self, _target: &dyn Target) -> Option<&OwnSymbols> {
        None
    }

    /// Name of the thread-local variable in which a thread has its number ([`RawThread::gtid`](crate::model::RawThread::gtid)), an
    /// `int`; `None` if the runtime has none that a debugger could find.
    fn number_variable(&self, _target: &dyn Target) -> Option<&'static str> {
        None
    }

    /// False if this thread of the runtime, whose record is there, is not at one of them: it waits.
    fn may_be_at_own_symbol(&self, _target: &dyn Target, _thread: Addr) -> bool {
        true
    }

    /// The calls of these symbols, by which a thread that is at one shows on its stack.
    ///
    /// # Errors
    /// The reason why they are not known.
    fn own_calls(&self, _target: &dyn Target) -> Result<&[OwnCall], String> {
        Ok(&[])
    }

    /// What holds of a thread that is at one of these symbols, with its registers.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_own_symbol(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _registers: &Registers,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// What holds of a thread that the companion has led to a stop point of OMPD.
    ///
    /// # Errors
    /// The reason why it is not known.
    fn at_companions_stop(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _event: StopEvent,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }

    /// What would hold of a thread that such a call has led to one of these symbols.
    ///
    /// # Errors
    /// The reason why it would not be known.
    fn at_own_call(
        &self,
        _target: &dyn Target,
        _snapshot: &RawSnapshot,
        _lwp: i32,
        _call: &OwnCall,
    ) -> Result<AtStop, String> {
        Err(NOT_READ.to_string())
    }
}

/// What code of a library between program and runtime does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// It forwards calls of the runtime, or the runtime calls it in place of a function of the program.
    Forwards,
    /// It calls a function of the program.
    CallsProgram,
}

/// How a family tells what it is made of.
pub(crate) struct FamilyOrigins {
    pub(crate) family: &'static str,
    pub(crate) schema: &'static Schema,
    pub(crate) profiles: &'static Profiles,
    /// What each missing value costs.
    pub(crate) costs: &'static [Cost],
    pub(crate) recover: fn(&ElfFile) -> Recovered,
    /// What that gives of builds that are known (`ompd_layout::decoded`).
    pub(crate) decoded: &'static str,
    /// A table of the family's own, if its builds may have one.
    pub(crate) described: Option<Described>,
    /// Pairs of which one is enough.
    pub(crate) alternatives: &'static [[&'static str; 2]],
    /// What tells the runtime from the rest of a program that has it built in.
    pub(crate) names: &'static OwnNames,
    /// Values that only matter together with a function of the runtime, by name, or that only a variable's name tells. Not all
    /// releases have all functions, and a program that has the runtime built in may have been linked without.
    pub(crate) only_with: &'static [(&'static str, &'static str)],
    /// Structs that only releases have in which a certain member leads to them: the struct, and struct and name of the
    /// member.
    pub(crate) led_to: &'static [(&'static str, (&'static str, &'static str))],
}

/// Why a family says nothing.
pub(crate) const NOT_READ: Common = Common::NotReadOfThisRuntime;

/// Why nothing is read on the word of a layout that memory has contradicted.
pub(crate) const NOT_SHOWN_TO_FIT: Common = Common::LayoutDoubtful;

/// What is lost with a value that is not known.
#[derive(Debug)]
pub(crate) struct Cost {
    /// How the value's name begins: `struct.field`, `sizeof(struct)` or a global.
    pub(crate) of: &'static str,
    /// What is lost, as a clause.
    pub(crate) text: &'static str,
}

/// An exported variable in which a runtime describes itself.
pub(crate) struct Described {
    /// Its name.
    pub(crate) symbol: &'static str,
    /// A smaller variable of that name, in bytes, is something else.
    pub(crate) min_size: u64,
    /// Reads it: its bytes, their order, and what turns the word at an offset into an address of the file.
    pub(crate) read: ReadDescribed,
}

type ReadDescribed = fn(&[u8], ByteOrder, &dyn Fn(u64, u64) -> Option<u64>) -> Result<Facts, String>;

/// What layouts are made from.
#[derive(Debug, Clone, Copy, Default)]
pub struct LayoutsFrom<'a> {
    /// Kinds of evidence that are not used.
    pub ignore: &'a [Origin],
    /// Code is decoded also where the same build was before, and what it says is shipped or in the cache.
    pub anew: bool,
    /// Where is kept what was decoded, of builds of which it is not shipped. With [`LayoutsFrom::anew`] it is only compared.
    pub cache: Option<&'a decoded::Cache>,
}

/// What the cache is for.
#[derive(Clone, Copy, Default)]
enum CacheUse<'a> {
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
struct Asked<'a> {
    answers: Vec<(FactSource, Facts)>,
    reports: Vec<OriginReport>,
    /// Kinds of evidence that are not to be used.
    ignore: Vec<Origin>,
    /// Code is decoded even if the build is known.
    anew: bool,
    cache: CacheUse<'a>,
    /// What the code says is from the cache.
    is_cached: bool,
}

impl Asked<'_> {
    fn add(&mut self, source: FactSource, facts: Facts, note: Option<String>) {
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
    fn details(&mut self, lines: Vec<String>) {
        if let Some(report) = self.reports.last_mut() {
            report.details = lines;
        }
    }

    /// From the debug information of the file or its companion. The file itself is called by the name the target knows
    /// it by, not by the one it was opened under.
    fn dwarf(&mut self, file: &ElfFile, path: &str, of: &FamilyOrigins) {
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
    fn described(
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
    fn symbols_and_code(&mut self, file: &ElfFile, path: &str, of: &FamilyOrigins) {
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

    /// The same as if the profile that was chosen had been refused; `None` if none was.
    fn without_profile(&self) -> Option<Asked<'static>> {
        let is_profile = |source: &FactSource, facts: &Facts| source.origin == Origin::Profile && !facts.is_empty();
        let (profile, _) = self.answers.iter().find(|(source, facts)| is_profile(source, facts))?;
        let mut asked = Asked { answers: self.answers.clone(), reports: self.reports.clone(), ..Asked::default() };
        asked.answers.retain(|(source, _)| source.origin != Origin::Profile);
        for report in asked.reports.iter_mut().filter(|r| r.origin == Origin::Profile && *r.detail == *profile.detail) {
            report.values = 0;
            report.note = Some("not used: contradicted by what this process has in memory".to_owned());
        }
        Some(asked)
    }

    /// The profile for an image. Builds configured otherwise (without OMPT, say) export the same and have another
    /// layout. So for a build that is not listed, another source has to confirm at least one value. A caller that
    /// ignores the code has decided otherwise.
    fn select(&self, of: &FamilyOrigins, image: &impl ExportView) -> Result<Selection<'static>, Vec<Rejection>> {
        let chosen = profile::select(of.profiles, image, &self.all())?;
        if chosen.by_build_id || chosen.confirmed > 0 || self.ignore.contains(&Origin::Code) {
            return Ok(chosen);
        }
        let why = "fits by what the image exports, but no value is confirmed by its code".to_owned();
        Err(vec![Rejection { profile: chosen.profile.name.clone(), why, mismatches: Vec::new() }])
    }

    /// What is shipped for a program that has the runtime built in: see [`profile::common`]. Its code has to confirm
    /// some of it whatever else is not to be looked at, for there is no fingerprint that could.
    fn common(&self, of: &FamilyOrigins, file: &ElfFile) -> Result<Shipped, Vec<Rejection>> {
        let common = profile::common(of.profiles, &BuiltIn::of(file), &self.all())?;
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

/// What can be said of a runtime's layout from its file alone, without a process: see [`crate::analyse`].
#[derive(Debug)]
pub struct Analysis {
    /// Its family, by name.
    pub family: &'static str,
    /// What is wanted of it.
    pub schema: &'static Schema,
    /// What each origin knows, most trusted first; those that know nothing included.
    pub origins: Vec<(FactSource, Facts)>,
    /// The same as `doctor` reports it.
    pub reports: Vec<OriginReport>,
    /// The shipped profile that fits, or why each one does not.
    pub profile: Result<Selection<'static>, Vec<Rejection>>,
}

/// Asks the origins that need no process. The profile is selected as it would be for a process.
pub(crate) fn analyse(file: &ElfFile, of: &FamilyOrigins) -> Analysis {
    let mut asked = Asked { anew: true, ..Asked::default() };
    let path = file.path().display().to_string();
    asked.dwarf(file, &path, of);
    let bytes = |at, size| {
        let bytes = file.bytes_at(at, size).ok_or_else(|| "it has no bytes in the file".to_owned())?;
        Ok(bytes.to_vec())
    };
    // In the file the addresses are still to be relocated.
    asked.described(file, &path, of, &bytes, &|at, _| {
        file.relocations().get(&at).map(|r| r.symbol_value.wrapping_add(r.addend as u64))
    });
    asked.symbols_and_code(file, &path, of);
    let profile = asked.select(of, file);
    Analysis { family: of.family, schema: of.schema, origins: asked.answers, reports: asked.reports, profile }
}

/// What the shipped profiles give.
struct Shipped {
    source: FactSource,
    facts: Facts,
    /// How it came to be used.
    note: String,
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

/// Layout and description of one instance.
pub(crate) struct Resolved {
    pub(crate) layout: Layout,
    pub(crate) info: InstanceInfo,
    /// The same without the shipped profile, for a process in which the profile turns out not to fit.
    pub(crate) without_profile: Option<(Layout, InstanceInfo)>,
    /// What the code says is from the cache.
    pub(crate) is_cached: bool,
}

/// Asks every origin, merges the answers, and files who said what. A record of the cache that another origin contradicts is not
/// used.
pub(crate) fn resolve(
    target: &dyn Target,
    module: &Module,
    product: &'static str,
    of: &FamilyOrigins,
    layouts: LayoutsFrom<'_>,
) -> Resolved {
    let cache = match layouts.cache {
        // Who checks kinds of evidence against each other wants to see what the code says now.
        Some(_) if !layouts.ignore.is_empty() => CacheUse::None,
        Some(cache) if layouts.anew => CacheUse::Compare(cache),
        Some(cache) => CacheUse::Use(cache),
        None => CacheUse::None,
    };
    let (resolved, contradicted) = resolve_by(target, module, product, of, layouts, cache);
    match cache {
        CacheUse::Use(cache) if resolved.is_cached && contradicted => {
            resolve_by(target, module, product, of, layouts, CacheUse::Doubt(cache)).0
        }
        _ => resolved,
    }
}

/// The same with this use of the cache; and whether an origin contradicts another one.
fn resolve_by(
    target: &dyn Target,
    module: &Module,
    product: &'static str,
    of: &FamilyOrigins,
    layouts: LayoutsFrom<'_>,
    cache: CacheUse<'_>,
) -> (Resolved, bool) {
    let mut asked = Asked { ignore: layouts.ignore.to_vec(), anew: layouts.anew, cache, ..Asked::default() };
    let mut issues: Vec<Issue> = Vec::new();
    let mut contradicted = false;

    let file = module.file.as_deref().ok();
    if let Some(file) = file {
        asked.dwarf(file, &module.path, of);
        let (facts, faults) = table::read(target, module, of.schema);
        let note = faults.first().map(|f| format!("{} values could not be read: {f}", faults.len()));
        asked.add(FactSource::new(Origin::Table, module.path.as_str()), facts, note);
        let bytes = |at, size| target.read_vec(Addr(at).offset(module.bias), size).map_err(|fault| fault.to_string());
        asked.described(file, &module.path, of, &bytes, &|_, value| {
            (value != 0).then(|| value.wrapping_sub(module.bias))
        });
        asked.symbols_and_code(file, &module.path, of);
    } else if let Err(tried) = &module.file {
        let tried = if tried.is_empty() { "no path was tried".to_owned() } else { tried.join("; ") };
        issues.push(Issue::new("layout", Trouble::FileMissing { path: module.path.clone(), tried }));
    }

    let selected = match file {
        Some(file) if file.is_program() => asked.common(of, file),
        Some(file) => asked.select(of, file).map(Shipped::from),
        None => asked.select(of, &WithoutFile(module, target.arch())).map(Shipped::from),
    };
    match selected {
        Ok(Shipped { source, facts, note }) => asked.add(source, facts, Some(note)),
        Err(rejections) => {
            // A profile that would fit but for its values is worth a word to everybody.
            let differing = rejections.iter().find(|r| !r.mismatches.is_empty());
            contradicted = differing.is_some();
            let note = match differing {
                _ if rejections.is_empty() => "none is shipped for this family".to_owned(),
                Some(rejection) => rejection.to_string(),
                None => format!("none of the {} shipped layouts fits; -v says why", rejections.len()),
            };
            asked.add(FactSource::new(Origin::Profile, "shipped profiles"), Facts::default(), Some(note));
            let lines = rejections
                .iter()
                .flat_map(|r| std::iter::once(r.to_string()).chain(r.mismatches.iter().map(|m| format!("  {m}"))));
            asked.details(lines.collect());
        }
    }

    let needed_by = needed_by(target.modules(), target.process().exe.as_deref(), module);
    let without_profile =
        asked.without_profile().map(|asked| conclude(asked, issues.clone(), module, product, of, &needed_by));
    let is_cached = asked.is_cached;
    let (layout, info) = conclude(asked, issues, module, product, of, &needed_by);
    let is_of_code = |issue: &Issue| {
        let Reason::Trouble(Trouble::LayoutsDiffer { how }) = &issue.what else { return false };
        [&how.kept_from, &how.other_from].iter().any(|source| source.origin == Origin::Code)
    };
    contradicted |= info.issues.iter().any(is_of_code);
    (Resolved { layout, info, without_profile, is_cached }, contradicted)
}

/// Merges the answers.
fn conclude(
    asked: Asked<'_>,
    mut issues: Vec<Issue>,
    module: &Module,
    product: &'static str,
    of: &FamilyOrigins,
    needed_by: &Option<NeededBy>,
) -> (Layout, InstanceInfo) {
    let (layout, mismatches) = Layout::resolve(&asked.answers);
    issues.extend(mismatches.iter().map(|m| Issue::new("layout", Trouble::LayoutsDiffer { how: Box::new(m.clone()) })));
    let entries = layout
        .entries()
        .into_iter()
        .map(|(name, value, source)| LayoutEntry {
            name,
            value,
            origin: source.origin,
            detail: source.detail.to_string(),
        })
        .collect();
    let mut missing = missing(&layout, of, &asked.answers);
    if let Ok(file) = &module.file {
        drop_needless(&mut missing, of, file);
    }
    let count: usize = missing.iter().map(|lack| lack.names.len()).sum();
    if count > 0 {
        issues.push(Issue::new("layout", Trouble::LayoutIncomplete { count }));
    }
    let info = InstanceInfo {
        family: of.family,
        product,
        path: module.path.clone(),
        file: module.file.as_ref().ok().map(|file| file.path().display().to_string()),
        base: module.base(),
        reports_from: None,
        build_id: module.build_id.clone(),
        needed_by: needed_by.clone(),
        origins: asked.reports,
        layout: entries,
        missing,
        issues,
    };
    (layout, info)
}

/// Identities that hold in every process whatever the program does, if the layout is right: how often each did.
///
/// A single structure may be caught half made, or be what is left of one. An identity that holds nowhere speaks against
/// the layout.
#[derive(Debug, Default)]
pub(crate) struct SelfCheck {
    /// Each identity with how often it held and how often it failed. There is a handful of them.
    seen: Vec<(&'static str, usize, usize)>,
}

impl SelfCheck {
    /// Files that an identity, told in words for the case that it fails, did or did not hold once more.
    pub(crate) fn note(&mut self, identity: &'static str, holds: bool) {
        // The same text is the same constant, as a rule: comparing addresses is enough to find it.
        let is_it = |known: &&'static str| std::ptr::eq(*known, identity) || *known == identity;
        let at = self.seen.iter().position(|(known, ..)| is_it(known)).unwrap_or_else(|| {
            self.seen.push((identity, 0, 0));
            self.seen.len() - 1
        });
        let (_, held, failed) = &mut self.seen[at];
        *(if holds { held } else { failed }) += 1;
    }

    /// Files the identities of one team.
    ///
    /// # Errors
    /// The first that does not hold: then nothing of the team may be shown.
    pub(crate) fn judge(&mut self, identities: &[(&'static str, bool)]) -> Result<(), Reason> {
        for (failing, holds) in identities {
            self.note(failing, *holds);
        }
        match identities.iter().find(|(_, holds)| !holds) {
            Some((failing, _)) => Err(Reason::from(Common::SelfCheckFailed { failing })),
            None => Ok(()),
        }
    }

    /// The first identity that failed wherever it was looked for.
    pub(crate) fn failure(&self) -> Option<FailedCheck> {
        let (identity, _, count) = self.seen.iter().find(|(_, held, failed)| *held == 0 && *failed > 0)?;
        Some(FailedCheck { identity, count: *count })
    }
}

/// The snapshot to show: `first`, unless what it met in memory speaks against its profile; then `plain`, which does
/// without.
pub(crate) fn checked(first: (RawSnapshot, SelfCheck), plain: Option<impl FnOnce() -> RawSnapshot>) -> RawSnapshot {
    let (mut snapshot, check) = first;
    let Some(broken) = check.failure() else { return snapshot };
    let Some(plain) = plain else {
        // Nobody guessed this layout, so it is the process that is odd, or was caught in the middle of something.
        snapshot.issues.insert(0, Issue::new("memory", Trouble::MemoryContradicts { broken }));
        return snapshot;
    };
    let mut plain = plain();
    let profile = snapshot.instance.origins.iter().find(|o| o.origin == Origin::Profile && o.values > 0);
    let name = profile.map_or("profile", |p| &p.detail);
    plain.issues.insert(0, Issue::new("layout", Trouble::LayoutRefused { name: name.to_owned(), broken }));
    plain
}

/// What no origin gave, by what it costs. Members that this release does not have are not among it.
fn missing(layout: &Layout, of: &FamilyOrigins, answers: &[(FactSource, Facts)]) -> Vec<Lack> {
    // Debug information, and the profiles made from it, have either a struct with all its members or none of it.
    let whole = |s: &str| {
        let knows = |(source, facts): &(FactSource, Facts)| {
            matches!(source.origin, Origin::Dwarf | Origin::Profile) && facts.sizes.contains_key(s)
        };
        answers.iter().any(knows)
    };
    let absent = |s: &str| {
        let leads = |(to, (from, member)): &(&str, (&str, &str))| {
            *to == s && whole(from) && layout.field(from, member).is_err()
        };
        of.led_to.iter().any(leads)
    };
    let fields = of.schema.structs.iter().filter(|s| !whole(s.name) && !absent(s.name));
    let fields = fields.flat_map(|s| s.fields.iter().map(move |f| (s.name, f.name)));
    let fields = fields.filter(|(s, f)| layout.field(s, f).is_err()).map(|(s, f)| format!("{s}.{f}"));
    let globals = of.schema.globals.iter().filter(|g| layout.global(g.name).is_err()).map(|g| g.name.to_owned());
    // Most structs are read no further than their last known field; of the others it is said what their size is for.
    let sizes = of.schema.structs.iter().filter(|s| layout.size_of(s.name).is_err());
    let sizes = sizes.map(|s| format!("sizeof({})", s.name)).filter(|name| of.costs.iter().any(|c| c.of == name));
    let all: Vec<String> = fields.chain(globals).chain(sizes).collect();
    let known = |name: &&str| match name.split_once('.') {
        Some((of, field)) => layout.field(of, field).is_ok(),
        None => layout.global(name).is_ok(),
    };
    let needless: Vec<&str> = of.alternatives.iter().filter(|pair| pair.iter().any(known)).flatten().copied().collect();
    let mut missing: Vec<Lack> = Vec::new();
    for name in all.iter().filter(|name| !needless.contains(&name.as_str())) {
        let cost = cost_of(name, of.costs);
        match missing.iter_mut().find(|lack| lack.cost == cost) {
            Some(lack) => lack.names.push(name.clone()),
            None => missing.push(Lack { cost, names: vec![name.clone()] }),
        }
    }
    missing
}

/// Takes away what this release, or a program that has the runtime built in, has no use for.
fn drop_needless(missing: &mut Vec<Lack>, of: &FamilyOrigins, file: &ElfFile) {
    let needless: Vec<&str> =
        of.only_with.iter().filter(|(_, with)| file.symbol(with).is_none()).map(|(value, _)| *value).collect();
    for lack in missing.iter_mut() {
        lack.names.retain(|name| !needless.contains(&name.as_str()));
    }
    missing.retain(|lack| !lack.names.is_empty());
}

/// What the missing value costs.
fn cost_of(name: &str, costs: &[Cost]) -> &'static str {
    let fitting = costs.iter().filter(|cost| name.starts_with(cost.of));
    fitting.max_by_key(|cost| cost.of.len()).map_or("what is read from it is unknown", |cost| cost.text)
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

/// A module whose file is not at hand: only its build-id can speak for a profile.
struct WithoutFile<'a>(&'a Module, Arch);

impl ExportView for WithoutFile<'_> {
    fn build_id(&self) -> Option<String> {
        self.0.build_id.as_ref().map(|id| id.to_string())
    }

    fn machine(&self) -> &str {
        self.1.machine.name()
    }

    fn export_size(&self, _: &str) -> Option<u64> {
        None
    }

    fn exported_names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn version_nodes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Parses the profiles compiled into this program. They are tested to parse; if one did not, none would be used.
pub(crate) fn parse_profiles(texts: &[&str], vocabulary: &str) -> Profiles {
    Profiles::parse(texts, vocabulary).unwrap_or_default()
}

/// True if the module exports `name`, or is the executable and has it built in.
///
/// Only the executable's whole symbol table is searched: it is needed for names anyway, and other modules either export
/// a runtime or have none.
pub(crate) fn defines(target: &dyn Target, module: &Module, name: &str) -> bool {
    let executable = target.process().exe.as_ref() == Some(&module.path);
    module.exports(name) || (executable && module.symbol(name).is_some())
}

/// True if the module's file is not at hand, but its build-id is that of a shipped layout. These are parsed when they are needed.
pub(crate) fn known_by_build_id(module: &Module, profiles: impl FnOnce() -> &'static Profiles) -> bool {
    module.file.is_err() && module.build_id.as_ref().is_some_and(|id| profiles().knows(&id.to_string()))
}

/// A global of a module: its address in the target and who gave it.
pub(crate) fn global(layout: &Layout, module: &Module, name: &str) -> Option<(Addr, Origin)> {
    let addr = layout.global(name).ok()?;
    Some((Addr(addr).offset(module.bias), layout.global_source(name)?.origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_cost_and_every_cost_its_value() {
        for of in crate::FAMILIES.iter().map(|family| family.origins()) {
            let nothing = Layout::default();
            let mut names = Vec::new();
            for lack in missing(&nothing, &of, &[]) {
                assert_ne!(lack.cost, cost_of("", &[]), "{:?}", lack.names);
                names.extend(lack.names);
            }
            for cost in of.costs {
                assert!(names.iter().any(|name| name.starts_with(cost.of)), "no value is called {}", cost.of);
            }
        }
    }
}
