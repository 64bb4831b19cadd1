/* Two members take a mutex of the C library and a lock of OpenMP in opposite order, and each waits for the other's.
 *   -DNEST      a nestable lock
 *   -DCRITICAL  a named critical section */
#include "lock_kind.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int mutex_held, lock_held;

#ifdef CRITICAL
TRUTH_CRITICAL_WORD(a);
#define A a_word
/* Clang gives the word its name only if it makes it before its address is asked for. */
void make_word(void) {
#pragma omp critical(a)
    truth_step();
}
#undef LOCK_WAIT
#undef LOCK_KIND
#define LOCK_WAIT TRUTH_CRITICAL
#define LOCK_KIND "critical"
#else
static some_lock a;
#define A (&a)
#endif

TRUTH_MARKER void mutex_first_body(void) {
    pthread_mutex_lock(&mutex);
    atomic_store(&mutex_held, 1);
    truth_wait_for(&lock_held);
    truth_note("holder of the mutex", LOCK_WAIT, A, TRUTH_BODY(TRUTH_IMPLICIT, mutex_first_body));
#ifdef CRITICAL
#pragma omp critical(a)
#else
    lock_set(A);
#endif
    truth_step();
}

TRUTH_MARKER void lock_first_body(void) {
#ifdef CRITICAL
#pragma omp critical(a)
#else
    lock_set(A);
#endif
    {
        truth_note_lock("a", LOCK_KIND, A, 1);
        atomic_store(&lock_held, 1);
        truth_wait_for(&mutex_held);
        truth_note("holder of a", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, lock_first_body));
        truth_hang("mutex_and_lock", 2);
        pthread_mutex_lock(&mutex);
        truth_step();
    }
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .without_owners = "closed_waits",
                 .threads = "holder of the mutex,holder of a", .objects = "a");
#ifndef CRITICAL
    lock_init(A);
#endif
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            mutex_first_body();
        else
            lock_first_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
