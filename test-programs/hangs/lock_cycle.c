/* Two members take two locks in opposite order, and each waits for the other's;
 * the other two wait for them at the end of the region.
 *   -DNEST      nestable locks
 *   -DCRITICAL  two named critical sections */
#include "lock_kind.h"

#ifdef CRITICAL
TRUTH_CRITICAL_WORD(a);
TRUTH_CRITICAL_WORD(b);
#define A a_word
#define B b_word
/* Clang gives a word its name only if it makes it before its address is asked for. */
void make_words(void) {
#pragma omp critical(a)
#pragma omp critical(b)
    truth_step();
}
#undef LOCK_WAIT
#undef LOCK_KIND
#define LOCK_WAIT TRUTH_CRITICAL
#define LOCK_KIND "critical"
#else
static some_lock a, b;
#define A (&a)
#define B (&b)
#endif

static atomic_int a_held, b_held;

TRUTH_MARKER void a_first_body(void) {
#ifdef CRITICAL
#pragma omp critical(a)
#else
    lock_set(A);
#endif
    {
        truth_note_lock("a", LOCK_KIND, A, 1);
        atomic_store(&a_held, 1);
        truth_wait_for(&b_held);
        truth_note("holder of a", LOCK_WAIT, B, TRUTH_BODY(TRUTH_IMPLICIT, a_first_body));
#ifdef CRITICAL
#pragma omp critical(b)
#else
        lock_set(B);
#endif
        truth_step();
    }
}

TRUTH_MARKER void b_first_body(void) {
#ifdef CRITICAL
#pragma omp critical(b)
#else
    lock_set(B);
#endif
    {
        truth_note_lock("b", LOCK_KIND, B, 1);
        atomic_store(&b_held, 1);
        truth_wait_for(&a_held);
        truth_note("holder of b", LOCK_WAIT, A, TRUTH_BODY(TRUTH_IMPLICIT, b_first_body));
        truth_hang("lock_cycle", 4);
#ifdef CRITICAL
#pragma omp critical(a)
#else
        lock_set(A);
#endif
        truth_step();
    }
}

TRUTH_MARKER void bystander_body(void) {
    truth_note("bystander", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, bystander_body));
}

int main(void) {
    static void (*const bodies[4])(void) = {a_first_body, bystander_body, b_first_body, bystander_body};
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .without_owners = "closed_waits",
                 .threads = "holder of a,holder of b", .objects = "a,b");
#ifndef CRITICAL
    lock_init(A);
    lock_init(B);
#endif
#pragma omp parallel num_threads(4)
    {
        bodies[omp_get_thread_num()]();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
