/* A program with an OMPT tool of its own, which files a number with each
 * thread, region and task.
 *
 * Each of three threads creates a task and holds in it.  Prints, by LWP, what is
 * filed with the thread, with the region and with the task it executes, and the
 * frames that OMPT tells of that task:
 *
 *   thread LWP THREAD REGION TASK EXIT EXIT-FLAGS ENTER ENTER-FLAGS
 *
 * and `ready`.  One byte on standard input lets it go on.  Without OMPT in the
 * runtime it says `no OMPT`. */
#define _GNU_SOURCE
#include <omp-tools.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3 };

static ompt_get_task_info_t get_task_info;
static ompt_get_parallel_info_t get_parallel_info;
static ompt_get_thread_data_t get_thread_data;
static atomic_int threads_filed, regions_filed, tasks_filed, arrived;
static int release[2];

static void thread_begin(ompt_thread_t type, ompt_data_t *data) {
    (void)type;
    data->value = 1000 + (uint64_t)atomic_fetch_add(&threads_filed, 1);
}

static void parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region, unsigned size, int flags,
                           const void *called_from) {
    (void)task, (void)frame, (void)size, (void)flags, (void)called_from;
    region->value = 2000 + (uint64_t)atomic_fetch_add(&regions_filed, 1);
}

static void implicit_task(ompt_scope_endpoint_t end, ompt_data_t *region, ompt_data_t *task, unsigned size,
                          unsigned number, int flags) {
    (void)region, (void)size, (void)number, (void)flags;
    if (end == ompt_scope_begin)
        task->value = 3000 + (uint64_t)atomic_fetch_add(&tasks_filed, 1);
}

static void task_create(ompt_data_t *parent, const ompt_frame_t *frame, ompt_data_t *task, int flags, int dependences,
                        const void *called_from) {
    (void)parent, (void)frame, (void)flags, (void)dependences, (void)called_from;
    task->value = 3000 + (uint64_t)atomic_fetch_add(&tasks_filed, 1);
}

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool) {
    (void)device, (void)tool;
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    get_task_info = (ompt_get_task_info_t)lookup("ompt_get_task_info");
    get_parallel_info = (ompt_get_parallel_info_t)lookup("ompt_get_parallel_info");
    get_thread_data = (ompt_get_thread_data_t)lookup("ompt_get_thread_data");
    set(ompt_callback_thread_begin, (ompt_callback_t)thread_begin);
    set(ompt_callback_parallel_begin, (ompt_callback_t)parallel_begin);
    set(ompt_callback_implicit_task, (ompt_callback_t)implicit_task);
    set(ompt_callback_task_create, (ompt_callback_t)task_create);
    return 1;
}

static void finalize(ompt_data_t *tool) { (void)tool; }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}

static void tell(void) {
    int flags, number, size;
    ompt_data_t *task = NULL, *region = NULL;
    ompt_frame_t *frame = NULL;
    if (get_task_info(0, &flags, &task, &frame, &region, &number) != 2)
        abort();
    (void)get_parallel_info(0, &region, &size);
    printf("thread %ld %lu %lu %lu %lx %d %lx %d\n", syscall(SYS_gettid), get_thread_data()->value, region->value,
           task->value, (unsigned long)frame->exit_frame.ptr, frame->exit_frame_flags,
           (unsigned long)frame->enter_frame.ptr, frame->enter_frame_flags);
}

/* The last thread to come is the one that reads. */
static void stop(void) {
    char byte;
#pragma omp critical
    tell();
    if (atomic_fetch_add(&arrived, 1) + 1 == THREADS) {
        printf("ready\n");
        fflush(stdout);
        if (read(0, &byte, 1) != 1 || write(release[1], "12", THREADS - 1) != THREADS - 1)
            abort();
    } else if (read(release[0], &byte, 1) != 1)
        abort();
}

int main(void) {
    if (pipe(release) != 0)
        abort();
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS)
    {
        if (!get_task_info) {
#pragma omp master
            printf("no OMPT\n");
        } else if (omp_get_thread_num() == 0) {
            /* Its implicit task. */
            stop();
        } else {
            /* A task that is executed at once. */
#pragma omp task if (0)
            stop();
        }
    }
    printf("done\n");
    return 0;
}
