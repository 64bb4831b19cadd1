//! The one library a debugger has loaded: its version, its callbacks, and every handle it has given out.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::keys::{RegionKey, TaskKey, ThreadKey};
use crate::space::Space;
use crate::types::{AddressSpaceContext, Callbacks, Rc, Word};

/// Versions of the interface that a debugger may ask for (`_OPENMP` of OpenMP 5.0, 5.1, 5.2 and 6.0).
pub const VERSIONS: [Word; 4] = [201_811, 202_011, 202_111, 202_411];

/// What a handle stands for. The number is that of its address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handle {
    Space,
    Thread(u64, ThreadKey),
    Region(u64, RegionKey),
    Task(u64, TaskKey),
}

/// Everything between `ompd_initialize` and `ompd_finalize`. Several threads of the debugger may use it at once.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) version: Word,
    pub(crate) callbacks: Callbacks,
    /// Where files of the machine are that a process runs on, for processes that are opened from now on.
    lib_root: Mutex<Option<PathBuf>>,
    tables: Arc<Mutex<Tables>>,
}

/// What it has given out. Held for moments only: no callback is called meanwhile.
#[derive(Debug, Default)]
struct Tables {
    spaces: BTreeMap<u64, Arc<Slot>>,
    handles: BTreeMap<u64, Handle>,
    /// Vectors of strings given out by `ompd_get_display_control_vars`, with their strings.
    vectors: BTreeMap<usize, Vec<usize>>,
}

/// The last number of a handle. It outlives the library: a handle from before `ompd_finalize` is none after it.
static LAST: AtomicU64 = AtomicU64::new(0);

static LIBRARY: Mutex<Option<Arc<Library>>> = Mutex::new(None);

thread_local! {
    /// This thread is in a function of the library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Locks also after a panic of another holder: what it left half done stays as it is, and whoever is next works with it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|poisoned| {
        of.clear_poison();
        poisoned.into_inner()
    })
}

/// Does something as a function of the library. Nothing unwinds out of here. A callback that calls the library gets an error: what
/// called it has the address space.
pub(crate) fn enter(act: impl FnOnce() -> Result<(), Rc>) -> Rc {
    if INSIDE.replace(true) {
        return Rc::ERROR;
    }
    let done = catch_unwind(AssertUnwindSafe(act));
    INSIDE.set(false);
    match done {
        Ok(Ok(())) => Rc::OK,
        Ok(Err(rc)) => rc,
        Err(_) => Rc::ERROR,
    }
}

/// Does something with the place where the library will be.
pub(crate) fn with_place(act: impl FnOnce(&mut Option<Arc<Library>>) -> Result<(), Rc>) -> Rc {
    enter(|| act(&mut lock(&LIBRARY)))
}

/// Does something with the library; an error before `ompd_initialize`.
pub(crate) fn with(act: impl FnOnce(&Library) -> Result<(), Rc>) -> Rc {
    enter(|| {
        let library = lock(&LIBRARY).clone().ok_or(Rc::ERROR)?;
        act(&library).map_err(|rc| match rc {
            // OpenMP 5.0 has no code for this.
            Rc::CALLBACK_ERROR if library.version < VERSIONS[1] => Rc::ERROR,
            rc => rc,
        })
    })
}

