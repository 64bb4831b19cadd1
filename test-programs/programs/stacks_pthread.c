/* Two threads of the program's own open a region each at the same time; one
 * never comes near OpenMP; main's thread is in no region. */
#include "truth_stack.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 7 };

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void fill(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        hold(CALL(in), "member of the first thread's team");
        truth_leave(in);
    }
    KEEP();
}

FRAME static void drain_one(truth_mark outer) {
    hold(CALL(outer), "thread 0 of the second thread's team");
    KEEP();
}

FRAME static void drain(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(3)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            drain_one(CALL(in));
        else
            hold(CALL(in), "member of the second thread's team");
        truth_leave(in);
    }
    KEEP();
}

static void *first_thread(void *unused) {
    fill(CALL(truth_thread_base()));
    KEEP();
    return unused;
}

static void *second_thread(void *unused) {
    drain(CALL(truth_thread_base()));
    KEEP();
    return unused;
}

FRAME static void listen(truth_mark outer) {
    truth_stack_note_plain("thread without OpenMP", STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

static void *plain_thread(void *unused) {
    listen(CALL(truth_thread_base()));
    KEEP();
    return unused;
}

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_pthread", THREADS);
    truth_stack_release();
    truth_stack_step();
}

int main(void) {
    void *(*const starts[])(void *) = {first_thread, second_thread, plain_thread};
    pthread_t threads[3];
    truth_stack_init();
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, starts[i], NULL) != 0)
            abort();
    coordinate(CALL(truth_thread_base()));
    for (int i = 0; i < 3; i++)
        if (pthread_join(threads[i], NULL) != 0)
            abort();
    truth_stack_done();
    /* Workers of the pthreads' regions may still be ending by `pthread_exit`.  In a static program `exit` takes away
     * what GCC's library needs for that, which then aborts. */
    _Exit(0);
}
