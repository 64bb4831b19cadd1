//! What is read of libgomp, under the names of its `libgomp.h`, `priority_queue.h` and `config/linux/bar.h`.

use ompd_layout::{GlobalSchema, Schema};

use crate::bind::structs;
use crate::instance::Cost;
use crate::owner::OwnNames;

structs! {
    GompThread = "gomp_thread", "Per-thread data in thread-local storage (`gomp_tls_data`)" {
        team: "ts.team", "innermost team; stale in idle pool workers";
        team_id: "ts.team_id", "thread number in that team";
        level: "ts.level", "nesting level";
        active_level: "ts.active_level", "nesting level counting only regions of more than one thread";
        work_share: "ts.work_share", "worksharing construct it is in, or was in last";
        last_work_share: "ts.last_work_share", "the construct before that one; NULL while it is in none";
        task: "task", "task being executed; NULL before the first use";
        release: "release", "semaphore this thread waits on for its turn in `ordered`";
        thread_pool: "thread_pool", "pool of the contention group; NULL before the first region";
        place: "place", "place it is bound to, counted from 1; 0: to none";
        partition_off: "ts.place_partition_off", "first place of its partition";
        partition_len: "ts.place_partition_len", "places of its partition";
        num_teams: "num_teams", "teams of its league, less one (GCC 12 and later)";
        team_num: "team_num", "number of the team in that league";
        def_allocator: "ts.def_allocator", "`def-allocator-var`; 0: that of the process (GCC 11 and later)";
    }
    GompTeam = "gomp_team", "One team" {
        nthreads: "nthreads", "members";
        prev_team: "prev_ts.team", "team of the encountering thread";
        prev_team_id: "prev_ts.team_id", "its thread number there";
        prev_level: "prev_ts.level", "its nesting level there";
        prev_active_level: "prev_ts.active_level", "its active nesting level there";
        master_release: "master_release", "`ordered` semaphore of thread 0";
        ordered_release: "ordered_release", "array of pointers to the members' `ordered` semaphores";
        barrier_total: "barrier.total", "threads the team barrier waits for";
        barrier_generation: "barrier.generation", "futex word of the team barrier: flags in the low three bits";
        barrier_awaited: "barrier.awaited", "threads still to arrive at the current barrier";
        barrier_awaited_final: "barrier.awaited_final", "threads still to arrive at the end of the region";
        task_lock: "task_lock", "lock of the task queues; 0 while they are not being changed";
        queue_root: "task_queue.t.root", "ready tasks, when priorities are in use: root of a splay tree";
        queue_tasks: "task_queue.l.tasks", "ready tasks, when no priorities are in use: circular list";
        task_count: "task_count", "tasks that are ready, running, suspended or detached";
        implicit_task: "implicit_task", "implicit tasks of the members";
    }
    GompTask = "gomp_task", "One task" {
        parent: "parent", "generating task; NULL once that has finished";
        children_root: "children_queue.t.root", "children ready or begun, when priorities are in use: root of a splay tree";
        children_tasks: "children_queue.l.tasks", "children ready or begun, when no priorities are in use: circular list";
        taskgroup: "taskgroup", "innermost taskgroup";
        dependers: "dependers", "tasks whose dependences name this one: `gomp_dependers_vec`; NULL without any";
        taskwait: "taskwait", "what the task waits for in `taskwait`; on its stack";
        depend_count: "depend_count", "entries of `depend`";
        num_dependees: "num_dependees", "tasks it depends on that are not over; set only with dependences";
        completion_sem: "completion_sem", "semaphore of its event, of a task that is not deferred";
        detach_team: "detach_team", "its team as long as its event is to be fulfilled, of a deferred task";
        deferred: "deferred_p", "which of those two it has (GCC 11 and later)";
        priority: "priority", "`priority` clause; not set for implicit tasks";
        pnode: "pnode", "list nodes: of the team's queue, the parent's children, the taskgroup";
        icv: "icv", "internal control variables of the task";
        fn_: "fn", "function of an explicit task; not set for implicit and undeferred tasks";
        kind: "kind", "0 implicit, 1 undeferred, 2 waiting, 3 tied, 4 async running, 5 detached";
        final_task: "final_task", "a `final` clause is in force";
        depend: "depend", "its dependences: array at its end";
    }
    DependEntry = "gomp_task_depend_entry", "One dependence of a task" {
        addr: "addr", "storage it names; NULL for `omp_all_memory`";
        is_in: "is_in", "0 `out`, `inout` or `mutexinoutset`, 1 `in`, 2 `inoutset` (GCC 13 and later)";
    }
    Dependers = "gomp_dependers_vec", "Tasks that depend on a task" {
        count: "n_elem", "entries in use";
        elements: "elem", "pointers to the tasks: array at its end";
    }
    GompTaskIcv = "gomp_task_icv", "Internal control variables of one task" {
        nthreads: "nthreads_var", "`nthreads-var`";
        schedule: "run_sched_var", "`run-sched-var`: kind of `omp_sched_t`, sign bit is `monotonic`";
        chunk: "run_sched_chunk_size", "`run-sched-var`: chunk size";
        thread_limit: "thread_limit_var", "`thread-limit-var`; all ones: no limit";
        dynamic: "dyn_var", "`dyn-var`";
        max_active_levels: "max_active_levels_var", "`max-active-levels-var` (GCC 11 and later)";
        bind: "bind_var", "`bind-var`";
        default_device: "default_device_var", "`default-device-var`";
    }
    GompThreadPool = "gomp_thread_pool", "Threads of one contention group, reused from region to region" {
        threads: "threads", "array of pointers to gomp_thread; entry 0 is the initial thread";
        threads_used: "threads_used", "entries in use";
        last_team: "last_team", "the team that ended last, kept for reuse";
        dock: "threads_dock.bar.generation", "futex word idle workers wait on";
    }
    GompTaskgroup = "gomp_taskgroup", "One taskgroup" {
        prev: "prev", "enclosing taskgroup";
        queue_root: "taskgroup_queue.t.root", "its tasks ready or begun, when priorities are in use: root of a splay tree";
        queue_tasks: "taskgroup_queue.l.tasks", "its tasks ready or begun, when no priorities are in use: circular list";
        cancelled: "cancelled", "it has been cancelled";
        sem: "taskgroup_sem", "semaphore the task waits on at the end of the taskgroup";
        num_children: "num_children", "its tasks that are not over";
    }
    GompTaskwait = "gomp_taskwait", "State of a task that waits for other tasks" {
        in_taskwait: "in_taskwait", "it is blocked in `taskwait`";
        in_depend_wait: "in_depend_wait", "it is blocked until dependences are met";
        n_depend: "n_depend", "tasks it waits for, while it waits for dependences";
        sem: "taskwait_sem", "semaphore it waits on";
    }
    PriorityNode = "priority_node", "Link of a task list" {
        next: "next", "next task of the list (circular)";
        prev: "prev", "the one before it";
    }
    PriorityTreeNode = "prio_splay_tree_node_s", "Node of a queue with priorities" {
        tasks: "key.l.tasks", "tasks of this priority";
        left: "left", "lower priorities";
        right: "right", "higher priorities";
    }
    WorkShare = "gomp_work_share", "One worksharing construct" {
        sched: "sched", "kind of `omp_sched_t`, sign bit is `monotonic`; not set for `single copyprivate`";
        mode: "mode", "bit 0: no overflow is possible, bit 1: unsigned and downwards";
        chunk_size: "chunk_size", "chunk size; of `dynamic` loops multiplied by the step";
        end: "end", "where it ends, exclusive";
        incr: "incr", "step";
        ordered_team_ids: "ordered_team_ids", "queue of members in the order of their turns in `ordered`";
        inline_ordered_team_ids: "inline_ordered_team_ids", "where that queue is, unless it is long: array at its end";
        doacross: "doacross", "of a doacross loop, in the place of that queue: how far it is";
        ordered_num_used: "ordered_num_used", "members in that queue";
        ordered_cur: "ordered_cur", "place in the queue of the member whose turn it is";
        threads_completed: "threads_completed", "members through with it, if it has `nowait`";
        next: "next", "where the next chunk begins; of `static` loops where the loop begins";
    }
    Doacross = "gomp_doacross_work_share", "How far a doacross loop is" {
        chunk_size: "chunk_size", "chunk size; of a `static` loop without one the iterations of the shorter shares";
        elt_sz: "elt_sz", "bytes of an element of the array";
        ncounts: "ncounts", "loops of the nest";
        flattened: "flattened", "an iteration of the nest is one number";
        array: "array", "elements: the iteration posted last";
        t: "t", "of a `static` loop without chunk size: members with a longer share";
        boundary: "boundary", "of such a loop: iterations of those members";
        shift_counts: "shift_counts", "how far each loop's counter is shifted in that number: array at its end";
    }
    NestLock = "omp_nest_lock_t" as ["omp_nest_lock_30_t", "omp_nest_lock_t"], "A nest lock (from OpenMP 3.0 on)" {
        lock: "lock", "futex word: 0 free, 1 held, all ones held with threads that wait";
        count: "count", "how often its owner has set it";
        owner: "owner", "control variables of the task that has set it";
    }
}

