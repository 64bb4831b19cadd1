/* A member leaves a critical section by longjmp, which OpenMP does not allow:
 * nobody ever leaves it again.  The member goes to the end of the region, the
 * others wait for the section.
 *
 * (An exception does not get that far: compilers end a program whose exceptions
 * leave a critical section.) */
#include "expect.h"
#include <setjmp.h>

TRUTH_CRITICAL_WORD(ledger);
static atomic_int left;

__attribute__((noinline, noreturn)) static void give_up(jmp_buf *outside) { longjmp(*outside, 1); }

TRUTH_MARKER void leaver_body(void) {
    jmp_buf outside;
    if (setjmp(outside) == 0) {
#pragma omp critical(ledger)
        {
            truth_note_lock("ledger", "critical", ledger_word, 1);
            give_up(&outside);
        }
    }
    atomic_store(&left, 1);
    truth_note("leaver", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, leaver_body));
}

TRUTH_MARKER void waiter_body(void) {
    truth_wait_for(&left);
    truth_note("waiter", TRUTH_CRITICAL, ledger_word, TRUTH_BODY(TRUTH_IMPLICIT, waiter_body));
    if (omp_get_thread_num() == 2)
        truth_hang("critical_left", 3);
#pragma omp critical(ledger)
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .also = "missing_member",
                 .without_owners = "closed_waits", .threads = "leaver,waiter", .objects = "ledger");
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 1)
            leaver_body();
        else
            waiter_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
