//! The runtimes behind the entry points. A process may have several libgomps: each caller gets its own.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::linked;
use crate::names::{COUNT, Entry, NAMES};
use crate::old_locks::{self, OLD, OldLocks, bit};
use crate::say::die;

/// What the code of an entry point looks at before it calls a function of ours.
#[derive(Debug)]
#[repr(C)]
pub struct Direct {
    start: AtomicUsize,
    size: AtomicUsize,
    functions: [AtomicUsize; COUNT],
}

/// Calls from this range of code go on in the runtime at once. Its size is 0 while a tool records.
pub static DIRECT: Direct =
    Direct { start: AtomicUsize::new(0), size: AtomicUsize::new(0), functions: [const { AtomicUsize::new(0) }; COUNT] };

/// Has calls from the code around an address continue at once, where no tool records.
pub fn direct(caller: usize) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Relaxed) {
        return;
    }
    let modules = Modules::current();
    let Some(module) = modules.iter().find(|module| module.has(caller)) else { return };
    if DONE.swap(true, Relaxed) {
        return;
    }
    for (entry, place) in DIRECT.functions.iter().enumerate() {
        place.store(module.runtime.functions[entry], Relaxed);
    }
    DIRECT.start.store(module.start, Relaxed);
    // The size is last: without it nothing else is looked at.
    DIRECT.size.store(module.size, Release);
}

/// What a runtime can be asked without arguments.
#[derive(Debug, Clone, Copy)]
pub enum Query {
    NumThreads,
    ThreadNum,
    MaxThreads,
    NumTeams,
    TeamNum,
    InFinal,
    Cancellation,
    NumProcs,
    NumPlaces,
    PlaceNum,
    PartitionNumPlaces,
    NumDevices,
    InitialDevice,
    DefaultDevice,
}

/// The functions of the OpenMP API that answer, by number of [`Query`].
const QUERIES: [&CStr; 14] = [
    c"omp_get_num_threads",
    c"omp_get_thread_num",
    c"omp_get_max_threads",
    c"omp_get_num_teams",
    c"omp_get_team_num",
    c"omp_in_final",
    c"omp_get_cancellation",
    c"omp_get_num_procs",
    c"omp_get_num_places",
    c"omp_get_place_num",
    c"omp_get_partition_num_places",
    c"omp_get_num_devices",
    c"omp_get_initial_device",
    c"omp_get_default_device",
];

/// Functions of the OpenMP API with arguments that answer.
const OTHERS: [&CStr; 4] =
    [c"omp_get_place_num_procs", c"omp_get_place_proc_ids", c"omp_get_partition_place_nums", c"omp_get_schedule"];

const _: () = assert!(QUERIES.len() + OTHERS.len() == linked::QUESTIONS);

/// In the place of a runtime before one is known.
pub static NO_RUNTIME: Runtime = Runtime {
    functions: [0; COUNT],
    queries: [0; QUERIES.len()],
    others: [0; OTHERS.len()],
    has_ompt: true,
    old_locks: 0,
    pool: AtomicU32::new(0),
    file: Cow::Borrowed(c""),
};

/// An OpenMP runtime with libgomp's entry points.
#[derive(Debug)]
pub struct Runtime {
    /// The functions, in the order of [`NAMES`].
    functions: [usize; COUNT],
    /// What can be asked, in the order of [`QUERIES`]. 0 for functions that the runtime lacks.
    queries: [usize; QUERIES.len()],
    /// The functions that take arguments, in the order of [`OTHERS`].
    others: [usize; OTHERS.len()],
    /// The runtime has OMPT itself (libomp has libgomp's entry points too). It calls tools, so nothing is reported here.
    pub has_ompt: bool,
    /// The functions of locks that are those of GCC before 4.4.
    old_locks: OldLocks,
    /// Threads of the largest team that the program's first thread has had outside of all regions. Its workers wait for the next.
    pub pool: AtomicU32,
    /// Its file, as the loader names it.
    pub file: Cow<'static, CStr>,
}

impl Runtime {
    /// The runtime's own function of this name.
    ///
    /// Ends the process if the runtime has none: its caller was linked against another runtime, and cannot continue.
    pub fn function(&self, entry: Entry) -> usize {
        self.functions[entry as usize]
    }

    /// The same by the number of the entry point, of which there is one.
    pub fn function_at(&self, entry: usize) -> usize {
        self.functions[entry]
    }

