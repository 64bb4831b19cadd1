//! The numbers of OMPT 5.x and 6.0, and what they are called (OpenMP 5.2, section 19.4.4; 6.0, section 33). Names are without the
//! prefix that all of a kind share.

/// A callback that a tool can register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback {
    /// Its number (`ompt_callbacks_t`).
    pub number: u8,
    /// Its name, without `ompt_callback_`.
    pub name: &'static str,
    /// Whether a runtime has to make it whenever the event happens (OpenMP 5.2, table 19.3).
    pub must_be_always: bool,
}

/// The highest number of a callback.
pub const LAST_CALLBACK: u8 = 37;

/// All callbacks, in the order of their numbers, which begin at 1.
pub const CALLBACKS: [Callback; LAST_CALLBACK as usize] = {
    const fn always(number: u8, name: &'static str) -> Callback {
        Callback { number, name, must_be_always: true }
    }
    const fn optional(number: u8, name: &'static str) -> Callback {
        Callback { number, name, must_be_always: false }
    }
    [
        always(1, "thread_begin"),
        always(2, "thread_end"),
        always(3, "parallel_begin"),
        always(4, "parallel_end"),
        always(5, "task_create"),
        always(6, "task_schedule"),
        always(7, "implicit_task"),
        always(8, "target"),
        always(9, "target_data_op"),
        always(10, "target_submit"),
        always(11, "control_tool"),
        always(12, "device_initialize"),
        always(13, "device_finalize"),
        always(14, "device_load"),
        always(15, "device_unload"),
        optional(16, "sync_region_wait"),
        optional(17, "mutex_released"),
        optional(18, "dependences"),
        optional(19, "task_dependence"),
        optional(20, "work"),
        optional(21, "masked"),
        optional(22, "target_map"),
        optional(23, "sync_region"),
        optional(24, "lock_init"),
        optional(25, "lock_destroy"),
        optional(26, "mutex_acquire"),
        optional(27, "mutex_acquired"),
        optional(28, "nest_lock"),
        optional(29, "flush"),
        optional(30, "cancel"),
        optional(31, "reduction"),
        optional(32, "dispatch"),
        always(33, "target_emi"),
        always(34, "target_data_op_emi"),
        always(35, "target_submit_emi"),
        optional(36, "target_map_emi"),
        optional(37, "error"),
    ]
};

/// The callback with this number.
pub fn callback(number: u8) -> Option<Callback> {
    CALLBACKS.get(usize::from(number).checked_sub(1)?).copied()
}

/// The entry points that a runtime's look-up function knows (OpenMP 5.2, table 19.1, and what older versions had).
pub const ENTRY_POINTS: [&str; 19] = [
    "ompt_enumerate_states",
    "ompt_enumerate_mutex_impls",
    "ompt_set_callback",
    "ompt_get_callback",
    "ompt_get_thread_data",
    "ompt_get_num_procs",
    "ompt_get_num_places",
    "ompt_get_place_proc_ids",
    "ompt_get_place_num",
    "ompt_get_partition_place_nums",
    "ompt_get_proc_id",
    "ompt_get_state",
    "ompt_get_parallel_info",
    "ompt_get_task_info",
    "ompt_get_task_memory",
    "ompt_get_target_info",
    "ompt_get_num_devices",
    "ompt_get_unique_id",
    "ompt_finalize_tool",
];

/// What `ompt_set_callback` answers (`ompt_set_result_t`).
pub fn set_result(number: u8) -> Option<&'static str> {
    named(
        &[(0, "error"), (1, "never"), (2, "impossible"), (3, "sometimes"), (4, "sometimes_paired"), (5, "always")],
        number,
    )
}

/// `ompt_scope_endpoint_t`.
pub fn endpoint(number: u8) -> Option<&'static str> {
    named(&[(1, "begin"), (2, "end"), (3, "beginend")], number)
}

/// `ompt_thread_t`.
pub fn thread(number: u16) -> Option<&'static str> {
    named(&[(1, "initial"), (2, "worker"), (3, "other"), (4, "unknown")], number)
}

/// `ompt_sync_region_t`.
pub fn sync_region(number: u16) -> Option<&'static str> {
    let names = [
        (1, "barrier"),
        (2, "barrier_implicit"),
        (3, "barrier_explicit"),
        (4, "barrier_implementation"),
        (5, "taskwait"),
        (6, "taskgroup"),
        (7, "reduction"),
        (8, "barrier_implicit_workshare"),
        (9, "barrier_implicit_parallel"),
        (10, "barrier_teams"),
    ];
    named(&names, number)
}

/// `ompt_mutex_t`.
pub fn mutex(number: u16) -> Option<&'static str> {
    let names = [
        (1, "lock"),
        (2, "test_lock"),
        (3, "nest_lock"),
        (4, "test_nest_lock"),
        (5, "critical"),
        (6, "atomic"),
        (7, "ordered"),
    ];
    named(&names, number)
}

/// `ompt_task_status_t`.
pub fn task_status(number: u16) -> Option<&'static str> {
    let names = [
        (1, "complete"),
        (2, "yield"),
        (3, "cancel"),
        (4, "detach"),
        (5, "early_fulfill"),
        (6, "late_fulfill"),
        (7, "switch"),
        (8, "taskwait_complete"),
    ];
    named(&names, number)
}

/// Whether a task with this status, as the prior one of `task_schedule`, is over.
pub fn is_over(task_status: u16) -> bool {
    // A detached task is over when its event is fulfilled, be that before it ends or after (OpenMP 5.2, 19.5.2.10).
    matches!(task_status, 1 | 3 | 6 | 8)
}

