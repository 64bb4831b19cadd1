//! Worksharing loops.

use std::ffi::c_long;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::{Begun, Call};
use crate::events::work::{BY_ICV, begins, end_of, of_schedule};
use crate::names::Entry;
use crate::ompt::work;

/// How many iterations a loop has from `first` to before `last`; 0 for a step of 0.
pub fn iterations(first: c_long, last: c_long, step: c_long) -> u64 {
    let (distance, step) = if step > 0 {
        (i128::from(last) - i128::from(first), i128::from(step))
    } else {
        (i128::from(first) - i128::from(last), -i128::from(step))
    };
    if distance <= 0 || step == 0 { 0 } else { u64::try_from((distance + step - 1) / step).unwrap_or(u64::MAX) }
}

/// As [`iterations`], of unsigned bounds. `up` is the direction; a step down is a negative number's bits.
pub fn iterations_ull(up: bool, first: u64, last: u64, step: u64) -> u64 {
    let (distance, step) =
        if up { (last.saturating_sub(first), step) } else { (first.saturating_sub(last), step.wrapping_neg()) };
    if step == 0 { 0 } else { distance.div_ceil(step) }
}

/// The product of the counts of the nested loops of `ordered(n)`.
///
/// # Safety
/// `counts` has `count` numbers.
unsafe fn nested(count: usize, counts: usize) -> u64 {
    // SAFETY: as the caller says.
    let counts = unsafe { std::slice::from_raw_parts(counts as *const u64, (count as u32) as usize) };
    counts.iter().fold(1, |all, count| all.saturating_mul(*count))
}

/// The same for a doacross loop, whose task has to know how many counters `GOMP_doacross_wait` will get.
unsafe fn doacross(begun: Begun, count: usize, counts: usize) -> u64 {
    if let Some(thread) = begun.thread {
        thread.task().doacross.store(count as u32, Relaxed);
    }
    // SAFETY: as the caller says.
    unsafe { nested(count, counts) }
}

/// Defines functions that start loops. All arguments are words.
macro_rules! starts {
    ($($name:ident, $entry:ident, $kind:expr, [$($argument:ident)*], $count:ident($($of:ident),*);)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        #[allow(clippy::too_many_arguments, reason = "the runtime's own")]
        pub unsafe extern "C-unwind" fn $name($($argument: usize,)* call: Call) -> bool {
            type Real = unsafe extern "C-unwind" fn($(starts!(word $argument)),*) -> bool;
            let begun = call.begin();
            // SAFETY: arguments of the program's call, which are valid until it returns.
            let count = if begun.thread.is_some() { unsafe { $count(begun, $($of),*) } } else { 0 };
            // SAFETY: the runtime's type, as far as registers and the stack go.
            begins(begun, call, $kind, count, || unsafe { begun.real::<Real>(Entry::$entry)($($argument),*) })
        })*
    };
    (word $argument:ident) => { usize };
}

/// The count of a loop whose bounds are the first three arguments.
unsafe fn signed(_begun: Begun, first: usize, last: usize, step: usize) -> u64 {
    iterations(first as c_long, last as c_long, step as c_long)
}

/// The count of a loop whose direction and bounds are the first four arguments.
unsafe fn unsigned(_begun: Begun, up: usize, first: usize, last: usize, step: usize) -> u64 {
    iterations_ull(up as u8 != 0, first as u64, last as u64, step as u64)
}

