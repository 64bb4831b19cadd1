//! Names of functions as their source has them.

use std::fmt::{self, Write as _};

use gimli::DwLang;

/// What compilers append to the names of functions they made out of others (gcc/ipa-*.cc, gcc/cgraphclones.cc,
/// llvm/lib/Transforms).
const CLONES: &[&str] = &[".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".clone."];

/// The name `raw` of a symbol table or of debug information as the source has it: C++ and Rust names demangled (without
/// arguments), Fortran's freed of what its compilers add, marks of clones left out.
pub fn source_name(raw: &str, language: Option<DwLang>) -> String {
    let plain = without_clones(raw);
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let mut name = Short::default();
    if let Ok(symbol) = rustc_demangle::try_demangle(plain) {
        let whole = write!(name, "{symbol:#}");
        return name.finish(whole);
    }
    if plain.starts_with("_Z")
        && plain.len() <= MAX_MANGLED
        && let Ok(symbol) = cpp_demangle::Symbol::new(plain)
    {
        let whole = symbol.structured_demangle(&mut name, &options);
        if whole.is_ok() || name.full {
            return name.finish(whole);
        }
        name = Short::default();
    }
    let whole = name.write_str(fortran_name(plain, is_fortran(language)).as_deref().unwrap_or(plain));
    name.finish(whole)
}

/// Bytes of a name of the source. A mangled name refers to its own parts, and names a hundred bytes long can mean one that
/// no memory holds.
const MAX_NAME: usize = 16 << 10;
/// Bytes of a mangled name that is read as one.
const MAX_MANGLED: usize = 64 << 10;

/// A text that takes no more than [`MAX_NAME`] bytes.
#[derive(Default)]
struct Short {
    text: String,
    full: bool,
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = MAX_NAME - self.text.len().min(MAX_NAME);
        let fits = (0..=room.min(more.len())).rev().find(|end| more.is_char_boundary(*end)).unwrap_or(0);
        self.text.push_str(&more[..fits]);
        self.full |= fits < more.len();
        if self.full { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Short {
    /// The text, with a mark if there is more of it.
    fn finish(mut self, whole: fmt::Result) -> String {
        if self.full || whole.is_err() {
            self.text.push('…');
        }
        self.text
    }
}

fn is_fortran(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_Fortran77
                | gimli::DW_LANG_Fortran90
                | gimli::DW_LANG_Fortran95
                | gimli::DW_LANG_Fortran03
                | gimli::DW_LANG_Fortran08
                | gimli::DW_LANG_Fortran18
        )
    )
}

/// True if debug information may call a function `own` whose symbol reads `symbol`: of C++ functions that are inlined it may
/// have the last part of the name only, of Fortran's main program the name the source gives it. `outer` is the function it
/// is inlined into, as symbol tables have it.
pub(crate) fn is_called(symbol: &str, own: &str, outer: Option<&str>) -> bool {
    let plain = symbol.strip_suffix(" const").unwrap_or(symbol);
    own == symbol
        || plain.strip_suffix(own).is_some_and(|scope| scope.ends_with("::"))
        // Only the function `main` that gfortran makes calls the main program.
        || symbol == "MAIN__" && outer == Some("main")
}

/// `name` without the marks of clones at its end.
pub(crate) fn without_clones(name: &str) -> &str {
    let cut = CLONES.iter().filter_map(|mark| name.find(mark)).filter(|at| *at > 0).min();
    cut.map_or(name, |at| &name[..at])
}

/// gfortran writes `__MODULE_MOD_NAME` for procedures of modules, and an underscore behind the others
/// (gcc/fortran/trans-decl.cc); flang `_QMmodulePname` and `_QPname` (flang/docs/BijectiveInternalNameUniquing.md). The
/// underscore says nothing by itself: only in Fortran's units (`known`) is it taken away.
fn fortran_name(raw: &str, known: bool) -> Option<String> {
    if let Some((module, name)) = raw.strip_prefix("__").and_then(|rest| rest.split_once("_MOD_")) {
        return Some(format!("{module}::{name}"));
    }
    if let Some(rest) = raw.strip_prefix("_Q") {
        return flang_name(rest);
    }
    if !known || raw == "MAIN__" {
        return None;
    }
    // Internal procedures get a number.
    if let Some((name, number)) = raw.split_once('.') {
        return number.bytes().all(|b| b.is_ascii_digit()).then(|| name.to_owned()).filter(|name| !name.is_empty());
    }
    raw.strip_suffix('_').filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Parts of flang's names: a capital letter for the kind, then a lower-case name.
fn flang_name(mut rest: &str) -> Option<String> {
    if rest == "Qmain" {
        return Some("main program".to_owned());
    }
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let kind = rest.chars().next().filter(|c| matches!(c, 'M' | 'S' | 'F' | 'P'))?;
        rest = &rest[kind.len_utf8()..];
        let end = rest.find(|c: char| c.is_ascii_uppercase()).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    (!parts.is_empty()).then(|| parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_their_source() {
        let plain = |raw| source_name(raw, None);
        assert_eq!(plain("_ZN6solver4GridIdE5relaxEi"), "solver::Grid<double>::relax");
        assert_eq!(plain("_ZN6solver4GridIdE5relaxEi.constprop.0"), "solver::Grid<double>::relax");
        assert_eq!(plain("solve.isra.0.part.1"), "solve");
        assert_eq!(plain("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(plain("__physics_MOD_step"), "physics::step");
        assert_eq!(plain("_QMphysicsPstep"), "physics::step");
        assert_eq!(plain("_QFouterPinner"), "outer::inner");
        assert_eq!(plain("free_"), "free_");
        assert_eq!(source_name("solve_", Some(gimli::DW_LANG_Fortran95)), "solve");
        assert_eq!(source_name("inner.0", Some(gimli::DW_LANG_Fortran95)), "inner");
        assert_eq!(source_name("MAIN__", Some(gimli::DW_LANG_Fortran95)), "MAIN__");
        assert_eq!(plain(".part.0"), ".part.0");
    }
}
