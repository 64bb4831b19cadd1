/* A process that knows the truth about itself and says it on stdout.
 *
 * subject threads N   N threads wait on a futex that never changes. Answers requests.
 * subject churn       threads start and end all the time. Answers requests.
 * subject early-exit  as "threads 2", but the main thread has ended. Answers nothing.
 * subject stuck       a thread sleeps uninterruptibly until its vforked child is killed. Answers requests.
 * subject supplied    a thread supplies the page of the word when it is first read; at 0 if the kernel does not allow
 *                     that. Answers requests.
 *
 * With the variable CHANGED it changes that and removes REMOVED, before all else.
 *
 * Requests, one byte each on stdin: 'p' waits for progress of a worker, then answers "progress N";
 * 's' answers "signals N"; 'a' aborts; end of input ends the process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

unsigned char known[3 * 4096 + 7];
const char constant[] = "never written, so only the file has it in a core";
__thread long local_mark;
static int word;
static volatile long progress;
static volatile int signals;
static volatile int alive;
static volatile int started;
static volatile int said_stuck;

static void count(int sig) { (void)sig; __sync_fetch_and_add(&signals, 1); }

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0) _exit(1);
}

static void *waiter(void *arg) {
    char line[160];
    local_mark = 0x1234567800000000 + (long)arg;
    prctl(PR_SET_NAME, "waiter", 0, 0, 0);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    snprintf(line, sizeof line, "thread %d %lx %p %ld\n", (int)syscall(SYS_gettid), (long)pthread_self(),
             (void *)&local_mark, local_mark);
    say(line);
    __sync_fetch_and_add(&started, 1);
    for (;;) syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void *worker(void *arg) {
    (void)arg;
    for (;;) progress++;
}

/* Still there, and visibly not stopped, when whoever started it has long been stopped. */
static void *brief(void *arg) {
    usleep(20000);
    __sync_fetch_and_sub(&alive, 1);
    return arg;
}

static void *churner(void *arg) {
    pthread_t t;
    for (;;) {
        if (__sync_fetch_and_add(&alive, 1) < 40 && !pthread_create(&t, NULL, brief, arg)) {
            pthread_detach(t);
            progress++;
        } else {
            __sync_fetch_and_sub(&alive, 1);
            sched_yield();
        }
    }
}

/* The parent of vfork sleeps in the kernel, killable but not interruptible, until the child execs or ends. */
static void *vforker(void *arg) {
    static char line[64];
    int tid = (int)syscall(SYS_gettid);
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        snprintf(line, sizeof line, "stuck %d %d\n", tid, (int)getpid());
        say(line);
        said_stuck = 1; /* In the parent's memory: vfork shares it. */
        for (;;) pause();
    }
    say("unstuck\n");
    return arg;
}

static void *supplier(void *arg) {
    static char page[4096] __attribute__((aligned(4096))) = "supplied";
    int faults = *(int *)arg;
    struct uffd_msg fault;
    while (read(faults, &fault, sizeof fault) == sizeof fault) {
        unsigned long at = fault.arg.pagefault.address & -(unsigned long)sizeof page;
        struct uffdio_copy copy = {.dst = at, .src = (unsigned long)page, .len = sizeof page};
        if (ioctl(faults, UFFDIO_COPY, &copy)) abort();
    }
    return arg;
}

/* A page that is not there before it is read; NULL if the kernel does not allow it. */
static void *supplied(void) {
    static int faults;
    pthread_t t;
    struct uffdio_api api = {.api = UFFD_API};
    faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api)) return NULL;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register area = {.range = {(unsigned long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (page == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &area)) abort();
    pthread_create(&t, NULL, supplier, &faults);
    return page;
}

static void *ender(void *arg) {
    char line[64];
    pthread_join(*(pthread_t *)arg, NULL);
    snprintf(line, sizeof line, "main ended\n");
    say(line);
    for (;;) pause();
}

/* All waiters are asleep in the kernel when the states in procfs say so. */
static int asleep(void) {
    int n = 0, tid;
    char path[64], text[512], *state;
    char list[64];
    snprintf(list, sizeof list, "ls /proc/%d/task", (int)getpid());
    FILE *dir = popen(list, "r");
    while (dir && fscanf(dir, "%d", &tid) == 1) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
        FILE *f = fopen(path, "r");
        if (!f) continue;
        if (fgets(text, sizeof text, f) && strstr(text, "(waiter)") && (state = strrchr(text, ')')) && state[2] == 'S') n++;
        fclose(f);
    }
    if (dir) pclose(dir);
    return n;
}

int main(int argc, char **argv) {
    char line[256], request;
    pthread_t t;
    static pthread_t self;
    if (argc < 2) return 2;
    if (getenv("CHANGED")) {
        if (setenv("CHANGED", "later", 1) || unsetenv("REMOVED")) abort();
    }
    for (size_t i = 0; i < sizeof known; i++) known[i] = (unsigned char)(i * 7 + 3);
    signal(SIGUSR1, count);
    signal(SIGRTMIN + 3, count);
    snprintf(line, sizeof line, "known %p %zu\nconstant %p\nword %p\nmain %p\n", (void *)known, sizeof known,
             (void *)constant, (void *)&word, (void *)main);
    say(line);
    int waiters = argc > 2 ? atoi(argv[2]) : 0;
    for (long i = 0; i < waiters; i++)
        if (pthread_create(&t, NULL, waiter, (void *)i)) abort();
    while (started < waiters || asleep() < waiters) ;
    if (!strcmp(argv[1], "early-exit")) {
        self = pthread_self();
        pthread_create(&t, NULL, ender, &self);
        pthread_exit(NULL);
    }
    pthread_create(&t, NULL, !strcmp(argv[1], "churn") ? churner : worker, NULL);
    if (!strcmp(argv[1], "churn")) for (int i = 0; i < 2; i++) pthread_create(&t, NULL, churner, NULL);
    if (!strcmp(argv[1], "stuck")) {
        pthread_create(&t, NULL, vforker, NULL);
        while (!said_stuck) usleep(0);
    }
    if (!strcmp(argv[1], "supplied")) {
        snprintf(line, sizeof line, "word 0x%lx\n", (unsigned long)supplied());
        say(line);
    }
    say("ready\n");
    while (read(0, &request, 1) == 1) {
        long before = progress;
        switch (request) {
        case 'p':
            while (progress < before + 20) usleep(0);
            snprintf(line, sizeof line, "progress %ld\n", progress);
            break;
        case 'w':
            while (asleep() < waiters) ;
            snprintf(line, sizeof line, "waiting %d\n", waiters);
            break;
        case 's':
            snprintf(line, sizeof line, "signals %d\n", signals);
            break;
        default:
            abort();
        }
        say(line);
    }
    return 0;
}
