//! Types and numbers of the interface, as the OpenMP specification gives them (OpenMP 5.2, section 20.3, and OpenMP 6.0,
//! chapter 39; `omp-tools.h` and `ompd-types.h`). Names without the prefix `ompd_` stand for those with it.

use std::ffi::{c_char, c_int, c_void};

/// `ompd_size_t`.
pub type Size = u64;
/// `ompd_word_t`.
pub type Word = i64;
/// `ompd_wait_id_t`.
pub type WaitId = u64;
/// `ompd_icv_id_t`.
pub type IcvId = u64;
/// `ompd_thread_id_t`: a kind of native thread ids.
pub type ThreadIdKind = u64;
/// `ompd_device_t`.
pub type Device = u64;

/// `ompd_address_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Address {
    /// Segment; 0 (`ompd_segment_none`) on every machine this library knows.
    pub segment: u64,
    /// Address in the target.
    pub address: u64,
}

/// `ompd_frame_info_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameInfo {
    /// The frame, as `frame_flag` says.
    pub frame_address: Address,
    /// Flags of `ompt_frame_flag_t`.
    pub frame_flag: Word,
}

/// `ompd_device_type_sizes_t`: sizes of C types in the target, in bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeSizes {
    /// `char`.
    pub char_: u8,
    /// `short`.
    pub short: u8,
    /// `int`.
    pub int: u8,
    /// `long`.
    pub long: u8,
    /// `long long`.
    pub long_long: u8,
    /// Any pointer to data.
    pub pointer: u8,
}

/// `ompd_rc_t`: what a function returns.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rc(pub c_int);

impl Rc {
    /// Done.
    pub const OK: Rc = Rc(0);
    /// There is no such information in this context.
    pub const UNAVAILABLE: Rc = Rc(1);
    /// A handle is not valid, or not any more.
    pub const STALE_HANDLE: Rc = Rc(2);
    /// An argument that is no handle is wrong.
    pub const BAD_INPUT: Rc = Rc(3);
    /// Something failed for good.
    pub const ERROR: Rc = Rc(4);
    /// Not offered for these arguments.
    pub const UNSUPPORTED: Rc = Rc(5);
    /// The runtime would have had to keep track of states.
    pub const NEEDS_STATE_TRACKING: Rc = Rc(6);
    /// The library does not fit the program, or the request the handle.
    pub const INCOMPATIBLE: Rc = Rc(7);
    /// The debugger gave no memory.
    pub const NOMEM: Rc = Rc(10);
    /// A part of the answer (since OpenMP 5.1).
    pub const INCOMPLETE: Rc = Rc(11);
    /// The table of callbacks, or one that is needed, cannot be used (since OpenMP 5.1).
    pub const CALLBACK_ERROR: Rc = Rc(12);
    /// A handle of another kind (since OpenMP 6.0).
    pub const INCOMPATIBLE_HANDLE: Rc = Rc(13);
}

/// `ompd_scope_t`.
pub type ScopeNumber = c_int;

/// Values of `ompd_scope_t`.
pub mod scope {
    use super::ScopeNumber;

    /// The whole program; the handle is the host's address space.
    pub const GLOBAL: ScopeNumber = 1;
    /// An address space.
    pub const ADDRESS_SPACE: ScopeNumber = 2;
    /// A thread.
    pub const THREAD: ScopeNumber = 3;
    /// A parallel region.
    pub const PARALLEL: ScopeNumber = 4;
    /// An implicit task.
    pub const IMPLICIT_TASK: ScopeNumber = 5;
    /// Any task.
    pub const TASK: ScopeNumber = 6;
}

/// Kinds of native thread ids (`ompd-types.h`).
pub mod thread_id {
    use super::ThreadIdKind;

    /// `pthread_t`.
    pub const PTHREAD: ThreadIdKind = 0;
    /// The kernel's id, as of `gettid`.
    pub const LWP: ThreadIdKind = 1;
}

