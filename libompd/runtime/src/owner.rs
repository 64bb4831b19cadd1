//! Whose an address is: the runtime's, or somebody else's.
//!
//! A library has its module to itself. A program that has the runtime built in has everything in one module, and only its
//! symbols tell the pieces apart: a name that is the runtime's, or the company a local symbol is in. Where neither
//! decides, nobody knows, and so it is said.

use std::sync::Arc;

use ompd_layout::profile::{ExportView, Vocabulary};
use ompd_target::elf::ElfFile;
use ompd_target::{Addr, Module, Target};

use crate::instance::{self, FamilyOrigins};

/// Whose an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The runtime's code or data.
    Runtime,
    /// Not the runtime's; or a part of it that has a name like anybody's, and where it never waits, nor for what lies there.
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
    /// Its source files with such, without extension.
    pub(crate) files: &'static [&'static str],
}

impl OwnNames {
    pub(crate) fn is_internal(&self, name: &str) -> bool {
        let begins = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
        begins(self.internal) && !begins(self.not)
    }

    fn is_own_file(&self, file: &str) -> bool {
        let name = file.rsplit('/').next().unwrap_or(file);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        self.files.contains(&stem)
    }

    /// Whose the symbol `name` is, which lies at `svma` of `file`.
    fn owner(&self, public: &Vocabulary, file: &ElfFile, name: &str, svma: u64) -> Owner {
        // What the compiler made of a function keeps its name: `f.part.0`, `f.cold`, `f._omp_fn.1`.
        let name = match name.split_once('.') {
            Some((_, rest)) if rest.contains("_omp_fn") => return Owner::Other,
            Some((name, _)) => name,
            None => name,
        };
        if self.is_internal(name) {
            return Owner::Runtime;
        }
        if let Some(source) = file.source_of(svma) {
            let may_be_own = source.name.is_none_or(|file| self.is_own_file(file));
            return match source.locals.iter().any(|local| self.is_internal(local)) {
                true => Owner::Runtime,
                false if self.plain.contains(&name) && may_be_own => Owner::Unclear,
                false => Owner::Other,
            };
        }
        match public.is_public(name) {
            true if public.names.contains(name) => Owner::Runtime,
            // A release that is not known, or a function of the program with such a name.
            true => Owner::Unclear,
            false if self.shared.iter().any(|prefix| name.starts_with(prefix)) => Owner::Unclear,
            false => Owner::Other,
        }
    }
}

/// What of a process is the runtime's.
#[derive(Debug)]
pub(crate) struct Territory {
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
    public: &'static Vocabulary,
}

impl Territory {
    pub(crate) fn of(module: &Module, origins: &FamilyOrigins) -> Territory {
        let program = module.file.as_ref().ok().filter(|file| file.is_program());
        let built_in = program.map(|file| Program {
            file: Arc::clone(file),
            bias: module.bias,
            names: origins.names,
            public: &origins.profiles.vocabulary,
        });
        Territory { base: module.base(), built_in }
    }

    pub(crate) fn owner(&self, target: &dyn Target, addr: Addr) -> Owner {
        let here = || instance::is_in(target, self.base, addr);
        let Some(program) = &self.built_in else {
            return if here() { Owner::Runtime } else { Owner::Other };
        };
        let at = addr.back(program.bias);
        match program.file.symbol_at(at) {
            Some((symbol, _)) => program.names.owner(program.public, &program.file, &symbol.name, at.0),
            None if here() => Owner::Unclear,
            None => Owner::Other,
        }
    }
}

/// The public names of a runtime that is built into a program: all its global symbols count, exported or not.
pub(crate) struct BuiltIn<'f>(pub(crate) &'f ElfFile);

impl ExportView for BuiltIn<'_> {
    fn build_id(&self) -> Option<String> {
        None
    }

    fn machine(&self) -> &str {
        ExportView::machine(self.0)
    }

    fn export_size(&self, name: &str) -> Option<u64> {
        self.0.global_names().find(|global| *global == name)?;
        self.0.symbol(name).map(|symbol| symbol.size)
    }

    fn exported_names(&self) -> Vec<&str> {
        self.0.global_names().collect()
    }

    fn version_nodes(&self) -> Vec<String> {
        Vec::new()
    }
}
