/* What a test program knows about itself, told as JSON lines.
 *
 * Each OpenMP thread calls truth_note() right before the wait it will be
 * inspected in; everything in the record comes from the OpenMP API, from the
 * kernel (gettid) or from what the program itself wrote in its source.  One
 * thread, the coordinator, calls truth_ready(): it returns only after every
 * other noted thread was seen inside its wait, has printed all records and the
 * line {"ready":true}, and has read one byte (or end of file) from stdin.
 * (Programs that hang have nobody left who could read: see expect.h.)
 * truth_release() then lets the threads of truth_hold() go on.
 *
 * Environment: OMPD_TRUTH_FD   the descriptor to write to (default 1)
 *              OMPD_TRUTH_SPINS=1  the runtime is libomp-like: locks, taskwait
 *                              and taskgroup are waited for by spinning
 */
#ifndef TRUTH_H
#define TRUTH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { TRUTH_MAX_THREADS = 4096, TRUTH_MAX_LEVELS = 8, TRUTH_MAX_FACTS = 32 };

/* How long the coordinator looks for a thread to arrive before it gives up:
 * far longer than any runtime spins, so that only a broken program meets it. */
enum { TRUTH_PATIENCE_SECONDS = 120 };

/* A thread that burnt this much of its own CPU time after it announced its
 * wait is in the spin loop of that wait: only a handful of instructions, and
 * perhaps the binding of a symbol, lie between the announcement and the wait. */
enum { TRUTH_SPIN_NANOSECONDS = 3 * 1000 * 1000 };

enum truth_wait {
    TRUTH_LOCK,
    TRUTH_NEST_LOCK,
    TRUTH_CRITICAL,
    TRUTH_BARRIER,
    TRUTH_TASKWAIT,
    TRUTH_TASKGROUP,
    TRUTH_SLEEP, /* in nanosleep, again and again */
    TRUTH_PIPE,  /* in read() */
    TRUTH_IDLE,  /* out of work, parked by the runtime */
    TRUTH_ORDERED,
    TRUTH_YIELD, /* in a loop around sched_yield of the program's own */
    TRUTH_JOIN,  /* in pthread_join */
    TRUTH_MUTEX, /* in pthread_mutex_lock */
    TRUTH_OTHER, /* in a system call, whichever */
    TRUTH_EVENT, /* for the event of its own task */
};

enum truth_kind { TRUTH_INITIAL, TRUTH_IMPLICIT, TRUTH_EXPLICIT, TRUTH_NO_TASK };

/* The task a thread runs: its kind and the function its body calls. */
struct truth_body {
    enum truth_kind kind;
    const char *function;
    uintptr_t address;
    uintptr_t called_from; /* in the compiler's outlined function, if there is one */
};

