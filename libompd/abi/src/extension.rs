//! What this library offers beyond OMPD, under the prefix `ompdx_`: `ompd-ext.h` is made of this file. The conventions of OMPD's
//! functions hold for these as well.
#![allow(
    clippy::missing_safety_doc,
    reason = "what callers owe it is the same for all, and said at the head of the crate"
)]

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use ompd_inspection::history;
use ompd_report::text::history::Wanted;
use ompd_report::text::{self, How, View};
use ompd_runtime::stops::StopEvent;

use crate::answers;
use crate::keys::RegionKey;
use crate::library::{Handle, Library, put, with};
use crate::space::Space;
use crate::stops::{Listed, source};
use crate::types::{Address, AddressSpaceHandle, ParallelHandle, Rc, Size, ThreadHandle};

/// What begins or ends when a thread gets to a place.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A parallel region begins: its team is complete, and none of its implicit tasks has begun.
    ParallelBegin = 1,
    /// A parallel region ends: its threads have arrived at its end.
    ParallelEnd = 2,
    /// The code of an explicit task is about to be called.
    TaskBegin = 3,
    /// The code of an explicit task has returned.
    TaskEnd = 4,
    /// A thread that the runtime has made begins, before its first region.
    ThreadBegin = 5,
    /// A thread that the runtime has made ends, after its last region.
    ThreadEnd = 6,
    /// A thread comes to a barrier of its team, or to the end of a region. OMPD has no symbol for it.
    BarrierBegin = 7,
    /// A thread comes to a lock that it will acquire (`omp_set_lock`, `omp_set_nest_lock`). OMPD has no symbol for it.
    LockAcquire = 8,
    /// A thread comes to a `critical` construct. OMPD has no symbol for it.
    CriticalAcquire = 9,
    /// A thread comes to a `taskwait` construct. OMPD has no symbol for it.
    TaskwaitBegin = 10,
    /// A thread comes to a worksharing loop, or to a `sections` construct. OMPD has no symbol for it.
    WorksharingBegin = 11,
    /// A thread comes to a `single` construct. OMPD has no symbol for it.
    SingleBegin = 12,
}

/// Where the knowledge of how to read a value comes from.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The value is not known.
    Unknown = 0,
    /// Debug information of the runtime.
    Dwarf = 1,
    /// A table in which the runtime describes itself.
    Table = 2,
    /// A symbol.
    Symbol = 3,
    /// The runtime's code.
    Code = 4,
    /// A layout of a release that came with this library, which fits the runtime.
    Profile = 5,
    /// Registers of a thread.
    Registers = 6,
    /// The stack of a thread.
    Stack = 7,
    /// The operating system.
    Os = 8,
    /// Something else, which the text names.
    Other = 9,
}

/// A value whose origin can be asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Of a thread: its innermost region.
    ThreadRegion = 1,
    /// Of a thread: its number in that.
    ThreadNumber = 2,
    /// Of a thread: the task it executes.
    ThreadTask = 3,
    /// Of a thread: its state.
    ThreadState = 4,
    /// Of a region: how many threads it has.
    RegionSize = 11,
    /// Of a region: its level of nesting.
    RegionLevel = 12,
    /// Of a region: how many of the levels have more than one thread.
    RegionActiveLevel = 13,
    /// Of a region: the one around it.
    RegionEnclosing = 14,
    /// Of a region: its function.
    RegionFunction = 15,
    /// Of a task: what kind of task it is.
    TaskKind = 21,
    /// Of a task: what generated it.
    TaskGenerating = 22,
    /// Of a task: the region it belongs to.
    TaskRegion = 23,
    /// Of a task: its function.
    TaskFunction = 24,
    /// Of a task: whether it is a final one.
    TaskFinal = 25,
}

/// Room for registers that matter at a place.
pub const REGISTERS: usize = 4;

/// A place at which a debugger can stop the process when something begins or ends, or the reason why there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct StopPoint {
    /// Number of the place, the same as long as the address space handle is valid; 0 if there is none.
    pub point: u64,
    /// What begins or ends. One event may have several places; a thread passes through one of them. The symbols of OMPD (`own`) are a
    /// set by themselves: a debugger uses them, or the others.
    pub event: Event,
    /// 1 for the symbols of OMPD (`ompd_bp_...`): runtimes pass through them only if started with `OMP_DEBUG=enabled`. 0 for
    /// equivalent places: runtimes always pass through them.
    pub own: c_int,
    /// Where the breakpoint belongs: the event is before the instruction is executed.
    pub address: Address,
    /// How it was found.
    pub origin: Origin,
    /// How many of `registers` there are.
    pub register_count: c_int,
    /// DWARF numbers of the registers without which less is known at this place.
    pub registers: [u16; REGISTERS],
    /// Which runtime it is.
    pub runtime: *const c_char,
    /// Which place it is; if `point` is 0, what is not met, and why.
    pub place: *const c_char,
    /// What else has to hold for a hit to count; NULL if nothing. `ompdx_get_stop` tells whether it does.
    pub condition: *const c_char,
}

