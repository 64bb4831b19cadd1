/* A member of a team waits for the end of a thread that waits for the lock the member holds.
 *   -DNEST      a nestable lock */
#include "lock_kind.h"

static some_lock a;

TRUTH_MARKER void *joined_body(void *unused) {
    truth_note("joined", LOCK_WAIT, &a, TRUTH_BODY(TRUTH_INITIAL, joined_body));
    lock_set(&a);
    truth_step();
    return unused;
}

TRUTH_MARKER void joiner_body(void) {
    pthread_t thread;
    lock_set(&a);
    truth_note_lock("a", LOCK_KIND, &a, 1);
    if (pthread_create(&thread, NULL, joined_body, NULL) != 0)
        truth_fail("pthread_create");
    truth_note("joiner", TRUTH_JOIN, NULL, TRUTH_BODY(TRUTH_IMPLICIT, joiner_body));
    truth_hang("join_lock", 3);
    pthread_join(thread, NULL);
    truth_step();
}

TRUTH_MARKER void waiter_body(void) {
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, waiter_body));
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .without_owners = "closed_waits",
                 .threads = "joiner,joined", .objects = "a");
    lock_init(&a);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            joiner_body();
        else
            waiter_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
