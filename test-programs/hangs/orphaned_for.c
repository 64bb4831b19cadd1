/* Three members meet a worksharing construct and wait at its end for the
 * fourth, which has skipped it and waits at the end of the region.
 *   (nothing)    a loop with dynamic schedule
 *   -DSTATIC     a loop with static schedule: gcc divides it up by itself, and
 *                to libgomp its end is a barrier like any other
 *   -DSECTIONS   sections
 *   -DSINGLE     single */
#include "expect.h"

static atomic_int work;

/* Of its own, as in a library that does not know who calls it. */
__attribute__((noinline)) static void share(void) {
#if defined(SECTIONS)
#pragma omp sections
    {
        atomic_fetch_add(&work, 1);
#pragma omp section
        atomic_fetch_add(&work, 1);
    }
#elif defined(SINGLE)
#pragma omp single
    atomic_fetch_add(&work, 1);
#else
#ifdef STATIC
#pragma omp for schedule(static)
#else
#pragma omp for schedule(dynamic)
#endif
    for (int i = 0; i < 8; i++)
        atomic_fetch_add(&work, 1);
#endif
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("skipper", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        return;
    }
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    if (omp_get_thread_num() == 0)
        truth_hang("orphaned_for", 4);
    share();
    truth_step();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "orphaned_worksharing", .also = "barrier_mismatch",
                 .threads = "waiter,skipper");
#pragma omp parallel num_threads(4)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
