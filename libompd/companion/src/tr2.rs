//! Events of OpenMP Technical Report 2, version 1 of OMPT, written as today's (`ompt_record::generation`).
//!
//! There the runtime itself numbers regions and tasks, and gives those numbers to callbacks that have no other arguments: an event is
//! its number. Functions that callbacks are given are those that the compiler made of a construct, and no return addresses: they are
//! not written.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::block::State;
use ompt_record::event::{Event, NOT_TOLD};
use ompt_record::generation::{Enumeration, EventToday, Generation};

use crate::block::{self, NewCreation, Recorder, header, is_recording, now, set_state};
use crate::control;
use crate::entries::Entries;
use crate::ompt::{Callback, Lookup};
use crate::settings::Settings;

/// What TR2 calls itself where it starts a tool.
const VERSION: c_uint = 1;

/// The last of its events.
const LAST_EVENT: usize = 61;

/// What a runtime of Technical Report 2 calls as `ompt_initialize`: the library that exports it is one of its own. 1 if the tool
/// stays.
///
/// # Safety
/// `lookup` has to be the look-up function of the runtime that calls, and `runtime_version` null or a string that ends with a zero.
pub unsafe fn tr2_initialize(lookup: Option<Lookup>, runtime_version: *const c_char, version: c_uint) -> c_int {
    // Version 2 has no numbers for events, and the initialiser of today, which is often given the same name, has no version here.
    let (Some(lookup), VERSION) = (lookup, version) else { return 0 };
    let settings = Settings::read();
    let name = if runtime_version.is_null() {
        &[]
    } else {
        // SAFETY: as the caller says.
        unsafe { CStr::from_ptr(runtime_version) }.to_bytes()
    };
    if !block::begin(settings.shape, 0, name) || !block::belongs_to(lookup, 0, name) {
        return 0;
    }
    let entries = Entries::look_up(lookup);
    let answers = register(&entries);
    if let Some(header) = header() {
        header.entry_points.store(entries.found, Relaxed);
        for (word, answers) in
            [&header.results_first, &header.results_second, &header.results_third].into_iter().zip(answers.chunks(16))
        {
            word.store(answers.iter().rev().fold(0, |word, answer| word << 4 | u64::from(*answer)), Relaxed);
        }
    }
    if let Some(file) = settings.file {
        control::flush_to(file);
    }
    crate::start::know_forks();
    set_state(if settings.records { State::Recording } else { State::Paused });
    1
}

/// Registers all events. Returns by today's number of the callback what today would be answered.
fn register(entries: &Entries) -> [u8; 48] {
    let mut answers = [crate::start::NOT_ASKED; 48];
    let Some(set_callback) = entries.set_callback else { return answers };
    for (number, callback) in (1..).zip(all()) {
        // SAFETY: the callback has the type that the event asks for.
        let answer = unsafe { set_callback(number, Some(callback)) };
        let answer = u64::try_from(answer).ok().and_then(|n| Generation::Tr2.decode(Enumeration::SetResult, n));
        let answer = answer.and_then(|answer| answer.today.number()).and_then(|n| u8::try_from(n).ok());
        let event = Generation::Tr2.event(u64::from(number.cast_unsigned()));
        if let Some(EventToday::Callback { number, .. }) = event.map(|event| event.today)
            && let Some(place) = answers.get_mut(usize::from(number) - 1)
        {
            *place = together(*place, answer.unwrap_or(0));
        }
    }
    answers
}

/// What one callback's answer is, of which several events have been asked for.
fn together(before: u8, answer: u8) -> u8 {
    let (never, sometimes) = (1, 3);
    match (before, answer) {
        (crate::start::NOT_ASKED, answer) => answer,
        (before, answer) if before == answer => answer,
        (before, answer) if before.max(answer) >= sometimes => sometimes,
        _ => never,
    }
}

/// What is known of an event by its number.
const fn template(number: u64) -> Event {
    let empty = Event {
        position: 0,
        time: 0,
        kind: 0,
        endpoint: 0,
        sub: 0,
        flags: 0,
        region: 0,
        task: 0,
        other: 0,
        codeptr_ra: 0,
    };
    let Some(event) = Generation::Tr2.event(number) else { return empty };
    let EventToday::Callback { number, endpoint, sub } = event.today else { return empty };
    let sub = match sub {
        Some(sub) => sub,
        None => 0,
    };
    Event { kind: number, endpoint, sub, ..empty }
}

