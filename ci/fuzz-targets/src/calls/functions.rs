//! The functions of the interface, and calls of them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;

use ompd::api::*;
use ompd::extension::*;
use ompd::types::{Address, Callbacks, FrameInfo, IcvId, Rc, ScopeNumber, Size, ThreadIdKind, WaitId, Word};

use super::Words;
use super::debugger::{self, CALLBACKS, scatter, take_back};
use super::interface::FUNCTIONS;
use super::session::{Kind, Passed, Session};

/// What memory is filled with that nobody has written to.
const BLANK: u8 = 0xc3;

/// A place for a result, with blank bytes around, aligned or not, or none.
struct OutParameter<T> {
    bytes: [u8; 64],
    at: usize,
    none: bool,
    of: PhantomData<T>,
}

impl<T: Copy> OutParameter<T> {
    fn new(words: &mut Words<'_>) -> OutParameter<T> {
        let how = words.next();
        OutParameter { bytes: [BLANK; 64], at: 16 + usize::from(how & 7 == 7), none: how >= 240, of: PhantomData }
    }

    fn pointer(&mut self) -> *mut T {
        if self.none { ptr::null_mut() } else { self.bytes[self.at..].as_mut_ptr().cast() }
    }

    /// What was written there by a function that has returned this.
    fn result(&self, rc: Rc) -> Option<T> {
        let (before, rest) = self.bytes.split_at(self.at);
        let (own, behind) = rest.split_at(size_of::<T>());
        let blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == BLANK);
        assert!(blank(before) && blank(behind), "memory beside a result is written to");
        let done = rc == Rc::OK || rc == Rc::INCOMPLETE;
        assert!(done || blank(own), "a result is written, and {rc:?} returned");
        assert!(!done || self.none || !blank(own), "no result is written, and {rc:?} returned");
        // SAFETY: so many bytes were written by the library as a value of this type.
        (done && !self.none).then(|| unsafe { own.as_ptr().cast::<T>().read_unaligned() })
    }
}

/// A string of the library, which is given back.
fn take(text: *const c_char) -> String {
    // SAFETY: the library has given a string.
    let own = unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned();
    take_back(text.cast_mut().cast());
    own
}

fn pick<T: Copy>(words: &mut Words<'_>, from: &[T]) -> T {
    from[usize::from(words.next()) % from.len()]
}

fn index(name: &str) -> usize {
    FUNCTIONS.iter().position(|(own, _)| *own == name).expect("a function of the interface")
}

macro_rules! call {
    ($session:ident, $name:ident, [$($passed:expr),*], $($argument:expr),* $(,)?) => {
        $session.call(index(stringify!($name)), &[$($passed),*], || unsafe { $name($($argument),*) })
    };
}

/// A function that gives a handle for a handle.
macro_rules! handle_of {
    ($session:ident, $words:ident, $name:ident, $from:ident, $to:ident $(, $argument:expr)*) => {{
        let (handle, passed) = $session.handle(Some(Kind::$from), $words);
        let mut place = OutParameter::new($words);
        let rc = call!($session, $name, [passed], at(handle) $(, $argument)*, place.pointer());
        given($session, Kind::$to, passed, place.result(rc));
    }};
}

macro_rules! compare {
    ($session:ident, $words:ident, $name:ident, $kind:ident) => {{
        let (one, first) = $session.handle(Some(Kind::$kind), $words);
        let (other, second) = $session.handle(Some(Kind::$kind), $words);
        let mut place = OutParameter::<c_int>::new($words);
        let rc = call!($session, $name, [first, second], at(one), at(other), place.pointer());
        if let Some(order) = place.result(rc) {
            assert!((-1..=1).contains(&order) && (one != other || order == 0), "{order}");
            let mut back = OutParameter::<c_int>::new(&mut Words(&[]));
            let rc = call!($session, $name, [second, first], at(other), at(one), back.pointer());
            assert_eq!(back.result(rc).map(|order| -order), Some(order), "a total order");
        }
    }};
}

