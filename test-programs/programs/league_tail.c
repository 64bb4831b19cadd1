/* A region that is the last thing a team of a league does: optimised code jumps into the runtime, and no frame of the league's
 * body is left.  Thread 0 waits at the end of the region. */
#include "truth.h"

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        truth_ready("league_tail", 2);
        truth_release();
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    }
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp teams num_teams(1) thread_limit(2)
    {
#pragma omp parallel num_threads(2)
        {
            member_body();
            TRUTH_KEEP_FRAME();
        }
    }
    truth_done();
    return 0;
}
