/* Four threads, three of them at a barrier; thread 2 does not come: it is the
 * coordinator and holds in read(). */
#include "truth.h"

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_ready("barrier_missing", 4);
        truth_release();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    }
#pragma omp barrier
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(4)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