/// What the debugger calls an address space; its own.
#[repr(C)]
#[derive(Debug)]
pub struct AddressSpaceContext {
    _own: [u8; 0],
}

/// What the debugger calls a thread; its own.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadContext {
    _own: [u8; 0],
}

/// A handle of an address space. Like all handles it is a number that is never used twice, and points to nothing.
#[repr(C)]
#[derive(Debug)]
pub struct AddressSpaceHandle {
    _own: [u8; 0],
}

/// A handle of a thread.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadHandle {
    _own: [u8; 0],
}

/// A handle of a parallel region.
#[repr(C)]
#[derive(Debug)]
pub struct ParallelHandle {
    _own: [u8; 0],
}

/// A handle of a task.
#[repr(C)]
#[derive(Debug)]
pub struct TaskHandle {
    _own: [u8; 0],
}

/// `ompd_callback_memory_alloc_fn_t`.
pub type AllocMemory = unsafe extern "C" fn(nbytes: Size, ptr: *mut *mut c_void) -> Rc;
/// `ompd_callback_memory_free_fn_t`.
pub type FreeMemory = unsafe extern "C" fn(ptr: *mut c_void) -> Rc;
/// `ompd_callback_print_string_fn_t`.
pub type PrintString = unsafe extern "C" fn(string: *const c_char, category: c_int) -> Rc;
/// `ompd_callback_sizeof_fn_t`.
pub type SizeofType = unsafe extern "C" fn(context: *mut AddressSpaceContext, sizes: *mut TypeSizes) -> Rc;
/// `ompd_callback_symbol_addr_fn_t`.
pub type SymbolAddrLookup = unsafe extern "C" fn(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    name: *const c_char,
    address: *mut Address,
    file_name: *const c_char,
) -> Rc;
/// `ompd_callback_memory_read_fn_t`.
pub type ReadMemory = unsafe extern "C" fn(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    address: *const Address,
    nbytes: Size,
    buffer: *mut c_void,
) -> Rc;
/// `ompd_callback_memory_write_fn_t`. This library never calls it.
pub type WriteMemory = unsafe extern "C" fn(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    address: *const Address,
    nbytes: Size,
    buffer: *const c_void,
) -> Rc;
/// `ompd_callback_device_host_fn_t`.
pub type DeviceHost = unsafe extern "C" fn(
    context: *mut AddressSpaceContext,
    input: *const c_void,
    unit_size: Size,
    count: Size,
    output: *mut c_void,
) -> Rc;
/// `ompd_callback_get_thread_context_for_thread_id_fn_t`.
pub type ThreadContextForId = unsafe extern "C" fn(
    context: *mut AddressSpaceContext,
    kind: ThreadIdKind,
    sizeof_thread_id: Size,
    thread_id: *const c_void,
    thread: *mut *mut ThreadContext,
) -> Rc;

/// `ompd_callbacks_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Callbacks {
    /// Gives memory of the debugger.
    pub alloc_memory: Option<AllocMemory>,
    /// Takes it back.
    pub free_memory: Option<FreeMemory>,
    /// Shows a message.
    pub print_string: Option<PrintString>,
    /// Sizes of types in the target.
    pub sizeof_type: Option<SizeofType>,
    /// Where a symbol of the target lies.
    pub symbol_addr_lookup: Option<SymbolAddrLookup>,
    /// Reads memory of the target.
    pub read_memory: Option<ReadMemory>,
    /// Writes memory of the target.
    pub write_memory: Option<WriteMemory>,
    /// Reads a string of the target.
    pub read_string: Option<ReadMemory>,
    /// Converts from the target's byte order.
    pub device_to_host: Option<DeviceHost>,
    /// Converts to the target's byte order.
    pub host_to_device: Option<DeviceHost>,
    /// The debugger's context of a native thread.
    pub get_thread_context_for_thread_id: Option<ThreadContextForId>,
}
