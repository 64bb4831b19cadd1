/* many N: N threads of one region at a barrier, the last one missing.  For
 * measuring what a big team costs.
 * many N lock: the last one waits for a lock that the first has set.  It stays so.
 * libgomp only: elsewhere it would not sleep there. */
#include "truth.h"

static int team;
static omp_lock_t *lock;

TRUTH_MARKER void member_body(void) {
    if (lock && omp_get_thread_num() == 0) {
        omp_set_lock(lock);
        truth_note_lock("lock", "lock", lock, 1);
    }
    if (lock && omp_get_thread_num() == team - 1) {
        truth_note("coordinator", TRUTH_LOCK, lock, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_tell("many", team);
        omp_set_lock(lock);
    } else if (omp_get_thread_num() == team - 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_ready("many", team);
        truth_release();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    }
#pragma omp barrier
    truth_step();
}

int main(int argc, char **argv) {
    omp_lock_t own;
    int is_locked = argc == 3 && strcmp(argv[2], "lock") == 0;
    team = argc == 2 || is_locked ? atoi(argv[1]) : 0;
    if (team < 2 || team > TRUTH_MAX_THREADS) {
        fprintf(stderr, "usage: many N [lock], with N from 2 to %d\n", (int)TRUTH_MAX_THREADS);
        return 2;
    }
    truth_init();
    if (is_locked) {
        omp_init_lock(&own);
        lock = &own;
    }
#pragma omp parallel num_threads(team)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