impl From<StopEvent> for Event {
    fn from(event: StopEvent) -> Event {
        match event {
            StopEvent::ParallelBegin => Event::ParallelBegin,
            StopEvent::ParallelEnd => Event::ParallelEnd,
            StopEvent::TaskBegin => Event::TaskBegin,
            StopEvent::TaskEnd => Event::TaskEnd,
            StopEvent::ThreadBegin => Event::ThreadBegin,
            StopEvent::ThreadEnd => Event::ThreadEnd,
            StopEvent::BarrierBegin => Event::BarrierBegin,
            StopEvent::LockAcquire => Event::LockAcquire,
            StopEvent::CriticalAcquire => Event::CriticalAcquire,
            StopEvent::TaskwaitBegin => Event::TaskwaitBegin,
            StopEvent::WorksharingBegin => Event::WorksharingBegin,
            StopEvent::SingleBegin => Event::SingleBegin,
        }
    }
}

impl From<ompd_runtime::Origin> for Origin {
    fn from(origin: ompd_runtime::Origin) -> Origin {
        match origin {
            ompd_runtime::Origin::Dwarf => Origin::Dwarf,
            ompd_runtime::Origin::Table => Origin::Table,
            ompd_runtime::Origin::Symbol => Origin::Symbol,
            ompd_runtime::Origin::Code => Origin::Code,
            ompd_runtime::Origin::Profile => Origin::Profile,
            ompd_runtime::Origin::Registers => Origin::Registers,
            ompd_runtime::Origin::Stack => Origin::Stack,
            ompd_runtime::Origin::Os => Origin::Os,
            _ => Origin::Other,
        }
    }
}

/// Lists the places of all runtimes of a process, and with `point` 0 what has none. From then on threads are recognised at them, and
/// what OMPD's functions say of such a thread is what OMPD asks for at that event.
///
/// The array and all its strings are one block of the debugger's memory: it frees the array only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_stop_points(
    address_space: *mut AddressSpaceHandle,
    points: *mut *mut StopPoint,
    count: *mut Size,
) -> Rc {
    with(|library| {
        library.space(address_space)?;
        if points.is_null() || count.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let listed = library.looked_at_space(address_space)?.stop_points();
        let block = lay_out(library, &listed)?;
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(points, block)?;
            put(count, listed.len() as Size)
        }
    })
}

/// Copies the list into one block of the debugger's memory.
fn lay_out(library: &Library, listed: &[Listed]) -> Result<*mut StopPoint, Rc> {
    let clean = |text: &str| text.replace('\0', "");
    let texts: Vec<[Option<String>; 3]> = listed
        .iter()
        .map(|entry| {
            let (place, condition) = match &entry.place {
                Ok((_, point)) => (&point.place, point.condition),
                Err(why) => (why, None),
            };
            [Some(clean(&entry.runtime)), Some(clean(place)), condition.map(clean)]
        })
        .collect();
    let head = size_of::<StopPoint>().checked_mul(listed.len()).ok_or(Rc::NOMEM)?;
    let strings: usize = texts.iter().flatten().flatten().map(|text| text.len() + 1).sum();
    let block = library.allocate(head.checked_add(strings).ok_or(Rc::NOMEM)?)?;
    let mut next: *mut u8 = block.cast::<u8>().wrapping_add(head);
    for (n, (entry, texts)) in listed.iter().zip(&texts).enumerate() {
        let texts = texts.each_ref().map(|text| {
            let Some(text) = text else { return std::ptr::null() };
            let start = next;
            // SAFETY: the block has room for all strings, each with the byte that ends it, behind the array.
            unsafe {
                std::ptr::copy_nonoverlapping(text.as_ptr(), start, text.len());
                start.add(text.len()).write(0);
            }
            next = start.wrapping_add(text.len() + 1);
            start.cast_const().cast::<c_char>()
        });
        let [runtime, place, condition] = texts;
        let mut point = StopPoint {
            point: 0,
            event: entry.event.into(),
            own: entry.own.into(),
            address: Address::default(),
            origin: Origin::Unknown,
            register_count: 0,
            registers: [0; REGISTERS],
            runtime,
            place,
            condition,
        };
        if let Ok((id, known)) = &entry.place {
            point.point = *id;
            point.address.address = known.addr.0;
            point.origin = known.origin.into();
            for (to, from) in point.registers.iter_mut().zip(&known.registers) {
                *to = *from;
                point.register_count += 1;
            }
        }
        // SAFETY: the block begins with room for so many of these.
        unsafe { block.cast::<StopPoint>().add(n).write_unaligned(point) };
    }
    Ok(block.cast())
}

