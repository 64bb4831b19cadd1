/* Tasks that no thread executes, for libomp and libiomp5: queued with and
 * without a priority, waiting for dependences of each kind, detached, in task
 * groups, and one that is over but has children.
 *
 * Thread 1 goes to the barrier once thread 0 has generated the detached task
 * and the parent, and executes both; of the parent's children it takes the
 * one generated last, and stays in it.  Then thread 0 generates what nobody
 * executes, for it gets to no scheduling point itself.
 *
 * Each line printed is `NAME LINE`, with the line of the construct, by which a
 * task is known; `cell NAME ADDRESS`; `event HANDLE`; at last `ready`.  An
 * argument is a number of further queued tasks.  One byte on standard input
 * lets the program end. */
#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int generated, child_began, sum;
static int a, b, c, d, e, f;
static int release[2];

static void wait_for(atomic_int *flag) {
    while (!atomic_load(flag))
        ;
}

#define TASK(NAME) printf("task %s %d\n", NAME, __LINE__ + 1)

static void generate(long more) {
    TASK("plain");
#pragma omp task
    sum++;
    TASK("untied");
#pragma omp task untied
    sum++;
    TASK("low");
#pragma omp task priority(2)
    sum++;
    for (int i = 0; i < 2; i++) {
        TASK("high");
#pragma omp task priority(7)
        sum++;
    }

    TASK("a writer");
#pragma omp task depend(out : a)
    sum++;
    TASK("a reader 1");
#pragma omp task depend(in : a)
    sum++;
    TASK("a reader 2");
#pragma omp task depend(in : a)
    sum++;
    TASK("a last");
#pragma omp task depend(inout : a)
    sum++;
    TASK("b writer");
#pragma omp task depend(out : b)
    sum++;
    TASK("b exclusive 1");
#pragma omp task depend(mutexinoutset : b)
    sum++;
    TASK("b exclusive 2");
#pragma omp task depend(mutexinoutset : b)
    sum++;
    TASK("b reader");
#pragma omp task depend(in : b)
    sum++;
    TASK("c first");
#pragma omp task depend(out : c)
    sum++;
    TASK("c second");
#pragma omp task depend(out : c)
    sum++;
    TASK("c third");
#pragma omp task depend(out : c)
    sum++;
    TASK("after detached");
#pragma omp task depend(in : d)
    sum++;
    TASK("e and f");
#pragma omp task depend(out : e, f)
    sum++;
    TASK("after both");
#pragma omp task depend(in : e, f)
    sum++;
    for (long i = 0; i < more; i++) {
#pragma omp task
        sum++;
    }
}

static void in_groups(void) {
    char byte;
#pragma omp taskgroup
    {
        TASK("outer group");
#pragma omp task
        sum++;
#pragma omp taskgroup
        {
            for (int i = 0; i < 2; i++) {
                TASK("inner group");
#pragma omp task
                sum++;
            }
            printf("ready\n");
            fflush(stdout);
            if (read(0, &byte, 1) < 0)
                abort();
        }
    }
}

static void parent(void) {
    TASK("child");
#pragma omp task
    sum++;
    TASK("running");
#pragma omp task
    {
        char byte;
        atomic_store(&child_began, 1);
        if (read(release[0], &byte, 1) < 0)
            abort();
    }
}

static void thread_0(long more) {
    omp_event_handle_t event = (omp_event_handle_t)0;
    TASK("detached");
#pragma omp task detach(event) depend(out : d)
    sum++;
    printf("event %lx\n", (unsigned long)event);
    TASK("parent");
#pragma omp task
    parent();
    atomic_store(&generated, 1);
    wait_for(&child_began);
    generate(more);
    in_groups();
    omp_fulfill_event(event);
    if (write(release[1], "", 1) != 1)
        abort();
}

int main(int count, char **arguments) {
    long more = count > 1 ? atol(arguments[1]) : 0;
    if (pipe(release) != 0)
        abort();
    printf("cell a %lx\ncell b %lx\ncell c %lx\n", (unsigned long)&a, (unsigned long)&b, (unsigned long)&c);
    printf("cell d %lx\ncell e %lx\ncell f %lx\n", (unsigned long)&d, (unsigned long)&e, (unsigned long)&f);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            thread_0(more);
        else
            wait_for(&generated);
    }
    printf("done %d\n", sum);
    return 0;
}
