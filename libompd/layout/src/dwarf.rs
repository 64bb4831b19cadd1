//! Layouts from debug information.
//!
//! Only what the schema names is resolved. Units are walked in file order, and only the children of each unit's root
//! are read. The walk ends as soon as every struct and global is found. For a large C++ runtime that takes a few
//! milliseconds. Debug information is as hostile as any other file, so type chains are capped in depth. The work as a
//! whole is capped in proportion to the size of the sections.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue as Value, DebugAbbrev, DebugAbbrevOffset, DebugAddrBase, DebugStrOffsetsBase, DwTag,
    DwarfFileType, EndianSlice, Operation, Reader as _, RunTimeEndian, Section as _, UnitType, constants as dw,
};
use ompd_process::ByteOrder;
use ompd_process::elf::ElfFile;

use crate::facts::{BitRange, Facts, Field};
use crate::schema::{FieldSchema, Schema, StructSchema};

/// Typedefs, qualifiers, anonymous members and wrappers followed below one member.
const MAX_DEPTH: u32 = 24;
/// Entries and attributes read while resolving types. All structs of a large runtime need some ten thousand.
const MAX_STEPS: u64 = 4_000_000;
/// The same while looking through the units, for each byte of debug information. An entry takes one at least, and so do
/// nearly all attributes; those without any could otherwise make a short file a long one.
const MAX_STEPS_PER_BYTE: u64 = 4;
/// Bytes of a name that are looked through in the time of one step.
const NAME_BYTES_PER_STEP: u64 = 64;

/// Why debug information gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DwarfError {
    /// There is no `.debug_info` section, or it is empty.
    #[error("the file has no debug information")]
    Absent,
    /// The types are in `.dwo` files, which are not read.
    #[error("the debug information is split: the types are in .dwo files")]
    Split,
    /// The sections contradict the DWARF format.
    #[error("malformed debug information: {0}")]
    Malformed(#[from] gimli::Error),
    /// A limit against hostile input was hit.
    #[error("the debug information is too deep or too large to be that of a runtime")]
    TooComplex,
}

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
type Unit<'d> = gimli::Unit<Slice<'d>>;
type UnitHeader<'d> = gimli::UnitHeader<Slice<'d>>;
type Cursor<'a, 'd> = gimli::EntriesCursor<'a, Slice<'d>>;
type Entry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

/// Answers as much of `schema` as the debug information can.
///
/// `section` gives the (decompressed) contents of a section by name, `order` is the byte order of the file. Sections of
/// a relocatable object have to be relocated first. A struct is filed under its schema name. The first unit in file
/// order with a *definition* under any of its names counts, because runtimes compile the same header into every unit.
/// Within a unit the name that the schema lists first counts. Field sizes are those of the member's type: of the whole
/// array for arrays, 0 for flexible ones; of the storage unit for bit-fields.
///
/// # Errors
/// [`DwarfError`]. What is simply not described is left out of the facts instead.
pub fn extract<'s>(
    section: impl Fn(&str) -> Option<Cow<'s, [u8]>>,
    order: ByteOrder,
    schema: &Schema,
) -> Result<Facts, DwarfError> {
    extract_with_supplement(section, None, order, schema)
}

/// Contents of a section by name.
type Sections<'f, 's> = &'f dyn Fn(&str) -> Option<Cow<'s, [u8]>>;

/// [`extract`] where part of the debug information is in a supplementary file (`.gnu_debugaltlink`), whose sections
/// `supplement` gives. Without it, what is described or named there counts as not described.
///
/// # Errors
/// As [`extract`].
pub fn extract_with_supplement<'s>(
    section: impl Fn(&str) -> Option<Cow<'s, [u8]>>,
    supplement: Option<Sections<'_, 's>>,
    order: ByteOrder,
    schema: &Schema,
) -> Result<Facts, DwarfError> {
    let load = |section: Sections<'_, 's>| {
        gimli::DwarfSections::load(|id: gimli::SectionId| -> Result<Cow<'s, [u8]>, gimli::Error> {
            Ok(section(id.name()).unwrap_or(Cow::Borrowed(&[])))
        })
    };
    let sections = load(&section)?;
    let supplement = supplement.map(load).transpose()?;
    let endian = match order {
        ByteOrder::Little => RunTimeEndian::Little,
        ByteOrder::Big => RunTimeEndian::Big,
    };
    let dwarf = sections.borrow_with_sup(supplement.as_ref(), |bytes| EndianSlice::new(bytes, endian));
    Extractor::new(&dwarf, order)?.run(schema)
}

