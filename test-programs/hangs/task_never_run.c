/* A task is ready, and would release what all members wait for; but where they
 * wait nobody runs it.
 *   (nothing)    all wait for a lock
 *   -DUNRELATED  the same, and the task has nothing to do with the lock
 *   -DDETACH     all are in taskwait: for a detached child, whose own child is the
 *                one that would fulfil its event.  libgomp runs no grandchildren
 *                there; libomp does, and does not hang */
#include "expect.h"

static atomic_int made;

#ifdef DETACH
static omp_event_handle_t events[2];

TRUTH_MARKER void releaser_body(int member) {
    omp_fulfill_event(events[member]);
    truth_step();
}

/* What a member does inside taskwait, and after that nothing. */
static void child_body(int member) {
#pragma omp task
    {
        releaser_body(member);
        TRUTH_KEEP_FRAME();
    }
    truth_note_task("releaser_body", (uintptr_t)releaser_body, "queued", 0);
    truth_note_with("waiter", TRUTH_TASKWAIT, NULL, TRUTH_NO_BODY, 0);
    if (member == 0) {
        truth_wait_for(&made);
        truth_hang("task_never_run", 2);
    }
}

TRUTH_MARKER void member_body(void) {
    int me = omp_get_thread_num();
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event)
    child_body(me);
    events[me] = event;
    truth_note_object(me == 0 ? "event 0" : "event 1", "event", (uintptr_t)event);
    if (me == 1)
        atomic_store(&made, 1);
#pragma omp taskwait
    truth_step();
}
#else
static omp_lock_t gate;

TRUTH_MARKER void releaser_body(void) {
#ifndef UNRELATED
    omp_unset_lock(&gate);
#endif
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
#endif

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
#ifdef DETACH
    truth_expect(.verdict = "deadlock", .situation = "task_never_run", .also = "unfulfilled_event",
                 .threads = "waiter", .tasks = "releaser_body");
#pragma omp parallel num_threads(2)
#else
#ifdef UNRELATED
    truth_expect(.verdict = "deadlock", .situation = "closed_waits", .also = "self_deadlock", .threads = "owner",
                 .objects = "gate");
#else
    /* By what is recorded of owners, the one who took the lock waits for itself. */
    truth_expect(.verdict = "deadlock", .situation = "task_never_run", .also = "self_deadlock,closed_waits",
                 .threads = "owner,waiter", .objects = "gate", .tasks = "releaser_body");
#endif
    omp_init_lock(&gate);
#pragma omp parallel num_threads(3)
#endif
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
