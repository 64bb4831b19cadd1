//! The functions of the interface (OpenMP 5.2, section 20.5; OpenMP 6.0, chapter 41). Each checks its arguments, asks the library, and
//! writes its results only if it succeeds.
#![allow(
    clippy::missing_safety_doc,
    reason = "what callers owe is the same for all, and said at the head of the crate"
)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, LazyLock};

use ompd_process::{Addr, NativeThread};
use ompd_runtime::family::families;
use ompd_runtime::model::{BarrierKind, Fact, OmptFrame, State, TaskKind, Wait};

use crate::answer::{Answer, NoAnswer};
use crate::answers::Answers;
use crate::icvs::{self, Value};
use crate::keys::{RegionKey, TaskKey};
use crate::library::{Handle, Library, VERSIONS, put, with, with_place};
use crate::question::{Aspect, Subject};
use crate::space::Space;
use crate::states;
use crate::types::{
    Address, AddressSpaceContext, AddressSpaceHandle, Callbacks, Device, FrameInfo, IcvId, ParallelHandle, Rc,
    ScopeNumber, Size, TaskHandle, ThreadHandle, ThreadIdKind, WaitId, Word, thread_id,
};

/// Flags of a frame (`ompt_frame_flag_t`): it is the runtime's or the program's, and its address is the stack pointer before the call
/// (`ompt_frame_cfa`).
const FRAME_RUNTIME: Word = 0x00;
const FRAME_APPLICATION: Word = 0x01;
const FRAME_CFA: Word = 0x10;

/// Fixes the version of the interface, and the callbacks. The table is copied. A second call replaces both: address spaces that are
/// open keep the callbacks they were opened with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_initialize(api_version: Word, callbacks: *const Callbacks) -> Rc {
    with_place(|place| {
        if callbacks.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        if !VERSIONS.contains(&api_version) {
            return Err(Rc::UNSUPPORTED);
        }
        // SAFETY: it is not NULL, and the debugger's table of callbacks then.
        let table = unsafe { callbacks.read_unaligned() };
        let usable = table.alloc_memory.is_some()
            && table.free_memory.is_some()
            && table.sizeof_type.is_some()
            && table.symbol_addr_lookup.is_some()
            && table.read_memory.is_some();
        if !usable {
            return Err(Rc::BAD_INPUT);
        }
        let library = match place {
            Some(library) => library.begin_again(api_version, table),
            None => Library::new(api_version, table),
        };
        *place = Some(Arc::new(library));
        Ok(())
    })
}

/// The latest version of the interface that is offered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_api_version(version: *mut Word) -> Rc {
    // SAFETY: the debugger gives a place for a word, or NULL.
    with_place(|_| unsafe { put(version, VERSIONS[VERSIONS.len() - 1]) })
}

/// What library this is. The text is the library's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_version_string(string: *mut *const c_char) -> Rc {
    static TEXT: LazyLock<CString> = LazyLock::new(|| {
        let names: Vec<&str> = families().flat_map(|about| about.libraries).copied().collect();
        CString::new(version_text(&names)).unwrap_or_else(|_| c"libompd".to_owned())
    });
    // SAFETY: the debugger gives a place for a pointer, or NULL.
    with_place(|_| unsafe { put(string, TEXT.as_ptr()) })
}

/// What library this is, for these runtimes.
fn version_text(names: &[&str]) -> String {
    let names = match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    };
    format!("libompd {}, OpenMP 5.0 to 6.0, for {names}", env!("CARGO_PKG_VERSION"))
}

/// Forgets everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_finalize() -> Rc {
    with_place(|place| place.take().map(drop).ok_or(Rc::UNSUPPORTED))
}

/// Opens an address space: a process or a core file of the debugger.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_process_initialize(
    context: *mut AddressSpaceContext,
    host_handle: *mut *mut AddressSpaceHandle,
) -> Rc {
    with(|library| {
        if context.is_null() || host_handle.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let id = library.open(context)?;
        // SAFETY: it is not NULL, and a place for a handle then.
        unsafe { put(host_handle, crate::library::pointer(id)) }
    })
}

