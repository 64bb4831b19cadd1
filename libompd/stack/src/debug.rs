//! Source lines and inlined functions, out of the debug information of one file.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use addr2line::Context;
use gimli::RunTimeEndian;
use ompd_process::{ByteOrder, ElfFile};

use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::locals::described::Described;
use crate::names;
use crate::reader::{Meter, Metered};

/// Functions inlined into each other at one address that are listed.
const MAX_INLINED: usize = 256;
/// Bytes of a function's name as the file has it. Templates get that long; what is longer is no name.
const MAX_RAW: usize = 64 << 10;
/// Bytes of a file's name: no longer one can be opened (PATH_MAX, linux/limits.h).
const MAX_PATH: usize = 4096;

/// One function at an address: itself, or inlined into the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SourceFrame {
    /// Name as the file has it, linkage name first.
    pub(crate) raw: Option<Arc<str>>,
    /// The name as its source has it; for the body of a construct that of the function that contains the construct.
    pub(crate) function: Option<Arc<str>>,
    /// It is the body of a construct.
    pub(crate) body: bool,
    /// Language of its unit.
    pub(crate) language: Option<gimli::DwLang>,
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: Option<u32>,
    /// It is inlined into the next one of the list.
    pub(crate) inlined: bool,
}

/// Debug information of one file, opened.
pub(crate) struct DebugInfo {
    context: Option<(Context<Metered>, Described)>,
    /// Why source lines are not known, or not all of them.
    lacking: Option<String>,
    meter: Rc<Meter>,
    counts: Rc<Counts>,
    /// Every text handed out so far: one file name serves a thousand lines.
    texts: RefCell<HashSet<Arc<str>>>,
}

impl DebugInfo {
    /// Opens the debug information in `file`, or in the separate debug file found for it.
    pub(crate) fn of(file: &Arc<ElfFile>, counts: Rc<Counts>) -> DebugInfo {
        let meter = Rc::new(Meter::default());
        let companion = if file.has_dwarf() { None } else { file.debug_companion() };
        let described = companion.as_ref().unwrap_or(file);
        let (context, lacking) = match described.has_dwarf().then(|| open(described, &meter)) {
            Some(Ok(opened)) => (Some(opened), file.missing_supplement()),
            Some(Err(error)) => (None, Some(format!("its debug information cannot be used: {error}"))),
            None if file.is_jit() => (None, Some("it was compiled without debug information".to_owned())),
            None => (None, Some("it has no debug information, and no separate debug file was found".to_owned())),
        };
        DebugInfo { context, lacking, meter, counts, texts: RefCell::default() }
    }

    /// Why source lines are not known, or not all of them; `None` if there is nothing wrong with the file.
    pub(crate) fn lacking(&self) -> Option<&str> {
        self.lacking.as_deref()
    }

    /// The functions at `address` of the file, innermost first. Empty where nothing is known.
    pub(crate) fn frames(&self, address: u64) -> Vec<SourceFrame> {
        let Some((context, _)) = &self.context else { return Vec::new() };
        self.meter.begin();
        self.counts.look_up();
        let mut found = Vec::new();
        // Split debug information (.dwo files) is not loaded: what is in the file itself counts.
        if let Ok(mut frames) = context.find_frames(address).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                if found.len() == MAX_INLINED {
                    break;
                }
                let raw = frame.function.as_ref().and_then(|f| self.text(&f.raw_name().ok()?, MAX_RAW));
                let language = frame.function.as_ref().and_then(|f| f.language);
                let location = frame.location;
                found.push(SourceFrame {
                    function: raw.as_deref().map(|raw| Arc::from(names::source_name(raw, language))),
                    raw,
                    body: false,
                    language,
                    file: location.as_ref().and_then(|l| self.text(l.file?, MAX_PATH)),
                    line: location.and_then(|l| l.line),
                    inlined: true,
                });
            }
        }
        if let Some(outermost) = found.last_mut() {
            outermost.inlined = false;
        }
        found
    }

    /// The descriptions of variables, and where in `.debug_info` the unit begins that has the code at `address` of the file.
    pub(crate) fn described(&self, address: u64) -> Option<(&Described, usize)> {
        let (context, described) = self.context.as_ref()?;
        self.meter.begin();
        let unit = context.find_dwarf_and_unit(address).skip_all_loads()?;
        Some((described, unit.header.debug_info_offset()?.0))
    }

    /// The descriptions of variables.
    pub(crate) fn all_described(&self) -> Option<&Described> {
        self.meter.begin();
        self.context.as_ref().map(|(_, described)| described)
    }

    /// The part at `offset` of the variable of static storage that begins at this address of the file, as `[2].lock`.
    pub(crate) fn part(&self, variable: u64, offset: u64) -> Option<String> {
        let (_, described) = self.context.as_ref()?;
        self.meter.begin();
        described.part(variable, offset)
    }

    /// `text`, kept once; `None` if it is longer than `most` bytes.
    fn text(&self, text: &str, most: usize) -> Option<Arc<str>> {
        if text.len() > most {
            return None;
        }
        let mut texts = self.texts.borrow_mut();
        if let Some(known) = texts.get(text) {
            return Some(Arc::clone(known));
        }
        let new: Arc<str> = text.into();
        texts.insert(Arc::clone(&new));
        Some(new)
    }
}

fn open(file: &Arc<ElfFile>, meter: &Rc<Meter>) -> gimli::Result<(Context<Metered>, Described)> {
    let endian = match file.arch().byte_order {
        ByteOrder::Little => RunTimeEndian::Little,
        ByteOrder::Big => RunTimeEndian::Big,
    };
    let supplement = file.debug_supplement();
    let mut total = 0;
    let mut load = |file: &Arc<ElfFile>, id: gimli::SectionId| {
        let bytes = Bytes::section(file, id.name()).map_or_else(Bytes::empty, |(_, bytes)| bytes);
        total += bytes.len() as u64;
        Ok::<_, gimli::Error>(Metered::new(bytes, meter, endian))
    };
    let mut dwarf = gimli::Dwarf::load(|id| load(file, id))?;
    if let Some(supplement) = &supplement {
        dwarf.load_sup(|id| load(supplement, id))?;
    }
    meter.allow(total);
    #[expect(clippy::arc_with_non_send_sync, reason = "addr2line takes no other kind of reference")]
    let dwarf = Arc::new(dwarf);
    let described = Described::new(Arc::clone(&dwarf));
    Ok((Context::from_arc_dwarf(dwarf)?, described))
}
