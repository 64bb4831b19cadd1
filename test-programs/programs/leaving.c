/* A worker that its pool no longer needs ends, and is held on its way by the
 * destructor of a thread-specific value.  The team it was in last is freed. */
#include "truth.h"

static pthread_key_t key;
static atomic_int left;

static void hold_at_end(void *unused) {
    (void)unused;
    truth_note("leaver", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
    atomic_store(&left, 1);
    truth_hold();
}

TRUTH_MARKER void two_remain(int speak) {
#pragma omp parallel num_threads(2)
    {
        if (speak && omp_get_thread_num() == 0) {
            truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
            truth_ready("leaving", 3);
            truth_release();
        } else if (speak) {
            truth_note("member", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
            truth_hold();
        }
        TRUTH_KEEP_FRAME();
    }
}

int main(void) {
    truth_init();
    if (pthread_key_create(&key, hold_at_end))
        return 1;
#pragma omp parallel num_threads(3)
    if (omp_get_thread_num() == 2)
        pthread_setspecific(key, &key);
    two_remain(0);
    truth_wait_for(&left);
    two_remain(1);
    truth_done();
    return 0;
}
