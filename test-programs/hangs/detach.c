/* The body of a task is over, but the task is detached, and nobody is left who
 * could fulfil its event: its parent waits for it, and the other members for the
 * parent.
 *   (nothing)    the parent waits in taskwait
 *   -DTASKGROUP  at the end of a taskgroup
 *   -DBARRIER    at a barrier
 *   -DUNDEFERRED in the task itself, which is not deferred */
#include "expect.h"

static atomic_int made;

#ifdef UNDEFERRED
TRUTH_MARKER void detached_body(omp_event_handle_t event) {
    truth_note_object("event", "event", (uintptr_t)event);
    atomic_store(&made, 1);
    truth_note("parent", TRUTH_EVENT, NULL, TRUTH_BODY(TRUTH_EXPLICIT, detached_body));
    truth_hang("detach", 3);
}

static void make_task(void) {
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event) if (0)
    {
        detached_body(event);
        TRUTH_KEEP_FRAME();
    }
    truth_step();
}
#else
static atomic_int ran;

TRUTH_MARKER void detached_body(void) {
    atomic_store(&ran, 1);
    TRUTH_KEEP_FRAME();
}

static void make_task(void) {
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event)
    {
        detached_body();
        TRUTH_KEEP_FRAME();
    }
    truth_note_object("event", "event", (uintptr_t)event);
    truth_note_task("detached_body", (uintptr_t)detached_body, "detached", 0);
    atomic_store(&made, 1);
    truth_wait_for(&ran);
}
#endif

#if defined(TASKGROUP)
#define WAIT TRUTH_TASKGROUP
#elif defined(BARRIER)
#define WAIT TRUTH_BARRIER
#else
#define WAIT TRUTH_TASKWAIT
#endif

TRUTH_MARKER void parent_body(void) {
#ifdef TASKGROUP
#pragma omp taskgroup
#endif
    {
        make_task();
#ifndef UNDEFERRED
        truth_note("parent", WAIT, NULL, TRUTH_BODY(TRUTH_IMPLICIT, parent_body));
        truth_hang("detach", 3);
#endif
    }
#if defined(BARRIER)
#pragma omp barrier
#elif !defined(TASKGROUP)
#pragma omp taskwait
#endif
    truth_step();
}

TRUTH_MARKER void helper_body(void) {
    /* a barrier need not wake up for a task that comes later */
    truth_wait_for(&made);
    truth_note("helper", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, helper_body));
#ifdef BARRIER
#pragma omp barrier
    truth_step();
#endif
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_barriers_spin = 1;
    /* libomp's threads spin there, and the task is in none of its records */
#ifdef BARRIER
    const char *verdict = truth_on_kmp() ? "suspect" : "deadlock";
#else
    const char *verdict = "deadlock";
#endif
    /* of a task that is not deferred, the runtime does not keep the function */
#ifdef UNDEFERRED
    const char *tasks = NULL;
#else
    const char *tasks = "detached_body";
#endif
    truth_expect(.verdict = verdict, .situation = "unfulfilled_event", .threads = "parent", .objects = "event",
                 .tasks = tasks);
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 1)
            parent_body();
        else
            helper_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
