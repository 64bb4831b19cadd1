/* Regions whose last act is a call of a function that opens a region as its last act: optimised code jumps from the body of
 * the one into the call that opens the other, and neither the body nor the function has a frame any more. */
#include "truth_stack.h"

#include <omp.h>

enum { THREADS = 3 };

/* What the inner regions are chained to, by number in the outer one: what is passed would keep the frame that passes it. */
static truth_mark opened_by[2];

/* The pragma of the same line, which is the last act of its function: with nothing to pass to the body, GCC gives the call the
 * line of the statement before. */
#define LAST(OUTER) truth_opens((OUTER), __FILE__, __func__, __LINE__, TRUTH_TAIL, "parallel")

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_regions", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void two(truth_mark outer) {
    opened_by[0] = LAST(outer); _Pragma("omp parallel num_threads(2)")
    {
        truth_mark in = truth_enter(opened_by[0]);
        if (omp_get_thread_num() == 0)
            coordinate(CALL(in));
        else
            hold(CALL(in), "member of two");
        KEEP();
    }
}

FRAME static void alone(truth_mark outer) {
    opened_by[1] = LAST(outer); _Pragma("omp parallel num_threads(1)")
    {
        truth_mark in = truth_enter(opened_by[1]);
        hold(CALL(in), "member of one");
        KEEP();
    }
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            two(TAIL(in, 0));
        else
            alone(TAIL(in, 0));
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    omp_set_max_active_levels(2);
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
