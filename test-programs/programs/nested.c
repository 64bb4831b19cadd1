/* A team of 3, each member with a team of 2 inside.  In every inner team
 * thread 0 waits at a barrier for thread 1, which holds in read(). */
#include "truth.h"

TRUTH_MARKER void inner_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("inner waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
    } else if (omp_get_ancestor_thread_num(1) == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_ready("nested", 6);
        truth_release();
    } else {
        truth_note("inner holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hold();
    }
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void outer_body(void) {
#pragma omp parallel num_threads(2)
    {
        inner_body();
        TRUTH_KEEP_FRAME();
    }
    TRUTH_KEEP_FRAME();
}

int main(void) {
    truth_init();
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
    {
        outer_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
