//! Which part of a variable of static storage lies at an address, in the words of its source.

use gimli::{AttributeValue, Operation};

use super::entries::{DieRef, Entries, Entry};
use super::types::{children, count, peel};

/// Types within each other.
const MAX_DEPTH: usize = 16;
/// OpenMP's own types, in which there is nothing to name. (OpenMP 5.2, 18.9)
const OPAQUE: [&str; 2] = ["omp_lock_t", "omp_nest_lock_t"];

/// `[2].lock`: the part at `offset` of the variable that begins at this address of the file. Empty where that is all of it. `None` if
/// debug information does not say.
pub(crate) fn part(entries: &Entries, variable: u64, offset: u64) -> Option<String> {
    let place = described_type(entries, variable)?;
    path(entries, &place, offset, 0)
}

/// The type of the variable at an address.
fn described_type(entries: &Entries, variable: u64) -> Option<DieRef> {
    for start in entries.unit_starts() {
        let Some(unit) = entries.unit_at(start) else { continue };
        let Ok(mut raw) = unit.entries_raw(None) else { continue };
        let mut entry = Entry::null();
        while !raw.is_empty() {
            let offset = raw.next_offset();
            match raw.read_entry(&mut entry) {
                Ok(true) if entry.tag() == gimli::DW_TAG_variable => {
                    let place = DieRef { unit: std::rc::Rc::clone(&unit), offset };
                    if address(entries, &place, &entry) == Some(variable) {
                        return entries.target(&place, &entry, gimli::DW_AT_type);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
    None
}

/// The address of a variable that always lies at the same place.
fn address(entries: &Entries, place: &DieRef, entry: &Entry) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else { return None };
    let mut operations = expression.operations(place.unit.encoding());
    let found = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => entries.dwarf.address(&place.unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(found)
}

fn path(entries: &Entries, place: &DieRef, offset: u64, depth: usize) -> Option<String> {
    if offset == 0 && is_opaque(entries, place) {
        return Some(String::new());
    }
    let (place, entry) = peel(entries, place).filter(|_| depth < MAX_DEPTH)?;
    match entry.tag() {
        gimli::DW_TAG_array_type => {
            let element = entries.target(&place, &entry, gimli::DW_AT_type)?;
            let size = size(entries, &element, depth)?;
            let counts = dimensions(&place)?;
            let mut index = offset.checked_div(size)?;
            let mut subscripts = Vec::new();
            for count in counts.iter().rev() {
                subscripts.push(format!("[{}]", index.checked_rem(*count)?));
                index /= count;
            }
            if index != 0 {
                return None;
            }
            subscripts.reverse();
            Some(subscripts.concat() + &path(entries, &element, offset % size, depth + 1)?)
        }
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
            let (place, member, within) = children(&place).into_iter().find_map(|(place, member)| {
                if !matches!(member.tag(), gimli::DW_TAG_member | gimli::DW_TAG_inheritance) {
                    return None;
                }
                let begins = member.attr_value(gimli::DW_AT_data_member_location);
                let begins = begins.map_or(Some(0), |value| value.udata_value())?;
                let within = offset.checked_sub(begins)?;
                let of = entries.target(&place, &member, gimli::DW_AT_type)?;
                (within < size(entries, &of, depth)?).then_some((place, member, within))
            })?;
            let inner = path(entries, &entries.target(&place, &member, gimli::DW_AT_type)?, within, depth + 1)?;
            // What a base class has belongs to the object itself.
            let name = entries.name(&place, &member).filter(|_| member.tag() == gimli::DW_TAG_member);
            Some(name.map_or_else(String::new, |name| format!(".{name}")) + &inner)
        }
        // Which member of a union counts, nobody says.
        gimli::DW_TAG_union_type => None,
        _ => (offset == 0).then(String::new),
    }
}

/// True if one of the names of a type is one of OpenMP's own.
fn is_opaque(entries: &Entries, place: &DieRef) -> bool {
    let mut place = place.clone();
    for _ in 0..MAX_DEPTH {
        let Some(entry) = entries.read(&place) else { return false };
        if entries.name(&place, &entry).is_some_and(|name| OPAQUE.contains(&name.as_str())) {
            return true;
        }
        match entries.target(&place, &entry, gimli::DW_AT_type) {
            Some(behind) if entry.tag() == gimli::DW_TAG_typedef => place = behind,
            _ => return false,
        }
    }
    false
}

/// Bytes of a value of a type.
fn size(entries: &Entries, place: &DieRef, depth: usize) -> Option<u64> {
    let (place, entry) = peel(entries, place).filter(|_| depth < MAX_DEPTH)?;
    if let Some((_, size)) = entries.attribute(&place, &entry, gimli::DW_AT_byte_size) {
        return size.udata_value().filter(|size| *size > 0);
    }
    match entry.tag() {
        gimli::DW_TAG_array_type => {
            let element = size_of_element(entries, &place, &entry, depth)?;
            dimensions(&place)?
                .iter()
                .try_fold(element, |size, count| size.checked_mul(*count))
                .filter(|size| *size > 0)
        }
        gimli::DW_TAG_pointer_type => Some(u64::from(place.unit.encoding().address_size)),
        _ => None,
    }
}

fn size_of_element(entries: &Entries, place: &DieRef, entry: &Entry, depth: usize) -> Option<u64> {
    size(entries, &entries.target(place, entry, gimli::DW_AT_type)?, depth + 1)
}

/// How many elements an array has in each dimension.
fn dimensions(array: &DieRef) -> Option<Vec<u64>> {
    let of = children(array).into_iter().filter(|(_, child)| child.tag() == gimli::DW_TAG_subrange_type);
    of.map(|(place, child)| count(&place, &child)).collect()
}
