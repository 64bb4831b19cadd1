//! What is declared at an address: the function with what is inlined into it, and their variables.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use gimli::{AttributeValue, DwAt, Expression, UnitOffset};

use super::entries::{DieRef, Entries, Entry, Unit, Value};
use super::shape;
use crate::outlined;
use crate::reader::Metered;

/// Blocks within each other that are followed.
const MAX_DEPTH: usize = 512;
/// Variables of one function that are listed.
const MAX_DECLARED: usize = 4096;
/// Entries of one location list that are looked at.
const MAX_LOCATIONS: usize = 1024;
/// Of those, so many are compared with others for their form.
const MAX_FORMS: usize = 64;

/// What debug information says of a variable's place at one address.
#[derive(Debug, Clone)]
pub(crate) enum Where {
    At(Expression<Metered>),
    Constant(Value),
    Nowhere(&'static str),
}

/// A variable or parameter in scope.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) name: String,
    pub(crate) described: Option<DieRef>,
    pub(crate) parameter: bool,
    pub(crate) artificial: bool,
    /// The block of its level it is declared in; greater is further in, for blocks in scope at one address.
    pub(crate) block: usize,
    pub(crate) location: Where,
    /// GCC reaches it through the pointer it passes to outlined functions, by a pointer found there: it is another
    /// function's.
    pub(crate) through_data: bool,
}

/// One function at the address: the outermost, or one inlined into the one before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    pub(crate) declared: Vec<Declared>,
    /// The block that is the function itself.
    pub(crate) top: usize,
    /// The function was made by a compiler from the body of a construct.
    pub(crate) outlined: bool,
    /// It has a variable of clang's for the bound of a loop that only the running program knows.
    pub(crate) captures: bool,
    /// Names of variables in blocks of the function that its code at hand does not have any more.
    pub(crate) removed: HashSet<String>,
}

/// All that is declared at one address.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) unit: Rc<Unit>,
    pub(crate) frame_base: Where,
    /// Outermost first; the others are inlined.
    pub(crate) levels: Vec<Level>,
    /// Compiled by clang, or by a compiler made of it that says so.
    pub(crate) clang: bool,
    /// In a language that has no references of its own.
    pub(crate) is_c: bool,
}

impl Scope {
    /// True if the frame's base is what a register holds.
    pub(crate) fn base_is(&self, register: u16) -> bool {
        let Where::At(expression) = &self.frame_base else { return false };
        shape::steps(expression, self.unit.encoding()) == Some(vec![shape::Step::InRegister(register)])
    }
}

type Functions = Vec<(Range<u64>, UnitOffset)>;

/// Finds scopes, and keeps them: threads share nearly all their addresses.
#[derive(Default)]
pub(crate) struct Scopes {
    functions: RefCell<HashMap<usize, Rc<Functions>>>,
    known: RefCell<HashMap<u64, Option<Rc<Scope>>>>,
}

impl Scopes {
    /// What is declared at an address of the file, in the unit at that offset of `.debug_info`.
    pub(crate) fn at(&self, entries: &Entries, unit: usize, address: u64) -> Option<Rc<Scope>> {
        if let Some(known) = self.known.borrow().get(&address) {
            return known.clone();
        }
        let found = self.find(entries, unit, address).map(Rc::new);
        self.known.borrow_mut().insert(address, found.clone());
        found
    }

    fn find(&self, entries: &Entries, unit: usize, address: u64) -> Option<Scope> {
        let place = unit;
        let unit = entries.unit_at(place)?;
        let functions =
            Rc::clone(self.functions.borrow_mut().entry(place).or_insert_with(|| Rc::new(functions(entries, &unit))));
        // GCC nests outlined functions in the function they were part of; ranges of both never overlap in sound files.
        let covering = functions.iter().filter(|(range, _)| range.contains(&address));
        let (_, offset) = covering.min_by_key(|(range, _)| range.end - range.start)?;
        Reader { entries, unit, address }.scope(*offset)
    }
}

/// Every function of a unit that has code.
fn functions(entries: &Entries, unit: &Rc<Unit>) -> Functions {
    let mut found = Vec::new();
    let Ok(mut raw) = unit.entries_raw(None) else { return found };
    while !raw.is_empty() {
        let offset = raw.next_offset();
        let Ok(abbreviation) = raw.read_abbreviation() else { break };
        let Some(abbreviation) = abbreviation else { continue };
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            if raw.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
            continue;
        }
        let mut attributes = Vec::new();
        if raw.read_attributes(abbreviation.attributes(), &mut attributes).is_err() {
            break;
        }
        let entry = Entry::new(gimli::DW_TAG_subprogram, false, attributes, offset);
        let ranges = entries.ranges(unit, &entry).into_iter().filter(|range| range.start < range.end);
        found.extend(ranges.map(|range| (range, offset)));
    }
    found
}

