//! What the source calls a lock or mutex: the variable that contains it, or pointers that lead to it.
//!
//! The variables are those of the frames on the stacks, and variables of static storage that the units of those frames
//! define. A pointer is followed if debug information says what it points to. A name has to end in a type that locks have:
//! a pointer that dangles may lead anywhere.

use std::collections::HashMap;
use std::rc::Rc;

use ompd_process::Addr;

use super::entries::{DieRef, Entries, Entry};
use super::globals::{self, LOCKS, Leaf, is_fortran, is_lock, is_one_of, offset_of_member, size};
use super::types::{children, peel};
use crate::image::FileInfo;

/// Types within each other.
const MAX_DEPTH: usize = 16;
/// Pointers, or locks, of one type that are looked at.
const MAX_LISTED: usize = 256;
/// Objects that so many pointers lead to.
const MAX_OBJECTS: usize = 8192;
/// Pointers that are followed one after the other: `sim->grid->lock` takes two.
const MAX_HOPS: usize = 2;
/// Locks whose content is read.
const MAX_LOCKS: usize = 1 << 16;
/// The largest block of elements in which one is looked for.
const MAX_BLOCK: u64 = 1 << 36;
/// Bytes of an expression.
const MAX_TEXT: usize = 1024;
/// What is put behind a name that is inferred.
const PROBABLY: &str = " (probably)";
/// Where a container begins (libstdc++: bits/stl_vector.h): what it has are elements.
const ELEMENTS: &str = "._M_impl._M_start";
/// Members of the standard library's containers, pointers and mutexes, which no program names (libstdc++: bits/stl_vector.h,
/// bits/unique_ptr.h, bits/shared_ptr_base.h, bits/std_mutex.h, condition_variable).
const HIDDEN: &[&str] = &[
    ELEMENTS,
    "._M_t._M_t._M_head_impl",
    "._M_t._M_head_impl",
    "._M_ptr",
    "._M_mutex",
    "._M_cond._M_cond",
    "._M_cond",
];

/// An object in memory.
pub(super) struct Object {
    /// Its expression, or that of the pointer that leads to it.
    text: String,
    by: By,
    start: u64,
    shape: Rc<Shape>,
    /// Where the elements of a container end that begin with it.
    end: Option<u64>,
}

/// How the text leads to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// It is its name.
    Name,
    /// It is that of a pointer to the object.
    Pointer,
}

/// What is known of a type.
struct Shape {
    of: DieRef,
    file: Rc<FileInfo>,
    /// In bytes.
    size: u64,
    /// The pointers in it, by their offsets.
    pointers: Vec<(u64, DieRef)>,
    /// The locks of OpenMP in it.
    locks: Vec<u64>,
    /// It has a lock or a mutex in it.
    may_hold: bool,
    /// There are more pointers or locks.
    is_cut: bool,
}

/// Types that have been looked at: threads share nearly all of them.
#[derive(Default)]
pub(super) struct Shapes(HashMap<(usize, usize), Option<Rc<Shape>>>);

/// Reads memory of the target.
pub(super) trait Memory {
    /// The address that the word at `addr` holds.
    fn pointer(&self, addr: Addr) -> Option<Addr>;

    /// Where the block of memory ends that `malloc` has returned `start` for. `None` if it has not.
    fn block_end(&self, start: Addr) -> Option<Addr>;

    /// The 32 bits at `addr`.
    fn word(&self, addr: Addr) -> Option<u32>;
}

/// Objects, by the number of pointers that lead to them.
pub(super) struct Objects {
    shapes: Shapes,
    hops: Vec<Vec<Object>>,
    /// The pointers in so many of `hops` have been followed.
    followed: usize,
    /// There are more objects than were looked at.
    is_cut: bool,
    /// Locks of OpenMP by their content. Of those with the same only two are kept.
    locks: Option<HashMap<u32, Vec<Lock>>>,
}

/// A variable of one of OpenMP's types for locks.
#[derive(Clone, Copy)]
struct Lock {
    at: u64,
    /// The object that it is in, or in a following element of.
    hop: usize,
    object: usize,
}

impl Shapes {
    fn of(&mut self, of: &DieRef, file: &Rc<FileInfo>) -> Option<Rc<Shape>> {
        let key = (Rc::as_ptr(file).addr(), of.id());
        self.0.entry(key).or_insert_with(|| Shape::of(of, file).map(Rc::new)).clone()
    }

    /// A variable. `None` if nothing can be found by it.
    pub(super) fn variable(&mut self, text: String, at: Addr, of: &DieRef, file: &Rc<FileInfo>) -> Option<Object> {
        Object::of(text, By::Name, at, self.of(of, file)?)
    }

