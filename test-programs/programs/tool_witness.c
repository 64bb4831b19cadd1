/* A program with a tool of OMPT inside.  At each event the tool asks the runtime, and compares with what the OpenMP API
   and the stack say.  The program counts what it does.  At the end both counts are printed, one event a line:

       count NAME PROGRAM TOOL
       checks NUMBER
       wrong WHAT           for each comparison that failed

   Built by gcc, for a library that gives libgomp OMPT. */
#define _GNU_SOURCE
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

/* As in omp-tools.h, which gcc does not have. */
typedef union { uint64_t value; void *ptr; } data_t;
typedef struct { data_t exit_frame, enter_frame; int exit_flags, enter_flags; } frame_t;
typedef struct { void *variable; int type; } dependence_t;
typedef void (*function_t)(void);
typedef function_t (*lookup_t)(const char *);
typedef struct {
    int (*initialize)(lookup_t, int, data_t *);
    void (*finalize)(data_t *);
    data_t tool_data;
} result_t;
__attribute__((weak)) int omp_control_tool(int, int, void *);
/* As a program of Fortran calls them, whose variable has the address of the lock. */
void omp_init_nest_lock_(void **), omp_destroy_nest_lock_(void **), omp_set_nest_lock_(void **), omp_unset_nest_lock_(void **);
int omp_test_nest_lock_(void **);
static omp_nest_lock_t nest;
static void *fortran_nest;

enum { BEGIN = 1, END = 2 };

/* What is counted: by the program, and by the tool. */
enum {
    REGIONS, REGION_ENDS, SOURCES, SINKS, IMPLICIT, IMPLICIT_ENDS, TASKS, UNDEFERRED, EXECUTED, BARRIERS, TASKWAITS, GROUPS, LOOPS, ITERATIONS,
    SECTIONS, EXECUTORS, OTHERS, TASKLOOPS, LOCKS, NEST_FIRST, NEST_AGAIN, TESTS, CRITICALS, ATOMICS, ORDERED, RELEASES,
    INITIALISED, DESTROYED, DEPENDENCES, CANCELLED, LEAGUES, TEAMS, TEAM_ENDS, TARGETS, CONTROLS, FULFILLED, KINDS
};
static const char *const names[KINDS] = {
    "regions", "region_ends", "sources", "sinks", "implicit", "implicit_ends", "tasks", "undeferred", "executed", "barriers", "taskwaits", "groups",
    "loops", "iterations", "sections", "executors", "others", "taskloops", "locks", "nest_first", "nest_again", "tests", "criticals",
    "atomics", "ordered", "releases", "initialised", "destroyed", "dependences", "cancelled", "leagues", "teams", "team_ends", "targets",
    "controls", "fulfilled",
};
static long did[KINDS], told[KINDS], checks, wrongs;

static void add(long *counts, int kind, long count) { __atomic_fetch_add(&counts[kind], count, __ATOMIC_RELAXED); }
static void does(int kind, long count) { add(did, kind, count); }
static void tells(int kind) { add(told, kind, 1); }
static void check(int holds, const char *what, long a, long b)
{
    __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
    if (!holds && __atomic_fetch_add(&wrongs, 1, __ATOMIC_RELAXED) < 20)
        printf("wrong %s: %ld %ld\n", what, a, b);
}

/* The tool. */
static int (*get_parallel_info)(int, data_t **, int *);
static int (*get_task_info)(int, int *, data_t **, frame_t **, data_t **, int *);
static int (*get_state)(uint64_t *);
static data_t *(*get_thread_data)(void);
static uint64_t (*get_unique_id)(void);
static int (*set_callback)(int, function_t);
static int (*get_callback)(int, function_t *);

static int listens;
static uint64_t next_id(void) { return get_unique_id(); }

/* Whether a frame on the stack has this canonical frame address. */
struct search { uintptr_t wanted; int found; };
static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
    struct search *search = argument;
    /* It is the stack pointer in the frame, which is the canonical frame address of the frame that it called. */
    if (_Unwind_GetCFA(context) == search->wanted)
        search->found = 1;
    return search->found ? _URC_END_OF_STACK : _URC_NO_REASON;
}
static int on_stack(uint64_t address)
{
    struct search search = {address, 0};
    _Unwind_Backtrace(look, &search);
    return search.found;
}

