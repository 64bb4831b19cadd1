/* The code that stacks_jit.c loads as a JIT compiler would. */
#define REGION jit_visit
#include "stacks_jit.h"

FRAME static void hold(truth_mark outer) {
    truth_stack_note("task of the loaded code", STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

void jit_task(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task if (0)
    {
        truth_mark in = truth_enter(opened);
        hold(CALL(in));
        truth_leave(in);
    }
    KEEP();
}
