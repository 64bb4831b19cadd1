/* A team that is stuck for good, beside a main thread that tells about it.
 *   stuck locks     two threads take two locks in opposite order
 *   stuck barriers  one thread waits at a barrier the other has skipped
 *   stuck twice     one thread sets a lock twice; the other sleeps
 *   stuck branch    the same, and the other reads in another branch of the same function
 *   stuck naps      the same, and the other sleeps there
 *   stuck either    one thread waits for a lock in one of two branches that set it; another has set it in a function it has left
 *   stuck released  one thread waits for a lock that it has released in a function; another has set it in one, and is at the barrier
 *   stuck pointer   one thread sets a lock twice that it knows by pointers; the other has never set it, and is at the barrier
 * Released, the program leaves without the team. */
#include "truth.h"

static omp_lock_t first, second;
static atomic_int first_held, second_held;
static omp_lock_t *volatile known = &first;
static const char *what;
static int sleeping[2];

static int is(const char *name) {
    return strcmp(what, name) == 0;
}

TRUTH_MARKER void locks_body(void) {
    int me = omp_get_thread_num();
    omp_lock_t *mine = me == 0 ? &first : &second, *other = me == 0 ? &second : &first;
    omp_set_lock(mine);
    atomic_store(me == 0 ? &first_held : &second_held, 1);
    truth_wait_for(me == 0 ? &second_held : &first_held);
    truth_note("lock waiter", TRUTH_LOCK, other, TRUTH_BODY(TRUTH_IMPLICIT, locks_body));
    omp_set_lock(other);
}

TRUTH_MARKER void barriers_body(void) {
    truth_note("barrier waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, barriers_body));
    if (omp_get_thread_num() == 0) {
#pragma omp barrier
    }
}

static void sleep_for_ever(void) {
    char byte;
    atomic_store(&second_held, 1);
    truth_note_with("sleeper", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    while (read(sleeping[0], &byte, 1) != 0) {
    }
}

TRUTH_MARKER void twice_body(void) {
    if (omp_get_thread_num() == 1) {
        sleep_for_ever();
        return;
    }
    truth_wait_for(&second_held);
    omp_set_lock(&first);
    truth_note("lock waiter", TRUTH_LOCK, &first, TRUTH_BODY(TRUTH_IMPLICIT, twice_body));
    omp_set_lock(&first);
    truth_step();
}

TRUTH_MARKER void branch_body(void) {
    char byte;
    if (__builtin_expect(omp_get_thread_num() == 0, 1)) {
        truth_wait_for(&second_held);
        omp_set_lock(&first);
        truth_note("lock waiter", TRUTH_LOCK, &first, TRUTH_BODY(TRUTH_IMPLICIT, branch_body));
        omp_set_lock(&first);
    } else {
        atomic_store(&second_held, 1);
        truth_note_with("sleeper", is("naps") ? TRUTH_SLEEP : TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
        while (is("naps") ? sleep(600) != 0 : read(sleeping[0], &byte, 1) != 0) {
        }
    }
    truth_step();
}

__attribute__((noinline)) static void set_first(void) {
    omp_set_lock(&first);
    truth_step();
}

TRUTH_MARKER void either_body(void) {
    if (omp_get_thread_num() == 1) {
        set_first();
        sleep_for_ever();
        return;
    }
    truth_wait_for(&second_held);
    truth_note("lock waiter", TRUTH_LOCK, &first, TRUTH_BODY(TRUTH_IMPLICIT, either_body));
    if (atomic_load(&second_held) == 2) {
        omp_set_lock(&first);
        atomic_store(&first_held, 2);
    } else {
        omp_set_lock(&first);
        atomic_store(&first_held, 3);
    }
    truth_step();
}

__attribute__((noinline)) static void unset_first(void) {
    truth_step();
    omp_unset_lock(&first);
}

TRUTH_MARKER void released_body(void) {
    if (omp_get_thread_num() == 1) {
        truth_wait_for(&first_held);
        set_first();
        atomic_store(&second_held, 1);
        truth_note("barrier waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, released_body));
    } else {
        omp_set_lock(&first);
        unset_first();
        atomic_store(&first_held, 1);
        truth_wait_for(&second_held);
        truth_note("lock waiter", TRUTH_LOCK, &first, TRUTH_BODY(TRUTH_IMPLICIT, released_body));
        omp_set_lock(&first);
    }
#pragma omp barrier
    truth_step();
}

__attribute__((noinline)) static void set_again(omp_lock_t *lock) {
    truth_note_with("lock waiter", TRUTH_LOCK, &first, TRUTH_NO_BODY, 0);
    omp_set_lock(lock);
    truth_step();
}

__attribute__((noinline)) static void set_twice(omp_lock_t *lock) {
    omp_set_lock(lock);
    set_again(lock);
    omp_unset_lock(lock);
}

TRUTH_MARKER void pointer_body(void) {
    if (omp_get_thread_num() == 0) {
        truth_note("barrier waiter", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, pointer_body));
    } else {
        set_twice(known);
    }
#pragma omp barrier
    truth_step();
}

static void *team_thread(void *unused) {
#pragma omp parallel num_threads(2)
    {
        if (is("locks"))
            locks_body();
        else if (is("twice"))
            twice_body();
        else if (is("branch") || is("naps"))
            branch_body();
        else if (is("either"))
            either_body();
        else if (is("released"))
            released_body();
        else if (is("pointer"))
            pointer_body();
        else
            barriers_body();
        TRUTH_KEEP_FRAME();
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    truth_init();
    what = argc > 1 ? argv[1] : "";
    if (pipe(sleeping) != 0)
        truth_fail("pipe");
    omp_init_lock(&first);
    omp_init_lock(&second);
    truth_note_with("coordinator", TRUTH_PIPE, NULL, TRUTH_NO_BODY, 0);
    if (pthread_create(&thread, NULL, team_thread, NULL) != 0)
        truth_fail("pthread_create");
    truth_ready("stuck", 3);
    truth_done();
    fflush(stdout);
    _exit(0);
}
