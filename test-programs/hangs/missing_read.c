/* Three members wait at a barrier for the fourth, which reads from a pipe that
 * nobody writes to.  Who could write is not for a runtime to know. */
#include "expect.h"

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("reader", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_hold();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        if (omp_get_thread_num() == 1)
            truth_hang("missing_read", 4);
    }
#pragma omp barrier
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "suspect", .situation = "missing_member", .threads = "waiter,reader",
                 .missing = "reader");
#pragma omp parallel num_threads(4)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