/* Frames of the current task and those beneath it. */
static void frames(void)
{
    for (int level = 0;; level++) {
        int flags, number;
        data_t *task, *region;
        frame_t *frame;
        if (get_task_info(level, &flags, &task, &frame, &region, &number) != 2)
            break;
        /* Frames of tasks that other threads execute are on their stacks. */
        if (level > 0 && number != 0)
            break;
        if (frame->exit_frame.value)
            check(on_stack(frame->exit_frame.value), "exit frame", level, (long)frame->exit_frame.value);
        if (frame->enter_frame.value)
            check(on_stack(frame->enter_frame.value), "enter frame", level, (long)frame->enter_frame.value);
        if ((flags & 2) && number != 0)
            break;
    }
}

/* What the runtime says of the calling thread, in the program's own code. */
static void agree(void)
{
    int size = -1, flags = 0, number = -1;
    data_t *region = NULL, *task = NULL, *around = NULL;
    frame_t *frame = NULL;
    if (!listens)
        return;
    check(get_parallel_info(0, &region, &size) == 2, "parallel info", 0, 0);
    check(size == omp_get_num_threads(), "team size", size, omp_get_num_threads());
    check(get_task_info(0, &flags, &task, &frame, &around, &number) == 2, "task info", 0, 0);
    check(number == omp_get_thread_num(), "thread number", number, omp_get_thread_num());
    check(region == around, "region of the task", 0, 0);
    check(frame->exit_frame.value != 0 || (flags & 1), "exit frame is set", flags, 0);
    check(frame->enter_frame.value == 0, "enter frame is not set", flags, 0);
    check(get_thread_data()->value != 0, "thread data", 0, 0);
    /* The initial task's region is one more, and a league. */
    int levels = 0, others = 1 + (omp_get_num_teams() > 1);
    while (get_parallel_info(levels, &region, &size) == 2)
        levels++;
    check(levels == omp_get_level() + others, "levels", levels, omp_get_level());
    for (int level = 0; level < omp_get_level(); level++) {
        get_parallel_info(level, &region, &size);
        check(size == omp_get_team_size(omp_get_level() - level), "ancestor size", size, level);
    }
    frames();
}

