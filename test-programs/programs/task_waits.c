/* Tasks that generated others and wait for them.  Thread 0's implicit task waits in a taskwait, in which the thread
 * executes "outer"; that waits in a taskwait of its own, in which the thread executes "inner", which holds.  Thread 1
 * holds all the time. */
#include "truth.h"

static atomic_int holding;

TRUTH_MARKER void inner_body(void) {
    truth_wait_for(&holding);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, inner_body));
    truth_ready("task_waits", 2);
    truth_release();
}

TRUTH_MARKER void outer_body(void) {
#pragma omp task
    inner_body();
#pragma omp taskwait /* of the outer task */
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task
            outer_body();
#pragma omp taskwait /* of the implicit task */
            truth_step();
        } else {
            truth_note("holder", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
            atomic_store(&holding, 1);
            truth_hold();
        }
    }
    truth_done();
    return 0;
}