    /// What a pointer with this value and type points to. `None` as above.
    pub(super) fn pointee(
        &mut self,
        text: String,
        pointer: &DieRef,
        value: Addr,
        file: &Rc<FileInfo>,
    ) -> Option<Object> {
        let described = file.debug().all_described()?;
        let (place, entry) = peel(&described.entries, pointer)?;
        let (by, referred) = pointer_to(&described.entries, &place, &entry)?;
        Object::of(text, by, value, self.of(&referred, file)?)
    }

    /// What the pointers in an object lead to.
    fn followed(&mut self, object: &Object, memory: &dyn Memory) -> Vec<Object> {
        let shape = Rc::clone(&object.shape);
        let pointee = |(offset, pointer): &(u64, DieRef)| {
            let at = object.start.checked_add(*offset)?;
            let value = memory.pointer(Addr(at)).filter(|value| !value.is_null())?;
            let text = object.expression(at, Leaf::Any)?;
            // The pointer to the end of the elements lies behind that to the first (bits/stl_vector.h).
            let next = at.checked_add(u64::from(shape.of.unit.encoding().address_size)).map(Addr);
            let end = next.filter(|_| text.ends_with(ELEMENTS)).and_then(|next| memory.pointer(next));
            let found = self.pointee(text, pointer, value, &shape.file)?;
            Some(Object { end: end.map(|end| end.0), ..found })
        };
        shape.pointers.iter().filter_map(pointee).collect()
    }
}

impl Shape {
    fn of(of: &DieRef, file: &Rc<FileInfo>) -> Option<Shape> {
        let entries = &file.debug().all_described()?.entries;
        let size = size(entries, of, 0)?;
        let [mut pointers, mut locks, mut holds] = [Vec::new(), Vec::new(), Vec::new()];
        list(entries, of, 0, 0, &|_, entry| is_pointer(entry), &mut pointers);
        list(entries, of, 0, 0, &|place, _| is_one_of(LOCKS, entries, place), &mut locks);
        list(entries, of, 0, 0, &|place, entry| is_lock(entries, place, entry), &mut holds);
        let is_cut = pointers.len() >= MAX_LISTED || locks.len() >= MAX_LISTED;
        let locks = locks.into_iter().map(|(offset, _)| offset).collect();
        Some(Shape {
            of: of.clone(),
            file: Rc::clone(file),
            size,
            pointers,
            locks,
            may_hold: !holds.is_empty(),
            is_cut,
        })
    }

    fn part(&self, offset: u64, leaf: Leaf) -> Option<String> {
        globals::part_of_type(&self.file.debug().all_described()?.entries, &self.of, offset, leaf)
    }
}

impl Object {
    fn of(text: String, by: By, start: Addr, shape: Rc<Shape>) -> Option<Object> {
        start.0.checked_add(shape.size).filter(|_| !start.is_null() && text.len() <= MAX_TEXT)?;
        (shape.may_hold || !shape.pointers.is_empty()).then_some(Object { text, by, start: start.0, shape, end: None })
    }

    fn contains(&self, addr: u64) -> bool {
        addr.checked_sub(self.start).is_some_and(|offset| offset < self.shape.size)
    }

    /// The expression of what lies at `addr`, which is in the object.
    fn expression(&self, addr: u64, leaf: Leaf) -> Option<String> {
        let part = self.shape.part(addr.checked_sub(self.start)?, leaf)?;
        let text = &self.text;
        Some(match (self.by, part.chars().next()) {
            (By::Name, _) => format!("{text}{part}"),
            (By::Pointer, _) if text.ends_with(ELEMENTS) => format!("{text}[0]{part}"),
            (By::Pointer, None) if is_fortran(&self.shape.of.unit) => text.clone(),
            (By::Pointer, Some('%')) => format!("{text}{part}"),
            (By::Pointer, None) => format!("*{text}"),
            (By::Pointer, Some('.')) => format!("{}->{}", self.operand(), &part[1..]),
            (By::Pointer, Some(_)) => format!("(*{text}){part}"),
        })
    }

