/* A member is in vfork(): the kernel holds it, asleep and not to be interrupted,
 * until the child ends.  Another member waits at a barrier for it.  Released, the
 * program ends the child, and the member comes. */
#include "truth.h"

#include <signal.h>

/* The child has the memory of its parent. */
static volatile pid_t child;

TRUTH_MARKER void vforking_body(void) {
    pid_t started = vfork();
    if (started < 0)
        truth_fail("vfork");
    if (started == 0) {
        child = getpid();
        for (;;)
            pause();
    }
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void waiting_body(void) {
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, waiting_body));
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void coordinating_body(void) {
    while (child == 0)
        sched_yield();
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinating_body));
    truth_ready("vforked", 2);
    truth_release();
    if (kill(child, SIGKILL) != 0)
        truth_fail("kill");
#pragma omp barrier
    truth_step();
}

int main(void) {
    static void (*const bodies[3])(void) = {coordinating_body, vforking_body, waiting_body};
    truth_init();
#pragma omp parallel num_threads(3)
    {
        bodies[omp_get_thread_num()]();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
