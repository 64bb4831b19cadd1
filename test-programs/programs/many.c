/* many N: N threads of one region at a barrier, the last one missing.  For
 * measuring what a big team costs. */
#include "truth.h"

static int team;

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == team - 1) {
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
    team = argc == 2 ? atoi(argv[1]) : 0;
    if (team < 2 || team > TRUTH_MAX_THREADS) {
        fprintf(stderr, "usage: many N, with N from 2 to %d\n", (int)TRUTH_MAX_THREADS);
        return 2;
    }
    truth_init();
#pragma omp parallel num_threads(team)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