/// Name under which the code origin files the place of the thread-local data. The place is the address of the GOT
/// slot that holds the data's offset from the thread pointer.
pub(crate) const TLS_SLOT: &str = "gomp_tls_data@gottpoff";
/// The same distance itself, in a program that has libgomp built in. The linker knows it there, and the code has it
/// as a constant (the local-exec model).
pub(crate) const TLS_DISTANCE: &str = "gomp_tls_data@tpoff";
/// Control variables in force for threads without a task.
pub(crate) const GLOBAL_ICV: &str = "gomp_global_icv";
/// `max-active-levels-var` of GCC 10 and before (`unsigned long`).
pub(crate) const MAX_ACTIVE_LEVELS: &str = "gomp_max_active_levels_var";
/// Lock behind unnamed `critical` constructs (`critical.c`).
pub(crate) const DEFAULT_LOCK: &str = "default_lock";
/// Lock behind `atomic` constructs the compiler could not do without a lock.
pub(crate) const ATOMIC_LOCK: &str = "atomic_lock";

/// Whether constructs can be cancelled (`cancel-var`; one byte).
pub(crate) const CANCEL: &str = "gomp_cancel_var";

/// `max-task-priority-var` (`int`).
pub(crate) const MAX_TASK_PRIORITY: &str = "gomp_max_task_priority_var";
/// Processors it found at its start (`unsigned`): `num-procs-var`, and `nthreads-var` where nothing else was said.
pub(crate) const AVAILABLE_CPUS: &str = "gomp_available_cpus";
/// Array of pointers to the places, each a `cpu_set_t`; NULL without places.
pub(crate) const PLACES: &str = "gomp_places_list";
/// How many there are (`unsigned long`).
pub(crate) const PLACES_LEN: &str = "gomp_places_list_len";

