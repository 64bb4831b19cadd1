/* In each round one member waits for something outside of OpenMP, the others for it at a barrier.  A thread of the
 * program's own or another process ends the wait: not at once, but always.  The ways to wait come one after the other. */
#include "expect.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum way { MUTEX, RWLOCK, CONDITION, SEMAPHORE, BARRIER, JOIN, EVENT, CHILD, SLEEP, PIPE, POLL, SOCKET, SHARED, WAYS };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static sem_t asked, ready, done, *shared;
static int event, events, orders[2], answers[2], sockets[2], signalled;
static enum way way;

static void nap(void) {
    const struct timespec two_milliseconds = {0, 2000000};
    nanosleep(&two_milliseconds, NULL);
}

static void must(int works, const char *what) {
    if (!works)
        truth_fail(what);
}

static void *short_life(void *unused) {
    nap();
    return unused;
}

/* The other process: it answers each order, by the way the order names. */
static void answer(void) {
    char order;
    while (read(orders[0], &order, 1) == 1) {
        nap();
        if (order == SHARED)
            sem_post(shared);
        else if (write(order == SOCKET ? sockets[1] : answers[1], &order, 1) != 1)
            break;
    }
    _exit(0);
}

/* The thread that ends the waits that this process ends itself. */
static void *wake(void *unused) {
    const uint64_t one = 1;
    for (;;) {
        sem_wait(&asked);
        if (way == MUTEX)
            pthread_mutex_lock(&mutex);
        if (way == RWLOCK)
            pthread_rwlock_wrlock(&rwlock);
        sem_post(&ready);
        nap();
        switch (way) {
        case MUTEX:
            pthread_mutex_unlock(&mutex);
            break;
        case RWLOCK:
            pthread_rwlock_unlock(&rwlock);
            break;
        case CONDITION:
            pthread_mutex_lock(&guard);
            signalled = 1;
            pthread_cond_signal(&condition);
            pthread_mutex_unlock(&guard);
            break;
        case SEMAPHORE:
            sem_post(&done);
            break;
        case BARRIER:
            pthread_barrier_wait(&both);
            break;
        case EVENT:
            must(write(event, &one, sizeof one) == sizeof one, "write to the eventfd");
            break;
        default:
            break;
        }
    }
    return unused;
}

/* Waits until the thread that wakes others is where it has to be. */
static void ask(enum way which) {
    way = which;
    sem_post(&asked);
    sem_wait(&ready);
}

static void order(char which) { must(write(orders[1], &which, 1) == 1, "write to the other process"); }

static void wait_in(enum way which) {
    char byte;
    uint64_t count;
    struct pollfd readable = {answers[0], POLLIN, 0};
    struct epoll_event found;
    pthread_t thread;
    pid_t child;
    switch (which) {
    case MUTEX:
        ask(which);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        break;
    case RWLOCK:
        ask(which);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        break;
    case CONDITION:
        pthread_mutex_lock(&guard);
        signalled = 0;
        ask(which);
        while (!signalled)
            pthread_cond_wait(&condition, &guard);
        pthread_mutex_unlock(&guard);
        break;
    case SEMAPHORE:
        ask(which);
        sem_wait(&done);
        break;
    case BARRIER:
        ask(which);
        pthread_barrier_wait(&both);
        break;
    case JOIN:
        must(pthread_create(&thread, NULL, short_life, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
        break;
    case EVENT:
        ask(which);
        /* To be stopped and let go ends this call (signal(7)). */
        while (epoll_wait(events, &found, 1, -1) != 1)
            must(errno == EINTR, "epoll_wait");
        must(read(event, &count, sizeof count) == sizeof count, "read of the eventfd");
        break;
    case CHILD:
        child = fork();
        if (child == 0) {
            nap();
            _exit(0);
        }
        must(child > 0 && waitpid(child, NULL, 0) == child, "waitpid");
        break;
    case PIPE:
        order(PIPE);
        must(read(answers[0], &byte, 1) == 1, "read");
        break;
    case POLL:
        order(POLL);
        must(poll(&readable, 1, -1) == 1 && read(answers[0], &byte, 1) == 1, "poll");
        break;
    case SOCKET:
        order(SOCKET);
        must(recv(sockets[0], &byte, 1, 0) == 1, "recv");
        break;
    case SHARED:
        order(SHARED);
        sem_wait(shared);
        break;
    default:
        nap();
    }
}

int main(void) {
    pthread_t waker;
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED && sem_init(shared, 1, 0) == 0, "shared memory");
    must(pipe(orders) == 0 && pipe(answers) == 0, "pipe");
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    pid_t parent = getpid(), other = fork();
    must(other >= 0, "fork");
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(TRUTH_HEALTHY_SECONDS);
        if (getppid() == parent)
            answer();
        _exit(0);
    }
    event = eventfd(0, 0);
    events = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN};
    must(event >= 0 && events >= 0 && epoll_ctl(events, EPOLL_CTL_ADD, event, &in) == 0, "eventfd");
    must(sem_init(&asked, 0, 0) == 0 && sem_init(&ready, 0, 0) == 0 && sem_init(&done, 0, 0) == 0, "sem_init");
    must(pthread_barrier_init(&both, NULL, 2) == 0, "pthread_barrier_init");
    must(pthread_create(&waker, NULL, wake, NULL) == 0, "pthread_create");
#pragma omp parallel num_threads(3)
    for (long round = 0;; round++) {
        if (omp_get_thread_num() == round % 3)
            wait_in((enum way)(round % WAYS));
#pragma omp barrier
        if (omp_get_thread_num() == 0)
            truth_round("outside_waits", 0);
    }
}
