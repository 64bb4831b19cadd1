/* What tool_hostile loads and unloads: a region, with tasks and a lock. */
#include <omp.h>

int region(int threads);
int region(int threads)
{
    int sum = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(threads)
    {
        omp_set_lock(&lock);
        sum++;
        omp_unset_lock(&lock);
#pragma omp barrier
#pragma omp single
        for (int i = 0; i < 4; i++) {
#pragma omp task shared(sum)
#pragma omp atomic
            sum += 10;
        }
    }
    omp_destroy_lock(&lock);
    return sum;
}