starts! {
    static_start, GOMP_loop_static_start, work::LOOP_STATIC, [a b c d e f], signed(a, b, c);
    dynamic_start, GOMP_loop_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f], signed(a, b, c);
    guided_start, GOMP_loop_guided_start, work::LOOP_GUIDED, [a b c d e f], signed(a, b, c);
    runtime_start, GOMP_loop_runtime_start, BY_ICV, [a b c d e], signed(a, b, c);
    nonmonotonic_dynamic_start, GOMP_loop_nonmonotonic_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f], signed(a, b, c);
    nonmonotonic_guided_start, GOMP_loop_nonmonotonic_guided_start, work::LOOP_GUIDED, [a b c d e f], signed(a, b, c);
    nonmonotonic_runtime_start, GOMP_loop_nonmonotonic_runtime_start, BY_ICV, [a b c d e], signed(a, b, c);
    maybe_nonmonotonic_runtime_start, GOMP_loop_maybe_nonmonotonic_runtime_start, BY_ICV, [a b c d e],
        signed(a, b, c);
    start, GOMP_loop_start, of_schedule(d), [a b c d e f g h i], signed(a, b, c);
    ordered_static_start, GOMP_loop_ordered_static_start, work::LOOP_STATIC, [a b c d e f], signed(a, b, c);
    ordered_dynamic_start, GOMP_loop_ordered_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f], signed(a, b, c);
    ordered_guided_start, GOMP_loop_ordered_guided_start, work::LOOP_GUIDED, [a b c d e f], signed(a, b, c);
    ordered_runtime_start, GOMP_loop_ordered_runtime_start, BY_ICV, [a b c d e], signed(a, b, c);
    ordered_start, GOMP_loop_ordered_start, of_schedule(d), [a b c d e f g h i], signed(a, b, c);
    doacross_static_start, GOMP_loop_doacross_static_start, work::LOOP_STATIC, [a b c d e], doacross(a, b);
    doacross_dynamic_start, GOMP_loop_doacross_dynamic_start, work::LOOP_DYNAMIC, [a b c d e], doacross(a, b);
    doacross_guided_start, GOMP_loop_doacross_guided_start, work::LOOP_GUIDED, [a b c d e], doacross(a, b);
    doacross_runtime_start, GOMP_loop_doacross_runtime_start, BY_ICV, [a b c d], doacross(a, b);
    doacross_start, GOMP_loop_doacross_start, of_schedule(c), [a b c d e f g h], doacross(a, b);
    ull_static_start, GOMP_loop_ull_static_start, work::LOOP_STATIC, [a b c d e f g], unsigned(a, b, c, d);
    ull_dynamic_start, GOMP_loop_ull_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f g], unsigned(a, b, c, d);
    ull_guided_start, GOMP_loop_ull_guided_start, work::LOOP_GUIDED, [a b c d e f g], unsigned(a, b, c, d);
    ull_runtime_start, GOMP_loop_ull_runtime_start, BY_ICV, [a b c d e f], unsigned(a, b, c, d);
    ull_nonmonotonic_dynamic_start, GOMP_loop_ull_nonmonotonic_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f g],
        unsigned(a, b, c, d);
    ull_nonmonotonic_guided_start, GOMP_loop_ull_nonmonotonic_guided_start, work::LOOP_GUIDED, [a b c d e f g],
        unsigned(a, b, c, d);
    ull_nonmonotonic_runtime_start, GOMP_loop_ull_nonmonotonic_runtime_start, BY_ICV, [a b c d e f],
        unsigned(a, b, c, d);
    ull_maybe_nonmonotonic_runtime_start, GOMP_loop_ull_maybe_nonmonotonic_runtime_start, BY_ICV, [a b c d e f],
        unsigned(a, b, c, d);
    ull_start, GOMP_loop_ull_start, of_schedule(e), [a b c d e f g h i j], unsigned(a, b, c, d);
    ull_ordered_static_start, GOMP_loop_ull_ordered_static_start, work::LOOP_STATIC, [a b c d e f g],
        unsigned(a, b, c, d);
    ull_ordered_dynamic_start, GOMP_loop_ull_ordered_dynamic_start, work::LOOP_DYNAMIC, [a b c d e f g],
        unsigned(a, b, c, d);
    ull_ordered_guided_start, GOMP_loop_ull_ordered_guided_start, work::LOOP_GUIDED, [a b c d e f g],
        unsigned(a, b, c, d);
    ull_ordered_runtime_start, GOMP_loop_ull_ordered_runtime_start, BY_ICV, [a b c d e f], unsigned(a, b, c, d);
    ull_ordered_start, GOMP_loop_ull_ordered_start, of_schedule(e), [a b c d e f g h i j], unsigned(a, b, c, d);
    ull_doacross_static_start, GOMP_loop_ull_doacross_static_start, work::LOOP_STATIC, [a b c d e], doacross(a, b);
    ull_doacross_dynamic_start, GOMP_loop_ull_doacross_dynamic_start, work::LOOP_DYNAMIC, [a b c d e], doacross(a, b);
    ull_doacross_guided_start, GOMP_loop_ull_doacross_guided_start, work::LOOP_GUIDED, [a b c d e], doacross(a, b);
    ull_doacross_runtime_start, GOMP_loop_ull_doacross_runtime_start, BY_ICV, [a b c d], doacross(a, b);
    ull_doacross_start, GOMP_loop_ull_doacross_start, of_schedule(c), [a b c d e f g h], doacross(a, b);
}

/// `GOMP_loop_end`
pub unsafe extern "C-unwind" fn end(call: Call) {
    end_of(call, Entry::GOMP_loop_end, work::LOOP, true)
}

/// `GOMP_loop_end_nowait`
pub unsafe extern "C-unwind" fn end_nowait(call: Call) {
    end_of(call, Entry::GOMP_loop_end_nowait, work::LOOP, false)
}

/// `GOMP_loop_end_cancel`
pub unsafe extern "C-unwind" fn end_cancel(call: Call) -> bool {
    end_of(call, Entry::GOMP_loop_end_cancel, work::LOOP, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterations_count_both_directions_and_empty_loops() {
        assert_eq!(iterations(0, 10, 3), 4);
        assert_eq!(iterations(10, 0, -3), 4);
        assert_eq!(iterations(5, 5, 1), 0);
        assert_eq!(iterations(c_long::MIN, c_long::MAX, 1), u64::MAX);
        assert_eq!(iterations_ull(true, 0, u64::MAX, 1), u64::MAX);
        assert_eq!(iterations_ull(false, 10, 0, 3_u64.wrapping_neg()), 4);
        assert_eq!(iterations_ull(true, 5, 1, 1), 0);
    }
}
