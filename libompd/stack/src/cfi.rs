//! Call frame information of one file: for an address, how to find the caller's registers.
//!
//! `.eh_frame` is in every file that can be loaded, stripped or not; `.debug_frame` is used for what it does not cover.
//! The crate gimli parses and runs the call frame instructions. The result is a [`Row`], which is kept: a thousand
//! threads wait at a handful of addresses.
//!
//! See DWARF 5, section 6.4; Linux Standard Base 5.0, 10.6; psABI x86-64, 4.2.4.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, CommonInformationEntry, DebugFrame, EhFrame, Encoding, EndianSlice,
    FrameDescriptionEntry, RegisterRule, RunTimeEndian, UnwindContext, UnwindExpression, UnwindOffset, UnwindSection,
    Vendor,
};
use ompd_process::{ByteOrder, ElfFile, GENERAL};

use crate::bytes::Bytes;
use crate::counts::Counts;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// Bytes of call frame instructions that finding a row may cost whatever else was looked up. Nearly all functions have fewer.
const PER_ROW: u64 = 512;
/// What all rows of a file may cost beyond that: so much, and so much for each byte of its call frame information. One
/// entry may be as long as the file, and a stack may return to each of its addresses.
const LEAST: u64 = 4 << 20;
/// See [`LEAST`].
const PER_BYTE: u64 = 4;

/// How one register of the caller is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nothing says what it was.
    Undefined,
    /// It has not been changed.
    Same,
    /// It was saved so many bytes from the CFA.
    SavedAt(i64),
    /// It is the CFA plus so many bytes.
    CfaPlus(i64),
    /// Another register holds it.
    Register(u16),
    /// It was saved at the address the expression gives.
    SavedAtExpression(Range<usize>),
    /// It is what the expression gives.
    Expression(Range<usize>),
}

/// How the canonical frame address is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// A register plus so many bytes.
    Register(u16, i64),
    /// What the expression gives.
    Expression(Range<usize>),
}

/// What call frame information says for one address.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) cfa: Cfa,
    /// Rules by DWARF register; registers without one follow the machine's calling convention.
    pub(crate) rules: Vec<(u16, Rule)>,
    /// The register, or pseudo register, that stands for the return address.
    pub(crate) return_register: u16,
    /// The frame is a signal trampoline: its caller was interrupted, it did not call.
    pub(crate) signal: bool,
    /// The section the expressions lie in.
    pub(crate) section: Bytes,
    pub(crate) encoding: Encoding,
    pub(crate) endian: RunTimeEndian,
}

/// Why an address has no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRow {
    /// No entry covers the address.
    Uncovered,
    /// The entry is malformed.
    Malformed(gimli::Error),
    /// The entries asked for so far are too long for what the file has in all.
    TooCostly,
}

/// One section with call frame information.
#[derive(Debug)]
struct Table {
    bytes: Bytes,
    /// Where the section is loaded, in addresses of the file.
    address: u64,
    /// `.debug_frame`, not `.eh_frame`.
    debug: bool,
    /// `.eh_frame_hdr`, with where it is loaded: a table of all entries, sorted by address.
    header: Option<(u64, Bytes)>,
    bases: BaseAddresses,
    /// Extent and offset of every entry, sorted; made where there is no usable header.
    index: OnceCell<Vec<(Range<u64>, usize)>>,
}

impl Table {
    fn allowance(&self) -> u64 {
        PER_BYTE.saturating_mul(self.bytes.len() as u64)
    }
}

/// All call frame information of one file.
pub(crate) struct CallFrames {
    endian: RunTimeEndian,
    address_size: u8,
    vendor: Vendor,
    file: Arc<ElfFile>,
    eh_frame: Option<Table>,
    debug_frame: OnceCell<Option<Table>>,
    counts: Rc<Counts>,
    rows: RefCell<HashMap<u64, Result<Rc<Row>, NoRow>>>,
    /// What rows may still cost.
    left: Cell<u64>,
    context: RefCell<UnwindContext<usize>>,
}

impl CallFrames {
    pub(crate) fn of(file: &Arc<ElfFile>, counts: Rc<Counts>) -> CallFrames {
        let arch = file.arch();
        let endian = match arch.byte_order {
            ByteOrder::Little => RunTimeEndian::Little,
            ByteOrder::Big => RunTimeEndian::Big,
        };
        let eh_frame = Bytes::section(file, ".eh_frame").map(|(address, bytes)| {
            let start = |name| file.section_range(name).map_or(0, |range| range.start);
            let header = Bytes::section(file, ".eh_frame_hdr");
            let bases = BaseAddresses::default()
                .set_eh_frame(address)
                .set_eh_frame_hdr(header.as_ref().map_or(0, |(address, _)| *address))
                .set_text(start(".text"))
                .set_got(start(".got"));
            Table { bytes, address, debug: false, header, bases, index: OnceCell::new() }
        });
        let left = LEAST.saturating_add(eh_frame.as_ref().map_or(0, Table::allowance));
        CallFrames {
            endian,
            address_size: arch.pointer_bytes,
            vendor: arch.machine.facts().map_or(Vendor::Default, |facts| facts.vendor),
            file: Arc::clone(file),
            eh_frame,
            debug_frame: OnceCell::new(),
            counts,
            rows: RefCell::default(),
            left: Cell::new(left),
            context: RefCell::default(),
        }
    }

