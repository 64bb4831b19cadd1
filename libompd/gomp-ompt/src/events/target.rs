//! Constructs for devices: their begin and end on the host.

use std::ffi::{c_int, c_uint};

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::names::Entry;
use crate::ompt::{Data, scope};
use crate::runtimes::Query;

/// `ompt_target_t`
mod kind {
    use super::c_int;
    pub const TARGET: c_int = 1;
    pub const ENTER_DATA: c_int = 2;
    pub const EXIT_DATA: c_int = 3;
    pub const UPDATE: c_int = 4;
    /// Added for constructs with `nowait`.
    pub const NOWAIT: c_int = 8;
}

/// Flags of the runtime for a construct (gomp-constants.h).
const NOWAIT: c_uint = 1;
const EXIT_DATA: c_uint = 2;

/// Reports a construct around its call. `device` is the runtime's number, negative for the default device.
fn construct(begun: Begun, call: Call, kind: c_int, device: c_int, forward: impl FnOnce()) {
    let Some(thread) = begun.thread else { return forward() };
    let (task, code) = (thread.task(), call.codeptr_ra());
    let ask = |query| begun.runtime.ask(query).unwrap_or(-1);
    let device = match device {
        // The host, as the compiler decided.
        -2 => ask(Query::InitialDevice),
        device if device < 0 => ask(Query::DefaultDevice),
        device => device,
    };
    // The runtime executes on the host what is for a device that there is not.
    let host = ask(Query::InitialDevice);
    let device = if host >= 0 { device.min(host) } else { device };
    let data = Data::new(0);
    report::target_emi(kind, scope::BEGIN, device, &task.data, None, &data, code);
    forward();
    report::target_emi(kind, scope::END, device, &task.data, None, &data, code);
    call::end(task);
}

/// Defines functions for constructs. All arguments after the device are words.
macro_rules! constructs {
    ($($name:ident, $entry:ident, [$($argument:ident)*], $kind:expr;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        #[allow(clippy::too_many_arguments, reason = "the runtime's own")]
        pub unsafe extern "C-unwind" fn $name(device: c_int, $($argument: usize,)* call: Call) {
            type Real = unsafe extern "C-unwind" fn(c_int, $(constructs!(word $argument)),*);
            let begun = call.begin();
            // SAFETY: the runtime's type, as far as registers and the stack go.
            construct(begun, call, $kind, device, || unsafe {
                begun.real::<Real>(Entry::$entry)(device, $($argument),*);
            });
        })*
    };
    (word $argument:ident) => { usize };
}

fn nowait(flags: usize) -> c_int {
    if flags as c_uint & NOWAIT != 0 { kind::NOWAIT } else { 0 }
}

fn enter_or_exit(flags: usize) -> c_int {
    let what = if flags as c_uint & EXIT_DATA != 0 { kind::EXIT_DATA } else { kind::ENTER_DATA };
    what + nowait(flags)
}

constructs! {
    target, GOMP_target, [a b c d e f], kind::TARGET;
    target_ext, GOMP_target_ext, [a b c d e f g h], kind::TARGET + nowait(f);
    target_data, GOMP_target_data, [a b c d e], kind::ENTER_DATA;
    target_data_ext, GOMP_target_data_ext, [a b c d], kind::ENTER_DATA;
    target_update, GOMP_target_update, [a b c d e], kind::UPDATE;
    target_update_ext, GOMP_target_update_ext, [a b c d e f], kind::UPDATE + nowait(e);
    target_enter_exit_data, GOMP_target_enter_exit_data, [a b c d e f], enter_or_exit(e);
}

/// `GOMP_target_end_data`, of the device of the `target data` region that ends, which it does not name.
pub unsafe extern "C-unwind" fn target_end_data(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_target_end_data)() };
    construct(begun, call, kind::EXIT_DATA, -1, forward);
}
