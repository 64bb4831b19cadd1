/* Regions and tasks of all kinds, some of which are discarded before they begin.
 * The program waits for a byte before the first region, and says at the end how
 * many regions, task bodies and threads there were. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static int regions, tasks, discarded, threads;

static void count(int *what) {
#pragma omp atomic
    ++*what;
}

static void of_taskgroup(void) {
#pragma omp taskgroup
    {
#pragma omp task
        {
            count(&tasks);
#pragma omp cancel taskgroup
        }
#pragma omp taskwait
        /* These are discarded: the group is cancelled already. */
        for (int n = 0; n < 5; n++) {
#pragma omp task
            count(&discarded);
        }
    }
}

static void detached(void) {
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event)
    {
        count(&tasks);
        omp_fulfill_event(event);
    }
#pragma omp taskwait
}

/* libomp executes an untied task in parts. */
static void untied(void) {
    for (int n = 0; n < 3; n++) {
#pragma omp task untied
        {
            count(&tasks);
#pragma omp taskyield
        }
    }
#pragma omp taskwait
}

static void of_loop(void) {
#pragma omp taskloop num_tasks(4)
    for (int n = 0; n < 4; n++) {
        count(&tasks);
    }
}

int main(void) {
    char go;
    omp_set_dynamic(0);
    printf("ready\n");
    fflush(stdout);
    if (read(STDIN_FILENO, &go, 1) != 1) {
        return 1;
    }
#pragma omp parallel num_threads(3)
    {
        count(&threads);
#pragma omp single
        {
            count(&regions);
            of_taskgroup();
            detached();
            untied();
            of_loop();
        }
    }
    for (int size = 1; size < 3; size++) {
#pragma omp parallel num_threads(size)
        {
#pragma omp single
            count(&regions);
        }
    }
    printf("regions=%d tasks=%d discarded=%d threads=%d\n", regions, tasks, discarded, threads);
    return 0;
}
