/* What a debugger follows: "exec PROGRAM" opens a region of two and becomes
 * PROGRAM; "fork" has a child that opens a region of three, and waits for it. */
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BODY __attribute__((noinline))

static int met;

BODY static void before_exec(void) {
#pragma omp parallel num_threads(2)
    {
#pragma omp atomic
        ++met;
    }
}

BODY static void in_child(void) {
#pragma omp parallel num_threads(3)
    {
#pragma omp atomic
        ++met;
    }
}

int main(int argc, char **argv) {
    int status = 0;
    pid_t child;
    omp_set_dynamic(0);
    if (argc > 2 && strcmp(argv[1], "exec") == 0) {
        before_exec();
        execl(argv[2], argv[2], (char *)NULL);
        return 1;
    }
    child = fork();
    if (child == 0) {
        in_child();
        printf("child %d\n", met);
        fflush(stdout);
        _exit(met == 3 ? 7 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return 1;
    }
    printf("parent %d\n", WEXITSTATUS(status));
    return 0;
}
