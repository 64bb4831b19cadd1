/* One process in one state after another: other team sizes, regions, tasks and
 * control variables, with the same records of the runtime used again where it
 * does so.  In each phase the program tells the truth anew, and a byte on stdin
 * takes it to the next.  What a debugger meets that keeps its handles while the
 * process runs on. */
#include "truth.h"

static void coordinate(int expected) {
    truth_ready("phases", expected);
    truth_release();
}

/* A team whose members wait at a barrier for the last one. */
TRUTH_MARKER void team_body(void) {
    int size = omp_get_num_threads();
    if (omp_get_thread_num() == size - 1) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, team_body));
        coordinate(size);
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, team_body));
    }
#pragma omp barrier
    truth_step();
}

static void team(int size) {
#pragma omp parallel num_threads(size)
    {
        team_body();
        TRUTH_KEEP_FRAME();
    }
    truth_forget();
}

TRUTH_MARKER void inner_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("inner waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
    } else if (omp_get_thread_num() == 1 && omp_get_ancestor_thread_num(1) == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        coordinate(6);
    } else {
        truth_note("inner holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
        truth_hold();
    }
#pragma omp barrier
    truth_step();
}

static void nested(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp parallel num_threads(3)
        {
            inner_body();
            TRUTH_KEEP_FRAME();
        }
    }
    truth_forget();
}

/* Regions of one thread around each other, in which some runtimes use one record for all. */
TRUTH_MARKER void lone_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, lone_body));
    coordinate(1);
    truth_step();
}

static void serialized(void) {
#pragma omp parallel num_threads(1)
#pragma omp parallel num_threads(1)
#pragma omp parallel num_threads(1)
    {
        lone_body();
        TRUTH_KEEP_FRAME();
    }
    truth_forget();
}

TRUTH_MARKER void outside_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_INITIAL, outside_body));
    coordinate(1);
    truth_step();
}

static atomic_int made, started;

TRUTH_MARKER void task_body(void) {
    truth_note("task", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, task_body));
    atomic_store(&started, 1);
    truth_hold();
    truth_step();
}

TRUTH_MARKER void creator_body(void) {
#pragma omp task
    {
        task_body();
        TRUTH_KEEP_FRAME();
    }
    atomic_store(&made, 1);
    truth_wait_for(&started);
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, creator_body));
    coordinate(2);
    truth_step();
}

static void explicit_task(void) {
    atomic_store(&made, 0);
    atomic_store(&started, 0);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            creator_body();
        else
            truth_wait_for(&made); /* nothing wakes a thread at a barrier for a task that comes later */
        TRUTH_KEEP_FRAME();
#pragma omp barrier
    }
    truth_forget();
}

static void *other_thread(void *unused) {
    team(2);
    return unused;
}

/* A thread of the program's own that opens a region, and ends. */
static void own_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, other_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
        truth_fail("a thread of its own");
}

int main(void) {
    truth_init();
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    omp_set_num_threads(5);
    team(4);
    team(2); /* threads are let go, or kept for later */
    omp_set_num_threads(6);
    omp_set_schedule(omp_sched_dynamic, 7);
    team(4); /* made anew, perhaps where the others were */
    team(4); /* a region like the one before */
    nested();
    outside_body();
    truth_forget();
    explicit_task();
    explicit_task();
    serialized();
    team(3);
    own_thread();
    own_thread();
    truth_done();
    return 0;
}