/// There is no support for devices other than the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_device_initialize(
    host_handle: *mut AddressSpaceHandle,
    _device_context: *mut AddressSpaceContext,
    _kind: Device,
    _sizeof_id: Size,
    id: *mut c_void,
    device_handle: *mut *mut AddressSpaceHandle,
) -> Rc {
    with(|library| {
        library.space(host_handle)?;
        if id.is_null() || device_handle.is_null() { Err(Rc::BAD_INPUT) } else { Err(Rc::UNSUPPORTED) }
    })
}

/// Takes back an address space, and with it all handles of what is in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_rel_address_space_handle(handle: *mut AddressSpaceHandle) -> Rc {
    with(|library| library.release(handle, |handle| matches!(handle, Handle::Space)))
}

/// Kinds of native thread ids that are understood, with the sizes of the ids.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_device_thread_id_kinds(
    device_handle: *mut AddressSpaceHandle,
    kinds: *mut *mut ThreadIdKind,
    thread_id_sizes: *mut *mut Size,
    count: *mut c_int,
) -> Rc {
    with(|library| {
        library.space(device_handle)?;
        if kinds.is_null() || thread_id_sizes.is_null() || count.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let known: [(ThreadIdKind, Size); 2] = [(thread_id::PTHREAD, 8), (thread_id::LWP, 8)];
        let memory = library.allocate(size_of::<[u64; 2]>())?;
        let sizes = library.allocate(size_of::<[u64; 2]>()).inspect_err(|_| library.free(memory))?;
        let (memory, sizes): (*mut u64, *mut u64) = (memory.cast(), sizes.cast());
        for (n, (kind, size)) in known.into_iter().enumerate() {
            // SAFETY: both pieces of memory were got just now and have room for two of these.
            unsafe {
                memory.add(n).write_unaligned(kind);
                sizes.add(n).write_unaligned(size);
            }
        }
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(kinds, memory)?;
            put(thread_id_sizes, sizes)?;
            put(count, known.len() as c_int)
        }
    })
}

/// The version of OpenMP that the runtime of the process says it implements, as `_OPENMP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_omp_version(address_space: *mut AddressSpaceHandle, omp_version: *mut Word) -> Rc {
    with(|library| {
        let version = runtime_version(&mut *library.space(address_space)?)?;
        // SAFETY: the debugger gives a place for a word, or NULL.
        unsafe { put(omp_version, version) }
    })
}

/// The same as text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_omp_version_string(
    address_space: *mut AddressSpaceHandle,
    string: *mut *const c_char,
) -> Rc {
    with(|library| {
        let version = runtime_version(&mut *library.space(address_space)?)?;
        let name = match version {
            201_107 => "OpenMP 3.1",
            201_307 => "OpenMP 4.0",
            201_511 => "OpenMP 4.5",
            201_611 => "OpenMP 5.0 (preview 1)",
            201_811 => "OpenMP 5.0",
            202_011 => "OpenMP 5.1",
            202_111 => "OpenMP 5.2",
            202_411 => "OpenMP 6.0",
            _ => "OpenMP",
        };
        // SAFETY: the debugger gives a place for a pointer, or NULL.
        unsafe { give_string(library, &format!("{name} ({version})"), string) }
    })
}

/// `_OPENMP` as the runtime states it, if it does.
fn runtime_version(space: &mut Space) -> Result<Word, Rc> {
    let base = space.main_info()?.base;
    space.openmp_version(base)?.get().map(Word::from).ok_or(Rc::UNAVAILABLE)
}

/// The member of a region with this number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_thread_in_parallel(
    parallel_handle: *mut ParallelHandle,
    thread_num: c_int,
    thread_handle: *mut *mut ThreadHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, region) = library.region(parallel_handle)?;
        let number = usize::try_from(thread_num).map_err(|_| Rc::BAD_INPUT)?;
        let thread =
            space.ask(Subject::Member(region, number), Aspect::Itself, |answers| answers.member(region, number))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Thread(id, thread), thread_handle) }
    })
}

