//! Code that a process has made while it ran, as compilers register it for debuggers.
//!
//! A JIT compiler lists ELF objects at `__jit_debug_descriptor`, one for each piece of code (GDB manual, "JIT Interface"). LLVM's
//! engines do, and with them Numba; so do LuaJIT, QEMU and others. An object has the names of functions, and often call frame
//! information and lines. All of it is the target's memory: a list may be a circle and an object anything.
//!
//! Of a live process the objects are read when somebody asks, which may be after it was resumed. An object counts if its entry is
//! the same after it was read.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::elf::{self, ElfFile};
use crate::memory::{Addr, MAX_READ};
use crate::module::Module;
use crate::{Target, TargetExt};

/// What code without a file is called.
pub const JIT_CODE: &str = "[JIT code]";

/// The name of the list's head.
const DESCRIPTOR: &str = "__jit_debug_descriptor";
/// The only version there is.
const VERSION: u32 = 1;
/// Objects that are looked at. A program with thousands of compiled functions has as many.
const MAX_OBJECTS: usize = 1 << 14;
/// Bytes of all objects together, and as much again for what is read where they were loaded.
const MAX_BYTES: u64 = 256 << 20;
/// Modules of which the list is followed: each library that has LLVM in it has one.
const MAX_LISTS: usize = 64;

/// An entry of the list: where the next one is, and what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: Addr,
    next: Addr,
    object: Addr,
    size: u64,
}

impl Entry {
    /// Next, previous, address and size of the object, eight bytes each.
    fn read(target: &dyn Target, at: Addr) -> Option<Entry> {
        let mut bytes = [0; 32];
        target.read(at, &mut bytes).ok()?;
        let word = |n: usize| target.arch().byte_order.uint(&bytes[8 * n..8 * (n + 1)]);
        Some(Entry { at, next: Addr(word(0)), object: Addr(word(2)), size: word(3) })
    }
}

/// An object whose code lies in a process.
#[derive(Debug)]
struct JitObject {
    entry: Entry,
    bytes: Vec<u8>,
    /// Addresses of its code, in order.
    code: Vec<Range<u64>>,
}

/// The objects that a process has registered.
#[derive(Debug, Default)]
pub struct JitObjects {
    objects: Vec<JitObject>,
    /// Start and end of each piece of code with the index of its object, sorted.
    ranges: Vec<(u64, u64, usize)>,
    /// Bytes that may still be taken of what was loaded.
    left: Cell<u64>,
}

impl JitObjects {
    /// Reads the lists of all modules that have one. What cannot be read is left out. Where two objects claim the same
    /// address, which of them is there is unknown, and neither counts.
    pub fn read(target: &dyn Target) -> JitObjects {
        let arch = target.arch();
        if arch.pointer_bytes != 8 {
            return JitObjects::default();
        }
        let mut objects = Vec::new();
        let mut seen = BTreeSet::new();
        let mut left = MAX_BYTES;
        for head in descriptors(target) {
            let mut next = first_entry(target, head);
            while let Some(at) = next.filter(|at| at.0 != 0 && seen.len() < MAX_OBJECTS && seen.insert(*at)) {
                let Some(entry) = Entry::read(target, at) else { break };
                next = Some(entry.next);
                let Some(rest) = left.checked_sub(entry.size).filter(|_| entry.size <= MAX_READ) else { continue };
                left = rest;
                let Ok(bytes) = target.read_vec(entry.object, entry.size) else { continue };
                if Entry::read(target, at) != Some(entry) {
                    continue;
                }
                if let Some(code) = elf::code_ranges(&bytes, arch) {
                    objects.push(JitObject { entry, bytes, code });
                }
            }
        }
        let ranges = apart(&objects);
        JitObjects { objects, ranges, left: Cell::new(MAX_BYTES) }
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The index of the object whose code is at `addr`.
    pub fn at(&self, addr: Addr) -> Option<usize> {
        let place = self.ranges.partition_point(|(start, ..)| *start <= addr.0).checked_sub(1)?;
        self.ranges.get(place).filter(|(_, end, _)| addr.0 < *end).map(|(.., index)| *index)
    }

    /// The object with this index as a module, with the code that lies in memory.
    pub fn module(&self, target: &dyn Target, index: usize) -> Option<Module> {
        let object = self.objects.get(index)?;
        let memory = |addr, buf: &mut [u8]| target.read(Addr(addr), buf).is_ok();
        let mut left = self.left.get();
        let file = ElfFile::placed(JIT_CODE, object.bytes.clone(), target.arch(), &memory, &mut left);
        self.left.set(left);
        // A process that runs may have freed the code meanwhile.
        let same = Entry::read(target, object.entry.at) == Some(object.entry);
        let file = file.filter(|_| same).map(Arc::new);
        let why = || Vec::from([format!("{JIT_CODE}: its object cannot be used, or has changed since it was found")]);
        Some(Module {
            path: JIT_CODE.to_owned(),
            bias: 0,
            ranges: object.code.clone(),
            build_id: None,
            file: file.ok_or_else(why),
        })
    }
}

/// Where the heads of lists are.
fn descriptors(target: &dyn Target) -> Vec<Addr> {
    let address = |module: &Module| {
        let file = module.file.as_ref().ok()?;
        Some(file.variable(DESCRIPTOR)?.offset(module.bias))
    };
    target.modules().iter().filter_map(address).take(MAX_LISTS).collect()
}

/// Version and action in four bytes each, the entry that is about to change, the first entry.
fn first_entry(target: &dyn Target, head: Addr) -> Option<Addr> {
    let version = target.read_u32(head).ok()?;
    let first = target.read_ptr(head.checked_add(16)?).ok()?;
    (version == VERSION).then_some(first)
}

/// The code of all objects, sorted, without that which overlaps.
fn apart(objects: &[JitObject]) -> Vec<(u64, u64, usize)> {
    let of = |(index, object): (usize, &JitObject)| {
        object.code.iter().map(move |range| (range.start, range.end, index)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = objects.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    let mut reach = 0;
    let mut overlaps = vec![false; all.len()];
    let mut furthest = 0;
    for (at, (start, end, _)) in all.iter().enumerate() {
        if *start < reach {
            (overlaps[at], overlaps[furthest]) = (true, true);
        }
        if *end > reach {
            (reach, furthest) = (*end, at);
        }
    }
    all.into_iter().zip(overlaps).filter(|(_, overlaps)| !overlaps).map(|(range, _)| range).collect()
}