/// `nteams-var` (`int`; GCC 12 and later).
pub(crate) const NTEAMS: &str = "gomp_nteams_var";
/// `teams-thread-limit-var` (`int`; GCC 12 and later).
pub(crate) const TEAMS_THREAD_LIMIT: &str = "gomp_teams_thread_limit_var";
/// `def-allocator-var` of threads that have set none (`uintptr_t`; GCC 11 and later).
pub(crate) const DEF_ALLOCATOR: &str = "gomp_def_allocator";
/// `affinity-format-var` (`char *`; GCC 9 and later).
pub(crate) const AFFINITY_FORMAT: &str = "gomp_affinity_format_var";

/// `nthreads-var` by level of nesting, if it is a list: array of `unsigned long`; NULL where it has no more than one item.
pub(crate) const NTHREADS_LIST: &str = "gomp_nthreads_var_list";
/// Items of that array (`unsigned long`).
pub(crate) const NTHREADS_LIST_LEN: &str = "gomp_nthreads_var_list_len";
/// `bind-var` by level of nesting, if it is a list: array of `char`; NULL where it has no more than one item.
pub(crate) const BIND_LIST: &str = "gomp_bind_var_list";
/// Items of that array (`unsigned long`).
pub(crate) const BIND_LIST_LEN: &str = "gomp_bind_var_list_len";

