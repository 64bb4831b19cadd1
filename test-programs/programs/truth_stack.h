/* What the stacks_* programs know of their logical stacks.
 *
 * A mark is one frame of the source: the function, and the line of the call (or
 * the wait) this frame is at.  Each function gets the mark of its caller's frame
 * and hands its own on, so that a chain of marks crosses threads the way the
 * source does, not the way the stacks do.  Marks live for ever.
 *
 * A construct that is executed as a task of its own (parallel, task, ...) is two
 * marks: OPENED is the frame at the pragma, of the task that comes to the
 * construct; what truth_enter() gives each time the construct's body is executed
 * stands for the new task, and frames of the body are chained to it.
 *
 * One call is one line, with its mark on the same line: the call's line is then
 * the mark's.  Implemented in truth_stack.c, for C, C++ and Fortran. */
#ifndef TRUTH_STACK_H
#define TRUTH_STACK_H

#ifdef __cplusplus
extern "C" {
#endif

typedef const struct truth_mark_data *truth_mark;

/* What a frame may look like in the machine's stack. */
enum truth_shape {
    TRUTH_FRAME = 0,   /* a frame of its own, or inlined, as the compiler likes */
    TRUTH_INLINED = 1, /* inlined at every optimisation level */
    TRUTH_TAIL = 2,    /* the call or wait is the frame's last act: optimised code has no frame then, or no line */
    TRUTH_OVER = 3,    /* the body of the construct is over, and the thread in the construct's end: on no line */
};

/* The waits, numbered as in enum truth_wait of truth.h. */
enum truth_stack_wait { STACK_BARRIER = 3, STACK_TASKWAIT = 4, STACK_TASKGROUP = 5, STACK_PIPE = 7 };

/* To be called first thing in main. */
void truth_stack_init(void);

/* The outermost mark of a thread that no construct made: main's thread, or a pthread. */
truth_mark truth_thread_base(void);

/* A frame, called by (or in the body of) OUTER. */
truth_mark truth_frame(truth_mark outer, const char *file, const char *function, int line, enum truth_shape shape);

/* A frame at the pragma, in LINE, of a construct ("task", "parallel for", ...). */
truth_mark truth_opens(truth_mark outer, const char *file, const char *function, int line, enum truth_shape shape,
                       const char *construct);

/* The calling thread begins to execute the body of the construct.  CFA is what the stack pointer was before the function
 * was called that the compiler made of the body; 0 if it is not known. */
truth_mark truth_enter_at(truth_mark opened, const void *cfa);

/* The same, for languages that cannot ask for it. */
truth_mark truth_enter(truth_mark opened);
#define truth_enter(OPENED) truth_enter_at((OPENED), __builtin_dwarf_cfa())

/* The body has no further frame or scheduling point. */
void truth_leave(truth_mark entered);

/* The task suspends itself at MARK and may execute others there. */
void truth_suspends(truth_mark mark);

/* The calling thread is about to wait at MARK, for good. */
void truth_stack_note(const char *role, enum truth_stack_wait wait, truth_mark mark);

/* The same of a thread that must not come near OpenMP. */
void truth_stack_note_plain(const char *role, enum truth_stack_wait wait, truth_mark mark);

/* The calling thread has entered a critical section; WORD is the variable the compiler made for it. */
void truth_stack_owns_critical(const char *name, const void *word);

/* The calling thread is about to wait for that section at MARK. */
void truth_stack_note_critical(const char *role, const void *word, truth_mark mark);

/* The calling thread is about to be parked by the runtime. */
void truth_stack_note_idle(const char *role);

/* Holds the thread in read() until it is released. */
void truth_stack_hold(void);

/* Counts the calling thread: it got past its wait. */
void truth_stack_step(void);

/* The coordinator's part: as truth_ready, truth_release and truth_done. */
void truth_stack_ready(const char *program, int expected);
void truth_stack_release(void);
void truth_stack_done(void);

/* Does nothing: a call after the last call of a function, so that this cannot become a jump. */
void truth_stack_return(void);

/* For Fortran, whose strings come with a length: of stacks_fortran.f90, a frame, or one that opens a construct if that
 * has a name. */
truth_mark truth_fortran_mark(truth_mark outer, const char *function, int length, int line, const char *construct,
                              int construct_length);
void truth_fortran_note(const char *role, int length, enum truth_stack_wait wait, truth_mark mark);
void truth_fortran_ready(const char *program, int length, int expected);

/* Numbered flags (0 to 15) by which one thread waits for another. */
void truth_stack_set(int flag);
void truth_stack_await(int flag);

/* The frame of this function at a line so many lines further on, or at this one. */
#define AT(OUTER, LINES_ON) truth_frame((OUTER), __FILE__, __func__, __LINE__ + (LINES_ON), TRUTH_FRAME)
#define CALL(OUTER) truth_frame((OUTER), __FILE__, __func__, __LINE__, TRUTH_FRAME)
#define INLINED(OUTER) truth_frame((OUTER), __FILE__, __func__, __LINE__, TRUTH_INLINED)
#define TAIL(OUTER, LINES_ON) truth_frame((OUTER), __FILE__, __func__, __LINE__ + (LINES_ON), TRUTH_TAIL)
#define OVER(OUTER) truth_frame((OUTER), __FILE__, __func__, 0, TRUTH_OVER)

/* The frame of this function at the pragma of a construct so many lines further on. */
#define OPENS(OUTER, CONSTRUCT, LINES_ON)                                                                              \
    truth_opens((OUTER), __FILE__, __func__, __LINE__ + (LINES_ON), TRUTH_FRAME, CONSTRUCT)

/* A function that keeps a frame of its own at every optimisation level, if KEEP() follows the last call in it. */
#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noinline, noclone))
#endif
#define KEEP() __asm__ volatile("" ::: "memory")

#ifdef __cplusplus
}
#endif
#endif
