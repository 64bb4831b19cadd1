/* A task that is left at the end of a region, when all members have left the
 * body of that.  Thread 1 executes it there, in it an undeferred task, and in
 * that another, which holds it in read(); thread 0 waits for it to end.
 *
 * With -DCHOSEN the code before the call does not say what the body is. */
#include "truth.h"

static atomic_int task_began;

TRUTH_MARKER void innermost_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, innermost_body));
    truth_ready("tasks_left", 2);
    truth_release();
    truth_step();
}

TRUTH_MARKER void inner_body(void) {
#pragma omp task if (0)
    {
        innermost_body();
        TRUTH_KEEP_FRAME();
    }
}

TRUTH_MARKER void left_body(void) {
    atomic_store(&task_began, 1);
#pragma omp task if (0)
    {
        inner_body();
        TRUTH_KEEP_FRAME();
    }
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() != 0)
        return;
#pragma omp task
    {
        left_body();
        TRUTH_KEEP_FRAME();
    }
    truth_wait_for(&task_began);
    truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
    truth_step();
}

#ifdef CHOSEN
/* Which function is the body of the region, the program decides when it runs. */
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);

static void one_region(void *data) {
    (void)data;
    member_body();
    TRUTH_KEEP_FRAME();
}

static void other_region(void *data) {
    one_region(data);
    member_body();
}

int main(void) {
    truth_init();
    GOMP_parallel(getenv("TASKS_LEFT_OTHER") ? other_region : one_region, NULL, 2, 0);
    truth_done();
    return 0;
}
#else
int main(void) {
    truth_init();
#pragma omp parallel num_threads(2)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
#endif