/// Tells that a thread is at a place, for debuggers that offer no registers; with `point` 0, that it is at none any more. It holds until
/// then, or until `ompdx_drop_cache`: the debugger takes it back before it lets the thread run.
///
/// `registers` are the values of those that the place names, in their order; the last ones may be left out, and then less is known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_set_stop(
    thread_handle: *mut ThreadHandle,
    point: u64,
    registers: *const u64,
    register_count: Size,
) -> Rc {
    with(|library| {
        let (mut space, _, thread) = library.thread(thread_handle)?;
        let count = usize::try_from(register_count).ok().filter(|count| *count <= REGISTERS).ok_or(Rc::BAD_INPUT)?;
        if count > 0 && registers.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        // SAFETY: it is not NULL, and so many values then.
        let values = (0..count).map(|n| unsafe { registers.add(n).read_unaligned() }).collect();
        space.look();
        space.tell_stop(thread, point, values)
    })
}

/// The place that a thread is at, and whether the hit counts: 0 if what else has to hold does not. `ompd_rc_unavailable` if it is at
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_get_stop(
    thread_handle: *mut ThreadHandle,
    point: *mut u64,
    event: *mut Event,
    counts: *mut c_int,
) -> Rc {
    with(|library| {
        let (mut space, _, thread) = library.thread(thread_handle)?;
        if point.is_null() || event.is_null() || counts.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let (id, found, not_counted) = match space.stop_of_thread(thread) {
            Some((id, found, not_counted)) => (id, found.event, not_counted),
            None => {
                space.look();
                let (id, found, not_counted) = space.stop_of(thread)?;
                (id, found.event, not_counted)
            }
        };
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(point, id)?;
            put(event, found.into())?;
            put(counts, not_counted.is_none().into())
        }
    })
}

/// The function that a compiler made of the body of a region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_get_parallel_function(
    parallel_handle: *mut ParallelHandle,
    entry_point: *mut Address,
) -> Rc {
    with(|library| {
        let (mut space, _, region) = library.region(parallel_handle)?;
        if entry_point.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        space.look();
        let function = space.region_function(region)?;
        // SAFETY: it is not NULL, and a place for an address then.
        unsafe { put(entry_point, Address { segment: 0, address: function.0 }) }
    })
}

/// Where in the process the runtime keeps its record of a thread, a region or a task. The address identifies each of them at one
/// moment, and as long as it exists. It is 0 for the region around the program, which has no record. Regions of one thread that
/// are nested in each other may share one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_get_descriptor(handle: *mut c_void, descriptor: *mut Address) -> Rc {
    with(|library| {
        let (_, found) = library.any(handle)?;
        let at = match found {
            Handle::Thread(_, key) => key.descriptor.0,
            Handle::Region(_, RegionKey::Outermost(_)) => 0,
            Handle::Region(_, RegionKey::Team { descriptor, .. }) => descriptor.0,
            Handle::Task(_, key) => key.descriptor.0,
            Handle::Space => return Err(Rc::INCOMPATIBLE),
        };
        // SAFETY: the debugger gives a place for an address, or NULL.
        unsafe { put(descriptor, Address { segment: 0, address: at }) }
    })
}

/// Where the knowledge of a value comes from. `handle` is of a thread, a region or a task, as the item asks for.
///
/// `text` says more: what was looked at, or, if the value is not known (`ompdx_origin_unknown`), why.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_get_origin(
    handle: *mut c_void,
    item: c_int,
    origin: *mut Origin,
    text: *mut *const c_char,
) -> Rc {
    with(|library| {
        let (mut space, found) = library.any(handle)?;
        if origin.is_null() || text.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        space.look();
        let known = origin_of(space.answers(), found, item)?;
        let runtime = match found {
            Handle::Thread(_, key) => key.runtime,
            Handle::Region(_, key) => key.runtime(),
            Handle::Task(_, key) => key.runtime,
            Handle::Space => return Err(Rc::INCOMPATIBLE),
        };
        let (number, words) = match known {
            Ok(known) => (known.into(), detail(&space, runtime, known)),
            Err(why) => (Origin::Unknown, why),
        };
        let words = library.string(&words)?;
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(origin, number)?;
            put(text, words)
        }
    })
}

