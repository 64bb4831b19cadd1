//! The numbers, a row for each thing and a column for each generation.

use super::Today::{self, Folded, Gone, Number, OneOf};
use super::{Enumeration, EventToday};

/// In a column of what the generation's document has no number for. It is no number of OMPT.
pub const NONE: u64 = u64::MAX;
use NONE as O;

/// A thing that had numbers.
pub struct Row<T> {
    pub name: &'static str,
    pub today: T,
    /// By generation: TR2, version 2, draft of 5.0, draft of 2018, 5.0, 5.1 and 5.2, 6.0.
    pub numbers: [u64; 7],
}

const fn row<T: Copy>(name: &'static str, today: T, numbers: [u64; 7]) -> Row<T> {
    Row { name, today, numbers }
}

/// From this state on they are the runtime's own.
pub const OWN_STATES: [u64; 7] = [0x80, O, 0x200, 0x200, 0x200, 0x200, 0x200];

/// The table of an enumeration.
pub fn rows(what: Enumeration) -> &'static [Row<Today>] {
    match what {
        Enumeration::State => &STATES,
        Enumeration::SetResult => &SET_RESULTS,
        Enumeration::Thread => &THREADS,
        Enumeration::Endpoint => &ENDPOINTS,
        Enumeration::SyncRegion => &SYNC_REGIONS,
        Enumeration::Work => &WORK,
        Enumeration::Mutex => &MUTEXES,
        Enumeration::Dependence => &DEPENDENCES,
        Enumeration::TaskStatus => &TASK_STATUSES,
        Enumeration::TaskFlag => &TASK_FLAGS,
        Enumeration::ParallelFlag => &PARALLEL_FLAGS,
        Enumeration::CancelFlag => &CANCEL_FLAGS,
        Enumeration::Target => &TARGETS,
        Enumeration::TargetDataOp => &TARGET_DATA_OPS,
        Enumeration::TargetMapFlag => &TARGET_MAP_FLAGS,
        Enumeration::NativeFlag => &NATIVE_FLAGS,
        Enumeration::Record => &RECORDS,
        Enumeration::NativeRecord => &NATIVE_RECORDS,
    }
}

static STATES: [Row<Today>; 27] = [
    row("work_serial", Number(0x000), [0x00, O, 0x000, 0x000, 0x000, 0x000, 0x000]),
    row("work_parallel", Number(0x001), [0x01, O, 0x001, 0x001, 0x001, 0x001, 0x001]),
    row("work_reduction", Number(0x002), [0x02, O, 0x002, 0x002, 0x002, 0x002, 0x002]),
    row("work_free_agent", Number(0x003), [O, O, O, O, O, O, 0x003]),
    row("work_induction", Number(0x004), [O, O, O, O, O, O, 0x004]),
    // Those for all barriers and all implicit ones are only in the header since 6.0, as obsolete.
    row("wait_barrier", Number(0x010), [0x40, O, 0x010, 0x010, 0x010, 0x010, 0x010]),
    row("wait_barrier_implicit_parallel", Number(0x011), [O, O, 0x011, 0x011, 0x011, 0x011, 0x011]),
    row("wait_barrier_implicit_workshare", Number(0x012), [O, O, 0x012, 0x012, 0x012, 0x012, 0x012]),
    row("wait_barrier_implicit", Number(0x013), [0x41, O, 0x013, 0x013, 0x013, 0x013, 0x013]),
    row("wait_barrier_explicit", Number(0x014), [0x42, O, 0x014, 0x014, 0x014, 0x014, 0x014]),
    row("wait_barrier_implementation", Number(0x015), [O, O, O, O, O, 0x015, 0x015]),
    row("wait_barrier_teams", Number(0x016), [O, O, O, O, O, 0x016, 0x016]),
    row("wait_taskwait", Number(0x020), [0x50, O, 0x020, 0x020, 0x020, 0x020, 0x020]),
    row("wait_taskgroup", Number(0x021), [0x51, O, 0x021, 0x021, 0x021, 0x021, 0x021]),
    row("wait_mutex", Number(0x040), [O, O, 0x040, 0x040, 0x040, 0x040, 0x040]),
    row("wait_lock", Number(0x041), [0x60, O, 0x041, 0x041, 0x041, 0x041, 0x041]),
    row("wait_nest_lock", Folded(0x041), [0x61, O, O, O, O, O, O]),
    row("wait_critical", Number(0x042), [0x62, O, 0x042, 0x042, 0x042, 0x042, 0x042]),
    row("wait_atomic", Number(0x043), [0x63, O, 0x043, 0x043, 0x043, 0x043, 0x043]),
    row("wait_ordered", Number(0x044), [0x64, O, 0x044, 0x044, 0x044, 0x044, 0x044]),
    row("wait_target", Number(0x080), [O, O, 0x080, 0x080, 0x080, 0x080, 0x080]),
    row("wait_target_map", Number(0x081), [O, O, 0x081, 0x081, 0x081, 0x081, 0x081]),
    row("wait_target_update", Number(0x082), [O, O, 0x082, 0x082, 0x082, 0x082, 0x082]),
    row("idle", Number(0x100), [0x10, O, 0x100, 0x100, 0x100, 0x100, 0x100]),
    row("overhead", Number(0x101), [0x20, O, 0x101, 0x101, 0x101, 0x101, 0x101]),
    row("undefined", Number(0x102), [0x70, O, 0x102, 0x102, 0x102, 0x102, 0x102]),
    // Where an enumeration of states begins; no thread is ever in it.
    row("first", Gone, [0x71, O, O, O, O, O, O]),
];

