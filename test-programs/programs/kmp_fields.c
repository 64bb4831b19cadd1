/* Fields that libomp and libiomp5 leave as they were, or unset.  The argument says which:
 *
 *   parents    a region in an explicit task, on threads that another region had before
 *   at_once    a task that runs, with KMP_TASKING=0
 *   queues     a large team without tasks after a small team with some
 *   tool       a queued task, without an OMPT tool
 *   proxy      a proxy task that waits for another task
 *   cancelled  a loop that was cancelled, and all have left (OMP_CANCELLATION=true)
 *
 * Thread 0 prints `ready` and reads standard input; the others hold in read().
 * One byte on standard input ends the program. */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SMALL = 3, LARGE = 24, PROXY = 0x11 };

struct ident {
    int reserved[4];
    const char *position;
};

struct dependence {
    void *base;
    size_t length;
    unsigned char flags;
};

int __kmpc_global_thread_num(struct ident *);
void *__kmpc_omp_task_alloc(struct ident *, int, int, size_t, size_t, int (*)(int, void *));
int __kmpc_omp_task_with_deps(struct ident *, int, void *, int, struct dependence *, int, struct dependence *);

static atomic_int holding, sum;
static int never[2];

/* Comes back in no thread: thread 0 ends the program. */
static void hold(void) {
    char byte;
    if (omp_get_thread_num() != 0) {
        atomic_fetch_add(&holding, 1);
        if (read(never[0], &byte, 1) < 0)
            abort();
    }
    while (atomic_load(&holding) < omp_get_num_threads() - 1)
        usleep(1000);
    printf("ready\n");
    fflush(stdout);
    if (read(0, &byte, 1) < 0)
        abort();
    printf("done\n");
    fflush(stdout);
    _exit(0);
}

static void parents(void) {
#pragma omp parallel num_threads(SMALL)
    sum++;
#pragma omp task if (0)
    {
#pragma omp parallel num_threads(SMALL)
        hold();
    }
}

static void at_once(void) {
#pragma omp parallel num_threads(SMALL)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task
            hold();
        } else
            hold();
    }
}

static void queues(void) {
#pragma omp parallel num_threads(SMALL)
    {
        /* A team uses two sets of queues in turn. */
        for (int i = 0; i < 2; i++) {
            if (omp_get_thread_num() == 0) {
#pragma omp task
                sum++;
            }
#pragma omp barrier
        }
    }
    /* What lies behind the queues of the small team is no queue. */
    for (int i = 0; i < 200; i++)
        memset(malloc(200), 0x11, 200);
#pragma omp parallel num_threads(LARGE)
    hold();
}

static void tool(void) {
#pragma omp parallel num_threads(SMALL)
    {
        if (omp_get_thread_num() == 0) {
#pragma omp task
            sum++;
        }
        hold();
    }
}

static int run_proxy(int thread, void *task) {
    return thread + (task != NULL);
}

static void proxy(void) {
    static struct ident here = {{0, 2, 0, 0}, ";unknown;unknown;0;0;;"};
    static int cell;
    struct dependence on = {&cell, sizeof cell, 3};
#pragma omp parallel num_threads(SMALL)
    {
        if (omp_get_thread_num() == 0) {
            int gtid = __kmpc_global_thread_num(&here);
#pragma omp task depend(out : cell)
            sum++;
            void *task = __kmpc_omp_task_alloc(&here, gtid, PROXY, 64, 0, run_proxy);
            __kmpc_omp_task_with_deps(&here, gtid, task, 1, &on, 0, NULL);
        }
        hold();
    }
}

static void cancelled(void) {
#pragma omp parallel num_threads(SMALL)
    {
#pragma omp for schedule(monotonic : dynamic, 1)
        for (int i = 0; i < 100; i++) {
#pragma omp cancel for
            sum++;
        }
        hold();
    }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"parents", parents}, {"at_once", at_once}, {"queues", queues},
                 {"tool", tool},       {"proxy", proxy},     {"cancelled", cancelled}};
    if (pipe(never) != 0 || count < 2)
        abort();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(arguments[1], modes[i].name) == 0)
            modes[i].run();
    abort();
}
