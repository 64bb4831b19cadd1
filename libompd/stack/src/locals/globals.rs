//! Which part of a variable of static storage lies at an address, in the words of its source.

use std::rc::Rc;

use gimli::{AttributeValue, Operation};

use super::entries::{DieRef, Entries, Entry, Unit};
use super::types::{bounds, children, count, peel};
use crate::{names, outlined};

/// Variables of one unit that are listed.
const MAX_GLOBALS: usize = 4096;
/// Types, or entries, within each other.
const MAX_DEPTH: usize = 16;
/// Bytes of the name of a variable with all that is around it.
const MAX_NAME: usize = 512;
/// OpenMP's own types. (OpenMP 5.2, 18.9)
pub(super) const LOCKS: &[&str] = &["omp_lock_t", "omp_nest_lock_t"];
/// Those of POSIX. (sys/types.h, semaphore.h)
const POSIX: &[&str] = &["pthread_mutex_t", "pthread_cond_t", "pthread_rwlock_t", "pthread_barrier_t", "sem_t"];

/// `[2].lock`: the part at `offset` of the variable that begins at this address of the file. Empty where that is all of it. `None` if
/// debug information does not say.
pub(crate) fn part(entries: &Entries, variable: u64, offset: u64) -> Option<String> {
    let place = described_type(entries, variable)?;
    part_of_type(entries, &place, offset, Leaf::Any)
}

/// As [`part`], of what has this type. `None` if that does not end in a `leaf`.
pub(super) fn part_of_type(entries: &Entries, of: &DieRef, offset: u64, leaf: Leaf) -> Option<String> {
    path(entries, of, offset, leaf, 0)
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
                    let place = DieRef { unit: Rc::clone(&unit), offset };
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

/// A variable of static storage.
pub(super) struct Global {
    /// As the source writes it, with the namespaces and classes around it.
    pub(super) name: String,
    /// In the file.
    pub(super) address: u64,
    pub(super) of: DieRef,
}

/// The variables of static storage that a unit defines. Variables of each thread are not among them.
pub(super) fn variables(entries: &Entries, unit: &Rc<Unit>) -> Vec<Global> {
    let mut found = Vec::new();
    let Ok(mut raw) = unit.entries_raw(None) else { return found };
    let mut entry = Entry::null();
    // The name of each entry around the current one, if it counts.
    let mut around: Vec<Option<String>> = Vec::new();
    while !raw.is_empty() && found.len() < MAX_GLOBALS {
        let (offset, depth) = (raw.next_offset(), usize::try_from(raw.next_depth()).unwrap_or(0));
        match raw.read_entry(&mut entry) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => break,
        }
        if depth > MAX_DEPTH {
            continue;
        }
        around.resize(depth, None);
        let place = DieRef { unit: Rc::clone(unit), offset };
        if entry.tag() == gimli::DW_TAG_variable {
            found.extend(global(entries, &place, &entry, &around));
        }
        let names = matches!(
            entry.tag(),
            gimli::DW_TAG_namespace
                | gimli::DW_TAG_subprogram
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
        );
        // The bodies of constructs are functions of compilers, which no source names.
        let name = names.then(|| entries.name(&place, &entry)).flatten();
        around.push(name.filter(|name| outlined::outlined(name).is_none() && !name.starts_with('.')));
    }
    found
}

fn global(entries: &Entries, place: &DieRef, entry: &Entry, around: &[Option<String>]) -> Option<Global> {
    let address = address(entries, place, entry)?;
    let of = entries.target(place, entry, gimli::DW_AT_type)?;
    let name = entries.name(place, entry)?;
    let whole = around.iter().flatten().map(String::as_str).chain([name.as_str()]).collect::<Vec<_>>().join("::");
    (whole.len() <= MAX_NAME).then_some(Global { name: whole, address, of })
}

/// The address of a variable that always lies at the same place.
pub(super) fn address(entries: &Entries, place: &DieRef, entry: &Entry) -> Option<u64> {
    let AttributeValue::Exprloc(expression) = entry.attr_value(gimli::DW_AT_location)? else { return None };
    let mut operations = expression.operations(place.unit.encoding());
    let found = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => entries.dwarf.address(&place.unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(found)
}

/// What a path has to end in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// Anything.
    Any,
    /// A lock or a mutex.
    Lock,
}

