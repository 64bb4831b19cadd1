//! Names of functions as their source has them.

use gimli::DwLang;
use ompd_runtime::names::demangle;

/// What compilers append to the names of functions they made out of others (gcc/ipa-*.cc, gcc/cgraphclones.cc,
/// llvm/lib/Transforms).
const CLONES: &[&str] = &[".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".clone."];

/// The name `raw` of a symbol table or of debug information as the source has it: C++ and Rust names demangled (without
/// arguments and ABI tags), Fortran's freed of what its compilers add, marks of clones left out.
pub fn source_name(raw: &str, language: Option<DwLang>) -> String {
    let plain = without_clones(raw);
    let demangled = demangle(plain);
    if demangled != plain {
        return without_tags(demangled);
    }
    let own = is_fortran(language).then(|| fortran_name(plain)).flatten();
    own.unwrap_or_else(|| plain.to_owned())
}

/// A demangled name without ABI tags, which its source has elsewhere. Numba's are a hundred letters long.
fn without_tags(name: String) -> String {
    const TAG: &str = "[abi:";
    let mut parts = name.split(TAG);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Without its end it is no tag.
        match part.split_once(']') {
            Some((_, rest)) => plain.push_str(rest),
            None => return name,
        }
    }
    plain
}

pub(crate) fn is_fortran(language: impl Into<Option<DwLang>>) -> bool {
    matches!(
        language.into(),
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

/// True if debug information may call a function `own` whose symbol is `symbol`. For an inlined C++ function it may
/// have only the last part of the name. For Fortran's main program it may have the source's name. `outer` is the
/// function it is inlined into, as symbol tables have it.
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

/// What gfortran adds to names outside of modules (gcc/fortran/trans-decl.cc): an underscore, which says nothing by itself, and
/// numbers of internal procedures.
fn fortran_name(raw: &str) -> Option<String> {
    if raw == "MAIN__" {
        return None;
    }
    if let Some((name, number)) = raw.split_once('.') {
        return number.bytes().all(|b| b.is_ascii_digit()).then(|| name.to_owned()).filter(|name| !name.is_empty());
    }
    raw.strip_suffix('_').filter(|name| !name.is_empty()).map(str::to_owned)
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
        assert_eq!(plain("_ZN8__main__5totalB2v1B4c8tJE5ArrayIdLi1EE"), "__main__::total");
        assert_eq!(plain("_Z4nameB5cxx11v"), "name");
        assert_eq!(plain("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(plain("__physics_MOD_step"), "physics::step");
        assert_eq!(plain("_QMphysicsPstep"), "physics::step");
        assert_eq!(plain("_QFouterPinner"), "outer::inner");
        assert_eq!(plain("free_"), "free_");
        assert_eq!(source_name("solve_", Some(gimli::DW_LANG_Fortran95)), "solve");
        assert_eq!(source_name("inner.0", Some(gimli::DW_LANG_Fortran95)), "inner");
        assert_eq!(source_name("MAIN__", Some(gimli::DW_LANG_Fortran95)), "MAIN__");
        assert_eq!(plain(".part.0"), ".part.0");
        assert_eq!(plain("f.part.0"), "f");
        let fortran = |raw| source_name(raw, Some(gimli::DW_LANG_Fortran95));
        assert_eq!(["inner.1x", ".0", "_", "main"].map(fortran), ["inner.1x", ".0", "_", "main"]);
        assert_eq!(plain("_QQmain"), "main program");
        // Names of something else.
        assert_eq!(["_Qother", "_Q", "__MOD_step"].map(plain), ["_Qother", "_Q", "__MOD_step"]);
    }
}
