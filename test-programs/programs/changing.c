/* changing HOW: a process that does not stay as it is.
 *   fork     makes children that end at once
 *   exec     executes itself again and again, each time with a new team
 *   exit     ends after a few regions
 *   threads  makes threads that end at once, each after a region of its own
 * It prints "begun" when it is at it, and ends when it is killed, but for exit. */
#include "truth.h"

#include <sys/wait.h>

static void region(int threads) {
#pragma omp parallel num_threads(threads)
    TRUTH_KEEP_FRAME();
}

static void *own_region(void *ignored) {
    region(2);
    return ignored;
}

static void begun(void) {
    printf("begun\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    region(strcmp(how, "exec") ? 4 : 16);
    if (argc < 3)
        begun();
    if (!strcmp(how, "fork"))
        for (;;) {
            region(4);
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            if (child > 0)
                waitpid(child, NULL, 0);
        }
    if (!strcmp(how, "exec")) {
        char *again[] = {argv[0], "exec", "again", NULL};
        execv("/proc/self/exe", again);
    }
    if (!strcmp(how, "exit"))
        for (int i = 0; i < 200; i++)
            region(4);
    if (!strcmp(how, "threads"))
        for (;;) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, own_region, NULL) == 0)
                pthread_join(thread, NULL);
        }
    return 0;
}