static void parallel_begin(data_t *task, const frame_t *frame, data_t *region, unsigned threads, int flags, const void *code)
{
    tells(flags & 0x40000000 ? LEAGUES : REGIONS);
    if (flags & 0x40000000)
        check(threads == 3, "teams requested", threads, 3);
    check(region->value == 0, "new region", 0, 0);
    check(code != NULL && frame->enter_frame.value != 0, "begin of a region", 0, 0);
    check(threads > 0 || (flags & 0x40000000), "threads requested", threads, flags);
    (void)task;
    region->value = next_id();
}
static void parallel_end(data_t *region, data_t *task, int flags, const void *code)
{
    (void)task, (void)code;
    check(region->value != 0, "region that ends", 0, 0);
    if (!(flags & 0x40000000))
        tells(REGION_ENDS);
}
static void implicit_task(int scope, data_t *region, data_t *task, unsigned size, unsigned index, int flags)
{
    if (flags & 1) {
        if (scope == BEGIN && omp_get_num_teams() > 1) {
            tells(TEAMS);
            check((int)size == omp_get_num_teams() && (int)index == omp_get_team_num(), "team", size, index);
            check(region->value != 0 && task->value == 0, "new initial task", (long)region->value, (long)task->value);
            task->value = next_id();
        }
        if (scope == END && omp_get_num_teams() > 1) {
            tells(TEAM_ENDS);
            check(region == NULL && size == 0 && (int)index == omp_get_team_num(), "team that ends", size, index);
            check(task->value != 0, "initial task that ends", 0, 0);
        }
        return;
    }
    if (scope == BEGIN) {
        int asked;
        data_t *same;
        tells(IMPLICIT);
        check(task->value == 0 && region->value != 0, "new implicit task", (long)task->value, 0);
        task->value = next_id();
        check((int)size == omp_get_num_threads(), "size of the team", size, omp_get_num_threads());
        check((int)index == omp_get_thread_num(), "number in the team", index, omp_get_thread_num());
        check(get_parallel_info(0, &same, &asked) == 2 && same == region && asked == (int)size, "its region", asked, size);
    } else {
        tells(IMPLICIT_ENDS);
        check(task->value != 0 && region == NULL, "implicit task that ends", 0, 0);
    }
}
static void task_create(data_t *from, const frame_t *frame, data_t *task, int flags, int dependences, const void *code)
{
    (void)from, (void)dependences;
    tells(TASKS);
    if (flags & 0x08000000)
        tells(UNDEFERRED);
    check(task->value == 0 && (flags & 4), "new task", flags, 0);
    check(code != NULL && frame->enter_frame.value != 0, "creation of a task", 0, 0);
    task->value = next_id();
}
static void task_schedule(data_t *prior, int status, data_t *next)
{
    if (status == 1 || status == 4)
        tells(EXECUTED);
    if (status == 5 || status == 6)
        tells(FULFILLED);
    check(prior->value != 0 || (next && next->value != 0), "schedule", status, 0);
}
static void sync_region(int kind, int scope, data_t *region, data_t *task, const void *code)
{
    (void)task, (void)code;
    if (scope != BEGIN)
        return;
    check(region != NULL, "region of a synchronisation", kind, 0);
    if (kind == 1 || kind == 8)
        tells(BARRIERS);
    if (kind == 5)
        tells(TASKWAITS);
    if (kind == 6)
        tells(GROUPS);
    if (kind != 9)
        frames();
}
static void work(int kind, int scope, data_t *region, data_t *task, uint64_t count, const void *code)
{
    (void)region, (void)task, (void)code;
    static const int of[] = {[2] = SECTIONS, [3] = EXECUTORS, [4] = OTHERS, [7] = TASKLOOPS, [10] = LOOPS, LOOPS, LOOPS, LOOPS};
    if (scope != BEGIN)
        return;
    tells(kind == 1 ? LOOPS : of[kind]);
    if (of[kind] == LOOPS || kind == 7)
        add(told, ITERATIONS, (long)count);
}
static void mutex_acquired(int kind, uint64_t lock, const void *code)
{
    static const int of[] = {[1] = LOCKS, TESTS, NEST_FIRST, NEST_FIRST, CRITICALS, ATOMICS, ORDERED};
    check(lock != 0 && code != NULL, "lock", kind, 0);
    if (of[kind] == NEST_FIRST)
        check(lock == (uint64_t)&nest || lock == (uint64_t)fortran_nest, "wait id", kind, (long)lock);
    tells(of[kind]);
}
static void mutex_released(int kind, uint64_t lock, const void *code)
{
    (void)kind, (void)lock, (void)code;
    tells(RELEASES);
}
static void nest_lock(int scope, uint64_t lock, const void *code)
{
    (void)code;
    check(lock == (uint64_t)&nest || lock == (uint64_t)fortran_nest, "wait id", scope, (long)lock);
    if (scope == BEGIN)
        tells(NEST_AGAIN);
}
static void lock_init(int kind, unsigned hint, unsigned implementation, uint64_t lock, const void *code)
{
    (void)kind, (void)hint, (void)implementation, (void)lock, (void)code;
    tells(INITIALISED);
}
static void lock_destroy(int kind, uint64_t lock, const void *code)
{
    static uint64_t nestable[2];
    (void)code;
    check(lock != 0, "lock", kind, 0);
    if (kind == 3) {
        check(lock != nestable[0] && lock != nestable[1], "destroyed twice", kind, 0);
        nestable[nestable[0] != 0] = lock;
    }
    tells(DESTROYED);
}
/* The iteration of a doacross loop that the calling thread is about to name. */
static __thread long iteration[8];
static __thread int counters;
static void names_iteration(int count, long a, long b, long c, long d, long e, long f, long g)
{
    long numbers[] = {a, b, c, d, e, f, g};
    memcpy(iteration, numbers, sizeof numbers);
    counters = count;
}
static void dependences(data_t *task, const dependence_t *list, int count)
{
    data_t *same;
    if (list->type == 5 || list->type == 6) {
        tells(list->type == 5 ? SOURCES : SINKS);
        check(count == counters, "counters of an iteration", count, counters);
        for (int n = 0; n < count; n++)
            check((long)list[n].variable == iteration[n] && list[n].type == list->type, "counter", n, (long)list[n].variable);
        check(get_task_info(0, NULL, &same, NULL, NULL, NULL) == 2 && same == task, "task of an iteration", 0, 0);
        return;
    }
    for (int n = 0; n < count; n++)
        check(list[n].variable != NULL && list[n].type > 0, "dependence", list[n].type, n);
    add(told, DEPENDENCES, count);
}
static void cancel(data_t *task, int flags, const void *code)
{
    (void)task, (void)code;
    if (flags & 0x10)
        tells(CANCELLED);
}
static void target(int kind, int scope, int device, data_t *task, data_t *target_task, data_t *data, const void *code)
{
    (void)kind, (void)task, (void)target_task, (void)data, (void)code;
    check(device >= 0, "device", device, 0);
    if (scope == BEGIN)
        tells(TARGETS);
}
static int control(uint64_t command, uint64_t modifier, void *argument, const void *code)
{
    check(command == 1 && modifier == 7 && argument == &did && code != NULL, "control", (long)command, (long)modifier);
    tells(CONTROLS);
    return 42;
}
static void thread_begin(int kind, data_t *thread)
{
    check(kind == 1 || kind == 2, "kind of thread", kind, 0);
    thread->value = next_id();
}

