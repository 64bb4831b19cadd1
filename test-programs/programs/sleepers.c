/* Members that sleep in system calls which a stop ends early, with EINTR, though no signal is handled (signal(7)).  Each that
 * got what it waited for and nothing else is counted: a look at the process must not change what it does. */
#include "truth.h"

#include <linux/io_uring.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { IN_EPOLL = 1, IN_SIGWAIT, IN_SEMOP, IN_RECV, IN_URING, MEMBERS };

static int event, poll_set, semaphores, sockets[2], ring = -1;
static unsigned *ring_tail, *ring_array;
static struct io_uring_sqe *ring_entries;
static _Atomic pid_t lwps[MEMBERS];

static const int calls[MEMBERS] = {
    [IN_EPOLL] = SYS_epoll_wait, [IN_SIGWAIT] = SYS_rt_sigtimedwait, [IN_SEMOP] = SYS_semtimedop,
    [IN_RECV] = SYS_recvfrom,    [IN_URING] = SYS_io_uring_enter,
};

static void prepare(void) {
    struct timeval hour = {3600, 0};
    struct epoll_event wanted = {.events = EPOLLIN};
    event = eventfd(0, 0);
    poll_set = epoll_create1(0);
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (event < 0 || poll_set < 0 || epoll_ctl(poll_set, EPOLL_CTL_ADD, event, &wanted) != 0 || semaphores < 0)
        truth_fail("epoll and semget");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0 ||
        setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof hour) != 0)
        truth_fail("socketpair");
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &awaited, NULL);
    struct io_uring_params p = {0};
    ring = (int)syscall(SYS_io_uring_setup, 4, &p);
    if (ring < 0)
        return; /* kernels may forbid it: that member waits for the event as well */
    int both = PROT_READ | PROT_WRITE;
    char *queue = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned), both, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    ring_entries = mmap(NULL, p.sq_entries * sizeof *ring_entries, both, MAP_SHARED, ring, IORING_OFF_SQES);
    if (queue == MAP_FAILED || ring_entries == MAP_FAILED)
        truth_fail("mapping the ring");
    ring_tail = (unsigned *)(queue + p.sq_off.tail);
    ring_array = (unsigned *)(queue + p.sq_off.array);
}

/* Lets all of them go on. */
static void wake(void) {
    uint64_t one = 1;
    struct sembuf raise_one = {0, 1, 0};
    if (write(event, &one, sizeof one) != sizeof one || syscall(SYS_tgkill, getpid(), lwps[IN_SIGWAIT], SIGUSR1) != 0 ||
        semop(semaphores, &raise_one, 1) != 0 || send(sockets[1], "x", 1, 0) != 1)
        truth_fail("waking the others");
    if (ring < 0)
        return;
    ring_entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_NOP};
    ring_array[0] = 0;
    __atomic_store_n(ring_tail, *ring_tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) != 1)
        truth_fail("io_uring_enter");
}

/* What the member got is what it waited for. */
static int sleep_in(int member) {
    struct epoll_event happened;
    struct timespec hour = {3600, 0};
    struct sembuf lower_one = {0, -1, 0};
    sigset_t awaited;
    char byte;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    switch (member) {
    case IN_SIGWAIT:
        return sigtimedwait(&awaited, NULL, &hour) == SIGUSR1;
    case IN_SEMOP:
        return semop(semaphores, &lower_one, 1) == 0;
    case IN_RECV:
        return recv(sockets[0], &byte, 1, 0) == 1;
    case IN_URING:
        if (ring >= 0)
            return syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0;
        /* fall through */
    default:
        return epoll_wait(poll_set, &happened, 1, -1) == 1;
    }
}

static void await_sleepers(void) {
    for (int member = 1; member < MEMBERS; member++) {
        char text[256];
        int call = member == IN_URING && ring < 0 ? calls[IN_EPOLL] : calls[member];
        do
            sched_yield();
        while (lwps[member] == 0 || !truth_read_task_file(lwps[member], "syscall", text, sizeof text) || atoi(text) != call);
    }
}

TRUTH_MARKER void coordinating_body(void) {
    await_sleepers();
    truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinating_body));
    truth_ready("sleepers", 1);
    truth_step();
    wake();
}

TRUTH_MARKER void sleeping_body(void) {
    int member = omp_get_thread_num();
    atomic_store(&lwps[member], (pid_t)syscall(SYS_gettid));
    if (sleep_in(member))
        truth_step();
}

int main(void) {
    truth_init();
    prepare();
#pragma omp parallel num_threads(MEMBERS)
    {
        if (omp_get_thread_num() == 0)
            coordinating_body();
        else
            sleeping_body();
        TRUTH_KEEP_FRAME();
    }
    semctl(semaphores, 0, IPC_RMID);
    truth_done();
    return 0;
}