macro_rules! release {
    ($session:ident, $words:ident, $name:ident, $kind:ident) => {{
        let (handle, passed) = $session.handle(Some(Kind::$kind), $words);
        if call!($session, $name, [passed], at(handle)) == Rc::OK {
            $session.gone(handle);
        }
    }};
}

fn at<T>(handle: usize) -> *mut T {
    ptr::without_provenance_mut(handle)
}

fn given<T>(session: &mut Session, kind: Kind, from: Passed, handle: Option<*mut T>) {
    if let (Some(handle), Passed::Right { space }) = (handle, from) {
        session.given(kind, handle.addr(), space);
    }
}

/// Numbers that say nothing, or too much.
const NUMBERS: [i64; 8] = [0, 1, -1, 0x102, 9999, i64::MAX, i64::MIN, 1 << 32];

/// Calls the function that comes next in the input.
pub(super) fn call(session: &mut Session, words: &mut Words<'_>) {
    let function = usize::from(words.next()) % FUNCTIONS.len();
    match FUNCTIONS[function].0 {
        "ompd_initialize" => initialize(session, words),
        "ompd_get_api_version" => {
            let mut place = OutParameter::<Word>::new(words);
            let rc = call!(session, ompd_get_api_version, [], place.pointer());
            assert!(place.result(rc).is_none_or(|version| version == 202_411));
        }
        "ompd_get_version_string" => {
            let mut place = OutParameter::<*const c_char>::new(words);
            let rc = call!(session, ompd_get_version_string, [], place.pointer());
            place.result(rc).inspect(|text| assert!(!unsafe { CStr::from_ptr(*text) }.is_empty()));
        }
        "ompd_finalize" => {
            // What is the debugger's can be given back only before.
            session.release_vectors();
            if call!(session, ompd_finalize, [],) == Rc::OK {
                session.finalized();
            }
        }
        "ompd_process_initialize" => {
            let index = pick(words, &[0, 1, 2]);
            let context = if index < session.subjects.len() { debugger::context(index) } else { ptr::null_mut() };
            let mut place = OutParameter::new(words);
            let fine = !context.is_null() && session.version.is_some();
            let rc = call!(session, ompd_process_initialize, [Passed::Right { space: 0 }], context, place.pointer());
            assert!(rc != Rc::OK || fine);
            if let Some(space) = place.result(rc) {
                session.given(Kind::Space, space.addr(), space.addr());
            }
        }
        "ompd_device_initialize" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let (mut id, mut place) = (OutParameter::<u64>::new(words), OutParameter::new(words));
            let kind = pick(words, &[0, 1, 2, 1_000_000, u64::MAX]);
            let context = debugger::context(0);
            let id = id.pointer().cast();
            let rc =
                call!(session, ompd_device_initialize, [passed], at(handle), context, kind, 8, id, place.pointer());
            assert!(place.result(rc).is_none(), "there are no devices");
        }
        "ompd_rel_address_space_handle" => release!(session, words, ompd_rel_address_space_handle, Space),
        "ompd_get_device_thread_id_kinds" => kinds(session, words),
        "ompd_get_omp_version" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let mut place = OutParameter::<Word>::new(words);
            let rc = call!(session, ompd_get_omp_version, [passed], at(handle), place.pointer());
            place.result(rc);
        }
        "ompd_get_omp_version_string" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let mut place = OutParameter::new(words);
            let rc = call!(session, ompd_get_omp_version_string, [passed], at(handle), place.pointer());
            place.result(rc).map(take);
        }
        "ompd_get_thread_in_parallel" => {
            let number = member(words);
            handle_of!(session, words, ompd_get_thread_in_parallel, Region, Thread, number);
        }
        "ompd_get_thread_handle" => thread(session, words),
        "ompd_rel_thread_handle" => release!(session, words, ompd_rel_thread_handle, Thread),
        "ompd_thread_handle_compare" => compare!(session, words, ompd_thread_handle_compare, Thread),
        "ompd_get_thread_id" => {
            let (handle, passed) = session.handle(Some(Kind::Thread), words);
            let (kind, size) = id_kind(words);
            let mut place = OutParameter::<u32>::new(words);
            // There is room for either, and what is written is what the size says.
            let rc = call!(session, ompd_get_thread_id, [passed], at(handle), kind, size, place.pointer().cast());
            if rc == Rc::OK {
                assert!(size == 8 || (kind, size) == (1, 4), "{kind} {size}");
                let own = place.at..place.at + size as usize;
                assert!(place.bytes[own.end..].iter().all(|byte| *byte == BLANK), "more than {size} bytes are written");
            } else {
                place.result(rc);
            }
        }
        "ompd_get_device_from_thread" => {
            let (handle, passed) = session.handle(Some(Kind::Thread), words);
            let mut place = OutParameter::<*mut ompd::types::AddressSpaceHandle>::new(words);
            let rc = call!(session, ompd_get_device_from_thread, [passed], at(handle), place.pointer());
            let device = place.result(rc).map(|device| Passed::Right { space: device.addr() });
            assert!(device.is_none_or(|device| device == passed), "the address space of a thread");
        }
        "ompd_get_curr_parallel_handle" => handle_of!(session, words, ompd_get_curr_parallel_handle, Thread, Region),
        "ompd_get_enclosing_parallel_handle" => {
            handle_of!(session, words, ompd_get_enclosing_parallel_handle, Region, Region);
        }
        "ompd_get_task_parallel_handle" => handle_of!(session, words, ompd_get_task_parallel_handle, Task, Region),
        "ompd_rel_parallel_handle" => release!(session, words, ompd_rel_parallel_handle, Region),
        "ompd_parallel_handle_compare" => compare!(session, words, ompd_parallel_handle_compare, Region),
        "ompd_get_curr_task_handle" => handle_of!(session, words, ompd_get_curr_task_handle, Thread, Task),
        "ompd_get_generating_task_handle" => handle_of!(session, words, ompd_get_generating_task_handle, Task, Task),
        "ompd_get_scheduling_task_handle" => handle_of!(session, words, ompd_get_scheduling_task_handle, Task, Task),
        "ompd_get_task_in_parallel" => {
            let number = member(words);
            handle_of!(session, words, ompd_get_task_in_parallel, Region, Task, number);
        }
        "ompd_rel_task_handle" => release!(session, words, ompd_rel_task_handle, Task),
        "ompd_task_handle_compare" => compare!(session, words, ompd_task_handle_compare, Task),
        "ompd_get_task_function" => {
            let (handle, passed) = session.handle(Some(Kind::Task), words);
            let mut place = OutParameter::<Address>::new(words);
            let rc = call!(session, ompd_get_task_function, [passed], at(handle), place.pointer());
            place.result(rc);
        }
        "ompd_get_task_frame" => {
            let (handle, passed) = session.handle(Some(Kind::Task), words);
            let (mut exit, mut enter) = (OutParameter::<FrameInfo>::new(words), OutParameter::<FrameInfo>::new(words));
            let rc = call!(session, ompd_get_task_frame, [passed], at(handle), exit.pointer(), enter.pointer());
            exit.result(rc);
            enter.result(rc);
        }
        "ompd_get_state" => {
            let (handle, passed) = session.handle(Some(Kind::Thread), words);
            let (mut state, mut wait) = (OutParameter::<Word>::new(words), OutParameter::<WaitId>::new(words));
            let rc = call!(session, ompd_get_state, [passed], at(handle), state.pointer(), wait.pointer());
            state.result(rc);
            wait.result(rc);
        }
        "ompd_enumerate_states" => states(session, words),
        "ompd_get_display_control_vars" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let mut place = OutParameter::new(words);
            let rc = call!(session, ompd_get_display_control_vars, [passed], at(handle), place.pointer());
            session.vectors.extend(place.result(rc));
        }
        "ompd_rel_display_control_vars" => release_vector(session, words),
        "ompd_enumerate_icvs" => icvs(session, words),
        "ompd_get_icv_from_scope" => {
            let (handle, passed, scope, id) = icv(session, words);
            let mut place = OutParameter::<Word>::new(words);
            let rc = call!(session, ompd_get_icv_from_scope, [passed], at(handle), scope, id, place.pointer());
            place.result(rc);
        }
        "ompd_get_icv_string_from_scope" => {
            let (handle, passed, scope, id) = icv(session, words);
            let mut place = OutParameter::new(words);
            let rc = call!(session, ompd_get_icv_string_from_scope, [passed], at(handle), scope, id, place.pointer());
            place.result(rc).map(take);
        }
        "ompd_get_tool_data" => {
            let (handle, passed, scope, _) = icv(session, words);
            let (mut value, mut data) = (OutParameter::<Word>::new(words), OutParameter::<Address>::new(words));
            let rc = call!(session, ompd_get_tool_data, [passed], at(handle), scope, value.pointer(), data.pointer());
            value.result(rc);
            data.result(rc);
        }
        name => beyond(session, words, name),
    }
}

