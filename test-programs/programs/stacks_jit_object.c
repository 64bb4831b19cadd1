/* The code that stacks_jit.c loads as a JIT compiler would. */
#include "stacks_jit.h"

#include <omp.h>

FRAME static void visit_one(truth_mark outer, visitor *visit) {
    visit(CALL(outer), omp_get_thread_num());
    KEEP();
}

void jit_visit(truth_mark outer, int threads, visitor *visit) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(threads)
    {
        truth_mark in = truth_enter(opened);
        visit_one(CALL(in), visit);
        truth_leave(in);
    }
    KEEP();
}

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
