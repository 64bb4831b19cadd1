/* A doacross loop in the middle of which one thread stops, before it has
 * posted its iteration.  No other waits for that, so that all come to the end
 * of the loop.
 *
 * The arguments: which loop, and the iteration to stop at.
 *   static    shares as equal as can be    static2  chunks of 2
 *   dynamic   chunks of 2                  guided
 *   unsigned  an unsigned long long loop, dynamic
 *   nest      two loops, static with chunks of 1; the inner one has INNER iterations
 *   huge      two loops of 2^33 iterations: stops at the first one, and never
 *             goes on
 *
 * Prints `posted` and the counters of each iteration that has been posted, in
 * sequential order, `member`, a number and the counters of what it posted last,
 * `loop` with the counters of the one it stops at, and `ready`.  One byte on
 * standard input lets it go on. */
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, FIRST = 10, OUTER = 13, INNER = 4 };

/* As many iterations back there is none; a loop without any dependence would be no doacross loop.  It has to be a
 * literal. */
#define BACK 13
#define TWICE_BACK 26

static atomic_int posted[OUTER][INNER], last_outer[THREADS], last_inner[THREADS], through;
static atomic_int stopped_by = -1;
static int stop_at;

static void tell_and_wait(int i, int j, int inner) {
    char byte;
    for (int a = 0; a < OUTER; a++)
        for (int b = 0; b < (inner ? INNER : 1); b++)
            if (posted[a][b])
                printf(inner ? "posted %d %d\n" : "posted %d\n", a, b);
    for (int member = 0; member < THREADS; member++)
        if (last_outer[member] >= 0)
            printf(inner ? "member %d %d %d\n" : "member %d %d\n", member, last_outer[member], last_inner[member]);
    printf(inner ? "loop %d %d\nready\n" : "loop %d\nready\n", i, j);
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        abort();
}

/* Before an iteration is posted. */
static void before(int i, int j, int inner) {
    int iteration = inner ? i * INNER + j : i;
    if (iteration != stop_at)
        return;
    atomic_store(&stopped_by, omp_get_thread_num());
    while (through < THREADS - 1)
        sched_yield();
    tell_and_wait(i, j, inner);
}

/* After it has been. */
static void after(int i, int j) {
    int member = omp_get_thread_num();
    posted[i][j] = 1;
    last_outer[member] = i;
    last_inner[member] = j;
}

/* A thread has left the loop, which has `nowait`. */
static void leave(void) {
    atomic_fetch_add(&through, 1);
}

static void loop_static(void) {
#pragma omp for schedule(static) ordered(1) nowait
    for (int i = FIRST; i < FIRST + OUTER; i++) {
#pragma omp ordered depend(sink : i - BACK)
        before(i - FIRST, 0, 0);
#pragma omp ordered depend(source)
        after(i - FIRST, 0);
    }
    leave();
}

static void loop_static2(void) {
#pragma omp for schedule(static, 2) ordered(1) nowait
    for (long i = FIRST; i < FIRST + OUTER; i++) {
#pragma omp ordered depend(sink : i - BACK)
        before((int)i - FIRST, 0, 0);
#pragma omp ordered depend(source)
        after((int)i - FIRST, 0);
    }
    leave();
}

static void loop_dynamic(void) {
#pragma omp for schedule(dynamic, 2) ordered(1) nowait
    for (int i = FIRST + OUTER; i > FIRST; i--) {
#pragma omp ordered depend(sink : i + BACK)
        before(FIRST + OUTER - i, 0, 0);
#pragma omp ordered depend(source)
        after(FIRST + OUTER - i, 0);
    }
    leave();
}

static void loop_guided(void) {
#pragma omp for schedule(guided) ordered(1) nowait
    for (int i = FIRST; i < FIRST + 2 * OUTER; i += 2) {
#pragma omp ordered depend(sink : i - TWICE_BACK)
        before((i - FIRST) / 2, 0, 0);
#pragma omp ordered depend(source)
        after((i - FIRST) / 2, 0);
    }
    leave();
}

static void loop_unsigned(void) {
    unsigned long long first = (1ull << 63) - 3, end = first + OUTER;
#pragma omp for schedule(monotonic : dynamic) ordered(1) nowait
    for (unsigned long long i = first; i < end; i++) {
#pragma omp ordered depend(sink : i - BACK)
        before((int)(i - first), 0, 0);
#pragma omp ordered depend(source)
        after((int)(i - first), 0);
    }
    leave();
}

static void loop_nest(void) {
#pragma omp for schedule(static, 1) ordered(2) nowait
    for (int i = FIRST; i < FIRST + OUTER; i++)
        for (int j = 0; j < INNER; j++) {
#pragma omp ordered depend(sink : i - BACK, j)
            before(i - FIRST, j, 1);
#pragma omp ordered depend(source)
            after(i - FIRST, j);
        }
    leave();
}

static void loop_huge(void) {
#pragma omp for schedule(static, 1) ordered(2) nowait
    for (long i = 0; i < 1l << 33; i++)
        for (long j = 0; j < 1l << 33; j++) {
#pragma omp ordered depend(sink : i - 1, j)
            if (i == 0 && j == 0) {
                tell_and_wait(0, 0, 1);
                printf("done\n");
                fflush(stdout);
                _exit(0);
            }
            sched_yield();
#pragma omp ordered depend(source)
        }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } loops[] = {{"static", loop_static}, {"static2", loop_static2},   {"dynamic", loop_dynamic}, {"guided", loop_guided},
                 {"nest", loop_nest},     {"unsigned", loop_unsigned}, {"huge", loop_huge}};
    if (count != 3)
        abort();
    stop_at = atoi(arguments[2]);
    for (int member = 0; member < THREADS; member++)
        last_outer[member] = -1;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS)
    for (size_t which = 0; which < sizeof loops / sizeof *loops; which++)
        if (strcmp(loops[which].name, arguments[1]) == 0)
            loops[which].run();
    printf("done\n");
    return through == THREADS && stopped_by >= 0 ? 0 : 1;
}