/* To be used inside FUNCTION, which must be TRUTH_MARKER. */
#define TRUTH_BODY(KIND, FUNCTION)                                                                                     \
    ((struct truth_body){(KIND), #FUNCTION, (uintptr_t)(FUNCTION), (uintptr_t)__builtin_return_address(0)})
#define TRUTH_NO_BODY ((struct truth_body){TRUTH_NO_TASK, "", 0, 0})

/* A function that keeps a frame of its own at every optimisation level. */
#if defined(__clang__)
#define TRUTH_MARKER __attribute__((noinline)) static
#else
#define TRUTH_MARKER __attribute__((noinline, noclone)) static
#endif

/* Put after a call so that the call cannot become a jump. */
#define TRUTH_KEEP_FRAME() __asm__ volatile("" ::: "memory")

/* What the API said; the fields are named after the functions. */
struct truth_api {
    int thread_num, num_threads, level, active_level;
    int ancestor_thread_num[TRUTH_MAX_LEVELS], team_size[TRUTH_MAX_LEVELS];
    int in_parallel, in_final, max_threads, dynamic;
    int schedule_kind, schedule_chunk, schedule_monotonic;
    int max_active_levels, thread_limit, proc_bind, cancellation, default_device;
    int max_task_priority, num_procs, num_places, place_num;
};

struct truth_thread {
    const char *role;
    pid_t lwp;
    pthread_t pthread;
    enum truth_wait wait;
    const void *wait_object;
    struct truth_body body;
    int has_api;
    struct truth_api api;
    int64_t cpu_at_note; /* ns of this thread's CPU time when it announced */
    atomic_int published;
};

static struct truth_thread truth_threads[TRUTH_MAX_THREADS];
static char truth_facts[TRUTH_MAX_FACTS][256]; /* finished lines about locks and tasks */
static atomic_int truth_thread_count, truth_fact_count, truth_progress;
static int truth_hold_pipe[2] = {-1, -1};
static void (*truth_more)(FILE *); /* prints further records, if there are any */

static inline void truth_fail(const char *what) {
    fprintf(stderr, "truth: %s\n", what);
    _exit(3);
}

static inline int truth_next(atomic_int *count, int limit) {
    int index = atomic_fetch_add(count, 1);
    if (index >= limit)
        truth_fail("too many records");
    return index;
}

static inline int64_t truth_nanoseconds(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        truth_fail("clock_gettime");
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t truth_deadline(void) {
    return truth_nanoseconds(CLOCK_MONOTONIC) + (int64_t)TRUTH_PATIENCE_SECONDS * 1000000000;
}

/* To be called first thing in main. */
static inline void truth_init(void) {
    if (pipe(truth_hold_pipe) != 0)
        truth_fail("pipe");
}

/* Counts one thread or task that got past its wait. */
static inline void truth_step(void) { atomic_fetch_add(&truth_progress, 1); }

/* Waits, without an OpenMP scheduling point, until another thread set the flag. */
static inline void truth_wait_for(atomic_int *flag) {
    int64_t give_up = truth_deadline();
    while (!atomic_load(flag)) {
        if (truth_nanoseconds(CLOCK_MONOTONIC) > give_up)
            truth_fail("another thread did not get where it should");
        sched_yield();
    }
}

/* Holds the thread in read() until truth_release(). */
__attribute__((noinline, unused)) static void truth_hold(void) {
    char byte;
    if (read(truth_hold_pipe[0], &byte, 1) != 0)
        truth_fail("the hold pipe gave something else than its end");
    TRUTH_KEEP_FRAME();
}

static inline void truth_release(void) {
    if (close(truth_hold_pipe[1]) != 0)
        truth_fail("close of the hold pipe");
}

#ifdef _OPENMP
static inline void truth_ask_api(struct truth_api *api) {
    omp_sched_t schedule;
    api->thread_num = omp_get_thread_num();
    api->num_threads = omp_get_num_threads();
    api->level = omp_get_level();
    api->active_level = omp_get_active_level();
    if (api->level >= TRUTH_MAX_LEVELS)
        truth_fail("nested too deep for the record");
    for (int level = 0; level <= api->level; level++) {
        api->ancestor_thread_num[level] = omp_get_ancestor_thread_num(level);
        api->team_size[level] = omp_get_team_size(level);
    }
    api->in_parallel = omp_in_parallel();
    api->in_final = omp_in_final();
    api->max_threads = omp_get_max_threads();
    api->dynamic = omp_get_dynamic();
    omp_get_schedule(&schedule, &api->schedule_chunk);
    /* omp_sched_monotonic is the top bit (OpenMP 5.0, 3.2.12) */
    api->schedule_kind = (int)((unsigned)schedule & 0x7fffffffu);
    api->schedule_monotonic = (int)((unsigned)schedule >> 31);
    api->max_active_levels = omp_get_max_active_levels();
    api->thread_limit = omp_get_thread_limit();
    api->proc_bind = (int)omp_get_proc_bind();
    api->cancellation = omp_get_cancellation();
    api->default_device = omp_get_default_device();
    api->max_task_priority = omp_get_max_task_priority();
    api->num_procs = omp_get_num_procs();
    api->num_places = omp_get_num_places();
    api->place_num = omp_get_place_num();
}
#endif

static inline void truth_note_with(const char *role, enum truth_wait wait, const void *object, struct truth_body body,
                                   int ask) {
    struct truth_thread *record = &truth_threads[truth_next(&truth_thread_count, TRUTH_MAX_THREADS)];
    record->role = role;
    record->lwp = (pid_t)syscall(SYS_gettid);
    record->pthread = pthread_self();
    record->wait = wait;
    record->wait_object = object;
    record->body = body;
#ifdef _OPENMP
    record->has_api = ask;
    if (ask)
        truth_ask_api(&record->api);
#else
    (void)ask;
#endif
    record->cpu_at_note = truth_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    atomic_store(&record->published, 1);
}

/* Announces the wait the calling thread is about to enter. */
static inline void truth_note(const char *role, enum truth_wait wait, const void *object, struct truth_body body) {
    truth_note_with(role, wait, object, body, 1);
}

/* Announces that the calling thread will be parked by the runtime: it is in no
 * region then, so what the API says now will not hold. */
static inline void truth_note_idle(const char *role) { truth_note_with(role, TRUTH_IDLE, NULL, TRUTH_NO_BODY, 0); }

/* The facts below must be stated before the thread that states them (or one it
 * hands over to) is noted: truth_ready() prints what it finds then. */
static inline char *truth_fact(void) { return truth_facts[truth_next(&truth_fact_count, TRUTH_MAX_FACTS)]; }

/* States that the calling thread owns a lock, so many levels deep. */
static inline void truth_note_lock(const char *name, const char *kind, const void *address, int depth) {
    snprintf(truth_fact(), sizeof truth_facts[0],
             "{\"lock\":{\"name\":\"%s\",\"kind\":\"%s\",\"address\":\"0x%jx\",\"owner\":%d,\"depth\":%d}}", name, kind,
             (uintmax_t)(uintptr_t)address, (int)syscall(SYS_gettid), depth);
}

/* States that the calling thread created a task that has not started; `depend`
 * is the storage named in its depend clause, 0 without one. */
static inline void truth_note_task(const char *function, uintptr_t address, const char *state, uintptr_t depend) {
    snprintf(truth_fact(), sizeof truth_facts[0],
             "{\"task\":{\"function\":\"%s\",\"address\":\"0x%jx\",\"state\":\"%s\",\"creator\":%d,\"depend\":\"0x%jx\"}}",
             function, (uintmax_t)address, state, (int)syscall(SYS_gettid), (uintmax_t)depend);
}

/* Reads a small file of /proc/self/task/LWP; 0 when it cannot be read. */
static inline int truth_read_task_file(pid_t lwp, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)lwp, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length <= 0)
        return 0;
    text[length] = 0;
    return 1;
}

/* Is the thread asleep in the system call its wait uses?  A kernel without
 * /proc/PID/syscall only lets us see that it is asleep. */
static inline int truth_is_asleep(const struct truth_thread *thread) {
    char text[512];
    if (!truth_read_task_file(thread->lwp, "stat", text, sizeof text))
        return 0;
    /* the name in brackets may hold anything, so count from its end */
    const char *end = strrchr(text, ')');
    if (!end || end[1] != ' ' || end[2] != 'S')
        return 0;
    if (!truth_read_task_file(thread->lwp, "syscall", text, sizeof text))
        return 1;
    if (text[0] < '0' || text[0] > '9')
        return 0; /* "running" */
    long number = strtol(text, NULL, 10);
    switch (thread->wait) {
    case TRUTH_PIPE:
        return number == SYS_read;
    case TRUTH_SLEEP:
        return number == SYS_clock_nanosleep || number == SYS_nanosleep;
    case TRUTH_OTHER:
        return 1;
    default:
        return number == SYS_futex;
    }
}

/* To be set by programs that leave a task unfinished: until all are finished,
 * threads at a barrier of libomp look for tasks to run, and never sleep. */
static int truth_barriers_spin;

/* Has the thread spun long enough to be inside a wait that never sleeps? */
static inline int truth_is_spinning(const struct truth_thread *thread) {
    switch (thread->wait) {
    case TRUTH_LOCK:
    case TRUTH_NEST_LOCK:
    case TRUTH_CRITICAL:
    case TRUTH_TASKWAIT:
    case TRUTH_TASKGROUP:
    case TRUTH_ORDERED:
    case TRUTH_YIELD:
        break;
    case TRUTH_BARRIER:
        if (truth_barriers_spin)
            break;
        return 0;
    default:
        return 0;
    }
    clockid_t clock;
    if (pthread_getcpuclockid(thread->pthread, &clock) != 0)
        return 0;
    return truth_nanoseconds(clock) - thread->cpu_at_note >= TRUTH_SPIN_NANOSECONDS;
}

/* Returns once the thread was seen inside the wait it announced. */
static inline void truth_await_blocked(const struct truth_thread *thread) {
    const char *spins = getenv("OMPD_TRUTH_SPINS");
    int may_spin = thread->wait == TRUTH_YIELD || (spins && strcmp(spins, "1") == 0);
    int64_t give_up = truth_deadline();
    while (!truth_is_asleep(thread) && !(may_spin && truth_is_spinning(thread))) {
        if (truth_nanoseconds(CLOCK_MONOTONIC) > give_up) {
            fprintf(stderr, "truth: thread %d (%s) never reached its wait\n", (int)thread->lwp, thread->role);
            _exit(3);
        }
        sched_yield();
    }
}

static inline const char *truth_wait_name(enum truth_wait wait) {
    static const char *const names[] = {"lock",  "nest_lock", "critical", "barrier", "taskwait", "taskgroup",
                                        "sleep", "pipe",      "idle",     "ordered", "yield",    "join",  "mutex",
                                        "other", "event"};
    return names[wait];
}

static inline void truth_print_thread(FILE *out, const struct truth_thread *t) {
    static const char *const kinds[] = {"initial", "implicit", "explicit"};
    fprintf(out, "{\"thread\":{\"role\":\"%s\",\"lwp\":%d,\"pthread\":\"0x%jx\",\"wait\":\"%s\"", t->role, (int)t->lwp,
            (uintmax_t)t->pthread, truth_wait_name(t->wait));
    if (t->wait_object)
        fprintf(out, ",\"wait_object\":\"0x%jx\"", (uintmax_t)(uintptr_t)t->wait_object);
    if (t->body.kind != TRUTH_NO_TASK)
        fprintf(out, ",\"task\":{\"kind\":\"%s\",\"function\":\"%s\",\"address\":\"0x%jx\",\"called_from\":\"0x%jx\"}",
                kinds[t->body.kind], t->body.function, (uintmax_t)t->body.address, (uintmax_t)t->body.called_from);
    if (t->has_api) {
        const struct truth_api *a = &t->api;
        fprintf(out, ",\"api\":{\"thread_num\":%d,\"num_threads\":%d,\"level\":%d,\"active_level\":%d,\"levels\":[",
                a->thread_num, a->num_threads, a->level, a->active_level);
        for (int level = 0; level <= a->level; level++)
            fprintf(out, "%s{\"ancestor_thread_num\":%d,\"team_size\":%d}", level ? "," : "",
                    a->ancestor_thread_num[level], a->team_size[level]);
        fprintf(out,
                "],\"in_parallel\":%d,\"in_final\":%d,\"max_threads\":%d,\"dynamic\":%d,\"schedule_kind\":%d,"
                "\"schedule_chunk\":%d,\"schedule_monotonic\":%d,\"max_active_levels\":%d,\"thread_limit\":%d,"
                "\"proc_bind\":%d,\"cancellation\":%d,\"default_device\":%d,\"max_task_priority\":%d,"
                "\"num_procs\":%d,\"num_places\":%d,\"place_num\":%d}",
                a->in_parallel, a->in_final, a->max_threads, a->dynamic, a->schedule_kind, a->schedule_chunk,
                a->schedule_monotonic, a->max_active_levels, a->thread_limit, a->proc_bind, a->cancellation,
                a->default_device, a->max_task_priority, a->num_procs, a->num_places, a->place_num);
    }
    fprintf(out, "}}\n");
}

/* The stream the truth goes to; opened once, by the coordinator. */
static inline FILE *truth_out(void) {
    static FILE *out;
    if (!out) {
        const char *fd = getenv("OMPD_TRUTH_FD");
        out = fdopen(fd ? atoi(fd) : 1, "w");
        if (!out)
            truth_fail("OMPD_TRUTH_FD is no open descriptor");
    }
    return out;
}

/* Waits until `expected` threads, the caller among them, have announced a wait
 * and all but the caller are in it; tells the truth about them and says that
 * the program is ready. */
__attribute__((noinline, unused)) static void truth_tell(const char *program, int expected) {
    pid_t self = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < expected; i++)
        truth_wait_for(&truth_threads[i].published);
    if (atomic_load(&truth_thread_count) != expected)
        truth_fail("more threads announced a wait than expected");
    /* Twice: a thread can sleep for a moment on its way into the wait (for a
     * runtime-internal lock held by another), but the second look comes after
     * all have arrived, when nothing is left that could still move. */
    for (int look = 0; look < 2; look++)
        for (int i = 0; i < expected; i++)
            if (truth_threads[i].lwp != self)
                truth_await_blocked(&truth_threads[i]);

    FILE *out = truth_out();
#ifdef _OPENMP
    int openmp = _OPENMP;
#else
    int openmp = 0;
#endif
    fprintf(out, "{\"program\":{\"name\":\"%s\",\"pid\":%d,\"openmp\":%d}}\n", program, (int)getpid(), openmp);
    for (int i = 0; i < expected; i++)
        truth_print_thread(out, &truth_threads[i]);
    for (int i = 0; i < atomic_load(&truth_fact_count); i++)
        fprintf(out, "%s\n", truth_facts[i]);
    if (truth_more)
        truth_more(out);
    fprintf(out, "{\"ready\":true,\"coordinator\":%d}\n", (int)self);
    if (fflush(out) != 0)
        truth_fail("the truth could not be written");
}

/* As truth_tell(); returns when stdin says go on: with the byte read, or EOF. */
__attribute__((noinline, unused)) static int truth_ready(const char *program, int expected) {
    truth_tell(program, expected);
    unsigned char byte;
    ssize_t length = read(0, &byte, 1);
    if (length < 0)
        truth_fail("stdin cannot be read");
    return length == 1 ? byte : EOF;
}

/* What was told no longer holds: all threads have got on, and there will be
 * another truth. */
__attribute__((noinline, unused)) static void truth_forget(void) {
    memset(truth_threads, 0, sizeof truth_threads);
    memset(truth_facts, 0, sizeof truth_facts);
    atomic_store(&truth_thread_count, 0);
    atomic_store(&truth_fact_count, 0);
    if (close(truth_hold_pipe[0]) != 0)
        truth_fail("close of the hold pipe");
    truth_init();
}

/* The program's last words. */
static inline void truth_done(void) {
    FILE *out = truth_out();
    fprintf(out, "{\"done\":true,\"progress\":%d}\n", atomic_load(&truth_progress));
    if (fflush(out) != 0)
        truth_fail("the last line could not be written");
}

#endif