/// [`extract`] from the DWARF of an ELF file, or of the separate debug file found for it, with the supplementary file
/// that refers to. [`ElfFile::missing_supplement`] says if the last one is needed and not at hand.
///
/// # Errors
/// As [`extract`].
pub fn extract_elf(file: &ElfFile, schema: &Schema) -> Result<Facts, DwarfError> {
    let companion = if file.has_dwarf() { None } else { file.debug_companion() };
    let file = companion.as_deref().unwrap_or(file);
    let supplement = file.debug_supplement();
    let more = supplement.as_deref().map(|s| |name: &str| s.section(name));
    let more = more.as_ref().map(|section| section as Sections<'_, '_>);
    extract_with_supplement(|name| file.section(name), more, file.arch().byte_order, schema)
}

/// An entry: unit by index, offset within it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Type {
    unit: usize,
    at: gimli::UnitOffset,
}

/// A member found: where it lies in the outer struct, and its type if it is not a bit-field.
struct Member {
    field: Field,
    of_type: Option<Type>,
}

/// Where a table of abbreviations begins, and what was read there.
struct AbbreviationTable {
    /// In the supplementary file?, at which offset.
    place: (bool, usize),
    read: OnceCell<Arc<Abbreviations>>,
}

struct Extractor<'a, 'd> {
    dwarf: &'a gimli::Dwarf<Slice<'d>>,
    order: ByteOrder,
    /// Units of the file, its type units, then those of the supplementary file; each by ascending offset.
    headers: Vec<UnitHeader<'d>>,
    /// Which of them are units in `.debug_info` of the file, and which in that of the supplementary file.
    own: Range<usize>,
    supplementary: Range<usize>,
    parsed: Vec<OnceCell<Unit<'d>>>,
    /// All tables of abbreviations, in order.
    abbreviations: Vec<AbbreviationTable>,
    /// Types in units of their own, by signature.
    type_units: HashMap<u64, Type>,
    steps_left: Cell<u64>,
}

impl<'a, 'd> Extractor<'a, 'd> {
    fn new(dwarf: &'a gimli::Dwarf<Slice<'d>>, order: ByteOrder) -> Result<Self, DwarfError> {
        let mut headers = Vec::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            headers.push(header);
        }
        let own = 0..headers.len();
        let mut types = dwarf.type_units();
        while let Some(header) = types.next()? {
            headers.push(header);
        }
        let before = headers.len();
        if let Some(supplement) = dwarf.sup().filter(|_| before > 0) {
            let mut units = supplement.units();
            while let Some(header) = units.next()? {
                headers.push(header);
            }
        }
        let supplementary = before..headers.len();
        if headers.is_empty() {
            return Err(DwarfError::Absent);
        }
        let parsed = headers.iter().map(|_| OnceCell::new()).collect();
        let place = |(n, h): (usize, &UnitHeader<'d>)| (supplementary.contains(&n), h.debug_abbrev_offset().0);
        let places: BTreeSet<(bool, usize)> = headers.iter().enumerate().map(place).collect();
        let abbreviations =
            places.into_iter().map(|place| AbbreviationTable { place, read: OnceCell::new() }).collect();
        let mut type_units = HashMap::new();
        for (unit, header) in headers.iter().enumerate() {
            if let UnitType::Type { type_signature, type_offset } = header.type_() {
                type_units.entry(type_signature.0).or_insert(Type { unit, at: type_offset });
            }
        }
        let of_file = |d: &gimli::Dwarf<Slice<'d>>| d.debug_info.reader().len() + d.debug_types.reader().len();
        let bytes = of_file(dwarf) + dwarf.sup().map_or(0, of_file);
        let steps_left = Cell::new(MAX_STEPS + MAX_STEPS_PER_BYTE * bytes as u64);
        Ok(Extractor { dwarf, order, headers, own, supplementary, parsed, abbreviations, type_units, steps_left })
    }

