/* The library of stacks_shared.c. */
#define REGION library_visit
#include "stacks_visit.h"

void library_visit_in_task(truth_mark outer, visitor *visit);

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