/// `ompt_work_t`.
pub fn work(number: u16) -> Option<&'static str> {
    let names = [
        (1, "loop"),
        (2, "sections"),
        (3, "single_executor"),
        (4, "single_other"),
        (5, "workshare"),
        (6, "distribute"),
        (7, "taskloop"),
        (8, "scope"),
        (9, "workdistribute"),
        (10, "loop_static"),
        (11, "loop_dynamic"),
        (12, "loop_guided"),
        (13, "loop_other"),
    ];
    named(&names, number)
}

/// `ompt_dispatch_t`.
pub fn dispatch(number: u16) -> Option<&'static str> {
    let names =
        [(1, "iteration"), (2, "section"), (3, "ws_loop_chunk"), (4, "taskloop_chunk"), (5, "distribute_chunk")];
    named(&names, number)
}

/// `ompt_dependence_type_t`.
pub fn dependence(number: u16) -> Option<&'static str> {
    let names = [
        (1, "in"),
        (2, "out"),
        (3, "inout"),
        (4, "mutexinoutset"),
        (5, "source"),
        (6, "sink"),
        (7, "inoutset"),
        (34, "out_all_memory"),
        (35, "inout_all_memory"),
    ];
    named(&names, number)
}

/// `ompt_target_t`.
pub fn target(number: u16) -> Option<&'static str> {
    let names = [
        (1, "target"),
        (2, "enter_data"),
        (3, "exit_data"),
        (4, "update"),
        (9, "nowait"),
        (10, "enter_data_nowait"),
        (11, "exit_data_nowait"),
        (12, "update_nowait"),
    ];
    named(&names, number)
}

/// `ompt_target_data_op_t`.
pub fn target_data_op(number: u16) -> Option<&'static str> {
    let names = [
        (1, "alloc"),
        (2, "transfer_to_device"),
        (3, "transfer_from_device"),
        (4, "delete"),
        (5, "associate"),
        (6, "disassociate"),
        (7, "transfer"),
        (8, "memset"),
        (9, "transfer_rect"),
        (17, "alloc_async"),
        (18, "transfer_to_device_async"),
        (19, "transfer_from_device_async"),
        (20, "delete_async"),
        (23, "transfer_async"),
        (24, "memset_async"),
        (25, "transfer_rect_async"),
    ];
    named(&names, number)
}

/// `ompt_severity_t`.
pub fn severity(number: u16) -> Option<&'static str> {
    named(&[(1, "warning"), (2, "fatal")], number)
}

/// `ompt_state_t`.
pub fn state(number: u64) -> Option<&'static str> {
    let names = [
        (0x000, "work_serial"),
        (0x001, "work_parallel"),
        (0x002, "work_reduction"),
        (0x003, "work_free_agent"),
        (0x004, "work_induction"),
        (0x010, "wait_barrier"),
        (0x011, "wait_barrier_implicit_parallel"),
        (0x012, "wait_barrier_implicit_workshare"),
        (0x013, "wait_barrier_implicit"),
        (0x014, "wait_barrier_explicit"),
        (0x015, "wait_barrier_implementation"),
        (0x016, "wait_barrier_teams"),
        (0x020, "wait_taskwait"),
        (0x021, "wait_taskgroup"),
        (0x040, "wait_mutex"),
        (0x041, "wait_lock"),
        (0x042, "wait_critical"),
        (0x043, "wait_atomic"),
        (0x044, "wait_ordered"),
        (0x080, "wait_target"),
        (0x081, "wait_target_map"),
        (0x082, "wait_target_update"),
        (0x100, "idle"),
        (0x101, "overhead"),
        (0x102, "undefined"),
    ];
    named(&names, number)
}

/// Flags of tasks (`ompt_task_flag_t`), those that are set in words.
pub fn task_flags(flags: u32) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 12] = [
        (0x1, "initial"),
        (0x2, "implicit"),
        (0x4, "explicit"),
        (0x8, "target"),
        (0x10, "taskwait"),
        (0x0200_0000, "importing"),
        (0x0400_0000, "exporting"),
        (0x0800_0000, "undeferred"),
        (0x1000_0000, "untied"),
        (0x2000_0000, "final"),
        (0x4000_0000, "mergeable"),
        (0x8000_0000, "merged"),
    ];
    NAMES.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}

/// Flags of regions (`ompt_parallel_flag_t`), those that are set in words.
pub fn parallel_flags(flags: u32) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 4] =
        [(0x1, "invoker_program"), (0x2, "invoker_runtime"), (0x4000_0000, "league"), (0x8000_0000, "team")];
    NAMES.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}

/// Flags of cancellation (`ompt_cancel_flag_t`), those that are set in words.
pub fn cancel_flags(flags: u32) -> Vec<&'static str> {
    const NAMES: [(u32, &str); 7] = [
        (0x1, "parallel"),
        (0x2, "sections"),
        (0x4, "loop"),
        (0x8, "taskgroup"),
        (0x10, "activated"),
        (0x20, "detected"),
        (0x40, "discarded_task"),
    ];
    NAMES.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| name).collect()
}

/// Commands of `omp_control_tool` (`omp_control_tool_t`); those from 64 on are the tool's own.
pub fn command(number: u64) -> Option<&'static str> {
    named(&[(1, "start"), (2, "pause"), (3, "flush"), (4, "end")], number)
}

fn named<N: Copy + PartialEq>(names: &[(N, &'static str)], number: N) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_lie_at_their_numbers() {
        for (n, known) in CALLBACKS.iter().enumerate() {
            assert_eq!(usize::from(known.number), n + 1, "{}", known.name);
        }
        assert_eq!(callback(7).map(|callback| callback.name), Some("implicit_task"));
        assert_eq!((callback(0), callback(38)), (None, None));
    }
}
