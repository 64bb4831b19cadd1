/* A thread of the program's own takes a lock and ends; later all members of a
 * team wait for the lock.
 *   -DNEST  a nestable lock */
#include "lock_kind.h"

static some_lock gate;

static void *owner(void *unused) {
    lock_set(&gate);
    truth_note_gone("owner");
    truth_note_lock("gate", LOCK_KIND, &gate, 1);
    return unused;
}

TRUTH_MARKER void waiter_body(void) {
    truth_note("waiter", LOCK_WAIT, &gate, TRUTH_BODY(TRUTH_IMPLICIT, waiter_body));
    if (omp_get_thread_num() == 1)
        truth_hang("owner_gone", 4);
    lock_set(&gate);
    truth_step();
}

int main(void) {
    pthread_t thread;
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "owner_gone", .without_owners = "closed_waits",
                 .threads = "waiter", .objects = "gate");
    lock_init(&gate);
    /* The team comes first: else a member could be given the number the owner
     * had, and be taken for it by libomp. */
#pragma omp parallel num_threads(4)
    truth_step();
    if (pthread_create(&thread, NULL, owner, NULL) != 0 || pthread_join(thread, NULL) != 0)
        truth_fail("the owner of the lock");
#pragma omp parallel num_threads(4)
    {
        waiter_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
