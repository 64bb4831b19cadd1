/* A taskloop waits for all its tasks, and so for what those generate: its thread executes here a task that one of them
 * has generated, and that is over. */
#include "truth_stack.h"

#include <omp.h>

enum { STARTED };
enum { THREADS = 2 };

FRAME static void coordinate(truth_mark outer) {
    truth_stack_await(STARTED);
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_taskloop", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void grandchild(truth_mark outer) {
    truth_stack_set(STARTED);
    truth_stack_note("grandchild", STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void generate(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        grandchild(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void loop(truth_mark outer) {
    truth_mark opened = OPENS(outer, "taskloop", 1);
#pragma omp taskloop
    for (int i = 0; i < 1; i++) {
        truth_mark in = truth_enter(opened);
        generate(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            coordinate(CALL(in));
        else
            loop(CALL(in));
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