    fn run(&self, schema: &Schema) -> Result<Facts, DwarfError> {
        let mut facts = Facts::default();
        let mut structs: Vec<&StructSchema> = schema.structs.iter().collect();
        let mut globals: BTreeSet<&str> = schema.globals.iter().map(|g| g.name).collect();
        let mut split = false;
        // Those of the supplementary file join when a unit imports them.
        let mut queue: VecDeque<usize> = (0..self.supplementary.start).collect();
        let mut queued: BTreeSet<usize> = BTreeSet::new();
        while let Some(index) = queue.pop_front().filter(|_| !(structs.is_empty() && globals.is_empty())) {
            split |= self.unit(index)?.dwo_name()?.is_some();
            let imported = self.scan_unit(index, &mut structs, &mut globals, &mut facts)?;
            queue.extend(imported.into_iter().filter(|i| self.supplementary.contains(i) && queued.insert(*i)));
        }
        if split && facts.sizes.is_empty() && facts.fields.is_empty() && !schema.structs.is_empty() {
            return Err(DwarfError::Split);
        }
        Ok(facts)
    }

    /// Looks at the root's children of one unit; what is found is resolved and struck off the lists. Gives the units
    /// it imports.
    fn scan_unit(
        &self,
        index: usize,
        structs: &mut Vec<&StructSchema>,
        globals: &mut BTreeSet<&str>,
        facts: &mut Facts,
    ) -> Result<Vec<usize>, DwarfError> {
        let unit = self.unit(index)?;
        let mut imported = Vec::new();
        // Per struct: the best name seen in this unit (names are tried in order) and where.
        let mut seen: Vec<Option<(usize, Type)>> = vec![None; structs.len()];
        let mut cursor = unit.entries();
        if !cursor.next_entry()? || !cursor.next_entry()? {
            return Ok(imported);
        }
        while let Some(entry) = cursor.current() {
            self.step(entry)?;
            match entry.tag() {
                dw::DW_TAG_structure_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_typedef
                | dw::DW_TAG_base_type
                | dw::DW_TAG_enumeration_type
                    if !is_flagged(entry, dw::DW_AT_declaration) =>
                {
                    if let Some(name) = self.name(index, entry)? {
                        for (wanted, best) in structs.iter().zip(&mut seen) {
                            let rank = names(wanted).position(|n| n.as_bytes() == name);
                            let better = rank.is_some_and(|r| best.is_none_or(|(b, _)| r < b));
                            if let (Some(rank), true) = (rank, better) {
                                *best = Some((rank, Type { unit: index, at: entry.offset() }));
                            }
                        }
                    }
                }
                // Addresses are those of one program, and a supplementary file is of several.
                dw::DW_TAG_variable if !globals.is_empty() && !self.supplementary.contains(&index) => {
                    if let Some((name, addr)) = self.global(index, unit, entry, globals)? {
                        globals.remove(name.as_str());
                        facts.globals.insert(name, addr);
                    }
                }
                dw::DW_TAG_imported_unit => {
                    let unit = self.reference(index, entry.attr_value(dw::DW_AT_import))?;
                    imported.extend(unit.map(|t| t.unit));
                }
                _ => {}
            }
            self.sibling(&mut cursor)?;
        }
        let mut done = Vec::new();
        for (wanted, best) in structs.iter().zip(seen) {
            if let Some((_, ty)) = best
                && self.struct_facts(wanted, ty, facts)?
            {
                done.push(wanted.name);
            }
        }
        structs.retain(|s| !done.contains(&s.name));
        Ok(imported)
    }

    /// Files size and fields of one struct. False if the name turned out to be a declaration only.
    fn struct_facts(&self, wanted: &StructSchema, ty: Type, facts: &mut Facts) -> Result<bool, DwarfError> {
        let Some((ty, entry)) = self.strip(ty)? else { return Ok(false) };
        if is_flagged(&entry, dw::DW_AT_declaration) {
            return Ok(false);
        }
        let Some(size) = self.size(ty, 0)? else { return Ok(false) };
        facts.sizes.insert(wanted.name.to_owned(), size);
        for FieldSchema { name, .. } in wanted.fields {
            if let Some(field) = self.path(ty, name)? {
                facts.set_field(wanted.name, name, field);
            }
        }
        Ok(true)
    }

