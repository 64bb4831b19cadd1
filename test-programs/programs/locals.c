/* Variables of every kind, whose values follow from the thread number.
 *
 * Each of four threads is in one iteration of a loop in a region, thread 3 in a task there. */
#include "truth.h"

enum { THREADS = 4 };

enum color { RED, GREEN = 5, BLUE = 6 };

struct inner {
    int deep;
};

struct point {
    int x;
    double y;
    struct inner inner;
    const char *name;
};

typedef unsigned short measure;

/* Whatever these variables are, they are in memory: somebody might look at them. */
__attribute__((noinline)) static void escape(const void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

TRUTH_MARKER void hold(int number, int argument) {
    if (number == 0) {
        truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, hold));
        truth_ready("locals", THREADS);
        truth_release();
    } else {
        enum truth_kind kind = number == 3 ? TRUTH_EXPLICIT : TRUTH_IMPLICIT;
        truth_note("member", TRUTH_PIPE, NULL, TRUTH_BODY(kind, hold));
        truth_hold();
    }
    escape(&argument);
    truth_step();
}

int main(void) {
    truth_init();
    int shared_count = 1234;
    double shared_ratio = 2.5;
    struct point shared_point = {-7, 0.125, {99}, NULL};
    int *shared_pointer = &shared_count;
    int first = 70, mine;
    escape(&shared_count);
    escape(&shared_ratio);
    escape(&shared_point);
#pragma omp parallel num_threads(THREADS) firstprivate(first) private(mine)
    {
        int number = omp_get_thread_num();
        mine = 100 + number;
        first += number;
        long values[10];
        for (int k = 0; k < 10; k++)
            values[k] = number * 1000 + k;
        float fraction = (float)number + 0.25f;
        enum color color = number % 2 ? BLUE : GREEN;
        struct point point = {number, -1.5, {number + 1}, NULL};
        char text[8] = "a\"b\n";
        text[0] = (char)('a' + number);
        _Bool odd = number % 2 != 0;
        measure length = (measure)(65000 + number);
        int *pointer = &shared_count;
        escape(&mine);
        escape(&first);
        escape(values);
        escape(&fraction);
        escape(&color);
        escape(&point);
        escape(text);
        escape(&odd);
        escape(&length);
        escape(&pointer);
        escape(&shared_pointer);
#pragma omp for schedule(static, 1)
        for (int i = 3; i < 3 + 10 * THREADS; i += 10) {
            int square = i * i;
            escape(&square);
            if (number == 3) {
#pragma omp task if (0) firstprivate(square)
                {
                    int inside = square + 1;
                    escape(&inside);
                    hold(number, i);
                    escape(&inside);
                    escape(&square);
                }
            } else {
                hold(number, i);
            }
            escape(&square);
        }
        escape(&mine);
        escape(&first);
        escape(values);
        escape(&fraction);
        escape(&color);
        escape(&point);
        escape(text);
        escape(&odd);
        escape(&length);
        escape(&pointer);
        escape(&shared_ratio);
        escape(&shared_point);
    }
    escape(&first);
    truth_done();
    return 0;
}