/// The OpenMP thread that a native thread is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_thread_handle(
    handle: *mut AddressSpaceHandle,
    kind: ThreadIdKind,
    sizeof_thread_id: Size,
    thread_id: *const c_void,
    thread_handle: *mut *mut ThreadHandle,
) -> Rc {
    with(|library| {
        let id = crate::library::number(handle);
        let mut space = library.space(handle)?;
        if thread_id.is_null() || thread_handle.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        // SAFETY: it is not NULL, and an id of the size given then.
        let wanted = unsafe { read_id(kind, sizeof_thread_id, thread_id) }?;
        let is = |native: &NativeThread| match kind {
            thread_id::LWP => native.lwp as u64 == wanted,
            _ => native.pthread.0 == wanted,
        };
        space.target().debugger().forget_thread();
        let answer = |answers: Answers<'_>| -> Answer<_> {
            let native = answers.target.natives().iter().copied().find(is).ok_or(Rc::UNAVAILABLE)?;
            Ok(answers.thread_of(native).ok_or(Rc::UNAVAILABLE)?)
        };
        let found = match space.native(is) {
            Some(native) => space.ask(Subject::Native(native), Aspect::Native, answer),
            None => {
                space.look();
                answer(space.answers()).map_err(Rc::from)
            }
        };
        let thread = match (found, space.native(is)) {
            (Err(Rc::UNAVAILABLE), Some(native)) => space.beginning_thread(native).ok_or(Rc::UNAVAILABLE)?,
            (found, _) => found?,
        };
        // SAFETY: it is not NULL, and a place for a handle then.
        unsafe { library.give(Handle::Thread(id, thread), thread_handle) }
    })
}

/// Reads a native thread id.
///
/// # Safety
/// `id` has `size` bytes.
unsafe fn read_id(kind: ThreadIdKind, size: Size, id: *const c_void) -> Result<u64, Rc> {
    match (kind, size) {
        // SAFETY: as for this function.
        (thread_id::PTHREAD | thread_id::LWP, 8) => Ok(unsafe { id.cast::<u64>().read_unaligned() }),
        // SAFETY: as for this function.
        (thread_id::LWP, 4) => Ok(unsafe { id.cast::<u32>().read_unaligned() }.into()),
        (thread_id::PTHREAD | thread_id::LWP, _) => Err(Rc::BAD_INPUT),
        _ => Err(Rc::UNSUPPORTED),
    }
}

/// Takes back a thread handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_rel_thread_handle(thread_handle: *mut ThreadHandle) -> Rc {
    with(|library| library.release(thread_handle, |handle| matches!(handle, Handle::Thread(..))))
}

/// Orders threads: -1, 0 for the same thread, 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_thread_handle_compare(
    thread_handle_1: *mut ThreadHandle,
    thread_handle_2: *mut ThreadHandle,
    cmp_value: *mut c_int,
) -> Rc {
    with(|library| {
        let of = |handle| match handle {
            Handle::Thread(space, key) => Some((space, key)),
            _ => None,
        };
        let (one, other) = library.pair(thread_handle_1, thread_handle_2, of)?;
        // SAFETY: the debugger gives a place for an int, or NULL.
        unsafe { put(cmp_value, one.cmp(&other) as c_int) }
    })
}

/// The native thread that an OpenMP thread is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_thread_id(
    thread_handle: *mut ThreadHandle,
    kind: ThreadIdKind,
    sizeof_thread_id: Size,
    thread_id: *mut c_void,
) -> Rc {
    with(|library| {
        let (mut space, _, key) = library.thread(thread_handle)?;
        if thread_id.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let native = space.ask(Subject::Thread(key), Aspect::Native, |answers| {
            let lwp = answers.thread(key)?.1.lwp.ok_or(Rc::UNAVAILABLE)?;
            let is = |native: &&NativeThread| native.lwp == lwp;
            Ok(answers.target.natives().iter().find(is).copied().ok_or(Rc::UNAVAILABLE)?)
        })?;
        let id = match kind {
            thread_id::LWP => native.lwp as u64,
            thread_id::PTHREAD => native.pthread.0,
            _ => return Err(Rc::UNSUPPORTED),
        };
        match (kind, sizeof_thread_id) {
            // SAFETY: it is not NULL, and has the size given.
            (_, 8) => unsafe { put(thread_id.cast(), id) },
            // SAFETY: as above.
            (thread_id::LWP, 4) => unsafe { put(thread_id.cast(), id as u32) },
            _ => Err(Rc::BAD_INPUT),
        }
    })
}