/// The functions that OMPD does not have.
fn beyond(session: &mut Session, words: &mut Words<'_>, name: &str) {
    match name {
        "ompdx_stop_points" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let (mut points, mut count) =
                (OutParameter::<*mut StopPoint>::new(words), OutParameter::<Size>::new(words));
            let (a, b) = (points.pointer(), count.pointer());
            let rc = call!(session, ompdx_stop_points, [passed], at(handle), a, b);
            assert!(count.result(rc).is_none_or(|count| count < 10_000));
            if let Some(block) = points.result(rc) {
                take_back(block.cast());
            }
        }
        "ompdx_set_stop" => {
            let (handle, passed) = session.handle(Some(Kind::Thread), words);
            let values = [0x1000u64; 8];
            let count = pick(words, &[0, 0, 1, 2, 4, 5, u64::MAX]);
            let point = match words.next() {
                number @ 0..=199 => u64::from(number % 24),
                number => NUMBERS[usize::from(number) % NUMBERS.len()] as u64,
            };
            let at_values = if count > 8 { ptr::null() } else { values.as_ptr() };
            call!(session, ompdx_set_stop, [passed], at(handle), point, at_values, count);
        }
        "ompdx_get_stop" => {
            let (handle, passed) = session.handle(Some(Kind::Thread), words);
            let (mut point, mut event) = (OutParameter::<u64>::new(words), OutParameter::<Event>::new(words));
            let mut counts = OutParameter::<c_int>::new(words);
            let (a, b, c) = (point.pointer(), event.pointer(), counts.pointer());
            let rc = call!(session, ompdx_get_stop, [passed], at(handle), a, b, c);
            point.result(rc);
            event.result(rc);
            assert!(counts.result(rc).is_none_or(|counts| (0..=1).contains(&counts)));
        }
        "ompdx_get_parallel_function" => {
            let (handle, passed) = session.handle(Some(Kind::Region), words);
            let mut place = OutParameter::<Address>::new(words);
            let rc = call!(session, ompdx_get_parallel_function, [passed], at(handle), place.pointer());
            place.result(rc);
        }
        "ompdx_get_origin" => {
            let (handle, passed, _, _) = icv(session, words);
            let item = match words.next() {
                number @ 0..=239 => c_int::from(number % 26),
                number => [-1, c_int::MAX, c_int::MIN, 99][usize::from(number % 4)],
            };
            let (mut origin, mut text) =
                (OutParameter::<Origin>::new(words), OutParameter::<*const c_char>::new(words));
            let (a, b) = (origin.pointer(), text.pointer());
            let rc = call!(session, ompdx_get_origin, [passed], at(handle), item, a, b);
            origin.result(rc);
            text.result(rc).map(take);
        }
        "ompdx_report_json" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            let mut place = OutParameter::new(words);
            let rc = call!(session, ompdx_report_json, [passed], at(handle), place.pointer());
            assert!(place.result(rc).map(take).is_none_or(|text| text.starts_with('{') && text.ends_with('}')));
        }
        "ompdx_drop_cache" => {
            let (handle, passed) = session.handle(Some(Kind::Space), words);
            call!(session, ompdx_drop_cache, [passed], at(handle));
        }
        name => unreachable!("{name}"),
    }
}

