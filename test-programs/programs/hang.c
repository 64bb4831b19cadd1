/* relax: evens out the heat in a bar, one strip of it per thread.
 * It should take no time at all.  It never ends. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

enum { CELLS = 4000, SWEEPS = 100 };
static double heat[CELLS + 2], next[CELLS + 2], total;
static omp_lock_t total_lock;

static double relax_strip(int first, int last) {
    double change = 0;
    for (int i = first; i < last; i++) {
        next[i] = (heat[i - 1] + heat[i + 1]) / 2;
        change += next[i] > heat[i] ? next[i] - heat[i] : heat[i] - next[i];
    }
    return change;
}

/* The last strip ends at the cold end of the bar: no neighbour to wait for. */
static void wait_for_neighbours(int me, int threads) {
    if (me == threads - 1)
        return;
#pragma omp barrier
}

static void sweep(int me, int threads) {
    if (me == 0) { /* nobody may add to the total before all strips are done */
        omp_set_lock(&total_lock);
        total = 0;
    }
#pragma omp barrier
    double change = relax_strip(1 + CELLS * me / threads, 1 + CELLS * (me + 1) / threads);
    wait_for_neighbours(me, threads);
    if (me == 0)
        omp_unset_lock(&total_lock);
    omp_set_lock(&total_lock);
    total += change;
    omp_unset_lock(&total_lock);
}

int main(void) {
    omp_init_lock(&total_lock);
    heat[0] = 100;
    printf("relax: pid %d\n", (int)getpid());
    fflush(stdout);
#pragma omp parallel num_threads(4)
    for (int i = 0; i < SWEEPS; i++)
        sweep(omp_get_thread_num(), omp_get_num_threads());
    printf("relax: last change %g\n", total);
    return 0;
}
