/* A member sleeps on a semaphore, the others at a barrier: the handler of a timer
 * posts it. */
#include "expect.h"

#include <semaphore.h>
#include <signal.h>

static sem_t due;

static void tick(int number) {
    (void)number;
    sem_post(&due);
}

int main(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    if (sem_init(&due, 0, 0) != 0 || sigaction(SIGVTALRM, &action, NULL) != 0)
        truth_fail("semaphore or handler");
    /* alarm() is for the end of the program: a timer with a signal of its own */
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    const struct itimerspec period = {{0, 20000000}, {0, 20000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &period, NULL) != 0)
        truth_fail("timer");
#pragma omp parallel num_threads(4)
    for (;;) {
        if (omp_get_thread_num() == 1)
            while (sem_wait(&due) != 0)
                ;
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            truth_round("timer", 0);
    }
}