/// Writes an event, if the companion records and the thread has a ring. Gives both, and when it was.
fn write(event: Event) -> Option<(Recorder, u64)> {
    if !is_recording() {
        return None;
    }
    let (place, time) = (Recorder::own()?, now());
    place.write(Event { time, ..event });
    Some((place, time))
}

unsafe extern "C" fn thread_begin<const NUMBER: u64>(kind: c_int, _thread: u64) {
    // A thread gets its ring even in a pause: it may be ended before the thread is.
    if Recorder::take(kind).is_some() {
        write(Event { sub: u16::try_from(kind).unwrap_or(0), ..const { template(NUMBER) } });
    }
}

unsafe extern "C" fn thread_end<const NUMBER: u64>(_kind: c_int, _thread: u64) {
    write(const { template(NUMBER) });
    if let Some(place) = Recorder::own() {
        place.leave();
    }
}

unsafe extern "C" fn thread<const NUMBER: u64>(_thread: u64) {
    write(const { template(NUMBER) });
}

/// An event that today is a state: there is nothing to write.
unsafe extern "C" fn idle(_thread: u64) {}

unsafe extern "C" fn new_parallel<const NUMBER: u64>(
    task: u64,
    _frame: *const c_void,
    region: u64,
    requested: u32,
    _function: *const c_void,
) {
    let other = u64::from(requested);
    if let Some((place, time)) = write(Event { region, task, other, ..const { template(NUMBER) } }) {
        let thread = place.id();
        let new = NewCreation { encountering_task: task, detail: other, thread, time, ..NewCreation::default() };
        block::region_begins_as(region, &new);
    }
}

unsafe extern "C" fn parallel_end<const NUMBER: u64>(region: u64, task: u64) {
    if write(Event { region, task, ..const { template(NUMBER) } }).is_some() {
        block::region_ends(region);
    }
}

unsafe extern "C" fn within<const NUMBER: u64>(region: u64, task: u64) {
    write(Event { region, task, ..const { template(NUMBER) } });
}

/// An implicit task: which thread of the team executes it is not told.
unsafe extern "C" fn implicit<const NUMBER: u64>(region: u64, task: u64) {
    write(Event { region, task, flags: NOT_TOLD, ..const { template(NUMBER) } });
}

unsafe extern "C" fn initial<const NUMBER: u64>(task: u64) {
    write(Event { task, flags: NOT_TOLD, ..const { template(NUMBER) } });
}

/// A worksharing construct begins: how much work there is is not told.
unsafe extern "C" fn new_workshare<const NUMBER: u64>(region: u64, task: u64, _function: *const c_void) {
    write(Event { region, task, other: NOT_TOLD.into(), ..const { template(NUMBER) } });
}

/// The end of one.
unsafe extern "C" fn workshare<const NUMBER: u64>(region: u64, task: u64) {
    write(Event { region, task, other: NOT_TOLD.into(), ..const { template(NUMBER) } });
}

unsafe extern "C" fn new_task<const NUMBER: u64>(
    creator: u64,
    _frame: *const c_void,
    task: u64,
    _function: *const c_void,
) {
    // TR2 tells of no other tasks by this event.
    const EXPLICIT: u32 = 0x4;
    let event = Event { task, other: creator, flags: EXPLICIT, ..const { template(NUMBER) } };
    if let Some((place, time)) = write(event) {
        let flags = EXPLICIT.into();
        let thread = place.id();
        let new = NewCreation { encountering_task: creator, flags, thread, time, ..NewCreation::default() };
        block::task_begins_as(task, &new);
    }
}

unsafe extern "C" fn task_end<const NUMBER: u64>(task: u64) {
    if write(Event { task, ..const { template(NUMBER) } }).is_some() {
        block::task_ends(task);
    }
}

unsafe extern "C" fn task_switch<const NUMBER: u64>(task: u64, other: u64) {
    write(Event { task, other, ..const { template(NUMBER) } });
}

