/* The library of stacks_shared.c. */
#include "truth_stack.h"

#include <omp.h>

typedef void visitor(truth_mark outer, int number);

void library_visit(truth_mark outer, int threads, visitor *visit);
void library_visit_in_task(truth_mark outer, visitor *visit);

FRAME static void visit_one(truth_mark outer, visitor *visit) {
    visit(CALL(outer), omp_get_thread_num());
    KEEP();
}

void library_visit(truth_mark outer, int threads, visitor *visit) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(threads)
    {
        truth_mark in = truth_enter(opened);
        visit_one(CALL(in), visit);
        truth_leave(in);
    }
    KEEP();
}

void library_visit_in_task(truth_mark outer, visitor *visit) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task if (0)
    {
        truth_mark in = truth_enter(opened);
        visit_one(CALL(in), visit); /* clang 14 cannot compile a call of `visit` here */
        truth_leave(in);
    }
    KEEP();
}