fn is_capture(name: &str) -> bool {
    name == ".capture_expr."
}

struct Reader<'e> {
    entries: &'e Entries,
    unit: Rc<Unit>,
    address: u64,
}

/// An entry that contains the next ones.
#[derive(Clone, Copy)]
struct Open {
    /// The address is in it, and in all around it.
    active: bool,
    level: usize,
    block: usize,
}

impl Reader<'_> {
    fn scope(&self, function: UnitOffset) -> Option<Scope> {
        let entries = self.entries;
        let mut raw = self.unit.entries_raw(Some(function)).ok()?;
        let mut entry = Entry::null();
        if !raw.read_entry(&mut entry).ok()? {
            return None;
        }
        let root = DieRef { unit: Rc::clone(&self.unit), offset: function };
        let producer = self.unit_text(gimli::DW_AT_producer).unwrap_or_default();
        let mut scope = Scope {
            unit: Rc::clone(&self.unit),
            frame_base: self.location(&entry, gimli::DW_AT_frame_base),
            levels: vec![self.level(&root, &entry, 0)],
            clang: producer.contains("clang version"),
            is_c: self.is_c(),
        };
        let mut origins = vec![entries.origin(&root, &entry)];
        let mut data: Vec<Option<Value>> = vec![None];
        let mut open = Vec::new();
        if entry.has_children() {
            open.push(Open { active: true, level: 0, block: 0 });
        }
        let mut blocks = 0;
        let mut described: HashSet<usize> = HashSet::new();
        while let Some(parent) = open.last().copied() {
            let offset = raw.next_offset();
            match raw.read_entry(&mut entry) {
                Ok(true) => {}
                Ok(false) => {
                    open.pop();
                    continue;
                }
                Err(_) => break,
            }
            let place = DieRef { unit: Rc::clone(&self.unit), offset };
            let mut child = Open { active: false, ..parent };
            if parent.active && open.len() < MAX_DEPTH {
                match entry.tag() {
                    gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => {
                        if let Some(origin) = entries.origin(&place, &entry) {
                            described.insert(origin.id());
                        }
                        let level = &mut scope.levels[parent.level];
                        level.captures |= entries.name(&place, &entry).is_some_and(|name| is_capture(&name));
                        if level.declared.len() < MAX_DECLARED
                            && let Some(declared) = self.declared(&place, &entry, parent.block, &data[parent.level])
                        {
                            level.declared.push(declared);
                        } else if entry.tag() == gimli::DW_TAG_formal_parameter && data[parent.level].is_none() {
                            // The one parameter of GCC's outlined functions; it has no name of the source.
                            let artificial = entries.flag(&place, &entry, gimli::DW_AT_artificial);
                            data[parent.level] =
                                entry.attr_value(gimli::DW_AT_location).filter(|_| artificial && !scope.clang);
                        }
                    }
                    gimli::DW_TAG_lexical_block | gimli::DW_TAG_try_block | gimli::DW_TAG_catch_block => {
                        blocks += 1;
                        let active = entries.covers(&self.unit, &entry, self.address);
                        child = Open { active, level: parent.level, block: blocks };
                    }
                    gimli::DW_TAG_inlined_subroutine if entries.covers(&self.unit, &entry, self.address) => {
                        blocks += 1;
                        scope.levels.push(self.level(&place, &entry, blocks));
                        origins.push(entries.origin(&place, &entry));
                        data.push(None);
                        child = Open { active: true, level: scope.levels.len() - 1, block: blocks };
                    }
                    _ => {}
                }
            }
            if entry.has_children() {
                open.push(child);
            }
        }
        for (level, origin) in scope.levels.iter_mut().zip(origins) {
            if let Some(origin) = origin {
                self.add_removed(level, &origin, &described);
            }
        }
        Some(scope)
    }

    fn level(&self, place: &DieRef, entry: &Entry, top: usize) -> Level {
        let name = self.entries.text(place, entry, gimli::DW_AT_linkage_name);
        let name = name.or_else(|| self.entries.name(place, entry));
        let outlined = name.is_some_and(|name| outlined::outlined(&name).is_some());
        Level { top, outlined, ..Level::default() }
    }

    fn declared(&self, place: &DieRef, entry: &Entry, block: usize, data: &Option<Value>) -> Option<Declared> {
        let entries = self.entries;
        let name = entries.name(place, entry).filter(|name| !name.is_empty())?;
        // A declaration of something that is defined elsewhere.
        if entry.attr_value(gimli::DW_AT_declaration).is_some() || entry.attr_value(gimli::DW_AT_external).is_some() {
            return None;
        }
        let location = match entries.attribute(place, entry, gimli::DW_AT_const_value) {
            Some((_, value)) => Where::Constant(value),
            None => self.location(entry, gimli::DW_AT_location),
        };
        let data = data.as_ref().filter(|_| entry.tag() == gimli::DW_TAG_variable);
        Some(Declared {
            name,
            described: entries.target(place, entry, gimli::DW_AT_type),
            parameter: entry.tag() == gimli::DW_TAG_formal_parameter,
            artificial: entries.flag(place, entry, gimli::DW_AT_artificial),
            block,
            location,
            through_data: data.is_some_and(|data| self.is_through(entry, data)),
        })
    }

    /// Adds what the function's own description has, and that of its code at hand has not: it was removed from there. Of
    /// blocks within the function it cannot be told whether the address is in them.
    fn add_removed(&self, level: &mut Level, origin: &DieRef, described: &HashSet<usize>) {
        let Ok(mut raw) = origin.unit.entries_raw(Some(origin.offset)) else { return };
        let mut entry = Entry::null();
        if !matches!(raw.read_entry(&mut entry), Ok(true)) || !entry.has_children() {
            return;
        }
        loop {
            let (offset, depth) = (raw.next_offset(), raw.next_depth());
            if depth < 1 || level.declared.len() >= MAX_DECLARED {
                break;
            }
            match raw.read_entry(&mut entry) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => break,
            }
            let place = DieRef { unit: Rc::clone(&origin.unit), offset };
            let wanted = matches!(entry.tag(), gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable);
            if !wanted {
                continue;
            }
            let removed = !described.contains(&place.id());
            if depth == 1 && removed {
                level.declared.extend(self.declared(&place, &entry, level.top, &None));
                continue;
            }
            let Some(name) = self.entries.name(&place, &entry) else { continue };
            level.captures |= is_capture(&name);
            if removed && entry.tag() == gimli::DW_TAG_variable && level.removed.len() < MAX_DECLARED {
                level.removed.insert(name);
            }
        }
    }

    /// The location at the address.
    fn location(&self, entry: &Entry, name: DwAt) -> Where {
        let Some(value) = entry.attr_value(name) else { return Where::Nowhere("optimized out") };
        if let Some(expression) = value.exprloc_value() {
            // Compilers write an empty one for what is gone as well.
            let empty = gimli::Reader::is_empty(&expression.0);
            return if empty { Where::Nowhere("optimized out") } else { Where::At(expression) };
        }
        for (range, expression) in self.locations(value) {
            if range.contains(&self.address) {
                return match gimli::Reader::is_empty(&expression.0) {
                    true => Where::Nowhere("optimized out here"),
                    false => Where::At(expression),
                };
            }
        }
        Where::Nowhere("optimized out here")
    }

    fn locations(&self, value: Value) -> Vec<(Range<u64>, Expression<Metered>)> {
        let Ok(Some(mut list)) = self.entries.dwarf.attr_locations(&self.unit, value) else { return Vec::new() };
        let mut all = Vec::new();
        while let Ok(Some(entry)) = list.next() {
            if all.len() == MAX_LOCATIONS {
                break;
            }
            all.push((entry.range.begin..entry.range.end, entry.data));
        }
        all
    }

    /// True if a variable lies where a pointer points that lies in the block of pointers at `data`. GCC describes shared
    /// variables so throughout an outlined function (gcc/omp-low.cc: install_var_field, build_outer_var_ref), whichever
    /// register holds the address of the block.
    fn is_through(&self, entry: &Entry, data: &Value) -> bool {
        let Some(value) = entry.attr_value(gimli::DW_AT_location) else { return false };
        let forms = |value: &Value| match value.exprloc_value() {
            Some(expression) => vec![expression],
            None => self.locations(value.clone()).into_iter().take(MAX_FORMS).map(|(_, e)| e).collect(),
        };
        let encoding = self.unit.encoding();
        let steps = |value: &Value| forms(value).iter().filter_map(|e| shape::steps(e, encoding)).collect::<Vec<_>>();
        let blocks: Vec<_> = steps(data).into_iter().map(shape::value_at).collect();
        steps(&value).iter().any(|own| blocks.iter().any(|block| shape::is_through(own, block)))
    }

    fn unit_text(&self, name: DwAt) -> Option<String> {
        let place = DieRef { unit: Rc::clone(&self.unit), offset: self.unit.header.root_offset() };
        let entry = self.entries.read(&place)?;
        self.entries.text(&place, &entry, name)
    }

    fn is_c(&self) -> bool {
        let place = DieRef { unit: Rc::clone(&self.unit), offset: self.unit.header.root_offset() };
        let entry = self.entries.read(&place);
        let language = match entry.and_then(|entry| entry.attr_value(gimli::DW_AT_language)) {
            Some(AttributeValue::Language(language)) => language,
            _ => return false,
        };
        matches!(
            language,
            gimli::DW_LANG_C | gimli::DW_LANG_C89 | gimli::DW_LANG_C99 | gimli::DW_LANG_C11 | gimli::DW_LANG_C17
        )
    }
}
