/* Three threads at one barrier, whose kind differs; thread 0, the coordinator,
 * does not come and holds in read().
 *
 * BARRIER  explicit, dynamic (loop), static (loop), sections, single,
 *          copyprivate, reduction, end (of the region), or
 *          stale: those at the end of a single execute a task there, which has
 *          a barrier of its own in a region of one thread */
#include "truth.h"

enum { THREADS = 4 };

static const char *wanted;
static atomic_int begun, tasks;
static int copied;
static long sum;

static int is(const char *name) { return strcmp(wanted, name) == 0; }

/* Thread 0 stays here; the others go to the barrier once it has begun. */
TRUTH_MARKER void come_or_stay(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
        atomic_store(&begun, 1);
        truth_ready("barriers", THREADS);
    } else {
        truth_wait_for(&begun);
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_NO_BODY);
    }
}

TRUTH_MARKER void explicit_barrier(void) {
    come_or_stay();
#pragma omp barrier
    truth_step();
}

TRUTH_MARKER void dynamic_loop(void) {
    come_or_stay();
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < THREADS; i++)
        truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void static_loop(void) {
    come_or_stay();
#pragma omp for schedule(static)
    for (int i = 0; i < THREADS; i++)
        truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void two_sections(void) {
    come_or_stay();
#pragma omp sections
    {
#pragma omp section
        truth_step();
#pragma omp section
        truth_step();
    }
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void one_single(void) {
    come_or_stay();
#pragma omp single
    truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void single_for_all(void) {
    int own = 0;
    come_or_stay();
#pragma omp single copyprivate(own)
    own = 7;
    atomic_fetch_add((atomic_int *)&copied, own);
}

TRUTH_MARKER void reduced_loop(void) {
    come_or_stay();
#pragma omp for reduction(+ : sum)
    for (int i = 0; i < THREADS; i++)
        sum += i;
    TRUTH_KEEP_FRAME();
}

/* Tasks made before are executed at the barrier. */
TRUTH_MARKER void a_barrier_in_a_task(void) {
#pragma omp parallel if (0)
    {
#pragma omp barrier
        truth_step();
    }
    atomic_fetch_add(&tasks, 1);
    /* All three have one each in their hands, or else one of them might execute all. */
    int64_t give_up = truth_deadline();
    while (atomic_load(&tasks) < THREADS - 1) {
        if (truth_nanoseconds(CLOCK_MONOTONIC) > give_up)
            truth_fail("tasks were executed one after the other");
        sched_yield();
    }
}

TRUTH_MARKER void stale_record(void) {
    if (omp_get_thread_num() == 1)
        for (int i = 1; i < THREADS; i++) {
#pragma omp task
            {
                a_barrier_in_a_task();
                TRUTH_KEEP_FRAME();
            }
        }
    come_or_stay();
#pragma omp single
    truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void end_of_region(void) { come_or_stay(); }

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } kinds[] = {
        {"explicit", explicit_barrier},  {"dynamic", dynamic_loop},   {"static", static_loop},
        {"sections", two_sections},      {"single", one_single},      {"copyprivate", single_for_all},
        {"reduction", reduced_loop},     {"end", end_of_region},      {"stale", stale_record},
    };
    wanted = getenv("BARRIER");
    if (!wanted)
        wanted = "explicit";
    truth_barriers_spin = is("stale");
    truth_init();
#pragma omp parallel num_threads(THREADS)
    {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (is(kinds[i].name))
                kinds[i].run();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
