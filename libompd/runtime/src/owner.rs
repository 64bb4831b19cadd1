//! Who owns an address: the runtime or something else.
//!
//! A library has its module to itself. A program that has the runtime built in has everything in one module, and only
//! its symbols show what is the runtime's. A name that is the runtime's decides. For a local symbol the other local
//! symbols of its source file decide. Where neither decides, the owner is reported as unclear.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ompd_layout::Facts;
use ompd_layout::profile::{ExportView, ShippedProfiles, Vocabulary};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Module, Target, TargetExt};

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeOwner {
    /// The runtime's code or data.
    Runtime,
    /// Not the runtime's; or a part of it that has a name like anybody's, and where it never waits, nor for what lies
    /// there.
    Other,
    /// No symbol decides it.
    Unclear,
}

/// How a family calls its functions and variables.
#[derive(Debug)]
pub(crate) struct OwnNames {
    /// How its internal names begin: nobody else has such.
    pub(crate) internal: &'static [&'static str],
    /// How names begin that it has, and others may have as well.
    pub(crate) shared: &'static [&'static str],
    /// How names of the program begin that look like internal ones.
    pub(crate) not: &'static [&'static str],
    /// Local functions it waits in and local variables it waits for, whose names could be anybody's.
    pub(crate) plain: &'static [&'static str],
    /// Structs it has whose names could be anybody's.
    pub(crate) structs: &'static [&'static str],
    /// Its source files with plain names, without extension.
    pub(crate) files: &'static [&'static str],
}

impl OwnNames {
    pub(crate) fn is_internal(&self, name: &str) -> bool {
        let begins = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
        begins(self.internal) && !begins(self.not)
    }

    /// Takes out what the debug information of a program tells of things that may be the program's own.
    pub(crate) fn only_own(&self, facts: &mut Facts) {
        facts.sizes.retain(|name, _| !self.structs.contains(&name.as_str()));
        facts.fields.retain(|name, _| !self.structs.contains(&name.as_str()));
        facts.globals.retain(|name, _| self.is_internal(name));
    }

    fn is_own_file(&self, file: &str) -> bool {
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        self.files.contains(&stem)
    }

    /// Whose the symbol `name` is, which lies at `svma` of `file`.
    fn owner(&self, public: &Vocabulary, file: &ElfFile, name: &str, svma: u64) -> CodeOwner {
        // What the compiler made of a function keeps its name: `f.part.0`, `f.cold`, `f._omp_fn.1`.
        let name = match name.split_once('.') {
            Some((_, rest)) if rest.contains("_omp_fn") => return CodeOwner::Other,
            Some((name, _)) => name,
            None => name,
        };
        if self.is_internal(name) {
            return CodeOwner::Runtime;
        }
        if let Some(source) = file.source_of(svma) {
            let may_be_own = source.name.is_none_or(|file| self.is_own_file(file));
            return match source.locals.iter().any(|local| self.is_internal(local)) {
                true => CodeOwner::Runtime,
                false if self.plain.contains(&name) && may_be_own => CodeOwner::Unclear,
                false => CodeOwner::Other,
            };
        }
        match public.is_public(name) {
            true if public.names.contains(name) => CodeOwner::Runtime,
            // A release that is not known, or a function of the program with such a name.
            true => CodeOwner::Unclear,
            false if self.shared.iter().any(|prefix| name.starts_with(prefix)) => CodeOwner::Unclear,
            false => CodeOwner::Other,
        }
    }
}

/// What of a process is the runtime's.
#[derive(Debug)]
pub(crate) struct OwnCode {
    /// Where its module begins.
    base: Addr,
    /// Set if the module is a program.
    built_in: Option<Program>,
}

/// A program with a runtime built in.
#[derive(Debug)]
struct Program {
    file: Arc<ElfFile>,
    bias: u64,
    names: &'static OwnNames,
    public: &'static ShippedProfiles,
    /// By the beginning of the symbol: a thousand threads are in a handful of functions, and the process waits.
    known: RefCell<HashMap<Addr, CodeOwner>>,
}

impl OwnCode {
    /// By the names of the family, and those it exports.
    pub(crate) fn of(module: &Module, names: &'static OwnNames, public: &'static ShippedProfiles) -> OwnCode {
        let program = module.file.as_ref().ok().filter(|file| file.is_program());
        let built_in = program.map(|file| Program {
            file: Arc::clone(file),
            bias: module.bias,
            names,
            public,
            known: RefCell::default(),
        });
        OwnCode { base: module.base(), built_in }
    }

    pub(crate) fn owner(&self, target: &dyn Target, addr: Addr) -> CodeOwner {
        let here = || is_in(target, self.base, addr);
        let Some(program) = &self.built_in else {
            return if here() { CodeOwner::Runtime } else { CodeOwner::Other };
        };
        let at = addr.back(program.bias);
        match program.file.symbol_at(at) {
            Some((symbol, _)) => {
                let judge = || program.names.owner(program.public.vocabulary(), &program.file, &symbol.name, at.0);
                *program.known.borrow_mut().entry(symbol.addr).or_insert_with(judge)
            }
            None if here() => CodeOwner::Unclear,
            None => CodeOwner::Other,
        }
    }
}

