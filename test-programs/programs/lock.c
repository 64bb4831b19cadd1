/* Three ways to wait for another thread: a lock, a named critical section and
 * a nestable lock.  Each has one holder, in read(), and one waiter. */
#include "truth.h"

/* The words the compiler makes for `critical(ledger)`. */
#if defined(__clang__)
extern char ledger_word[] __asm__(".gomp_critical_user_ledger.var");
#else
extern char ledger_word[] __asm__(".gomp_critical_user_ledger");
#endif

static omp_lock_t gate;
static omp_nest_lock_t stairs;
static atomic_int gate_held, ledger_held, stairs_held;

TRUTH_MARKER void gate_holder_body(void) {
    omp_set_lock(&gate);
    truth_note_lock("gate", "lock", &gate, 1);
    atomic_store(&gate_held, 1);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, gate_holder_body));
    truth_ready("lock", 6);
    truth_release();
    omp_unset_lock(&gate);
    truth_step();
}

TRUTH_MARKER void gate_waiter_body(void) {
    truth_wait_for(&gate_held);
    truth_note("lock waiter", TRUTH_LOCK, &gate, TRUTH_BODY(TRUTH_IMPLICIT, gate_waiter_body));
    omp_set_lock(&gate);
    truth_step();
    omp_unset_lock(&gate);
}

TRUTH_MARKER void ledger_holder_body(void) {
#pragma omp critical(ledger)
    {
        truth_note_lock("ledger", "critical", ledger_word, 1);
        atomic_store(&ledger_held, 1);
        truth_note("critical holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, ledger_holder_body));
        truth_hold();
        truth_step();
    }
}

TRUTH_MARKER void ledger_waiter_body(void) {
    truth_wait_for(&ledger_held);
    truth_note("critical waiter", TRUTH_CRITICAL, ledger_word, TRUTH_BODY(TRUTH_IMPLICIT, ledger_waiter_body));
#pragma omp critical(ledger)
    truth_step();
}

TRUTH_MARKER void stairs_holder_body(void) {
    omp_set_nest_lock(&stairs);
    omp_set_nest_lock(&stairs);
    truth_note_lock("stairs", "nest_lock", &stairs, 2);
    atomic_store(&stairs_held, 1);
    truth_note("nest lock holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, stairs_holder_body));
    truth_hold();
    omp_unset_nest_lock(&stairs);
    omp_unset_nest_lock(&stairs);
    truth_step();
}

TRUTH_MARKER void stairs_waiter_body(void) {
    truth_wait_for(&stairs_held);
    truth_note("nest lock waiter", TRUTH_NEST_LOCK, &stairs, TRUTH_BODY(TRUTH_IMPLICIT, stairs_waiter_body));
    omp_set_nest_lock(&stairs);
    truth_step();
    omp_unset_nest_lock(&stairs);
}

int main(void) {
    static void (*const bodies[6])(void) = {gate_holder_body,   gate_waiter_body,   ledger_holder_body,
                                            ledger_waiter_body, stairs_holder_body, stairs_waiter_body};
    truth_init();
    omp_init_lock(&gate);
    omp_init_nest_lock(&stairs);
#pragma omp parallel num_threads(6)
    {
        bodies[omp_get_thread_num()]();
        TRUTH_KEEP_FRAME();
    }
    omp_destroy_nest_lock(&stairs);
    omp_destroy_lock(&gate);
    truth_done();
    return 0;
}