/// Where an address space is while nobody uses it.
#[derive(Debug)]
struct Slot {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
enum State {
    Free(Box<Space>),
    InUse,
    Released,
}

// SAFETY: only the thread that has taken a space out of its slot uses it. It takes all of it: no part (a reference count, a cell)
// is kept anywhere else. The debugger's contexts in it are numbers to us.
unsafe impl Send for State {}

/// An address space, as long as one thread uses it.
pub(crate) struct InUse {
    slot: Arc<Slot>,
    /// Only [`InUse::drop`] takes it.
    space: Option<Box<Space>>,
}

impl InUse {
    /// Waits until no other thread uses the space. `None` if it was released.
    fn take(slot: Arc<Slot>) -> Option<InUse> {
        let mut state = lock(&slot.state);
        loop {
            match std::mem::replace(&mut *state, State::InUse) {
                State::Free(space) => {
                    drop(state);
                    return Some(InUse { slot, space: Some(space) });
                }
                State::Released => {
                    *state = State::Released;
                    return None;
                }
                State::InUse => state = slot.freed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Nobody gets it any more.
    fn release(mut self) {
        let space = self.space.take();
        *lock(&self.slot.state) = State::Released;
        self.slot.freed.notify_all();
        drop(space);
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let Some(space) = self.space.take() else { return };
        *lock(&self.slot.state) = State::Free(space);
        self.slot.freed.notify_one();
    }
}

impl Deref for InUse {
    type Target = Space;

    fn deref(&self) -> &Space {
        self.space.as_deref().expect("it is taken out at the end only")
    }
}

impl DerefMut for InUse {
    fn deref_mut(&mut self) -> &mut Space {
        self.space.as_deref_mut().expect("it is taken out at the end only")
    }
}

impl Library {
    pub(crate) fn new(version: Word, callbacks: Callbacks) -> Library {
        Library { version, callbacks, lib_root: Mutex::default(), tables: Arc::default() }
    }

    /// With another version and table; what is open stays open.
    pub(crate) fn begin_again(&self, version: Word, callbacks: Callbacks) -> Library {
        let lib_root = Mutex::new(lock(&self.lib_root).clone());
        Library { version, callbacks, lib_root, tables: Arc::clone(&self.tables) }
    }

    /// Files something under a number that no handle had before. As pointers the numbers are aligned and lead nowhere.
    fn file(&self, handle: Handle) -> u64 {
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.tables).handles.insert(id, handle);
        id
    }

    pub(crate) fn set_lib_root(&self, root: Option<PathBuf>) {
        *lock(&self.lib_root) = root;
    }

    pub(crate) fn open(&self, context: *mut AddressSpaceContext) -> Result<u64, Rc> {
        let space = Box::new(Space::open(self.callbacks, context, lock(&self.lib_root).clone())?);
        let id = self.file(Handle::Space);
        let slot = Slot { state: Mutex::new(State::Free(space)), freed: Condvar::new() };
        lock(&self.tables).spaces.insert(id, Arc::new(slot));
        Ok(id)
    }

    /// Writes a new handle for a thing to where the debugger wants it.
    ///
    /// # Safety
    /// `out` is NULL or may be written.
    pub(crate) unsafe fn give<T>(&self, handle: Handle, out: *mut *mut T) -> Result<(), Rc> {
        if out.is_null() {
            return Err(Rc::BAD_INPUT);
        }
        let id = self.file(handle);
        // SAFETY: as for this function.
        unsafe { put(out, pointer(id)) }
    }

    /// The handle a pointer of the debugger is.
    fn handle<T>(&self, handle: *const T) -> Result<Handle, Rc> {
        lock(&self.tables).handles.get(&number(handle)).copied().ok_or(Rc::STALE_HANDLE)
    }

    /// What is wrong with a handle of another kind.
    fn other_kind(&self) -> Rc {
        if self.version >= 202_411 { Rc::INCOMPATIBLE_HANDLE } else { Rc::STALE_HANDLE }
    }

    /// The address space behind a handle.
    pub(crate) fn space<T>(&self, handle: *const T) -> Result<InUse, Rc> {
        match self.handle(handle)? {
            Handle::Space => self.numbered(number(handle)),
            _ => Err(self.other_kind()),
        }
    }

    /// The address space behind a handle, brought up to date.
    pub(crate) fn looked_at_space<T>(&self, handle: *const T) -> Result<InUse, Rc> {
        let mut space = self.space(handle)?;
        space.look();
        Ok(space)
    }

    fn numbered(&self, id: u64) -> Result<InUse, Rc> {
        // Not while the tables are held: another thread may be using it.
        let slot = lock(&self.tables).spaces.get(&id).cloned().ok_or(Rc::STALE_HANDLE)?;
        InUse::take(slot).ok_or(Rc::STALE_HANDLE)
    }

    /// A thread, with its address space and that's number.
    pub(crate) fn thread<T>(&self, handle: *const T) -> Result<(InUse, u64, ThreadKey), Rc> {
        match self.handle(handle)? {
            Handle::Thread(space, key) => Ok((self.numbered(space)?, space, key)),
            _ => Err(self.other_kind()),
        }
    }

    pub(crate) fn region<T>(&self, handle: *const T) -> Result<(InUse, u64, RegionKey), Rc> {
        match self.handle(handle)? {
            Handle::Region(space, key) => Ok((self.numbered(space)?, space, key)),
            _ => Err(self.other_kind()),
        }
    }

    pub(crate) fn task<T>(&self, handle: *const T) -> Result<(InUse, u64, TaskKey), Rc> {
        match self.handle(handle)? {
            Handle::Task(space, key) => Ok((self.numbered(space)?, space, key)),
            _ => Err(self.other_kind()),
        }
    }

    /// What a handle of any kind stands for.
    pub(crate) fn any<T>(&self, handle: *const T) -> Result<(InUse, Handle), Rc> {
        let found = self.handle(handle)?;
        let space = match found {
            Handle::Space => number(handle),
            Handle::Thread(space, _) | Handle::Region(space, _) | Handle::Task(space, _) => space,
        };
        Ok((self.numbered(space)?, found))
    }

    /// Two handles of one kind.
    pub(crate) fn pair<T, K>(&self, a: *const T, b: *const T, of: impl Fn(Handle) -> Option<K>) -> Result<(K, K), Rc> {
        let kind = |handle| of(self.handle(handle)?).ok_or_else(|| self.other_kind());
        Ok((kind(a)?, kind(b)?))
    }

    /// Takes a handle back, if it is of the kind that is expected.
    pub(crate) fn release<T>(&self, handle: *const T, kind: impl Fn(Handle) -> bool) -> Result<(), Rc> {
        if !kind(self.handle(handle)?) {
            return Err(self.other_kind());
        }
        let id = number(handle);
        let mut tables = lock(&self.tables);
        tables.handles.remove(&id);
        if let Some(slot) = tables.spaces.remove(&id) {
            // Nothing can be asked about what was in it any more.
            tables.handles.retain(|_, handle| match handle {
                Handle::Space => true,
                Handle::Thread(space, _) | Handle::Region(space, _) | Handle::Task(space, _) => *space != id,
            });
            drop(tables);
            if let Some(space) = InUse::take(slot) {
                space.release();
            }
        }
        Ok(())
    }

    /// Memory of the debugger.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<*mut c_void, Rc> {
        let allocate = self.callbacks.alloc_memory.ok_or(Rc::CALLBACK_ERROR)?;
        let mut memory = ptr::null_mut();
        // SAFETY: the debugger writes one pointer.
        match unsafe { allocate(bytes.max(1) as u64, &raw mut memory) } {
            Rc::OK if !memory.is_null() => Ok(memory),
            Rc::OK | Rc::NOMEM => Err(Rc::NOMEM),
            // Its own codes would say something else of the function that was called.
            _ => Err(Rc::CALLBACK_ERROR),
        }
    }

    /// Gives memory of the debugger back.
    pub(crate) fn free(&self, memory: *mut c_void) {
        if let Some(free) = self.callbacks.free_memory {
            // SAFETY: what is freed was got from the debugger, and is forgotten.
            unsafe { free(memory) };
        }
    }

    /// A vector of C strings in the debugger's memory, with NULL behind the last.
    pub(crate) fn vector(&self, lines: &[String]) -> Result<*const *const c_char, Rc> {
        let mut strings: Vec<*const c_char> = Vec::new();
        let made = lines.iter().try_for_each(|line| self.string(line).map(|string| strings.push(string)));
        let vector = made.and_then(|()| self.allocate(size_of::<*const c_char>() * (strings.len() + 1)));
        let vector: *mut *const c_char = match vector {
            Ok(vector) => vector.cast(),
            Err(rc) => {
                strings.iter().for_each(|string| self.free(string.cast_mut().cast()));
                return Err(rc);
            }
        };
        for (n, string) in strings.iter().copied().chain([ptr::null()]).enumerate() {
            // SAFETY: there is room for one more than there are strings.
            unsafe { vector.add(n).write_unaligned(string) };
        }
        lock(&self.tables).vectors.insert(vector.addr(), strings.iter().map(|string| string.addr()).collect());
        Ok(vector)
    }

    /// The strings of a vector that was given out, which is forgotten.
    pub(crate) fn forget_vector(&self, vector: *const *const c_char) -> Option<Vec<usize>> {
        lock(&self.tables).vectors.remove(&vector.addr())
    }

    /// A C string in the debugger's memory. What would end it early is left out.
    pub(crate) fn string(&self, text: &str) -> Result<*const c_char, Rc> {
        let text = CString::new(text.replace('\0', "")).map_err(|_| Rc::ERROR)?;
        let bytes = text.as_bytes_with_nul();
        let memory = self.allocate(bytes.len())?;
        // SAFETY: so many bytes were got just now, and they overlap with nothing.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory.cast(), bytes.len()) };
        Ok(memory.cast())
    }
}

/// A handle as the pointer the debugger sees.
pub(crate) fn pointer<T>(id: u64) -> *mut T {
    ptr::without_provenance_mut((id as usize).wrapping_mul(16))
}

/// The number of a handle; that of none for what is no handle.
pub(crate) fn number<T>(handle: *const T) -> u64 {
    let at = handle.addr();
    if at.is_multiple_of(16) { (at / 16) as u64 } else { 0 }
}

/// Writes a value to where the debugger wants it.
///
/// # Safety
/// `out` is NULL or may be written.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Result<(), Rc> {
    if out.is_null() {
        return Err(Rc::BAD_INPUT);
    }
    // SAFETY: as for this function. The debugger may have put it anywhere.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompd_process::Addr;

