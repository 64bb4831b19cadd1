/* The region is over: its three workers are parked by the runtime, the initial
 * thread holds in read() outside any region. */
#include "truth.h"

TRUTH_MARKER void first_region_body(void) {
    if (omp_get_thread_num() != 0)
        truth_note_idle("idle worker");
}

TRUTH_MARKER void second_region_body(void) { truth_step(); }

TRUTH_MARKER void after_region_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_INITIAL, after_region_body));
    truth_ready("idle", 4);
    truth_release();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(4)
    {
        first_region_body();
        TRUTH_KEEP_FRAME();
    }
    after_region_body();
    /* the parked workers must still be good for another region */
#pragma omp parallel num_threads(4)
    {
        second_region_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
