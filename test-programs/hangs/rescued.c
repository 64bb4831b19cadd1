/* All threads wait, and something that is no thread of the process can let them
 * go on.  Then the program says that it has done a round.
 *   (nothing)  the handler of SIGUSR1 unsets the lock that two wait for
 *   -DNEST     a nestable lock
 *   -DEVENT    it fulfils the event of a detached task
 *   -DSHARED   another process, which has the memory of the lock as well, unsets
 *              it when it reads a byte; that reaches threads that do not sleep
 *   -DCLONED   another process, which has all memory, unsets it when it reads a byte
 *   -DRINGED   requests of io_uring unset it when a byte comes (Linux 6.7) */
#include "lock_kind.h"

/* No more than there are processors: others sleep, whatever they are told. */
#ifdef SHARED
enum { THREADS = 2 };
#else
enum { THREADS = 3 };
#endif

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static void tell_round(void) {
    fprintf(truth_out(), "{\"round\":1}\n");
    if (fflush(truth_out()) != 0)
        truth_fail("the round could not be told");
}

static atomic_int held;

#ifdef EVENT
static omp_event_handle_t event;
static atomic_int ran;

static void rescue(int number) {
    (void)number;
    omp_fulfill_event(event);
}

TRUTH_MARKER void detached_body(void) {
    atomic_store(&ran, 1);
    TRUTH_KEEP_FRAME();
}

static void make_task(void) {
    omp_event_handle_t own = (omp_event_handle_t)0;
#pragma omp task detach(own)
    {
        detached_body();
        TRUTH_KEEP_FRAME();
    }
    event = own;
    truth_note_object("event", "event", (uintptr_t)own);
    truth_note_task("detached_body", (uintptr_t)detached_body, "detached", 0);
    atomic_store(&held, 1);
    truth_wait_for(&ran);
}

TRUTH_MARKER void first_body(void) {
    make_task();
    truth_note("first", TRUTH_TASKWAIT, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("rescued", THREADS);
#pragma omp taskwait
    tell_round();
}

TRUTH_MARKER void other_body(void) {
    /* a barrier need not wake up for a task that comes later */
    truth_wait_for(&held);
    truth_note("other", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, other_body));
}
#else
static some_lock *gate;

#ifndef RINGED
static void rescue(int number) {
    (void)number;
    lock_unset(gate);
}
#endif

TRUTH_MARKER void first_body(void) {
    lock_set(gate);
    truth_note_lock("gate", LOCK_KIND, gate, 1);
    atomic_store(&held, 1);
    truth_note("first", TRUTH_BARRIER, NULL, TRUTH_BODY(TRUTH_IMPLICIT, first_body));
    truth_hang("rescued", THREADS);
}

TRUTH_MARKER void other_body(void) {
    truth_wait_for(&held);
    truth_note("other", LOCK_WAIT, gate, TRUTH_BODY(TRUTH_IMPLICIT, other_body));
    /* libomp's threads must not unset a lock while they wait for it */
    sigset_t rescued;
    sigemptyset(&rescued);
    sigaddset(&rescued, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &rescued, NULL) != 0)
        truth_fail("pthread_sigmask");
    lock_set(gate);
    tell_round();
    lock_unset(gate);
}
#endif

#if defined SHARED || defined CLONED
/* It ends with this one. */
static int other_process(void *unused) {
    char byte;
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(0, &byte, 1) == 1)
        rescue(0);
    _exit(0);
}

static void prepare(void) {
#ifdef SHARED
    pid_t child = fork();
    if (child == 0)
        other_process(NULL);
#else
    static _Alignas(16) char stack[1 << 16];
    pid_t child = clone(other_process, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
#endif
    if (child < 0)
        truth_fail("another process");
}
#elif defined RINGED
#include <linux/io_uring.h>
#include <sys/syscall.h>

/* What is read of standard input is dropped.  Then the word of the lock is set to
 * zero, and who sleeps on it is woken. */
static void prepare(void) {
    enum { ENTRIES = 4, FUTEX_WAKE_REQUEST = 52, PRIVATE_32_BITS = 2 | 128 };
    static char dropped;
    struct io_uring_params parameters = {0};
    int ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &parameters);
    int zero = open("/dev/zero", O_RDONLY);
    if (ring < 0 || zero < 0)
        truth_fail("io_uring");
    size_t size = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    size_t entry_size = sizeof(struct io_uring_sqe);
    char *queue = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entries =
        mmap(NULL, ENTRIES * entry_size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || entries == MAP_FAILED)
        truth_fail("mmap");
    memset(entries, 0, ENTRIES * entry_size);
    entries[0] = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = 0, .addr = (uintptr_t)&dropped, .len = 1, .flags = IOSQE_IO_LINK};
    entries[1] = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = zero, .addr = (uintptr_t)gate, .len = 4, .flags = IOSQE_IO_LINK | IOSQE_ASYNC};
    entries[2] = (struct io_uring_sqe){.opcode = FUTEX_WAKE_REQUEST, .fd = PRIVATE_32_BITS, .addr = (uintptr_t)gate,
                                       .off = 1, .addr3 = 0xffffffff, .flags = IOSQE_ASYNC};
    for (unsigned at = 0; at < 3; at++)
        ((unsigned *)(queue + parameters.sq_off.array))[at] = at;
    __atomic_store_n((unsigned *)(queue + parameters.sq_off.tail), 3, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 3, 0, 0, NULL, 0) != 3)
        truth_fail("io_uring_enter");
}
#else
static void prepare(void) {
    struct sigaction action = {.sa_handler = rescue, .sa_flags = SA_RESTART};
    if (sigaction(SIGUSR1, &action, NULL) != 0)
        truth_fail("sigaction");
}
#endif

int main(void) {
    truth_init_for(TRUTH_HANG_SECONDS);
#ifdef EVENT
    truth_barriers_spin = 1;
    truth_expect(.verdict = "suspect", .situation = "unfulfilled_event", .threads = "first", .objects = "event",
                 .tasks = "detached_body");
#else
    truth_expect(.verdict = "suspect", .situation = "lock_cycle", .also = "missing_member",
                 .without_owners = "closed_waits", .threads = "first,other", .missing = "other", .objects = "gate");
#ifdef SHARED
    gate = mmap(NULL, sizeof *gate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gate == MAP_FAILED)
        truth_fail("mmap");
#else
    static some_lock own;
    gate = &own;
#endif
    lock_init(gate);
#endif
    prepare();
#pragma omp parallel num_threads(THREADS)
    {
        if (omp_get_thread_num() == 1)
            first_body();
        else
            other_body();
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