/// The address space of the device that a thread runs on: the handle that was given out for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_device_from_thread(
    thread_handle: *mut ThreadHandle,
    device: *mut *mut AddressSpaceHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, key) = library.thread(thread_handle)?;
        space.ask(Subject::Thread(key), Aspect::Existence, |answers| answers.thread(key).map(|_| ()))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { put(device, crate::library::pointer(id)) }
    })
}

/// The innermost region a thread is in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_curr_parallel_handle(
    thread_handle: *mut ThreadHandle,
    parallel_handle: *mut *mut ParallelHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, thread) = library.thread(thread_handle)?;
        let region = space.ask(Subject::Thread(thread), Aspect::Itself, |answers| answers.current_region(thread))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Region(id, region), parallel_handle) }
    })
}

/// The region around another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_enclosing_parallel_handle(
    parallel_handle: *mut ParallelHandle,
    enclosing_parallel_handle: *mut *mut ParallelHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, region) = library.region(parallel_handle)?;
        let enclosing = space.ask(Subject::Region(region), Aspect::Around, |answers| answers.enclosing(region))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Region(id, enclosing), enclosing_parallel_handle) }
    })
}

/// The region a task belongs to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_task_parallel_handle(
    task_handle: *mut TaskHandle,
    task_parallel_handle: *mut *mut ParallelHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, task) = library.task(task_handle)?;
        let region = space.ask(Subject::Task(task), Aspect::Itself, |answers| answers.region_of(task))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Region(id, region), task_parallel_handle) }
    })
}

/// Takes back a handle of a region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_rel_parallel_handle(parallel_handle: *mut ParallelHandle) -> Rc {
    with(|library| library.release(parallel_handle, |handle| matches!(handle, Handle::Region(..))))
}

/// Orders regions: -1, 0 for the same region, 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_parallel_handle_compare(
    parallel_handle_1: *mut ParallelHandle,
    parallel_handle_2: *mut ParallelHandle,
    cmp_value: *mut c_int,
) -> Rc {
    with(|library| {
        let of = |handle| match handle {
            Handle::Region(space, key) => Some((space, key)),
            _ => None,
        };
        let (one, other) = library.pair(parallel_handle_1, parallel_handle_2, of)?;
        // SAFETY: the debugger gives a place for an int, or NULL.
        unsafe { put(cmp_value, one.cmp(&other) as c_int) }
    })
}

/// The task a thread executes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_curr_task_handle(
    thread_handle: *mut ThreadHandle,
    task_handle: *mut *mut TaskHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, key) = library.thread(thread_handle)?;
        let task = space.ask(Subject::Thread(key), Aspect::Task, |answers| answers.current_task(key))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Task(id, task), task_handle) }
    })
}

/// The task that generated another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_generating_task_handle(
    task_handle: *mut TaskHandle,
    generating_task_handle: *mut *mut TaskHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, key) = library.task(task_handle)?;
        let generating = space.ask(Subject::Task(key), Aspect::Generating, |answers| answers.generating(key))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Task(id, generating), generating_task_handle) }
    })
}

