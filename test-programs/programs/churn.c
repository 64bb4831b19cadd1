/* Teams of one to eight threads, one after the other, without end: threads
 * are started, join and leave all the time.  What an inspector meets when it
 * stops a program anywhere at all.  A byte on stdin, or its end, stops it. */
#include "truth.h"

enum { LARGEST = 8 };

static atomic_int stop;

/* Not a thread of OpenMP's: the teams must not wait for orders. */
static void *orders(void *unused) {
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    truth_ready("churn", 1);
    atomic_store(&stop, 1);
    return unused;
}

int main(void) {
    const struct timespec rest = {0, 200 * 1000};
    pthread_t coordinator;
    truth_init();
    if (pthread_create(&coordinator, NULL, orders, NULL) != 0)
        truth_fail("pthread_create");
    for (int size = 1; !atomic_load(&stop); size = size % LARGEST + 1) {
#pragma omp parallel num_threads(size)
        nanosleep(&rest, NULL); /* short enough to be stopped anywhere, long enough to leave the processor to others */
    }
    if (pthread_join(coordinator, NULL) != 0)
        truth_fail("pthread_join");
    truth_step();
    truth_done();
    return 0;
}