fn origin_of(
    answers: answers::Answers<'_>,
    handle: Handle,
    item: c_int,
) -> Result<Result<ompd_runtime::Origin, String>, Rc> {
    const OUTERMOST: &str = "it is the region around the program, of which the runtime keeps nothing";
    let is = |wanted: Item| item == wanted as c_int;
    Ok(match handle {
        Handle::Thread(_, key) => {
            let (reading, thread) = answers.thread(key)?;
            let state = thread.state(reading.teams);
            let trouble = match () {
                () if is(Item::ThreadRegion) => answers.region_trouble(key),
                () if is(Item::ThreadTask) => answers.task_at_stop(key).and_then(Result::err),
                () => None,
            };
            if let Some(why) = trouble {
                return Ok(Err(why));
            }
            match () {
                () if is(Item::ThreadRegion) => source(&thread.team),
                () if is(Item::ThreadNumber) => source(&thread.thread_num),
                () if is(Item::ThreadTask) => source(&thread.task),
                () if is(Item::ThreadState) && state.get().is_none() && thread.ompt_state.get().is_some() => {
                    source(&thread.ompt_state)
                }
                () if is(Item::ThreadState) => source(&state),
                () => return Err(Rc::BAD_INPUT),
            }
        }
        Handle::Region(_, RegionKey::Outermost(thread)) => {
            answers.thread(thread)?;
            if !(Item::RegionSize as c_int..=Item::RegionFunction as c_int).contains(&item) {
                return Err(Rc::BAD_INPUT);
            }
            Err(OUTERMOST.to_owned())
        }
        Handle::Region(_, key) => {
            let team = answers.team(key)?.2;
            match () {
                () if is(Item::RegionSize) => source(&team.size),
                () if is(Item::RegionLevel) => source(&team.level),
                () if is(Item::RegionActiveLevel) => source(&team.active_level),
                () if is(Item::RegionEnclosing) => source(&team.parent),
                () if is(Item::RegionFunction) => source(&team.function),
                () => return Err(Rc::BAD_INPUT),
            }
        }
        Handle::Task(_, key) => {
            let task = answers.task(key)?.1;
            match () {
                () if is(Item::TaskKind) => source(&task.kind),
                () if is(Item::TaskGenerating) => source(&task.generating),
                () if is(Item::TaskRegion) => source(&task.team),
                () if is(Item::TaskFunction) => source(&task.function),
                () if is(Item::TaskFinal) => source(&task.is_final),
                () => return Err(Rc::BAD_INPUT),
            }
        }
        Handle::Space => return Err(Rc::INCOMPATIBLE),
    })
}

/// The origin in words: which file, table or layout it was.
fn detail(space: &Space, runtime: ompd_process::Addr, origin: ompd_runtime::Origin) -> String {
    let instance = space.runtimes.iter().map(|of| of.info()).find(|info| info.base == runtime);
    let reports = instance.into_iter().flat_map(|instance| &instance.origins);
    let details: Vec<&str> =
        reports.filter(|report| report.origin == origin && report.values > 0).map(|report| &*report.detail).collect();
    if details.is_empty() { origin.word().to_owned() } else { format!("{}: {}", origin.word(), details.join(", ")) }
}

/// All that is known of a process, as the JSON that `ompd-inspect --json` prints (`docs/report.schema.json`). It has threads,
/// teams, tasks, what waits for what, locks, loops, control variables, stacks, and verdicts. It is one look at a process that the
/// debugger holds.
///
/// The library asks for the registers of every thread, in any way that the debugger offers. Without them there are no stacks, and
/// what libgomp's threads wait for is not known. The text is in the debugger's memory, and the debugger frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_report_json(address_space: *mut AddressSpaceHandle, json: *mut *const c_char) -> Rc {
    with(|library| {
        library.space(address_space)?;
        if json.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let report = ompd_report::json::report(library.looked_at_space(address_space)?.inspection());
        let text = serde_json::to_string(&report).map_err(|_| Rc::ERROR)?;
        let text = library.string(&text)?;
        // SAFETY: it is not NULL, and a place for a pointer then.
        unsafe { put(json, text) }
    })
}

/// What a debugger calls a thread.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ThreadLabel {
    /// Kernel thread id.
    pub lwp: i64,
    /// Its name or number in the debugger. Tables show a `*` at its begin, by which the selected thread can be marked.
    pub label: *const c_char,
}