/// True if `addr` lies in the module that starts at `base`.
pub(crate) fn is_in(target: &dyn Target, base: Addr, addr: Addr) -> bool {
    target.module_at(addr).is_some_and(|m| m.base() == base)
}

/// The public names of a runtime that is built into a program: all its global symbols count, exported or not.
pub(crate) struct BuiltIn<'f> {
    file: &'f ElfFile,
    names: HashSet<&'f str>,
}

impl<'f> BuiltIn<'f> {
    pub(crate) fn of(file: &'f ElfFile) -> BuiltIn<'f> {
        BuiltIn { file, names: file.global_names().collect() }
    }
}

impl ExportView for BuiltIn<'_> {
    fn build_id(&self) -> Option<String> {
        None
    }

    fn machine(&self) -> &str {
        ExportView::machine(self.file)
    }

    fn export_size(&self, name: &str) -> Option<u64> {
        self.names.get(name)?;
        self.file.symbol(name).map(|symbol| symbol.size)
    }

    fn exported_names(&self) -> Vec<&str> {
        self.names.iter().copied().collect()
    }

    fn version_nodes(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(all(test, feature = "gomp"))]
mod tests {
    use std::io::Write as _;
    use std::ops::Range;

    use test_programs::{Opt, Skip, Toolchain, build};

    use super::*;

    /// The sections of code and data the linker says it took out of `libgomp.a`.
    fn from_archive(map: &str) -> Vec<Range<u64>> {
        let number = |word: Option<&str>| word.and_then(|w| u64::from_str_radix(w.strip_prefix("0x")?, 16).ok());
        let section = |line: &str| {
            // A long section name has the rest on the next line.
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with('.'));
            let (at, size) = (number(words.next())?, number(words.next())?);
            let of_libgomp = words.next()?.contains("/libgomp.a(");
            (of_libgomp && size > 0 && at > 0).then_some(at..at.checked_add(size)?)
        };
        map.lines().filter_map(section).collect()
    }

    /// What the linker took from libgomp is found to be libgomp's wherever a thread can sleep, and nothing else is.
    #[test]
    fn the_symbols_of_a_program_tell_what_is_libgomps() {
        for program in ["tasks", "lock"] {
            let folder = tempfile::tempdir().expect("a folder");
            let map = folder.path().join("map");
            let flags = ["-static", &format!("-Wl,-Map={}", map.display())];
            let built = match build(program, Toolchain::Gcc, Opt::O2, &flags) {
                Ok(built) => built,
                Err(why) => return Skip::because(format!("no static programs here: {why}")).show(),
            };
            let map = std::fs::read_to_string(map).expect("the linker writes its map");
            let file = ElfFile::open(&built.path).expect("an ELF file");
            // The map's name is part of the program's, so nobody will ask for it again. What is open stays readable.
            std::fs::remove_file(&built.path).expect("it can be removed");
            let archive = from_archive(&map);
            let family = crate::FAMILIES.iter().find(|family| family.about().name == "gomp");
            let origins = family.expect("the family is built in").origins();
            let (names, public) = (origins.names, origins.profiles);
            let (mut own, mut sleeping, mut others, mut plain) = (0, 0, 0, 0);
            for symbol in file.symbols_with_prefix("").filter(|symbol| !symbol.tls && symbol.size > 0) {
                let at = symbol.addr.0;
                let Some((shown, _)) = file.symbol_at(symbol.addr) else { panic!("{symbol:?} covers itself") };
                let owner = names.owner(public.vocabulary(), &file, &shown.name, at);
                let truth = archive.iter().any(|section| section.contains(&at));
                let code = file.executable_ranges().iter().any(|range| range.contains(&at));
                let bytes = file.bytes_at(at, symbol.size).filter(|_| code).unwrap_or_default();
                let sleeps = bytes.windows(2).any(|pair| pair == [0x0f, 0x05]);
                match (truth, owner) {
                    (true, CodeOwner::Runtime) => (own, sleeping) = (own + 1, sleeping + usize::from(sleeps)),
                    (true, _) if sleeps => panic!("{program}: {} makes system calls and is {owner:?}", symbol.name),
                    (true, _) => plain += 1,
                    (false, CodeOwner::Runtime) => panic!("{program}: {} is not libgomp's", symbol.name),
                    (false, _) => others += 1,
                }
            }
            let line = format!(
                "{program}: {own} of libgomp's found, {sleeping} with system calls; {plain} have names like anybody's, {others} are not its"
            );
            let _ = writeln!(std::io::stderr(), "{line}");
            assert!(own > 4 * plain && sleeping >= 8 && others > 500, "{line}");
        }
    }
}
