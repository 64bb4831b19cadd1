/* A region and a task whose last act is a call: optimised code jumps there, and the function the runtime called has no
 * frame any more, though the one it called last has. */
#include "truth_stack.h"

#include <omp.h>

enum { TASK_MADE, TASK_STARTED };
enum { THREADS = 3 };

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_jump", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void work(truth_mark outer) {
    truth_stack_set(TASK_STARTED);
    hold(CALL(outer), "task");
    KEEP();
}

FRAME static void make_task(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        work(TAIL(in, 0));
    }
    truth_stack_set(TASK_MADE);
    KEEP();
}

FRAME static void take_part(truth_mark outer) {
    if (omp_get_thread_num() == 0) {
        make_task(CALL(outer));
        truth_stack_await(TASK_STARTED);
        coordinate(CALL(outer));
    } else if (omp_get_thread_num() == 1) {
        truth_stack_await(TASK_STARTED); /* thread 2 executes the task in the end of the region */
        hold(CALL(outer), "member");
    } else {
        truth_stack_await(TASK_MADE);
    }
    KEEP();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(3)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 2)
            truth_suspends(OVER(in));
        take_part(TAIL(in, 0));
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
