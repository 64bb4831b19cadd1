/* A task whose generating task has finished.  What was outward of that is in
 * the source still; whether a runtime remembers it is another matter. */
#include "truth_stack.h"

#include <omp.h>

enum { ORPHAN_MADE };
enum { THREADS = 3 };

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_orphan", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void orphan(truth_mark outer) {
    hold(CALL(outer), "orphan");
    KEEP();
}

FRAME static void make_orphan(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        orphan(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void make_parent(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task if (0)
    {
        truth_mark in = truth_enter(opened);
        make_orphan(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void generate(truth_mark outer) {
    make_parent(CALL(outer));
    truth_stack_set(ORPHAN_MADE);
    hold(CALL(outer), "generator of the task that has finished");
    KEEP();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(3)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            coordinate(CALL(in));
        if (omp_get_thread_num() == 1)
            generate(CALL(in));
        if (omp_get_thread_num() == 2)
            truth_stack_await(ORPHAN_MADE); /* and executes it in the end of the region */
        truth_suspends(OVER(in));
        KEEP();
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
