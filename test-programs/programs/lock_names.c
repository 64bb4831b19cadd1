/* A member waits for a lock that only the code of the call names.  Nothing of the member's function is on its stack when it waits:
 * the wait is its last act, and optimised code jumps into the runtime.
 *   -DPART   the lock is part of an array, and a function is given its address */
#include "truth.h"

#ifdef PART
static struct {
    int used;
    omp_lock_t lock;
} table[3];
#define LAST (&table[1].lock)
#else
static omp_lock_t last_lock;
#define LAST (&last_lock)
#endif

TRUTH_MARKER void coordinate(void) {
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    truth_ready("lock_names", 2);
    truth_step();
    omp_unset_lock(LAST);
}

TRUTH_MARKER void announce(void) {
    truth_note_with("waiter", TRUTH_LOCK, LAST, TRUTH_NO_BODY, 0);
    truth_step();
}

#ifdef PART
TRUTH_MARKER void take(omp_lock_t *lock) {
    omp_set_lock(lock);
    TRUTH_KEEP_FRAME();
}
#else
#define take omp_set_lock
#endif

int main(void) {
    truth_init();
    omp_init_lock(LAST);
    omp_set_lock(LAST);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            coordinate();
        } else {
            announce();
            take(LAST);
#ifdef PART
            TRUTH_KEEP_FRAME();
#endif
        }
    }
    truth_done();
    return 0;
}
