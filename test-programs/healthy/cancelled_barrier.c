/* A member waits at a barrier with a mutex that another one wants before it gets
 * there.  The third cancels the region: the barrier ends, and the mutex is free. */
#include "expect.h"

#include <unistd.h>

enum { MEMBERS = 3, NAP_MS = 150 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void unlock(pthread_mutex_t **locked) { pthread_mutex_unlock(*locked); }

int main(int argc, char **arguments) {
    static atomic_int held;
    (void)argc;
    if (!omp_get_cancellation()) {
        if (setenv("OMP_CANCELLATION", "true", 1) != 0 || execv("/proc/self/exe", arguments) != 0)
            truth_fail("execv");
    }
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    for (;;) {
        atomic_store(&held, 0);
#pragma omp parallel num_threads(MEMBERS)
        {
            int me = omp_get_thread_num();
            if (me == 0) {
                truth_wait_for(&held);
                usleep(1000 * NAP_MS);
#pragma omp cancel parallel
            } else {
                if (me == 2)
                    truth_wait_for(&held);
                pthread_mutex_lock(&gate);
                __attribute__((cleanup(unlock))) pthread_mutex_t *locked = &gate;
                atomic_store(&held, 1);
#pragma omp barrier
                truth_step();
            }
        }
        truth_round("cancelled_barrier", 0);
    }
}
