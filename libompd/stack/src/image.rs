//! The files behind a process's code, each with what was made of it: kept by build-id, so that nothing is parsed twice.
//!
//! Code that lies in no file is looked for among what JIT compilers have registered, once a stack has such an address.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use ompd_process::{Addr, BuildId, ElfFile, JitObjects, Module, Target, TargetExt};

use crate::call_sites::CallSites;
use crate::cfi::CallFrames;
use crate::counts::Counts;
use crate::debug::DebugInfo;
use crate::frame::RegisterSet;

/// What was parsed of files, for any number of inspections.
///
/// Files are recognised by their build-ids; those without one are parsed anew each time.
#[derive(Debug, Default)]
pub struct Cache {
    files: RefCell<HashMap<BuildId, Rc<FileInfo>>>,
    counts: Rc<Counts>,
}

impl Cache {
    /// How many times call frame information or debug information of a file has been opened.
    pub fn parsed(&self) -> usize {
        self.counts.parsed.get()
    }

    /// How many addresses have been looked up in call frame information or debug information, each time it was done.
    pub fn looked_up(&self) -> usize {
        self.counts.looked_up.get()
    }

    /// Threads of which a register was asked for, since this was last called, that only a stop would have shown.
    pub fn take_unseen(&self) -> BTreeSet<i32> {
        self.counts.unseen.take()
    }

    /// Notes that only a stop would have shown a register of a thread.
    pub(crate) fn note_unseen(&self, lwp: i32) {
        self.counts.unseen.borrow_mut().insert(lwp);
    }

    fn file(&self, file: &Arc<ElfFile>) -> Rc<FileInfo> {
        let make = || Rc::new(FileInfo::new(Arc::clone(file), Rc::clone(&self.counts)));
        match file.build_id() {
            Some(id) => Rc::clone(self.files.borrow_mut().entry(id.clone()).or_insert_with(make)),
            None => make(),
        }
    }
}

/// One file and what has been made of it, each part when it is first asked for.
pub(crate) struct FileInfo {
    file: Arc<ElfFile>,
    counts: Rc<Counts>,
    frames: OnceCell<CallFrames>,
    debug: OnceCell<DebugInfo>,
    calls: CallSites,
}

impl std::fmt::Debug for FileInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileInfo").field("file", &self.file).finish_non_exhaustive()
    }
}

impl FileInfo {
    fn new(file: Arc<ElfFile>, counts: Rc<Counts>) -> FileInfo {
        FileInfo { file, counts, frames: OnceCell::new(), debug: OnceCell::new(), calls: CallSites::default() }
    }

    pub(crate) fn file(&self) -> &Arc<ElfFile> {
        &self.file
    }

    fn count<T>(&self, made: T) -> T {
        self.counts.parsed.set(self.counts.parsed.get().saturating_add(1));
        made
    }

    pub(crate) fn frames(&self) -> &CallFrames {
        self.frames.get_or_init(|| self.count(CallFrames::of(&self.file, Rc::clone(&self.counts))))
    }

    pub(crate) fn debug(&self) -> &DebugInfo {
        self.debug.get_or_init(|| self.count(DebugInfo::of(&self.file, Rc::clone(&self.counts))))
    }

    pub(crate) fn calls(&self) -> &CallSites {
        &self.calls
    }
}

/// One mapped image.
#[derive(Debug)]
pub(crate) struct Image<'t> {
    pub(crate) module: Cow<'t, Module>,
    /// What it is called.
    pub(crate) name: Arc<str>,
    /// Target address minus file address.
    pub(crate) bias: u64,
    pub(crate) info: Option<Rc<FileInfo>>,
}

/// All images of a process, found by address.
pub(crate) struct Images<'t> {
    target: &'t dyn Target,
    images: Vec<Image<'t>>,
    /// Start and end of every mapped range with the index of its image, sorted.
    ranges: Vec<(u64, u64, usize)>,
    counts: Rc<Counts>,
    jit: OnceCell<Jit>,
    /// Words of the target that calls go through, by address: thousands of frames return to the same few calls.
    slots: RefCell<HashMap<Addr, Option<Addr>>>,
}

impl std::fmt::Debug for Images<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Images").field("images", &self.images).finish_non_exhaustive()
    }
}

/// What JIT compilers have registered.
struct Jit {
    objects: JitObjects,
    /// By index of the object, each made when code of it is first asked for.
    images: Vec<OnceCell<Option<Image<'static>>>>,
}

