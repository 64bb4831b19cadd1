//! What is read of libomp and libiomp5, under the names of their `kmp.h`, `kmp_lock.h` and `kmp_wait_release.h`.

use ompd_layout::{GlobalSchema, Schema};

use crate::bind::structs;
use crate::instance::Cost;
use crate::owner::OwnNames;

structs! {
    KmpInfo = "kmp_base_info" as ["kmp_base_info", "kmp_base_info_t"], "One thread known to the runtime" {
        ds_thread: "th_info.ds.ds_thread", "pthread_t of the thread";
        ds_tid: "th_info.ds.ds_tid", "thread number in its team";
        ds_gtid: "th_info.ds.ds_gtid", "global thread number, the index in __kmp_threads";
        team: "th_team", "innermost team; stale in idle workers of a hot team";
        root: "th_root", "root (contention group) it serves";
        current_task: "th_current_task", "taskdata being executed";
        task_team: "th_task_team", "task queues in use";
        in_pool: "th_in_pool", "nonzero: in the pool of unused threads";
        ident: "th_ident", "source position of the last barrier or dispatch";
        sleep_loc: "th_sleep_loc", "flag object the thread sleeps on; NULL while it spins or runs";
        sleep_loc_type: "th_sleep_loc_type", "flag_type of that object (LLVM 14 and later)";
        bar: "th_bar", "barrier state, one kmp_bstate for each kind of barrier";
        spin_here: "th_spin_here", "nonzero while queued for a queuing lock";
        next_waiting: "th_next_waiting", "gtid + 1 of the next waiter of the same lock";
        def_allocator: "th_def_allocator", "`def-allocator-var`";
        ompt_state: "ompt_thread_info.state", "what it does; means something only while an OMPT tool is active";
        ompt_wait_id: "ompt_thread_info.wait_id", "what it waits for, in states of waiting for a lock";
        thread_tool_data: "ompt_thread_info.thread_data.value", "what an OMPT tool has filed with the thread";
        teams_microtask: "th_teams_microtask", "microtask of the `teams` region it is in; NULL outside";
        teams_level: "th_teams_level", "nesting level that `teams` region was met at";
        nteams: "th_teams_size.nteams", "teams of its league";
        place: "th_current_place", "place it is bound to; negative: to none, or to all";
        first_place: "th_first_place", "first place of its partition";
        last_place: "th_last_place", "last place of its partition; may come before the first, past the end of all places";
    }
    KmpTeam = "kmp_base_team" as ["kmp_base_team", "kmp_base_team_t"], "One team" {
        parent: "t_parent", "enclosing team";
        threads: "t_threads", "array of pointers to the members";
        nproc: "t_nproc", "members";
        level: "t_level", "nesting level";
        active_level: "t_active_level", "nesting level counting only regions of more than one thread";
        serialized: "t_serialized", "number of nested serialized regions this team stands for";
        master_tid: "t_master_tid", "thread number of the encountering thread in the enclosing team";
        pkfn: "t_pkfn", "microtask of the region; not maintained for serialized regions";
        argc: "t_argc", "arguments of the microtask";
        argv: "t_argv", "array of those arguments";
        ident: "t_ident", "source position of the construct";
        bar: "t_bar", "barrier state, one kmp_balign_team for each kind of barrier";
        task_team: "t_task_team", "two sets of task queues, used in turn";
        parallel_tool_data: "ompt_team_info.parallel_data.value", "what an OMPT tool has filed with the region";
        dispatch: "t_dispatch", "array of kmp_disp, one for each member";
        implicit_tasks: "t_implicit_task_taskdata", "array of the taskdata of its implicit tasks, by number";
        nested_nth: "t_nested_nth", "its list of numbers of threads; NULL: that of the process (LLVM 19 and later)";
    }
    KmpRoot = "kmp_base_root" as ["kmp_base_root", "kmp_base_root_t"], "One contention group" {
        root_team: "r_root_team", "team of its initial thread outside all regions";
    }
    KmpTaskdata = "kmp_taskdata" as ["kmp_taskdata", "kmp_taskdata_t"], "One task; the kmp_task follows it in memory" {
        flags: "td_flags", "see kmp_tasking_flags";
        team: "td_team", "team it belongs to";
        parent: "td_parent", "generating task";
        ident: "td_ident", "source position of the construct";
        taskwait_thread: "td_taskwait_thread", "gtid + 1 while inside taskwait, else zero or negative";
        taskwait_ident: "td_taskwait_ident", "source position of that taskwait";
        icvs: "td_icvs", "internal control variables of the task";
        incomplete_children: "td_incomplete_child_tasks", "children not finished";
        taskgroup: "td_taskgroup", "innermost taskgroup";
        dephash: "td_dephash", "what its children depend on, by address";
        depnode: "td_depnode", "its place in the graph of dependences";
        task_tool_data: "ompt_task_info.task_data.value", "what an OMPT tool has filed with the task";
        exit_frame: "ompt_task_info.frame.exit_frame.ptr", "frame with which its code was entered; set for OMPT tools";
        exit_frame_flags: "ompt_task_info.frame.exit_frame_flags", "what kind of address that is";
        enter_frame: "ompt_task_info.frame.enter_frame.ptr", "frame with which it has last entered the runtime; set for OMPT tools";
        enter_frame_flags: "ompt_task_info.frame.enter_frame_flags", "what kind of address that is";
        event: "td_allow_completion_event", "event of a `detach` clause; its address is the handle";
        event_type: "td_allow_completion_event.type", "1 from the start of a task with `detach` until the event is fulfilled";
    }
    KmpTaskingFlags = "kmp_tasking_flags" as ["kmp_tasking_flags", "kmp_tasking_flags_t"], "Bits of td_flags" {
        tasktype: "tasktype", "1 explicit, 0 implicit";
        final_: "final", "a `final` clause is in force";
        task_serial: "task_serial", "executed at once by the thread that met it";
        started: "started", "its function has been called";
        tiedness: "tiedness", "1 tied, 0 untied";
        priority_specified: "priority_specified", "a `priority` clause was given";
        detachable: "detachable", "a `detach` clause was given";
        proxy: "proxy", "its body is over, or is not the runtime's to execute";
        complete: "complete", "it is over";
        tasking_ser: "tasking_ser", "KMP_TASKING=0: tasks are executed at once, and their parents do not count them";
        team_serial: "team_serial", "generated in a team of one thread: its parent does not count it";
    }
    KmpTask = "kmp_task" as ["kmp_task", "kmp_task_t"], "The compiler's view of a task" {
        routine: "routine", "function of the task";
        priority: "data2.priority", "value of the `priority` clause";
    }
    KmpInternalControl = "kmp_internal_control" as ["kmp_internal_control", "kmp_internal_control_t"], "Internal control variables" {
        nproc: "nproc", "`nthreads-var`";
        dynamic: "dynamic", "`dyn-var`";
        sched_kind: "sched.r_sched_type", "`run-sched-var`: the runtime's own schedule number and modifier bits";
        sched_chunk: "sched.chunk", "`run-sched-var`: chunk size";
        max_active_levels: "max_active_levels", "`max-active-levels-var`";
        thread_limit: "thread_limit", "`thread-limit-var`";
        proc_bind: "proc_bind", "`bind-var`";
        default_device: "default_device", "`default-device-var`";
    }
    KmpBstate = "kmp_bstate" as ["kmp_bstate", "kmp_bstate_t"], "A thread's state in one kind of barrier" {
        arrived: "b_arrived", "counts up by 4 with each arrival; bit 0: someone sleeps on it";
        go: "b_go", "set to release the thread; the low bits are flags";
        wait_flag: "wait_flag", "nonzero: the thread may be released by another's b_go (hierarchical barriers)";
    }
    KmpBalignTeam = "kmp_balign_team" as ["kmp_balign_team", "kmp_balign_team_t"], "A team's state in one kind of barrier" {
        arrived: "b_arrived", "value of the members' b_arrived once all have arrived";
    }
    KmpTaskgroup = "kmp_taskgroup" as ["kmp_taskgroup", "kmp_taskgroup_t"], "One taskgroup" {
        count: "count", "tasks of the group not finished; the word slept on at its end";
        parent: "parent", "enclosing taskgroup";
        cancel_request: "cancel_request", "nonzero: cancelled";
    }
    KmpTaskTeam = "kmp_base_task_team" as ["kmp_base_task_team", "kmp_base_task_team_t"], "Task queues of a team" {
        threads_data: "tt_threads_data", "array of kmp_thread_data, one for each member";
        nproc: "tt_nproc", "entries of that array in use";
        found_tasks: "tt_found_tasks", "nonzero once the team has a task; until then the array is as an earlier team left it";
        unfinished: "tt_unfinished_threads", "members that may still make tasks; the word slept on while tasks are left";
        pri_list: "tt_task_pri_list", "queues of tasks with a priority, highest first (LLVM 15 and later)";
        pri_begin: "tt_task_pri_list.begin", "the same in Intel's 2026.2";
    }
    KmpThreadData = "kmp_base_thread_data" as ["kmp_base_thread_data", "kmp_base_thread_data_t"], "Task queue of one thread" {
        deque: "td_deque", "ring of pointers to taskdata";
        deque_size: "td_deque_size", "slots of the ring";
        deque_head: "td_deque_head", "slot of the oldest task";
        deque_ntasks: "td_deque_ntasks", "tasks in the ring";
    }
    KmpThreadDataUnion = "kmp_thread_data" as ["kmp_thread_data", "kmp_thread_data_t"], "Padded kmp_base_thread_data" {
    }
    KmpTaskPri = "kmp_task_pri" as ["kmp_task_pri", "kmp_task_pri_t"], "Queue of the tasks of one priority" {
        td: "td", "the queue";
        next: "next", "queue of the next lower priority";
    }
    KmpDepnode = "kmp_base_depnode" as ["kmp_base_depnode", "kmp_base_depnode_t"], "One task in the graph of dependences" {
        successors: "successors", "list of the tasks that depend on it";
        task: "task", "the kmp_task; NULL once it is over, and until all its dependences are entered";
        npredecessors: "npredecessors", "tasks it depends on that are not over";
        mtx_locks: "mtx_locks", "locks of its `mutexinoutset` dependences";
    }
    KmpDepnodeList = "kmp_depnode_list" as ["kmp_depnode_list", "kmp_depnode_list_t"], "A list of nodes of that graph" {
        node: "node", "the node";
        next: "next", "rest of the list";
    }
    KmpDephash = "kmp_dephash" as ["kmp_dephash", "kmp_dephash_t"], "Addresses that children of a task depend on" {
        buckets: "buckets", "array of chains of kmp_dephash_entry";
        length: "size", "length of that array";
        last_all: "last_all", "last task with a dependence on `omp_all_memory` (LLVM 14 and later)";
    }
    KmpDephashEntry = "kmp_dephash_entry" as ["kmp_dephash_entry", "kmp_dephash_entry_t"], "One address depended on" {
        addr: "addr", "the address";
        last_out: "last_out", "last task with `out` or `inout`, if no set came after it";
        last_set: "last_set", "tasks of one other kind that came last";
        prev_set: "prev_set", "the set before that one";
        last_flag: "last_flag", "kind of last_set: 1 `in`, 4 `mutexinoutset`, 8 `inoutset`";
        last_ins: "last_ins", "tasks with `in` since last_out (before LLVM 13)";
        last_mtxs: "last_mtxs", "tasks with `mutexinoutset` since last_out (before LLVM 13)";
        mtx_lock: "mtx_lock", "lock of the `mutexinoutset` dependences on the address";
        next_in_bucket: "next_in_bucket", "rest of the chain";
    }
    KmpFlag64 = "kmp_flag_64" as ["kmp_flag_64<false, true>", "kmp_flag_64"], "What a thread sleeps on: a 64-bit word" {
        loc: "loc", "address of the word";
    }
    KmpFlag32 = "kmp_flag_32" as ["kmp_flag_32<false, true>", "kmp_flag_32"], "What a thread sleeps on: a 32-bit word" {
        loc: "loc", "address of the word";
    }
    KmpIndirectLockTable = "kmp_indirect_lock_table" as ["kmp_indirect_lock_table", "kmp_indirect_lock_table_t"], "All locks made by the program" {
        table: "table", "array of rows of 1024 kmp_indirect_lock each";
        nrow_ptrs: "nrow_ptrs", "rows (LLVM 14 and later)";
        next: "next", "index of the next unused entry";
        next_table: "next_table", "continuation (LLVM 14 and later)";
    }
    KmpIndirectLock = "kmp_indirect_lock_t" as ["kmp_indirect_lock_t"], "One entry of the lock table" {
        lock: "lock", "the lock";
        kind: "type", "0 ticket, 1 queuing, 2 adaptive, 3 drdpa, 4 rtm_queuing, 5.. nested kinds";
    }
    KmpQueuingLock = "kmp_base_queuing_lock" as ["kmp_base_queuing_lock", "kmp_base_queuing_lock_t"], "The default kind of lock" {
        initialized: "initialized", "points to the lock itself";
        location: "location", "source position of the critical construct; NULL for locks";
        tail_id: "tail_id", "gtid + 1 of the last waiter";
        head_id: "head_id", "0 free, -1 held without waiters, else gtid + 1 of the first waiter";
        flags: "flags", "bit 0: a critical construct";
        owner_id: "owner_id", "gtid + 1 of the owner, of nest locks and with KMP_CONSISTENCY_CHECK only";
        depth_locked: "depth_locked", "how often a nest lock is set; -1 in simple locks";
    }
    KmpTicketLock = "kmp_base_ticket_lock" as ["kmp_base_ticket_lock", "kmp_base_ticket_lock_t"], "A lock that counts whose turn it is" {
        initialized: "initialized", "LLVM: true; Intel: points to the lock itself";
        self_: "self", "points to the lock itself (LLVM)";
        location: "location", "source position of the critical construct; NULL for locks";
        next_ticket: "next_ticket", "number the next thread to ask for the lock gets";
        now_serving: "now_serving", "number that has the lock";
        owner_id: "owner_id", "gtid + 1 of the owner, of nest locks and with KMP_CONSISTENCY_CHECK only";
        depth_locked: "depth_locked", "how often a nest lock is set; -1 in simple locks";
        flags: "flags", "bit 0: a critical construct";
    }
    KmpDrdpaLock = "kmp_base_drdpa_lock" as ["kmp_base_drdpa_lock", "kmp_base_drdpa_lock_t"], "The same, with a word to spin on for each thread" {
        initialized: "initialized", "points to the lock itself";
        location: "location", "source position of the critical construct; NULL for locks";
        polls: "polls", "array of the words spun on: that of a ticket holds the ticket once it is served";
        mask: "mask", "length of that array, less one";
        next_ticket: "next_ticket", "number the next thread to ask for the lock gets";
        owner_id: "owner_id", "gtid + 1 of the owner, of nest locks and with KMP_CONSISTENCY_CHECK only";
        depth_locked: "depth_locked", "how often a nest lock is set; -1 in simple locks";
        flags: "flags", "bit 0: a critical construct";
    }
    KmpTasLock = "kmp_base_tas_lock" as ["kmp_base_tas_lock", "kmp_base_tas_lock_t"], "A lock of one word" {
        poll: "poll", "low byte: the kind of lock, where that is in the word; above it gtid + 1 of the owner";
        depth_locked: "depth_locked", "how often a nest lock is set";
    }
    KmpFutexLock = "kmp_base_futex_lock" as ["kmp_base_futex_lock", "kmp_base_futex_lock_t"], "A lock of one word that waiters sleep on" {
        poll: "poll", "low byte as above; above it 2 * (gtid + 1) of the owner, and 1 if somebody may sleep";
        depth_locked: "depth_locked", "how often a nest lock is set";
    }
    KmpDisp = "kmp_disp" as ["kmp_disp", "kmp_disp_t"], "A member's worksharing regions" {
        sh_current: "th_dispatch_sh_current", "what the team shares of the loop it is in";
        pr_current: "th_dispatch_pr_current", "what is its own of that loop; NULL when it is in none";
        doacross_info: "th_doacross_info", "array that describes the doacross loop it is in; NULL when it is in none";
        doacross_flags: "th_doacross_flags", "what the team shares of that loop: a bit for each iteration";
    }
    DispatchPrivate = "dispatch_private_info" as ["dispatch_private_info", "dispatch_private_info_t"], "A member's part of a loop" {
        schedule: "schedule", "the runtime's own schedule number";
        ordered: "flags.ordered", "the loop has an `ordered` clause";
        steal_flag: "steal_flag", "static_steal: 0 unused, 1 claimed, 2 its share may be stolen from, 3 has none (LLVM 13 and later)";
        type_size: "type_size", "bytes of the loop variable, 4 or 8; which of the following counts";
        count32: "u.p32.count", "static_steal: next chunk of its own";
        lb32: "u.p32.lb", "first value";
        ub32: "u.p32.ub", "last value; static_steal: the chunk after the last of its own";
        st32: "u.p32.st", "step";
        tc32: "u.p32.tc", "iterations";
        chunk32: "u.p32.parm1", "iterations in a chunk";
        ordered_lower32: "u.p32.ordered_lower", "first iteration of the chunk it executes, of a loop with `ordered`";
        ordered_upper32: "u.p32.ordered_upper", "last iteration of that chunk";
        count64: "u.p64.count", "as above";
        lb64: "u.p64.lb", "as above";
        ub64: "u.p64.ub", "as above";
        st64: "u.p64.st", "as above";
        tc64: "u.p64.tc", "as above";
        chunk64: "u.p64.parm1", "as above";
        ordered_lower64: "u.p64.ordered_lower", "as above";
        ordered_upper64: "u.p64.ordered_upper", "as above";
    }
    DispatchShared = "dispatch_shared_info" as ["dispatch_shared_info", "dispatch_shared_info_t"], "What a team shares of a loop" {
        iteration32: "u.s32.iteration", "dynamic: next chunk; guided: next iteration";
        num_done32: "u.s32.num_done", "members that are through";
        ordered32: "u.s32.ordered_iteration", "iteration whose `ordered` region is next";
        iteration64: "u.s64.iteration", "as above";
        num_done64: "u.s64.num_done", "as above";
        ordered64: "u.s64.ordered_iteration", "as above";
    }
    KmpNestedNthreads = "kmp_nested_nthreads" as ["kmp_nested_nthreads", "kmp_nested_nthreads_t"], "`nthreads-var` by level of nesting" {
        items: "nth", "array of `int`";
        used: "used", "items in use; 0 where nothing was said";
    }
    KmpNestedProcBind = "kmp_nested_proc_bind" as ["kmp_nested_proc_bind", "kmp_nested_proc_bind_t"], "`bind-var` by level of nesting" {
        items: "bind_types", "array of `kmp_proc_bind_t`";
        used: "used", "items in use";
    }
    Ident = "ident" as ["ident", "ident_t"], "A source position handed over by the compiler" {
        psource: "psource", "text `;file;function;line;end line;;`";
    }
}

