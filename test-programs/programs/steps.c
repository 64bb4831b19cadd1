/* Hangs until it reads two bytes. Then it begins another region, whose threads wait for each other's locks for ever. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static omp_lock_t locks[2];

static void inner(int outer) {
#pragma omp parallel num_threads(2)
    {
        int mine = 10 * outer + omp_get_thread_num();
        if (omp_get_thread_num() == 0) {
            char go;
            printf("ready\n");
            fflush(stdout);
            if (read(0, &go, 1) != 1)
                _exit(1);
        }
#pragma omp barrier
        if (mine < 0)
            printf("%d\n", mine);
    }
}

int main(void) {
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    omp_init_lock(&locks[0]);
    omp_init_lock(&locks[1]);
#pragma omp parallel num_threads(2)
    inner(omp_get_thread_num());
#pragma omp parallel num_threads(2)
    {
        int own = omp_get_thread_num();
        omp_set_lock(&locks[own]);
#pragma omp barrier
        omp_set_lock(&locks[1 - own]);
    }
    return 0;
}
