/* The thread of the second iteration takes a lock and then waits for its turn;
 * that of the first iteration, whose turn it is, waits for the lock.  The others
 * wait for their turns.
 *   -DNEST  a nestable lock */
#include "lock_kind.h"

static some_lock gate;
static atomic_int held;

TRUTH_MARKER void take_first(int i) {
    if (i == 0) {
        truth_wait_for(&held);
        truth_note("first", LOCK_WAIT, &gate, TRUTH_BODY(TRUTH_IMPLICIT, take_first));
        truth_hang("ordered_skip", 4);
        lock_set(&gate);
        truth_step();
        return;
    }
    if (i == 1) {
        lock_set(&gate);
        truth_note_lock("gate", LOCK_KIND, &gate, 1);
        atomic_store(&held, 1);
    }
    truth_note(i == 1 ? "second" : "later", TRUTH_ORDERED, NULL, TRUTH_BODY(TRUTH_IMPLICIT, take_first));
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect(.verdict = "deadlock", .situation = "lock_cycle", .without_owners = "closed_waits",
                 .threads = "first,second", .objects = "gate");
    lock_init(&gate);
#pragma omp parallel for num_threads(4) schedule(static, 1) ordered
    for (int i = 0; i < 4; i++) {
        take_first(i);
        TRUTH_KEEP_FRAME();
#pragma omp ordered
        truth_step();
    }
    return 0;
}
