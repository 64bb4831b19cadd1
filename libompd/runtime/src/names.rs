//! Naming addresses after the stop, from the symbol tables of the mapped files.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use ompd_process::{Addr, Target, TargetExt};

use crate::model::{CodeRef, Fact, RuntimeSnapshot, Wait};

/// Remembers what it has looked up: a thousand threads run a handful of functions.
pub(crate) struct Namer<'a> {
    target: &'a dyn Target,
    known: HashMap<Addr, Option<String>>,
}

impl<'a> Namer<'a> {
    pub(crate) fn new(target: &'a dyn Target) -> Self {
        Namer { target, known: HashMap::new() }
    }

    /// `symbol`, `symbol+offset`, or `module+offset` where no symbol covers the address.
    pub(crate) fn name(&mut self, addr: Addr) -> Option<String> {
        if let Some(known) = self.known.get(&addr) {
            return known.clone();
        }
        let name = self.target.module_at(addr).map(|module| match module.symbol_at(addr) {
            Some((symbol, 0)) => demangle(&symbol.name),
            Some((symbol, distance)) => format!("{}+{distance:#x}", demangle(&symbol.name)),
            None => format!("{}+{:#x}", module.name(), addr.0.wrapping_sub(module.bias)),
        });
        self.known.insert(addr, name.clone());
        name
    }

    /// Names every function and every object waited for. `refine` may change a wait once its object has a name.
    pub(crate) fn name_all(&mut self, snapshot: &mut RuntimeSnapshot, refine: impl Fn(&mut Wait)) {
        for function in
            snapshot.teams.iter_mut().map(|t| &mut t.function).chain(snapshot.tasks.iter_mut().map(|t| &mut t.function))
        {
            if let Fact::Known { value: CodeRef { addr, name }, .. } = function {
                *name = self.name(*addr);
            }
        }
        for dependence in snapshot.tasks.iter_mut().flat_map(|t| &mut t.dependences) {
            dependence.name = symbol(self.target, dependence.addr);
        }
        for lock in snapshot.locks.iter_mut().filter(|lock| lock.name.is_none()) {
            lock.name = symbol(self.target, lock.object);
        }
        for thread in &mut snapshot.threads {
            if let Fact::Known { value: Some(wait), .. } = &mut thread.wait {
                if wait.name.is_none() {
                    wait.name = self.name(wait.object);
                }
                refine(wait);
                thread.state = wait.kind.state_fact(wait.origin);
            }
        }
    }
}

/// What the program calls what is at an address: `symbol` or `symbol+offset`; nothing where no symbol covers it. To be asked when the
/// process goes on again, since it looks into symbol tables.
pub fn symbol(target: &dyn Target, addr: Addr) -> Option<String> {
    let (symbol, distance) = target.module_at(addr)?.symbol_at(addr)?;
    let name = demangle(&symbol.name);
    Some(if distance == 0 { name } else { format!("{name}+{distance:#x}") })
}

/// Bytes of a name of the source. A mangled name refers to its own parts, and names a hundred bytes long can mean one that
/// no memory holds.
const MAX_NAME: usize = 16 << 10;
/// Bytes of a mangled name that is read as one.
const MAX_MANGLED: usize = 64 << 10;

/// C++ and Rust names as their source has them, C++ functions without their arguments; anything else as it is, as far as it
/// is no longer than any name. What compilers append to the name of a function for the bodies of its constructs
/// (`._omp_fn.0`) stays.
pub fn demangle(raw: &str) -> String {
    let mut name = Short::default();
    if let Ok(symbol) = rustc_demangle::try_demangle(raw) {
        let whole = write!(name, "{symbol:#}");
        return name.finish(whole);
    }
    let (mangled, appended) = raw.split_at(raw.find('.').unwrap_or(raw.len()));
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    if mangled.starts_with("_Z")
        && mangled.len() <= MAX_MANGLED
        && let Ok(symbol) = cpp_demangle::Symbol::new(mangled)
    {
        let whole = symbol.structured_demangle(&mut name, &options);
        if whole.is_ok() || name.full {
            let whole = whole.and_then(|()| name.write_str(appended));
            return name.finish(whole);
        }
        name = Short::default();
    }
    let whole = name.write_str(raw);
    name.finish(whole)
}

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

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_are_read_as_in_the_source() {
        assert_eq!(demangle("_ZN6solver4GridIdE5relaxEi"), "solver::Grid<double>::relax");
        assert_eq!(demangle("_ZN6solver4GridIdE5relaxEi._omp_fn.0"), "solver::Grid<double>::relax._omp_fn.0");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle(".omp_outlined..3"), ".omp_outlined..3");
        assert_eq!(demangle("_Zork"), "_Zork");
    }
}