/// How `ompdx_report_text` shows things.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// Columns to lay out for; 0 for 80.
    pub width: c_int,
    /// 1: with the origins of values, and nothing cut.
    pub verbose: c_int,
    /// 1: with the escape sequences by which terminals show colours.
    pub colour: c_int,
    /// What the debugger calls threads; NULL if there are none.
    pub labels: *const ThreadLabel,
    /// How many of those there are.
    pub label_count: Size,
}

/// The same for people, in the tables of `ompd-inspect`. `view` is the name of one of its commands, or `summary`. One of the
/// options `--tree`, `--all`, `--dot`, `--folded` and `--svg` may follow, where that command has it. Any other view is
/// `ompd_rc_bad_input`. (Pictures that need Graphviz are not drawn.) `options` may be NULL.
///
/// `history`, perhaps with `--by-time` and `--last N`, has what the companion recorded, or the reason why there is nothing. It
/// reads neither threads nor registers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_report_text(
    address_space: *mut AddressSpaceHandle,
    view: *const c_char,
    options: *const TextOptions,
    text: *mut *const c_char,
) -> Rc {
    with(|library| {
        library.space(address_space)?;
        if view.is_null() || text.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        // SAFETY: it is not NULL, and a C string then.
        let words = unsafe { CStr::from_ptr(view) }.to_str().map_err(|_| Rc::BAD_INPUT)?;
        // SAFETY: it is NULL or points to options of the debugger's.
        let (how, colour) = unsafe { how(options)? };
        let shown = if let Some(Wanted { view, most }) = Wanted::of_words(words) {
            match history::of_target(&library.space(address_space)?.target, most) {
                Ok(history) => text::history::render(&history, view, how.width),
                Err(why) => text::history::absent(&why),
            }
        } else {
            let view = View::of_words(words).ok_or(Rc::BAD_INPUT)?;
            text::render(library.looked_at_space(address_space)?.inspection(), view, how)
        };
        // A zero cannot be in it: it would have been escaped.
        let shown = library.string(&if colour { shown } else { text::plain(&shown) })?;
        // SAFETY: it is not NULL, and a place for a pointer then.
        unsafe { put(text, shown) }
    })
}

/// How to show things, and whether in colours.
///
/// # Safety
/// `options` is NULL, or points to options whose labels are as many as they say, each with a C string.
unsafe fn how(options: *const TextOptions) -> Result<(How, bool), Rc> {
    if options.is_null() {
        return Ok((How { in_debugger: true, ..How::default() }, false));
    }
    // SAFETY: as above.
    let options = unsafe { options.read_unaligned() };
    let count = usize::try_from(options.label_count).map_err(|_| Rc::BAD_INPUT)?;
    if count > 0 && options.labels.is_null() {
        return Err(Rc::BAD_INPUT);
    }
    let mut labels = HashMap::new();
    for n in 0..count {
        // SAFETY: there are so many.
        let ThreadLabel { lwp, label } = unsafe { options.labels.add(n).read_unaligned() };
        if label.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        // SAFETY: it is not NULL, and a C string then.
        let label = unsafe { CStr::from_ptr(label) }.to_string_lossy().into_owned();
        if let Ok(lwp) = i32::try_from(lwp) {
            labels.insert(lwp, label);
        }
    }
    let width = u16::try_from(options.width).ok().filter(|width| *width > 0);
    let verbose = options.verbose != 0;
    Ok((How { width, verbose, labels, in_debugger: true, ..How::default() }, options.colour != 0))
}

/// Names a folder in which the files are that a process has mapped: a copy of the file system of the machine it runs on, or a folder
/// with its libraries. It holds for processes that are initialised from then on. Files there come before those at the paths that
/// the process names. Both count only if their build-ids are those of the process. NULL or an empty string: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_set_lib_root(directory: *const c_char) -> Rc {
    with(|library| {
        // SAFETY: it is a C string, if it is not NULL.
        let directory = (!directory.is_null()).then(|| unsafe { CStr::from_ptr(directory) }.to_bytes());
        let directory = directory.filter(|bytes| !bytes.is_empty());
        library.set_lib_root(directory.map(|bytes| PathBuf::from(OsStr::from_bytes(bytes))));
        Ok(())
    })
}

/// Reads everything anew, and forgets what `ompdx_set_stop` reported. Handles stay valid.
///
/// What is known of a process is read anew with every call anyway, unless the debugger offers the count of stops. What the files
/// of its modules and the code of its runtimes show is kept; this function drops that as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompdx_drop_cache(address_space: *mut AddressSpaceHandle) -> Rc {
    with(|library| {
        library.space(address_space)?.drop_cache();
        Ok(())
    })
}
