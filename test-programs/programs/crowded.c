/* Four threads; thread 0, the coordinator, holds in read(), the others go on
 * all the time, each looking at a variable. */
#include "truth.h"

enum { THREADS = 4 };

static atomic_int stop;

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_ready("crowded", THREADS);
        atomic_store(&stop, 1);
    } else {
        truth_note("runner", TRUTH_YIELD, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        while (!atomic_load(&stop))
            sched_yield();
    }
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(THREADS)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
