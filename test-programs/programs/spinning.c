/* A thread that waits without sleeping, with OMP_WAIT_POLICY=active and
 * GOMP_SPINCOUNT=infinity; two, because libgomp lets threads spin only as long
 * as there are no more of them than processors.  The other, the coordinator,
 * holds what it waits for, in read().
 *
 * SPIN   lock, nest lock, critical or barrier */
#include "truth.h"

static const char *wanted;
static omp_lock_t gate;
static omp_nest_lock_t stairs;
static atomic_int held;

static int is(const char *name) { return strcmp(wanted, name) == 0; }

TRUTH_MARKER void hold_all(void) {
    omp_set_lock(&gate);
    omp_set_nest_lock(&stairs);
    omp_set_nest_lock(&stairs);
#pragma omp critical
    {
        atomic_store(&held, 1);
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY);
        truth_ready("spinning", 2);
    }
    omp_unset_nest_lock(&stairs);
    omp_unset_nest_lock(&stairs);
    omp_unset_lock(&gate);
}

TRUTH_MARKER void wait_here(void) {
    truth_wait_for(&held);
    /* Of a wait for a lock the kit expects that it may burn time. */
    truth_note(wanted, TRUTH_LOCK, NULL, TRUTH_NO_BODY);
    if (is("lock")) {
        omp_set_lock(&gate);
        omp_unset_lock(&gate);
    } else if (is("nest lock")) {
        omp_set_nest_lock(&stairs);
        omp_unset_nest_lock(&stairs);
    } else if (is("critical")) {
#pragma omp critical
        truth_step();
    }
}

int main(void) {
    wanted = getenv("SPIN");
    if (!wanted)
        wanted = "barrier";
    truth_init();
    omp_init_lock(&gate);
    omp_init_nest_lock(&stairs);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            hold_all();
        else
            wait_here();
#pragma omp barrier
    }
    truth_done();
    return 0;
}
