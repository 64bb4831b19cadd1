/* A loop whose bounds only the running program knows, a reduction, and arrays of the function around it. */
#include "truth.h"

enum { THREADS = 4 };

__attribute__((noinline)) static void escape(const void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

TRUTH_MARKER void hold(int number) {
    if (number == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, hold));
        truth_ready("locals_loop", THREADS);
        truth_release();
    } else {
        truth_note("member", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, hold));
        truth_hold();
    }
    truth_step();
}

int main(int argc, char **argv) {
    (void)argv;
    truth_init();
    int bound = 3 + 10 * THREADS * argc, length = 5 * argc;
    double total = 1000, extra;
    double fixed[3] = {0.5, 1.5, 2.5};
    double variable[length];
    for (int k = 0; k < length; k++)
        variable[k] = k;
    escape(&bound);
    escape(fixed);
    escape(variable);
#pragma omp parallel for num_threads(THREADS) schedule(static, 1) reduction(+ : total) private(extra)
    for (int i = 3; i < bound; i += 10) {
        total += i + variable[0];
        extra = i / 2.0;
        escape(&total);
        escape(&extra);
        escape(fixed);
        hold(omp_get_thread_num());
        escape(&i);
    }
    escape(&total);
    truth_done();
    return 0;
}
