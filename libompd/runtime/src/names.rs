//! Names of addresses, from the symbol tables of the mapped files.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};

use ompd_process::{Addr, Target, TargetExt};

use crate::Runtime;
use crate::evidence::{Critical, Names, Naming};
use crate::model::SourceLine;

/// Bytes of the largest lock of a runtime (libgomp's `omp_nest_lock_t`). A variable that is larger has parts.
const LARGEST_LOCK: u64 = 16;

/// What the files of a target say of addresses. What is looked up once is kept: a thousand threads run a handful of functions.
pub struct FileNames<'t> {
    target: &'t dyn Target,
    runtimes: &'t [Box<dyn Runtime>],
    /// The line of a call, by the address it returns to.
    line: &'t dyn Fn(Addr) -> Option<SourceLine>,
    /// Which part of a variable lies so many bytes behind its beginning.
    part: Option<&'t dyn Fn(Addr, u64) -> Option<String>>,
    /// What the source calls objects that no symbol covers.
    expressions: Option<&'t dyn Expressions>,
    code: RefCell<HashMap<Addr, Option<String>>>,
    objects: RefCell<HashMap<Addr, Option<String>>>,
    found: RefCell<HashMap<Addr, Option<String>>>,
    /// The addresses that have these names.
    taken: RefCell<HashMap<String, Addr>>,
    lines: RefCell<HashMap<Addr, Option<SourceLine>>>,
}

impl fmt::Debug for FileNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileNames").field("runtimes", &self.runtimes.len()).finish_non_exhaustive()
    }
}

/// Finds the variables and pointers of the source that lead to objects. To be asked when the process runs again.
pub trait Expressions {
    /// What the source calls the object at `addr`: `main::lock`, `grid->lock`, `work::locks[3]`. The variable that contains it is looked
    /// for, then pointers that lead to it. `None` if debug information shows none, or for more objects than are looked for. `waiter` is
    /// the thread (LWP) that waits for it: that a stop would have shown more of its registers is noted then.
    ///
    /// Pointers outside of stacks are read now: the text is true of memory as it is now.
    fn of_object(&self, addr: Addr, waiter: Option<i32>) -> Option<String>;

    /// What leads to the one lock variable of OpenMP that has `content` as its first 32 bits: an inference, since memory that nobody has
    /// written may have it by chance, as may what is left of a lock that was destroyed. `None` if several have it, or none.
    fn lock_with(&self, content: u32) -> Option<String>;
}

