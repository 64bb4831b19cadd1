//! `cargo xtask layout extract`: one more build in the profiles.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use ompd_layout::profile::{Build, Comparison, ExportView, Fingerprint, Profile};
use ompd_layout::{FactSource, Facts, Origin, dwarf};
use ompd_process::elf::ElfFile;

use super::store::Store;
use super::{Family, count, open};

/// Arguments of `layout extract`.
#[derive(Args)]
pub struct Arguments {
    /// The runtime, an ELF file with DWARF (or with a separate debug file that is found).
    elf: PathBuf,
    /// Which build this is, in words. A build of the same words is replaced.
    #[arg(long)]
    made_from: String,
    /// A file to take the layout from instead: a debug file, or a library that only
    /// includes the same headers.
    #[arg(long)]
    dwarf: Option<PathBuf>,
    /// A stripped build of the same source whose build-id is to be listed. It has to have the same fingerprint, and its
    /// code must not contradict the layout.
    #[arg(long)]
    fits: Vec<PathBuf>,
    /// If the layout is new: the file's name without `.json`.
    #[arg(long)]
    class: Option<String>,
    /// What users see as the layout's name. Needed if it is new; else renames the class the build goes to.
    #[arg(long)]
    name: Option<String>,
    /// Exported function that came with this release and tells it from earlier ones; by default one is picked. May be
    /// repeated, for a release in between that has only some of them.
    #[arg(long)]
    marker: Vec<String>,
    /// Let only listed build-ids count, because other builds with the same exports have another layout.
    #[arg(long, conflicts_with = "marker")]
    only_listed: bool,
    /// Folder of the family's profiles; by default the one in this repository.
    #[arg(long)]
    into: Option<PathBuf>,
}

/// Runs the task.
pub fn run(arguments: &Arguments) -> Result<()> {
    let file = open(&arguments.elf)?;
    let family = ompd_runtime::analyse(&file).with_context(|| format!("{} is no runtime", arguments.elf.display()))?;
    let family = &Family::of(family.family);
    let mut facts = match &arguments.dwarf {
        Some(path) => dwarf::extract_elf(&open(path)?, family.about.schema)?,
        None => dwarf::extract_elf(&file, family.about.schema)?,
    };
    ensure!(count(&facts) > 0, "none of the {} structs is in the debug information", family.about.schema.family);
    // Addresses move with every build.
    facts.globals.clear();
    for name in family.missing(&[&facts]) {
        println!("not in the debug information: {name}");
    }

    let mut store = Store::open(arguments.into.clone().unwrap_or_else(|| family.folder()), family)?;
    let before = forget(&mut store, &arguments.made_from);
    let new = if arguments.only_listed { Vec::new() } else { new_markers(&store, &file, &arguments.marker)? };
    for marker in &new {
        // No known release has the name, or it would be in the vocabulary.
        for build in store.classes.values_mut().flat_map(|class| &mut class.builds) {
            insert(&mut build.fingerprint.no_exports, marker);
        }
        println!("new marker: {marker}");
    }
    let fingerprint = fingerprint(family, &store, &file, new);
    add(arguments, family, store, &file, facts, fingerprint, before)
}

/// Files the build under the class that has its layout, or a new one.
fn add(
    arguments: &Arguments,
    family: &Family,
    mut store: Store,
    file: &ElfFile,
    facts: Facts,
    fingerprint: Fingerprint,
    before: Option<Before>,
) -> Result<()> {
    store.vocabulary.learn(file);
    let mut build = Build { made_from: arguments.made_from.clone(), build_ids: Vec::new(), fingerprint };
    let fingerprint = build.fingerprint.clone();
    if arguments.only_listed {
        build.fingerprint = Fingerprint::default();
    }
    // The layout has to fit the file itself too: it may come from elsewhere.
    let own = fits(file, &facts, &fingerprint)?;
    // A file without DWARF is what users have; one with it was built for this.
    if let Some(id) = own.filter(|_| !file.has_dwarf()) {
        insert(&mut build.build_ids, &id);
    }
    for path in &arguments.fits {
        let other = open(path)?;
        let id = fits(&other, &facts, &fingerprint).with_context(|| path.display().to_string())?;
        if let Some(id) = id {
            insert(&mut build.build_ids, &id);
        }
        store.vocabulary.learn(&other);
    }

    ensure!(!arguments.only_listed || !build.build_ids.is_empty(), "there is no build-id to list");
    let machine = file.machine().to_owned();
    let mut archs: Vec<String> = family.about.archs.iter().map(|arch| (*arch).to_owned()).collect();
    insert(&mut archs, &machine);
    let same = store.classes.iter().find(|(_, class)| class.facts == facts && class.archs.contains(&machine));
    let stem = match same {
        Some((stem, _)) => stem.clone(),
        None => {
            let alone = before.as_ref().filter(|b| !store.classes.contains_key(&b.stem));
            let stem = arguments.class.clone().or(alone.map(|b| b.stem.clone()));
            let name = arguments.name.clone().or(alone.map(|b| b.name.clone()));
            let (Some(stem), Some(name)) = (stem, name) else { bail!("the layout is new: say --class and --name") };
            ensure!(!store.classes.contains_key(&stem), "{stem} exists and has another layout");
            let family = family.about.schema.family.to_owned();
            store.classes.insert(stem.clone(), Profile { name, family, archs, builds: Vec::new(), facts });
            stem
        }
    };
    for (other, class) in
        store.classes.iter().filter(|(other, class)| **other != stem && class.archs.contains(&machine))
    {
        if let Some(rival) = class.builds.iter().find(|rival| !rival.fingerprint.excludes(&build.fingerprint)) {
            let fix = "name one that does with --marker, or say --only-listed";
            bail!("exports do not tell it from {} in {other}: {fix}", rival.made_from);
        }
    }
    let class = store.classes.get_mut(&stem).context("the class was found or made above")?;
    if let Some(name) = &arguments.name {
        class.name = name.clone();
    }
    let place = before.filter(|b| b.stem == stem).map_or(usize::MAX, |b| b.place);
    class.builds.insert(place.min(class.builds.len()), build);
    println!("class {stem} ({}), {} values", class.name, count(&class.facts));
    for done in store.save()? {
        println!("{done}");
    }
    Ok(())
}

