//! The end of `single`, which nothing tells.

use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crate::callbacks as report;
use crate::ompt::{scope, work};
use crate::records::Task;

/// The task comes to a barrier, to another construct that shares work, or to its end: no `single` that it executed is open.
pub fn ends(task: &Task) {
    if task.single.load(Relaxed).is_null() {
        return;
    }
    let code = task.single.swap(ptr::null_mut(), Relaxed);
    let region = task.region().map(|region| &region.data);
    report::work(work::SINGLE_EXECUTOR, scope::END, region, &task.data, 1, code);
}
