/* A task is ready, and would release what all members wait for; but where they
 * wait, for a lock, nobody runs tasks. */
#include "expect.h"

static omp_lock_t gate;
static atomic_int made;

TRUTH_MARKER void releaser_body(void) {
    omp_unset_lock(&gate);
    truth_step();
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 0) {
        omp_set_lock(&gate);
        truth_note_lock("gate", "lock", &gate, 1);
#pragma omp task
        {
            releaser_body();
            TRUTH_KEEP_FRAME();
        }
        truth_note_task("releaser_body", (uintptr_t)releaser_body, "queued", 0);
        atomic_store(&made, 1);
    }
    truth_wait_for(&made);
    truth_note(omp_get_thread_num() == 0 ? "owner" : "waiter", TRUTH_LOCK, &gate,
               TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    if (omp_get_thread_num() == 2)
        truth_hang("task_never_run", 3);
    omp_set_lock(&gate);
    truth_step();
    omp_unset_lock(&gate);
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    /* By what is recorded of owners, the one who took the lock waits for itself. */
    truth_expect(.verdict = "deadlock", .situation = "task_never_run", .also = "self_deadlock,closed_waits",
                 .threads = "owner,waiter", .objects = "gate", .tasks = "releaser_body");
    omp_init_lock(&gate);
#pragma omp parallel num_threads(3)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