unsafe extern "C" fn mutex<const NUMBER: u64>(other: u64) {
    let event = const { template(NUMBER) };
    let Some((place, time)) = write(Event { other, ..event }) else { return };
    match (event.kind, event.endpoint) {
        (27, _) => place.hold(other, event.sub.into(), 0, time),
        (17, _) => place.let_go(other),
        (28, endpoint) => place.hold_again(other, endpoint != 2),
        _ => {}
    }
}

unsafe extern "C" fn control<const NUMBER: u64>(command: u64, modifier: u64) {
    let flags = (command & u64::from(u32::MAX)) as u32;
    write(Event { flags, task: modifier, ..const { template(NUMBER) } });
    control::obey(command, modifier);
}

unsafe extern "C" fn shutdown() {
    set_state(State::Ended);
    control::flush_at_end();
    block::runtime_ends();
}

/// The callbacks of all events, in the order of their numbers.
fn all() -> [Callback; LAST_EVENT] {
    macro_rules! callback {
        ($function:expr, ($($parameter:ty),*)) => {{
            let function: unsafe extern "C" fn($($parameter),*) = $function;
            // SAFETY: a pointer to a function is one, whatever its parameters; the runtime calls it as the event says.
            unsafe { std::mem::transmute::<unsafe extern "C" fn($($parameter),*), Callback>(function) }
        }};
    }
    macro_rules! pair {
        ($name:ident, $number:literal) => {
            callback!($name::<$number>, (u64, u64))
        };
    }
    macro_rules! one {
        ($name:ident, $number:literal) => {
            callback!($name::<$number>, (u64))
        };
    }
    macro_rules! workshare {
        ($number:literal) => {
            callback!(new_workshare::<$number>, (u64, u64, *const c_void))
        };
    }
    [
        callback!(new_parallel::<1>, (u64, *const c_void, u64, u32, *const c_void)),
        pair!(parallel_end, 2),
        callback!(new_task::<3>, (u64, *const c_void, u64, *const c_void)),
        one!(task_end, 4),
        callback!(thread_begin::<5>, (c_int, u64)),
        callback!(thread_end::<6>, (c_int, u64)),
        pair!(control, 7),
        shutdown,
        callback!(idle, (u64)),
        callback!(idle, (u64)),
        pair!(within, 11),
        pair!(within, 12),
        pair!(within, 13),
        pair!(within, 14),
        pair!(within, 15),
        pair!(within, 16),
        one!(mutex, 17),
        one!(mutex, 18),
        one!(mutex, 19),
        one!(mutex, 20),
        one!(mutex, 21),
        pair!(implicit, 22),
        pair!(implicit, 23),
        one!(initial, 24),
        one!(initial, 25),
        pair!(task_switch, 26),
        workshare!(27),
        pair!(workshare, 28),
        workshare!(29),
        pair!(workshare, 30),
        workshare!(31),
        pair!(workshare, 32),
        // This one begins without a function.
        pair!(workshare, 33),
        pair!(workshare, 34),
        workshare!(35),
        pair!(workshare, 36),
        pair!(within, 37),
        pair!(within, 38),
        pair!(within, 39),
        pair!(within, 40),
        pair!(within, 41),
        pair!(within, 42),
        pair!(within, 43),
        pair!(within, 44),
        one!(mutex, 45),
        one!(mutex, 46),
        one!(mutex, 47),
        one!(mutex, 48),
        one!(mutex, 49),
        one!(mutex, 50),
        one!(mutex, 51),
        one!(mutex, 52),
        one!(mutex, 53),
        one!(mutex, 54),
        one!(mutex, 55),
        one!(mutex, 56),
        one!(mutex, 57),
        one!(mutex, 58),
        one!(mutex, 59),
        one!(mutex, 60),
        one!(thread, 61),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Several events of TR2 are one callback of today.
    #[test]
    fn a_callback_is_traced_as_well_as_its_events_are() {
        let [never, sometimes, always] = [1, 3, 5];
        let all = [
            (crate::start::NOT_ASKED, always, always),
            (always, always, always),
            (never, never, never),
            (sometimes, always, sometimes),
            (always, never, sometimes),
            (never, always, sometimes),
            // An error and "impossible": none of them is traced.
            (0, 2, never),
        ];
        for (before, answer, both) in all {
            assert_eq!(together(before, answer), both, "{before} and {answer}");
        }
    }
}