static int initialize(lookup_t lookup, int device, data_t *tool)
{
    (void)device, (void)tool;
    get_parallel_info = (void *)lookup("ompt_get_parallel_info");
    get_task_info = (void *)lookup("ompt_get_task_info");
    get_state = (void *)lookup("ompt_get_state");
    get_thread_data = (void *)lookup("ompt_get_thread_data");
    get_unique_id = (void *)lookup("ompt_get_unique_id");
    set_callback = (void *)lookup("ompt_set_callback");
    get_callback = (void *)lookup("ompt_get_callback");
    static const struct { int number; function_t function; } wanted[] = {
        {1, (function_t)thread_begin}, {3, (function_t)parallel_begin}, {4, (function_t)parallel_end}, {5, (function_t)task_create},
        {6, (function_t)task_schedule}, {7, (function_t)implicit_task}, {11, (function_t)control}, {17, (function_t)mutex_released},
        {18, (function_t)dependences}, {20, (function_t)work}, {23, (function_t)sync_region}, {24, (function_t)lock_init},
        {25, (function_t)lock_destroy}, {27, (function_t)mutex_acquired}, {28, (function_t)nest_lock}, {30, (function_t)cancel},
        {33, (function_t)target},
    };
    for (unsigned n = 0; n < sizeof wanted / sizeof *wanted; n++) {
        function_t registered = NULL;
        check(set_callback(wanted[n].number, wanted[n].function) >= 3, "registration", wanted[n].number, 0);
        check(get_callback(wanted[n].number, &registered) == 1 && registered == wanted[n].function, "registered", n, 0);
    }
    check(set_callback(21, (function_t)work) == 1, "a callback that is never made", 21, 0);
    check(set_callback(99, NULL) == 0, "no callback", 99, 0);
    listens = 1;
    return 1;
}

static void print(void)
{
    for (int kind = 0; kind < KINDS; kind++)
        printf("count %s %ld %ld\n", names[kind], did[kind], told[kind]);
    printf("checks %ld\n", checks);
    fflush(stdout);
}
static void finalize(data_t *tool)
{
    (void)tool;
    print();
}
result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    static result_t result = {initialize, finalize, {0}};
    check(version >= 201811 && strstr(runtime, "libgomp") != NULL, "runtime", version, 0);
    return &result;
}

