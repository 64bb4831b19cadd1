/* A league of two teams on the host.  The initial thread of team 1 holds outside any region.  libomp has a thread for each
 * team; libgomp executes them one after the other. */
#include "truth.h"

int main(void) {
    truth_init();
#pragma omp teams num_teams(2) thread_limit(2)
    {
        if (omp_get_team_num() == 1) {
            if (omp_get_num_teams() != 2)
                truth_fail("no league of two");
            truth_note_with("team 1", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
            truth_ready("league", 1);
            truth_release();
        }
    }
    truth_done();
    return 0;
}
