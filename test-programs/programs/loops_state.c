/* Worksharing loops that stand still: each thread holds in an iteration that
 * follows from its number, or waits for its turn.
 *
 * LOOP   dynamic   chunks of 7, from 100 to 1100 in steps of 2
 *        combined  the same of a combined construct
 *        around    the same, and each iteration opens an inner region
 *        down      downwards from 1000 in steps of 3, chunks of 5
 *        unsigned  an unsigned long long loop from 2^63 - 100, chunks of 4
 *        guided    from 0 to 1000, chunks of 10 at least
 *        ordered   chunks of 1, with an ordered region
 *        static_ordered  the same with a static schedule: thread 1 holds in
 *                  its ordered region, which is the second
 *        last      one chunk for each thread: all are handed out
 *        sections  three
 *        end       the loop is over for all but one
 *        single    no loop: a single with copyprivate after loops that were
 *                  cancelled (OMP_CANCELLATION=true) */
#include "truth.h"

enum { THREADS = 3 };

static atomic_int held, begun;

/* Thread 0 speaks for all; the others hold. Once each. */
TRUTH_MARKER void stand_still(void) {
    static __thread int done;
    if (done)
        return;
    done = 1;
    truth_step();
    if (omp_get_ancestor_thread_num(1) == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
        truth_ready("loops_state", THREADS);
        truth_release();
    } else {
        truth_note("holder", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
        truth_hold();
    }
}

TRUTH_MARKER void dynamic_loop(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 7)
        for (int i = 100; i < 1100; i += 2)
            stand_still();
    }
}

TRUTH_MARKER void combined_loop(void) {
#pragma omp parallel for num_threads(THREADS) schedule(dynamic, 7)
    for (int i = 100; i < 1100; i += 2)
        stand_still();
}

TRUTH_MARKER void loop_around_regions(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 7)
        for (int i = 100; i < 1100; i += 2) {
#pragma omp parallel num_threads(1)
            {
                stand_still();
                TRUTH_KEEP_FRAME();
            }
        }
    }
}

TRUTH_MARKER void loop_downwards(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 5)
        for (long i = 1000; i > 0; i -= 3)
            stand_still();
    }
}

TRUTH_MARKER void unsigned_loop(void) {
    unsigned long long first = (1ull << 63) - 100, end = (1ull << 63) + 1000;
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 4)
        for (unsigned long long i = first; i < end; i++)
            stand_still();
    }
}

TRUTH_MARKER void guided_loop(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(guided, 10)
        for (int i = 0; i < 1000; i++)
            stand_still();
    }
}

/* Iterations 0, 1 and 2 are of three threads; 0 holds in its ordered region, as coordinator. */
TRUTH_MARKER void ordered_loop(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 1) ordered
        for (int i = 0; i < THREADS; i++) {
            atomic_fetch_add(&begun, 1);
            while (atomic_load(&begun) < THREADS)
                sched_yield();
            if (i > 0) {
                truth_note("waits for its turn", TRUTH_LOCK, NULL, TRUTH_NO_BODY);
                truth_step();
            }
#pragma omp ordered
            if (i == 0) {
                truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
                truth_ready("loops_state", THREADS);
                truth_release();
                truth_step();
            }
        }
    }
}

/* Iterations are of the threads of their numbers. Thread 1 holds in its ordered region; thread 2 waits for its turn, and
 * thread 0 at the end of the loop. */
TRUTH_MARKER void static_ordered_loop(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(static, 1) ordered
        for (int i = 0; i < THREADS; i++) {
            if (i == 0)
                truth_note("waits at the end", TRUTH_BARRIER, NULL, TRUTH_NO_BODY);
            else if (i == 2)
                truth_note("waits for its turn", TRUTH_ORDERED, NULL, TRUTH_NO_BODY);
            truth_step();
#pragma omp ordered
            if (i == 1) {
                truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
                truth_ready("loops_state", THREADS);
                truth_release();
            }
        }
    }
}

/* Thread 0 is in the single, the others wait for it. */
TRUTH_MARKER void single_after_loops(void) {
    int value = 0;
#pragma omp parallel num_threads(THREADS) firstprivate(value)
    {
        for (int n = 0; n < 20; n++) {
#pragma omp for schedule(dynamic, 7)
            for (int i = 100; i < 1100; i += 2) {
#pragma omp cancel for
            }
        }
        if (omp_get_thread_num() > 0) {
            truth_wait_for(&begun);
            truth_note("waits for the single", TRUTH_BARRIER, NULL, TRUTH_NO_BODY);
        }
#pragma omp single copyprivate(value)
        {
            value++;
            atomic_store(&begun, 1);
            stand_still();
        }
    }
}

TRUTH_MARKER void last_chunks(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp for schedule(dynamic, 2)
        for (int i = 0; i < 2 * THREADS; i++) {
            atomic_fetch_add(&held, 1);
            while (atomic_load(&held) < THREADS)
                sched_yield();
            stand_still();
        }
    }
}

TRUTH_MARKER void three_sections(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp sections
        {
#pragma omp section
            stand_still();
#pragma omp section
            stand_still();
#pragma omp section
            stand_still();
        }
    }
}

/* The coordinator has the only iteration; the others wait at the end of the loop. */
TRUTH_MARKER void end_of_loop(void) {
#pragma omp parallel num_threads(THREADS)
    {
        TRUTH_KEEP_FRAME(); /* or the two become one construct */
#pragma omp single nowait
        truth_step();
        if (omp_get_thread_num() != 0) {
            while (!atomic_load(&begun))
                sched_yield();
            truth_note("waits at the end", TRUTH_BARRIER, NULL, TRUTH_NO_BODY);
            truth_step();
        }
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < 1; i++) {
            atomic_store(&begun, 1);
            truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
            truth_ready("loops_state", THREADS);
            truth_release();
        }
    }
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } loops[] = {
        {"dynamic", dynamic_loop}, {"combined", combined_loop}, {"down", loop_downwards}, {"unsigned", unsigned_loop},
        {"guided", guided_loop},   {"ordered", ordered_loop},   {"last", last_chunks},    {"sections", three_sections},
        {"end", end_of_loop},      {"single", single_after_loops}, {"static_ordered", static_ordered_loop},
        {"around", loop_around_regions},
    };
    const char *wanted = getenv("LOOP");
    truth_init();
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (strcmp(loops[i].name, wanted ? wanted : "dynamic") == 0)
            loops[i].run();
    truth_done();
    return 0;
}
