/* A region in a region gets one thread where the program counts on two, since
 * only one level may be active: the one waits for its partner by looking at a
 * variable. */
#include "expect.h"

static volatile int partner_came;

TRUTH_MARKER void inner_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("lonely", TRUTH_YIELD, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hang("nested_exhausted", 2);
        while (!partner_came)
            sched_yield();
    } else {
        partner_came = 1;
    }
    truth_step();
}

TRUTH_MARKER void outer_body(void) {
    if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(2)
        {
            inner_body();
            TRUTH_KEEP_FRAME();
        }
    } else {
        truth_note("outer waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, outer_body));
    }
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "suspect", .situation = "nested_exhausted", .threads = "lonely");
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
        outer_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
