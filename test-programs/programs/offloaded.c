/* A program that offloads, and says what it has done, for who compares that with what an OMPT tool has recorded of it.
 *
 * Each construct is in a function of its own.  In the order in which the initial thread does it, which waits for each:
 *
 *   target KIND DEVICE FUNCTION LINE     a construct or a half of one; KIND is that of ompt_target_t
 *   op KIND BYTES ADDRESS FUNCTION LINE  within it, or on its own: KIND is that of ompt_target_data_op_t, the address
 *                                        that of the data on the host, 0 for none
 *   submit TEAMS                         within it
 *   end                                  the construct, or half, is over
 *
 * Then
 *
 *   nowait FUNCTION LINE BYTES           a construct that is a task: whose thread, is not known
 *   both FUNCTION LINE BYTES             one that each of two threads has done, each on the device of its number
 *   devices N                            how many there are
 *   host N                               regions that ran on the host in place of the device
 *   wrong N                              values that did not come back as they should
 *
 * and `ready`.  One byte on standard input lets it end.
 *
 * Some calls of the runtime have no line from the compiler, so that they are taken for part of what comes before them:
 * that is why some constructs share a line with their predecessors.  Lines are those of code that is not optimised. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { TARGET = 1, ENTER = 2, EXIT = 3, UPDATE = 4 };
enum { ALLOC = 1, TO = 2, FROM = 3, DELETE = 4 };

static int a[100], b[25], on_host, wrong;

#define SAY_TARGET(kind, device, line) printf("target %d %d %s %d\n", kind, device, __func__, line)
#define SAY_OP(kind, bytes, address, line)                                                                             \
    printf("op %d %zu %lx %s %d\n", kind, (size_t)(bytes), (unsigned long)(address), __func__, line)
#define SAY_SUBMIT(teams) printf("submit %d\n", teams)
#define SAY_END() printf("end\n")

#define CONSTRUCT static __attribute__((noinline)) void

CONSTRUCT expect(int is, int should) { wrong += is != should; }

CONSTRUCT simple(void) {
    int host[1] = {1};
    const int line = __LINE__; _Pragma("omp target map(tofrom : a) map(from : host)")
    {
        host[0] = omp_is_initial_device();
        for (int i = 0; i < 100; i++)
            a[i] = 2 * i;
    }
    SAY_TARGET(TARGET, 0, line);
    SAY_OP(ALLOC, sizeof host, host, line);
    SAY_OP(ALLOC, sizeof a, a, line);
    SAY_OP(TO, sizeof a, a, line);
    SAY_SUBMIT(1);
    SAY_OP(FROM, sizeof a, a, line);
    SAY_OP(FROM, sizeof host, host, line);
    SAY_OP(DELETE, 0, NULL, line);
    SAY_OP(DELETE, 0, NULL, line);
    SAY_END();
    on_host += host[0];
    expect(a[99], 198);
}

CONSTRUCT within_data(void) {
    const int line = __LINE__; _Pragma("omp target map(to : a) map(from : b) device(2)")
    b[0] = a[50] + 1;
    SAY_TARGET(TARGET, 2, line);
    SAY_OP(ALLOC, sizeof b, b, line);
    SAY_SUBMIT(1);
    SAY_OP(FROM, sizeof b, b, line);
    SAY_OP(DELETE, 0, NULL, line);
    SAY_END();
    expect(b[0], 101);
}

CONSTRUCT data(void) {
    int last;
    const int line = __LINE__; _Pragma("omp target data map(to : a) device(2)")
    {
        SAY_TARGET(ENTER, 2, line);
        SAY_OP(ALLOC, sizeof a, a, line);
        SAY_OP(TO, sizeof a, a, line);
        SAY_END();
        within_data();
        last = __LINE__;
    }
    SAY_TARGET(EXIT, 2, last);
    SAY_OP(DELETE, 0, NULL, last);
    SAY_END();
}

CONSTRUCT enter(int device) {
    const int line = __LINE__ + 1;
#pragma omp target enter data map(alloc : a) device(device)
    SAY_TARGET(ENTER, device, line);
    SAY_OP(ALLOC, sizeof a, a, line);
    SAY_END();
}

CONSTRUCT update(int device) {
    const int to = __LINE__ + 2, from = to + 2;
    a[9] = 77;
#pragma omp target update to(a[0 : 10]) device(device)
    a[9] = 0;
#pragma omp target update from(a) device(device)
    SAY_TARGET(UPDATE, device, to);
    SAY_OP(TO, 10 * sizeof a[0], a, to);
    SAY_END();
    SAY_TARGET(UPDATE, device, from);
    SAY_OP(FROM, sizeof a, a, from);
    SAY_END();
    expect(a[9], 77);
}

CONSTRUCT teams(int device) {
    const int line = __LINE__ + 1;
#pragma omp target teams num_teams(2) thread_limit(1) device(device)
    a[omp_get_team_num()] = 1;
    SAY_TARGET(TARGET, device, line);
    SAY_SUBMIT(2);
    SAY_END();
}

CONSTRUCT leave(int device) {
    const int line = __LINE__ + 1;
#pragma omp target exit data map(release : a) device(device)
    SAY_TARGET(EXIT, device, line);
    SAY_OP(DELETE, 0, NULL, line);
    SAY_END();
}

CONSTRUCT copies(int device) {
    const int line = __LINE__ + 1, host = omp_get_initial_device();
    void *there = omp_target_alloc(64, device);
    expect(omp_target_memcpy(there, a, 64, 0, 0, device, host), 0);
    expect(omp_target_memcpy(b, there, 32, 0, 0, host, device), 0);
    omp_target_free(there, device);
    SAY_OP(ALLOC, 64, NULL, line);
    SAY_OP(TO, 64, a, line + 1);
    SAY_OP(FROM, 32, b, line + 2);
    SAY_OP(DELETE, 0, NULL, line + 3);
    expect(b[7], a[7]);
}

CONSTRUCT not_waited_for(void) {
    const int before = a[3], line = __LINE__ + 1;
    _Pragma("omp target nowait map(tofrom : a)") a[3]++;
#pragma omp taskwait
    printf("nowait %s %d %zu\n", __func__, line, sizeof a);
    expect(a[3], before + 1);
}

CONSTRUCT both(void) {
    const int line = __LINE__ + 5;
    int sums[2] = {0};
#pragma omp parallel num_threads(2)
    {
        int mine[30] = {0}, me = omp_get_thread_num();
#pragma omp target map(tofrom : mine) device(me)
        mine[29] = 5;
        sums[me] = mine[29];
    }
    printf("both %s %d %zu\n", __func__, line, 30 * sizeof(int));
    expect(sums[0] + sums[1], 10);
}

int main(void) {
    simple();
    data();
    enter(1);
    update(1);
    teams(1);
    leave(1);
    copies(3);
    not_waited_for();
    both();
    printf("devices %d\nhost %d\nwrong %d\nready\n", omp_get_num_devices(), on_host, wrong);
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    printf("done\n");
    return 0;
}
