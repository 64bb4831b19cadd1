//! Turning a resolved [`Layout`] into handles the readers use.
//!
//! Each runtime family declares its structs once, with the `structs!` macro. That one declaration is both the
//! schema the origins answer and the set of [`Slot`]s the reader decodes with, so the two cannot drift apart.

use std::ops::Range;
use std::rc::Rc;

use ompd_layout::{Field, Layout, Origin, Record, RecordRef};
use ompd_process::{Addr, Target};

use crate::model::{Common, Fact, Reason};
use crate::noted::note;
use crate::window::{self, Structs};

impl<T> From<Reason> for Fact<T> {
    fn from(why: Reason) -> Self {
        Fact::unknown(why)
    }
}

/// One field of one struct: where it lies and who says so, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    at: Option<(Field, Origin)>,
    name: &'static str,
}

impl Slot {
    pub(crate) fn bind(layout: &Layout, of: &str, path: &str, name: &'static str) -> Slot {
        let at = layout.field(of, path).ok().zip(layout.field_source(of, path).map(|s| s.origin));
        Slot { at, name }
    }

    pub(crate) fn field(&self) -> Result<Field, Reason> {
        self.at.map(|(f, _)| f).ok_or(Reason::NoLayout(self.name))
    }

    pub(crate) fn offset(&self) -> Result<u64, Reason> {
        self.field().map(|f| f.offset)
    }

    /// The origin of the offset; [`Origin::Profile`] is never claimed for a slot nobody gave.
    pub(crate) fn origin(&self) -> Option<Origin> {
        self.at.map(|(_, o)| o)
    }

    /// Where it lies in a struct that begins at `from` and ends at `end`; to the end if its width is not known.
    fn part(&self, from: u64, end: u64) -> Option<Range<u64>> {
        let field = self.field().ok()?;
        let start = from.saturating_add(field.offset);
        let width = if field.size == 0 { end } else { field.size };
        Some(start..start.saturating_add(width).min(end))
    }

    /// A fact read through this slot, or the reason why not.
    pub(crate) fn fact<T>(&self, value: Result<T, Reason>) -> Fact<T> {
        match (value, self.origin()) {
            (Ok(value), Some(origin)) => Fact::known(value, origin),
            (Ok(_), None) => Reason::NoLayout(self.name).into(),
            (Err(why), _) => why.into(),
        }
    }
}

/// Size of one struct, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeOf {
    bytes: Option<u64>,
    /// End of the last field known, in bytes from the start.
    extent: u64,
    name: &'static str,
}

impl SizeOf {
    pub(crate) fn bind(layout: &Layout, of: &str, name: &'static str) -> SizeOf {
        SizeOf { bytes: layout.size_of(of).ok(), extent: layout.extent_of(of), name }
    }

    /// Bytes to read to have all fields that are known.
    pub(crate) fn bytes_to_read(self) -> Result<u64, Reason> {
        match self.bytes {
            Some(bytes) => Ok(bytes),
            None if self.extent > 0 => Ok(self.extent),
            None => Err(Reason::NoLayout(self.name)),
        }
    }

    pub(crate) fn get(&self) -> Result<u64, Reason> {
        self.bytes.ok_or(Reason::NoLayout(self.name))
    }
}

/// A struct with its fields, whichever it is.
pub(crate) trait Fields {
    fn size(&self) -> SizeOf;

    fn slots(&self) -> Vec<&Slot>;
}

/// A struct of the target, read once; fields are decoded through [`Slot`]s. Clones share the bytes.
#[derive(Debug, Clone)]
pub(crate) struct StructData {
    record: Rc<Record>,
    /// Where the struct begins in the record: not at its start for a struct embedded in another.
    at: u64,
}

impl StructData {
    pub(crate) fn read(target: &dyn Target, addr: Addr, size: SizeOf) -> Result<StructData, Reason> {
        Ok(StructData { record: Rc::new(Record::read(target, addr, size.bytes_to_read()?)?), at: 0 })
    }