/// Table of all threads, indexed by global thread number.
pub(crate) const THREADS: &str = "__kmp_threads";
/// Threads the runtime knows, spread over that table.
pub(crate) const ALL_NTH: &str = "__kmp_all_nth";
/// Entries of the table.
pub(crate) const THREADS_CAPACITY: &str = "__kmp_threads_capacity";
/// Table of all locks and criticals of the default kind.
pub(crate) const LOCK_TABLE: &str = "__kmp_i_lock_table";

/// Processors it may use (`int`): `num-procs-var`, and `nthreads-var` where nothing else was said.
pub(crate) const AVAIL_PROC: &str = "__kmp_avail_proc";
/// `stacksize-var` (`size_t`, bytes).
pub(crate) const STACKSIZE: &str = "__kmp_stksize";
/// `cancel-var` (`int`).
pub(crate) const CANCEL: &str = "__kmp_omp_cancellation";
/// `max-task-priority-var` (`int`).
pub(crate) const MAX_TASK_PRIORITY: &str = "__kmp_max_task_priority";
/// What waiting threads do (`enum library_type`): 1 serial, 2 turnaround, 3 throughput.
pub(crate) const LIBRARY: &str = "__kmp_library";

/// `nteams-var` (`int`).
pub(crate) const NTEAMS: &str = "__kmp_nteams";
/// `teams-thread-limit-var` (`int`).
pub(crate) const TEAMS_THREAD_LIMIT: &str = "__kmp_teams_thread_limit";
/// `target-offload-var` (`enum kmp_target_offload_kind`): 0 disabled, 1 default, 2 mandatory.
pub(crate) const TARGET_OFFLOAD: &str = "__kmp_target_offload";
/// `affinity-format-var` (`char *`).
pub(crate) const AFFINITY_FORMAT: &str = "__kmp_affinity_format";
/// `display-affinity-var` (`int`).
pub(crate) const DISPLAY_AFFINITY: &str = "__kmp_display_affinity";
/// `tool-var` (`int`).
pub(crate) const TOOL: &str = "__kmp_tool";
/// `tool-libraries-var` (`char *`); NULL: none.
pub(crate) const TOOL_LIBRARIES: &str = "__kmp_tool_libraries";
/// `tool-verbose-init-var` (`char *`); NULL: disabled.
pub(crate) const TOOL_VERBOSE_INIT: &str = "__kmp_tool_verbose_init";
/// What is done for OMPD (`uint64_t`): bit 0 is `debug-var`.
pub(crate) const OMPD_STATE: &str = "ompd_state";
/// `nthreads-var` as the environment has it, by level of nesting (`kmp_nested_nthreads_t`).
pub(crate) const NESTED_NTH: &str = "__kmp_nested_nth";
/// `bind-var`, likewise (`kmp_nested_proc_bind_t`).
pub(crate) const NESTED_BIND: &str = "__kmp_nested_proc_bind";
/// A function of the releases in which a team may have a list of its own.
pub(crate) const SETS_LISTS: &str = "__kmpc_push_num_threads_list";
/// `_OPENMP` as the runtime states it (`int`).
pub(crate) const OPENMP_VERSION: &str = "__kmp_openmp_version";

