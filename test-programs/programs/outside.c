/* Members that wait outside of OpenMP, each in another way, until the first of them lets all go on.  A role says what the member
 * waits for, and what is true of it: ids of threads and processes, numbers of descriptors. */
#include "truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { COORDINATES, SLEEPS, READS, POLLS, WATCHES, RECEIVES, RECEIVES_LOCALLY, AWAITS_CHILD, JOINS, LOCKS, AWAITS_SIGNAL, AWAITS_POST, MEMBERS };

static char roles[MEMBERS][64];
/* What the child writes to, or keeps open: the pipe's other end and the connection's. */
static int fed[2], connection[2], local[2], event, watched;
static pid_t child;
static pthread_t helper;
static atomic_int helper_lwp, mutex_owner;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t due = PTHREAD_COND_INITIALIZER;
static sem_t post;
static int released;

/* A connection of the machine to itself: one end for this process, one for the child. */
static void connect_both(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    connection[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || connection[1] < 0 || bind(listening, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listening, 1) != 0 || getsockname(listening, (struct sockaddr *)&at, &size) != 0 ||
        connect(connection[1], (struct sockaddr *)&at, sizeof at) != 0)
        truth_fail("a connection");
    connection[0] = accept(listening, NULL, NULL);
    if (connection[0] < 0 || close(listening) != 0)
        truth_fail("accept");
}

/* Has the other ends until it is told to end by the signal. */
static void make_child(void) {
    child = fork();
    if (child < 0)
        truth_fail("fork");
    if (child == 0) {
        close(truth_hold_pipe[1]);
        close(fed[0]);
        close(connection[0]);
        close(local[0]);
        alarm(600);
        for (;;)
            pause();
    }
    close(fed[1]);
    close(connection[1]);
    close(local[1]);
}

static void *help(void *unused) {
    pthread_mutex_lock(&mutex);
    atomic_store(&mutex_owner, 1);
    atomic_store(&helper_lwp, (int)syscall(SYS_gettid));
    truth_hold();
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void ignore(int number) { (void)number; }

TRUTH_MARKER void wait_in(int member) {
    struct pollfd polled = {fed[0], POLLIN, 0};
    struct epoll_event happened;
    char byte;
    switch (member) {
    case SLEEPS:
        usleep(1000000000);
        break;
    case READS:
        if (read(fed[0], &byte, 1) != 0)
            truth_fail("read");
        break;
    case POLLS:
        poll(&polled, 1, -1);
        break;
    case WATCHES:
        epoll_wait(watched, &happened, 1, -1);
        break;
    case RECEIVES:
        if (recv(connection[0], &byte, 1, 0) != 0)
            truth_fail("recv");
        break;
    case RECEIVES_LOCALLY:
        if (recvfrom(local[0], &byte, 1, 0, NULL, NULL) != 0)
            truth_fail("recvfrom");
        break;
    case AWAITS_CHILD:
        waitpid(child, NULL, 0);
        break;
    case JOINS:
        pthread_join(helper, NULL);
        break;
    case LOCKS:
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        break;
    case AWAITS_SIGNAL:
        pthread_mutex_lock(&guard);
        while (!released)
            pthread_cond_wait(&due, &guard);
        pthread_mutex_unlock(&guard);
        break;
    default:
        while (sem_wait(&post) != 0)
            ;
    }
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void waiting_body(void) {
    int member = omp_get_thread_num();
    char *role = roles[member];
    switch (member) {
    case SLEEPS:
        sprintf(role, "usleep");
        break;
    case READS:
        sprintf(role, "read %d %d", fed[0], (int)child);
        break;
    case POLLS:
        sprintf(role, "poll %d %d", fed[0], (int)child);
        break;
    case WATCHES:
        sprintf(role, "epoll_wait %d", event);
        break;
    case RECEIVES:
        sprintf(role, "recv %d %d", connection[0], (int)child);
        break;
    case RECEIVES_LOCALLY:
        sprintf(role, "recvfrom %d %d", local[0], (int)child);
        break;
    case AWAITS_CHILD:
        sprintf(role, "waitpid %d", (int)child);
        break;
    case JOINS:
        sprintf(role, "pthread_join %d", atomic_load(&helper_lwp));
        break;
    case LOCKS:
        sprintf(role, "pthread_mutex_lock %d", atomic_load(&helper_lwp));
        break;
    case AWAITS_SIGNAL:
        sprintf(role, "pthread_cond_wait");
        break;
    default:
        sprintf(role, "sem_wait");
    }
    truth_note(role, TRUTH_OTHER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, waiting_body));
    wait_in(member);
    truth_step();
}

/* Lets all of them go on; the sleeper by a signal that is handled, which ends its sleep. */
static void wake(void) {
    uint64_t one = 1;
    pthread_mutex_lock(&guard);
    released = 1;
    pthread_cond_broadcast(&due);
    pthread_mutex_unlock(&guard);
    if (write(event, &one, sizeof one) != sizeof one || sem_post(&post) != 0 || kill(child, SIGTERM) != 0)
        truth_fail("waking the others");
    for (int i = 0; i < MEMBERS; i++)
        if (truth_threads[i].role == roles[SLEEPS])
            syscall(SYS_tgkill, getpid(), truth_threads[i].lwp, SIGUSR1);
    truth_release();
}

TRUTH_MARKER void coordinating_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinating_body));
    truth_ready("outside", MEMBERS);
    truth_step();
    wake();
}

int main(void) {
    struct epoll_event wanted = {.events = EPOLLIN};
    struct sigaction action = {.sa_handler = ignore};
    truth_init();
    event = eventfd(0, 0);
    watched = epoll_create1(0);
    if (pipe(fed) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, local) != 0 || event < 0 || watched < 0 || epoll_ctl(watched, EPOLL_CTL_ADD, event, &wanted) != 0 ||
        sem_init(&post, 0, 0) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        truth_fail("what is waited for");
    connect_both();
    make_child();
    if (pthread_create(&helper, NULL, help, NULL) != 0)
        truth_fail("pthread_create");
    truth_wait_for(&mutex_owner);
    while (atomic_load(&helper_lwp) == 0)
        sched_yield();
#pragma omp parallel num_threads(MEMBERS)
    {
        if (omp_get_thread_num() == COORDINATES)
            coordinating_body();
        else
            waiting_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