/// Everything read of libgomp.
pub const SCHEMA: Schema = Schema {
    family: "gomp",
    structs: STRUCTS,
    globals: &[
        GlobalSchema { name: TLS_SLOT, meaning: "GOT slot with the offset of gomp_tls_data from the thread pointer" },
        GlobalSchema { name: TLS_DISTANCE, meaning: "distance of gomp_tls_data from the thread pointer, in a program" },
        GlobalSchema { name: GLOBAL_ICV, meaning: "control variables in force for threads without a task" },
        GlobalSchema { name: MAX_ACTIVE_LEVELS, meaning: "`max-active-levels-var` of GCC 10 and before" },
        GlobalSchema { name: DEFAULT_LOCK, meaning: "lock behind unnamed `critical` constructs" },
        GlobalSchema { name: ATOMIC_LOCK, meaning: "lock behind `atomic` constructs" },
        GlobalSchema { name: CANCEL, meaning: "`cancel-var`: whether constructs can be cancelled" },
        GlobalSchema { name: MAX_TASK_PRIORITY, meaning: "`max-task-priority-var`" },
        GlobalSchema { name: AVAILABLE_CPUS, meaning: "processors it found at its start" },
        GlobalSchema { name: PLACES, meaning: "array of pointers to the places" },
        GlobalSchema { name: PLACES_LEN, meaning: "entries of that array" },
        GlobalSchema { name: NTEAMS, meaning: "`nteams-var`" },
        GlobalSchema { name: TEAMS_THREAD_LIMIT, meaning: "`teams-thread-limit-var`" },
        GlobalSchema { name: DEF_ALLOCATOR, meaning: "`def-allocator-var` of threads that have set none" },
        GlobalSchema { name: AFFINITY_FORMAT, meaning: "`affinity-format-var`" },
        GlobalSchema { name: NTHREADS_LIST, meaning: "`nthreads-var` of each level of nesting" },
        GlobalSchema { name: NTHREADS_LIST_LEN, meaning: "items of that list" },
        GlobalSchema { name: BIND_LIST, meaning: "`bind-var` of each level of nesting" },
        GlobalSchema { name: BIND_LIST_LEN, meaning: "items of that list" },
    ],
};

