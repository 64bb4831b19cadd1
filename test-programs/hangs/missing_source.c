/* A doacross loop whose first iteration is over without having said so: its
 * `ordered depend(source)` is left out, and the next one waits for ever.  The
 * thread that had the first waits at the end of the loop, the one that has the
 * third for the second.
 *
 * Which iteration a thread waits for is recorded nowhere, so that nothing is
 * proven: the wait is named, with the iteration that has not been posted, and
 * there is no verdict. */
#include "expect.h"

enum { THREADS = 3 };

TRUTH_MARKER void member_body(void) {
#pragma omp for ordered(1) schedule(static, 1)
    for (int i = 0; i < THREADS; i++) {
        if (i == 0) {
            truth_note("first", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
            truth_hang("missing_source", THREADS);
        } else {
            truth_note("sink", TRUTH_YIELD, NULL, TRUTH_BODY(TRUTH_IMPLICIT, member_body));
        }
#pragma omp ordered depend(sink : i - 1)
        truth_step();
        if (i > 0) {
#pragma omp ordered depend(source)
        }
    }
    TRUTH_KEEP_FRAME();
}

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
    truth_expect_none();
#pragma omp parallel num_threads(THREADS)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    return 0;
}
