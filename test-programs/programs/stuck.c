/* A team that is stuck for good, beside a main thread that tells about it.
 *   stuck locks     two threads take two locks in opposite order
 *   stuck barriers  one thread waits at a barrier the other has skipped
 * Released, the program leaves without the team. */
#include "truth.h"

static omp_lock_t first, second;
static atomic_int first_held, second_held;
static int with_locks;

TRUTH_MARKER void locks_body(void) {
    int me = omp_get_thread_num();
    omp_lock_t *mine = me == 0 ? &first : &second, *other = me == 0 ? &second : &first;
    omp_set_lock(mine);
    atomic_store(me == 0 ? &first_held : &second_held, 1);
    truth_wait_for(me == 0 ? &second_held : &first_held);
    truth_note("lock waiter", TRUTH_LOCK, other, TRUTH_BODY(TRUTH_IMPLICIT, locks_body));
    omp_set_lock(other);
}

TRUTH_MARKER void barriers_body(void) {
    truth_note("barrier waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, barriers_body));
    if (omp_get_thread_num() == 0) {
#pragma omp barrier
    }
}

static void *team_thread(void *unused) {
#pragma omp parallel num_threads(2)
    {
        if (with_locks)
            locks_body();
        else
            barriers_body();
        TRUTH_KEEP_FRAME();
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    truth_init();
    with_locks = argc > 1 && strcmp(argv[1], "locks") == 0;
    omp_init_lock(&first);
    omp_init_lock(&second);
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    if (pthread_create(&thread, NULL, team_thread, NULL) != 0)
        truth_fail("pthread_create");
    truth_ready("stuck", 3);
    truth_done();
    fflush(stdout);
    _exit(0);
}