    /// What is known for `address`, of the file.
    pub(crate) fn row(&self, address: u64) -> Result<Rc<Row>, NoRow> {
        if let Some(known) = self.rows.borrow().get(&address) {
            return known.clone();
        }
        self.counts.look_up();
        let found = self.find(address).map(Rc::new);
        self.rows.borrow_mut().insert(address, found.clone());
        found
    }

    fn find(&self, address: u64) -> Result<Row, NoRow> {
        if self.left.get() == 0 {
            return Err(NoRow::TooCostly);
        }
        let first = match &self.eh_frame {
            Some(table) => self.find_in(table, address),
            None => Err(NoRow::Uncovered),
        };
        match first {
            Err(NoRow::Uncovered) => match self.debug_frame() {
                Some(table) => self.find_in(table, address),
                None => Err(NoRow::Uncovered),
            },
            other => other,
        }
    }

    fn debug_frame(&self) -> Option<&Table> {
        let load = || {
            let own = Bytes::section(&self.file, ".debug_frame");
            let companion = || Bytes::section(&self.file.debug_companion()?, ".debug_frame");
            let (_, bytes) = own.or_else(companion)?;
            let bases = BaseAddresses::default();
            let table = Table { bytes, address: 0, debug: true, header: None, bases, index: OnceCell::new() };
            self.left.set(self.left.get().saturating_add(table.allowance()));
            Some(table)
        };
        self.debug_frame.get_or_init(load).as_ref()
    }

    fn find_in(&self, table: &Table, address: u64) -> Result<Row, NoRow> {
        if table.debug {
            let section = self.debug_section(table);
            self.row_of(table, &section, address)
        } else {
            let section = self.eh_section(table);
            self.row_of(table, &section, address)
        }
    }

    /// The offset of the entry that the table in `.eh_frame_hdr` has for an address. The search of gimli knows any
    /// encoding, but multiplies numbers of the header without a check. All linkers write this one encoding (LSB 5.0,
    /// 10.6.2).
    fn by_header(&self, table: &Table, address: u64) -> Option<usize> {
        // Version 1; pointer: relative, signed, four bytes; count: four bytes; table: relative to the header, signed, four bytes.
        const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        const FIRST: usize = 12;
        const PAIR: usize = 8;
        let (start, header) = table.header.as_ref()?;
        let word = |at: usize| {
            let bytes = header.get(at..at.checked_add(4)?)?.try_into().ok()?;
            Some(match self.endian {
                RunTimeEndian::Little => u32::from_le_bytes(bytes),
                RunTimeEndian::Big => u32::from_be_bytes(bytes),
            })
        };
        let pointer = |at: usize| Some(start.wrapping_add_signed(i64::from(word(at)? as i32)));
        if header.get(..4)? != USUAL {
            return None;
        }
        let room = header.len().checked_sub(FIRST)? / PAIR;
        let (mut low, mut high) = (0, room.min(word(8)? as usize));
        // The last entry that does not begin behind the address.
        while low < high {
            let middle = low + (high - low) / 2;
            if pointer(FIRST + PAIR * middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let entry = pointer(FIRST + PAIR * low.checked_sub(1)? + 4)?;
        usize::try_from(entry.checked_sub(table.address)?).ok()
    }

    fn debug_section<'d>(&self, table: &'d Table) -> DebugFrame<Slice<'d>> {
        let mut section = DebugFrame::new(&table.bytes, self.endian);
        section.set_address_size(self.address_size);
        section.set_vendor(self.vendor);
        section
    }

