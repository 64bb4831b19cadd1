/* Threads of a team in signal handlers: of a signal the thread sent to itself,
 * and, on a stack of its own, of a fault in a function without a frame. */
#include "truth_stack.h"

#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 4, STACK_SIZE = 1 << 18 };

static _Thread_local truth_mark interrupted;
static int *page;

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

static void on_sent(int number) {
    (void)number;
    hold(CALL(interrupted), "in a handler");
    KEEP();
}

/* When it returns the access is tried again, with success. */
static void on_fault(int number) {
    (void)number;
    hold(CALL(interrupted), "in a handler on a stack of its own");
    if (mprotect(page, 1, PROT_READ | PROT_WRITE) != 0)
        abort();
}

FRAME static void send(truth_mark outer) {
    interrupted = AT(outer, 1);
    raise(SIGUSR1);
    KEEP();
}

/* A function so small has no frame to speak of when it is optimised. */
enum { TOUCH_LINE = __LINE__ + 1 };
FRAME static void touch(volatile int *cell) { *cell = 1; }

FRAME static void fault(truth_mark outer) {
    stack_t stack = {.ss_sp = malloc(STACK_SIZE), .ss_size = STACK_SIZE};
    if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0)
        abort();
    interrupted = truth_frame(AT(outer, 1), __FILE__, "touch", TOUCH_LINE, TRUTH_FRAME);
    touch(page);
    stack.ss_flags = SS_DISABLE;
    if (sigaltstack(&stack, NULL) != 0)
        abort();
    free(stack.ss_sp);
}

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_signal", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(4)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            send(CALL(in));
        if (omp_get_thread_num() == 1)
            fault(CALL(in));
        if (omp_get_thread_num() == 2)
            coordinate(CALL(in));
        if (omp_get_thread_num() == 3)
            hold(CALL(in), "holder");
        truth_leave(in);
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    struct sigaction sent = {.sa_handler = on_sent}, faulted = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    if (sigaction(SIGUSR1, &sent, NULL) != 0 || sigaction(SIGSEGV, &faulted, NULL) != 0)
        abort();
    page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        abort();
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
