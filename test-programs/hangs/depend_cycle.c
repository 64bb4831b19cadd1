/* A parent that holds a lock waits for a task; the task depends on another, and
 * that waits for the lock.
 *   (nothing)   the parent waits by `taskwait depend` for the later task only
 *   -DTASKWAIT  ... by a plain taskwait, which waits for both
 *   -DNEST      with a nestable lock, in either case */
#include "lock_kind.h"

static some_lock gate;
static atomic_int made, running;
static int first, second; /* the storage of the dependences */

TRUTH_MARKER void writer_body(void) {
    truth_note("writer", LOCK_WAIT, &gate, TRUTH_BODY(TRUTH_EXPLICIT, writer_body));
    atomic_store(&running, 1);
    lock_set(&gate);
    truth_step();
    lock_unset(&gate);
}

TRUTH_MARKER void reader_body(void) { truth_step(); }

TRUTH_MARKER void parent_body(void) {
    lock_set(&gate);
    truth_note_lock("gate", LOCK_KIND, &gate, 1);
    truth_note_object("first", "dependence", (uintptr_t)&first);
#pragma omp task depend(out : first)
    {
        writer_body();
        TRUTH_KEEP_FRAME();
    }
    atomic_store(&made, 1);
    truth_wait_for(&running);
#pragma omp task depend(in : first) depend(out : second)
    {
        reader_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("reader_body", (uintptr_t)reader_body, "dependent", (uintptr_t)&first);
    truth_note("parent", TRUTH_TASKWAIT, NULL, TRUTH_BODY(TRUTH_IMPLICIT, parent_body));
    truth_hang("depend_cycle", 3);
#ifdef TASKWAIT
#pragma omp taskwait
#else
#pragma omp taskwait depend(in : second)
#endif
    truth_step();
}

TRUTH_MARKER void bystander_body(void) {
    truth_wait_for(&running);
    truth_note("bystander", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, bystander_body));
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_barriers_spin = 1;
    lock_init(&gate);
#ifdef TASKWAIT
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .also = "dependence_cycle",
                 .without_owners = "closed_waits", .threads = "parent,writer", .objects = "gate", .tasks = "writer");
#else
    truth_expect(.verdict = "deadlock", .situation = "dependence_cycle", .also = "lock_cycle",
                 .without_owners = "closed_waits", .threads = "parent,writer", .objects = "gate",
                 .tasks = "writer,reader_body");
#endif
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 0)
            parent_body();
        else if (omp_get_thread_num() == 1)
            truth_wait_for(&made); /* at the end of the region it takes the writer */
        else
            bystander_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
