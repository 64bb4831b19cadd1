/* A member goes to a barrier with a lock it holds; another, whom the barrier
 * waits for, waits for that lock.
 *   -DNEST      a nestable lock
 *   -DCRITICAL  a critical section */
#include "lock_kind.h"

#ifdef CRITICAL
TRUTH_CRITICAL_WORD(gate);
#define GATE gate_word
#undef LOCK_WAIT
#undef LOCK_KIND
#define LOCK_WAIT TRUTH_CRITICAL
#define LOCK_KIND "critical"
#else
static some_lock gate;
#define GATE (&gate)
#endif

static atomic_int held;

/* No compiler takes a barrier within a critical section that it sees. */
__attribute__((noinline)) static void meet(void) {
#pragma omp barrier
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void holder_body(void) {
#ifdef CRITICAL
#pragma omp critical(gate)
#else
    lock_set(GATE);
#endif
    {
        truth_note_lock("gate", LOCK_KIND, GATE, 1);
        atomic_store(&held, 1);
        truth_note("holder", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, holder_body));
        meet();
    }
}

TRUTH_MARKER void waiter_body(void) {
    truth_wait_for(&held);
    truth_note("waiter", LOCK_WAIT, GATE, TRUTH_BODY(TRUTH_IMPLICIT, waiter_body));
    truth_hang("missing_lock", 4);
#ifdef CRITICAL
#pragma omp critical(gate)
#else
    lock_set(GATE);
#endif
    truth_step();
    meet();
}

TRUTH_MARKER void bystander_body(void) {
    truth_note("bystander", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, bystander_body));
    meet();
}

int main(void) {
    static void (*const bodies[4])(void) = {bystander_body, holder_body, bystander_body, waiter_body};
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .also = "missing_member",
                 .without_owners = "closed_waits", .threads = "holder,waiter", .missing = "waiter",
                 .objects = "gate");
#ifndef CRITICAL
    lock_init(GATE);
#endif
#pragma omp parallel num_threads(4)
    {
        bodies[omp_get_thread_num()]();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
