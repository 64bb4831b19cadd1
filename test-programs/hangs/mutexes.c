/* Members take two mutexes of the C library in opposite order, and OpenMP has no part in it.
 *   -DSELF   one member locks a mutex twice
 *   -DJOIN   one member joins a thread that waits for the mutex the member holds */
#include "expect.h"

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
#if !defined(SELF) && !defined(JOIN)
static pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
static atomic_int a_held, b_held;
#endif

#ifdef JOIN
TRUTH_MARKER void *waits_for_a(void *unused) {
    truth_note_with("second", TRUTH_MUTEX, NULL, TRUTH_NO_BODY, 0);
    pthread_mutex_lock(&a);
    truth_step();
    return unused;
}
#endif

TRUTH_MARKER void first_body(void) {
    pthread_mutex_lock(&a);
#if defined(SELF)
    truth_note("first", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("mutexes", 2);
    pthread_mutex_lock(&a);
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
    truth_hang("mutexes", 2);
    pthread_mutex_lock(&b);
#endif
    truth_step();
}

TRUTH_MARKER void second_body(void) {
#if defined(SELF) || defined(JOIN)
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, second_body));
#else
    pthread_mutex_lock(&b);
    atomic_store(&b_held, 1);
    truth_wait_for(&a_held);
    truth_note("second", TRUTH_MUTEX, NULL, TRUTH_BODY(TRUTH_IMPLICIT, second_body));
    pthread_mutex_lock(&a);
    truth_step();
#endif
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
#ifdef SELF
    truth_expect(.verdict = "deadlock", .situation = "self_deadlock", .threads = "first", .objects = "");
#else
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .threads = "first,second", .objects = "");
#endif
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            first_body();
        else
            second_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