// In versions 1 and 2 the numbers had no names: these are short for the sentences that explain them. Today's "never" is for both
// what does not happen and what is not told.
static SET_RESULTS: [Row<Today>; 9] = [
    row("error", Number(0), [0, 0, O, 0, 0, 0, 0]),
    row("no callback is possible", Folded(1), [1, 1, O, O, O, O, O]),
    row("never occurs", Folded(1), [2, 2, O, O, O, O, O]),
    row("when convenient", Number(3), [3, 3, O, O, O, O, O]),
    row("never", Number(1), [O, O, O, 1, 1, 1, 1]),
    row("impossible", Number(2), [O, O, O, O, 2, 2, 2]),
    row("sometimes", Number(3), [O, O, O, 2, 3, 3, 3]),
    row("sometimes_paired", Number(4), [O, O, O, 3, 4, 4, 4]),
    row("always", Number(5), [4, 4, O, 4, 5, 5, 5]),
];

// TR2 has no number for the third: C's rule gives it the next one.
static THREADS: [Row<Today>; 4] = [
    row("initial", Number(1), [1, O, 1, 1, 1, 1, 1]),
    row("worker", Number(2), [2, O, 2, 2, 2, 2, 2]),
    row("other", Number(3), [3, O, 3, 3, 3, 3, 3]),
    row("unknown", Number(4), [O, O, 4, 4, 4, 4, 4]),
];

