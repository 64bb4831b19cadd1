//! libgomp's functions by what they do (libgomp/{parallel,team,task,barrier,critical,loop,sections,single,ordered,
//! lock,teams}.c). libomp has them as well, for programs built by GCC. GCC makes the calls that open regions, generate
//! tasks and end constructs, and some more, without giving them a line (gcc/omp-expand.cc; seen with GCC 12 at -O0 and -O2).

use crate::entry::{Entry, Role, Table};

const fn region(construct: &'static str) -> Entry {
    Entry::new(construct, Role::OpensRegion).unplaced()
}

const fn end(construct: &'static str) -> Entry {
    tasks(construct).unplaced()
}

const fn tasks(construct: &'static str) -> Entry {
    Entry::new(construct, Role::RunsTasks)
}

const fn other(construct: &'static str) -> Entry {
    Entry::new(construct, Role::Other)
}

pub(crate) const ENTRIES: Table = &[
    ("GOMP_parallel", region("parallel")),
    ("GOMP_parallel_loop", region("parallel for")),
    ("GOMP_parallel_sections", region("parallel sections")),
    ("GOMP_teams_reg", Entry::new("teams", Role::OpensLeague).unplaced()),
    ("GOMP_task", Entry::new("task", Role::GeneratesTask).unplaced()),
    ("GOMP_taskloop", Entry::new("taskloop", Role::GeneratesTasks).unplaced()),
    // It prefers children of the current task, and yet takes others where these have a higher priority.
    ("GOMP_taskwait", tasks("taskwait")),
    ("GOMP_taskwait_depend", end("taskwait depend")),
    ("GOMP_taskgroup", end("taskgroup")),
    ("GOMP_taskyield", tasks("taskyield")),
    ("GOMP_barrier", tasks("barrier")),
    ("GOMP_loop_end", end("end of for")),
    ("GOMP_sections_end", end("end of sections")),
    ("GOMP_loop", other("for")),
    ("GOMP_sections", other("sections")),
    ("GOMP_single", other("single")),
    ("GOMP_critical", other("critical")),
    ("GOMP_atomic", other("atomic")),
    ("GOMP_ordered", other("ordered").unplaced()),
    ("GOMP_doacross_wait", other("ordered depend(sink)")),
    ("GOMP_doacross_ull_wait", other("ordered depend(sink)")),
    ("GOMP_doacross", other("ordered depend(source)")),
    ("GOMP_target", other("target")),
    ("GOMP_workshare_task_reduction_unregister", tasks("end of worksharing")),
    ("omp_set_lock", other("omp_set_lock")),
    ("omp_set_nest_lock", other("omp_set_nest_lock")),
    ("omp_test_lock", other("omp_test_lock")),
    ("omp_test_nest_lock", other("omp_test_nest_lock")),
    ("omp_unset_lock", other("omp_unset_lock")),
    ("omp_unset_nest_lock", other("omp_unset_nest_lock")),
    ("omp_fulfill_event", other("omp_fulfill_event")),
];
