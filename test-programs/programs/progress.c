/* Four threads of a region: three count for ever, thread 0 takes orders.  Each
 * byte on stdin is answered by a line with the counts, 'q' and the end of
 * stdin stop the program.  Shows whether an inspector disturbs its target. */
#include "truth.h"

enum { TEAM = 4 };

static atomic_long counts[TEAM];
static atomic_int stop;

TRUTH_MARKER void counter_body(void) {
    const struct timespec rest = {0, 200 * 1000};
    int me = omp_get_thread_num();
    truth_note("counter", TRUTH_SLEEP, NULL, TRUTH_BODY(TRUTH_IMPLICIT, counter_body));
    while (!atomic_load(&stop)) {
        atomic_fetch_add(&counts[me], 1);
        nanosleep(&rest, NULL); /* cut short by a signal or a tracer: just as good */
    }
    truth_step();
}

TRUTH_MARKER void orders_body(void) {
    unsigned char byte;
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, orders_body));
    int order = truth_ready("progress", TEAM); /* the first order comes with it */
    while (order != 'q' && order != EOF) {
        FILE *out = truth_out();
        fprintf(out, "{\"counts\":[");
        for (int i = 0; i < TEAM; i++)
            fprintf(out, "%s%ld", i ? "," : "", atomic_load(&counts[i]));
        fprintf(out, "]}\n");
        if (fflush(out) != 0)
            truth_fail("the counts could not be written");
        order = read(0, &byte, 1) == 1 ? byte : EOF;
    }
    atomic_store(&stop, 1);
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(TEAM)
    {
        if (omp_get_thread_num() == 0)
            orders_body();
        else
            counter_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