/// Everything read of libomp and libiomp5.
pub const SCHEMA: Schema = Schema {
    family: "kmp",
    structs: STRUCTS,
    globals: &[
        GlobalSchema { name: THREADS, meaning: "table of all threads, indexed by global thread number" },
        GlobalSchema { name: ALL_NTH, meaning: "threads the runtime knows, spread over that table" },
        GlobalSchema { name: THREADS_CAPACITY, meaning: "entries of that table" },
        GlobalSchema { name: LOCK_TABLE, meaning: "table of all locks and criticals of the default kind" },
        GlobalSchema { name: AVAIL_PROC, meaning: "processors it may use" },
        GlobalSchema { name: STACKSIZE, meaning: "`stacksize-var`" },
        GlobalSchema { name: CANCEL, meaning: "`cancel-var`" },
        GlobalSchema { name: MAX_TASK_PRIORITY, meaning: "`max-task-priority-var`" },
        GlobalSchema { name: LIBRARY, meaning: "what waiting threads do" },
        GlobalSchema { name: NTEAMS, meaning: "`nteams-var`" },
        GlobalSchema { name: TEAMS_THREAD_LIMIT, meaning: "`teams-thread-limit-var`" },
        GlobalSchema { name: TARGET_OFFLOAD, meaning: "`target-offload-var`" },
        GlobalSchema { name: AFFINITY_FORMAT, meaning: "`affinity-format-var`" },
        GlobalSchema { name: DISPLAY_AFFINITY, meaning: "`display-affinity-var`" },
        GlobalSchema { name: TOOL, meaning: "`tool-var`" },
        GlobalSchema { name: TOOL_LIBRARIES, meaning: "`tool-libraries-var`" },
        GlobalSchema { name: TOOL_VERBOSE_INIT, meaning: "`tool-verbose-init-var`" },
        GlobalSchema { name: OMPD_STATE, meaning: "`debug-var`" },
        GlobalSchema { name: NESTED_NTH, meaning: "`nthreads-var` of each level of nesting" },
        GlobalSchema { name: NESTED_BIND, meaning: "`bind-var` of each level of nesting" },
        GlobalSchema { name: OPENMP_VERSION, meaning: "the version of OpenMP that the runtime implements" },
    ],
};