/// The task that was set aside on the same thread for another: one that is executed at once was generated by it. Of others it is
/// not recorded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_scheduling_task_handle(
    task_handle: *mut TaskHandle,
    scheduling_task_handle: *mut *mut TaskHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, key) = library.task(task_handle)?;
        let scheduling =
            space.ask(Subject::Task(key), Aspect::Generating, |answers| match answers.task(key)?.1.kind.get() {
                Some(TaskKind::Undeferred) => answers.generating(key),
                Some(_) => Err(NoAnswer::Final(Rc::UNAVAILABLE)),
                None => Err(NoAnswer::NeedsMore(Rc::UNAVAILABLE)),
            })?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Task(id, scheduling), scheduling_task_handle) }
    })
}

/// The implicit task of the member of a region with this number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_task_in_parallel(
    parallel_handle: *mut ParallelHandle,
    thread_num: c_int,
    task_handle: *mut *mut TaskHandle,
) -> Rc {
    with(|library| {
        let (mut space, id, region) = library.region(parallel_handle)?;
        let number = usize::try_from(thread_num).map_err(|_| Rc::BAD_INPUT)?;
        let subject = Subject::ImplicitTask(region, number);
        let task = space.ask(subject, Aspect::Task, |answers| answers.implicit_task(region, number))?;
        // SAFETY: the debugger gives a place for a handle, or NULL.
        unsafe { library.give(Handle::Task(id, task), task_handle) }
    })
}

/// Takes back a handle of a task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_rel_task_handle(task_handle: *mut TaskHandle) -> Rc {
    with(|library| library.release(task_handle, |handle| matches!(handle, Handle::Task(..))))
}

/// Orders tasks: -1, 0 for the same task, 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_task_handle_compare(
    task_handle_1: *mut TaskHandle,
    task_handle_2: *mut TaskHandle,
    cmp_value: *mut c_int,
) -> Rc {
    with(|library| {
        let of = |handle| match handle {
            Handle::Task(space, key) => Some((space, key)),
            _ => None,
        };
        let (one, other) = library.pair(task_handle_1, task_handle_2, of)?;
        // SAFETY: the debugger gives a place for an int, or NULL.
        unsafe { put(cmp_value, one.cmp(&other) as c_int) }
    })
}

/// The function that has the code of a task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_task_function(task_handle: *mut TaskHandle, entry_point: *mut Address) -> Rc {
    with(|library| {
        let (mut space, _, key) = library.task(task_handle)?;
        let mut function = space.ask(Subject::Task(key), Aspect::Function, |answers| function(answers, key))?;
        if function.is_none() {
            space.look_and_enrich();
            function = self::function(space.answers(), key)?;
        }
        // SAFETY: the debugger gives a place for an address, or NULL.
        unsafe { put(entry_point, address(function.ok_or(Rc::UNAVAILABLE)?)) }
    })
}

/// The function of a task as far as it is known; that of an implicit task is the region's.
fn function(answers: Answers<'_>, key: TaskKey) -> Answer<Option<Addr>> {
    let (reading, task) = answers.task(key)?;
    let implicit = task.kind.get() == Some(TaskKind::Implicit);
    let of_region = || reading.team(task.team.flat()?)?.function.value().filter(|_| implicit);
    Ok(task.function.value().or_else(of_region).map(|function| function.addr))
}

fn address(addr: Addr) -> Address {
    Address { segment: 0, address: addr.0 }
}

/// The frames in which a task meets the runtime: where that called the task, and where the task has called it. They are those that
/// the runtime keeps for OMPT (OpenMP 5.2, 20.5.7.7), and where it keeps none, those that the stack shows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_task_frame(
    task_handle: *mut TaskHandle,
    exit_frame: *mut FrameInfo,
    enter_frame: *mut FrameInfo,
) -> Rc {
    with(|library| {
        let (mut space, _, key) = library.task(task_handle)?;
        if exit_frame.is_null() || enter_frame.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let noted = space.ask(Subject::Task(key), Aspect::Tool, |answers| answers.noted_frames(key))?;
        if let Some(noted) = noted {
            let frame = |of: OmptFrame| FrameInfo { frame_address: address(of.address), frame_flag: of.flags.into() };
            // SAFETY: they are not NULL, and places for these then.
            return unsafe {
                put(exit_frame, noted.exit.map(frame).unwrap_or_default())?;
                put(enter_frame, noted.enter.map(frame).unwrap_or_default())
            };
        }
        let frames = space.frames(key)?;
        let frame = |addr: Addr, flag| FrameInfo { frame_address: address(addr), frame_flag: flag | FRAME_CFA };
        // An initial task was called by nobody.
        let exit = frames.caller.map(|addr| frame(addr, FRAME_RUNTIME)).unwrap_or_default();
        let enter = frames.enter.map(|addr| frame(addr, FRAME_APPLICATION)).unwrap_or_default();
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(exit_frame, exit)?;
            put(enter_frame, enter)
        }
    })
}

