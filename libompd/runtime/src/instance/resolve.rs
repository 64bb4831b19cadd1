//! The layout of a runtime, made of what all origins say.

use std::cell::OnceCell;

use ompd_layout::decoded;
use ompd_layout::profile::{ExportView, Rejection, Selection};
use ompd_layout::{FactSource, Facts, Layout, Origin, Schema, table};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Arch, Module, NeededBy, Target, TargetExt, needed_by};

use super::asked::{Asked, CacheUse, Shipped};
use super::costs::{drop_needless, missing};
use super::origins::FamilyOrigins;
use crate::model::{InstanceInfo, Issue, LayoutEntry, OriginReport, Reason, Trouble};
use crate::noted::note;

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

/// What a layout was made of. If memory contradicts it, another one is made.
#[derive(Debug, Default)]
pub(crate) struct Basis {
    /// What the code says is from the cache.
    is_cached: bool,
    /// All answers, most trusted first, if a shipped profile is among them.
    answers: Vec<(FactSource, Facts)>,
    /// What there was to say before they were merged.
    issues: Vec<Issue>,
}

impl Basis {
    /// For a layout with the code decoded, if what the code says was in the cache.
    fn decoded_anew(&self) -> Option<LayoutsFrom<'static>> {
        self.is_cached.then(|| LayoutsFrom { anew: true, ..LayoutsFrom::default() })
    }

    /// The layout without the shipped profile, if one was used. `info` is that of the layout with it.
    fn without_profile(
        &self,
        info: &InstanceInfo,
        module: &Module,
        of: &FamilyOrigins,
    ) -> Option<(Layout, InstanceInfo)> {
        let (profile, _) = self.answers.iter().find(|(source, facts)| is_profile(source, facts))?;
        let others = self.answers.iter().filter(|(source, _)| source.origin != Origin::Profile);
        let mut reports = info.origins.clone();
        for report in reports.iter_mut().filter(|r| r.origin == Origin::Profile && *r.detail == *profile.detail) {
            report.values = 0;
            report.note = Some("not used: contradicted by what this process has in memory".to_owned());
        }
        let others: Vec<_> = others.cloned().collect();
        Some(conclude(&others, reports, self.issues.clone(), module, info.product, of, info.needed_by.clone()))
    }
}

/// The same runtime with another layout, made when memory contradicts the one it has, and once.
#[derive(Debug)]
pub(crate) struct Others<R> {
    basis: Basis,
    decoded_anew: OnceCell<Option<Box<R>>>,
    without_profile: OnceCell<Option<Box<R>>>,
}

impl<R> Others<R> {
    pub(crate) fn of(basis: Basis) -> Others<R> {
        Others { basis, decoded_anew: OnceCell::new(), without_profile: OnceCell::new() }
    }