/// How its functions and variables are called. Those with public names are in the vocabulary of the profiles.
pub(crate) const NAMES: OwnNames = OwnNames {
    internal: &["__kmp_", "__kmpc_", "__ompt_", "__ompd_"],
    // C++ functions of the runtime and of the program.
    shared: &["_Z"],
    not: &[],
    plain: &[],
    structs: &["ident"],
    files: &[],
};

/// What is lost with each value that is not known, in the words of `doctor`. The longest name that a missing value
/// begins with counts.
pub(crate) const COSTS: &[Cost] = &[
    Cost { of: THREADS, text: "its threads cannot be found" },
    Cost { of: ALL_NTH, text: "its threads cannot be counted" },
    Cost { of: THREADS_CAPACITY, text: "its threads cannot be counted" },
    Cost { of: LOCK_TABLE, text: "which lock a thread waits for is unknown" },
    Cost { of: AVAIL_PROC, text: "whether numbers of threads are the default is unknown" },
    Cost { of: STACKSIZE, text: "that internal control variable is unknown" },
    Cost { of: CANCEL, text: "that internal control variable is unknown" },
    Cost { of: MAX_TASK_PRIORITY, text: "that internal control variable is unknown" },
    Cost { of: LIBRARY, text: "that internal control variable is unknown" },
    Cost { of: NTEAMS, text: "that internal control variable is unknown" },
    Cost { of: TEAMS_THREAD_LIMIT, text: "that internal control variable is unknown" },
    Cost { of: TARGET_OFFLOAD, text: "that internal control variable is unknown" },
    Cost { of: AFFINITY_FORMAT, text: "that internal control variable is unknown" },
    Cost { of: DISPLAY_AFFINITY, text: "that internal control variable is unknown" },
    Cost { of: TOOL, text: "that internal control variable is unknown" },
    Cost { of: NESTED_NTH, text: "control variables that are lists are known at the level of their task only" },
    Cost { of: NESTED_BIND, text: "control variables that are lists are known at the level of their task only" },
    Cost {
        of: "kmp_nested_nthreads.",
        text: "control variables that are lists are known at the level of their task only",
    },
    Cost {
        of: "kmp_nested_proc_bind.",
        text: "control variables that are lists are known at the level of their task only",
    },
    Cost {
        of: "kmp_base_team.t_nested_nth",
        text: "control variables that are lists are known at the level of their task only",
    },
    Cost { of: OPENMP_VERSION, text: "which OpenMP it implements is unknown" },
    Cost { of: OMPD_STATE, text: "that internal control variable is unknown" },
    Cost { of: "kmp_base_info.th_teams_", text: "leagues of `teams` regions are unknown" },
    Cost { of: "kmp_base_info.th_current_place", text: "which places threads are bound to is unknown" },
    Cost { of: "kmp_base_info.th_first_place", text: "which places threads may be bound to is unknown" },
    Cost { of: "kmp_base_info.th_last_place", text: "which places threads may be bound to is unknown" },
    Cost { of: "kmp_base_info.th_info.", text: "its threads are not recognised" },
    Cost { of: "kmp_base_info.th_info.ds.ds_gtid", text: "the table of threads is not checked" },
    Cost { of: "kmp_base_info.th_team", text: "teams are not found" },
    Cost { of: "kmp_base_info.th_root", text: "initial threads are not told from workers" },
    Cost { of: "kmp_base_info.th_current_task", text: "what threads execute is unknown" },
    Cost { of: "kmp_base_info.th_task_team", text: "waits for the team's remaining tasks are not recognised" },
    Cost { of: "kmp_base_info.th_in_pool", text: "unused threads are told by their team alone" },
    Cost { of: "kmp_base_info.th_ident", text: "lines of barriers are unknown" },
    Cost { of: "kmp_base_info.th_sleep_loc", text: "what sleeping threads wait for is unknown" },
    Cost { of: "kmp_base_info.th_bar", text: "who has arrived at a barrier is unknown" },
    Cost {
        of: "kmp_base_info.th_spin_here",
        text: "who waits for a lock is unknown, and with it what else a thread waits for",
    },
    Cost { of: "kmp_base_info.th_next_waiting", text: "which lock a thread waits for is unknown" },
    Cost { of: "kmp_base_team.", text: "teams are not shown" },
    Cost { of: "kmp_base_info.th_def_allocator", text: "that internal control variable is unknown" },
    Cost { of: "kmp_base_info.ompt_", text: "what OMPT tools have filed is unknown" },
    Cost { of: "kmp_base_team.ompt_", text: "what OMPT tools have filed is unknown" },
    Cost { of: "kmp_taskdata.ompt_", text: "what OMPT tools have filed is unknown" },
    Cost { of: "kmp_base_team.t_implicit_task_taskdata", text: "generating tasks of implicit tasks are unknown" },
    Cost { of: "kmp_base_team.t_master_tid", text: "which thread of the enclosing team opened a region is unknown" },
    Cost { of: "kmp_base_team.t_pkfn", text: "functions of regions are unknown" },
    Cost { of: "kmp_base_team.t_arg", text: "functions of regions made by GCC are unknown" },
    Cost { of: "kmp_base_team.t_ident", text: "lines of regions are unknown" },
    Cost { of: "kmp_base_team.t_bar", text: "who has arrived at a barrier is unknown" },
    Cost { of: "kmp_base_team.t_task_team", text: "tasks that are ready to run are not listed" },
    Cost { of: "kmp_base_team.t_dispatch", text: "how far loops are is unknown" },
    Cost { of: "kmp_base_root.", text: "initial threads are not told from workers" },
    Cost { of: "kmp_taskdata.", text: "tasks are not shown" },
    Cost { of: "kmp_taskdata.td_ident", text: "lines of tasks are unknown" },
    Cost { of: "kmp_taskdata.td_taskwait_", text: "waits in a taskwait are not recognised" },
    Cost { of: "kmp_taskdata.td_icvs", text: "internal control variables are unknown" },
    Cost { of: "kmp_taskdata.td_incomplete_child_tasks", text: "a taskwait is not told from the end of a taskgroup" },
    Cost { of: "kmp_taskdata.td_taskgroup", text: "a taskwait is not told from the end of a taskgroup" },
    Cost { of: "kmp_taskdata.td_dep", text: "tasks that wait for dependences are not listed" },
    Cost { of: "kmp_taskdata.td_allow_completion_event", text: "events of detached tasks are unknown" },
    Cost { of: "sizeof(kmp_taskdata)", text: "functions of tasks are unknown" },
    Cost { of: "kmp_tasking_flags.", text: "tasks are not shown" },
    Cost { of: "kmp_tasking_flags.tiedness", text: "which tasks are tied is unknown" },
    Cost { of: "kmp_tasking_flags.priority_specified", text: "priorities of tasks are unknown" },
    Cost { of: "kmp_tasking_flags.detachable", text: "events of detached tasks are unknown" },
    Cost { of: "kmp_tasking_flags.proxy", text: "detached tasks are not told from suspended ones" },
    Cost { of: "kmp_tasking_flags.tasking_ser", text: "unfinished children of tasks are not counted" },
    Cost { of: "kmp_tasking_flags.team_serial", text: "unfinished children of tasks are not counted" },
    Cost { of: "kmp_tasking_flags.complete", text: "tasks that are over are not told from suspended ones" },
    Cost { of: "kmp_task.", text: "functions of tasks are unknown" },
    Cost { of: "kmp_task.data2.priority", text: "priorities of tasks are unknown" },
    Cost { of: "kmp_internal_control.", text: "that internal control variable is unknown" },
    Cost { of: "kmp_bstate.", text: "who has arrived at a barrier is unknown" },
    Cost { of: "kmp_bstate.wait_flag", text: "whether waits at barriers are over is unknown" },
    Cost { of: "sizeof(kmp_bstate)", text: "who has arrived at a barrier is unknown" },
    Cost { of: "kmp_balign_team.", text: "who has arrived at a barrier is unknown" },
    Cost { of: "sizeof(kmp_balign_team)", text: "who has arrived at a barrier is unknown" },
    Cost { of: "kmp_taskgroup.", text: "a taskwait is not told from the end of a taskgroup" },
    Cost { of: "kmp_taskgroup.cancel_request", text: "cancelled task groups are not told" },
    Cost { of: "kmp_base_task_team.", text: "tasks that are ready to run are not listed" },
    Cost { of: "kmp_base_task_team.tt_task_pri_list", text: "queued tasks with a priority are not listed" },
    Cost { of: "kmp_task_pri.", text: "queued tasks with a priority are not listed" },
    Cost { of: "kmp_base_depnode.", text: "tasks that wait for dependences are not listed" },
    Cost { of: "kmp_base_depnode.mtx_locks", text: "kinds of some dependences are unknown" },
    Cost { of: "kmp_depnode_list.", text: "tasks that wait for dependences are not listed" },
    Cost { of: "kmp_dephash.", text: "what tasks depend on is unknown" },
    Cost { of: "kmp_dephash_entry.", text: "what tasks depend on is unknown" },
    Cost { of: "kmp_base_thread_data.", text: "tasks that are ready to run are not listed" },
    Cost { of: "sizeof(kmp_thread_data)", text: "tasks that are ready to run are not listed" },
    Cost { of: "kmp_flag_", text: "what sleeping threads wait for is unknown" },
    Cost { of: "kmp_indirect_lock", text: "which lock a thread waits for is unknown" },
    Cost { of: "sizeof(kmp_indirect_lock_t)", text: "which lock a thread waits for is unknown" },
    Cost { of: "kmp_base_queuing_lock.", text: "which lock a thread waits for is unknown" },
    Cost { of: "kmp_base_queuing_lock.owner_id", text: "owners of nest locks are unknown" },
    Cost { of: "kmp_base_queuing_lock.depth_locked", text: "depths of nest locks are unknown" },
    Cost { of: "kmp_base_ticket_lock.", text: "locks of that kind are not shown" },
    Cost { of: "kmp_base_drdpa_lock.", text: "locks of that kind are not shown" },
    Cost { of: "kmp_base_tas_lock.", text: "locks of that kind are not shown" },
    Cost { of: "kmp_base_futex_lock.", text: "locks of that kind are not shown" },
    Cost { of: "kmp_disp.", text: "how far loops are is unknown" },
    Cost { of: "kmp_disp.th_doacross_", text: "how far doacross loops are is unknown" },
    Cost { of: "sizeof(kmp_disp)", text: "how far loops are is unknown" },
    Cost { of: "dispatch_", text: "how far loops are is unknown" },
    Cost { of: "ident.", text: "lines of constructs are unknown" },
];

