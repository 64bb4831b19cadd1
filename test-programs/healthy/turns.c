/* Two processes take turns over pipes: the team of one computes while the other's
 * waits at a barrier for the member that reads.  Each look meets one of them in
 * the call of another, as in a hang; but they get on. */
#include "expect.h"

#include <signal.h>
#include <sys/prctl.h>

static void take_turns(int from, int to, int tells) {
#pragma omp parallel num_threads(3)
    {
        int me = omp_get_thread_num();
        for (;;) {
            char byte = 0;
            if (me == 0 && read(from, &byte, 1) != 1)
                truth_fail("read");
#pragma omp barrier
            for (volatile int i = 0; i < 5000000; i++)
                ;
#pragma omp barrier
            if (me == 0 && write(to, &byte, 1) != 1)
                truth_fail("write");
            if (me == 0 && tells)
                truth_round("turns", 0);
        }
    }
}

int main(void) {
    int there[2], back[2];
    char first = 0;
    if (pipe(there) != 0 || pipe(back) != 0)
        truth_fail("pipe");
    pid_t other = fork();
    if (other < 0)
        truth_fail("fork");
    if (other == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            truth_fail("prctl");
        alarm(TRUTH_HEALTHY_SECONDS);
        take_turns(there[0], back[1], 0);
    }
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    if (write(there[1], &first, 1) != 1)
        truth_fail("write");
    take_turns(back[0], there[1], 1);
}
