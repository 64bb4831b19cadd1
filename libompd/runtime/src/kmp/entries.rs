//! libomp's functions by what they do (openmp/runtime/src/{kmp_csupport,kmp_tasking,kmp_ftn_entry}.*).

use crate::entry::{Construct, Entry, Locking, Role, Table};
use crate::gnu_interface;

const fn tasks(construct: Construct) -> Entry {
    Entry::new(construct, Role::RunsTasks)
}

const fn other(construct: Construct) -> Entry {
    Entry::new(construct, Role::Other)
}

pub(crate) const ENTRIES: Table = &[
    ("__kmpc_fork_call", Entry::new(Construct::Parallel, Role::OpensRegion)),
    ("__kmpc_fork_teams", Entry::new(Construct::Teams, Role::OpensLeague)),
    ("__kmpc_omp_task", Entry::new(Construct::Task, Role::GeneratesTask)),
    ("__kmpc_omp_taskwait", tasks(Construct::Taskwait)),
    ("__kmpc_omp_wait_deps", tasks(Construct::TaskwaitDepend)),
    ("__kmpc_omp_taskwait_deps", tasks(Construct::TaskwaitDepend)),
    ("__kmpc_omp_taskyield", tasks(Construct::Taskyield)),
    ("__kmpc_taskloop", Entry::new(Construct::Taskloop, Role::GeneratesTasks)),
    ("__kmpc_end_taskgroup", tasks(Construct::Taskgroup)),
    ("__kmpc_barrier", tasks(Construct::Barrier)),
    ("__kmpc_cancel_barrier", tasks(Construct::Barrier)),
    ("__kmpc_barrier_master", tasks(Construct::Barrier)),
    ("__kmpc_reduce", tasks(Construct::Reduction)),
    ("__kmpc_end_reduce", tasks(Construct::Reduction)),
    ("__kmpc_end_serialized_parallel", tasks(Construct::EndOfParallel)),
    ("__kmpc_copyprivate", tasks(Construct::Copyprivate)),
    ("__kmpc_critical", other(Construct::Critical)),
    ("__kmpc_ordered", other(Construct::Ordered)),
    ("__kmpc_doacross", other(Construct::For)),
    ("__kmpc_doacross_wait", other(Construct::OrderedSink)),
    ("__kmpc_doacross_post", other(Construct::OrderedSource)),
    ("__kmpc_dispatch", other(Construct::For)),
    ("__kmpc_single", other(Construct::Single)),
    ("__kmpc_atomic", other(Construct::Atomic)),
    ("__kmpc_set_lock", other(Construct::SetLock)),
    ("__kmpc_set_nest_lock", other(Construct::SetNestLock)),
    ("omp_set_lock", other(Construct::SetLock)),
    ("omp_set_nest_lock", other(Construct::SetNestLock)),
    ("omp_test_lock", other(Construct::TestLock)),
    ("omp_test_nest_lock", other(Construct::TestNestLock)),
    ("omp_unset_lock", other(Construct::UnsetLock)),
    ("omp_unset_nest_lock", other(Construct::UnsetNestLock)),
    ("omp_fulfill_event", other(Construct::FulfillEvent)),
];

/// The function through which the runtime calls the bodies of regions (runtime/src/z_Linux_asm.S). It is exported.
pub(crate) const INVOKES_REGIONS: &str = "__kmp_invoke_microtask";

/// In the names, mangled ones as well, of the functions that call the bodies of regions GCC compiled
/// (runtime/src/kmp_gsupport.cpp).
pub(crate) const WRAPS_BODIES: &str = "__kmp_GOMP_";

/// What a function does with a lock that its caller names (openmp/runtime/src/kmp_csupport.cpp).
pub(crate) fn lock_call(symbol: &str) -> Option<Locking> {
    let acquires = match symbol {
        "__kmpc_critical" | "__kmpc_critical_with_hint" | "__kmpc_set_lock" | "__kmpc_set_nest_lock" => true,
        "__kmpc_test_lock" | "__kmpc_test_nest_lock" => true,
        "__kmpc_end_critical" | "__kmpc_unset_lock" | "__kmpc_unset_nest_lock" => false,
        other => return gnu_interface::lock_call(other),
    };
    Some(Locking { acquires, argument: 2 })
}