impl<'t> FileNames<'t> {
    /// Those of the files that are mapped; `line` knows debug information.
    pub fn of(
        target: &'t dyn Target,
        runtimes: &'t [Box<dyn Runtime>],
        line: &'t dyn Fn(Addr) -> Option<SourceLine>,
    ) -> FileNames<'t> {
        let (code, objects, found, taken, lines) = Default::default();
        FileNames { target, runtimes, line, part: None, expressions: None, code, objects, found, taken, lines }
    }

    /// With `part`, which knows the parts of variables. It gets a variable and a number of bytes behind its beginning,
    /// and returns a text such as `[2].lock`. The text is empty where that is all of the variable.
    #[must_use]
    pub fn with_parts(self, part: &'t dyn Fn(Addr, u64) -> Option<String>) -> FileNames<'t> {
        FileNames { part: Some(part), ..self }
    }

    /// With what knows objects on stacks and in allocated memory.
    #[must_use]
    pub fn with_expressions(self, expressions: &'t dyn Expressions) -> FileNames<'t> {
        FileNames { expressions: Some(expressions), ..self }
    }

    fn name_of_object(&self, addr: Addr) -> Option<String> {
        let (symbol, distance) = self.target.module_at(addr)?.symbol_at(addr)?;
        let is_whole = distance == 0 && symbol.size <= LARGEST_LOCK;
        let part = self.part.filter(|_| !is_whole).and_then(|part| part(symbol.addr, distance));
        Some(match part {
            Some(part) => demangle(&symbol.name) + &part,
            None => named(&symbol.name, distance),
        })
    }
}

impl Names for FileNames<'_> {
    fn code(&self, addr: Addr) -> Option<String> {
        let name = || {
            let module = self.target.module_at(addr)?;
            Some(match module.symbol_at(addr) {
                Some((symbol, 0)) => demangle(&symbol.name),
                Some((symbol, distance)) => format!("{}+{distance:#x}", demangle(&symbol.name)),
                None => format!("{}+{:#x}", module.name(), addr.0.wrapping_sub(module.bias)),
            })
        };
        self.code.borrow_mut().entry(addr).or_insert_with(name).clone()
    }

    fn object(&self, addr: Addr) -> Option<String> {
        self.objects.borrow_mut().entry(addr).or_insert_with(|| self.name_of_object(addr)).clone()
    }

    fn expression(&self, addr: Addr, waiter: Option<i32>) -> Option<String> {
        let find = || {
            let name = self.object(addr).or_else(|| self.expressions?.of_object(addr, waiter))?;
            // Files, and instances of templates, have variables of the same name: they must not look like one.
            let first = *self.taken.borrow_mut().entry(name.clone()).or_insert(addr);
            Some(if first == addr { name } else { format!("{name} ({addr})") })
        };
        self.found.borrow_mut().entry(addr).or_insert_with(find).clone()
    }

    fn lock_with(&self, content: u32) -> Option<String> {
        self.expressions?.lock_with(content)
    }

    fn line(&self, returns_to: Addr) -> Option<SourceLine> {
        self.lines.borrow_mut().entry(returns_to).or_insert_with(|| (self.line)(returns_to)).clone()
    }

    fn word(&self, addr: Addr) -> Option<u32> {
        self.target.read_u32(addr).ok()
    }

    fn criticals(&self, runtime: usize, wanted: &HashSet<Addr>) -> HashMap<Addr, Critical> {
        self.runtimes.get(runtime).map(|runtime| runtime.criticals(self.target, wanted)).unwrap_or_default()
    }

    fn naming(&self, runtime: usize) -> Naming {
        self.runtimes.get(runtime).map(|runtime| runtime.naming()).unwrap_or_default()
    }
}

/// What the program calls what is at an address: `symbol` or `symbol+offset`; nothing where no symbol covers it. To be asked when the
/// process goes on again, since it looks into symbol tables.
pub fn symbol(target: &dyn Target, addr: Addr) -> Option<String> {
    let (symbol, distance) = target.module_at(addr)?.symbol_at(addr)?;
    Some(named(&symbol.name, distance))
}

fn named(raw: &str, distance: u64) -> String {
    let name = demangle(raw);
    if distance == 0 { name } else { format!("{name}+{distance:#x}") }
}

/// Bytes of a name of the source. A mangled name refers to its own parts, and names a hundred bytes long can mean one that
/// no memory holds.
const MAX_NAME: usize = 16 << 10;
/// Bytes of a mangled name that is read as one.
const MAX_MANGLED: usize = 64 << 10;

/// Names of C++, Rust and Fortran's modules as their source has them, C++ functions without their arguments. Anything else stays as
/// it is, but is cut where it is longer than any name. What compilers append to the name of a function for the bodies of its
/// constructs (`._omp_fn.0`) stays.
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
    let fortran = fortran_name(raw);
    let whole = name.write_str(fortran.as_deref().unwrap_or(raw));
    name.finish(whole)
}