    fn eh_section<'d>(&self, table: &'d Table) -> EhFrame<Slice<'d>> {
        let mut section = EhFrame::new(&table.bytes, self.endian);
        section.set_address_size(self.address_size);
        section.set_vendor(self.vendor);
        section
    }

    /// How far the stack pointer is from the CFA after the function that contains `address` has made its frame and
    /// before it pushes call arguments. This is the first place where all registers saved at `address` are saved.
    /// `None` if the CFA is not counted from the stack pointer, or the distance is unknown.
    pub(crate) fn settled(&self, address: u64, stack_pointer: u16) -> Option<i64> {
        let in_table = |table: &Table| match table.debug {
            true => self.settled_in(table, &self.debug_section(table), address, stack_pointer),
            false => self.settled_in(table, &self.eh_section(table), address, stack_pointer),
        };
        self.eh_frame.as_ref().and_then(in_table).or_else(|| self.debug_frame().and_then(in_table))
    }

    fn settled_in<'d, S>(&self, table: &Table, section: &S, address: u64, stack_pointer: u16) -> Option<i64>
    where
        S: UnwindSection<Slice<'d>>,
        S::Offset: From<usize>,
    {
        /// Changes of one function's frame that are looked at.
        const MAX_ROWS: usize = 4096;
        let fde = self.find_entry(table, section, address).ok()?;
        let returns = fde.cie().return_address_register();
        let mut context = self.context.borrow_mut();
        let mut rows = fde.rows(section, &table.bases, &mut context).ok()?;
        // Offset and saved registers, in the order of the code.
        let mut before: Vec<(i64, usize)> = Vec::new();
        while let Ok(Some(row)) = rows.next_row() {
            let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
            if register.0 != stack_pointer || before.len() == MAX_ROWS {
                return None;
            }
            let saved = row.registers().filter(|(register, _)| *register != returns).count();
            before.push((offset, saved));
            if row.contains(address) {
                let frame = match saved {
                    // Nothing is saved: the frame is made at one stroke, or there is none.
                    0 => before.get(1).or(before.first())?,
                    _ => before.iter().find(|(_, other)| *other == saved)?,
                };
                return Some(frame.0);
            }
        }
        None
    }

    fn row_of<'d, S>(&self, table: &Table, section: &S, address: u64) -> Result<Row, NoRow>
    where
        S: UnwindSection<Slice<'d>>,
        S::Offset: From<usize>,
    {
        let fde = self.find_entry(table, section, address)?;
        let mut context = self.context.borrow_mut();
        let row =
            fde.unwind_info_for_address(section, &table.bases, &mut context, address).map_err(NoRow::Malformed)?;
        let place = |e: &UnwindExpression<usize>| e.offset..e.offset.saturating_add(e.length);
        let return_register = fde.cie().return_address_register().0;
        Ok(Row {
            cfa: match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => Cfa::Register(register.0, *offset),
                CfaRule::Expression(e) => Cfa::Expression(place(e)),
            },
            rules: row
                .registers()
                .filter(|(register, _)| usize::from(register.0) < GENERAL || register.0 == return_register)
                .map(|(register, rule)| {
                    let rule = match rule {
                        RegisterRule::SameValue => Rule::Same,
                        RegisterRule::Offset(n) => Rule::SavedAt(*n),
                        RegisterRule::ValOffset(n) => Rule::CfaPlus(*n),
                        RegisterRule::Register(r) => Rule::Register(r.0),
                        RegisterRule::Expression(e) => Rule::SavedAtExpression(place(e)),
                        RegisterRule::ValExpression(e) => Rule::Expression(place(e)),
                        _ => Rule::Undefined,
                    };
                    (register.0, rule)
                })
                .collect(),
            return_register,
            signal: fde.is_signal_trampoline(),
            section: table.bytes.clone(),
            encoding: fde.cie().encoding(),
            endian: self.endian,
        })
    }

    fn find_entry<'d, S>(
        &self,
        table: &Table,
        section: &S,
        address: u64,
    ) -> Result<FrameDescriptionEntry<Slice<'d>>, NoRow>
    where
        S: UnwindSection<Slice<'d>>,
        S::Offset: From<usize>,
    {
        let fde_at = |offset: usize| {
            section.fde_from_offset(&table.bases, offset.into(), S::cie_from_offset).map_err(NoRow::Malformed)
        };
        let fde = match self.by_header(table, address).map(&fde_at) {
            Some(Ok(fde)) if fde.contains(address) => fde,
            // The header need not be right: it comes from the file as well.
            _ => {
                let index = table.index.get_or_init(|| index(section, &table.bases));
                let place = index.partition_point(|(range, _)| range.start <= address).checked_sub(1);
                let entry = place.map(|place| &index[place]).filter(|(range, _)| range.contains(&address));
                fde_at(entry.ok_or(NoRow::Uncovered)?.1)?
            }
        };
        let length = (fde.entry_len() as u64).saturating_add(fde.cie().entry_len() as u64);
        let left = self.left.get().checked_sub(length.saturating_sub(PER_ROW));
        // With nothing left, no more entries are looked for: finding them costs as much.
        self.left.set(left.unwrap_or(0));
        left.ok_or(NoRow::TooCostly)?;
        Ok(fde)
    }
}

impl std::fmt::Debug for CallFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallFrames").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Every entry of a section. The first malformed one ends the walk: what follows cannot be found without it.
fn index<'d, S: UnwindSection<Slice<'d>>>(section: &S, bases: &BaseAddresses) -> Vec<(Range<u64>, usize)> {
    let mut entries = section.entries(bases);
    let mut all = Vec::new();
    // Thousands of entries may share one of which the augmentation is as long as the section.
    let mut shared: HashMap<usize, gimli::Result<CommonInformationEntry<Slice<'d>>>> = HashMap::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let common = |section: &S, bases: &BaseAddresses, offset: S::Offset| {
            let known =
                shared.entry(UnwindOffset::into(offset)).or_insert_with(|| section.cie_from_offset(bases, offset));
            known.clone()
        };
        let Ok(fde) = partial.parse(common) else { continue };
        if let Some(end) = fde.initial_address().checked_add(fde.len()) {
            all.push((fde.initial_address()..end, fde.offset()));
        }
    }
    all.sort_by_key(|(range, _)| range.start);
    all
}
