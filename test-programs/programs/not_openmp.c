/* Threads without any OpenMP: what an inspector must call "no OpenMP here". */
#include "truth.h"

static void *user_thread(void *unused) {
    truth_note("plain thread", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
    truth_hold();
    truth_step();
    return unused;
}

int main(void) {
    pthread_t threads[2];
    truth_init();
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, user_thread, NULL) != 0)
            truth_fail("pthread_create");
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
    truth_ready("not_openmp", 3);
    truth_release();
    for (int i = 0; i < 2; i++)
        if (pthread_join(threads[i], NULL) != 0)
            truth_fail("pthread_join");
    truth_step();
    truth_done();
    return 0;
}