/// Where a build was before it was replaced.
struct Before {
    stem: String,
    name: String,
    place: usize,
}

/// Takes a build out, and its class if it was the only one there.
fn forget(store: &mut Store, made_from: &str) -> Option<Before> {
    let mut before = None;
    for (stem, class) in &mut store.classes {
        if let Some(place) = class.builds.iter().position(|build| build.made_from == made_from) {
            class.builds.remove(place);
            before = Some(Before { stem: stem.clone(), name: class.name.clone(), place });
        }
    }
    store.classes.retain(|_, class| !class.builds.is_empty());
    before
}

/// The exports that set this release apart from all known ones, if it has any. Those asked for may also be among the
/// ones already in use.
fn new_markers(store: &Store, file: &ElfFile, wanted: &[String]) -> Result<Vec<String>> {
    let new = store.vocabulary.unknown_names(file);
    let known = store.markers();
    for name in wanted.iter().filter(|name| !known.contains(*name)) {
        ensure!(file.exports(name), "{name} is not exported");
        ensure!(new.contains(name), "{name} is exported by a known release already");
    }
    if !wanted.is_empty() {
        return Ok(wanted.iter().filter(|name| !known.contains(*name)).cloned().collect());
    }
    // Names of the Fortran interface end with an underscore, and not every build has them. The best are entry points of
    // the compiler, which no build does without.
    let solid = || new.iter().filter(|name| !name.ends_with('_'));
    let best = ["GOMP_", "__kmpc_", "omp_", ""].iter().find_map(|start| solid().find(|name| name.starts_with(start)));
    Ok(best.cloned().into_iter().collect())
}

fn fingerprint(family: &Family, store: &Store, file: &ElfFile, new: Vec<String>) -> Fingerprint {
    let mut print = Fingerprint::default();
    let mut markers = store.markers();
    markers.extend(new);
    (print.exports, print.no_exports) = markers.into_iter().partition(|name| file.exports(name));
    for (name, bytes) in family.about.large_exports {
        let large = file.export_size(name).is_some_and(|size| size >= *bytes);
        let sizes: &mut BTreeMap<String, u64> =
            if large { &mut print.export_sizes } else { &mut print.no_export_sizes };
        sizes.insert((*name).to_owned(), *bytes);
    }
    print.version_nodes = ExportView::version_nodes(file);
    print.version_nodes.sort();
    print
}

/// The build-id of a file that is to be listed.
fn fits(other: &ElfFile, facts: &Facts, fingerprint: &Fingerprint) -> Result<Option<String>> {
    if let Err(why) = fingerprint.matches(other) {
        bail!("is not of the same source: it {why}");
    }
    let layout = FactSource::new(Origin::Profile, "the layout");
    for (source, known) in ompd_runtime::analyse(other).context("is no runtime")?.origins {
        if let Some(first) = Comparison::of((&source, &known), (&layout, facts)).mismatches.first() {
            bail!("is not of the same source: {first}");
        }
    }
    Ok(ExportView::build_id(other))
}

/// Keeps a list sorted and free of repetitions.
fn insert(list: &mut Vec<String>, item: &str) {
    if let Err(place) = list.binary_search_by(|known| known.as_str().cmp(item)) {
        list.insert(place, item.to_owned());
    }
}