impl Jit {
    fn of(target: &dyn Target) -> Jit {
        let objects = JitObjects::read(target);
        let images = (0..objects.len()).map(|_| OnceCell::new()).collect();
        Jit { objects, images }
    }

    fn at(&self, target: &dyn Target, counts: &Rc<Counts>, addr: Addr) -> Option<&Image<'static>> {
        let index = self.objects.at(addr)?;
        let make = || {
            let module = self.objects.module(target, index)?;
            let file = Arc::clone(module.file.as_ref().ok()?);
            Some(Image {
                name: module.name().into(),
                bias: module.bias,
                info: Some(Rc::new(FileInfo::new(file, Rc::clone(counts)))),
                module: Cow::Owned(module),
            })
        };
        self.images.get(index)?.get_or_init(make).as_ref()
    }
}

impl<'t> Images<'t> {
    pub(crate) fn of(target: &'t dyn Target, cache: &Cache) -> Images<'t> {
        let image = |module: &'t Module| Image {
            module: Cow::Borrowed(module),
            name: if module.path.is_empty() { "[vdso]" } else { module.name() }.into(),
            bias: module.bias,
            info: module.file.as_ref().ok().map(|file| cache.file(file)),
        };
        let images: Vec<Image<'t>> = target.modules().iter().map(image).collect();
        let of = |(index, image): (usize, &Image<'t>)| {
            let ranges = image.module.ranges.clone();
            ranges.into_iter().map(move |range| (range.start, range.end, index))
        };
        let mut ranges: Vec<_> = images.iter().enumerate().flat_map(of).collect();
        ranges.sort_unstable();
        Images {
            target,
            images,
            ranges,
            counts: Rc::clone(&cache.counts),
            jit: OnceCell::new(),
            slots: RefCell::default(),
        }
    }

    /// The address that the word at `slot` holds, as read when it was first asked for. Of a function that has not been called yet,
    /// the address that the dynamic linker would put there.
    pub(crate) fn slot(&self, slot: Addr) -> Option<Addr> {
        let find = || {
            let held = self.target.read_ptr(slot).ok()?;
            Some(self.unbound(slot, held).unwrap_or(held))
        };
        *self.slots.borrow_mut().entry(slot).or_insert_with(find)
    }

    /// The function that a slot is for, if the slot still leads to the stub that has it looked up (lazy binding, ld.so(8)).
    /// `None` if several files export it: which of them comes first is not looked at.
    fn unbound(&self, slot: Addr, held: Addr) -> Option<Addr> {
        let index = self.index_at(slot).filter(|index| self.index_at(held) == Some(*index))?;
        let image = self.images.get(index)?;
        let file = image.info.as_ref()?.file();
        // The linkage table has the stubs. A file without names of sections is asked for the relocation itself, which takes longer.
        if file.section_range(".plt").is_some_and(|stubs| !stubs.contains(&held.back(image.bias).0)) {
            return None;
        }
        let name = file.relocations().get(&slot.back(image.bias).0)?.symbol.as_deref()?;
        let mut exported = self.images.iter().filter(|image| image.module.exports(name));
        let symbol = exported.next()?.module.symbol(name)?;
        exported.next().is_none().then_some(symbol.addr)
    }

    /// The value of a register of a frame, if it is known; see [`Counts::register`].
    pub(crate) fn register(&self, registers: &RegisterSet, number: u16) -> Option<u64> {
        self.counts.register(registers, number)
    }

    /// The image that contains `addr`: a mapped file, or an object that a JIT compiler has registered.
    pub(crate) fn at(&self, addr: Addr) -> Option<&Image<'t>> {
        match self.index_at(addr) {
            Some(index) => self.images.get(index),
            None => self.jit.get_or_init(|| Jit::of(self.target)).at(self.target, &self.counts, addr),
        }
    }

    /// The index of the module that contains it.
    pub(crate) fn index_at(&self, addr: Addr) -> Option<usize> {
        let place = self.ranges.partition_point(|(start, ..)| *start <= addr.0).checked_sub(1)?;
        self.ranges.get(place).filter(|(_, end, _)| addr.0 < *end).map(|(.., index)| *index)
    }

    /// Where the function that contains `addr` begins, in the target.
    pub(crate) fn function_start(&self, addr: Addr) -> Option<Addr> {
        let image = self.at(addr)?;
        let range = image.info.as_ref()?.file().function_range(addr.back(image.bias).0)?;
        Some(Addr(range.start).offset(image.bias))
    }
}