/// All structs, bound to one resolved layout.
#[derive(Debug, Clone)]
pub(crate) struct Structs {
    pub(crate) info: KmpInfo,
    pub(crate) team: KmpTeam,
    pub(crate) root: KmpRoot,
    pub(crate) taskdata: KmpTaskdata,
    pub(crate) flags: KmpTaskingFlags,
    pub(crate) task: KmpTask,
    pub(crate) icvs: KmpInternalControl,
    pub(crate) bstate: KmpBstate,
    pub(crate) balign: KmpBalignTeam,
    pub(crate) taskgroup: KmpTaskgroup,
    pub(crate) task_team: KmpTaskTeam,
    pub(crate) thread_data: KmpThreadData,
    pub(crate) thread_data_stride: KmpThreadDataUnion,
    pub(crate) flag64: KmpFlag64,
    pub(crate) flag32: KmpFlag32,
    pub(crate) lock_table: KmpIndirectLockTable,
    pub(crate) indirect_lock: KmpIndirectLock,
    pub(crate) queuing: KmpQueuingLock,
    pub(crate) ticket: KmpTicketLock,
    pub(crate) drdpa: KmpDrdpaLock,
    pub(crate) tas: KmpTasLock,
    pub(crate) futex: KmpFutexLock,
    pub(crate) task_pri: KmpTaskPri,
    pub(crate) depnode: KmpDepnode,
    pub(crate) depnode_list: KmpDepnodeList,
    pub(crate) dephash: KmpDephash,
    pub(crate) dephash_entry: KmpDephashEntry,
    pub(crate) disp: KmpDisp,
    pub(crate) loop_private: DispatchPrivate,
    pub(crate) loop_shared: DispatchShared,
    pub(crate) nested_nth: KmpNestedNthreads,
    pub(crate) nested_bind: KmpNestedProcBind,
    pub(crate) ident: Ident,
}