fn initialize(session: &mut Session, words: &mut Words<'_>) {
    let version = pick(words, &[201_811, 202_011, 202_111, 202_411, 0, -1, 201_512, i64::MAX]);
    let how = words.next();
    let table = match how {
        200..=209 => Callbacks { read_memory: None, ..CALLBACKS },
        210..=219 => Callbacks { alloc_memory: None, ..CALLBACKS },
        220..=229 => Callbacks { sizeof_type: None, ..CALLBACKS },
        _ => CALLBACKS,
    };
    let table = if how >= 240 { ptr::null() } else { &raw const table };
    let rc = call!(session, ompd_initialize, [], version, table);
    if rc == Rc::OK {
        // A second call replaces what the first one said.
        assert!(super::VERSIONS.contains(&version) && !(200..=229).contains(&how));
        session.version = Some(version);
    }
}

/// The number of a member of a region, or of none.
fn member(words: &mut Words<'_>) -> c_int {
    match words.next() {
        number @ 0..=199 => c_int::from(number % 5),
        number => [-1, c_int::MAX, c_int::MIN, 64][usize::from(number % 4)],
    }
}

fn id_kind(words: &mut Words<'_>) -> (ThreadIdKind, Size) {
    match words.next() {
        0..=99 => (1, 8),
        100..=149 => (1, 4),
        150..=199 => (0, 8),
        _ => (pick(words, &[0, 1, 2, 3, u64::MAX]), pick(words, &[0, 1, 2, 4, 8, u64::MAX])),
    }
}

