/* See truth_stack.h. */
#include "truth_stack.h"

#include "truth.h"

_Static_assert((int)STACK_BARRIER == (int)TRUTH_BARRIER && (int)STACK_TASKWAIT == (int)TRUTH_TASKWAIT &&
                   (int)STACK_TASKGROUP == (int)TRUTH_TASKGROUP &&
                   (int)STACK_PIPE == (int)TRUTH_PIPE,
               "the waits have the same numbers in both headers");

enum { MAX_TASKS = 512, MAX_NOTED = 256, FLAGS = 16 };

struct task {
    int id;
    pid_t lwp;           /* that executes it */
    int initial;         /* no construct made it */
    truth_mark opened;   /* the frame that came to the construct; none for initial tasks */
    _Atomic(truth_mark) at; /* where it is while it executes something else, or waits */
    const void *cfa; /* see truth_enter_at */
    atomic_int finished;
};

struct truth_mark_data {
    truth_mark outer; /* for an entered construct: the frame that came to it */
    struct task *task;
    int is_base; /* stands for the task, not for a frame */
    const char *file, *function;
    int line;
    enum truth_shape shape;
    const char *construct; /* that the frame comes to */
};

static _Atomic(struct task *) tasks[MAX_TASKS];
static atomic_int task_count;
static _Atomic(truth_mark) noted[MAX_NOTED];
static atomic_int noted_count;
static atomic_int flags[FLAGS];

static void *zeroed(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        truth_fail("no memory");
    return memory;
}

static truth_mark new_task(truth_mark opened) {
    struct task *task = zeroed(sizeof *task);
    struct truth_mark_data *base = zeroed(sizeof *base);
    task->id = truth_next(&task_count, MAX_TASKS);
    task->lwp = (pid_t)syscall(SYS_gettid);
    task->initial = !opened;
    task->opened = opened;
    base->outer = opened;
    base->task = task;
    base->is_base = 1;
    atomic_store(&tasks[task->id], task);
    return base;
}

void truth_stack_init(void) { truth_init(); }

truth_mark truth_thread_base(void) { return new_task(NULL); }

truth_mark truth_frame(truth_mark outer, const char *file, const char *function, int line, enum truth_shape shape) {
    struct truth_mark_data *mark = zeroed(sizeof *mark);
    const char *slash = strrchr(file, '/');
    mark->outer = outer;
    mark->task = outer->task;
    mark->file = slash ? slash + 1 : file;
    mark->function = function;
    mark->line = line;
    mark->shape = shape;
    return mark;
}

truth_mark truth_opens(truth_mark outer, const char *file, const char *function, int line, enum truth_shape shape,
                       const char *construct) {
    struct truth_mark_data *mark = (struct truth_mark_data *)truth_frame(outer, file, function, line, shape);
    mark->construct = construct;
    atomic_store(&mark->task->at, mark);
    return mark;
}

truth_mark truth_enter_at(truth_mark opened, const void *cfa) {
    truth_mark entered = new_task(opened);
    entered->task->cfa = cfa;
    return entered;
}

truth_mark(truth_enter)(truth_mark opened) { return truth_enter_at(opened, NULL); }

void truth_leave(truth_mark entered) { atomic_store(&entered->task->finished, 1); }

void truth_suspends(truth_mark mark) { atomic_store(&mark->task->at, mark); }

static void note(const char *role, enum truth_wait wait, const void *object, truth_mark mark, int ask) {
    truth_suspends(mark);
    /* Before the record: when all records are there, so are all marks. */
    atomic_store(&noted[truth_next(&noted_count, MAX_NOTED)], mark);
    truth_note_with(role, wait, object, TRUTH_NO_BODY, ask);
}

void truth_stack_note(const char *role, enum truth_stack_wait wait, truth_mark mark) {
    note(role, (enum truth_wait)wait, NULL, mark, 1);
}

void truth_stack_note_plain(const char *role, enum truth_stack_wait wait, truth_mark mark) {
    note(role, (enum truth_wait)wait, NULL, mark, 0);
}

void truth_stack_owns_critical(const char *name, const void *word) { truth_note_lock(name, "critical", word, 1); }

