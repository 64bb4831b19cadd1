//! The current region and task of a thread, as a debugger asks for them.

use ompd::api::*;
use ompd::extension::ompdx_get_descriptor;
use ompd::types::*;

use crate::debugger::{Session, out};

/// A region by its record, size and level.
pub type Region = (u64, Word, Word);

/// What the library answers of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The region that the thread executes.
    pub region: Result<Region, Rc>,
    /// The record of its task.
    pub task: Result<u64, Rc>,
}

fn descriptor<T>(handle: *mut T) -> u64 {
    out(|at: *mut Address| unsafe { ompdx_get_descriptor(handle.cast(), at) }).expect("a record").address
}

/// Asks in the address space of a debugger; `None` if the thread is unknown there.
pub fn ask(session: &Session, space: *mut AddressSpaceHandle, tid: i32) -> Option<Answer> {
    let id = tid as u64;
    let thread =
        out(|handle| unsafe { ompd_get_thread_handle(space, thread_id::LWP, 8, (&raw const id).cast(), handle) });
    let thread = thread.ok()?;
    let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).map(|region| {
        let size = session.icv(region, "team-size-var").expect("a size");
        let level = session.icv(region, "levels-var").expect("a level");
        let found = (if level == 0 { 0 } else { descriptor(region) }, size, level);
        assert_eq!(unsafe { ompd_rel_parallel_handle(region) }, Rc::OK);
        found
    });
    let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).map(|task| {
        let found = descriptor(task);
        assert_eq!(unsafe { ompd_rel_task_handle(task) }, Rc::OK);
        found
    });
    assert_eq!(unsafe { ompd_rel_thread_handle(thread) }, Rc::OK);
    Some(Answer { region, task })
}
