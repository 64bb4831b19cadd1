/* Constructs that order what threads do to a variable, for a tool that searches for data races.  With -DRACE one part
   of the program has a race, in the last region. */
#include <omp.h>
#include <stdio.h>

static int items[64], sum, last;

int main(void)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(4)
    {
#pragma omp for
        for (int i = 0; i < 64; i++)
            items[i] = i;
#pragma omp single
        for (int i = 0; i < 64; i++)
            sum += items[i];
#pragma omp critical
        sum++;
        omp_set_lock(&lock);
        last++;
        omp_unset_lock(&lock);
#pragma omp barrier
#pragma omp single
        {
            int x = 0, y = 0;
#pragma omp task shared(sum)
            sum++;
#pragma omp taskwait
            sum++;
#pragma omp task shared(x) depend(out : x)
            x = 1;
#pragma omp task shared(x, y) depend(in : x) depend(out : y)
            y = x + 1;
#pragma omp taskgroup
            {
#pragma omp task
                last++;
            }
            last++;
#pragma omp taskwait
            sum += y;
#pragma omp taskloop num_tasks(4)
            for (int i = 0; i < 64; i++)
                items[i]++;
            sum += items[63];
        }
    }
#ifdef RACE
#pragma omp parallel num_threads(4)
    sum++;
#endif
    printf("%d %d\n", sum, last);
    omp_destroy_lock(&lock);
    return 0;
}
