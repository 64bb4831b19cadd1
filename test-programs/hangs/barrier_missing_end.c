/* Three members wait at a barrier of the program's, the fourth has skipped it
 * and waits at the end of the region.
 *
 * Two members that wait at two different `barrier` directives are no hang:
 * neither compilers nor runtimes number them, so they meet. */
#include "expect.h"

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("skipper", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        return;
    }
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    if (omp_get_thread_num() == 0)
        truth_hang("barrier_missing_end", 4);
#pragma omp barrier
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "barrier_mismatch", .threads = "waiter,skipper");
#pragma omp parallel num_threads(4)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
