/* A program whose child goes on using OpenMP: the parent has had a region of three threads when it forks, the child has one
 * of two.
 *
 * The child says `child PID` and `ready`, and goes on when it gets a byte on standard input; the parent waits for it. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int members;

static void meet(int threads) {
#pragma omp parallel num_threads(threads)
    {
#pragma omp critical
        members++;
    }
}

int main(void) {
    char byte;
    int status;
    omp_set_dynamic(0);
    meet(3);
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child > 0) {
        if (waitpid(child, &status, 0) != child || status != 0)
            abort();
        printf("done\n");
        return 0;
    }
    members = 0;
    meet(2);
    printf("child %d %d\n", (int)getpid(), members);
    printf("ready\n");
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        abort();
    fflush(stdout);
    _exit(0);
}