    /// Whether the function is that of GCC before 4.4, for another kind of lock than today's.
    pub fn has_old(&self, entry: Entry) -> bool {
        self.old_locks & bit(entry as usize) != 0
    }

    /// The runtime's answer, if it has the function.
    pub fn ask(&self, query: Query) -> Option<c_int> {
        type Ask = unsafe extern "C-unwind" fn() -> c_int;
        // SAFETY: the address of a function of this type, or 0.
        let function = unsafe { std::mem::transmute::<usize, Option<Ask>>(self.queries[query as usize]) };
        // SAFETY: the runtime's own function, which may be called in any state of its threads.
        function.map(|function| unsafe { function() })
    }

    /// The schedule of loops with `schedule(runtime)` (`omp_sched_t`); 0 if the runtime does not say.
    pub fn run_schedule(&self) -> c_int {
        type Ask = unsafe extern "C-unwind" fn(*mut c_int, *mut c_int);
        let (mut kind, mut chunk) = (0, 0);
        // SAFETY: the address of a function of this type, or 0; and places for its answer.
        unsafe {
            if let Some(function) = std::mem::transmute::<usize, Option<Ask>>(self.others[3]) {
                function(&raw mut kind, &raw mut chunk);
            }
        }
        kind
    }

    /// How many processors a place has; 0 if the runtime does not say.
    pub fn place_num_procs(&self, place: c_int) -> c_int {
        type Ask = unsafe extern "C-unwind" fn(c_int) -> c_int;
        // SAFETY: the address of a function of this type, or 0.
        let function = unsafe { std::mem::transmute::<usize, Option<Ask>>(self.others[0]) };
        // SAFETY: the runtime's own function.
        function.map_or(0, |function| unsafe { function(place) })
    }

    /// Stores the processors of a place.
    ///
    /// # Safety
    /// The array has room for as many as [`place_num_procs`](Runtime::place_num_procs) says.
    pub unsafe fn place_proc_ids(&self, place: c_int, ids: *mut c_int) {
        type Ask = unsafe extern "C-unwind" fn(c_int, *mut c_int);
        // SAFETY: the address of a function of this type, or 0; and as the caller says.
        unsafe {
            if let Some(function) = std::mem::transmute::<usize, Option<Ask>>(self.others[1]) {
                function(place, ids);
            }
        }
    }

    /// Stores the places of the calling thread's partition.
    ///
    /// # Safety
    /// The array has room for as many as [`Query::PartitionNumPlaces`] says.
    pub unsafe fn partition_place_nums(&self, places: *mut c_int) {
        type Ask = unsafe extern "C-unwind" fn(*mut c_int);
        // SAFETY: the address of a function of this type, or 0; and as the caller says.
        unsafe {
            if let Some(function) = std::mem::transmute::<usize, Option<Ask>>(self.others[2]) {
                function(places);
            }
        }
    }

    /// The runtime's answer as a count; 0 if it has none.
    pub fn number(&self, query: Query) -> c_uint {
        self.ask(query).and_then(|answer| c_uint::try_from(answer).ok()).unwrap_or(0)
    }

