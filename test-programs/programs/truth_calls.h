/* What hangs in C++ and Fortran call to tell the truth.  Names of waits are
 * those of the records ("lock", "barrier", ...); roles and names must be there
 * for ever.  Of the threads nothing but their waits is told. */
#ifndef TRUTH_CALLS_H
#define TRUTH_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* First of all. */
void hang_init(void);
/* As truth_expect(). */
void hang_expect(const char *verdict, const char *situation, const char *without_owners, const char *threads,
                 const char *objects);
/* The calling thread is about to wait: as truth_note(). */
void hang_note(const char *role, const char *wait, const void *object);
/* The calling thread has taken a lock. */
void hang_note_lock(const char *name, const char *kind, const void *address);
/* The calling thread is the last of `expected` to wait: as truth_hang(). */
void hang_tell(const char *program, int expected);
/* Eight flags between threads, without a scheduling point. */
void hang_raise(int flag);
void hang_await(int flag);

#ifdef __cplusplus
}
#endif

#endif