/* The program. */
static long sum;
static void plus(long value) { __atomic_fetch_add(&sum, value, __ATOMIC_RELAXED); }

static void begins(void)
{
    does(IMPLICIT, 1);
    does(IMPLICIT_ENDS, 1);
    agree();
}
static void region(void)
{
    does(REGIONS, 1);
    does(REGION_ENDS, 1);
}

/* Iterations that wait for others.  Their counters begin at 0, whatever the loops' variables do. */
static void doacross(void)
{
    region();
    does(LOOPS, 3 * 4);
    does(ITERATIONS, 3 * (16 + 10 + 24 + 16));
    does(BARRIERS, 3 * 4);
    does(SOURCES, 16 + 10 + 24 + 16);
    does(SINKS, 15 + 9 + 20 + 8);
#pragma omp parallel num_threads(3)
    {
        begins();
#pragma omp for ordered(1) schedule(dynamic)
        for (int i = 100; i < 132; i += 2) {
            names_iteration(1, (i - 100) / 2 - 1, 0, 0, 0, 0, 0, 0);
#pragma omp ordered depend(sink : i - 2)
            plus(1);
            names_iteration(1, (i - 100) / 2, 0, 0, 0, 0, 0, 0);
#pragma omp ordered depend(source)
            agree();
        }
#pragma omp for ordered(1) schedule(static, 1)
        for (unsigned long long i = 5; i < 15; i++) {
            names_iteration(1, (long)i - 6, 0, 0, 0, 0, 0, 0);
#pragma omp ordered depend(sink : i - 1)
            plus(1);
            names_iteration(1, (long)i - 5, 0, 0, 0, 0, 0, 0);
#pragma omp ordered depend(source)
        }
#pragma omp for ordered(2) schedule(static, 1)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 4; j++) {
                names_iteration(2, i - 1, j, 0, 0, 0, 0, 0);
#pragma omp ordered depend(sink : i - 1, j)
                plus(1);
                names_iteration(2, i, j, 0, 0, 0, 0, 0);
#pragma omp ordered depend(source)
            }
        /* More counters than registers take. */
#pragma omp for ordered(7) schedule(dynamic)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 1; b++)
                for (int c = 0; c < 2; c++)
                    for (int d = 0; d < 1; d++)
                        for (int e = 0; e < 1; e++)
                            for (int f = 0; f < 2; f++)
                                for (int g = 0; g < 2; g++) {
                                    names_iteration(7, a - 1, b, c, d, e, f, g);
#pragma omp ordered depend(sink : a - 1, b, c, d, e, f, g)
                                    plus(1);
                                    names_iteration(7, a, b, c, d, e, f, g);
#pragma omp ordered depend(source)
                                }
        agree();
    }
}

static void loops(void)
{
    region();
    does(LOOPS, 3 * 6);
    does(ITERATIONS, 3 * (50 + 40 + 30 + 25 + 20 + 60));
    does(BARRIERS, 3 * 6);
    does(ORDERED, 20);
    does(RELEASES, 20);
#pragma omp parallel num_threads(3)
    {
        begins();
#pragma omp for schedule(dynamic, 4)
        for (long i = 0; i < 50; i++)
            plus(1);
#pragma omp for schedule(guided)
        for (long i = 40; i > 0; i--)
            plus(1);
#pragma omp for schedule(runtime)
        for (unsigned long long i = 0; i < 30; i++)
            plus(1);
#pragma omp for schedule(dynamic, 2)
        for (unsigned long long i = 50; i > 0; i -= 2)
            plus(1);
#pragma omp for schedule(dynamic) ordered
        for (int i = 0; i < 20; i++) {
#pragma omp ordered
            plus(1);
        }
#pragma omp for collapse(2) schedule(dynamic)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 10; j++)
                plus(1);
        agree();
    }
    doacross();
    region();
    does(LOOPS, 4);
    does(ITERATIONS, 4 * 34);
#pragma omp parallel for num_threads(4) schedule(dynamic, 3)
    for (int i = 0; i < 100; i += 3) {
        plus(1);
    }
    does(IMPLICIT, 4), does(IMPLICIT_ENDS, 4);
}