    /// Threads of its pool, by all records of its file; `None` if an earlier one of these stands for it.
    pub fn pool_of_file(&self, all: &[&'static Runtime]) -> Option<u32> {
        let same = || all.iter().filter(|runtime| runtime.file == self.file);
        let is_first = same().next().is_some_and(|first| std::ptr::eq(*first, self));
        is_first.then(|| same().map(|runtime| runtime.pool.load(Relaxed)).max()).flatten()
    }

    /// All that are known.
    pub fn all() -> Vec<&'static Runtime> {
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same runtime for a file that asks for old functions of locks.
    fn with(&'static self, old_locks: OldLocks) -> &'static Runtime {
        if old_locks == self.old_locks || self.has_ompt {
            return self;
        }
        Runtime::of_kind(self.functions[Entry::GOMP_parallel as usize] as *const c_void, old_locks).unwrap_or(self)
    }

    /// The runtime in a file that is loaded, of which `any` is a function.
    fn of(any: *const c_void) -> Option<&'static Runtime> {
        Runtime::of_kind(any, 0)
    }

    fn of_kind(any: *const c_void, old_locks: OldLocks) -> Option<&'static Runtime> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: an address, and a place for the answer, of which zero is a valid value.
        let info = unsafe {
            libc::dladdr(any, info.as_mut_ptr());
            info.assume_init()
        };
        if info.dli_fname.is_null() {
            return None;
        }
        // SAFETY: the loader's own string.
        let file = unsafe { CStr::from_ptr(info.dli_fname) };
        let same = |runtime: &&&Runtime| runtime.file.as_ref() == file && runtime.old_locks == old_locks;
        if let Some(runtime) = known.iter().find(same) {
            return Some(runtime);
        }
        // The functions are called as long as the process lives, so the file has to stay.
        // SAFETY: the file is loaded already.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        // A runtime that is linked into the program has no handle of its own: what comes next after this library is its.
        let handle = if handle.is_null() { libc::RTLD_NEXT } else { handle };
        // SAFETY: a handle of the loader and a string.
        let find = |name: &CStr| unsafe { libc::dlsym(handle, name.as_ptr()) };
        // SAFETY: as above.
        let find_old = |name: &CStr| unsafe { libc::dlvsym(handle, name.as_ptr(), OLD.as_ptr()) };
        let old = |entry| if old_locks & bit(entry) != 0 { find_old(NAMES[entry]) as usize } else { 0 };
        let functions = std::array::from_fn(|entry| match find(NAMES[entry]) as usize {
            _ if old(entry) != 0 => old(entry),
            function if function != 0 && !is_own(function) => function,
            _ if entry == Entry::omp_control_tool as usize => no_tool as *const () as usize,
            _ => missing as *const () as usize,
        });
        let queries = QUERIES.map(|name| find(name) as usize);
        let others = OTHERS.map(|name| find(name) as usize);
        let has_ompt = !find(c"__kmpc_fork_call").is_null();
        let runtime = Box::leak(Box::new(Runtime {
            functions,
            queries,
            others,
            has_ompt,
            old_locks,
            pool: AtomicU32::new(0),
            file: Cow::Owned(file.to_owned()),
        }));
        known.push(runtime);
        Some(runtime)
    }
}

static KNOWN: Mutex<Vec<&'static Runtime>> = Mutex::new(Vec::new());

/// `omp_control_tool_notool`
pub const NO_TOOL: c_int = -2;

/// `omp_control_tool` where no tool listens. libgomp does not have the function.
extern "C" fn no_tool() -> c_int {
    NO_TOOL
}

/// Where the file begins that has this address; `None` if none has.
fn file_of(address: usize) -> Option<usize> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: an address, and a place for the answer, of which zero is a valid value.
    let found = unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) } != 0;
    // SAFETY: as above.
    found.then(|| unsafe { info.assume_init() }.dli_fbase as usize)
}

/// Whether this library has the function.
fn is_own(function: usize) -> bool {
    file_of(function) == file_of(missing as *const () as usize)
}

/// In the place of functions that a runtime lacks.
extern "C" fn missing() {
    die("the runtime of this process has not all functions that the program calls");
}

/// Code that calls a runtime: the range of a loaded file.
#[derive(Debug, Clone, Copy)]
struct Module {
    start: usize,
    size: usize,
    runtime: &'static Runtime,
}

impl Module {
    fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.size
    }
}

/// The modules that have called. A list is never changed and never freed: readers take no lock.
struct Modules;

static MODULES: AtomicPtr<Vec<Module>> = AtomicPtr::new(std::ptr::null_mut());
/// How many files had been unloaded when the list was made: ranges of theirs may have other code now.
static UNLOADED: AtomicUsize = AtomicUsize::new(0);

impl Modules {
    fn current() -> &'static [Module] {
        // SAFETY: null, or a list that stays.
        unsafe { MODULES.load(Acquire).as_ref() }.map_or(&[], Vec::as_slice)
    }

    fn add(module: Module, unloaded: usize) {
        static CHANGE: Mutex<()> = Mutex::new(());
        let _change = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = if UNLOADED.swap(unloaded, Relaxed) == unloaded { Modules::current() } else { &[] };
        let mut list = kept.to_vec();
        list.push(module);
        MODULES.store(Box::into_raw(Box::new(list)), Release);
    }
}

/// The runtime of the code that calls.
///
/// Ends the process if there is none.
pub fn of_caller(caller: usize) -> &'static Runtime {
    match Modules::current().iter().find(|module| module.has(caller)) {
        Some(module) => module.runtime,
        None => find_for(caller),
    }
}

