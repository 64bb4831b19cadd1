/* One thread sleeps again and again, for up to three milliseconds.  While it sleeps, a word in memory and a register that calls preserve
 * hold how often it has slept.  Another thread sleeps all the time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t word;

/* Until a point in time: after a stop the kernel makes this call once more, with the same number and arguments. */
static void sleep_holding(uint64_t number, const struct timespec *until) {
    register void *rest __asm__("r10") = NULL;
    long result = SYS_clock_nanosleep;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(CLOCK_MONOTONIC), "S"(TIMER_ABSTIME), "d"(until), "r"(rest), "b"(number)
                     : "rcx", "r11", "memory");
}

static void *sleep_on(void *unused) {
    for (;;)
        pause();
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
        return 1;
    printf("known %p %zu\nready\n", (void *)&word, sizeof word);
    fflush(stdout);
    uint64_t state = 88172645463325252u;
    for (uint64_t number = 1;; number++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)(state % 3000000);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        word = number;
        sleep_holding(number, &until);
    }
}
