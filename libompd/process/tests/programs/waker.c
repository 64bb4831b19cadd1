/* Threads that sleep in many ways and wake for microseconds at random times, and threads that live no longer than that.  Each time
 * is written down: when a thread found itself awake, and when it was about to sleep again.  Nothing here is synchronised with those
 * who look. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLEEPERS = 4, PAIR = 2, BIRTHS = SLEEPERS + PAIR, LOGS = BIRTHS + 1, ENTRIES = 512 };

/* One thread's times, in nanoseconds of CLOCK_MONOTONIC; one is open while `end` is 0.  Short-lived threads follow one
 * another, and share one. */
struct log {
    _Atomic uint64_t count;
    struct {
        _Atomic uint64_t begin, end;
    } entries[ENTRIES];
};

static struct log logs[LOGS];
static _Atomic uint32_t turn;
static uint64_t seed;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The number of the entry that begins here.  In this order: nobody may take the begin of an old entry for that of a new one. */
static uint64_t wakes(struct log *log) {
    uint64_t number = atomic_fetch_add(&log->count, 1);
    atomic_store(&log->entries[number % ENTRIES].begin, now());
    atomic_store(&log->entries[number % ENTRIES].end, 0);
    return number;
}

static void sleeps(struct log *log, uint64_t number) {
    atomic_store(&log->entries[number % ENTRIES].end, now());
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Up to 30 milliseconds, now and then much less: often enough all sleep for long enough to be looked at. */
static struct timespec some_time(uint64_t *state) {
    uint64_t most = next(state) % 8 == 0 ? 1000u << next(state) % 13 : 30000000u;
    return (struct timespec){.tv_nsec = (long)(next(state) % most)};
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, struct timespec *timeout) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

static void *sleeper(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    uint64_t state = seed * 31 + number + 1;
    struct log *log = &logs[number];
    static _Atomic uint32_t never;
    for (;;) {
        struct timespec time = some_time(&state);
        uint64_t entry = wakes(log);
        for (volatile uint64_t work = next(&state) % 2000; work > 0; work--)
            ;
        sleeps(log, entry);
        switch (next(&state) % 3) {
        case 0:
            nanosleep(&time, NULL);
            break;
        case 1:
            futex(&never, FUTEX_WAIT, 0, &time);
            break;
        default:
            ppoll(NULL, 0, &time, NULL);
        }
    }
    return NULL;
}

/* Two that wake each other, and sleep without a limit; from time to time both wait for one that sleeps. */
static void *pair(void *argument) {
    uintptr_t number = (uintptr_t)argument;
    uint64_t state = seed * 17 + number + 1;
    struct log *log = &logs[SLEEPERS + number];
    for (;;) {
        uint64_t entry = wakes(log);
        while (atomic_load(&turn) % PAIR != number) {
            uint32_t seen = atomic_load(&turn);
            if (seen % PAIR == number)
                break;
            sleeps(log, entry);
            futex(&turn, FUTEX_WAIT, seen, NULL);
            entry = wakes(log);
        }
        struct timespec time = some_time(&state);
        sleeps(log, entry);
        nanosleep(&time, NULL);
        entry = wakes(log);
        atomic_fetch_add(&turn, 1);
        futex(&turn, FUTEX_WAKE, 1, NULL);
        sleeps(log, entry);
    }
    return NULL;
}

/* Nobody waits for these: who has made one may sleep when it wakes. */
static void *short_life(void *argument) {
    struct timespec time = {.tv_nsec = (long)(uintptr_t)argument};
    nanosleep(&time, NULL);
    sleeps(&logs[BIRTHS], wakes(&logs[BIRTHS]));
    return NULL;
}

static void *mother(void *argument) {
    (void)argument;
    uint64_t state = seed * 13 + 1;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t child;
        struct timespec time = some_time(&state);
        if (pthread_create(&child, &detached, short_life, (void *)(uintptr_t)(next(&state) % 1000000)) != 0)
            exit(1);
        nanosleep(&time, NULL);
    }
    return NULL;
}

int main(int argc, char **argv) {
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    pthread_t thread;
    for (uintptr_t n = 0; n < SLEEPERS; n++)
        if (pthread_create(&thread, NULL, sleeper, (void *)n) != 0)
            return 1;
    for (uintptr_t n = 0; n < PAIR; n++)
        if (pthread_create(&thread, NULL, pair, (void *)n) != 0)
            return 1;
    if (pthread_create(&thread, NULL, mother, NULL) != 0)
        return 1;
    printf("known %p %zu\nready\n", (void *)logs, sizeof logs);
    fflush(stdout);
    char byte;
    return read(0, &byte, 1) < 0;
}
