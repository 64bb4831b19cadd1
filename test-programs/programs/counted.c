/* counted: a team of four adds up the same numbers again and again.  For each
 * byte on standard input it prints "rounds R wrong W": how many sums it has
 * made, and how many of them were wrong.  It ends at the end of the input.
 * For measuring what looks cost a program, and that they change nothing. */
#include "truth.h"

#include <poll.h>

#define NUMBERS 20000

int main(void) {
    static double numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i % 1000;
    const double expected = NUMBERS / 1000 * 499500.0;
    long rounds = 0, wrong = 0;
    for (;;) {
        double sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : sum) schedule(static, 50)
        for (int i = 0; i < NUMBERS; i++)
            sum += numbers[i];
        rounds++;
        wrong += sum != expected;
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (poll(&input, 1, 0) == 1) {
            char byte;
            if (read(0, &byte, 1) != 1)
                return wrong != 0;
            printf("rounds %ld wrong %ld\n", rounds, wrong);
            fflush(stdout);
        }
    }
}
