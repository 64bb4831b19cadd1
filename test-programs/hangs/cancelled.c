/* A thread has a mutex and waits for the end of another one, whose team waits for
 * a member that wants the mutex.  The main thread cancels the first when it reads
 * a byte: its cleanup handler unlocks the mutex. */
#include "expect.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;

static void unlock(void *unused) {
    (void)unused;
    pthread_mutex_unlock(&gate);
}

TRUTH_MARKER void first_body(void) {
    truth_note("first", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("cancelled", 4);
}

TRUTH_MARKER void other_body(void) {
    truth_note("other", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, other_body));
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    truth_step();
}

static void *open_region(void *unused) {
    truth_wait_for(&held);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            first_body();
        else
            other_body();
        TRUTH_KEEP_FRAME();
    }
    fprintf(truth_out(), "{\"round\":1}\n");
    if (fflush(truth_out()) != 0)
        truth_fail("the round could not be told");
    return unused;
}

static void *own(void *unused) {
    pthread_t team;
    pthread_mutex_lock(&gate);
    pthread_cleanup_push(unlock, NULL);
    atomic_store(&held, 1);
    if (pthread_create(&team, NULL, open_region, NULL) != 0)
        truth_fail("pthread_create");
    truth_note_with("owner", TRUTH_JOIN, NULL, TRUTH_NO_BODY, 0);
    pthread_join(team, NULL);
    pthread_cleanup_pop(1);
    return unused;
}

int main(void) {
    pthread_t owner;
    char byte;
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "suspect", .situation = "missing_member", .threads = "first,other,owner");
    if (pthread_create(&owner, NULL, own, NULL) != 0)
        truth_fail("pthread_create");
    truth_note_with("canceller", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    while (read(0, &byte, 1) == 1)
        pthread_cancel(owner);
    return 0;
}
