/* truth.h and expect.h for hangs in other languages than C: see truth_calls.h. */
#include "truth_calls.h"
#include "expect.h"

static atomic_int flags[8];

static enum truth_wait wait_named(const char *name) {
    for (enum truth_wait wait = TRUTH_LOCK; wait <= TRUTH_MUTEX; wait++)
        if (strcmp(truth_wait_name(wait), name) == 0)
            return wait;
    truth_fail("a wait of no such name");
    return TRUTH_LOCK;
}

void hang_init(void) { truth_init_for(TRUTH_HANG_SECONDS); }

void hang_expect(const char *verdict, const char *situation, const char *without_owners, const char *threads,
                 const char *objects) {
    truth_expect(.verdict = verdict, .situation = situation, .without_owners = without_owners, .threads = threads,
                 .objects = objects);
}

void hang_note(const char *role, const char *wait, const void *object) {
    truth_note_with(role, wait_named(wait), object, TRUTH_NO_BODY, 0);
}

void hang_note_lock(const char *name, const char *kind, const void *address) {
    truth_note_lock(name, kind, address, 1);
}

void hang_tell(const char *program, int expected) { truth_hang(program, expected); }

void hang_raise(int flag) { atomic_store(&flags[flag], 1); }

void hang_await(int flag) { truth_wait_for(&flags[flag]); }