    /// As [`Object::expression`], if the object is the first of several that follow each other in one block. The block shows that
    /// there is memory, and not what the program has in it: an inference.
    fn element(&self, addr: u64, memory: &dyn Memory) -> Option<String> {
        let distance = addr.checked_sub(self.start).filter(|distance| (1..MAX_BLOCK).contains(distance))?;
        if self.by != By::Pointer || !self.shape.may_hold || is_fortran(&self.shape.of.unit) {
            return None;
        }
        let size = self.shape.size;
        let (index, within) = (distance.checked_div(size)?, distance.checked_rem(size)?);
        let last = addr.checked_add(size - within)?;
        let doubt = match self.end {
            Some(end) if last <= end => "",
            Some(_) => return None,
            None if last <= memory.block_end(Addr(self.start))?.0 => PROBABLY,
            None => return None,
        };
        let part = self.shape.part(within, Leaf::Lock)?;
        Some(format!("{}[{index}]{part}{doubt}", self.operand()))
    }

    fn operand(&self) -> String {
        if self.text.starts_with('*') { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Where the locks of OpenMP in it lie, or those in the elements that follow it in its block.
    fn locks(&self, following: bool, most: usize, memory: &dyn Memory) -> Vec<u64> {
        let shape = &self.shape;
        if shape.locks.is_empty() || following && self.by != By::Pointer {
            return Vec::new();
        }
        let end = following.then(|| self.end.or_else(|| Some(memory.block_end(Addr(self.start))?.0))).flatten();
        let count = end.and_then(|end| end.checked_sub(self.start)?.checked_div(shape.size)).unwrap_or(1);
        let indices = if following { 1..count } else { 0..1 };
        let places = indices.flat_map(|index| shape.locks.iter().map(move |offset| (index, *offset)));
        let place =
            |(index, offset): (u64, u64)| index.checked_mul(shape.size)?.checked_add(offset)?.checked_add(self.start);
        places.take(most).filter_map(place).collect()
    }
}

impl Objects {
    /// Those of variables, and what pointers in registers lead to. `is_cut`: there are more.
    pub(super) fn new(shapes: Shapes, variables: Vec<Object>, pointees: Vec<Object>, is_cut: bool) -> Objects {
        let mut objects = Objects { shapes, hops: Vec::new(), followed: 0, is_cut, locks: None };
        for mut list in [variables, pointees] {
            objects.is_cut |= list.len() > MAX_OBJECTS;
            list.truncate(MAX_OBJECTS);
            objects.hops.push(list);
        }
        objects
    }

    /// The expression that leads to the lock at `addr` by the fewest pointers. One that leads elsewhere too has the address added, and
    /// counts only if there is no other.
    pub(super) fn expression(&mut self, addr: Addr, memory: &dyn Memory) -> Option<String> {
        let mut several = None;
        for hop in 0..=MAX_HOPS {
            if hop > self.followed {
                self.follow(memory);
            }
            let Some(objects) = self.hops.get(hop) else { break };
            let inside = objects.iter().filter(|object| object.contains(addr.0));
            let inside = inside.filter_map(|object| Some((object, object.expression(addr.0, Leaf::Lock)?)));
            let elements = objects.iter().filter_map(|object| Some((object, object.element(addr.0, memory)?)));
            for (object, text) in inside.chain(elements) {
                if !self.has_namesake(object) {
                    return Some(plain(&text));
                }
                several.get_or_insert_with(|| format!("{} ({addr})", plain(&text)));
            }
        }
        several
    }

    /// True if the same text leads elsewhere too: frames of one function have variables of the same name.
    fn has_namesake(&self, object: &Object) -> bool {
        let same = || self.hops.iter().flatten().filter(|other| other.text == object.text);
        // A pointer has the text of what it points to.
        let is_one = |holds: bool| {
            let mut starts = same().filter(|other| other.shape.may_hold == holds).map(|other| other.start);
            starts.next().is_none_or(|first| starts.all(|start| start == first))
        };
        self.is_cut || !is_one(true) || !is_one(false)
    }

    /// What leads to the one lock variable of OpenMP that has this content. `None` if several have, or none, or not all were read.
    /// Variables that nobody has written yet are zero.
    pub(super) fn lock_with(&mut self, content: u32, memory: &dyn Memory) -> Option<String> {
        if self.locks.is_none() {
            self.locks = Some(self.read_locks(memory));
        }
        let [lock] = self.locks.as_ref()?.get(&content).filter(|_| content != 0 && !self.is_cut)?[..] else {
            return None;
        };
        let object = self.hops.get(lock.hop)?.get(lock.object)?;
        let text = match object.contains(lock.at) {
            true => object.expression(lock.at, Leaf::Lock)?,
            false => object.element(lock.at, memory)?,
        };
        let text = plain(text.strip_suffix(PROBABLY).unwrap_or(&text));
        Some(if self.has_namesake(object) { format!("{text} ({})", Addr(lock.at)) } else { text })
    }

    fn read_locks(&mut self, memory: &dyn Memory) -> HashMap<u32, Vec<Lock>> {
        while self.followed < MAX_HOPS {
            self.follow(memory);
        }
        let mut found: HashMap<u32, Vec<Lock>> = HashMap::new();
        let mut left = MAX_LOCKS;
        for following in [false, true] {
            for (hop, objects) in self.hops.iter().enumerate() {
                for (object, of) in objects.iter().enumerate() {
                    let locks = of.locks(following, left, memory);
                    left -= locks.len();
                    for at in locks {
                        let Some(content) = memory.word(Addr(at)) else { continue };
                        let same = found.entry(content).or_default();
                        if same.len() < 2 && same.iter().all(|other| other.at != at) {
                            same.push(Lock { at, hop, object });
                        }
                    }
                }
            }
        }
        self.is_cut |= left == 0 || self.hops.iter().flatten().any(|object| object.shape.is_cut);
        found
    }

    /// Adds the objects that one more pointer leads to.
    fn follow(&mut self, memory: &dyn Memory) {
        let Some(from) = self.hops.get(self.followed) else { return };
        let mut found = Vec::new();
        for object in from {
            found.extend(self.shapes.followed(object, memory));
            if found.len() > MAX_OBJECTS {
                self.is_cut = true;
                found.truncate(MAX_OBJECTS);
                break;
            }
        }
        self.followed += 1;
        match self.hops.get_mut(self.followed) {
            // What registers point to comes last.
            Some(known) => known.splice(..0, found).for_each(drop),
            None => self.hops.push(found),
        }
    }
}

/// The text without what the standard library's own members are called.
fn plain(text: &str) -> String {
    HIDDEN.iter().fold(text.to_owned(), |text, hidden| {
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(hidden) {
            let behind = &rest[at + hidden.len()..];
            let goes_on = behind.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            out.push_str(&rest[..if goes_on { at + hidden.len() } else { at }]);
            rest = behind;
        }
        out + rest
    })
}

fn is_pointer(entry: &Entry) -> bool {
    matches!(
        entry.tag(),
        gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type
    )
}

/// What a type points to, and how it is written. `None` if it is no pointer, or one to anything.
fn pointer_to(entries: &Entries, place: &DieRef, entry: &Entry) -> Option<(By, DieRef)> {
    let by = match entry.tag() {
        gimli::DW_TAG_pointer_type => By::Pointer,
        gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => By::Name,
        _ => return None,
    };
    Some((by, entries.target(place, entry, gimli::DW_AT_type)?))
}

/// Says whether a type is one that is listed.
type IsListed<'a> = &'a dyn Fn(&DieRef, &Entry) -> bool;

/// Where in a type there are parts of a listed type: their offsets and types.
fn list(
    entries: &Entries,
    of: &DieRef,
    offset: u64,
    depth: usize,
    is_listed: IsListed<'_>,
    found: &mut Vec<(u64, DieRef)>,
) {
    let Some((place, entry)) = peel(entries, of).filter(|_| depth < MAX_DEPTH && found.len() < MAX_LISTED) else {
        return;
    };
    if is_listed(of, &entry) {
        found.push((offset, place));
        return;
    }
    match entry.tag() {
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
            for (place, member) in children(&place) {
                let of = entries.target(&place, &member, gimli::DW_AT_type);
                let begins = offset_of_member(&member).and_then(|begins| offset.checked_add(begins));
                if let Some((begins, of)) = begins.zip(of) {
                    list(entries, &of, begins, depth + 1, is_listed, found);
                }
            }
        }
        gimli::DW_TAG_array_type => {
            let Some(element) = entries.target(&place, &entry, gimli::DW_AT_type) else { return };
            let (size, total) = (size(entries, &element, depth), size(entries, &place, depth));
            let Some((size, total)) = size.zip(total) else { return };
            // All elements have the same parts.
            let mut parts = Vec::new();
            list(entries, &element, 0, depth + 1, is_listed, &mut parts);
            let mut at = 0_u64;
            while at < total && found.len() < MAX_LISTED && !parts.is_empty() {
                let Some(begins) = offset.checked_add(at) else { break };
                let part = |(within, of): &(u64, DieRef)| Some((begins.checked_add(*within)?, of.clone()));
                let before = found.len();
                found.extend(parts.iter().filter_map(part).take(MAX_LISTED - before));
                let next = at.checked_add(size).filter(|_| found.len() > before);
                let Some(next) = next else { break };
                at = next;
            }
        }
        _ => {}
    }
}
