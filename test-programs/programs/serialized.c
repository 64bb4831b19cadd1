/* Regions of one thread inside a team of 2: thread 0 nests two of them, made
 * by num_threads(1); thread 1 nests three, the outermost made by if(0). */
#include "truth.h"

TRUTH_MARKER void shallow_body(void) {
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, shallow_body));
    truth_ready("serialized", 2);
    truth_release();
    truth_step();
}

TRUTH_MARKER void deep_body(void) {
    truth_note("deep holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, deep_body));
    truth_hold();
    truth_step();
}

TRUTH_MARKER void member_body(void) {
    if (omp_get_thread_num() == 0) {
#pragma omp parallel num_threads(1)
        {
#pragma omp parallel num_threads(1)
            {
                shallow_body();
                TRUTH_KEEP_FRAME();
            }
            TRUTH_KEEP_FRAME();
        }
    } else {
        /* read from memory, so that the compiler cannot know it is 0 */
        static volatile int wanted = 0;
#pragma omp parallel if (wanted)
        {
#pragma omp parallel num_threads(1)
            {
#pragma omp parallel num_threads(1)
                {
                    deep_body();
                    TRUTH_KEEP_FRAME();
                }
                TRUTH_KEEP_FRAME();
            }
            TRUTH_KEEP_FRAME();
        }
    }
    TRUTH_KEEP_FRAME();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(2)
    {
        member_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
