/* A member sleeps on a semaphore, the others at a barrier: the handler of a timer
 * posts it. -DDESCRIPTOR: it reads a timer that expires each second, and waits in
 * other rounds until it can, by epoll or poll. */
#include "expect.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#ifdef DESCRIPTOR
static int timer_descriptor, set;

static void begin(void) {
    const struct itimerspec period = {{1, 0}, {1, 0}};
    struct epoll_event event = {.events = EPOLLIN};
    timer_descriptor = timerfd_create(CLOCK_MONOTONIC, 0);
    set = epoll_create1(0);
    if (timer_descriptor < 0 || timerfd_settime(timer_descriptor, 0, &period, NULL) != 0 ||
        epoll_ctl(set, EPOLL_CTL_ADD, timer_descriptor, &event) != 0)
        truth_fail("timer");
}

static void wait_until_due(void) {
    static int round;
    uint64_t times;
    struct epoll_event event;
    struct pollfd wanted = {.fd = timer_descriptor, .events = POLLIN};
    round++;
    while (round % 3 == 1 && epoll_wait(set, &event, 1, -1) != 1)
        ;
    while (round % 3 == 2 && poll(&wanted, 1, -1) != 1)
        ;
    while (read(timer_descriptor, &times, sizeof times) != sizeof times)
        ;
}
#else
static sem_t due;

static void tick(int number) {
    (void)number;
    sem_post(&due);
}

static void begin(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    if (sem_init(&due, 0, 0) != 0 || sigaction(SIGVTALRM, &action, NULL) != 0)
        truth_fail("semaphore or handler");
    /* alarm() is for the end of the program: a timer with a signal of its own */
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    const struct itimerspec period = {{0, 20000000}, {0, 20000000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &period, NULL) != 0)
        truth_fail("timer");
}

static void wait_until_due(void) {
    while (sem_wait(&due) != 0)
        ;
}
#endif

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    begin();
#pragma omp parallel num_threads(4)
    for (;;) {
        if (omp_get_thread_num() == 1)
            wait_until_due();
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            truth_round("timer", 0);
    }
}