void truth_stack_note_critical(const char *role, const void *word, truth_mark mark) {
    note(role, TRUTH_CRITICAL, word, mark, 1);
}

void truth_stack_note_idle(const char *role) { truth_note_idle(role); }

void truth_stack_hold(void) {
    truth_hold();
    TRUTH_KEEP_FRAME();
}

void truth_stack_step(void) { truth_step(); }
void truth_stack_release(void) { truth_release(); }
void truth_stack_done(void) { truth_done(); }

void truth_stack_return(void) { TRUTH_KEEP_FRAME(); }

static const char *copied(const char *text, int length) {
    char *copy = zeroed((size_t)length + 1);
    memcpy(copy, text, (size_t)length);
    return copy;
}

truth_mark truth_fortran_mark(truth_mark outer, const char *function, int length, int line, const char *construct,
                              int construct_length) {
    static const char file[] = "stacks_fortran.f90";
    const char *name = copied(function, length);
    if (construct_length == 0)
        return truth_frame(outer, file, name, line, TRUTH_FRAME);
    return truth_opens(outer, file, name, line, TRUTH_FRAME, copied(construct, construct_length));
}

void truth_fortran_note(const char *role, int length, enum truth_stack_wait wait, truth_mark mark) {
    truth_stack_note(copied(role, length), wait, mark);
}

void truth_stack_set(int flag) { atomic_store(&flags[flag], 1); }
void truth_stack_await(int flag) { truth_wait_for(&flags[flag]); }

static int is_explicit(const struct task *task) {
    return !task->initial && strncmp(task->opened->construct, "task", 4) == 0;
}

/* Prints the frames from MARK outward: all of them, or only those of its own task. */
static void print_frames(FILE *out, truth_mark mark, int only_own) {
    const struct task *own = mark->task;
    const char *comma = "";
    for (; mark; mark = mark->outer) {
        if (mark->is_base)
            continue; /* the frame inside it was printed with the construct */
        if (only_own && mark->task != own)
            return;
        fprintf(out, "%s{\"task\":%d,\"function\":\"%s\",\"file\":\"%s\"", comma, mark->task->id, mark->function,
                mark->file);
        if (mark->shape != TRUTH_OVER)
            fprintf(out, ",\"line\":%d", mark->line);
        truth_mark opened = mark->outer->is_base ? mark->task->opened : NULL;
        if (opened)
            fprintf(out, ",\"construct\":\"%s\",\"construct_line\":%d", opened->construct, opened->line);
        if (mark->shape == TRUTH_INLINED)
            fprintf(out, ",\"inlined\":true");
        if (mark->shape == TRUTH_TAIL)
            fprintf(out, ",\"tail\":true");
        fprintf(out, "}");
        comma = ",";
    }
}

static void print(FILE *out) {
    for (int i = 0; i < atomic_load(&task_count); i++) {
        const struct task *task = atomic_load(&tasks[i]);
        if (!task)
            continue; /* just being made; nobody's mark refers to it yet */
        fprintf(out, "{\"stack_task\":{\"id\":%d,\"cfa\":\"0x%jx\",\"kind\":\"%s\",\"lwp\":%d,\"finished\":%s,\"at\":[",
                task->id, (uintmax_t)(uintptr_t)task->cfa,
                task->initial       ? "initial"
                : is_explicit(task) ? "explicit"
                                    : "implicit",
                (int)task->lwp, atomic_load(&task->finished) ? "true" : "false");
        truth_mark at = atomic_load(&task->at);
        if (at && !atomic_load(&task->finished))
            print_frames(out, at, 1);
        fprintf(out, "]}}\n");
    }
    for (int i = 0; i < atomic_load(&noted_count); i++) {
        truth_mark mark = atomic_load(&noted[i]);
        fprintf(out, "{\"stack\":{\"lwp\":%d,\"frames\":[", (int)mark->task->lwp);
        print_frames(out, mark, 0);
        fprintf(out, "]}}\n");
    }
}

void truth_stack_ready(const char *program, int expected) {
    truth_more = print;
    truth_ready(program, expected);
}

void truth_fortran_ready(const char *program, int length, int expected) {
    truth_stack_ready(copied(program, length), expected);
}
