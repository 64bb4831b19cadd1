/* A region in a league of one team, on the host. */
#include "truth_stack.h"

#include <omp.h>

enum { THREADS = 2 };

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_teams", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void run_team(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            coordinate(CALL(in));
        else
            hold(CALL(in), "member");
        truth_leave(in);
    }
    KEEP();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "teams", 1);
#pragma omp teams num_teams(1) thread_limit(2)
    {
        truth_mark in = truth_enter(opened);
        run_team(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
