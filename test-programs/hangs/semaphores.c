/* Both members wait for a semaphore that one of them would post behind the barrier. */
#include "expect.h"

#include <semaphore.h>

static sem_t posted;

TRUTH_MARKER void first_body(void) {
    truth_note("first", TRUTH_OTHER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("semaphores", 2);
    sem_wait(&posted);
    truth_step();
}

TRUTH_MARKER void second_body(void) {
    truth_note("second", TRUTH_OTHER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, second_body));
    sem_wait(&posted);
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    if (sem_init(&posted, 0, 0) != 0)
        truth_fail("sem_init");
    truth_expect(.verdict = "deadlock", .situation = "closed_waits", .threads = "first,second", .objects = "");
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            first_body();
        else
            second_body();
#pragma omp barrier
#pragma omp single
        {
            sem_post(&posted);
            sem_post(&posted);
        }
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
