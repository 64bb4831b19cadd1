/* In each round one member reads from a pipe while others wait for it at a
 * barrier.  Another member feeds the pipe: not at once, but always.
 *   -DNAP  it sleeps before, else it computes */
#include "expect.h"

static int feed[2];

static void before_feeding(void) {
#ifdef NAP
    const struct timespec five_milliseconds = {0, 5000000};
    nanosleep(&five_milliseconds, NULL);
#else
    for (volatile int i = 0; i < 1000000; i++)
        ;
#endif
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    if (pipe(feed) != 0)
        truth_fail("pipe");
#pragma omp parallel num_threads(4)
    {
        int me = omp_get_thread_num();
        for (long round = 0;; round++) {
            char byte = 0;
            if (me == 0) {
                before_feeding();
                if (write(feed[1], &byte, 1) != 1)
                    truth_fail("write");
            } else if (me == 1 + round % 3 && read(feed[0], &byte, 1) != 1) {
                truth_fail("read");
            }
#pragma omp barrier
            if (me == 0)
                truth_round("io", 0);
        }
    }
}
