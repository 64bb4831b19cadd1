/* The region is over, its workers are parked, and the initial thread reads from
 * a pipe: a server that waits for requests. */
#include "expect.h"

TRUTH_MARKER void region_body(void) {
    if (omp_get_thread_num() != 0)
        truth_note_idle("idle worker");
}

TRUTH_MARKER void after_region_body(void) {
    truth_note("initial thread", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_INITIAL, after_region_body));
    truth_round("idle", 4);
    truth_hold();
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
#pragma omp parallel num_threads(4)
    {
        region_body();
        TRUTH_KEEP_FRAME();
    }
    after_region_body();
    return 0;
}
