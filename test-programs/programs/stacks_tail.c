/* Waits that are the last thing a region, a task or a function does: optimised
 * code jumps into the runtime, and the thread has no frame of the program any
 * more, or not the innermost. */
#include "truth_stack.h"

#include <omp.h>

enum { TASK_MADE, CHILD_MADE, CHILD_STARTED };
enum { THREADS = 7 };

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_tail", THREADS);
    truth_stack_release();
    truth_stack_step();
}

/* The wait is the last act of the region. */
FRAME static void note_at_end_of_region(truth_mark in, truth_mark at) {
    if (omp_get_thread_num() == 0)
        coordinate(CALL(in));
    else
        truth_stack_note("waiter at the end of a region", STACK_BARRIER, at);
    KEEP(); /* thread 0, released, only gets past the wait of the other */
}

FRAME static void region(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        note_at_end_of_region(CALL(in), TAIL(in, 1));
#pragma omp barrier
    }
    truth_stack_step(); /* for the waiter, which can do nothing more */
}

/* The wait is the last act of a function, whose call is the last act of the region. */
FRAME static void wait_in_function(truth_mark outer) {
    if (omp_get_thread_num() != 0)
        truth_stack_note("waiter at the end of a function", STACK_BARRIER, TAIL(outer, 1));
#pragma omp barrier
}

FRAME static void first_in_region(truth_mark outer) {
    region(CALL(outer));
    KEEP();
}

FRAME static void calls(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            first_in_region(CALL(in));
        wait_in_function(TAIL(in, 0));
    }
    truth_stack_step();
}

/* The wait is the last act of a task, whose child another thread executes. */
FRAME static void hold_child(truth_mark outer) {
    truth_stack_set(CHILD_STARTED);
    truth_stack_note("child", STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void note_at_end_of_task(truth_mark at) {
    truth_stack_set(CHILD_MADE);
    truth_stack_await(CHILD_STARTED);
    truth_stack_note("waiter at the end of a task", STACK_TASKWAIT, at);
    KEEP();
}

FRAME static void make_task(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        truth_mark child = OPENS(in, "task", 1);
#pragma omp task
        {
            truth_mark in_child = truth_enter(child);
            hold_child(CALL(in_child));
            truth_leave(in_child);
        }
        note_at_end_of_task(TAIL(in, 1));
#pragma omp taskwait
    }
    truth_stack_set(TASK_MADE);
    truth_stack_await(CHILD_STARTED);
    KEEP();
}

/* The region's own end: nothing of its body is left to execute.  Here are no tasks, for which libomp would keep the
 * waiter awake. */
FRAME static void ends(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            calls(CALL(in));
        else
            truth_stack_note("end waiter", STACK_BARRIER, OVER(in));
        KEEP();
    }
    truth_stack_step();
}

FRAME static void generate(truth_mark outer) {
    make_task(CALL(outer));
    truth_stack_note("generator", STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(4)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            ends(CALL(in));
        if (omp_get_thread_num() == 1)
            generate(CALL(in));
        if (omp_get_thread_num() == 2)
            truth_stack_await(TASK_MADE);
        if (omp_get_thread_num() == 3)
            truth_stack_await(CHILD_MADE);
        truth_suspends(OVER(in));
        KEEP();
    }
    truth_stack_step(); /* for the task that ended with a wait */
}

int main(void) {
    truth_stack_init();
    omp_set_max_active_levels(4);
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
