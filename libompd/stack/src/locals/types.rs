//! Types as far as their values are shown.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{AttributeValue, DwTag};

use super::entries::{DieRef, Entries, Entry, Value};

/// Names and qualifications of a type within each other.
const MAX_DEPTH: usize = 16;
/// Members of a structure, or elements of an array, that are shown.
pub(crate) const SHOWN: usize = 8;
/// Names of one enumeration that are read.
const MAX_NAMES: usize = 1024;
/// Entries below one type that are looked at.
const MAX_CHILDREN: usize = 4096;

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Type {
    /// As the source writes it.
    pub(crate) name: String,
    /// In bytes.
    pub(crate) size: Option<u64>,
    pub(crate) kind: Kind,
}

/// What its values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Signed,
    Unsigned,
    /// One byte that is a number or a character.
    Char {
        signed: bool,
    },
    Float,
    Boolean,
    Pointer,
    /// Stands for what is at its address.
    Reference(Rc<Type>),
    Enumeration {
        signed: bool,
        names: Vec<(u64, String)>,
    },
    /// So many characters.
    Text(u64),
    Array {
        element: Rc<Type>,
        count: u64,
    },
    Structure {
        /// Name, offset in bytes (unless it is a bit-field or lies where only the value tells), type.
        members: Vec<(String, Option<u64>, Rc<Type>)>,
        more: bool,
    },
    /// What is not shown.
    Other,
}

impl Type {
    /// Not known, and why.
    fn unknown(name: &str) -> Type {
        Type { name: name.to_owned(), size: None, kind: Kind::Other }
    }
}

/// Types of one file that have been looked at.
#[derive(Default)]
pub(crate) struct Types(RefCell<HashMap<usize, Rc<Type>>>);

impl Types {
    /// The type an entry describes; `None` for a variable without one.
    pub(crate) fn get(&self, entries: &Entries, place: Option<&DieRef>) -> Rc<Type> {
        let Some(place) = place else { return Rc::new(Type::unknown("(type not known)")) };
        let id = place.id();
        if let Some(known) = self.0.borrow().get(&id) {
            return Rc::clone(known);
        }
        let found = Rc::new(describe(entries, place, Depth::Whole));
        self.0.borrow_mut().insert(id, Rc::clone(&found));
        found
    }
}

/// How much of a type is of interest. What follows it is smaller, so that describing one ends whatever the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// References followed, members and elements described.
    Whole,
    /// What a reference refers to.
    Referred,
    /// Members and elements: only those that are one value or a text.
    Part,
}

fn describe(entries: &Entries, place: &DieRef, depth: Depth) -> Type {
    let name = name(entries, place);
    let unknown = || Type { name: name.clone(), size: None, kind: Kind::Other };
    let Some((place, entry)) = peel(entries, place) else { return unknown() };
    let size = entries.attribute(&place, &entry, gimli::DW_AT_byte_size).and_then(|(_, v)| v.udata_value());
    let address = u64::from(place.unit.encoding().address_size);
    let aggregates = depth != Depth::Part;
    let (kind, size) = match entry.tag() {
        gimli::DW_TAG_base_type => (base(&entry, size), size),
        gimli::DW_TAG_pointer_type => (Kind::Pointer, Some(size.unwrap_or(address))),
        gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type if depth == Depth::Whole => {
            let referred = entries.target(&place, &entry, gimli::DW_AT_type);
            let referred = referred.map_or_else(unknown, |referred| describe(entries, &referred, Depth::Referred));
            (Kind::Reference(Rc::new(referred)), Some(size.unwrap_or(address)))
        }
        gimli::DW_TAG_enumeration_type => (enumeration(entries, &place, &entry), size),
        gimli::DW_TAG_string_type => (size.map_or(Kind::Other, Kind::Text), size),
        gimli::DW_TAG_array_type => array(entries, &place, &entry, aggregates),
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type if aggregates => (structure(entries, &place), size),
        _ => (Kind::Other, size),
    };
    Type { name, size, kind }
}

fn is_alias(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_typedef | gimli::DW_TAG_template_alias) || is_qualifier(tag)
}

fn is_qualifier(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_immutable_type
            | gimli::DW_TAG_packed_type
            | gimli::DW_TAG_shared_type
    )
}

/// The type behind names and qualifications.
pub(super) fn peel(entries: &Entries, place: &DieRef) -> Option<(DieRef, Entry)> {
    let mut place = place.clone();
    for _ in 0..MAX_DEPTH {
        let entry = entries.read(&place)?;
        if !is_alias(entry.tag()) {
            return Some((place, entry));
        }
        place = entries.target(&place, &entry, gimli::DW_AT_type)?;
    }
    None
}

