/* Internal control variables that differ from thread to thread, and between
 * a region and the region around it. */
#include "truth.h"

/* Libraries before OpenMP 5.0 and 5.1 have no such calls. */
extern void omp_set_num_teams(int) __attribute__((weak));
extern void omp_set_teams_thread_limit(int) __attribute__((weak));

TRUTH_MARKER void coordinator_body(void) {
    omp_set_num_threads(7);
    omp_set_schedule(omp_sched_guided, 7);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinator_body));
    truth_ready("icvs", 3);
    truth_release();
    truth_step();
}

TRUTH_MARKER void dynamic_body(void) {
    omp_set_num_threads(11);
    omp_set_dynamic(1);
    omp_set_schedule(omp_sched_dynamic, 5);
    omp_set_max_active_levels(4);
    omp_set_default_device(0);
    truth_note("dynamic holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, dynamic_body));
    truth_hold();
    truth_step();
}

TRUTH_MARKER void inside_body(void) {
    /* nthreads is inherited from nested_body; the schedule is this region's own */
    omp_set_schedule(omp_sched_static, 3);
    truth_note("nested holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inside_body));
    truth_hold();
    truth_step();
}

TRUTH_MARKER void nested_body(void) {
    omp_set_num_threads(13);
    omp_set_schedule(omp_sched_auto, 0);
#pragma omp parallel num_threads(1)
    {
        inside_body();
        TRUTH_KEEP_FRAME();
    }
}

int main(void) {
    static void (*const bodies[3])(void) = {coordinator_body, dynamic_body, nested_body};
    truth_init();
    if (omp_set_num_teams)
        omp_set_num_teams(6);
    if (omp_set_teams_thread_limit)
        omp_set_teams_thread_limit(9);
#pragma omp parallel num_threads(3)
    {
        bodies[omp_get_thread_num()]();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