impl Structs {
    pub(crate) fn bind(layout: &ompd_layout::Layout) -> Structs {
        Structs {
            info: KmpInfo::bind(layout),
            team: KmpTeam::bind(layout),
            root: KmpRoot::bind(layout),
            taskdata: KmpTaskdata::bind(layout),
            flags: KmpTaskingFlags::bind(layout),
            task: KmpTask::bind(layout),
            icvs: KmpInternalControl::bind(layout),
            bstate: KmpBstate::bind(layout),
            balign: KmpBalignTeam::bind(layout),
            taskgroup: KmpTaskgroup::bind(layout),
            task_team: KmpTaskTeam::bind(layout),
            thread_data: KmpThreadData::bind(layout),
            thread_data_stride: KmpThreadDataUnion::bind(layout),
            flag64: KmpFlag64::bind(layout),
            flag32: KmpFlag32::bind(layout),
            lock_table: KmpIndirectLockTable::bind(layout),
            indirect_lock: KmpIndirectLock::bind(layout),
            queuing: KmpQueuingLock::bind(layout),
            ticket: KmpTicketLock::bind(layout),
            drdpa: KmpDrdpaLock::bind(layout),
            tas: KmpTasLock::bind(layout),
            futex: KmpFutexLock::bind(layout),
            task_pri: KmpTaskPri::bind(layout),
            depnode: KmpDepnode::bind(layout),
            depnode_list: KmpDepnodeList::bind(layout),
            dephash: KmpDephash::bind(layout),
            dephash_entry: KmpDephashEntry::bind(layout),
            disp: KmpDisp::bind(layout),
            loop_private: DispatchPrivate::bind(layout),
            loop_shared: DispatchShared::bind(layout),
            nested_nth: KmpNestedNthreads::bind(layout),
            nested_bind: KmpNestedProcBind::bind(layout),
            ident: Ident::bind(layout),
        }
    }
}
