/* The regions are in a library, which calls back. */
#include "stacks_visit.h"

#include <omp.h>

enum { THREADS = 5 };

/* In stacks_shared_library.c. */
visit_function library_visit;
void library_visit_in_task(truth_mark outer, visitor *visit);

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

static void visit_task(truth_mark outer, int number) {
    (void)number;
    hold(CALL(outer), "undeferred task of the library");
    KEEP();
}

static void visit_inner(truth_mark outer, int number) {
    if (number == 0)
        library_visit_in_task(CALL(outer), visit_task);
    else
        hold(CALL(outer), "inner visitor");
    KEEP();
}

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_shared", THREADS);
    truth_stack_release();
    truth_stack_step();
}

static void visit_outer(truth_mark outer, int number) {
    if (number == 0)
        coordinate(CALL(outer));
    if (number == 1)
        library_visit(CALL(outer), 2, visit_inner);
    if (number == 2) {
        truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
        {
            truth_mark in = truth_enter(opened);
            hold(CALL(in), "region of the program");
            truth_leave(in);
        }
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    omp_set_max_active_levels(4);
    library_visit(CALL(truth_thread_base()), 3, visit_outer);
    truth_stack_done();
    return 0;
}
