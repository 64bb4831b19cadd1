//! What the frames of a process are looked up in.

use std::cell::RefCell;
use std::rc::Rc;

use ompd_runtime::Runtime;
use ompd_target::{Addr, Target};
use rustc_hash::FxHashMap;

use crate::calls;
use crate::debug::SourceFrame;
use crate::image::{Cache, Images};
use crate::logical::ROOTS;
use crate::names;
use crate::outlined;
use crate::physical::Owner;
use crate::unwind::Frame;

/// A function of a symbol table that covers an address.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Where it begins, in the target.
    pub(crate) start: Addr,
}

/// A process with its runtimes, and what has been looked up so far: threads share nearly all their frames.
pub(crate) struct Process<'t> {
    pub(crate) target: &'t dyn Target,
    pub(crate) runtimes: &'t [Box<dyn Runtime>],
    pub(crate) images: Images<'t>,
    /// By image: it is the C library, the dynamic linker or the vdso.
    system: Vec<bool>,
    owners: RefCell<FxHashMap<Addr, Owner>>,
    symbols: RefCell<FxHashMap<Addr, Option<Rc<Function>>>>,
    sources: RefCell<FxHashMap<Addr, Rc<[SourceFrame]>>>,
    jumps: RefCell<FxHashMap<(Addr, Addr), bool>>,
}

impl<'t> Process<'t> {
    pub(crate) fn new(target: &'t dyn Target, runtimes: &'t [Box<dyn Runtime>], cache: &Cache) -> Process<'t> {
        let images = Images::of(target, cache);
        let system = target.modules().iter().map(is_system).collect();
        Process {
            target,
            runtimes,
            images,
            system,
            owners: RefCell::default(),
            symbols: RefCell::default(),
            sources: RefCell::default(),
            jumps: RefCell::default(),
        }
    }

    /// Whose code lies at `addr`.
    pub(crate) fn owner(&self, addr: Addr) -> Owner {
        if let Some(known) = self.owners.borrow().get(&addr) {
            return *known;
        }
        let runtime = self.runtimes.iter().position(|runtime| runtime.owns_code(self.target, addr));
        let owner = match runtime {
            Some(runtime) => Owner::Runtime(runtime),
            None if self.images.index_at(addr).is_some_and(|image| self.system[image]) => Owner::System,
            None if self.symbol(addr).is_some_and(|symbol| ROOTS.contains(&&*symbol.name)) => Owner::System,
            None => Owner::Program,
        };
        self.owners.borrow_mut().insert(addr, owner);
        owner
    }

    /// The function symbol that covers `addr`.
    pub(crate) fn symbol(&self, addr: Addr) -> Option<Rc<Function>> {
        if let Some(known) = self.symbols.borrow().get(&addr) {
            return known.clone();
        }
        let found = self.images.at(addr).and_then(|image| image.module.symbol_at(addr));
        let found = found.map(|(symbol, _)| Rc::new(Function { name: symbol.name, start: symbol.addr }));
        self.symbols.borrow_mut().insert(addr, found.clone());
        found
    }

    /// Where the function that contains `addr` begins.
    pub(crate) fn function_start(&self, addr: Addr) -> Option<Addr> {
        self.images.function_start(addr)
    }

    /// What the call that `caller` is in called.
    pub(crate) fn callee(&self, caller: &Frame) -> Option<Addr> {
        if caller.exact {
            return None;
        }
        calls::callee(self.target, &self.images, caller.pc, &caller.registers)
    }

    /// True if the call that `caller` is in called what a pointer said.
    pub(crate) fn calls_by_pointer(&self, caller: &Frame) -> bool {
        !caller.exact && calls::by_pointer(&self.images, caller.pc)
    }

    /// True if the function that begins at `from` jumps to where the one at `to` begins.
    pub(crate) fn jumps(&self, from: Addr, to: Addr) -> bool {
        *self.jumps.borrow_mut().entry((from, to)).or_insert_with(|| calls::jumps(self.target, &self.images, from, to))
    }

    /// The functions of the source at `addr`, innermost first, those inlined included; one without any name where nothing
    /// is known.
    pub(crate) fn source(&self, addr: Addr) -> Rc<[SourceFrame]> {
        if let Some(known) = self.sources.borrow().get(&addr) {
            return Rc::clone(known);
        }
        let image = self.images.at(addr);
        // Of the C library's functions the exported name says most: how they are made inside is not the program's.
        let exported = self.owner(addr) == Owner::System && self.symbol(addr).is_some();
        let described = image.filter(|_| !exported).and_then(|image| {
            let info = image.info.as_ref()?;
            Some(info.debug().frames(addr.back(image.bias).0))
        });
        let mut frames = described.unwrap_or_default();
        if frames.is_empty() {
            frames.push(SourceFrame::default());
        }
        let outermost = frames.last_mut().expect("there is one at least");
        if let Some(symbol) = self.symbol(addr) {
            // Debug information has plain names for C++ functions that only their own file knows; symbols say where they
            // belong.
            let mangled = symbol.name.starts_with("_Z");
            let plain = outermost.raw.as_deref().is_some_and(|raw| !raw.starts_with("_Z"));
            if outermost.raw.is_none() || plain && mangled && outlined::outlined(&symbol.name).is_none() {
                outermost.function = Some(names::source_name(&symbol.name, None));
                outermost.raw = Some(symbol.name.clone());
            }
        }
        let bodies =
            frames.iter_mut().filter(|frame| frame.raw.as_deref().is_some_and(|r| outlined::outlined(r).is_some()));
        for frame in bodies {
            let container = frame.raw.as_deref().and_then(outlined::outlined).and_then(|o| o.container);
            frame.function = container.map(|name| self.container(addr, name, frame.language));
            frame.body = true;
        }
        let frames: Rc<[SourceFrame]> = frames.into();
        self.sources.borrow_mut().insert(addr, Rc::clone(&frames));
        frames
    }

    /// The source's name for the function `raw`, which contains a construct whose body lies at `addr`.
    fn container(&self, addr: Addr, raw: &str, language: Option<gimli::DwLang>) -> String {
        let symbol = self.images.at(addr).and_then(|image| image.module.symbol(raw));
        let described = symbol.filter(|s| !s.tls).map(|s| self.source(s.addr));
        let function = described.as_ref().and_then(|frames| frames.last()?.function.clone());
        function.unwrap_or_else(|| names::source_name(raw, language))
    }

    /// `module` and the offset in it, as tools that read ELF files count: from address 0 of the file.
    pub(crate) fn module(&self, addr: Addr) -> Option<(String, u64)> {
        let image = self.images.at(addr)?;
        let name = if image.module.path.is_empty() { "[vdso]" } else { image.module.name() };
        Some((name.to_owned(), addr.back(image.bias).0))
    }
}

/// The C library and what belongs to it: what makes threads, and what calls `main`. A program may export the name of either:
/// with a sanitizer built into it, it does.
fn is_system(module: &ompd_target::Module) -> bool {
    let name = module.name();
    if module.file.as_ref().is_ok_and(|file| file.is_program()) {
        return false;
    }
    module.path.is_empty()
        || module.exports("__libc_start_main")
        || module.exports("pthread_create")
        || name.starts_with("ld-")
        || name.starts_with("ld.")
}