fn path(entries: &Entries, place: &DieRef, offset: u64, leaf: Leaf, depth: usize) -> Option<String> {
    // In these there is nothing to name.
    if is_one_of(LOCKS, entries, place) || is_one_of(POSIX, entries, place) {
        return Some(String::new());
    }
    let (place, entry) = peel(entries, place).filter(|_| depth < MAX_DEPTH)?;
    match entry.tag() {
        gimli::DW_TAG_array_type => {
            let element = entries.target(&place, &entry, gimli::DW_AT_type)?;
            let size = size(entries, &element, depth)?;
            let subscripts = subscripts(&place, &entry, offset.checked_div(size)?)?;
            Some(subscripts + &path(entries, &element, offset.checked_rem(size)?, leaf, depth + 1)?)
        }
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
            let of = if is_fortran(&place.unit) { '%' } else { '.' };
            // An empty base class has a size too, and lies where the first member does.
            children(&place).into_iter().find_map(|(place, member)| {
                let within = offset.checked_sub(offset_of_member(&member)?)?;
                let type_of = entries.target(&place, &member, gimli::DW_AT_type)?;
                let is_inside = within < size(entries, &type_of, depth)?;
                let inner = is_inside.then(|| path(entries, &type_of, within, leaf, depth + 1))??;
                // What a base class has belongs to the object itself.
                let name = entries.name(&place, &member).filter(|_| member.tag() == gimli::DW_TAG_member);
                Some(name.map_or_else(String::new, |name| format!("{of}{name}")) + &inner)
            })
        }
        // Which member of a union counts, nobody says.
        gimli::DW_TAG_union_type => None,
        _ => (offset == 0 && (leaf == Leaf::Any || is_lock(entries, &place, &entry))).then(String::new),
    }
}

/// Where a member or base class begins in its structure. `None` for other entries, for members of all objects together, and for those
/// that do not begin at a byte.
pub(super) fn offset_of_member(member: &Entry) -> Option<u64> {
    let is_static = member.attr_value(gimli::DW_AT_external).is_some()
        || member.attr_value(gimli::DW_AT_declaration).is_some()
        || member.attr_value(gimli::DW_AT_data_bit_offset).is_some();
    match member.tag() {
        gimli::DW_TAG_member | gimli::DW_TAG_inheritance if !is_static => {
            member.attr_value(gimli::DW_AT_data_member_location).map_or(Some(0), |value| value.udata_value())
        }
        _ => None,
    }
}

/// The subscripts of element number `index` in memory, as its language writes them: `[1][4]`, `(2,3)`.
fn subscripts(array: &DieRef, entry: &Entry, index: u64) -> Option<String> {
    let of = children(array).into_iter().filter(|(_, child)| child.tag() == gimli::DW_TAG_subrange_type);
    let dimensions: Vec<(i64, u64)> = of.map(|(place, child)| bounds(&place, &child)).collect::<Option<_>>()?;
    let by_columns = is_fortran(&array.unit);
    if entry.attr_value(gimli::DW_AT_ordering).is_some() && !by_columns {
        return None;
    }
    let mut left = index;
    let mut subscript = |(lower, count): &(i64, u64)| {
        let own = left.checked_rem(*count)?;
        left /= count;
        lower.checked_add(i64::try_from(own).ok()?)
    };
    let mut found: Vec<i64> = match by_columns {
        true => dimensions.iter().map(&mut subscript).collect::<Option<_>>()?,
        false => dimensions.iter().rev().map(&mut subscript).collect::<Option<_>>()?,
    };
    if left != 0 {
        return None;
    }
    if by_columns {
        let found: Vec<String> = found.iter().map(i64::to_string).collect();
        return Some(format!("({})", found.join(",")));
    }
    found.reverse();
    Some(found.iter().map(|subscript| format!("[{subscript}]")).collect())
}

/// True if the language of the unit is Fortran.
pub(super) fn is_fortran(unit: &Unit) -> bool {
    let root = unit.entry(unit.header.root_offset()).ok();
    match root.and_then(|root| root.attr_value(gimli::DW_AT_language)) {
        Some(AttributeValue::Language(language)) => names::is_fortran(language),
        _ => false,
    }
}

/// True if objects of the type are locks or mutexes. In Fortran every integer may be one.
pub(super) fn is_lock(entries: &Entries, place: &DieRef, entry: &Entry) -> bool {
    let is_integer = || {
        matches!(entry.attr_value(gimli::DW_AT_encoding), Some(AttributeValue::Encoding(gimli::DW_ATE_signed)))
            && matches!(entry.attr_value(gimli::DW_AT_byte_size).and_then(|size| size.udata_value()), Some(4 | 8))
    };
    is_one_of(LOCKS, entries, place)
        || is_one_of(POSIX, entries, place)
        || entry.tag() == gimli::DW_TAG_base_type && is_fortran(&place.unit) && is_integer()
}

/// True if one of the names of a type is among `names`.
pub(super) fn is_one_of(names: &[&str], entries: &Entries, place: &DieRef) -> bool {
    let mut place = place.clone();
    for _ in 0..MAX_DEPTH {
        let Some(entry) = entries.read(&place) else { return false };
        if entries.name(&place, &entry).is_some_and(|name| names.contains(&name.as_str())) {
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
pub(super) fn size(entries: &Entries, place: &DieRef, depth: usize) -> Option<u64> {
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
