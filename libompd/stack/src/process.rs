//! What the frames of a process are looked up in.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ompd_process::{Addr, Target};
use ompd_runtime::Runtime;

use crate::calls;
use crate::debug::SourceFrame;
use crate::frame::{CodeOwner, Frame, ROOTS};
use crate::image::{Cache, Images};
use crate::names;
use crate::outlined;

/// A function of a symbol table that covers an address.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
}

/// A process with its runtimes, and what has been looked up so far: threads share nearly all their frames.
pub(crate) struct Process<'t> {
    pub(crate) target: &'t dyn Target,
    pub(crate) runtimes: &'t [Box<dyn Runtime>],
    pub(crate) images: Images<'t>,
    /// By image: it is the C library, the dynamic linker or the vdso.
    system: Vec<bool>,
    owners: RefCell<HashMap<Addr, CodeOwner>>,
    symbols: RefCell<HashMap<Addr, Option<Rc<Function>>>>,
    sources: RefCell<HashMap<Addr, Rc<[SourceFrame]>>>,
    jumps: RefCell<HashMap<(Addr, Addr), bool>>,
    direct: RefCell<HashMap<(Addr, Addr), bool>>,
    arguments: RefCell<HashMap<(Addr, u8), Option<Addr>>>,
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
            direct: RefCell::default(),
            arguments: RefCell::default(),
        }
    }

    /// Whose code lies at `addr`.
    pub(crate) fn owner(&self, addr: Addr) -> CodeOwner {
        if let Some(known) = self.owners.borrow().get(&addr) {
            return *known;
        }
        let runtime = self.runtimes.iter().position(|runtime| runtime.owns_code(self.target, addr));
        let owner = match runtime {
            Some(runtime) => CodeOwner::Runtime(runtime),
            None if self.images.index_at(addr).is_some_and(|image| self.system[image]) => CodeOwner::System,
            None if self.symbol(addr).is_some_and(|symbol| ROOTS.contains(&&*symbol.name)) => CodeOwner::System,
            None => CodeOwner::Program,
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
        let found = found.map(|(symbol, _)| Rc::new(Function { name: symbol.name.into() }));
        self.symbols.borrow_mut().insert(addr, found.clone());
        found
    }

    /// The part at `offset` of the variable of static storage that begins at `variable`, by debug information.
    pub(crate) fn part_of_variable(&self, variable: Addr, offset: u64) -> Option<String> {
        let image = self.images.at(variable)?;
        image.info.as_ref()?.debug().part(variable.back(image.bias).0, offset)
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
        calls::callee(&self.images, caller.pc, &caller.registers)
    }

    /// The same, but registers that only a stop shows are not asked for.
    pub(crate) fn callee_if_seen(&self, caller: &Frame) -> Option<Addr> {
        if caller.exact { None } else { calls::callee(&self.images, caller.pc, &caller.registers.seen()) }
    }

    /// The program's function that the call `caller` is in has as argument number `index`, if its code says so.
    pub(crate) fn function_argument(&self, caller: &Frame, index: u8) -> Option<Addr> {
        let find = || calls::function_argument(&self.images, caller.pc, index);
        let found =
            (!caller.exact).then(|| *self.arguments.borrow_mut().entry((caller.pc, index)).or_insert_with(find))?;
        found.filter(|addr| self.owner(*addr) == CodeOwner::Program)
    }

    /// True if the call that `caller` is in called what a pointer said.
    pub(crate) fn calls_by_pointer(&self, caller: &Frame) -> bool {
        !caller.exact && calls::by_pointer(&self.images, caller.pc)
    }

    /// True if the function that begins at `from` jumps to where the one at `to` begins.
    pub(crate) fn jumps(&self, from: Addr, to: Addr) -> bool {
        *self.jumps.borrow_mut().entry((from, to)).or_insert_with(|| calls::jumps(&self.images, from, to))
    }

    /// True if the runtime's public function of this name calls the one at `to`, or jumps to it.
    pub(crate) fn leads_to(&self, runtime: usize, name: &str, to: Addr) -> bool {
        let base = self.runtimes[runtime].info().base;
        let module = self.target.modules().iter().find(|module| module.base() == base);
        let Some(from) = module.and_then(|module| module.symbol(name)).map(|symbol| symbol.addr) else { return false };
        let calls = || calls::calls(&self.images, from, to);
        self.jumps(from, to) || *self.direct.borrow_mut().entry((from, to)).or_insert_with(calls)
    }

    /// The functions of the source at `addr`, innermost first, those inlined included; one without any name where nothing
    /// is known.
    pub(crate) fn source(&self, addr: Addr) -> Rc<[SourceFrame]> {
        if let Some(known) = self.sources.borrow().get(&addr) {
            return Rc::clone(known);
        }
        let mut frames = self.described(addr);
        for frame in &mut frames {
            let Some(outlined) = frame.raw.as_deref().and_then(outlined::outlined) else { continue };
            frame.function = outlined.container.map(|name| self.container(addr, name, frame.language));
            frame.body = true;
        }
        let frames: Rc<[SourceFrame]> = frames.into();
        self.sources.borrow_mut().insert(addr, Rc::clone(&frames));
        frames
    }

    /// Of the file with the code at `addr`: what it is called, and why it has no source lines. `None` for the C library,
    /// whose functions are shown by name alone, and where there is nothing wrong with the file.
    pub(crate) fn without_lines(&self, addr: Addr) -> Option<(Arc<str>, String)> {
        if self.images.index_at(addr).is_some_and(|index| self.system[index]) {
            return None;
        }
        let image = self.images.at(addr)?;
        let why = match &image.info {
            Some(info) => info.debug().lacking()?.to_owned(),
            None => "the file is not at hand".to_owned(),
        };
        Some((Arc::clone(&image.name), why))
    }

    /// As [`Process::source`], but bodies of constructs have the names the compiler gave them.
    fn described(&self, addr: Addr) -> Vec<SourceFrame> {
        let image = self.images.at(addr);
        // Of the C library's functions the exported name says most: how they are made inside is not the program's.
        let exported = self.owner(addr) == CodeOwner::System && self.symbol(addr).is_some();
        let described = image.filter(|_| !exported).and_then(|image| {
            let info = image.info.as_ref()?;
            Some(info.debug().frames(addr.back(image.bias).0))
        });
        let mut frames = described.unwrap_or_default();
        if frames.is_empty() {
            frames.push(SourceFrame::default());
        }
        if let (Some(symbol), Some(outermost)) = (self.symbol(addr), frames.last_mut()) {
            // Debug information has plain names for C++ functions that only their own file knows; symbols say where they
            // belong.
            let mangled = symbol.name.starts_with("_Z");
            let plain = outermost.raw.as_deref().is_some_and(|raw| !raw.starts_with("_Z"));
            if outermost.raw.is_none() || plain && mangled && outlined::outlined(&symbol.name).is_none() {
                outermost.function = Some(names::source_name(&symbol.name, None).into());
                outermost.raw = Some(Arc::clone(&symbol.name));
            }
        }
        frames
    }

    /// The source's name for the function `raw`, which contains a construct whose body lies at `addr`. What the container's
    /// own name says of a container is not followed: names may lead in circles.
    fn container(&self, addr: Addr, raw: &str, language: Option<gimli::DwLang>) -> Arc<str> {
        let symbol = self.images.at(addr).and_then(|image| image.module.symbol(raw));
        let described = symbol.filter(|s| !s.tls).map(|s| self.described(s.addr));
        let outermost = described.and_then(|mut frames| frames.pop());
        let function = outermost
            .filter(|frame| frame.raw.as_deref().is_some_and(|raw| outlined::outlined(raw).is_none()))
            .and_then(|frame| frame.function);
        function.unwrap_or_else(|| names::source_name(raw, language).into())
    }

    /// `module` and the offset in it, as tools that read ELF files count: from address 0 of the file.
    pub(crate) fn module(&self, addr: Addr) -> Option<(Arc<str>, u64)> {
        let image = self.images.at(addr)?;
        Some((Arc::clone(&image.name), addr.back(image.bias).0))
    }
}

/// The C library and what belongs to it: what makes threads, and what calls `main`. A program may export the name of either:
/// with a sanitizer built into it, it does.
fn is_system(module: &ompd_process::Module) -> bool {
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
