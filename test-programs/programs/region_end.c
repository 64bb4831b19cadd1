/* A nested region whose thread 0 is held in it while the other members have
 * finished and wait at its end: they are neither idle nor missing. */
#include "truth.h"

TRUTH_MARKER void inner_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("inner holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hold();
    } else {
        truth_note("end waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
    }
    truth_step();
}

TRUTH_MARKER void outer_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, outer_body));
        truth_ready("region_end", 4);
        truth_release();
        truth_step();
        return;
    }
#pragma omp parallel num_threads(3)
    {
        inner_body();
        TRUTH_KEEP_FRAME();
    }
}

int main(void) {
    truth_init();
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        outer_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
