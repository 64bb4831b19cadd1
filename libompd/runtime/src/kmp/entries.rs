//! libomp's functions by what they do (openmp/runtime/src/{kmp_csupport,kmp_tasking,kmp_ftn_entry}.*).

use crate::entry::{Entry, Role, Table};

const fn tasks(construct: &'static str) -> Entry {
    Entry::new(construct, Role::RunsTasks)
}

const fn other(construct: &'static str) -> Entry {
    Entry::new(construct, Role::Other)
}

pub(crate) const ENTRIES: Table = &[
    ("__kmpc_fork_call", Entry::new("parallel", Role::OpensRegion)),
    ("__kmpc_fork_teams", Entry::new("teams", Role::OpensLeague)),
    ("__kmpc_omp_task", Entry::new("task", Role::GeneratesTask)),
    ("__kmpc_omp_taskwait", tasks("taskwait")),
    ("__kmpc_omp_wait_deps", tasks("taskwait depend")),
    ("__kmpc_omp_taskwait_deps", tasks("taskwait depend")),
    ("__kmpc_omp_taskyield", tasks("taskyield")),
    ("__kmpc_taskloop", Entry::new("taskloop", Role::GeneratesTasks)),
    ("__kmpc_end_taskgroup", tasks("taskgroup")),
    ("__kmpc_barrier", tasks("barrier")),
    ("__kmpc_cancel_barrier", tasks("barrier")),
    ("__kmpc_barrier_master", tasks("barrier")),
    ("__kmpc_reduce", tasks("reduction")),
    ("__kmpc_end_reduce", tasks("reduction")),
    ("__kmpc_end_serialized_parallel", tasks("end of parallel")),
    ("__kmpc_copyprivate", tasks("copyprivate")),
    ("__kmpc_critical", other("critical")),
    ("__kmpc_ordered", other("ordered")),
    ("__kmpc_doacross", other("for")),
    ("__kmpc_doacross_wait", other("ordered depend(sink)")),
    ("__kmpc_doacross_post", other("ordered depend(source)")),
    ("__kmpc_dispatch", other("for")),
    ("__kmpc_single", other("single")),
    ("__kmpc_atomic", other("atomic")),
    ("__kmpc_set_lock", other("omp_set_lock")),
    ("__kmpc_set_nest_lock", other("omp_set_nest_lock")),
    ("omp_set_lock", other("omp_set_lock")),
    ("omp_set_nest_lock", other("omp_set_nest_lock")),
    ("omp_test_lock", other("omp_test_lock")),
    ("omp_test_nest_lock", other("omp_test_nest_lock")),
    ("omp_unset_lock", other("omp_unset_lock")),
    ("omp_unset_nest_lock", other("omp_unset_nest_lock")),
    ("omp_fulfill_event", other("omp_fulfill_event")),
];

/// The function through which the runtime calls the bodies of regions (runtime/src/z_Linux_asm.S). It is exported.
pub(crate) const INVOKES_REGIONS: &str = "__kmp_invoke_microtask";

/// In the names, mangled ones as well, of the functions that call the bodies of regions GCC compiled
/// (runtime/src/kmp_gsupport.cpp).
pub(crate) const WRAPS_BODIES: &str = "__kmp_GOMP_";
