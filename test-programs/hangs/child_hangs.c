/* Three members wait at a barrier for the fourth, which waits for the end of a child process that never ends. */
#include "expect.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pid_t child;

/* Before there is a thread but the first: the child has all of the process. */
static void start_child(void) {
    pid_t parent = getpid();
    child = fork();
    if (child < 0)
        truth_fail("fork");
    if (child != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent)
        pause();
    _exit(0);
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 2) {
        truth_note("parent", TRUTH_OTHER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        waitpid(child, NULL, 0);
    } else {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        if (omp_get_thread_num() == 1)
            truth_hang("child_hangs", 4);
    }
#pragma omp barrier
    truth_step();
}

int main(void) {
    start_child();
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "suspect", .situation = "missing_member", .threads = "waiter,parent",
                 .missing = "parent");
#pragma omp parallel num_threads(4)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
