//! The callbacks for a runtime with the OMPT of the draft of OpenMP 5.0 of 2018. They have today's numbers, and are told other
//! kinds and less.

use std::ffi::{c_int, c_uint};

use ompt_record::generation::{Enumeration, EventToday, Generation, Today};

use super::{Numbered, Pair, callback};
use crate::ompt::{Callback, CodePtr, Data, Dependence};

/// Flag of an implicit task (`ompt_task_flag_t`). The draft tells of no initial task, and has no flags.
const IMPLICIT: c_int = 2;

/// Today's number of a kind; 0 if the draft gives the number to nothing.
///
/// The draft does not tell a lock that was tested from one that was set: both are recorded as set.
fn today(what: Enumeration, number: c_uint) -> c_uint {
    let number = match Generation::Draft2018.decode(what, number.into()).map(|decoded| decoded.today) {
        Some(Today::Number(number) | Today::Folded(number) | Today::OneOf(&[number, _])) => number,
        Some(Today::OneOf(_) | Today::Gone) | None => 0,
    };
    c_uint::try_from(number).unwrap_or(0)
}

/// The same for the enumerations that callbacks get as `int`.
fn kind(what: Enumeration, number: c_int) -> c_int {
    today(what, number.cast_unsigned()).cast_signed()
}

unsafe extern "C" fn implicit_task(
    scope: c_int,
    region: *const Data,
    task: *const Data,
    team_size: c_uint,
    thread: c_uint,
) {
    // SAFETY: the runtime's words.
    unsafe { super::implicit_task(scope, region, task, team_size, thread, IMPLICIT) };
}

unsafe extern "C" fn task_schedule(prior: *const Data, status: c_int, next: *const Data) {
    // SAFETY: the runtime's words.
    unsafe { super::task_schedule(prior, kind(Enumeration::TaskStatus, status), next) };
}

unsafe extern "C" fn dependences(task: *const Data, dependences: *const Dependence, count: c_int) {
    // SAFETY: the runtime's words, and as many dependences as it says.
    unsafe { super::dependences_as(task, dependences, count, |number| today(Enumeration::Dependence, number)) };
}

/// Functions that decode their first argument and pass all on.
macro_rules! decoding {
    ($($name:ident: $what:ident ($($argument:ident: $type:ty),*);)*) => {
        $(unsafe extern "C" fn $name(number: c_int, $($argument: $type),*) {
            // SAFETY: the runtime's arguments.
            unsafe { super::$name(kind(Enumeration::$what, number), $($argument),*) };
        })*
    };
}

decoding! {
    sync_region: SyncRegion (scope: c_int, region: *const Data, task: *const Data, from: CodePtr);
    sync_region_wait: SyncRegion (scope: c_int, region: *const Data, task: *const Data, from: CodePtr);
    lock_init: Mutex (hint: c_uint, implementation: c_uint, wait_id: u64, from: CodePtr);
    lock_destroy: Mutex (wait_id: u64, from: CodePtr);
    mutex_acquire: Mutex (hint: c_uint, implementation: c_uint, wait_id: u64, from: CodePtr);
    mutex_acquired: Mutex (wait_id: u64, from: CodePtr);
    mutex_released: Mutex (wait_id: u64, from: CodePtr);
}

/// The callbacks that differ from today's.
fn own() -> [Numbered; 10] {
    type Sync = unsafe extern "C" fn(c_int, c_int, *const Data, *const Data, CodePtr);
    type Mutex = unsafe extern "C" fn(c_int, u64, CodePtr);
    type MutexAcquire = unsafe extern "C" fn(c_int, c_uint, c_uint, u64, CodePtr);
    [
        (6, callback!(task_schedule as unsafe extern "C" fn(*const Data, c_int, *const Data))),
        (7, callback!(implicit_task as unsafe extern "C" fn(c_int, *const Data, *const Data, c_uint, c_uint))),
        (16, callback!(sync_region_wait as Sync)),
        (17, callback!(mutex_released as Mutex)),
        (18, callback!(dependences as unsafe extern "C" fn(*const Data, *const Dependence, c_int))),
        (23, callback!(sync_region as Sync)),
        (24, callback!(lock_init as MutexAcquire)),
        (25, callback!(lock_destroy as Mutex)),
        (26, callback!(mutex_acquire as MutexAcquire)),
        (27, callback!(mutex_acquired as Mutex)),
    ]
}

/// All callbacks that the draft has, of those there are today.
pub fn of(today: Vec<Pair>) -> Vec<Pair> {
    let own = own();
    let known = |(number, _): &Numbered| {
        let event = Generation::Draft2018.event((*number).into());
        event.is_some_and(|event| matches!(event.today, EventToday::Callback { .. }))
    };
    let one_by_one = today.into_iter().flat_map(|(newer, older)| [Some(newer), older]).flatten();
    let in_draft = |numbered: Numbered| own.into_iter().find(|(number, _)| *number == numbered.0).unwrap_or(numbered);
    one_by_one.filter(known).map(|numbered| (in_draft(numbered), None)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_1_to_30_are_registered_and_idle_is_not() {
        let mut numbers: Vec<u8> = of(crate::callbacks::list::all()).iter().map(|((number, _), _)| *number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
    }

    #[test]
    fn kinds_of_the_draft_are_decoded() {
        let decoded = |what, numbers: &[c_int]| numbers.iter().map(|n| kind(what, *n)).collect::<Vec<_>>();
        assert_eq!(decoded(Enumeration::Mutex, &[0x10, 0x11, 0x12, 0x13, 0x14, 0x20, 1]), [0, 1, 3, 5, 6, 7, 0]);
        assert_eq!(decoded(Enumeration::SyncRegion, &[1, 2, 3, 4]), [1, 5, 6, 0]);
        assert_eq!(decoded(Enumeration::TaskStatus, &[1, 2, 3, 4]), [1, 2, 3, 7]);
        assert_eq!(decoded(Enumeration::Dependence, &[1, 2, 3]), [2, 1, 3]);
    }
}
