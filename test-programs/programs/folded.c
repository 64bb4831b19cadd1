/* Two functions open regions with the same code, and only the second is called.
 * GCC makes one body a jump to the other (-fipa-icf).  Released, the program
 * leaves without the team. */
#include "truth.h"

static int sleeping[2];

__attribute__((noinline)) void member(void) {
    char byte;
    if (omp_get_thread_num() != 2) {
        truth_note("waiter", TRUTH_BARRIER, NULL, TRUTH_NO_BODY);
#pragma omp barrier
    }
    truth_note_with("sleeper", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    while (read(sleeping[0], &byte, 1) != 0) {
    }
}

void *never_called(void *unused) {
#pragma omp parallel num_threads(3)
    {
        member();
        TRUTH_KEEP_FRAME();
    }
    return unused;
}

void *called(void *unused) {
#pragma omp parallel num_threads(3)
    {
        member();
        TRUTH_KEEP_FRAME();
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    (void)argv;
    truth_init();
    if (pipe(sleeping) != 0)
        truth_fail("pipe");
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    if (pthread_create(&thread, NULL, argc > 100 ? never_called : called, NULL) != 0)
        truth_fail("pthread_create");
    truth_ready("folded", 4);
    truth_done();
    fflush(stdout);
    _exit(0);
}