/// The state after another in the enumeration of states.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_enumerate_states(
    address_space_handle: *mut AddressSpaceHandle,
    current_state: Word,
    next_state: *mut Word,
    next_state_name: *mut *const c_char,
    more_enums: *mut Word,
) -> Rc {
    with(|library| {
        library.space(address_space_handle)?;
        if next_state.is_null() || next_state_name.is_null() || more_enums.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let (number, name, more) = states::after(current_state, library.version).ok_or(Rc::BAD_INPUT)?;
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            give_string(library, name, next_state_name)?;
            put(next_state, number)?;
            put(more_enums, more.into())
        }
    })
}

/// The state of a thread, and what it waits for; `ompt_state_undefined` where neither the runtime's memory nor, if the debugger offers
/// them, registers tell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_state(
    thread_handle: *mut ThreadHandle,
    state: *mut Word,
    wait_id: *mut WaitId,
) -> Rc {
    with(|library| {
        let version = library.version;
        let (mut space, _, key) = library.thread(thread_handle)?;
        if let Some(kept) = space.kept_state(key) {
            // SAFETY: the debugger gives places for these, or NULL; it need not want the second.
            return unsafe {
                put(state, kept.into())?;
                if wait_id.is_null() { Ok(()) } else { put(wait_id, 0) }
            };
        }
        let known = |answers: Answers<'_>| {
            let (reading, thread) = answers.thread(key)?;
            Ok(thread.state(reading.teams).get().is_some())
        };
        let is_known = space.ask(Subject::Thread(key), Aspect::State, known)?;
        let (reading, thread) = space.answers().thread(key)?;
        let is_coarse = thread.state(reading.teams).get() == Some(State::WaitMutex);
        // Which of locks and critical sections it waits for, or that it is at work, its stack may tell.
        if !is_known || is_coarse {
            space.enrich_with_registers();
        }
        let (reading, thread) = space.answers().thread(key)?;
        let known = thread.state(reading.teams).get();
        let kept = thread.ompt_state.get().filter(|kept| states::is_one(kept.number.into()));
        let waits =
            !matches!(known, None | Some(State::WorkSerial | State::WorkParallel | State::Idle | State::Overhead));
        let number = match (known, thread.wait.value()) {
            (Some(State::WaitBarrier), Some(Some(wait))) => at_barrier(wait),
            (Some(state), _) => state.number().into(),
            // What the runtime keeps for tools is less than what can be derived, and better than nothing.
            (None, _) => kept.map_or(states::UNDEFINED, |kept| kept.number.into()),
        };
        let number = states::in_version(number, version);
        let object = match (known, kept) {
            (None, Some(kept)) if states::is_wait_for_mutex(number) => kept.wait_id,
            _ => thread.wait.value().and_then(Option::as_ref).filter(|_| waits).map_or(0, |wait| wait.object.0),
        };
        // SAFETY: the debugger gives places for these, or NULL; it need not want the second.
        unsafe {
            put(state, number)?;
            if wait_id.is_null() { Ok(()) } else { put(wait_id, object) }
        }
    })
}

/// The state of a thread at a barrier inside a region, by what the compiler says of it.
fn at_barrier(wait: &Wait) -> Word {
    match wait.barrier.as_ref().and_then(Fact::get) {
        Some(BarrierKind::Explicit) => 0x014,
        Some(BarrierKind::Loop | BarrierKind::Sections | BarrierKind::Single | BarrierKind::Workshare) => 0x012,
        Some(BarrierKind::LoopOrUnspecified | BarrierKind::Implicit) | None => State::WaitBarrier.number().into(),
    }
}

