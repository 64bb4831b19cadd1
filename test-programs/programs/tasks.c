/* Explicit tasks in every state a debugger can meet.
 *
 * Of five threads, three go to a barrier, where each takes one task: the
 * parent, the parent's child, and the member of a task group.  Thread 3 waits
 * for its task group.  Thread 4, the coordinator, then creates tasks nobody is
 * free to run.  No thread at a taskwait or taskgroup may take one of those:
 * they are no descendants of the task suspended there.
 *
 * A thread goes to the barrier only when there is a task for it: nothing in
 * OpenMP makes a thread that sleeps at a barrier wake up for a later one. */
#include "truth.h"

static atomic_int parent_made, child_made, member_made, child_started, member_started;
static int cell; /* the storage two dependent tasks fight for */

TRUTH_MARKER void child_body(void) {
    truth_note("taskwait child", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, child_body));
    atomic_store(&child_started, 1);
    truth_hold();
    truth_step();
}

TRUTH_MARKER void parent_body(void) {
#pragma omp task
    {
        child_body();
        TRUTH_KEEP_FRAME();
    }
    atomic_store(&child_made, 1);
    truth_wait_for(&child_started);
    truth_note("taskwait parent", TRUTH_TASKWAIT, NULL, TRUTH_BODY(TRUTH_EXPLICIT, parent_body));
#pragma omp taskwait
    truth_step();
}

TRUTH_MARKER void member_body(void) {
    truth_note("taskgroup member", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, member_body));
    atomic_store(&member_started, 1);
    truth_hold();
    truth_step();
}

TRUTH_MARKER void group_body(void) {
#pragma omp taskgroup
    {
#pragma omp task
        {
            member_body();
            TRUTH_KEEP_FRAME();
        }
        atomic_store(&member_made, 1);
        truth_wait_for(&member_started);
        truth_note("taskgroup waiter", TRUTH_TASKGROUP, NULL, TRUTH_BODY(TRUTH_IMPLICIT, group_body));
    }
    truth_step();
}

TRUTH_MARKER void queued_body(void) { truth_step(); }
TRUTH_MARKER void writer_body(void) { truth_step(); }
TRUTH_MARKER void reader_body(void) { truth_step(); }

TRUTH_MARKER void coordinator_body(void) {
#pragma omp task
    {
        parent_body();
        TRUTH_KEEP_FRAME();
    }
    atomic_store(&parent_made, 1);
    truth_wait_for(&child_started);
    truth_wait_for(&member_started);
    for (int i = 0; i < 3; i++) {
#pragma omp task
        {
            queued_body();
            TRUTH_KEEP_FRAME();
        }
        truth_note_task("queued_body", (uintptr_t)queued_body, "queued", 0);
    }
#pragma omp task depend(out : cell)
    {
        writer_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("writer_body", (uintptr_t)writer_body, "queued", (uintptr_t)&cell);
#pragma omp task depend(in : cell)
    {
        reader_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("reader_body", (uintptr_t)reader_body, "dependent", (uintptr_t)&cell);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinator_body));
    truth_ready("tasks", 5);
    truth_release();
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(5)
    {
        switch (omp_get_thread_num()) {
        case 0:
        case 1: /* for the parent and the member, or the child if it is there first */
            truth_wait_for(&parent_made);
            truth_wait_for(&member_made);
            break;
        case 2: /* for what the others left */
            truth_wait_for(&child_made);
            truth_wait_for(&member_made);
            break;
        case 3:
            group_body();
            break;
        case 4:
            coordinator_body();
            break;
        }
        TRUTH_KEEP_FRAME();
#pragma omp barrier
    }
    truth_done();
    return 0;
}
