/* Regions and tasks that begin and end in a known order.  What a region is to
 * be is in "meeting" of the thread that meets its construct: size, level, and a
 * number of the construct.  The program waits for a byte before the first
 * region, and says at the end how many there were of each kind. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

#define BODY __attribute__((noinline))
#define MEET(size, level, construct) \
    (meeting[0] = (size), meeting[1] = (level), meeting[2] = (construct))

static __thread volatile int meeting[3];
static int regions, serialized, deferred, undeferred;

static void count(int *what) {
#pragma omp atomic
    ++*what;
}

BODY static void size3_level2(void) {
    MEET(3, 2, 1);
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 0) {
            count(&regions);
        }
    }
}

BODY static void size2_level1(void) {
    MEET(2, 1, 2);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            count(&regions);
        }
        size3_level2();
    }
}

BODY static void size1_level2(void) {
    MEET(1, 2, 3);
#pragma omp parallel num_threads(1)
    count(&serialized);
}

BODY static void size4_level1(void) {
    MEET(4, 1, 4);
#pragma omp parallel num_threads(4)
    {
        if (omp_get_thread_num() == 0) {
            count(&regions);
        }
        size1_level2();
    }
}

BODY static void size1_level3(void) {
    MEET(1, 3, 5);
#pragma omp parallel num_threads(1)
    count(&serialized);
}

BODY static void size1_inner_level2(void) {
    MEET(1, 2, 6);
#pragma omp parallel num_threads(1)
    {
        count(&serialized);
        size1_level3();
    }
}

BODY static void size1_level1(int never) {
    MEET(1, 1, 7);
#pragma omp parallel if (never)
    {
        count(&serialized);
        size1_inner_level2();
    }
}

BODY static void task_waited(int how_many) {
    for (int n = 0; n < how_many; n++) {
#pragma omp task
        count(&deferred);
    }
#pragma omp taskwait
}

BODY static void task_undeferred(int never) {
#pragma omp task if (never)
    count(&undeferred);
}

BODY static void task_inside(int never) {
#pragma omp task
    {
        count(&deferred);
        task_undeferred(never);
    }
}

BODY static void size2_tasks_level1(int never) {
    MEET(2, 1, 8);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) {
            count(&regions);
            task_waited(3);
            task_inside(never);
            task_undeferred(never);
        }
    }
}

int main(int argc, char **argv) {
    char go;
    (void)argv;
    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    printf("ready\n");
    fflush(stdout);
    if (read(STDIN_FILENO, &go, 1) != 1) {
        return 1;
    }
    for (int round = 0; round < 3; round++) {
        size2_level1();
        size4_level1();
        size1_level1(argc > 9);
        size2_tasks_level1(argc > 9);
    }
    printf("regions=%d serialized=%d deferred=%d undeferred=%d\n", regions, serialized, deferred, undeferred);
    return 0;
}
