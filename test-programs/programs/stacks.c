/* One region, each of whose members brings about another kind of logical stack,
 * and holds there: nested regions, tasks made and executed by different
 * threads, tasks executed at once, regions of one thread, worksharing. */
#include "truth_stack.h"

#include <omp.h>

/* The word the compiler makes for `critical(ledger)`. */
#if defined(__clang__)
extern char ledger_word[] __asm__(".gomp_critical_user_ledger.var");
#else
extern char ledger_word[] __asm__(".gomp_critical_user_ledger");
#endif

enum { OUTER_MADE, OUTER_STARTED, INNER_MADE, INNER_STARTED, LEDGER_HELD, PROBE_STARTED };
enum { MEMBERS = 11, THREADS = 19 };

/* Read at run time, so that the compiler cannot leave the construct out. */
static volatile int off;

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

/* Inlined at every optimisation level. */
__attribute__((always_inline)) static inline void through_inlined(truth_mark outer, const char *role) {
    hold(INLINED(outer), role);
    KEEP();
}

/* Inlined where the compiler likes to: where it does, two frames become one. */
static inline void through_either(truth_mark outer, const char *role) {
    through_inlined(CALL(outer), role);
    KEEP();
}

/* Member 0: a region of one thread, a region that its if clause makes one, and an undeferred task; then a final task
 * with a task included in it; then a taskloop. */
FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks", THREADS);
    truth_stack_release();
    truth_stack_step();
}