    /// Follows a dotted path of members.
    fn path(&self, root: Type, path: &str) -> Result<Option<Field>, DwarfError> {
        let mut at = Some(root);
        let mut found: Option<Field> = None;
        for name in path.split('.') {
            let Some(ty) = at else { return Ok(None) };
            let Some(member) = self.member(ty, name.as_bytes(), 0)? else { return Ok(None) };
            let base = found.map_or(0, |f| f.offset);
            let Some(offset) = base.checked_add(member.field.offset) else { return Ok(None) };
            found = Some(Field { offset, ..member.field });
            at = member.of_type;
        }
        Ok(found)
    }

    /// The member `name` of a struct, looking through anonymous members, bases and one-member wrappers.
    fn member(&self, ty: Type, name: &[u8], depth: u32) -> Result<Option<Member>, DwarfError> {
        if depth > MAX_DEPTH {
            return Err(DwarfError::TooComplex);
        }
        let Some((ty, _)) = self.strip(ty)? else { return Ok(None) };
        let members = self.members(ty)?;
        let unit = self.unit(ty.unit)?;
        for entry in &members {
            if entry.tag() == dw::DW_TAG_member && self.name(ty.unit, entry)?.is_some_and(|n| n == name) {
                return self.describe(ty.unit, entry);
            }
        }
        let single = members.len() == 1;
        for entry in &members {
            // A wrapper's only member is looked into although it has a name.
            let nameless = entry.tag() == dw::DW_TAG_inheritance || self.name(ty.unit, entry)?.is_none();
            if !(nameless || single) || entry.has_attr(dw::DW_AT_bit_size) {
                continue;
            }
            let (Some(inner), Some(offset)) = (self.type_of(ty.unit, entry)?, self.location(unit, entry)?) else {
                continue;
            };
            if let Some(mut member) = self.member(inner, name, depth + 1)? {
                let Some(offset) = offset.checked_add(member.field.offset) else { return Ok(None) };
                member.field.offset = offset;
                return Ok(Some(member));
            }
        }
        Ok(None)
    }