    /// The same of these fields alone, and of those that elements of embedded arrays have: the others cannot be decoded then.
    pub(crate) fn read_fields(
        target: &dyn Target,
        addr: Addr,
        size: SizeOf,
        fields: &[&Slot],
        embedded: &[(&Slot, u64, &dyn Fields)],
    ) -> Result<StructData, Reason> {
        let whole = size.bytes_to_read()?;
        let mut parts: Vec<Range<u64>> = fields.iter().filter_map(|slot| slot.part(0, whole)).collect();
        for (base, index, element) in embedded {
            let Ok(base) = base.offset() else { continue };
            let stride = if *index == 0 { Ok(0) } else { element.size().get() };
            let (Ok(stride), Ok(size)) = (stride, element.size().bytes_to_read()) else { continue };
            let from = base.saturating_add(stride.saturating_mul(*index));
            let end = from.saturating_add(size).min(whole);
            parts.extend(element.slots().into_iter().filter_map(|slot| slot.part(from, end)));
        }
        Ok(StructData { record: Rc::new(Record::read_parts(target, addr, whole, parts)?), at: 0 })
    }

    /// Announces that structs of this size will be read at all of these addresses.
    pub(crate) fn prefetch(target: &dyn Target, size: SizeOf, addrs: impl Iterator<Item = Addr>) {
        if let Ok(size) = size.bytes_to_read() {
            let ranges: Vec<(Addr, u64)> = addrs.filter(|a| !a.is_null()).map(|a| (a, size)).collect();
            target.prefetch(&ranges);
        }
    }

    /// Structs of `size` bytes at many addresses, read together: far cheaper than one by one. What lies close together is
    /// read in one piece. Each may fail by itself.
    pub(crate) fn read_each(target: &dyn Target, addrs: &[Addr], size: u64) -> Vec<Result<StructData, Reason>> {
        let mut structs = Structs::new();
        let mut views = Vec::with_capacity(addrs.len());
        let at_once = usize::try_from(window::MOST / size.max(1)).unwrap_or(usize::MAX).max(1);
        for addrs in addrs.chunks(at_once) {
            structs.read(target, addrs, size);
            views.extend((0..addrs.len()).map(|index| structs.get(index).map(|record| Part::new(record).to_view())));
        }
        views
    }

    /// The same without a share in the bytes.
    pub(crate) fn part(&self) -> Part<'_> {
        Part { record: self.record.borrowed(), at: self.at }
    }

    /// What follows `bytes` bytes on, as a struct of its own; `None` if it was not read along.
    pub(crate) fn after(&self, bytes: u64, size: SizeOf) -> Option<StructData> {
        let at = self.part().after(bytes, size)?.at;
        Some(StructData { record: Rc::clone(&self.record), at })
    }

    /// The struct of that size embedded at `base`: element `index` of an array, 0 for a single one. It shares this one's
    /// bytes.
    pub(crate) fn within(&self, base: &Slot, index: u64, size: SizeOf) -> Result<StructData, Reason> {
        let at = self.part().within(base, index, size)?.at;
        Ok(StructData { record: Rc::clone(&self.record), at })
    }

    pub(crate) fn uint(&self, slot: &Slot) -> Result<u64, Reason> {
        self.part().uint(slot)
    }

    pub(crate) fn int(&self, slot: &Slot) -> Result<i64, Reason> {
        self.part().int(slot)
    }

    pub(crate) fn u32(&self, slot: &Slot) -> Result<u32, Reason> {
        let value = self.uint(slot)?;
        u32::try_from(value).map_err(|_| Common::WholeNumber { slot: slot.name, value }.into())
    }

    /// A count or number the runtime keeps in a signed field and that is never negative.
    pub(crate) fn count(&self, slot: &Slot) -> Result<u32, Reason> {
        let value = self.int(slot)?;
        u32::try_from(value).map_err(|_| Common::NegativeNumber { slot: slot.name, value }.into())
    }

    pub(crate) fn ptr(&self, slot: &Slot) -> Result<Addr, Reason> {
        self.uint(slot).map(Addr)
    }

    pub(crate) fn flag(&self, slot: &Slot) -> Result<bool, Reason> {
        self.uint(slot).map(|v| v != 0)
    }

    pub(crate) fn addr(&self) -> Addr {
        self.record.addr.offset(self.at)
    }

    /// Address of a field in the target.
    pub(crate) fn addr_of(&self, slot: &Slot) -> Result<Addr, Reason> {
        let field = slot.field()?;
        note(self.addr(), field.offset, field.size, slot.name);
        Ok(self.addr().offset(field.offset))
    }

    pub(crate) fn all_zero(&self) -> bool {
        self.record.bytes().iter().all(|&b| b == 0)
    }
}