/// What is lost with each value that is not known, in the words of `doctor`. The longest name that a missing value
/// begins with counts.
pub(crate) const COSTS: &[Cost] = &[
    Cost { of: TLS_SLOT, text: "its threads cannot be found" },
    Cost { of: TLS_DISTANCE, text: "its threads cannot be found" },
    Cost { of: "gomp_thread.ts.", text: "thread numbers, levels and teams are unknown" },
    Cost { of: "gomp_thread.ts.work_share", text: "how far worksharing loops are is unknown" },
    Cost { of: "gomp_thread.ts.last_work_share", text: "how far worksharing loops are is unknown" },
    Cost { of: "gomp_thread.num_teams", text: "leagues of `teams` regions are unknown" },
    Cost { of: "gomp_thread.team_num", text: "leagues of `teams` regions are unknown" },
    Cost { of: "gomp_thread.task", text: "what threads execute is unknown" },
    Cost { of: "gomp_thread.release", text: "waits for a turn in `ordered` are not recognised" },
    Cost { of: "gomp_thread.place", text: "which places threads are bound to is unknown" },
    Cost { of: "gomp_thread.ts.place_", text: "which places threads may be bound to is unknown" },
    Cost { of: "gomp_thread.ts.def_allocator", text: "that internal control variable is unknown" },
    Cost { of: DEF_ALLOCATOR, text: "that internal control variable is unknown" },
    Cost { of: "gomp_thread.thread_pool", text: "which threads are idle is unknown, and with it who is in which team" },
    Cost { of: "gomp_thread_pool.", text: "which threads are idle is unknown, and with it who is in which team" },
    Cost { of: "gomp_thread_pool.threads_dock.", text: "waits for the start of a region are not recognised" },
    Cost { of: "gomp_thread_pool.threads", text: "idle threads without a team are not told from initial ones" },
    Cost { of: "gomp_team.nthreads", text: "the sizes of teams are unknown" },
    Cost { of: "gomp_team.prev_ts.", text: "enclosing teams are not found" },
    Cost { of: "gomp_team.master_release", text: "waits for a turn in `ordered` are not recognised" },
    Cost { of: "gomp_team.ordered_release", text: "teams are not checked, threads about to leave one are shown in it" },
    Cost { of: "gomp_team.barrier.", text: "who has arrived at a barrier is unknown" },
    Cost { of: "gomp_team.task_lock", text: "waits for locks of the runtime are not recognised" },
    Cost { of: "gomp_team.task_queue.", text: "tasks that are ready to run are not listed" },
    Cost { of: "gomp_team.task_count", text: "whether all unfinished tasks were found is unknown" },
    Cost { of: "gomp_team.implicit_task", text: "teams of implicit tasks are unknown" },
    Cost { of: "sizeof(gomp_task)", text: "teams of implicit tasks are unknown" },
    Cost { of: "sizeof(gomp_team)", text: "waits for locks and criticals are not told from waits inside the runtime" },
    Cost { of: "gomp_task.", text: "tasks are not shown" },
    Cost { of: "gomp_task.parent", text: "which task generated which is unknown" },
    Cost { of: "gomp_task.taskgroup", text: "waits at the end of a taskgroup are not recognised" },
    Cost { of: "gomp_task.taskwait", text: "waits in a taskwait or for dependences are not recognised" },
    Cost { of: "gomp_task.pnode", text: "tasks that are ready to run are not listed" },
    Cost { of: "gomp_task.children_queue.", text: "suspended and detached tasks are not all listed" },
    Cost { of: "gomp_task.dependers", text: "tasks that wait for their dependences are not listed" },
    Cost { of: "gomp_task.depend", text: "dependences of tasks are unknown" },
    Cost { of: "gomp_task.num_dependees", text: "dependences of tasks are unknown" },
    Cost { of: "gomp_task.completion_sem", text: "events of tasks are unknown" },
    Cost { of: "gomp_task.detach_team", text: "events of tasks are unknown" },
    Cost { of: "gomp_task.deferred_p", text: "events of tasks are unknown" },
    Cost { of: "gomp_task.priority", text: "priorities of tasks are unknown" },
    Cost { of: "gomp_task.icv", text: "internal control variables are unknown" },
    Cost { of: "gomp_task.fn", text: "functions of tasks are unknown" },
    Cost { of: "gomp_task.final_task", text: "whether a task is final is unknown" },
    Cost { of: "gomp_task_icv.", text: "that internal control variable is unknown" },
    Cost { of: "gomp_task_depend_entry.", text: "dependences of tasks are unknown" },
    Cost { of: "sizeof(gomp_task_depend_entry)", text: "dependences of tasks are unknown" },
    Cost { of: "gomp_dependers_vec.", text: "tasks that wait for their dependences are not listed" },
    Cost { of: "gomp_taskgroup.", text: "waits at the end of a taskgroup are not recognised" },
    Cost { of: "gomp_taskgroup.taskgroup_queue.", text: "suspended and detached tasks are not all listed" },
    Cost { of: "gomp_taskgroup.cancelled", text: "whether a taskgroup was cancelled is unknown" },
    Cost { of: "gomp_taskgroup.num_children", text: "how many tasks of a taskgroup are not over is unknown" },
    Cost { of: "gomp_taskwait.", text: "waits in a taskwait or for dependences are not recognised" },
    Cost { of: "gomp_taskwait.n_depend", text: "whether a wait for dependences is over is unknown" },
    Cost { of: "priority_node.", text: "tasks that are ready to run are not listed" },
    Cost { of: "prio_splay_tree_node_s.", text: "tasks that are ready to run are not listed" },
    Cost { of: "gomp_work_share.", text: "how far worksharing loops are is unknown" },
    Cost { of: "gomp_work_share.ordered_", text: "whose turn it is in an ordered loop is unknown" },
    Cost { of: "gomp_work_share.inline_ordered_team_ids", text: "how far doacross loops are is unknown" },
    Cost { of: "gomp_work_share.doacross", text: "how far doacross loops are is unknown" },
    Cost { of: "gomp_doacross_work_share.", text: "how far doacross loops are is unknown" },
    Cost { of: "omp_nest_lock_t.", text: "nest locks are not told from other locks, and their owners are unknown" },
    Cost { of: GLOBAL_ICV, text: "internal control variables are unknown outside of regions" },
    Cost { of: MAX_ACTIVE_LEVELS, text: "that internal control variable is unknown" },
    Cost { of: MAX_TASK_PRIORITY, text: "that internal control variable is unknown" },
    Cost { of: NTEAMS, text: "that internal control variable is unknown" },
    Cost { of: TEAMS_THREAD_LIMIT, text: "that internal control variable is unknown" },
    Cost { of: AFFINITY_FORMAT, text: "that internal control variable is unknown" },
    Cost { of: NTHREADS_LIST, text: "control variables that are lists are known at the level of their task only" },
    Cost { of: BIND_LIST, text: "control variables that are lists are known at the level of their task only" },
    Cost { of: AVAILABLE_CPUS, text: "whether numbers of threads are the default is unknown" },
    Cost { of: PLACES, text: "which processors places consist of is unknown" },
    Cost { of: DEFAULT_LOCK, text: "waits for an unnamed critical are not told from waits for a lock" },
    Cost { of: CANCEL, text: "loops of combined constructs are not shown" },
    Cost { of: ATOMIC_LOCK, text: "waits for an atomic are not told from waits inside the runtime" },
];

