/* A region on the other side of a border, whose threads call back: for stacks_shared.c and stacks_jit.c. */
#include "truth_stack.h"

typedef void visitor(truth_mark outer, int number);

/* Opens a region of so many threads, each of which calls VISIT with its number. */
typedef void visit_function(truth_mark outer, int threads, visitor *visit);

/* The other side names the function before it includes this. */
#ifdef REGION
#include <omp.h>

visit_function REGION;

FRAME static void visit_one(truth_mark outer, visitor *visit) {
    visit(CALL(outer), omp_get_thread_num());
    KEEP();
}

void REGION(truth_mark outer, int threads, visitor *visit) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(threads)
    {
        truth_mark in = truth_enter(opened);
        visit_one(CALL(in), visit);
        truth_leave(in);
    }
    KEEP();
}
#endif