    /// Data members and bases of a struct or union, in order; static members are left out.
    fn members(&self, ty: Type) -> Result<Vec<Entry<'d>>, DwarfError> {
        let unit = self.unit(ty.unit)?;
        let mut found = Vec::new();
        let mut cursor = unit.entries_at_offset(ty.at)?;
        if !cursor.next_entry()? || !cursor.current().is_some_and(|e| e.has_children() && is_compound(e.tag())) {
            return Ok(found);
        }
        cursor.next_entry()?;
        while let Some(entry) = cursor.current() {
            self.step(entry)?;
            let data = entry.tag() == dw::DW_TAG_member || entry.tag() == dw::DW_TAG_inheritance;
            if data && !is_flagged(entry, dw::DW_AT_declaration) && !is_flagged(entry, dw::DW_AT_external) {
                found.push(entry.clone());
            }
            self.sibling(&mut cursor)?;
        }
        Ok(found)
    }

    /// Offset, size and bits of a member.
    fn describe(&self, index: usize, entry: &Entry<'d>) -> Result<Option<Member>, DwarfError> {
        let unit = self.unit(index)?;
        let Some(ty) = self.type_of(index, entry)? else { return Ok(None) };
        if let Some(width) = constant(entry, dw::DW_AT_bit_size) {
            let field = self.bit_field(unit, entry, ty, width)?;
            return Ok(field.map(|field| Member { field, of_type: None }));
        }
        let Some(offset) = self.location(unit, entry)? else { return Ok(None) };
        let size = self.size(ty, 0)?.unwrap_or(0);
        Ok(Some(Member { field: Field { offset, size, bits: None }, of_type: Some(ty) }))
    }

    /// Both ways DWARF describes bit-fields (DWARF 5, section 5.7.6; DWARF 3, section 5.6.6).
    fn bit_field(&self, unit: &Unit<'d>, entry: &Entry<'d>, ty: Type, width: u64) -> Result<Option<Field>, DwarfError> {
        let storage = match constant(entry, dw::DW_AT_byte_size) {
            Some(size) => Some(size),
            None => self.size(ty, 0)?,
        };
        let Some(size @ 1..=8) = storage else { return Ok(None) };
        let unit_bits = size * 8;
        if width == 0 || width > unit_bits {
            return Ok(None);
        }
        // Counted from the first bit in memory order: the least significant one on little-endian machines only.
        let (offset, first) = if let Some(bit) = constant(entry, dw::DW_AT_data_bit_offset) {
            (bit / unit_bits * size, bit % unit_bits)
        } else {
            let Some(offset) = self.location(unit, entry)? else { return Ok(None) };
            // Numbered from the most significant bit, whatever the byte order.
            let from_top = signed(entry, dw::DW_AT_bit_offset).unwrap_or(0);
            let Some(shift) = (unit_bits as i64).checked_sub(width as i64).and_then(|s| s.checked_sub(from_top)) else {
                return Ok(None);
            };
            let Ok(shift) = u64::try_from(shift) else { return Ok(None) };
            return Ok(bit_range(offset, size, shift, width));
        };
        let shift = match self.order {
            ByteOrder::Little => Some(first),
            ByteOrder::Big => unit_bits.checked_sub(first + width),
        };
        Ok(shift.and_then(|shift| bit_range(offset, size, shift, width)))
    }

    /// Offset of a member in its struct; `None` if it is not a constant (virtual bases).
    fn location(&self, unit: &Unit<'d>, entry: &Entry<'d>) -> Result<Option<u64>, DwarfError> {
        let expression = match entry.attr_value(dw::DW_AT_data_member_location) {
            None => return Ok(Some(0)), // members of unions
            Some(Value::Exprloc(expression)) => expression,
            Some(Value::Block(bytes)) => gimli::Expression(bytes),
            Some(value) => return Ok(value.udata_value()),
        };
        // DWARF 2 producers, and ICC long after, write the constant as an expression.
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next()?;
        Ok(match (first, operations.next()?) {
            (Some(Operation::PlusConstant { value }), None) => Some(value),
            _ => None,
        })
    }

    /// Size of a type in bytes; 0 for flexible arrays, `None` for what has none (functions, declarations).
    fn size(&self, ty: Type, depth: u32) -> Result<Option<u64>, DwarfError> {
        if depth > MAX_DEPTH {
            return Err(DwarfError::TooComplex);
        }
        let Some((ty, entry)) = self.strip(ty)? else { return Ok(None) };
        if let Some(size) = constant(&entry, dw::DW_AT_byte_size) {
            return Ok(Some(size));
        }
        match entry.tag() {
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type
            | dw::DW_TAG_ptr_to_member_type => Ok(Some(u64::from(self.headers[ty.unit].address_size()))),
            dw::DW_TAG_array_type => {
                let Some(element) = self.type_of(ty.unit, &entry)? else { return Ok(None) };
                let Some(element) = self.size(element, depth + 1)? else { return Ok(None) };
                Ok(self.array_count(ty)?.and_then(|count| count.checked_mul(element)))
            }
            _ => Ok(None),
        }
    }

    /// Number of elements over all dimensions; 0 if one has no bound.
    fn array_count(&self, array: Type) -> Result<Option<u64>, DwarfError> {
        let mut cursor = self.unit(array.unit)?.entries_at_offset(array.at)?;
        let mut total = Some(1u64);
        if !cursor.next_entry()? || !cursor.current().is_some_and(Entry::has_children) {
            return Ok(Some(0));
        }
        cursor.next_entry()?;
        while let Some(entry) = cursor.current() {
            self.step(entry)?;
            if entry.tag() == dw::DW_TAG_subrange_type {
                let count = constant(entry, dw::DW_AT_count)
                    .or_else(|| constant(entry, dw::DW_AT_upper_bound).map(|last| last.wrapping_add(1)))
                    .unwrap_or(0);
                total = total.and_then(|t| t.checked_mul(count));
            }
            self.sibling(&mut cursor)?;
        }
        Ok(total)
    }

    /// Looks through typedefs, qualifiers and stand-ins.
    fn strip(&self, ty: Type) -> Result<Option<(Type, Entry<'d>)>, DwarfError> {
        let mut ty = ty;
        for _ in 0..MAX_DEPTH {
            let entry = self.unit(ty.unit)?.entry(ty.at)?;
            self.step(&entry)?;
            match entry.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => match self.type_of(ty.unit, &entry)? {
                    Some(next) => ty = next,
                    None => return Ok(None),
                },
                // A stand-in for a type that is defined in a type unit of its own.
                _ => match self.reference(ty.unit, entry.attr_value(dw::DW_AT_signature))? {
                    Some(next) => ty = next,
                    None => return Ok(Some((ty, entry))),
                },
            }
        }
        Err(DwarfError::TooComplex)
    }

    /// The type an entry refers to, in whatever unit it lies.
    fn type_of(&self, index: usize, entry: &Entry<'d>) -> Result<Option<Type>, DwarfError> {
        self.reference(index, entry.attr_value(dw::DW_AT_type))
    }

    fn reference(&self, index: usize, value: Option<Value<Slice<'d>>>) -> Result<Option<Type>, DwarfError> {
        Ok(match value {
            Some(Value::UnitRef(at)) => Some(Type { unit: index, at }),
            Some(Value::DebugInfoRef(offset)) => {
                let of_supplement = self.supplementary.contains(&index);
                self.entry_at(if of_supplement { &self.supplementary } else { &self.own }, offset)
            }
            Some(Value::DebugInfoRefSup(offset)) => {
                let own = !self.supplementary.contains(&index);
                own.then(|| self.entry_at(&self.supplementary, offset)).flatten()
            }
            Some(Value::DebugTypesRef(signature)) => self.type_units.get(&signature.0).copied(),
            _ => None,
        })
    }

    /// The entry at an offset of the `.debug_info` that the given units are those of.
    fn entry_at(&self, units: &Range<usize>, offset: gimli::DebugInfoOffset) -> Option<Type> {
        let headers = self.headers.get(units.clone())?;
        let after = headers.partition_point(|h| h.debug_info_offset().is_some_and(|start| start <= offset));
        let header = headers.get(after.checked_sub(1)?)?;
        Some(Type { unit: units.start + after - 1, at: offset.to_unit_offset(header)? })
    }

    /// The sections that the unit is in.
    fn dwarf_of(&self, index: usize) -> &'a gimli::Dwarf<Slice<'d>> {
        let supplement = self.dwarf.sup().filter(|_| self.supplementary.contains(&index));
        supplement.unwrap_or(self.dwarf)
    }

    /// Name and file address of a variable, if it is one of `wanted` and lies at a fixed address.
    fn global(
        &self,
        index: usize,
        unit: &Unit<'d>,
        entry: &Entry<'d>,
        wanted: &BTreeSet<&str>,
    ) -> Result<Option<(String, u64)>, DwarfError> {
        let Some(Value::Exprloc(expression)) = entry.attr_value(dw::DW_AT_location) else { return Ok(None) };
        // C++ definitions refer to the declaration, and those of LTO to the unit compiled first, for the name.
        let mut name = self.name(index, entry)?;
        let mut at = (index, entry.clone());
        for _ in 0..3 {
            let origin = at.1.attr_value(dw::DW_AT_specification).or(at.1.attr_value(dw::DW_AT_abstract_origin));
            let Some(named) = self.reference(at.0, origin)?.filter(|_| name.is_none()) else { break };
            let unit = self.unit(named.unit)?;
            at = (named.unit, unit.entry(named.at)?);
            name = self.name(at.0, &at.1)?;
        }
        let Some(&name) = name.and_then(|n| wanted.iter().find(|w| w.as_bytes() == n)) else { return Ok(None) };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next()?;
        let addr = match (first, operations.next()?) {
            (Some(Operation::Address { address }), None) => address,
            (Some(Operation::AddressIndex { index }), None) => self.dwarf.address(unit, index)?,
            _ => return Ok(None), // thread-local, or optimised away
        };
        Ok(Some((name.to_owned(), addr)))
    }

    fn name(&self, index: usize, entry: &Entry<'d>) -> Result<Option<&'d [u8]>, DwarfError> {
        match entry.attr_value(dw::DW_AT_name) {
            // The supplementary file is not at hand: as if nameless would be wrong, so no match at all.
            Some(Value::DebugStrRefSup(_)) if self.dwarf_of(index).sup().is_none() => Ok(Some(b"")),
            Some(value) => {
                let name = self.dwarf_of(index).attr_string(self.unit(index)?, value)?.slice();
                self.steps(name.len() as u64 / NAME_BYTES_PER_STEP)?;
                Ok(Some(name))
            }
            None => Ok(None),
        }
    }

    fn unit(&self, index: usize) -> Result<&Unit<'d>, DwarfError> {
        if let Some(unit) = self.parsed[index].get() {
            return Ok(unit);
        }
        let unit = self.parse(index)?;
        Ok(self.parsed[index].get_or_init(|| unit))
    }

    /// Does what `gimli::Unit::new` does, without names and line tables. Nothing here needs these. One long table
    /// that many units share would be read and kept for each unit.
    fn parse(&self, index: usize) -> Result<Unit<'d>, DwarfError> {
        let header = self.headers[index];
        let encoding = header.encoding();
        let mut unit = Unit {
            abbreviations: self.abbreviations_of(index)?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, DwarfFileType::Main),
            addr_base: DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase(0),
            rnglists_base: gimli::DebugRngListsBase(0),
            line_program: None,
            dwo_id: None,
            header,
        };
        let mut cursor = unit.entries();
        cursor.next_entry()?;
        let root = cursor.current().ok_or(gimli::Error::MissingUnitDie)?.clone();
        self.step(&root)?;
        for attribute in root.attrs() {
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_str_offsets_base, Value::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base, Value::DebugAddrBase(base)) => unit.addr_base = base,
                _ => {}
            }
        }
        Ok(unit)
    }

    /// The abbreviations of a unit. They end where those of another unit begin, at the latest: all together they are
    /// read once, and not once for each unit.
    fn abbreviations_of(&self, index: usize) -> Result<Arc<Abbreviations>, DwarfError> {
        let wanted = (self.supplementary.contains(&index), self.headers[index].debug_abbrev_offset().0);
        let number = self.abbreviations.partition_point(|table| table.place < wanted);
        let read = &self.abbreviations[number].read;
        if let Some(known) = read.get() {
            return Ok(Arc::clone(known));
        }
        let section = self.dwarf_of(index).debug_abbrev.reader();
        let next = self.abbreviations.get(number + 1).filter(|next| next.place.0 == wanted.0);
        let end = next.map_or(section.len(), |next| section.len().min(next.place.1));
        let bytes = section.slice().get(wanted.1..end).ok_or(gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(0)))?;
        let new = Arc::new(DebugAbbrev::new(bytes, section.endian()).abbreviations(DebugAbbrevOffset(0))?);
        Ok(Arc::clone(read.get_or_init(|| new)))
    }

    /// Moves on to the next entry of the same parent, as `next_sibling` does, but counts what is read on the way.
    fn sibling(&self, cursor: &mut Cursor<'_, 'd>) -> Result<(), DwarfError> {
        let Some(entry) = cursor.current() else { return Ok(()) };
        let depth = entry.depth();
        let skips = |at: gimli::UnitOffset| at.0 > entry.offset().0;
        if matches!(entry.attr_value(dw::DW_AT_sibling), Some(Value::UnitRef(at)) if skips(at)) {
            cursor.next_sibling()?;
            return Ok(());
        }
        while cursor.next_entry()? && cursor.depth() != depth {
            if let Some(entry) = cursor.current() {
                self.step(entry)?;
            }
        }
        Ok(())
    }

    fn step(&self, entry: &Entry<'d>) -> Result<(), DwarfError> {
        self.steps(1 + entry.attrs().len() as u64)
    }

    fn steps(&self, count: u64) -> Result<(), DwarfError> {
        let left = self.steps_left.get().checked_sub(count).ok_or(DwarfError::TooComplex)?;
        self.steps_left.set(left);
        Ok(())
    }
}

fn names(of: &StructSchema) -> impl Iterator<Item = &'static str> {
    let own = if of.dwarf_names.is_empty() { Some(of.name) } else { None };
    of.dwarf_names.iter().copied().chain(own)
}

fn is_compound(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_class_type)
}

fn is_flagged(entry: &Entry<'_>, name: gimli::DwAt) -> bool {
    matches!(entry.attr_value(name), Some(Value::Flag(true)))
}

fn constant(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u64> {
    entry.attr(name)?.udata_value()
}

fn signed(entry: &Entry<'_>, name: gimli::DwAt) -> Option<i64> {
    entry.attr(name)?.sdata_value()
}

fn bit_range(offset: u64, size: u64, shift: u64, width: u64) -> Option<Field> {
    if shift.checked_add(width)? > size * 8 {
        return None;
    }
    Some(Field { offset, size, bits: Some(BitRange { shift: shift as u8, width: width as u8 }) })
}
