/* A loop of 100 iterations, from 10 on, that three threads are in: each stops
 * in the first iteration it gets.  Its schedule is that of OMP_SCHEDULE; the
 * argument says which of the loops it is.
 *
 * Prints `member NUMBER ITERATION`, with iterations counted from 0, and
 * `ready`.  One byte on standard input lets the program go on. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, FIRST = 10, ITERATIONS = 100 };

static atomic_int arrived, executed;
static int release[2];
static int begun[THREADS];

/* The last thread to come is the one that reads. */
static void stop(int iteration) {
    int number = omp_get_thread_num();
    char byte;
    executed++;
    if (begun[number])
        return;
    begun[number] = 1;
    printf("member %d %d\n", number, iteration);
    if (atomic_fetch_add(&arrived, 1) + 1 == THREADS) {
        printf("ready\n");
        fflush(stdout);
        if (read(0, &byte, 1) < 0)
            abort();
        if (write(release[1], "12", THREADS - 1) != THREADS - 1)
            abort();
    } else if (read(release[0], &byte, 1) != 1)
        abort();
}

static void narrow(void) {
#pragma omp for schedule(runtime)
    for (int i = FIRST; i < FIRST + ITERATIONS; i++)
        stop(i - FIRST);
}

static void wide(void) {
#pragma omp for schedule(runtime)
    for (long i = FIRST; i < FIRST + ITERATIONS; i++)
        stop((int)(i - FIRST));
}

static void ordered(void) {
#pragma omp for schedule(runtime) ordered
    for (int i = FIRST; i < FIRST + ITERATIONS; i++) {
        stop(i - FIRST);
#pragma omp ordered
        executed += 0;
    }
}

int main(int count, char **arguments) {
    const char *which = count > 1 ? arguments[1] : "narrow";
    if (pipe(release) != 0)
        abort();
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS)
    {
        if (strcmp(which, "wide") == 0)
            wide();
        else if (strcmp(which, "ordered") == 0)
            ordered();
        else
            narrow();
    }
    printf("done %d\n", executed);
    return executed == ITERATIONS ? 0 : 1;
}
