/* Threads that open regions end and are made anew all the time. */
#include "expect.h"

static volatile int cell[8];

static void *short_life(void *unused) {
    for (int i = 0; i < 3; i++) {
#pragma omp parallel num_threads(3)
        cell[omp_get_thread_num()]++;
    }
    return unused;
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    for (int round = 0;; round++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, short_life, NULL) != 0)
                truth_fail("pthread_create");
#pragma omp parallel num_threads(2 + round % 3)
        cell[4 + omp_get_thread_num()]++;
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        truth_round("threads_come_and_go", 0);
    }
}