static void sharing(void)
{
    region();
    does(SECTIONS, 3);
    does(BARRIERS, 3);
    int copied = 0;
#pragma omp parallel num_threads(3)
    {
        begins();
#pragma omp sections
        {
#pragma omp section
            plus(1);
#pragma omp section
            plus(1);
        }
#pragma omp single
        {
            does(EXECUTORS, 1);
            does(OTHERS, 2);
            does(BARRIERS, 3);
            agree();
        }
        int own;
#pragma omp single copyprivate(own)
        {
            own = 5;
            does(EXECUTORS, 1);
            does(OTHERS, 2);
            /* One at which the others wait for the value is reported of this thread only. */
            does(BARRIERS, 4);
        }
        __atomic_fetch_add(&copied, own, __ATOMIC_RELAXED);
#pragma omp barrier
        does(BARRIERS, 1);
    }
    plus(copied);
    region();
    does(SECTIONS, 2);
    does(IMPLICIT, 2), does(IMPLICIT_ENDS, 2);
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        plus(1);
#pragma omp section
        plus(1);
    }
}

static omp_lock_t lock;
static long double wide;

static void again(void)
{
    omp_set_nest_lock(&nest);
    does(NEST_AGAIN, 1);
    plus(1);
    omp_unset_nest_lock(&nest);
}

static void mutexes(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    omp_init_nest_lock_(&fortran_nest);
    does(INITIALISED, 3);
    region();
#pragma omp parallel num_threads(3)
    {
        begins();
        omp_set_lock(&lock);
        does(LOCKS, 1);
        agree();
        omp_unset_lock(&lock);
        while (!omp_test_lock(&lock))
            ;
        does(TESTS, 1);
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nest);
        does(NEST_FIRST, 1);
        again();
        check(omp_test_nest_lock(&nest) == 2, "nest", 0, 0);
        does(NEST_AGAIN, 1);
        omp_unset_nest_lock(&nest);
        omp_unset_nest_lock(&nest);
        while (omp_test_nest_lock_(&fortran_nest) == 0)
            ;
        does(NEST_FIRST, 1);
        omp_set_nest_lock_(&fortran_nest);
        does(NEST_AGAIN, 1);
        omp_unset_nest_lock_(&fortran_nest);
        omp_unset_nest_lock_(&fortran_nest);
#pragma omp critical
        plus(1);
#pragma omp critical(named)
        plus(1);
        does(CRITICALS, 2);
#pragma omp atomic
        wide += 1;
        does(ATOMICS, 1);
        does(RELEASES, 7);
    }
    plus((long)wide);
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
    omp_destroy_nest_lock_(&fortran_nest);
    does(DESTROYED, 3);
}

struct large { char text[200]; } __attribute__((aligned(64)));

static void recurse(int depth)
{
    does(EXECUTED, 1);
    agree();
    plus(1);
    if (depth == 0)
        return;
    for (int n = 0; n < 2; n++) {
        does(TASKS, 1);
#pragma omp task firstprivate(depth)
        recurse(depth - 1);
    }
    if (depth % 2) {
        does(TASKWAITS, 1);
#pragma omp taskwait
    }
}

