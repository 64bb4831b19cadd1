/* A member has set a lock and waits for two tasks.  One of them waits for the
 * lock.  The other may not begin beside it: both have the same mutexinoutset
 * dependence. */
#include "expect.h"

static omp_lock_t lock;
static atomic_int begun;

TRUTH_MARKER void task_body(void) {
    atomic_store(&begun, 1);
    truth_note("waiter", TRUTH_LOCK, &lock, TRUTH_BODY(TRUTH_EXPLICIT, task_body));
    omp_set_lock(&lock);
    truth_step();
}

TRUTH_MARKER void excluded_body(void) {
    truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void member_body(void) {
    static int value;
    if (omp_get_thread_num() != 1)
        return; /* to the end of the region, where it executes the task */
    omp_set_lock(&lock);
    truth_note_lock("lock", "lock", &lock, 1);
#pragma omp task depend(mutexinoutset : value)
    {
        task_body();
        TRUTH_KEEP_FRAME();
    }
    truth_wait_for(&begun);
#pragma omp task depend(mutexinoutset : value)
    {
        excluded_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("excluded_body", (uintptr_t)excluded_body, "dependent", (uintptr_t)&value);
    truth_note("owner", TRUTH_TASKWAIT, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    truth_hang("excluded", 2);
#pragma omp taskwait
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_barriers_spin = 1;
    omp_init_lock(&lock);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .without_owners = "closed_waits",
                 .threads = "owner,waiter", .objects = "lock");
#pragma omp parallel num_threads(2)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
