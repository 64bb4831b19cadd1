//! Where readers from outside find what stands in for the program's functions.

use std::mem::offset_of;

use crate::events::tasks::Header;
use crate::records::{Region, Task};

/// The offsets, in bytes. Readers find it by its name; its first word says what follows.
#[derive(Debug)]
#[repr(C)]
pub struct Layout {
    /// 1: as below. A layout with other members has another number.
    version: u64,
    /// In the argument of `libgomp_ompt_task`: the task's function.
    task_body: u64,
    /// In the same: address of the record of the task.
    task_record: u64,
    /// In the record of a task: what the tool has stored.
    task_data: u64,
    /// In the argument of `libgomp_ompt_region` and `libgomp_ompt_league`: the region's function.
    region_body: u64,
    /// In the same: what the tool has stored.
    region_data: u64,
}

/// Of this library.
#[allow(non_upper_case_globals, reason = "a name of C")]
#[unsafe(no_mangle)]
pub static libgomp_ompt_layout: Layout = Layout {
    version: 1,
    task_body: offset_of!(Header, body) as u64,
    task_record: offset_of!(Header, task) as u64,
    task_data: offset_of!(Task, data) as u64,
    region_body: offset_of!(Region, body) as u64,
    region_data: offset_of!(Region, data) as u64,
};
