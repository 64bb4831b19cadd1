// Waits in a place that the first argument names, after saying "ready": a stack of a certain kind.
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;

// Says so and waits until the other end of standard input is closed.
NOINLINE void hold(void) {
    char byte;
    if (write(1, "ready\n", 6) != 6) abort();
    while (read(0, &byte, 1) > 0) {}
    sink++;
}

NOINLINE void touch(void *memory, int bytes) {
    memset(memory, bytes, bytes);
    sink += ((volatile char *)memory)[0];
}

// Rows of 64 bytes: the stack pointer is rounded down, and how far only the frame itself knows.
NOINLINE int realigned(int n) {
    _Alignas(64) char rows[4][64];
    touch(rows, 64);
    hold();
    touch(rows, n);
    return rows[1][n];
}

// Rounded down and of a length that is known when it runs: GCC keeps the address of the arguments in a register.
NOINLINE int realigned_variable(int n, int a, int b, int c, int d, int e, int f, int g) {
    _Alignas(64) char rows[4][64];
    char more[n + a];
    touch(rows, 64);
    touch(more, n);
    hold();
    touch(more, n);
    return rows[1][n] + more[0] + b + c + d + e + f + g;
}

__attribute__((force_align_arg_pointer)) NOINLINE int forced(int n) {
    float values[16];
    for (int i = 0; i < 16; i++) values[i] = (float)(i * n);
    touch(values, 4);
    int found = realigned_variable(n, 1, 2, 3, 4, 5, 6, 7);
    return found + (int)values[n];
}

NOINLINE int variable(int n) {
    char values[n * 100];
    char *more = alloca(n * 33);
    touch(values, n);
    touch(more, n);
    int found = n > 5 ? variable(n - 1) : realigned(n);
    return found + values[n] + more[n];
}

// Six values that must outlive a call take all registers that calls preserve.
NOINLINE int crowded(int n) {
    volatile int from[6] = {n, n + 1, n + 2, n + 3, n + 4, n + 5};
    int a = from[0], b = from[1], c = from[2], d = from[3], e = from[4], f = from[5];
    int found = forced(n);
    touch(&found, 1);
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + found;
}

NOINLINE int recursive(int n) {
    int own = n;
    if (n == 0)
        hold();
    else
        own += recursive(n - 1);
    touch(&own, 1);
    return own;
}

static void on_signal(int number) {
    sink += number;
    hold();
    _exit(0);
}

// The first instruction of a function of its own faults, and before it lies nothing that call frame information covers.
__asm__(".text\n .p2align 5\n .skip 32, 0xcc\n .globl faults\n .type faults,@function\n"
        "faults:\n .cfi_startproc\n movl (%rdi), %eax\n ret\n .cfi_endproc\n .size faults,.-faults\n");
extern int faults(int *);

NOINLINE int interrupted(int n) {
    int own = n;
    own += faults((int *)(long)(sink & 0));
    touch(&own, 1);
    return own;
}

static void handle(int number, int flags) {
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = on_signal;
    if (flags & SA_ONSTACK) {
        stack_t other = {.ss_size = 1 << 17};
        other.ss_sp = malloc(other.ss_size);
        if (sigaltstack(&other, NULL) != 0) abort();
    }
    if (sigaction(number, &action, NULL) != 0) abort();
}

static void *thread(void *argument) {
    (void)argument;
    sink += crowded(5);
    return NULL;
}

// Threads that all wait at the same place.
static pthread_barrier_t all;

static void *member(void *argument) {
    char byte;
    pthread_barrier_wait(&all);
    while (read(*(int *)argument, &byte, 1) > 0) {}
    return NULL;
}

static void many(int count) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    pthread_barrier_init(&all, NULL, count + 1);
    for (int i = 0; i < count; i++) {
        pthread_t made;
        if (pthread_create(&made, NULL, member, ends) != 0) abort();
    }
    pthread_barrier_wait(&all);
    hold();
}

static int (*volatile nothing)(int);
static struct { long first; int (*volatile functions[4])(int); } table;

// Through a register, and through a table that a register points to.
NOINLINE int astray(int n) {
    int (*go)(int) = nothing;
    int found = go(n);
    touch(&found, 1);
    return found;
}

NOINLINE int astray_by_table(int n) {
    int found = table.functions[n](n);
    touch(&found, 1);
    return found;
}

int main(int count, char **arguments) {
    const char *where = count > 1 ? arguments[1] : "";
    int number = count > 2 ? atoi(arguments[2]) : 5;
    if (strcmp(where, "realigned") == 0) {
        sink += crowded(number) + realigned(number);
    } else if (strcmp(where, "variable") == 0) {
        sink += variable(number + 5);
    } else if (strcmp(where, "recursive") == 0) {
        sink += recursive(number);
    } else if (strcmp(where, "signal") == 0) {
        handle(SIGUSR1, 0);
        raise(SIGUSR1);
    } else if (strcmp(where, "fault") == 0) {
        handle(SIGSEGV, 0);
        sink += interrupted(number);
    } else if (strcmp(where, "fault-elsewhere") == 0) {
        handle(SIGSEGV, SA_ONSTACK);
        sink += interrupted(number);
    } else if (strcmp(where, "thread") == 0) {
        pthread_t made;
        if (pthread_create(&made, NULL, thread, NULL) != 0) abort();
        pthread_join(made, NULL);
    } else if (strcmp(where, "many") == 0) {
        many(number);
    } else if (strcmp(where, "astray") == 0) {
        handle(SIGSEGV, SA_ONSTACK);
        sink += astray(number);
    } else if (strcmp(where, "astray-by-table") == 0) {
        handle(SIGSEGV, 0);
        sink += astray_by_table(count);
    } else {
        return 2;
    }
    return 0;
}