    /// With the code decoded, if what the code says was in the cache. `base` is where the runtime is loaded.
    pub(crate) fn decoded_anew(
        &self,
        target: &dyn Target,
        base: Addr,
        make: impl FnOnce(&Module, LayoutsFrom<'_>) -> R,
    ) -> Option<&R> {
        let make = || Some(Box::new(make(loaded_at(target, base)?, self.basis.decoded_anew()?)));
        self.decoded_anew.get_or_init(make).as_deref()
    }

    /// Without the shipped profile, if one was used. `info` is that of the layout with it.
    pub(crate) fn without_profile(
        &self,
        target: &dyn Target,
        info: &InstanceInfo,
        of: &FamilyOrigins,
        make: impl FnOnce(&Module, Layout, InstanceInfo) -> R,
    ) -> Option<&R> {
        let make = || {
            let module = loaded_at(target, info.base)?;
            let (layout, info) = self.basis.without_profile(info, module, of)?;
            Some(Box::new(make(module, layout, info)))
        };
        self.without_profile.get_or_init(make).as_deref()
    }
}

fn loaded_at(target: &dyn Target, base: Addr) -> Option<&Module> {
    target.modules().iter().find(|module| module.base() == base)
}

fn is_profile(source: &FactSource, facts: &Facts) -> bool {
    source.origin == Origin::Profile && !facts.is_empty()
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

/// Layout and description of one instance.
pub(crate) struct Resolved {
    pub(crate) layout: Layout,
    pub(crate) info: InstanceInfo,
    pub(crate) basis: Basis,
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
        CacheUse::Use(cache) if resolved.basis.is_cached && contradicted => {
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
    let Asked { answers, reports, is_cached, .. } = asked;
    let (layout, info) = conclude(&answers, reports, issues.clone(), module, product, of, needed_by);
    let has_profile = answers.iter().any(|(source, facts)| is_profile(source, facts));
    let basis = Basis { is_cached, answers: if has_profile { answers } else { Vec::new() }, issues };
    let is_of_code = |issue: &Issue| {
        let Reason::Trouble(Trouble::LayoutsDiffer { how }) = &issue.what else { return false };
        [&how.kept_from, &how.other_from].iter().any(|source| source.origin == Origin::Code)
    };
    contradicted |= info.issues.iter().any(is_of_code);
    (Resolved { layout, info, basis }, contradicted)
}

/// Merges the answers.
fn conclude(
    answers: &[(FactSource, Facts)],
    reports: Vec<OriginReport>,
    mut issues: Vec<Issue>,
    module: &Module,
    product: &'static str,
    of: &FamilyOrigins,
    needed_by: Option<NeededBy>,
) -> (Layout, InstanceInfo) {
    let (layout, mismatches) = Layout::resolve(answers);
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
    let mut missing = missing(&layout, of, answers);
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
        needed_by,
        origins: reports,
        layout: entries,
        missing,
        issues,
    };
    (layout, info)
}

/// A global of a module: its address in the target and who gave it.
pub(crate) fn global(layout: &Layout, module: &Module, name: &'static str) -> Option<(Addr, Origin)> {
    let addr = Addr(layout.global(name).ok()?).offset(module.bias);
    note(addr, 0, 0, name);
    Some((addr, layout.global_source(name)?.origin))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What debug information and a profile say of a runtime.
    fn basis(profile: Facts) -> (Basis, InstanceInfo) {
        let one = |name: &str| Facts { sizes: [(name.to_owned(), 8)].into(), ..Facts::default() };
        let answers = vec![
            (FactSource::new(Origin::Dwarf, "a file"), one("known_to_all")),
            (FactSource::new(Origin::Profile, "a class"), profile),
        ];
        let report = |(source, facts): &(FactSource, Facts)| OriginReport {
            origin: source.origin,
            detail: source.detail.to_string(),
            values: facts.sizes.len(),
            note: None,
            details: Vec::new(),
        };
        let origins = answers.iter().map(report).collect();
        let info = InstanceInfo { origins, ..crate::samples::Process::new().snapshot.instance };
        (Basis { is_cached: false, answers, issues: Vec::new() }, info)
    }

    #[test]
    fn without_its_profile_a_layout_has_what_the_others_say() {
        let module = crate::handmade::with_symbols(&[], false);
        let of = crate::FAMILIES[0].origins();
        let profile = Facts { sizes: [("known_to_one".to_owned(), 16)].into(), ..Facts::default() };
        let (basis, info) = basis(profile);
        let (layout, info) = basis.without_profile(&info, &module, &of).expect("a profile is among the answers");
        assert!(layout.size_of("known_to_all").is_ok() && layout.size_of("known_to_one").is_err());
        let told: Vec<_> = info.origins.iter().map(|report| (report.values, report.note.as_deref())).collect();
        assert_eq!(told, [(1, None), (0, Some("not used: contradicted by what this process has in memory"))]);
    }

    /// As with `--ignore-origin profile`.
    #[test]
    fn where_no_profile_was_used_there_is_no_other_layout() {
        let module = crate::handmade::with_symbols(&[], false);
        let (basis, info) = basis(Facts::default());
        assert!(basis.without_profile(&info, &module, &crate::FAMILIES[0].origins()).is_none());
    }
}
