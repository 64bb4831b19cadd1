/* Members of a team wait for one that reads from a pipe that nobody writes to.
 * Who could write is not for a runtime to know.
 *   (nothing)  three wait at a barrier
 *   -DTASK     the one that reads does so in a task, for which another member
 *              waits in taskwait; a second task depends on it
 *   -DOWN      it does so in a task that it executes in its own taskwait, and
 *              the other waits at a barrier
 *   -DNESTED   it is a member of an inner team, and they wait at the ends of
 *              both regions */
#include "expect.h"

#if defined(TASK)
static atomic_int begun;

TRUTH_MARKER void reading_body(void) {
    atomic_store(&begun, 1);
    truth_note("reader", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, reading_body));
    truth_hold();
}

TRUTH_MARKER void never_body(void) {
    truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void member_body(void) {
    static int value;
    if (omp_get_thread_num() != 1)
        return; /* to the end of the region, where it executes the task */
#pragma omp task depend(inout : value)
    {
        reading_body();
        TRUTH_KEEP_FRAME();
    }
    truth_wait_for(&begun);
#pragma omp task depend(inout : value)
    {
        never_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("never_body", (uintptr_t)never_body, "dependent", (uintptr_t)&value);
    truth_note("waiter", TRUTH_TASKWAIT, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    truth_hang("missing_read", 2);
#pragma omp taskwait
    truth_step();
}
#elif defined(OWN)
static atomic_int begun;

TRUTH_MARKER void reading_body(void) {
    atomic_store(&begun, 1);
    truth_note("reader", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, reading_body));
    truth_hold();
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 1) {
#pragma omp task
        {
            reading_body();
            TRUTH_KEEP_FRAME();
        }
#pragma omp taskwait
    } else {
        truth_wait_for(&begun);
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_hang("missing_read", 2);
    }
#pragma omp barrier
    truth_step();
}
#elif defined(NESTED)
TRUTH_MARKER void inner_body(void) {
    if (omp_get_thread_num() == 1) {
        truth_note("reader", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hold();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hang("missing_read", 3);
    }
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(2)
        {
            inner_body();
            TRUTH_KEEP_FRAME();
        }
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    }
#pragma omp barrier
    truth_step();
}
#else
TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("reader", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_hold();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        if (omp_get_thread_num() == 1)
            truth_hang("missing_read", 4);
    }
#pragma omp barrier
    truth_step();
}
#endif

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
#if defined(TASK)
    truth_barriers_spin = 1;
    const char *situation = "closed_waits", *tasks = "reader";
    int members = 2;
#elif defined(OWN)
    truth_barriers_spin = 1;
    const char *situation = "missing_member", *tasks = NULL;
    int members = 2;
#elif defined(NESTED)
    const char *situation = "missing_member", *tasks = NULL;
    int members = 2;
    omp_set_max_active_levels(2);
#else
    const char *situation = "missing_member", *tasks = NULL;
    int members = 4;
#endif
    truth_expect(.verdict = "suspect", .situation = situation, .threads = "waiter,reader", .missing = "reader",
                 .tasks = tasks);
#pragma omp parallel num_threads(members)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