static void tasks(void)
{
    struct large large = {"large"};
    int x = 0, y = 0;
    long total = 0;
    region();
#pragma omp parallel num_threads(3)
    {
        begins();
        /* GCC leaves out a barrier that the end of the region follows, if it can. */
#pragma omp single nowait
        {
            does(EXECUTORS, 1), does(OTHERS, 2);
            does(TASKS, 1);
#pragma omp task
            recurse(5);
            does(TASKS, 1);
#pragma omp task firstprivate(large)
            {
                does(EXECUTED, 1);
                check(((uintptr_t)&large & 63) == 0 && strcmp(large.text, "large") == 0, "arguments", 0, 0);
                agree();
            }
            does(TASKS, 1), does(UNDEFERRED, 1);
#pragma omp task if (0)
            {
                does(EXECUTED, 1);
                agree();
                does(TASKS, 1);
#pragma omp task
                does(EXECUTED, 1);
            }
            does(TASKS, 3), does(DEPENDENCES, 4);
#pragma omp task depend(out : x)
            does(EXECUTED, 1), x = 1;
#pragma omp task depend(in : x) depend(out : y)
            does(EXECUTED, 1), y = x + 1;
#pragma omp task depend(inout : y)
            does(EXECUTED, 1), plus(y);
            does(GROUPS, 1), does(TASKS, 1);
#pragma omp taskgroup
            {
#pragma omp task
                does(EXECUTED, 1);
            }
            does(TASKWAITS, 1);
#pragma omp taskwait
            does(TASKLOOPS, 1), does(ITERATIONS, 40), does(GROUPS, 1), does(TASKS, 8);
#pragma omp taskloop num_tasks(8)
            for (int i = 0; i < 40; i++) {
                plus(1);
                if (i % 5 == 0)
                    does(EXECUTED, 1);
            }
            does(TASKLOOPS, 1), does(ITERATIONS, 30), does(GROUPS, 1), does(TASKS, 3), does(EXECUTED, 3);
#pragma omp taskloop num_tasks(3) reduction(+ : total)
            for (unsigned long long i = 0; i < 30; i++)
                total += (long)i;
            /* Its event is fulfilled by another task, before or after its code has ended. */
            does(TASKS, 2), does(EXECUTED, 2);
#if __GNUC__ >= 11
            does(FULFILLED, 1);
            omp_event_handle_t event;
#pragma omp task detach(event)
            plus(1);
#pragma omp task firstprivate(event)
            omp_fulfill_event(event);
#pragma omp taskwait
            does(TASKWAITS, 1);
#else
#pragma omp task
            plus(1);
#pragma omp task
            ;
#endif
        }
    }
    plus(total);
#if __GNUC__ >= 9
    /* Tasks that take part in the reduction of a region. */
    long all = 0;
    region();
    does(TASKS, 4), does(EXECUTED, 4);
    does(IMPLICIT, 2), does(IMPLICIT_ENDS, 2);
#pragma omp parallel num_threads(2) reduction(task, + : all)
    {
#pragma omp task in_reduction(+ : all)
        all += 1;
#pragma omp task in_reduction(+ : all)
        all += 2;
    }
    plus(all);
#endif
}

static void nested(void)
{
    omp_set_max_active_levels(3);
    region();
#pragma omp parallel num_threads(2)
    {
        begins();
        region();
#pragma omp parallel num_threads(2)
        {
            begins();
            region();
#pragma omp parallel num_threads(1)
            {
                begins();
                plus(1);
            }
            agree();
        }
    }
}

static void cancelled(void)
{
    region();
    int stops = omp_get_cancellation();
#pragma omp parallel num_threads(2)
    {
        begins();
#pragma omp single nowait
        {
            does(EXECUTORS, 1), does(OTHERS, 1), does(GROUPS, 1);
            if (stops)
                does(CANCELLED, 1);
#pragma omp taskgroup
            {
                does(TASKS, 1), does(EXECUTED, 1);
#pragma omp task if (0)
                {
#pragma omp cancel taskgroup
                }
                /* None of these is created, or executed. */
                for (int n = 0; n < 10; n++) {
                    if (!stops)
                        does(TASKS, 1), does(EXECUTED, 1);
#pragma omp task
                    if (stops)
                        check(0, "a discarded task is executed", n, 0);
                }
            }
            does(UNDEFERRED, 1);
        }
    }
}

static void region_of_a_team(void)
{
    region();
#pragma omp parallel num_threads(2)
    {
        begins();
        plus(1);
    }
}