#[cold]
fn find_for(caller: usize) -> &'static Runtime {
    let at = loaded_at(caller);
    let Some(runtime) = at.as_ref().and_then(|at| named_by(&at.name)).or_else(first).or_else(load) else {
        die("a function of libgomp is called, and libgomp.so.1 is not loaded and cannot be");
    };
    // Code that is in no file, as compilers at run time make it, is looked up at each call.
    if let Some(at) = at {
        let runtime = runtime.with(at.old_locks);
        Modules::add(Module { start: at.start, size: at.size, runtime }, at.unloaded);
        return runtime;
    }
    runtime
}

/// The runtime of the program, if it is there already.
pub fn first() -> Option<&'static Runtime> {
    linked_in().or_else(next)
}

/// The runtime that is linked into the same file.
fn linked_in() -> Option<&'static Runtime> {
    static ONE: OnceLock<Option<&'static Runtime>> = OnceLock::new();
    *ONE.get_or_init(|| {
        let linked = linked::functions()?;
        let functions = std::array::from_fn(|entry| match linked[entry] {
            0 if entry == Entry::omp_control_tool as usize => no_tool as *const () as usize,
            0 => missing as *const () as usize,
            function => function,
        });
        let (queries, others) = linked::questions().split_at(QUERIES.len());
        let runtime = Box::leak(Box::new(Runtime {
            functions,
            queries: std::array::from_fn(|query| queries[query]),
            others: std::array::from_fn(|other| others[other]),
            has_ompt: false,
            old_locks: 0,
            pool: AtomicU32::new(0),
            file: Cow::Borrowed(c""),
        }));
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
        Some(runtime)
    })
}

/// The runtime that comes after this library where the loader searches for all of the program.
fn next() -> Option<&'static Runtime> {
    // SAFETY: a string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, c"GOMP_parallel".as_ptr()) };
    (!function.is_null()).then(|| Runtime::of(function)).flatten()
}

/// Loads libgomp. A linker may leave it out of a program for which this library has all functions.
fn load() -> Option<&'static Runtime> {
    // SAFETY: the library that the program would have loaded, by the name that compilers give it.
    let handle = unsafe { libc::dlopen(c"libgomp.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: a handle of the loader, which is kept.
    let function = unsafe { libc::dlsym(handle, c"GOMP_parallel".as_ptr()) };
    (!function.is_null()).then(|| Runtime::of(function)).flatten()
}

/// The runtime that a loaded file depends on. `None` for the program itself, and if it depends on none.
fn named_by(file: &CStr) -> Option<&'static Runtime> {
    if file.is_empty() {
        return None;
    }
    // SAFETY: a string; the file is loaded, and given back below.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: the handle is valid until it is given back.
    let function = unsafe { libc::dlsym(handle, c"GOMP_parallel".as_ptr()) };
    let runtime = (!function.is_null() && !is_own(function as usize)).then(|| Runtime::of(function)).flatten();
    // SAFETY: given back once.
    unsafe { libc::dlclose(handle) };
    runtime
}

/// A loaded file.
struct Loaded {
    name: CString,
    start: usize,
    size: usize,
    unloaded: usize,
    old_locks: OldLocks,
}

/// The file that has this address.
fn loaded_at(address: usize) -> Option<Loaded> {
    struct Search {
        address: usize,
        found: Option<Loaded>,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: both are the caller's, for the time of this call.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the loader's own array.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let ranges = loads.map(|header| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            (start, start.wrapping_add(header.p_memsz as usize))
        });
        let Some((start, end)) = ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))) else { return 0 };
        if !(start..end).contains(&search.address) {
            return 0;
        }
        let name: *const c_char = info.dlpi_name;
        // SAFETY: the loader's own string, if there is one.
        let name = if name.is_null() { CString::default() } else { unsafe { CStr::from_ptr(name) }.to_owned() };
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
        let base = info.dlpi_addr as usize;
        // SAFETY: the dynamic section of a file that is loaded at this base.
        let old_locks =
            dynamic.map_or(0, |header| unsafe { old_locks::asked_for(base, header.p_vaddr as usize, &(start..end)) });
        search.found = Some(Loaded { name, start, size: end - start, unloaded: info.dlpi_subs as usize, old_locks });
        1
    }
    let mut search = Search { address, found: None };
    // SAFETY: the function takes what is given to it here.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}