/// The control variables as the environment and the runtime have them, each as `NAME=VALUE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_display_control_vars(
    address_space_handle: *mut AddressSpaceHandle,
    control_vars: *mut *const *const c_char,
) -> Rc {
    with(|library| {
        let space = library.looked_at_space(address_space_handle)?;
        if control_vars.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let lines = crate::environment::lines(&space)?;
        let vector = library.vector(&lines)?;
        // SAFETY: it is not NULL, and a place for a pointer then.
        unsafe { put(control_vars, vector) }
    })
}

/// Takes back what [`ompd_get_display_control_vars`] has given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_rel_display_control_vars(control_vars: *mut *const *const c_char) -> Rc {
    with(|library| {
        if control_vars.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        // SAFETY: it is not NULL, and a place with a pointer then.
        let vector = unsafe { control_vars.read_unaligned() };
        let strings = library.forget_vector(vector).ok_or(Rc::BAD_INPUT)?;
        for (n, _) in strings.iter().enumerate() {
            // SAFETY: the vector was made here, with so many strings, and is given back for the first time.
            library.free(unsafe { vector.add(n).read_unaligned() }.cast_mut().cast());
        }
        library.free(vector.cast_mut().cast());
        // SAFETY: as above.
        unsafe { put(control_vars, std::ptr::null()) }
    })
}

/// The control variable after another in their enumeration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_enumerate_icvs(
    handle: *mut AddressSpaceHandle,
    current: IcvId,
    next_id: *mut IcvId,
    next_icv_name: *mut *const c_char,
    next_scope: *mut ScopeNumber,
    more: *mut c_int,
) -> Rc {
    with(|library| {
        let version = library.version;
        let mut space = library.space(handle)?;
        if next_id.is_null() || next_icv_name.is_null() || next_scope.is_null() || more.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let all = icvs::enumerated(&mut space, version);
        let next = match current {
            0 => 0,
            _ => all.iter().position(|icv| icv.id == current).ok_or(Rc::BAD_INPUT)? + 1,
        };
        let icv = all.get(next).ok_or(Rc::BAD_INPUT)?;
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            give_string(library, icv.name, next_icv_name)?;
            put(next_id, icv.id)?;
            put(next_scope, icv.scope(version))?;
            put(more, (next + 1 < all.len()).into())
        }
    })
}

/// The value of a control variable, if it is a number; of a list its first item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_icv_from_scope(
    handle: *mut c_void,
    scope: ScopeNumber,
    icv_id: IcvId,
    icv_value: *mut Word,
) -> Rc {
    with(|library| {
        let value = icv(library, handle, scope, icv_id)?;
        let number = value.number.ok_or(Rc::INCOMPATIBLE)?;
        // SAFETY: the debugger gives a place for a word, or NULL.
        unsafe { put(icv_value, number) }?;
        if value.incomplete && library.version >= VERSIONS[1] { Err(Rc::INCOMPLETE) } else { Ok(()) }
    })
}

/// The value of a control variable as text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_icv_string_from_scope(
    handle: *mut c_void,
    scope: ScopeNumber,
    icv_id: IcvId,
    icv_string: *mut *const c_char,
) -> Rc {
    with(|library| {
        let value = icv(library, handle, scope, icv_id)?;
        // SAFETY: the debugger gives a place for a pointer, or NULL.
        unsafe { give_string(library, &value.text, icv_string) }
    })
}

fn icv(library: &Library, handle: *const c_void, scope: ScopeNumber, id: IcvId) -> Result<Value, Rc> {
    let version = library.version;
    let (mut space, handle) = library.any(handle)?;
    let icv = icvs::offered(version).find(|icv| icv.id == id).ok_or(Rc::BAD_INPUT)?;
    icvs::value(&mut space, handle, scope, icv, version)
}

