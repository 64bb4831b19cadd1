/* A signal comes to a member that waits at a barrier.  Its handler takes a while,
 * and posts the semaphore for which the other member waits before the barrier. */
#include "expect.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { NAP_MS = 150 };

static sem_t posted;

static void handle(int number) {
    struct timespec nap = {0, 1000000L * NAP_MS};
    (void)number;
    nanosleep(&nap, NULL);
    sem_post(&posted);
}

int main(void) {
    static atomic_int begun;
    pthread_t first = pthread_self();
    struct sigaction action = {.sa_handler = handle};
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    sigfillset(&action.sa_mask);
    if (sem_init(&posted, 0, 0) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        truth_fail("a semaphore and a handler");
    for (;;) {
        atomic_store(&begun, 0);
#pragma omp parallel num_threads(2)
        {
            if (omp_get_thread_num() == 0) {
                atomic_store(&begun, 1);
            } else {
                sigset_t blocked;
                sigemptyset(&blocked);
                sigaddset(&blocked, SIGUSR1);
                pthread_sigmask(SIG_BLOCK, &blocked, NULL);
                truth_wait_for(&begun);
                usleep(10000);
                pthread_kill(first, SIGUSR1);
                while (sem_wait(&posted) != 0) {
                }
            }
#pragma omp barrier
        }
        truth_round("handler_works", 0);
    }
}