fn kinds(session: &mut Session, words: &mut Words<'_>) {
    let (handle, passed) = session.handle(Some(Kind::Space), words);
    let (mut kinds, mut sizes) = (OutParameter::<*mut u64>::new(words), OutParameter::<*mut u64>::new(words));
    let mut count = OutParameter::<c_int>::new(words);
    let (a, b, c) = (kinds.pointer(), sizes.pointer(), count.pointer());
    let rc = call!(session, ompd_get_device_thread_id_kinds, [passed], at(handle), a, b, c);
    assert!(count.result(rc).is_none_or(|count| count == 2));
    for array in [kinds.result(rc), sizes.result(rc)].into_iter().flatten() {
        // SAFETY: each has two words.
        let listed = unsafe { [array.read(), array.add(1).read()] };
        assert!(listed == [0, 1] || listed == [8, 8], "{listed:?}");
        take_back(array.cast());
    }
}

fn thread(session: &mut Session, words: &mut Words<'_>) {
    let (handle, passed) = session.handle(Some(Kind::Space), words);
    let (kind, size) = id_kind(words);
    let which = words.next();
    // Those of the first process first, and of another one some as well.
    let other = usize::from(which >= 200);
    let threads = session.subjects[(session.subject + other) % session.subjects.len()].threads();
    let (lwp, pthread) = threads[usize::from(which) % threads.len()];
    let id = match which {
        0..=219 if kind == 0 => pthread,
        0..=219 => lwp,
        220..=239 => NUMBERS[usize::from(which) % NUMBERS.len()] as u64,
        _ => scatter(which.into()),
    };
    let mut place = OutParameter::new(words);
    let at_id: *const c_void = if which == 255 { ptr::null() } else { (&raw const id).cast() };
    let rc = call!(session, ompd_get_thread_handle, [passed], at(handle), kind, size, at_id, place.pointer());
    given(session, Kind::Thread, passed, place.result(rc));
}

