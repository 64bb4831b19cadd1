//! The files behind a process's code, each with what was made of it: kept by build-id, so that nothing is parsed twice.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use ompd_process::{Addr, BuildId, ElfFile, Module, Target};

use crate::call_sites::CallSites;
use crate::cfi::CallFrames;
use crate::counts::Counts;
use crate::debug::DebugInfo;

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
    pub(crate) module: &'t Module,
    /// What it is called.
    pub(crate) name: Arc<str>,
    /// Target address minus file address.
    pub(crate) bias: u64,
    pub(crate) info: Option<Rc<FileInfo>>,
}

/// All images of a process, found by address.
#[derive(Debug)]
pub(crate) struct Images<'t> {
    images: Vec<Image<'t>>,
    /// Start and end of every mapped range with the index of its image, sorted.
    ranges: Vec<(u64, u64, usize)>,
}

impl<'t> Images<'t> {
    pub(crate) fn of(target: &'t dyn Target, cache: &Cache) -> Images<'t> {
        let image = |module: &'t Module| Image {
            module,
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
        Images { images, ranges }
    }

    /// The image that contains `addr`.
    pub(crate) fn at(&self, addr: Addr) -> Option<&Image<'t>> {
        self.index_at(addr).map(|index| &self.images[index])
    }

    /// Its index.
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