/// How its functions and variables are called. Those with public names (`GOMP_`, `omp_`, `acc_`) are in the vocabulary
/// of the profiles.
pub(crate) const NAMES: OwnNames = OwnNames {
    internal: &["gomp_", "goacc_", "_goacc_"],
    shared: &[],
    // Variables compilers make for named criticals, where a name cannot begin with a dot.
    not: &["gomp_critical_user_"],
    // Of config/linux/{wait,futex}.h, where they were not inlined; and the locks that are no member of anything.
    plain: &[
        "acc_device_lock",
        "atomic_lock",
        "cpu_relax",
        "create_lock_lock",
        "default_lock",
        "do_spin",
        "do_wait",
        "futex_wait",
        "futex_wake",
        "register_lock",
    ],
    structs: &["priority_node", "prio_splay_tree_node_s"],
    files: &["atomic", "bar", "critical", "lock", "mutex", "oacc-init", "ptrlock", "sem", "target"],
};

/// All structs, bound to one resolved layout.
#[derive(Debug, Clone)]
pub(crate) struct Structs {
    pub(crate) thread: GompThread,
    pub(crate) team: GompTeam,
    pub(crate) task: GompTask,
    pub(crate) icv: GompTaskIcv,
    pub(crate) pool: GompThreadPool,
    pub(crate) taskgroup: GompTaskgroup,
    pub(crate) taskwait: GompTaskwait,
    pub(crate) node: PriorityNode,
    pub(crate) tree: PriorityTreeNode,
    pub(crate) depend: DependEntry,
    pub(crate) dependers: Dependers,
    pub(crate) work_share: WorkShare,
    pub(crate) doacross: Doacross,
    pub(crate) nest_lock: NestLock,
}

impl Structs {
    pub(crate) fn bind(layout: &ompd_layout::Layout) -> Structs {
        Structs {
            thread: GompThread::bind(layout),
            team: GompTeam::bind(layout),
            task: GompTask::bind(layout),
            icv: GompTaskIcv::bind(layout),
            pool: GompThreadPool::bind(layout),
            taskgroup: GompTaskgroup::bind(layout),
            taskwait: GompTaskwait::bind(layout),
            node: PriorityNode::bind(layout),
            tree: PriorityTreeNode::bind(layout),
            depend: DependEntry::bind(layout),
            dependers: Dependers::bind(layout),
            work_share: WorkShare::bind(layout),
            doacross: Doacross::bind(layout),
            nest_lock: NestLock::bind(layout),
        }
    }
}
