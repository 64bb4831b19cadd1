/* What must be said of a program that hangs, or of one that is healthy.
 *
 * A program that hangs states by truth_expect() what its hang is; names in it
 * are those of its own records, separated by commas: roles of threads, names of
 * locks and other objects, functions of tasks.  One that is healthy states by
 * truth_expect_none() that nothing is wrong with it.
 *
 * The coordinator of a hang is one of those who hang.  It announces its wait as
 * all do and calls truth_hang(), which returns when all others are in theirs
 * and the truth is told; then it enters its own.  That it has arrived there is
 * for the test to see. */
#ifndef EXPECT_H
#define EXPECT_H

#include "truth.h"

struct truth_expectation {
    const char *verdict;        /* deadlock, suspect or none */
    const char *situation;      /* what it is called */
    const char *also;           /* other names for it that are true as well */
    const char *without_owners; /* ... where the runtime does not record who owns the locks */
    const char *threads;        /* roles: all threads that have them must be named */
    const char *missing;        /* roles of those the others wait for: named as well */
    const char *objects;        /* locks, events and storage of dependences */
    const char *tasks;          /* functions of tasks, or roles of threads that run them */
};

static struct truth_expectation truth_expected;

/* How long a program that hangs, or runs for ever, lives when nobody ends it. */
enum { TRUTH_HANG_SECONDS = 120, TRUTH_HEALTHY_SECONDS = 600 };

static inline void truth_print_names(FILE *out, const char *key, const char *names) {
    fprintf(out, ",\"%s\":[", key);
    for (const char *name = names ? names : ""; *name;) {
        size_t length = strcspn(name, ",");
        fprintf(out, "%s\"%.*s\"", name == names ? "" : ",", (int)length, name);
        name += length;
        name += strspn(name, ", ");
    }
    fprintf(out, "]");
}

static inline void truth_print_expectation(FILE *out) {
    const struct truth_expectation *e = &truth_expected;
    if (!e->verdict)
        truth_fail("nothing was said of what is to be expected");
    fprintf(out, "{\"expect\":{\"verdict\":\"%s\"", e->verdict);
    if (e->situation)
        fprintf(out, ",\"situation\":\"%s\"", e->situation);
    if (e->without_owners)
        fprintf(out, ",\"without_owners\":\"%s\"", e->without_owners);
    truth_print_names(out, "also", e->also);
    truth_print_names(out, "threads", e->threads);
    truth_print_names(out, "missing", e->missing);
    truth_print_names(out, "objects", e->objects);
    truth_print_names(out, "tasks", e->tasks);
    fprintf(out, "}}\n");
}

/* truth_expect(.verdict = "deadlock", .situation = "lock_cycle", ...); once,
 * before truth_hang(). */
#define truth_expect(...) truth_expect_this((struct truth_expectation){__VA_ARGS__})

static inline void truth_expect_this(struct truth_expectation expectation) {
    truth_expected = expectation;
    truth_more = truth_print_expectation;
}

static inline void truth_expect_none(void) { truth_expect(.verdict = "none"); }

/* To be called first thing in main, instead of truth_init(); and in a forked
 * child, which inherits no alarm. */
static inline void truth_init_for(unsigned seconds) {
    truth_init();
    alarm(seconds);
}

/* Tells the truth once all `expected` noted threads but the caller are in their
 * waits.  The caller is noted too, and goes into its wait right after. */
static inline void truth_hang(const char *program, int expected) { truth_tell(program, expected); }

/* To be called after each round of a healthy program, always by the same thread.
 * After the first it tells the truth: the program is ready, and from now on
 * nothing is wrong, whenever it is looked at; `noted` threads have announced
 * where they stay.  After some more it tells that it goes on. */
enum { TRUTH_TOLD_ROUNDS = 5 };

static inline void truth_round(const char *program, int noted) {
    static int rounds;
    if (rounds == TRUTH_TOLD_ROUNDS)
        return;
    if (rounds++ == 0) {
        truth_expect_none();
        truth_tell(program, noted);
        return;
    }
    fprintf(truth_out(), "{\"round\":%d}\n", rounds);
    if (fflush(truth_out()) != 0)
        truth_fail("the truth could not be written");
}

/* Do the programs of this process run on libomp or libiomp5? */
static inline int truth_on_kmp(void) {
    const char *spins = getenv("OMPD_TRUTH_SPINS");
    return spins && strcmp(spins, "1") == 0;
}

/* States that the calling thread took a lock and has ended, or will before
 * anything is told. */
static inline void truth_note_gone(const char *role) {
    snprintf(truth_fact(), sizeof truth_facts[0], "{\"gone\":{\"role\":\"%s\",\"lwp\":%d}}", role,
             (int)syscall(SYS_gettid));
}

/* Names something that is no lock: an event, or the storage in a depend clause. */
static inline void truth_note_object(const char *name, const char *kind, uintptr_t address) {
    snprintf(truth_fact(), sizeof truth_facts[0],
             "{\"object\":{\"name\":\"%s\",\"kind\":\"%s\",\"address\":\"0x%jx\"}}", name, kind, (uintmax_t)address);
}

/* The word the compiler makes for `critical(NAME)`. */
#if defined(__clang__)
#define TRUTH_CRITICAL_WORD(NAME) extern char NAME##_word[] __asm__(".gomp_critical_user_" #NAME ".var")
#else
#define TRUTH_CRITICAL_WORD(NAME) extern char NAME##_word[] __asm__(".gomp_critical_user_" #NAME)
#endif

#endif
