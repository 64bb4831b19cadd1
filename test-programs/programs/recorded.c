/* A program that counts what it does, for who compares that with what an OMPT tool has recorded of it.
 *
 * Three threads take locks, meet at barriers, share loops and create tasks; one region is not followed by the tool, since
 * the program tells it to pause.  In the last region one thread has a lock, another one waits for it, and the third one
 * says what was done:
 *
 *   thread LWP LOCKS NESTED CRITICALS BARRIERS    of each thread, followed ones only
 *   tasks N LINE                                  explicit tasks that are over, created at that line
 *   did FLUSHES MASTERS LOOPS SINGLES TASKWAITS TASKGROUPS DEPENDENT INITIALISED DESTROYED
 *                                                 of all threads: flushes, master regions, loops that a thread took part
 *                                                 in, single regions executed, waits, tasks with one dependence each, and
 *                                                 locks
 *   more REDUCTIONS SECTIONS ORDERED ATOMICS CHUNKS
 *                                                 of all threads: reductions, sections constructs, ordered and atomic
 *                                                 regions, and chunks of loops with a dynamic schedule
 *   barrier LINE                                  where the threads meet
 *   queued LINE                                   where a task was created that nobody has begun
 *   regions N                                     followed ones, the last included
 *   held LWP ADDRESS LINE                         the lock that a thread has, and where it got it
 *   waits LWP ADDRESS LINE                        the lock that a thread waits for, and where
 *
 * and `ready`.  One byte on standard input lets it go on.  With an argument it aborts then.  Where cancellation is on, each
 * thread of a region before all this cancels a loop. */
#define _GNU_SOURCE
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3, TASKS = 20 };

static struct { long lwp, locks, nested, criticals, barriers; } did[THREADS];
static atomic_int flushes, masters, loops, singles, taskwaits, taskgroups, dependent, initialised, destroyed;
static omp_lock_t one, gate;
static omp_nest_lock_t nested;
static atomic_int reductions, sections, ordereds, atomics, chunks, second_created;
static int total, barrier_line, release[2], tasks_line, queued_line, held_line, wait_line;
static long held_by, waiter;
static atomic_int gate_taken, gate_wanted, tasks_run;

/* Of the runtime: compilers call these for atomic regions that the processor has no instruction for. */
void __kmpc_atomic_start(void);
void __kmpc_atomic_end(void);

static void work(void) {
    int me = omp_get_thread_num();
    did[me].lwp = syscall(SYS_gettid);
    for (int i = 0; i <= me; i++) {
        omp_set_lock(&one);
        did[me].locks++;
        omp_unset_lock(&one);
    }
    omp_set_nest_lock(&nested);
    omp_set_nest_lock(&nested);
    did[me].nested += 2;
    omp_unset_nest_lock(&nested);
    omp_unset_nest_lock(&nested);
    barrier_line = __LINE__ + 1;
#pragma omp barrier
    did[me].barriers++;
#pragma omp critical(counted)
    did[me].criticals++;
    loops++;
#pragma omp for schedule(dynamic)
    for (int i = 0; i < 6; i++)
        chunks++;
    loops++;
#pragma omp for ordered schedule(dynamic)
    for (int i = 0; i < 6; i++) {
        chunks++;
#pragma omp ordered
        ordereds++;
    }
    loops++;
    reductions++;
#pragma omp for reduction(+ : total)
    for (int i = 0; i < THREADS; i++)
        total++;
    sections++;
#pragma omp sections
    {
#pragma omp section
        tasks_run += 0;
#pragma omp section
        tasks_run += 0;
    }
    atomics++;
    __kmpc_atomic_start();
    __kmpc_atomic_end();
    flushes++;
#pragma omp flush
#pragma omp master
    masters++;
#pragma omp single
    {
        int cell = 0;
        singles++;
#pragma omp task depend(out : cell) shared(cell)
        {
            /* So that there is something for the other one to wait for. */
            while (!second_created)
                usleep(0);
            dependent++, cell = 1;
        }
#pragma omp task depend(in : cell) shared(cell)
        dependent += cell;
        second_created = 1;
        taskwaits++;
#pragma omp taskwait
        taskgroups++;
#pragma omp taskgroup
        {
        }
        for (int i = 0; i < TASKS; i++) {
            tasks_line = __LINE__ + 1;
#pragma omp task
            tasks_run++;
        }
    }
}

static void unfollowed(void) {
    omp_set_lock(&one);
    omp_unset_lock(&one);
#pragma omp barrier
}

static void last(void) {
    char byte;
    if (omp_get_thread_num() == 1) {
        held_by = syscall(SYS_gettid);
        held_line = __LINE__ + 1;
        omp_set_lock(&gate);
        gate_taken = 1;
        if (read(release[0], &byte, 1) != 1)
            abort();
        omp_unset_lock(&gate);
    } else if (omp_get_thread_num() == 2) {
        while (!gate_taken)
            usleep(0);
        waiter = syscall(SYS_gettid);
        gate_wanted = 1;
        wait_line = __LINE__ + 1;
        omp_set_lock(&gate);
        omp_unset_lock(&gate);
    } else {
        while (!gate_wanted)
            usleep(0);
        queued_line = __LINE__ + 1;
#pragma omp task
        tasks_run++;
    }
}

static void tell(int regions) {
    for (int i = 0; i < THREADS; i++)
        printf("thread %ld %ld %ld %ld %ld\n", did[i].lwp, did[i].locks, did[i].nested, did[i].criticals, did[i].barriers);
    printf("tasks %d %d\n", tasks_run, tasks_line);
    printf("did %d %d %d %d %d %d %d %d %d\n", flushes, masters, loops, singles, taskwaits, taskgroups, dependent, initialised,
           destroyed);
    printf("more %d %d %d %d %d\n", reductions, sections, ordereds, atomics, chunks);
    printf("barrier %d\n", barrier_line);
    printf("queued %d\n", queued_line);
    printf("regions %d\n", regions);
    printf("held %ld %lx %d\n", held_by, (unsigned long)&gate, held_line);
    printf("waits %ld %lx %d\n", waiter, (unsigned long)&gate, wait_line);
    printf("ready\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    char byte;
    (void)argv;
    if (pipe(release) != 0)
        abort();
    omp_set_dynamic(0);
    if (omp_get_cancellation()) {
#pragma omp parallel num_threads(THREADS)
#pragma omp for
        for (int i = 0; i < THREADS; i++) {
#pragma omp cancel for
        }
    }
    omp_init_lock(&one);
    omp_init_lock(&gate);
    omp_init_nest_lock(&nested);
    initialised = 3;
#pragma omp parallel num_threads(THREADS)
    work();
    omp_control_tool(omp_control_tool_pause, 1, NULL);
#pragma omp parallel num_threads(THREADS)
    unfollowed();
    omp_control_tool(omp_control_tool_start, 2, NULL);
    omp_destroy_lock(&one);
    destroyed = 1;
#pragma omp parallel num_threads(THREADS)
    {
        last();
        if (omp_get_thread_num() == 0) {
            tell(2);
            if (read(0, &byte, 1) != 1 || argc > 1)
                abort();
            if (write(release[1], "1", 1) != 1)
                abort();
        }
    }
    printf("done\n");
    return 0;
}