/// A struct of the target whose bytes are borrowed: of a million tasks few are kept, and none of the others is copied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    record: RecordRef<'a>,
    /// Where the struct begins in the record.
    at: u64,
}

impl<'a> Part<'a> {
    pub(crate) fn new(record: RecordRef<'a>) -> Part<'a> {
        Part { record, at: 0 }
    }

    pub(crate) fn to_view(self) -> StructData {
        StructData { record: Rc::new(self.record.to_record()), at: self.at }
    }

    pub(crate) fn addr(&self) -> Addr {
        self.record.addr().offset(self.at)
    }

    /// See [`StructData::after`].
    pub(crate) fn after(&self, bytes: u64, size: SizeOf) -> Option<Part<'a>> {
        let at = self.at.checked_add(bytes)?;
        let end = at.checked_add(size.bytes_to_read().ok()?)?;
        (end <= self.record.bytes().len() as u64).then_some(Part { record: self.record, at })
    }

    /// See [`StructData::within`].
    pub(crate) fn within(&self, base: &Slot, index: u64, size: SizeOf) -> Result<Part<'a>, Reason> {
        let size = if index == 0 { size.bytes_to_read()? } else { size.get()? };
        let at = self.at.saturating_add(base.offset()?).saturating_add(index.saturating_mul(size));
        if at.saturating_add(size) > self.record.bytes().len() as u64 {
            return Err(Reason::from(Common::OutsideStruct { slot: base.name }));
        }
        Ok(Part { record: self.record, at })
    }

    fn field(&self, slot: &Slot) -> Result<Field, Reason> {
        let mut field = slot.field()?;
        if field.size == 0 {
            return Err(Reason::NoWidth(slot.name));
        }
        note(self.addr(), field.offset, field.size, slot.name);
        field.offset = field.offset.saturating_add(self.at);
        Ok(field)
    }

    pub(crate) fn uint(&self, slot: &Slot) -> Result<u64, Reason> {
        Ok(self.record.uint(self.field(slot)?)?)
    }

    pub(crate) fn int(&self, slot: &Slot) -> Result<i64, Reason> {
        Ok(self.record.int(self.field(slot)?)?)
    }

    pub(crate) fn ptr(&self, slot: &Slot) -> Result<Addr, Reason> {
        self.uint(slot).map(Addr)
    }
}

/// Declares the structs of a family: schema and slots at once.
macro_rules! structs {
    ($(
        $ty:ident = $name:literal $(as [$($alias:literal),+])?, $meaning:literal {
            $( $field:ident: $path:literal, $what:literal; )*
        }
    )*) => {
        $(
            #[doc = $meaning]
            #[derive(Debug, Clone)]
            pub(crate) struct $ty {
                pub(crate) size: $crate::bind::SizeOf,
                $( #[doc = $what] pub(crate) $field: $crate::bind::Slot, )*
            }

            impl $crate::bind::Fields for $ty {
                fn size(&self) -> $crate::bind::SizeOf {
                    self.size
                }

                fn slots(&self) -> Vec<&$crate::bind::Slot> {
                    vec![$( &self.$field ),*]
                }
            }

            impl $ty {
                const SCHEMA: ompd_layout::StructSchema = ompd_layout::StructSchema {
                    name: $name,
                    dwarf_names: &[$($($alias),+)?],
                    meaning: $meaning,
                    fields: &[$( ompd_layout::FieldSchema { name: $path, meaning: $what } ),*],
                };

                pub(crate) fn bind(layout: &ompd_layout::Layout) -> Self {
                    $ty {
                        size: $crate::bind::SizeOf::bind(layout, $name, concat!("sizeof(", $name, ")")),
                        $( $field: $crate::bind::Slot::bind(layout, $name, $path, concat!($name, ".", $path)), )*
                    }
                }
            }
        )*

        const STRUCTS: &[ompd_layout::StructSchema] = &[$( $ty::SCHEMA ),*];
    };
}
pub(crate) use structs;
