/* A program that opens a region of two threads, has its tool write what it knows, and becomes itself once more by exec, which
 * opens two regions.
 *
 * Prints `ready` then.  One byte on standard input lets it end. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static void region(void) {
#pragma omp parallel num_threads(2)
    {
    }
}

int main(int argc, char **argv) {
    omp_set_dynamic(0);
    region();
    if (argc == 1) {
        omp_control_tool(omp_control_tool_flush, 0, NULL);
        execl(argv[0], argv[0], "again", (char *)NULL);
        return 1;
    }
    region();
    printf("ready\n");
    fflush(stdout);
    getchar();
    printf("done\n");
    return 0;
}
