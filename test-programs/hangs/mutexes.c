/* Members take two mutexes of the C library in opposite order, and OpenMP has no part in it.
 *   -DSELF     one member locks a mutex twice
 *   -DJOIN     one member joins a thread that waits for the mutex the member holds
 *   -DRWLOCK   they are read-write locks, and one member wants to read
 *   -DHANDLER  a third member executes the handler of a signal that the others block */
#include "expect.h"

#include <signal.h>
#include <unistd.h>

#ifdef HANDLER
enum { MEMBERS = 3 };
#else
enum { MEMBERS = 2 };
#endif

#ifdef RWLOCK
typedef pthread_rwlock_t mutex;
#define UNLOCKED PTHREAD_RWLOCK_INITIALIZER
#define LOCK pthread_rwlock_wrlock
#define LOCK_TOO pthread_rwlock_rdlock
#else
typedef pthread_mutex_t mutex;
#define UNLOCKED PTHREAD_MUTEX_INITIALIZER
#define LOCK pthread_mutex_lock
#define LOCK_TOO pthread_mutex_lock
#endif

static mutex a = UNLOCKED;
#if !defined(SELF) && !defined(JOIN)
static mutex b = UNLOCKED;
static atomic_int a_held, b_held;
#endif

#ifdef JOIN
TRUTH_MARKER void *waits_for_a(void *unused) {
    truth_note_with("second", TRUTH_MUTEX, NULL, TRUTH_NO_BODY, 0);
    LOCK(&a);
    truth_step();
    return unused;
}
#endif

TRUTH_MARKER void first_body(void) {
    LOCK(&a);
#if defined(SELF)
    truth_note("first", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("mutexes", 2);
    LOCK(&a);
#elif defined(JOIN)
    pthread_t thread;
    if (pthread_create(&thread, NULL, waits_for_a, NULL) != 0)
        truth_fail("pthread_create");
    truth_note("first", TRUTH_JOIN, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("mutexes", 3);
    pthread_join(thread, NULL);
#else
    atomic_store(&a_held, 1);
    truth_wait_for(&b_held);
    truth_note("first", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("mutexes", MEMBERS);
    LOCK_TOO(&b);
#endif
    truth_step();
}

TRUTH_MARKER void second_body(void) {
#if defined(SELF) || defined(JOIN)
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, second_body));
#else
    LOCK(&b);
    atomic_store(&b_held, 1);
    truth_wait_for(&a_held);
    truth_note("second", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, second_body));
    LOCK(&a);
    truth_step();
#endif
}

#ifdef HANDLER
static int never[2];

static void handle(int number) {
    char byte;
    (void)number;
    while (read(never[0], &byte, 1) != 0) {
    }
}

static void block(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    if (pthread_sigmask(how, &signals, NULL) != 0)
        truth_fail("pthread_sigmask");
}

TRUTH_MARKER void third_body(void) {
    truth_note("third", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, third_body));
    block(SIG_UNBLOCK);
    pthread_kill(pthread_self(), SIGUSR1);
    truth_step();
}
#else
static void third_body(void) { truth_fail("there are two members"); }
#endif

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
#ifdef HANDLER
    struct sigaction action = {.sa_handler = handle};
    block(SIG_BLOCK);
    if (pipe(never) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        truth_fail("a pipe and a handler");
    truth_expect(.verdict = "suspect", .situation = "lock_cycle", .threads = "first,second", .objects = "");
#elif defined(SELF)
    truth_expect(.verdict = "deadlock", .situation = "self_deadlock", .threads = "first", .objects = "");
#else
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .threads = "first,second", .objects = "");
#endif
#pragma omp parallel num_threads(MEMBERS)
    {
        int me = omp_get_thread_num();
        if (me == 0)
            first_body();
        else if (me == 1)
            second_body();
        else
            third_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