    /// Differences of more than 31 bits, and of those a multiple of 32 bits, are where a difference in an `int` is wrong.
    #[test]
    fn the_order_of_handles_is_that_of_whole_addresses() {
        let key = |descriptor| ThreadKey { runtime: Addr(1 << 40), descriptor: Addr(descriptor), lwp: Some(1) };
        let region = |at| RegionKey::Team { runtime: Addr(1 << 40), descriptor: Addr(at), level: 1, size: Some(1) };
        let task = |descriptor| TaskKey { runtime: Addr(1 << 40), descriptor: Addr(descriptor) };
        let ascending = [0, 1, 1 << 31, 1 << 32, 3 << 32, 1 << 63, u64::MAX];
        for (n, &a) in ascending.iter().enumerate() {
            for (m, &b) in ascending.iter().enumerate() {
                assert_eq!(key(a).cmp(&key(b)), n.cmp(&m));
                assert_eq!(region(a).cmp(&region(b)), n.cmp(&m));
                assert_eq!(task(a).cmp(&task(b)), n.cmp(&m));
            }
        }
    }

    #[test]
    fn a_handle_from_before_is_none_of_now() {
        let callbacks = Callbacks {
            alloc_memory: None,
            free_memory: None,
            print_string: None,
            sizeof_type: None,
            symbol_addr_lookup: None,
            read_memory: None,
            write_memory: None,
            read_string: None,
            device_to_host: None,
            host_to_device: None,
            get_thread_context_for_thread_id: None,
        };
        let before = Library::new(VERSIONS[0], callbacks).file(Handle::Space);
        let library = Library::new(VERSIONS[0], callbacks);
        assert!(library.file(Handle::Space) > before);
        assert_eq!(library.handle(pointer::<u8>(before)), Err(Rc::STALE_HANDLE));
    }
}
