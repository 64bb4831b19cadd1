//! The interface of GCC: the functions that programs built by it call, by what they do.
//!
//! They are in libgomp/{parallel,team,task,barrier,critical,loop,sections,single,ordered,lock,teams}.c. The runtime
//! libomp has them as well. GCC gives no line to the calls that open regions, generate tasks and end constructs, nor to
//! some more. This is in gcc/omp-expand.cc, and was seen with GCC 12 at -O0 and -O2.

use crate::entry::{self, Construct, Entry, Locking, Role, Table};

const fn region(construct: Construct) -> Entry {
    Entry::new(construct, Role::OpensRegion).unplaced().with_body(0)
}

const fn end(construct: Construct) -> Entry {
    tasks(construct).unplaced()
}

const fn tasks(construct: Construct) -> Entry {
    Entry::new(construct, Role::RunsTasks)
}

const fn other(construct: Construct) -> Entry {
    Entry::new(construct, Role::Other)
}

pub(crate) const ENTRIES: Table = &[
    ("GOMP_parallel", region(Construct::Parallel)),
    ("GOMP_parallel_loop", region(Construct::ParallelFor)),
    ("GOMP_parallel_sections", region(Construct::ParallelSections)),
    ("GOMP_teams_reg", Entry::new(Construct::Teams, Role::OpensLeague).unplaced().with_body(0)),
    ("GOMP_task", Entry::new(Construct::Task, Role::GeneratesTask).unplaced().with_body(0)),
    ("GOMP_taskloop", Entry::new(Construct::Taskloop, Role::GeneratesTasks).unplaced().with_body(0)),
    // It prefers children of the current task, and yet takes others where these have a higher priority.
    ("GOMP_taskwait", tasks(Construct::Taskwait)),
    ("GOMP_taskwait_depend", end(Construct::TaskwaitDepend)),
    ("GOMP_taskgroup", end(Construct::Taskgroup)),
    ("GOMP_taskyield", tasks(Construct::Taskyield)),
    ("GOMP_barrier", tasks(Construct::Barrier)),
    ("GOMP_loop_end", end(Construct::EndOfFor)),
    ("GOMP_sections_end", end(Construct::EndOfSections)),
    ("GOMP_loop", other(Construct::For)),
    ("GOMP_sections", other(Construct::Sections)),
    ("GOMP_single", other(Construct::Single)),
    ("GOMP_critical", other(Construct::Critical)),
    ("GOMP_atomic", other(Construct::Atomic)),
    ("GOMP_ordered", other(Construct::Ordered).unplaced()),
    ("GOMP_doacross_wait", other(Construct::OrderedSink)),
    ("GOMP_doacross_ull_wait", other(Construct::OrderedSink)),
    ("GOMP_doacross", other(Construct::OrderedSource)),
    ("GOMP_target", other(Construct::Target).with_body(1)),
    ("GOMP_workshare_task_reduction_unregister", tasks(Construct::EndOfWorksharing)),
    ("omp_set_lock", other(Construct::SetLock)),
    ("omp_set_nest_lock", other(Construct::SetNestLock)),
    ("omp_test_lock", other(Construct::TestLock)),
    ("omp_test_nest_lock", other(Construct::TestNestLock)),
    ("omp_unset_lock", other(Construct::UnsetLock)),
    ("omp_unset_nest_lock", other(Construct::UnsetNestLock)),
    ("omp_fulfill_event", other(Construct::FulfillEvent)),
];

/// The functions that acquire and release the lock of a named critical, which is their first argument (libgomp/critical.c).
const CRITICALS: &[(&str, bool)] = &[("GOMP_critical_name_start", true), ("GOMP_critical_name_end", false)];

/// What a function does with a lock that its caller names.
pub(crate) fn lock_call(symbol: &str) -> Option<Locking> {
    let critical = CRITICALS.iter().find(|(function, _)| *function == symbol);
    critical.map(|(_, acquires)| Locking { acquires: *acquires, argument: 0 }).or_else(|| entry::lock_routine(symbol))
}