/// gfortran writes `__MODULE_MOD_NAME` for what belongs to a module (gcc/fortran/trans-decl.cc), flang `_QMmodulePname`
/// (flang/docs/BijectiveInternalNameUniquing.md).
fn fortran_name(raw: &str) -> Option<String> {
    if let Some((module, name)) = raw.strip_prefix("__").and_then(|rest| rest.split_once("_MOD_")) {
        return (!module.is_empty() && !name.is_empty()).then(|| format!("{module}::{name}"));
    }
    let mut rest = raw.strip_prefix("_Q")?;
    if rest == "Qmain" {
        return Some("main program".to_owned());
    }
    // Each part is a capital letter for the kind, then a name in small letters: modules, submodules, procedures, variables.
    let mut parts = Vec::new();
    while !rest.is_empty() {
        rest = rest.strip_prefix(['M', 'S', 'F', 'P', 'E'])?;
        let (part, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_uppercase()).unwrap_or(rest.len()));
        parts.push(Some(part).filter(|part| !part.is_empty())?);
        rest = behind;
    }
    (!parts.is_empty()).then(|| parts.join("::"))
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
    use ompd_process::{Arch, TargetKind};
    use test_programs::FakeTarget;

    use super::*;
    use crate::handmade::with_symbols;

    fn process(symbols: &[(&str, u64, u64)], functions: bool) -> FakeTarget {
        let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
        target.modules.push(with_symbols(symbols, functions));
        target
    }

    #[test]
    fn code_is_named_by_its_function_or_by_its_file() {
        let target = process(&[("_Z4workv", 0x1000, 16)], true);
        let names = FileNames::of(&target, &[], &|_| None);
        let of = |addr| names.code(Addr(addr));
        assert_eq!(of(0x1000).as_deref(), Some("work"));
        assert_eq!(of(0x1004).as_deref(), Some("work+0x4"));
        assert_eq!(of(0x1800).as_deref(), Some("libmade.so+0x1800"));
        assert_eq!(of(0x9000), None);
    }

    #[test]
    fn two_objects_with_one_name_are_told_apart_by_an_address() {
        let target = process(&[("lock", 0x1000, 4), ("lock", 0x1100, 4), ("gate", 0x1200, 4)], false);
        let names = FileNames::of(&target, &[], &|_| None);
        let of = |addr| names.expression(Addr(addr), None);
        let second = format!("lock ({})", Addr(0x1100));
        for _ in 0..2 {
            assert_eq!(of(0x1000).as_deref(), Some("lock"));
            assert_eq!(of(0x1100), Some(second.clone()));
            assert_eq!(of(0x1200).as_deref(), Some("gate"));
        }
        assert_eq!(of(0x1800), None);
    }

    #[test]
    fn lines_are_looked_up_once() {
        let target = process(&[], false);
        let asked = std::cell::Cell::new(0);
        let line = |addr: Addr| {
            asked.set(asked.get() + 1);
            (addr == Addr(1)).then(|| SourceLine { file: "a.c".to_owned(), function: "main".to_owned(), line: 7 })
        };
        let names = FileNames::of(&target, &[], &line);
        for _ in 0..2 {
            assert_eq!(names.line(Addr(1)).map(|line| line.line), Some(7));
            assert_eq!(names.line(Addr(2)), None);
        }
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn names_longer_than_any_are_cut_with_a_mark() {
        let longest = "n".repeat(MAX_NAME);
        assert_eq!(demangle(&longest), longest);
        assert_eq!(demangle(&format!("{longest}n")), format!("{longest}…"));
        // Not within a letter.
        let letters = "ä".repeat(MAX_NAME / 2);
        assert_eq!(demangle(&format!("n{letters}")), format!("n{}…", "ä".repeat(MAX_NAME / 2 - 1)));
    }

    #[test]
    fn names_are_read_as_in_the_source() {
        assert_eq!(demangle("_ZN6solver4GridIdE5relaxEi"), "solver::Grid<double>::relax");
        assert_eq!(demangle("_ZN6solver4GridIdE5relaxEi._omp_fn.0"), "solver::Grid<double>::relax._omp_fn.0");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle(".omp_outlined..3"), ".omp_outlined..3");
        assert_eq!(demangle("__physics_MOD_gate"), "physics::gate");
        assert_eq!(demangle("_QMphysicsSpartFstepEgate"), "physics::part::step::gate");
        // Names of something else.
        assert_eq!(["_Zork", "__MOD_x", "_Qother", "_QP"].map(demangle), ["_Zork", "__MOD_x", "_Qother", "_QP"]);
    }
}