/* What the tool knows in a team of a league, and in a region of that. */
static void in_a_team(void)
{
    int flags = 0, number = -1, size = 0;
    data_t *task = NULL, *around = NULL, *region = NULL;
    frame_t *frame = NULL;
    plus(1);
    if (listens) {
        check(get_task_info(0, &flags, &task, &frame, &around, &number) == 2 && (flags & 1), "initial task", flags, 0);
        check(number == 0 && task->value != 0, "thread of the team", number, 0);
        check(frame->exit_frame.value != 0 && on_stack(frame->exit_frame.value), "exit frame of the team", 0, 0);
        check(get_parallel_info(0, &region, &size) == 2 && region == around, "region of the team", 0, 0);
        check(size == omp_get_num_teams(), "teams", size, omp_get_num_teams());
        check(get_parallel_info(1, &region, &size) == 2 && size == 1, "region around the league", size, 1);
        check(get_parallel_info(2, &region, &size) == 0, "beyond", 0, 0);
        /* The task around the league calls the runtime. */
        check(get_task_info(1, &flags, &task, &frame, &around, &number) == 2 && around == region, "task outside", flags, 0);
        check(frame->enter_frame.value != 0 && on_stack(frame->enter_frame.value), "enter frame outside", 0, 0);
    }
    region_of_a_team();
}

static void others(void)
{
    does(LEAGUES, 1), does(TEAMS, 3), does(TEAM_ENDS, 3);
#pragma omp teams num_teams(3)
    in_a_team();
    int value = 0;
    does(TARGETS, 1);
#pragma omp target map(tofrom : value)
    value = 1;
    plus(value);
    does(CONTROLS, 1);
    int answer = omp_control_tool ? omp_control_tool(1, 7, &did) : -2;
    check(answer == (listens ? 42 : -2), "answer of the tool", answer, listens);
    if (!listens)
        check(answer == -2, "without a tool", answer, 0);
}

/* What a signal handler is told of a thread that waits. */
static volatile int asked_state = -1, handler_done;
static uint64_t asked_for;
static void ask(int signal)
{
    (void)signal;
    uint64_t lock = 0;
    asked_state = get_state(&lock);
    asked_for = lock;
    handler_done = 1;
}
static void interrupted(void)
{
    if (!listens)
        return;
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    omp_init_lock(&lock);
    does(INITIALISED, 1);
    omp_set_lock(&lock);
    does(LOCKS, 1);
    region();
    pthread_t waiter;
    volatile int there = 0;
#pragma omp parallel num_threads(2)
    {
        begins();
        if (omp_get_thread_num() == 1) {
            waiter = pthread_self();
            __atomic_store_n(&there, 1, __ATOMIC_RELEASE);
            omp_set_lock(&lock);
            does(LOCKS, 1);
            omp_unset_lock(&lock);
        } else {
            while (!__atomic_load_n(&there, __ATOMIC_ACQUIRE))
                ;
            /* It may not have called the runtime yet. */
            do {
                handler_done = 0;
                pthread_kill(waiter, SIGUSR1);
                while (!handler_done)
                    ;
            } while (asked_state != 0x41);
            check(asked_for == (uint64_t)&lock, "what is waited for", 0, 0);
            omp_unset_lock(&lock);
        }
    }
    does(RELEASES, 2);
    omp_destroy_lock(&lock);
    does(DESTROYED, 1);
}

static void *user_thread(void *argument)
{
    (void)argument;
    region();
#pragma omp parallel num_threads(2)
    {
        begins();
        plus(1);
    }
    return NULL;
}

/* Threads of the process. */
static int threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count;
}

int main(void)
{
    alarm(300);
    agree();
    loops();
    sharing();
    mutexes();
    tasks();
    nested();
    cancelled();
    others();
    interrupted();
    for (int n = 0; n < 20; n++) {
        pthread_t thread;
        int before = threads();
        pthread_create(&thread, NULL, user_thread, NULL);
        pthread_join(thread, NULL);
        /* Its workers end after it, and nobody joins them. */
        while (threads() > before)
            sched_yield();
    }
    agree();
    printf("sum %ld\n", sum);
    if (!listens)
        print();
    fflush(stdout);
    return 0;
}