FRAME static void loop_of_tasks(truth_mark outer) {
    truth_mark opened = OPENS(outer, "taskloop", 1);
#pragma omp taskloop num_tasks(1)
    for (int i = 0; i < 1; i++) {
        truth_mark in = truth_enter(opened);
        coordinate(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void finals(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task final(1) if (off)
    {
        truth_mark in = truth_enter(opened);
        truth_mark included = OPENS(in, "task", 1);
#pragma omp task
        {
            truth_mark in_included = truth_enter(included);
            loop_of_tasks(CALL(in_included));
            truth_leave(in_included);
        }
        truth_leave(in);
    }
    KEEP();
}

FRAME static void undeferred(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task if (0)
    {
        truth_mark in = truth_enter(opened);
        finals(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void alone(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(1)
    {
        truth_mark in = truth_enter(opened);
        truth_mark again = OPENS(in, "parallel", 1);
#pragma omp parallel num_threads(4) if (off)
        {
            truth_mark in_again = truth_enter(again);
            undeferred(CALL(in_again));
            truth_leave(in_again);
        }
        truth_leave(in);
    }
    KEEP();
}

/* Member 1: a function that opens a region in which it calls itself. */
FRAME static void leaf(truth_mark outer) {
    through_inlined(CALL(outer), "leaf");
    KEEP();
}

FRAME static void recurse(truth_mark outer, int depth) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (depth > 1)
            recurse(CALL(in), depth - 1);
        else
            leaf(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

/* Member 2 makes a task and moves on.  A member that waits at the barrier executes it; that task makes another, which
 * another member at the barrier executes, and waits for it. */
FRAME static void smooth(truth_mark outer) {
    truth_stack_set(INNER_STARTED);
    through_either(CALL(outer), "inner task");
    KEEP();
}

FRAME static void make_inner(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        smooth(CALL(in));
        truth_leave(in);
    }
    truth_stack_set(INNER_MADE);
    truth_stack_await(INNER_STARTED);
    KEEP();
}

FRAME static void relax(truth_mark outer) {
    truth_stack_set(OUTER_STARTED);
    make_inner(CALL(outer));
    truth_stack_note("parent in taskwait", STACK_TASKWAIT, AT(outer, 1));
#pragma omp taskwait
    truth_stack_step();
}

FRAME static void make_outer(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        relax(CALL(in));
        truth_leave(in);
    }
    truth_stack_set(OUTER_MADE);
    truth_stack_await(INNER_STARTED);
    KEEP();
}

FRAME static void generate(truth_mark outer) {
    make_outer(CALL(outer));
    hold(CALL(outer), "generator that moved on");
    KEEP();
}

/* Member 5: a task executed by its generating thread in the taskwait of the generating task. */
FRAME static void probe(truth_mark outer) {
    truth_stack_set(PROBE_STARTED);
    hold(CALL(outer), "child in its parent's taskwait");
    KEEP();
}

FRAME static void make_probe(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        probe(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void wait_for_probe(truth_mark outer) {
    make_probe(CALL(outer));
    truth_suspends(AT(outer, 1));
#pragma omp taskwait
    KEEP();
}

/* Member 6: one thread in a critical section in a single construct; the other at a barrier, where the first will note
 * itself again when nobody reads it any more. */
FRAME static void write_ledger(truth_mark outer) {
#pragma omp critical(ledger)
    {
        truth_stack_owns_critical("ledger", ledger_word);
        truth_stack_set(LEDGER_HELD);
        truth_stack_note("holder of the critical section", STACK_PIPE, AT(outer, 1));
        truth_stack_hold();
    }
    KEEP();
}

FRAME static void one_of_two(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
#pragma omp single nowait
        write_ledger(CALL(in));
        truth_stack_await(LEDGER_HELD);
        truth_stack_note("waiter beside single", STACK_BARRIER, AT(in, 1));
#pragma omp barrier
        truth_stack_step();
        truth_leave(in);
    }
    KEEP();
}

/* Member 7: waits for the critical section. */
FRAME static void read_ledger(truth_mark outer) {
    truth_stack_await(LEDGER_HELD);
    truth_stack_note_critical("waiter for the critical section", ledger_word, AT(outer, 1));
#pragma omp critical(ledger)
    truth_stack_step();
}

/* Member 8: loops. */
FRAME static void dynamic_loop(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel for", 1);
#pragma omp parallel for num_threads(2) schedule(dynamic, 1)
    for (int i = 0; i < 2; i++) {
        truth_mark in = truth_enter(opened);
        through_either(CALL(in), "dynamic loop");
        truth_leave(in);
    }
    KEEP();
}

FRAME static void static_loop(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel for", 1);
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 2; i++) {
        truth_mark in = truth_enter(opened);
        if (i == 0)
            dynamic_loop(CALL(in));
        else
            hold(CALL(in), "static loop");
        truth_leave(in);
    }
    KEEP();
}

/* Member 9: sections, opened by a function that is inlined. */
FRAME static void left(truth_mark outer) {
    hold(CALL(outer), "left section");
    KEEP();
}

FRAME static void right(truth_mark outer) {
    hold(CALL(outer), "right section");
    KEEP();
}

static inline void sections(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel sections", 1);
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
            truth_mark in = truth_enter(opened);
            left(CALL(in));
            truth_leave(in);
        }
#pragma omp section
        {
            truth_mark in = truth_enter(opened);
            right(CALL(in));
            truth_leave(in);
        }
    }
    KEEP();
}

FRAME static void in_sections(truth_mark outer) {
    sections(CALL(outer));
    KEEP();
}

/* Member 10: a region in a task in a region; the task is executed where its generating task waits for it. */
FRAME static void team_in_task(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        leaf(CALL(in));
        truth_leave(in);
    }
    KEEP();
}

FRAME static void task_with_team(truth_mark outer) {
    truth_mark opened = OPENS(outer, "task", 1);
#pragma omp task
    {
        truth_mark in = truth_enter(opened);
        team_in_task(CALL(in));
        truth_leave(in);
    }
    truth_suspends(AT(outer, 1));
#pragma omp taskwait
    KEEP();
}

/* A task made by a member is executed at the barrier by whoever is there: exactly one, when there is one to execute. */
FRAME static void member(truth_mark in, int number) {
    if (number == 0)
        alone(CALL(in));
    if (number == 1)
        recurse(CALL(in), 2);
    if (number == 2)
        generate(CALL(in));
    if (number == 3)
        truth_stack_await(OUTER_MADE);
    if (number == 4)
        truth_stack_await(INNER_MADE);
    if (number == 5 || number == 10)
        truth_stack_await(INNER_STARTED);
    if (number == 5)
        wait_for_probe(CALL(in));
    if (number == 6)
        one_of_two(CALL(in));
    if (number == 7)
        read_ledger(CALL(in));
    if (number == 8)
        static_loop(CALL(in));
    if (number == 9)
        in_sections(CALL(in));
    if (number == 10)
        task_with_team(CALL(in));
    KEEP();
}

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(MEMBERS)
    {
        truth_mark in = truth_enter(opened);
        member(CALL(in), omp_get_thread_num());
        truth_suspends(AT(in, 1));
#pragma omp barrier
        truth_leave(in);
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    omp_set_max_active_levels(8);
    run(CALL(truth_thread_base()));
    truth_stack_done();
    return 0;
}
