/* A process has a team, forks, and its child opens a region: the child has only
 * the thread that forked, and a libgomp that knows of more.  It waits for them.
 * libomp starts anew in a child; there the region ends, and nothing is wrong.
 *
 * The process that tells the truth and is to be looked at is the child.  Its
 * parent holds in read() and ends it.
 *
 *   -DTHREAD   the child starts a thread of its own first; the C library gives it
 *              the memory of the one worker that was lost */
#include "expect.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#ifdef THREAD
enum { MEMBERS = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *own_thread(void *unused) {
    truth_note_with("own thread", TRUTH_MUTEX, NULL, TRUTH_NO_BODY, 0);
    pthread_mutex_lock(&mutex);
    return unused;
}

static void start_own_thread(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (pthread_create(&thread, NULL, own_thread, NULL) != 0)
        truth_fail("pthread_create");
}
#else
enum { MEMBERS = 4 };

static void start_own_thread(void) {}
#endif

TRUTH_MARKER void region_body(void) {
    truth_step();
    TRUTH_KEEP_FRAME();
}

TRUTH_MARKER void child_body(void) {
    if (truth_on_kmp()) {
#pragma omp parallel num_threads(MEMBERS)
        {
            region_body();
            if (omp_get_thread_num() != 0)
                truth_note_idle("idle worker");
        }
        truth_note("child", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_INITIAL, child_body));
        truth_round("fork_child", MEMBERS);
        truth_hold();
        return;
    }
    truth_note("child", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_INITIAL, child_body));
    truth_expect(.verdict = "deadlock", .situation = "pool_lost_in_fork", .threads = "child");
    start_own_thread();
    truth_hang("fork_child", MEMBERS == 2 ? 2 : 1);
#pragma omp parallel num_threads(MEMBERS)
    region_body();
}

int main(void) {
    char byte;
    truth_init_for(TRUTH_HANG_SECONDS);
#pragma omp parallel num_threads(MEMBERS)
    region_body();

    pid_t parent = getpid(), child = fork();
    if (child < 0)
        truth_fail("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        if (getppid() != parent)
            return 1; /* the parent was gone before */
        truth_init_for(TRUTH_HANG_SECONDS);
        child_body();
        return 0;
    }
    while (read(0, &byte, 1) > 0)
        ;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