fn base(entry: &Entry, size: Option<u64>) -> Kind {
    let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else { return Kind::Other };
    match encoding {
        gimli::DW_ATE_signed => Kind::Signed,
        gimli::DW_ATE_unsigned => Kind::Unsigned,
        gimli::DW_ATE_signed_char if size == Some(1) => Kind::Char { signed: true },
        gimli::DW_ATE_unsigned_char if size == Some(1) => Kind::Char { signed: false },
        gimli::DW_ATE_UTF | gimli::DW_ATE_unsigned_char => Kind::Unsigned,
        gimli::DW_ATE_boolean => Kind::Boolean,
        gimli::DW_ATE_address => Kind::Pointer,
        // Other sizes have formats of their own.
        gimli::DW_ATE_float if matches!(size, Some(4 | 8)) => Kind::Float,
        _ => Kind::Other,
    }
}

/// The entries directly below one.
pub(super) fn children(place: &DieRef) -> Vec<(DieRef, Entry)> {
    let mut found = Vec::new();
    let Ok(mut raw) = place.unit.entries_raw(Some(place.offset)) else { return found };
    let mut entry = Entry::null();
    if !matches!(raw.read_entry(&mut entry), Ok(true)) || !entry.has_children() {
        return found;
    }
    for _ in 0..MAX_CHILDREN {
        let (offset, depth) = (raw.next_offset(), raw.next_depth());
        if depth < 1 {
            break;
        }
        match raw.read_entry(&mut entry) {
            Ok(true) if depth == 1 => {
                found.push((DieRef { unit: Rc::clone(&place.unit), offset }, entry.clone()));
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    found
}

fn enumeration(entries: &Entries, place: &DieRef, entry: &Entry) -> Kind {
    let behind = entries.target(place, entry, gimli::DW_AT_type);
    let behind = behind.and_then(|behind| peel(entries, &behind));
    let signed = behind.is_some_and(|(_, entry)| {
        matches!(entry.attr_value(gimli::DW_AT_encoding), Some(AttributeValue::Encoding(gimli::DW_ATE_signed)))
    });
    let names = children(place).into_iter().take(MAX_NAMES).filter_map(|(place, entry)| {
        let value = entry.attr_value(gimli::DW_AT_const_value)?;
        let value = number(&value).map(i64::cast_unsigned).or_else(|| value.udata_value())?;
        Some((value, entries.name(&place, &entry)?))
    });
    Kind::Enumeration { signed, names: names.collect() }
}

fn array(entries: &Entries, place: &DieRef, entry: &Entry, whole: bool) -> (Kind, Option<u64>) {
    let dimensions: Vec<Option<u64>> = children(place)
        .into_iter()
        .filter(|(_, child)| child.tag() == gimli::DW_TAG_subrange_type)
        .map(|(place, child)| count(&place, &child))
        .collect();
    let Some(element) = entries.target(place, entry, gimli::DW_AT_type) else { return (Kind::Other, None) };
    // An array whose shape its value tells has a header of some kind.
    let described = entry.attr_value(gimli::DW_AT_data_location).is_some();
    let [Some(count)] = dimensions.as_slice() else { return (Kind::Other, None) };
    let element = describe(entries, &element, Depth::Part);
    let Some(size) = element.size.and_then(|size| size.checked_mul(*count)).filter(|_| !described) else {
        return (Kind::Other, None);
    };
    match element.kind {
        Kind::Char { .. } => (Kind::Text(*count), Some(size)),
        Kind::Other | Kind::Text(_) => (Kind::Other, Some(size)),
        _ if whole => (Kind::Array { element: Rc::new(element), count: *count }, Some(size)),
        _ => (Kind::Other, Some(size)),
    }
}

/// Elements of a dimension that is always the same.
pub(super) fn count(place: &DieRef, subrange: &Entry) -> Option<u64> {
    match subrange.attr_value(gimli::DW_AT_count) {
        Some(count) => count.udata_value(),
        None => bounds(place, subrange).map(|(_, count)| count),
    }
}

/// The lower bound of such a dimension, and its number of elements.
pub(super) fn bounds(place: &DieRef, subrange: &Entry) -> Option<(i64, u64)> {
    let lower = match subrange.attr_value(gimli::DW_AT_lower_bound) {
        Some(lower) => number(&lower)?,
        // What the language counts from.
        None => {
            let root = place.unit.entry(place.unit.header.root_offset()).ok()?;
            match root.attr_value(gimli::DW_AT_language) {
                Some(AttributeValue::Language(language)) => i64::try_from(language.default_lower_bound()?).ok()?,
                _ => return None,
            }
        }
    };
    if let Some(count) = subrange.attr_value(gimli::DW_AT_count) {
        return Some((lower, count.udata_value()?));
    }
    let upper = number(&subrange.attr_value(gimli::DW_AT_upper_bound)?)?;
    Some((lower, u64::try_from(upper.checked_sub(lower)?.checked_add(1)?).ok()?))
}

/// A constant: compilers write what is not negative in forms without a sign.
fn number(value: &Value) -> Option<i64> {
    match value {
        AttributeValue::Sdata(value) => Some(*value),
        other => other.udata_value()?.try_into().ok(),
    }
}

fn structure(entries: &Entries, place: &DieRef) -> Kind {
    let members = children(place).into_iter().filter(|(_, child)| child.tag() == gimli::DW_TAG_member);
    // Static members are not in the value.
    let mut members = members.filter(|(_, child)| child.attr_value(gimli::DW_AT_external).is_none());
    let mut shown = Vec::new();
    for (place, member) in members.by_ref().take(SHOWN) {
        let name = entries.name(&place, &member).unwrap_or_default();
        let of_bits = member.attr_value(gimli::DW_AT_bit_size).is_some();
        let offset = match member.attr_value(gimli::DW_AT_data_member_location) {
            Some(value) => value.udata_value(),
            None => Some(0),
        };
        let described = entries.target(&place, &member, gimli::DW_AT_type);
        let described = described.map_or_else(|| Type::unknown("?"), |place| describe(entries, &place, Depth::Part));
        shown.push((name, offset.filter(|_| !of_bits), Rc::new(described)));
    }
    let more = members.next().is_some();
    match shown.is_empty() {
        // It is only declared here, or has base classes alone.
        true => Kind::Other,
        false => Kind::Structure { members: shown, more },
    }
}

/// A type's name as C writes it, the stars and brackets at its end.
fn name(entries: &Entries, place: &DieRef) -> String {
    let mut place = place.clone();
    let mut qualifiers = String::new();
    // Written from the outermost on, so each part comes before those already there.
    let mut end = String::new();
    for _ in 0..MAX_DEPTH {
        let Some(entry) = entries.read(&place) else { break };
        let next = entries.target(&place, &entry, gimli::DW_AT_type);
        let tag = entry.tag();
        if is_qualifier(tag) {
            let word = match tag {
                gimli::DW_TAG_const_type => "const ",
                gimli::DW_TAG_volatile_type => "volatile ",
                gimli::DW_TAG_restrict_type => "restrict ",
                gimli::DW_TAG_atomic_type => "_Atomic ",
                _ => "",
            };
            qualifiers.push_str(word);
        } else if let Some(name) = entries.name(&place, &entry) {
            return join(&format!("{qualifiers}{name}"), &end);
        } else {
            let mark = match tag {
                gimli::DW_TAG_pointer_type => "*".to_owned(),
                gimli::DW_TAG_reference_type => "&".to_owned(),
                gimli::DW_TAG_rvalue_reference_type => "&&".to_owned(),
                gimli::DW_TAG_array_type => brackets(&place),
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => return join("struct (no name)", &end),
                gimli::DW_TAG_union_type => return join("union (no name)", &end),
                gimli::DW_TAG_enumeration_type => return join("enum (no name)", &end),
                gimli::DW_TAG_subroutine_type => return join("function", &end),
                gimli::DW_TAG_string_type => return join("character", &end),
                gimli::DW_TAG_ptr_to_member_type => return join("pointer to member", &end),
                _ => return join("(no name)", &end),
            };
            // The qualifiers are the pointer's.
            let own = std::mem::take(&mut qualifiers);
            let own = if own.is_empty() { own } else { format!(" {}", own.trim_end()) };
            end = format!("{mark}{own}{end}");
        }
        match next {
            Some(next) => place = next,
            None => return join(&format!("{qualifiers}void"), &end),
        }
    }
    join("?", &end)
}

fn join(name: &str, end: &str) -> String {
    if end.is_empty() || end.starts_with('[') { format!("{name}{end}") } else { format!("{name} {end}") }
}

fn brackets(place: &DieRef) -> String {
    let dimensions = children(place).into_iter().filter(|(_, child)| child.tag() == gimli::DW_TAG_subrange_type);
    dimensions
        .take(SHOWN)
        .map(|(place, child)| match count(&place, &child) {
            Some(count) => format!("[{count}]"),
            None => "[]".to_owned(),
        })
        .collect()
}
