/* A program that uses a GPU, for `ci/gpu`.  Its first argument says how:
 *
 *   region    a thread of a team of 3 is in a target region that does not end; the others wait at the end of the team's region
 *   task      the same, but the target region is a task, which any of them may execute
 *   nested    the same, and within the target region is a region of 2 threads of which thread 1 does not end
 *   nowait    a target region that does not end is a task; the initial thread waits for its tasks, the others at a barrier
 *   depend    as nowait, and a second task waits for the first by its dependence
 *   busy      three threads launch short target regions, as tasks and not, and wait for each other, until there is a byte on
 *             standard input
 *
 * The second is the number of that thread; 1 if there is none.
 *
 * It says, each on a line
 *
 *   devices N            how many there are
 *   host N               1 if target regions run on the host in place of the device
 *   construct F LINE     function and line of the construct that does not end
 *   thread N LWP         a thread of the team
 *   ready                it is about to begin
 *   done SUM EXPECTED    `busy` has ended: what the devices added up, and what it should be */
#define _GNU_SOURCE
#include <omp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned long endless = 1;
static int who = 1;

static void say_thread(void) {
#pragma omp critical
    {
        printf("thread %d %ld\n", omp_get_thread_num(), syscall(SYS_gettid));
        fflush(stdout);
    }
}

static void say_ready(const char *function, int line) {
    printf("construct %s %d\nready\n", function, line);
    fflush(stdout);
}

static __attribute__((noinline)) void region(void) {
#pragma omp parallel num_threads(3)
    {
        say_thread();
#pragma omp barrier
        if (omp_get_thread_num() == who) {
            say_ready(__func__, __LINE__ + 2);
            /* clang gives the call of the runtime the line of the code before it. */
            fflush(stdout); _Pragma("omp target map(tofrom : endless)")
            while (endless % 2)
                endless += 2;
        }
    }
}

static __attribute__((noinline)) void task(void) {
#pragma omp parallel num_threads(3)
    {
        say_thread();
#pragma omp barrier
        if (omp_get_thread_num() == who) {
            say_ready(__func__, __LINE__ + 2);
            fflush(stdout); _Pragma("omp target map(tofrom : endless) nowait")
            while (endless % 2)
                endless += 2;
#pragma omp taskwait
        }
    }
}

static __attribute__((noinline)) void nested(void) {
#pragma omp parallel num_threads(3)
    {
        say_thread();
#pragma omp barrier
        if (omp_get_thread_num() == who) {
            say_ready(__func__, __LINE__ + 1);
#pragma omp target map(tofrom : endless)
#pragma omp parallel num_threads(2)
            while (omp_get_thread_num() == 1 && endless % 2)
                endless += 2;
        }
    }
}

static __attribute__((noinline)) void tasks(int depend) {
#pragma omp parallel num_threads(3)
    {
        say_thread();
#pragma omp barrier
#pragma omp master
        {
            say_ready(__func__, __LINE__ + 1);
#pragma omp target map(tofrom : endless) nowait depend(inout : endless)
            while (endless % 2)
                endless += 2;
            if (depend) {
#pragma omp task depend(in : endless)
                printf("never %lu\n", endless);
            }
#pragma omp taskwait
        }
#pragma omp barrier
    }
}

static __attribute__((noinline)) void busy(void) {
    long sum = 0, expected = 0;
    int go_on = 1;
    say_ready(__func__, __LINE__);
    for (int round = 0; go_on; round++) {
#pragma omp parallel num_threads(3) reduction(+ : sum, expected)
        {
            int numbers[64] = {0};
            for (int i = 0; i < 4; i++) {
#pragma omp target teams distribute parallel for map(tofrom : numbers)
                for (int k = 0; k < 64; k++)
                    numbers[k] += k + i;
            }
            int other[64] = {0};
#pragma omp target map(tofrom : other) nowait depend(out : other)
            for (int k = 0; k < 64; k++)
                other[k] += k;
#pragma omp task depend(inout : other) shared(other)
            other[0]++;
#pragma omp taskwait
            for (int k = 0; k < 64; k++) {
                sum += numbers[k] + other[k];
                expected += 5 * k + 6;
            }
            expected++;
#pragma omp barrier
        }
        if (round % 16 == 0) {
            struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
            go_on = poll(&input, 1, 0) == 0;
        }
    }
    printf("done %ld %ld\n", sum, expected);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int host = 1;
    if (argc > 2)
        who = atoi(argv[2]);
#pragma omp target map(from : host)
    host = omp_is_initial_device();
    printf("devices %d\nhost %d\n", omp_get_num_devices(), host);
    fflush(stdout);
    if (strcmp(how, "region") == 0)
        region();
    else if (strcmp(how, "task") == 0)
        task();
    else if (strcmp(how, "nested") == 0)
        nested();
    else if (strcmp(how, "nowait") == 0 || strcmp(how, "depend") == 0)
        tasks(strcmp(how, "depend") == 0);
    else if (strcmp(how, "busy") == 0)
        busy();
    else
        return 2;
    return 0;
}