/// What an OMPT tool has filed with a thread, region or task: the value, and the same as an address. Not every runtime has
/// OMPT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompd_get_tool_data(
    handle: *mut c_void,
    scope: ScopeNumber,
    value: *mut Word,
    ptr: *mut Address,
) -> Rc {
    with(|library| {
        let (mut space, found) = library.any(handle)?;
        if value.is_null() || ptr.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        use crate::types::scope as scopes;
        let fits = match found {
            Handle::Space => return Err(Rc::INCOMPATIBLE),
            Handle::Thread(..) => scope == scopes::THREAD,
            Handle::Region(..) => scope == scopes::PARALLEL,
            Handle::Task(..) => matches!(scope, scopes::TASK | scopes::IMPLICIT_TASK),
        };
        if !fits {
            return Err(Rc::INCOMPATIBLE);
        }
        let runtime = match found {
            Handle::Thread(_, key) => key.runtime,
            Handle::Region(_, key) => key.runtime(),
            Handle::Task(_, key) => key.runtime,
            Handle::Space => return Err(Rc::INCOMPATIBLE),
        };
        if !space.has_tools(runtime)? {
            return Err(Rc::UNSUPPORTED);
        }
        let known = |filed: &Fact<u64>| filed.get().ok_or(NoAnswer::NeedsMore(Rc::UNAVAILABLE));
        let filed = match found {
            Handle::Thread(_, key) => {
                space.ask(Subject::Thread(key), Aspect::Tool, |answers| known(&answers.thread(key)?.1.tool_data))
            }
            Handle::Region(_, key @ RegionKey::Outermost(thread)) => {
                space.ask(Subject::Region(key), Aspect::Tool, |answers| {
                    known(&answers.thread(thread)?.1.outermost_tool_data)
                })
            }
            Handle::Region(_, key) => {
                space.ask(Subject::Region(key), Aspect::Tool, |answers| known(&answers.team(key)?.2.tool_data))
            }
            Handle::Task(_, key) => {
                space.ask(Subject::Task(key), Aspect::Tool, |answers| known(&answers.task(key)?.1.tool_data))
            }
            Handle::Space => Err(Rc::INCOMPATIBLE),
        }?;
        // SAFETY: they are not NULL, and places for these then.
        unsafe {
            put(value, filed as Word)?;
            put(ptr, address(Addr(filed)))
        }
    })
}

/// Writes a string in the debugger's memory to where the debugger wants it.
///
/// # Safety
/// `out` is NULL or may be written.
unsafe fn give_string(library: &Library, text: &str, out: *mut *const c_char) -> Result<(), Rc> {
    if out.is_null() {
        return Err(Rc::BAD_INPUT);
    }
    let text = library.string(text)?;
    // SAFETY: as for this function.
    unsafe { put(out, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_at_barriers_are_those_of_the_standard() {
        use ompd_runtime::Origin;
        use ompd_runtime::model::WaitKind;
        let of = |kind: Option<BarrierKind>| {
            let wait = Wait::new(WaitKind::Barrier, Addr(8), Origin::Dwarf);
            at_barrier(&Wait { barrier: kind.map(|kind| Fact::known(kind, Origin::Stack)), ..wait })
        };
        assert_eq!(of(Some(BarrierKind::Explicit)), 0x014);
        for kind in [BarrierKind::Loop, BarrierKind::Sections, BarrierKind::Single, BarrierKind::Workshare] {
            assert_eq!(of(Some(kind)), 0x012);
        }
        for kind in [None, Some(BarrierKind::LoopOrUnspecified), Some(BarrierKind::Implicit)] {
            assert_eq!(of(kind), 0x010);
        }
    }

    #[test]
    fn the_version_names_every_runtime() {
        let told = |names: &[&str]| version_text(names).split(" for ").nth(1).map(str::to_owned);
        assert_eq!(told(&["libgomp"]).as_deref(), Some("libgomp"));
        assert_eq!(told(&["libgomp", "libomp", "libiomp5"]).as_deref(), Some("libgomp, libomp and libiomp5"));
    }
}
