// Functions with all kinds of call frame information: realigned stacks, arrays of variable length, saved registers, and the
// bodies of regions and tasks.
#include <alloca.h>
#include <string.h>

extern int outside(void *, int);

static inline int inlined(int n, int *from) {
    for (int i = 0; i < n; i++) from[i] += outside(from, i);
    return from[n / 2];
}

int variable(int n) {
    int values[n];
    char *more = alloca(n);
    memset(more, 0, n);
    return inlined(n, values) + outside(more, n);
}

int realigned(int n) {
    _Alignas(64) int values[64];
    int sizes[n];
    memset(values, 0, sizeof values);
    return inlined(64, values) + outside(values, n) + outside(sizes, n);
}

int recursive(int n) { return n > 0 ? recursive(n - 1) * outside(0, n) + 1 : 0; }

int indirect(int (*function)(int), int n) { return function(n) + function(n + 1); }

int regions(int n) {
    int sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        sum += variable(n);
#pragma omp task
        outside(&sum, recursive(n));
#pragma omp parallel num_threads(2)
        outside(&sum, realigned(n));
    }
    return sum;
}