fn states(session: &mut Session, words: &mut Words<'_>) {
    let (handle, passed) = session.handle(Some(Kind::Space), words);
    let current = match words.next() {
        number @ 0..=127 => i64::from(number) % 0x48,
        number => [0x102, 0x100, 0x101, NUMBERS[usize::from(number) % NUMBERS.len()]][usize::from(number % 4)],
    };
    let (mut next, mut name) = (OutParameter::<Word>::new(words), OutParameter::<*const c_char>::new(words));
    let mut more = OutParameter::<Word>::new(words);
    let (a, b, c) = (next.pointer(), name.pointer(), more.pointer());
    let rc = call!(session, ompd_enumerate_states, [passed], at(handle), current, a, b, c);
    next.result(rc);
    more.result(rc);
    assert!(name.result(rc).is_none_or(|name| take(name).starts_with("ompt_state_")));
}

fn icvs(session: &mut Session, words: &mut Words<'_>) {
    let (handle, passed) = session.handle(Some(Kind::Space), words);
    let current = icv_id(words);
    let (mut id, mut name) = (OutParameter::<IcvId>::new(words), OutParameter::<*const c_char>::new(words));
    let (mut scope, mut more) = (OutParameter::<ScopeNumber>::new(words), OutParameter::<c_int>::new(words));
    let (a, b, c, d) = (id.pointer(), name.pointer(), scope.pointer(), more.pointer());
    let rc = call!(session, ompd_enumerate_icvs, [passed], at(handle), current, a, b, c, d);
    id.result(rc);
    more.result(rc);
    assert!(scope.result(rc).is_none_or(|scope| (1..=6).contains(&scope)));
    name.result(rc).map(take);
}

fn icv_id(words: &mut Words<'_>) -> IcvId {
    match words.next() {
        number @ 0..=239 => u64::from(number % 40),
        number => NUMBERS[usize::from(number) % NUMBERS.len()] as u64,
    }
}

/// A handle, its kind, a scope that mostly goes with it, and a control variable.
fn icv(session: &Session, words: &mut Words<'_>) -> (usize, Passed, ScopeNumber, IcvId) {
    let kinds = [Kind::Space, Kind::Thread, Kind::Region, Kind::Task];
    let kind = pick(words, &kinds);
    let (handle, mut passed) = session.handle(Some(kind), words);
    // Any kind is right; which it must be says the scope.
    if let (Passed::Other, Some(given)) = (passed, session.live.iter().find(|given| given.handle == handle)) {
        passed = Passed::Right { space: given.space };
    }
    let scopes: &[ScopeNumber] = match kind {
        Kind::Space => &[1, 2],
        Kind::Thread => &[3],
        Kind::Region => &[4],
        Kind::Task => &[6, 6, 6, 5],
    };
    let scope = match words.next() {
        which @ 0..=199 => scopes[usize::from(which) % scopes.len()],
        which => [0, 1, 2, 3, 4, 5, 6, 7, -1, c_int::MAX][usize::from(which) % 10],
    };
    (handle, passed, scope, icv_id(words))
}

fn release_vector(session: &mut Session, words: &mut Words<'_>) {
    let (how, none) = (words.next(), ptr::without_provenance(0x10));
    let own = session.vectors.get(usize::from(how) % session.vectors.len().max(1)).copied();
    let mut vector = own.filter(|_| how < 200).unwrap_or(none);
    let at = if how >= 250 { ptr::null_mut() } else { &raw mut vector };
    let rc = call!(session, ompd_rel_display_control_vars, [], at);
    if rc == Rc::OK {
        assert!(vector.is_null(), "what was given back is not pointed to any more");
        session.vectors.retain(|vector| Some(*vector) != own);
    } else {
        assert!(how >= 200 || own.is_none() || session.version.is_none(), "{rc:?} for what was given out");
    }
}