static ENDPOINTS: [Row<Today>; 3] = [
    row("begin", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("end", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("beginend", Number(3), [O, O, O, O, O, 3, 3]),
];

static SYNC_REGIONS: [Row<Today>; 10] = [
    row("barrier", Number(1), [O, O, 1, 1, 1, 1, O]),
    row("barrier_implicit", Number(2), [O, O, O, O, 2, 2, O]),
    row("barrier_explicit", Number(3), [O, O, O, O, 3, 3, 3]),
    row("barrier_implementation", Number(4), [O, O, O, O, 4, 4, 4]),
    row("taskwait", Number(5), [O, O, 2, 2, 5, 5, 5]),
    row("taskgroup", Number(6), [O, O, 3, 3, 6, 6, 6]),
    row("reduction", Number(7), [O, O, O, O, 7, 7, 7]),
    row("barrier_implicit_workshare", Number(8), [O, O, O, O, O, 8, 8]),
    row("barrier_implicit_parallel", Number(9), [O, O, O, O, O, 9, 9]),
    row("barrier_teams", Number(10), [O, O, O, O, O, 10, 10]),
];

static WORK: [Row<Today>; 13] = [
    row("loop", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("sections", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("single_executor", Number(3), [O, O, 3, 3, 3, 3, 3]),
    row("single_other", Number(4), [O, O, 4, 4, 4, 4, 4]),
    row("workshare", Number(5), [O, O, 5, 5, 5, 5, 5]),
    row("distribute", Number(6), [O, O, 6, 6, 6, 6, 6]),
    row("taskloop", Number(7), [O, O, 7, 7, 7, 7, 7]),
    row("scope", Number(8), [O, O, O, O, O, 8, 8]),
    row("workdistribute", Number(9), [O, O, O, O, O, O, 9]),
    row("loop_static", Number(10), [O, O, O, O, O, 10, 10]),
    row("loop_dynamic", Number(11), [O, O, O, O, O, 11, 11]),
    row("loop_guided", Number(12), [O, O, O, O, O, 12, 12]),
    row("loop_other", Number(13), [O, O, O, O, O, 13, 13]),
];

// The draft did not tell a lock that is tested from one that is set, and does not say of which its kinds are.
static MUTEXES: [Row<Today>; 10] = [
    row("mutex", OneOf(&[1, 2, 3, 4, 5, 6, 7]), [O, O, 0x10, 0x10, O, O, O]),
    row("lock", OneOf(&[1, 2]), [O, O, 0x11, 0x11, O, O, O]),
    row("nest_lock", OneOf(&[3, 4]), [O, O, 0x12, 0x12, O, O, O]),
    row("lock", Number(1), [O, O, O, O, 1, 1, 1]),
    row("test_lock", Number(2), [O, O, O, O, 2, 2, 2]),
    row("nest_lock", Number(3), [O, O, O, O, 3, 3, 3]),
    row("test_nest_lock", Number(4), [O, O, O, O, 4, 4, 4]),
    row("critical", Number(5), [O, O, 0x13, 0x13, 5, 5, 5]),
    row("atomic", Number(6), [O, O, 0x14, 0x14, 6, 6, 6]),
    row("ordered", Number(7), [O, O, 0x20, 0x20, 7, 7, 7]),
];

static DEPENDENCES: [Row<Today>; 9] = [
    row("in", Number(1), [O, O, 2, 2, 1, 1, 1]),
    row("out", Number(2), [O, O, 1, 1, 2, 2, 2]),
    row("inout", Number(3), [O, O, 3, 3, 3, 3, 3]),
    row("mutexinoutset", Number(4), [O, O, O, O, 4, 4, 4]),
    row("source", Number(5), [O, O, O, O, 5, 5, 5]),
    row("sink", Number(6), [O, O, O, O, 6, 6, 6]),
    row("inoutset", Number(7), [O, O, O, O, O, 7, 7]),
    row("out_all_memory", Number(34), [O, O, O, O, O, O, 34]),
    row("inout_all_memory", Number(35), [O, O, O, O, O, O, 35]),
];

// The draft's "others" were all remaining cases. There were no detached tasks then, and the end of a taskwait was not reported.
// What remained is a task that was put aside for another one.
static TASK_STATUSES: [Row<Today>; 9] = [
    row("complete", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("yield", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("cancel", Number(3), [O, O, 3, 3, 3, 3, 3]),
    row("others", Number(7), [O, O, 4, 4, O, O, O]),
    row("detach", Number(4), [O, O, O, O, 4, 4, 4]),
    row("early_fulfill", Number(5), [O, O, O, O, 5, 5, 5]),
    row("late_fulfill", Number(6), [O, O, O, O, 6, 6, 6]),
    row("switch", Number(7), [O, O, O, O, 7, 7, 7]),
    row("taskwait_complete", Number(8), [O, O, O, O, O, 8, 8]),
];

static TASK_FLAGS: [Row<Today>; 12] = [
    row("initial", Number(0x1), [O, O, 0x1, 0x1, 0x1, 0x1, 0x1]),
    row("implicit", Number(0x2), [O, O, 0x2, 0x2, 0x2, 0x2, 0x2]),
    row("explicit", Number(0x4), [O, O, 0x4, 0x4, 0x4, 0x4, 0x4]),
    row("target", Number(0x8), [O, O, 0x8, 0x8, 0x8, 0x8, 0x8]),
    row("taskwait", Number(0x10), [O, O, O, O, O, 0x10, 0x10]),
    row("importing", Number(0x0200_0000), [O, O, O, O, O, O, 0x0200_0000]),
    row("exporting", Number(0x0400_0000), [O, O, O, O, O, O, 0x0400_0000]),
    row("undeferred", Number(0x0800_0000), [O, O, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000]),
    row("untied", Number(0x1000_0000), [O, O, 0x1000_0000, 0x1000_0000, 0x1000_0000, 0x1000_0000, 0x1000_0000]),
    row("final", Number(0x2000_0000), [O, O, 0x2000_0000, 0x2000_0000, 0x2000_0000, 0x2000_0000, 0x2000_0000]),
    row("mergeable", Number(0x4000_0000), [O, O, 0x4000_0000, 0x4000_0000, 0x4000_0000, 0x4000_0000, 0x4000_0000]),
    row("merged", Number(0x8000_0000), [O, O, 0x8000_0000, 0x8000_0000, 0x8000_0000, 0x8000_0000, 0x8000_0000]),
];

static PARALLEL_FLAGS: [Row<Today>; 4] = [
    row("invoker_program", Number(0x1), [O, O, 0x1, 0x1, 0x1, 0x1, 0x1]),
    row("invoker_runtime", Number(0x2), [O, O, 0x2, 0x2, 0x2, 0x2, 0x2]),
    row("league", Number(0x4000_0000), [O, O, O, O, 0x4000_0000, 0x4000_0000, 0x4000_0000]),
    row("team", Number(0x8000_0000), [O, O, O, O, 0x8000_0000, 0x8000_0000, 0x8000_0000]),
];

static CANCEL_FLAGS: [Row<Today>; 8] = [
    row("parallel", Number(0x1), [O, O, 0x1, 0x1, 0x1, 0x1, 0x1]),
    row("sections", Number(0x2), [O, O, 0x2, 0x2, 0x2, 0x2, 0x2]),
    row("do", Number(0x4), [O, O, 0x4, 0x4, O, O, O]),
    row("loop", Number(0x4), [O, O, O, O, 0x4, 0x4, 0x4]),
    row("taskgroup", Number(0x8), [O, O, 0x8, 0x8, 0x8, 0x8, 0x8]),
    row("activated", Number(0x10), [O, O, 0x10, 0x10, 0x10, 0x10, 0x10]),
    row("detected", Number(0x20), [O, O, 0x20, 0x20, 0x20, 0x20, 0x20]),
    row("discarded_task", Number(0x40), [O, O, 0x40, 0x40, 0x40, 0x40, 0x40]),
];

static TARGETS: [Row<Today>; 8] = [
    row("target", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("enter_data", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("exit_data", Number(3), [O, O, 3, 3, 3, 3, 3]),
    row("update", Number(4), [O, O, 4, 4, 4, 4, 4]),
    row("nowait", Number(9), [O, O, O, O, O, 9, 9]),
    row("enter_data_nowait", Number(10), [O, O, O, O, O, 10, 10]),
    row("exit_data_nowait", Number(11), [O, O, O, O, O, 11, 11]),
    row("update_nowait", Number(12), [O, O, O, O, O, 12, 12]),
];

static TARGET_DATA_OPS: [Row<Today>; 16] = [
    row("alloc", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("transfer_to_device", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("transfer_from_device", Number(3), [O, O, 3, 3, 3, 3, 3]),
    row("delete", Number(4), [O, O, 4, 4, 4, 4, 4]),
    row("associate", Number(5), [O, O, O, O, 5, 5, 5]),
    row("disassociate", Number(6), [O, O, O, O, 6, 6, 6]),
    row("transfer", Number(7), [O, O, O, O, O, O, 7]),
    row("memset", Number(8), [O, O, O, O, O, O, 8]),
    row("transfer_rect", Number(9), [O, O, O, O, O, O, 9]),
    row("alloc_async", Number(17), [O, O, O, O, O, 17, 17]),
    row("transfer_to_device_async", Number(18), [O, O, O, O, O, 18, 18]),
    row("transfer_from_device_async", Number(19), [O, O, O, O, O, 19, 19]),
    row("delete_async", Number(20), [O, O, O, O, O, 20, 20]),
    row("transfer_async", Number(23), [O, O, O, O, O, O, 23]),
    row("memset_async", Number(24), [O, O, O, O, O, O, 24]),
    row("transfer_rect_async", Number(25), [O, O, O, O, O, O, 25]),
];

// Those that came later are of one release or another: the columns have what was in all of 5.1 and 5.2.
static TARGET_MAP_FLAGS: [Row<Today>; 6] = [
    row("to", Number(0x1), [O, O, 0x1, 0x1, 0x1, 0x1, 0x1]),
    row("from", Number(0x2), [O, O, 0x2, 0x2, 0x2, 0x2, 0x2]),
    row("alloc", Number(0x4), [O, O, 0x4, 0x4, 0x4, 0x4, 0x4]),
    row("release", Number(0x8), [O, O, 0x8, 0x8, 0x8, 0x8, 0x8]),
    row("delete", Number(0x10), [O, O, 0x10, 0x10, 0x10, 0x10, 0x10]),
    row("implicit", Number(0x20), [O, O, 0x20, 0x20, 0x20, 0x20, 0x20]),
];

static NATIVE_FLAGS: [Row<Today>; 8] = [
    row("data_motion_explicit", Number(0x01), [O, O, 0x01, 0x01, 0x01, 0x01, 0x01]),
    row("data_motion_implicit", Number(0x02), [O, O, 0x02, 0x02, 0x02, 0x02, 0x02]),
    row("kernel_invocation", Number(0x04), [O, O, 0x04, 0x04, 0x04, 0x04, 0x04]),
    row("kernel_execution", Number(0x08), [O, O, 0x08, 0x08, 0x08, 0x08, 0x08]),
    row("driver", Number(0x10), [O, O, 0x10, 0x10, 0x10, 0x10, 0x10]),
    row("runtime", Number(0x20), [O, O, 0x20, 0x20, 0x20, 0x20, 0x20]),
    row("overhead", Number(0x40), [O, O, 0x40, 0x40, 0x40, 0x40, 0x40]),
    row("idleness", Number(0x80), [O, O, 0x80, 0x80, 0x80, 0x80, 0x80]),
];

static RECORDS: [Row<Today>; 3] = [
    row("ompt", Number(1), [O, O, 1, 1, 1, 1, 1]),
    row("native", Number(2), [O, O, 2, 2, 2, 2, 2]),
    row("invalid", Number(3), [O, O, 3, 3, 3, 3, 3]),
];

static NATIVE_RECORDS: [Row<Today>; 2] =
    [row("info", Number(1), [O, O, 1, 1, 1, 1, 1]), row("event", Number(2), [O, O, 2, 2, 2, 2, 2])];

const BEGIN: u8 = 1;
const END: u8 = 2;

const fn tells(number: u8, endpoint: u8, sub: u16) -> EventToday {
    EventToday::Callback { number, endpoint, sub: Some(sub) }
}

/// It has nothing that could be its kind, or says it itself.
const fn is(number: u8) -> EventToday {
    EventToday::Callback { number, endpoint: 0, sub: None }
}

const fn scope(number: u8, endpoint: u8) -> EventToday {
    EventToday::Callback { number, endpoint, sub: None }
}

/// An event that only TR2 has.
const fn tr2(name: &'static str, today: EventToday, number: u64) -> Row<EventToday> {
    row(name, today, [number, O, O, O, O, O, O])
}

/// A callback that has had one number since the draft of 2018.
const fn callback(number: u8, name: &'static str, draft: u64) -> Row<EventToday> {
    let now = number as u64;
    row(name, is(number), [O, O, draft, now, now, now, now])
}

/// A callback that came, or got its name, with 5.0.
const fn of_5_0(number: u8, name: &'static str) -> Row<EventToday> {
    let now = number as u64;
    row(name, is(number), [O, O, O, O, now, now, now])
}

/// Events, and callbacks since there are such.
pub static EVENTS: [Row<EventToday>; 96] = [
    row("parallel_begin", is(3), [1, O, 3, 3, 3, 3, 3]),
    row("parallel_end", is(4), [2, O, 4, 4, 4, 4, 4]),
    row("thread_begin", is(1), [5, O, 1, 1, 1, 1, 1]),
    row("thread_end", is(2), [6, O, 2, 2, 2, 2, 2]),
    tr2("task_begin", is(5), 3),
    tr2("task_end", tells(6, 0, 1), 4),
    tr2("control", is(11), 7),
    // The finaliser.
    tr2("runtime_shutdown", EventToday::Gone, 8),
    // A state.
    tr2("idle_begin", EventToday::Gone, 9),
    tr2("idle_end", EventToday::Gone, 10),
    tr2("wait_barrier_begin", tells(16, BEGIN, 1), 11),
    tr2("wait_barrier_end", tells(16, END, 1), 12),
    tr2("wait_taskwait_begin", tells(16, BEGIN, 5), 13),
    tr2("wait_taskwait_end", tells(16, END, 5), 14),
    tr2("wait_taskgroup_begin", tells(16, BEGIN, 6), 15),
    tr2("wait_taskgroup_end", tells(16, END, 6), 16),
    tr2("release_lock", tells(17, 0, 1), 17),
    tr2("release_nest_lock_last", tells(17, 0, 3), 18),
    tr2("release_critical", tells(17, 0, 5), 19),
    tr2("release_atomic", tells(17, 0, 6), 20),
    tr2("release_ordered", tells(17, 0, 7), 21),
    tr2("implicit_task_begin", tells(7, BEGIN, 2), 22),
    tr2("implicit_task_end", tells(7, END, 2), 23),
    tr2("initial_task_begin", tells(7, BEGIN, 1), 24),
    tr2("initial_task_end", tells(7, END, 1), 25),
    // Whether the task yielded it does not tell.
    tr2("task_switch", is(6), 26),
    tr2("loop_begin", tells(20, BEGIN, 1), 27),
    tr2("loop_end", tells(20, END, 1), 28),
    tr2("sections_begin", tells(20, BEGIN, 2), 29),
    tr2("sections_end", tells(20, END, 2), 30),
    tr2("single_in_block_begin", tells(20, BEGIN, 3), 31),
    tr2("single_in_block_end", tells(20, END, 3), 32),
    tr2("single_others_begin", tells(20, BEGIN, 4), 33),
    tr2("single_others_end", tells(20, END, 4), 34),
    tr2("workshare_begin", tells(20, BEGIN, 5), 35),
    tr2("workshare_end", tells(20, END, 5), 36),
    tr2("master_begin", scope(21, BEGIN), 37),
    tr2("master_end", scope(21, END), 38),
    tr2("barrier_begin", tells(23, BEGIN, 1), 39),
    tr2("barrier_end", tells(23, END, 1), 40),
    tr2("taskwait_begin", tells(23, BEGIN, 5), 41),
    tr2("taskwait_end", tells(23, END, 5), 42),
    tr2("taskgroup_begin", tells(23, BEGIN, 6), 43),
    tr2("taskgroup_end", tells(23, END, 6), 44),
    tr2("release_nest_lock_prev", scope(28, END), 45),
    tr2("wait_lock", tells(26, 0, 1), 46),
    tr2("wait_nest_lock", tells(26, 0, 3), 47),
    tr2("wait_critical", tells(26, 0, 5), 48),
    tr2("wait_atomic", tells(26, 0, 6), 49),
    tr2("wait_ordered", tells(26, 0, 7), 50),
    tr2("acquired_lock", tells(27, 0, 1), 51),
    tr2("acquired_nest_lock_first", tells(27, 0, 3), 52),
    tr2("acquired_nest_lock_next", scope(28, BEGIN), 53),
    tr2("acquired_critical", tells(27, 0, 5), 54),
    tr2("acquired_atomic", tells(27, 0, 6), 55),
    tr2("acquired_ordered", tells(27, 0, 7), 56),
    tr2("init_lock", tells(24, 0, 1), 57),
    tr2("init_nest_lock", tells(24, 0, 3), 58),
    tr2("destroy_lock", tells(25, 0, 1), 59),
    tr2("destroy_nest_lock", tells(25, 0, 3), 60),
    row("flush", is(29), [61, O, 27, 29, 29, 29, 29]),
    callback(5, "task_create", 5),
    callback(6, "task_schedule", 6),
    callback(7, "implicit_task", 7),
    callback(8, "target", 8),
    callback(9, "target_data_op", 9),
    callback(10, "target_submit", 10),
    callback(11, "control_tool", 11),
    callback(12, "device_initialize", 12),
    callback(13, "device_finalize", 13),
    callback(14, "device_load", O),
    callback(15, "device_unload", O),
    callback(16, "sync_region_wait", 14),
    callback(17, "mutex_released", 15),
    row("task_dependences", is(18), [O, O, 16, 18, O, O, O]),
    of_5_0(18, "dependences"),
    callback(19, "task_dependence", 17),
    callback(20, "work", 18),
    row("master", is(21), [O, O, 19, 21, 21, O, O]),
    row("masked", is(21), [O, O, O, O, O, 21, 21]),
    callback(22, "target_map", 20),
    callback(23, "sync_region", 21),
    callback(24, "lock_init", 22),
    callback(25, "lock_destroy", 23),
    callback(26, "mutex_acquire", 24),
    callback(27, "mutex_acquired", 25),
    callback(28, "nest_lock", 26),
    callback(30, "cancel", 28),
    row("idle", EventToday::Gone, [O, O, 29, 31, O, O, O]),
    of_5_0(31, "reduction"),
    of_5_0(32, "dispatch"),
    row("target_emi", is(33), [O, O, O, O, O, 33, 33]),
    row("target_data_op_emi", is(34), [O, O, O, O, O, 34, 34]),
    row("target_submit_emi", is(35), [O, O, O, O, O, 35, 35]),
    row("target_map_emi", is(36), [O, O, O, O, O, 36, 36]),
    row("error", is(37), [O, O, O, O, O, 37, 37]),
];
