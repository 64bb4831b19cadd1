/* tasks_many WHICH N: N tasks that have not begun, all made by one construct.
 * WHICH is "dependent" (blocked: all wait for one task) or "queued" (ready).
 * For measuring what many tasks cost, and for seeing that all are counted.
 *
 * Thread 1 goes to the barrier of the region, takes a task that the others
 * wait for if they do, and stays in it.
 *
 * By GCC, "queued" is made differently, since libgomp executes tasks at once
 * if there are many already: the first task ends when the others, which wait
 * for it, have been made, by which they become ready, and thread 1 stays in
 * the first of them it takes, one made beyond the N.  libgomp also looks at
 * all tasks that read what a new one reads, so that a million would take an
 * hour to make: each reads storage of its own, all of which the first writes.
 *
 * libomp executes tasks at once that do not fit into a queue unless
 * KMP_ENABLE_TASK_THROTTLING is 0. */
#include "truth.h"

static atomic_int root_began, all_made, one_held, holder_noted;
/* Storage that dependences name. */
#ifdef __clang__
static int cell;
#define WRITES depend(out : cell)
#define READS depend(in : cell)
#define RELEASES 0
#else
#define RELEASES queued
static long members;
static char *cells;
#define WRITES depend(iterator(long at = 0 : members), out : cells[at])
#define READS depend(in : cells[i])
#endif
static int queued;

TRUTH_MARKER void root_body(void) {
    atomic_store(&root_began, 1);
    if (RELEASES) {
        truth_wait_for(&all_made);
        return;
    }
    truth_note("holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, root_body));
    atomic_store(&holder_noted, 1);
    truth_hold();
    truth_step();
}

TRUTH_MARKER void member_body(void) {
    if (!RELEASES || atomic_exchange(&one_held, 1))
        return;
    truth_note("holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, member_body));
    atomic_store(&holder_noted, 1);
    truth_hold();
    truth_step();
}

TRUTH_MARKER void generate_root(void) {
#pragma omp task WRITES
    {
        root_body();
        TRUTH_KEEP_FRAME();
    }
}

TRUTH_MARKER void generate_members(long count) {
    for (long i = 0; i < count; i++) {
#pragma omp task READS
        {
            member_body();
            TRUTH_KEEP_FRAME();
        }
    }
}

TRUTH_MARKER void generate_free(long count) {
    for (long i = 0; i < count; i++) {
#pragma omp task
        {
            member_body();
            TRUTH_KEEP_FRAME();
        }
    }
}

TRUTH_MARKER void coordinator_body(long count) {
    if (RELEASES)
        count++;
#ifndef __clang__
    members = count;
    cells = malloc((size_t)count);
    if (!cells)
        truth_fail("malloc");
#endif
    generate_root();
    truth_wait_for(&root_began);
    if (queued && !RELEASES)
        generate_free(count);
    else
        generate_members(count);
    atomic_store(&all_made, 1);
    truth_wait_for(&holder_noted);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinator_body));
    truth_ready("tasks_many", 2);
    truth_release();
    truth_step();
}

int main(int argc, char **argv) {
    long count = argc == 3 ? atol(argv[2]) : 0;
    queued = argc == 3 && strcmp(argv[1], "queued") == 0;
    if (count < 1 || (!queued && strcmp(argv[1], "dependent") != 0)) {
        fprintf(stderr, "usage: tasks_many queued|dependent N\n");
        return 2;
    }
    truth_init();
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            coordinator_body(count);
        TRUTH_KEEP_FRAME();
#pragma omp barrier
    }
    truth_done();
    return 0;
}
