/* A member waits for a lock that it holds itself; the others wait for it at the
 * end of the region.
 *   -DCRITICAL  a critical section whose body calls a function with the same
 *   -DUNDEFERRED  the member waits in an undeferred task */
#include "lock_kind.h"

#ifdef CRITICAL
TRUTH_CRITICAL_WORD(ledger);
#else
static omp_lock_t ledger;
#endif

#ifdef UNDEFERRED
TRUTH_MARKER void task_body(void) {
    truth_note("holder", TRUTH_LOCK, &ledger, TRUTH_BODY(TRUTH_EXPLICIT, task_body));
    truth_hang("self_lock", 4);
    omp_set_lock(&ledger);
    truth_step();
}
#endif

TRUTH_MARKER void twice_body(void) {
#ifdef CRITICAL
    truth_note_lock("ledger", "critical", ledger_word, 1);
    truth_note("holder", TRUTH_CRITICAL, ledger_word, TRUTH_BODY(TRUTH_IMPLICIT, twice_body));
    truth_hang("self_lock", 4);
#pragma omp critical(ledger)
    truth_step();
#else
    omp_set_lock(&ledger);
    truth_note_lock("ledger", "lock", &ledger, 1);
#ifdef UNDEFERRED
#pragma omp task if (0)
    task_body();
#else
    truth_note("holder", TRUTH_LOCK, &ledger, TRUTH_BODY(TRUTH_IMPLICIT, twice_body));
    truth_hang("self_lock", 4);
    omp_set_lock(&ledger);
    truth_step();
#endif
#endif
}

TRUTH_MARKER void bystander_body(void) {
    truth_note("bystander", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, bystander_body));
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "self_deadlock", .without_owners = "closed_waits",
                 .threads = "holder", .objects = "ledger");
#ifndef CRITICAL
    omp_init_lock(&ledger);
#endif
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 1) {
#ifdef CRITICAL
#pragma omp critical(ledger)
#endif
            twice_body();
        } else {
            bystander_body();
        }
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
