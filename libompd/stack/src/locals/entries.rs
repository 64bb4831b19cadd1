//! Entries of debug information and the references between them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use gimli::{AttributeValue, DebugInfoOffset, DwAt, Dwarf, UnitHeader, UnitOffset};

use crate::reader::Metered;

/// Entries followed from an entry to the one that completes it. Three are a concrete instance of an inlined function,
/// its abstract origin, and the declaration that the origin specifies.
const MAX_ORIGINS: usize = 4;
/// Bytes of a name. What is longer is cut.
const MAX_NAME: usize = 512;
/// Address ranges of one entry.
const MAX_RANGES: usize = 4096;

pub(crate) type Unit = gimli::Unit<Metered>;
pub(crate) type Entry = gimli::DebuggingInformationEntry<Metered>;
pub(crate) type Value = AttributeValue<Metered>;

/// Where an entry is.
#[derive(Debug, Clone)]
pub(crate) struct DieRef {
    pub(crate) unit: Rc<Unit>,
    pub(crate) offset: UnitOffset,
}

impl DieRef {
    /// The same for the same entry, whoever refers to it: its offset in `.debug_info`.
    pub(crate) fn id(&self) -> usize {
        self.offset.to_debug_info_offset(&self.unit.header).map_or(usize::MAX, |offset| offset.0)
    }
}

/// The entries of one file. Units are parsed when they are first asked for.
pub(crate) struct Entries {
    pub(crate) dwarf: Arc<Dwarf<Metered>>,
    /// Where each unit's entries lie in the section, sorted.
    headers: OnceCell<Vec<(Range<usize>, UnitHeader<Metered>)>>,
    units: RefCell<HashMap<usize, Option<Rc<Unit>>>>,
}

impl Entries {
    pub(crate) fn new(dwarf: Arc<Dwarf<Metered>>) -> Entries {
        Entries { dwarf, headers: OnceCell::new(), units: RefCell::default() }
    }

    fn headers(&self) -> &[(Range<usize>, UnitHeader<Metered>)] {
        self.headers.get_or_init(|| {
            let mut all = Vec::new();
            let mut units = self.dwarf.units();
            while let Ok(Some(header)) = units.next() {
                let Some(start) = header.debug_info_offset() else { continue };
                all.push((start.0..start.0.saturating_add(header.length_including_self()), header));
            }
            all
        })
    }

    /// Where the units begin in `.debug_info`.
    pub(crate) fn unit_starts(&self) -> Vec<usize> {
        self.headers().iter().map(|(range, _)| range.start).collect()
    }

    /// The unit that contains an offset of `.debug_info`.
    pub(crate) fn unit_at(&self, offset: usize) -> Option<Rc<Unit>> {
        let headers = self.headers();
        let place = headers.partition_point(|(range, _)| range.start <= offset).checked_sub(1)?;
        let (range, header) = headers.get(place).filter(|(range, _)| range.contains(&offset))?;
        let parse = || self.dwarf.unit(header.clone()).ok().map(Rc::new);
        self.units.borrow_mut().entry(range.start).or_insert_with(parse).clone()
    }

    pub(crate) fn read(&self, place: &DieRef) -> Option<Entry> {
        place.unit.entry(place.offset).ok()
    }

    /// The entry an attribute refers to. Entries of supplementary files and type units are not followed.
    pub(crate) fn follow(&self, unit: &Rc<Unit>, value: &Value) -> Option<DieRef> {
        match value {
            AttributeValue::UnitRef(offset) => {
                offset.is_in_bounds(&unit.header).then(|| DieRef { unit: Rc::clone(unit), offset: *offset })
            }
            AttributeValue::DebugInfoRef(DebugInfoOffset(at)) => {
                let unit = self.unit_at(*at)?;
                let offset = DebugInfoOffset(*at).to_unit_offset(&unit.header)?;
                Some(DieRef { unit, offset })
            }
            _ => None,
        }
    }

    /// The attribute of an entry, or of what that completes; with the unit its references count from.
    pub(crate) fn attribute(&self, place: &DieRef, entry: &Entry, name: DwAt) -> Option<(Rc<Unit>, Value)> {
        if let Some(value) = entry.attr_value(name) {
            return Some((Rc::clone(&place.unit), value));
        }
        let mut at = self.origin(place, entry);
        for _ in 0..MAX_ORIGINS {
            let place = at?;
            let entry = self.read(&place)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((place.unit, value));
            }
            at = self.origin(&place, &entry);
        }
        None
    }

    /// The entry that says of this one what it does not say itself.
    pub(crate) fn origin(&self, place: &DieRef, entry: &Entry) -> Option<DieRef> {
        let value =
            entry.attr_value(gimli::DW_AT_abstract_origin).or_else(|| entry.attr_value(gimli::DW_AT_specification))?;
        self.follow(&place.unit, &value)
    }

    /// The name of an entry or of what it completes.
    pub(crate) fn name(&self, place: &DieRef, entry: &Entry) -> Option<String> {
        self.text(place, entry, gimli::DW_AT_name)
    }

    /// An attribute that is a text.
    pub(crate) fn text(&self, place: &DieRef, entry: &Entry, name: DwAt) -> Option<String> {
        let (unit, value) = self.attribute(place, entry, name)?;
        let text = self.dwarf.attr_string(&unit, value).ok()?;
        let bytes = gimli::Reader::to_slice(&text).ok()?;
        Some(String::from_utf8_lossy(bytes.get(..MAX_NAME).unwrap_or(&bytes)).into_owned())
    }

    /// The entry an attribute of an entry, or of what that completes, refers to.
    pub(crate) fn target(&self, place: &DieRef, entry: &Entry, name: DwAt) -> Option<DieRef> {
        let (unit, value) = self.attribute(place, entry, name)?;
        self.follow(&unit, &value)
    }

    pub(crate) fn flag(&self, place: &DieRef, entry: &Entry, name: DwAt) -> bool {
        matches!(self.attribute(place, entry, name), Some((_, AttributeValue::Flag(true))))
    }

    /// Addresses of the file that an entry's code lies at. (DWARF 5, 2.17)
    pub(crate) fn ranges(&self, unit: &Unit, entry: &Entry) -> Vec<Range<u64>> {
        if let Some(value) = entry.attr_value(gimli::DW_AT_ranges) {
            let Ok(Some(mut list)) = self.dwarf.attr_ranges(unit, value) else { return Vec::new() };
            let mut all = Vec::new();
            while let Ok(Some(range)) = list.next() {
                if all.len() == MAX_RANGES {
                    break;
                }
                all.push(range.begin..range.end);
            }
            return all;
        }
        let address = |value| self.dwarf.attr_address(unit, value).ok().flatten();
        let Some(low) = entry.attr_value(gimli::DW_AT_low_pc).and_then(address) else { return Vec::new() };
        let high = match entry.attr_value(gimli::DW_AT_high_pc) {
            Some(AttributeValue::Addr(high)) => Some(high),
            Some(value) => value.udata_value().map_or_else(|| address(value), |size| low.checked_add(size)),
            None => None,
        };
        high.map(|high| low..high).into_iter().collect()
    }

    pub(crate) fn covers(&self, unit: &Unit, entry: &Entry, address: u64) -> bool {
        self.ranges(unit, entry).iter().any(|range| range.contains(&address))
    }
}
