//! Naming addresses after the stop, from the symbol tables of the mapped files.

use std::collections::HashMap;

use ompd_target::{Addr, Target, TargetExt};

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

/// C++ and Rust names as their source has them; anything else as it is.
fn demangle(raw: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return format!("{name:#}");
    }
    if raw.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(raw)
        && let Ok(name) = symbol.demangle()
    {
        return name;
    }
    raw.to_owned()
}
