/* A loop with `ordered` in a team of as many threads as the argument says.
 * The thread that has the first iteration stops in its ordered region.
 *
 * Prints `ready`.  One byte on standard input lets it go on. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 2, sum = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(threads)
    {
        __asm__ volatile("" ::: "memory"); /* or the two become one construct */
#pragma omp for schedule(dynamic, 1) ordered
        for (int i = 0; i < threads; i++) {
#pragma omp ordered
            {
                if (i == 0) {
                    char byte;
                    printf("ready\n");
                    fflush(stdout);
                    if (read(0, &byte, 1) != 1)
                        abort();
                }
                sum += i;
            }
        }
    }
    printf("done\n");
    return sum == threads * (threads - 1) / 2 ? 0 : 1;
}
