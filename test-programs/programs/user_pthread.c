/* Two threads of the program, main and a plain pthread, have a region each at
 * the same time: two contention groups. */
#include "truth.h"

TRUTH_MARKER void pthread_region_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("pthread team holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, pthread_region_body));
        truth_hold();
    } else {
        truth_note("pthread team waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, pthread_region_body));
    }
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void main_region_body(void) {
    if (omp_get_thread_num() == 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, main_region_body));
        truth_ready("user_pthread", 5);
        truth_release();
    } else {
        truth_note("main team waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, main_region_body));
    }
#pragma omp barrier
    truth_step();
}

static void *user_thread(void *unused) {
#pragma omp parallel num_threads(3)
    {
        pthread_region_body();
        TRUTH_KEEP_FRAME();
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    truth_init();
    if (pthread_create(&thread, NULL, user_thread, NULL) != 0)
        truth_fail("pthread_create");
#pragma omp parallel num_threads(2)
    {
        main_region_body();
        TRUTH_KEEP_FRAME();
    }
    if (pthread_join(thread, NULL) != 0)
        truth_fail("pthread_join");
    truth_done();
    /* Not exit: libgomp ends the pool of the pthread with pthread_exit, and waits for none of its threads. exit in a
     * static program takes away the unwind tables that pthread_exit reads, and the process aborts. */
    _exit(0);
}
