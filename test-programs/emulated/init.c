/* The first and only process of an emulated machine: starts every program of
 * /programs at once, waits until they hang, has the kernel write a core file
 * of each (SIGQUIT), and sends what they wrote and their cores through the
 * serial port.
 *
 * What it sends of a file: a line "FILE <name> <bytes>", then pages, each
 * behind one byte that tells whether it has anything but zeros (1) or is left
 * out (0); the last one may be shorter. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_PROGRAMS = 256, SETTLE_SECONDS = 12 };

static int serial;

static void put(const char *file, const char *text) {
    int to = open(file, O_WRONLY);
    if (to < 0 || write(to, text, strlen(text)) < 0)
        perror(file);
    close(to);
}

static char waiting[16 * PAGE];
static size_t waiting_size;

static void flush(void) {
    for (size_t at = 0; at < waiting_size;) {
        ssize_t sent = write(serial, waiting + at, waiting_size - at);
        if (sent > 0)
            at += (size_t)sent;
    }
    waiting_size = 0;
}

static void send_bytes(const void *bytes, size_t size) {
    if (waiting_size + size > sizeof waiting)
        flush();
    memcpy(waiting + waiting_size, bytes, size);
    waiting_size += size;
}

/* Text that is never given back: there is little of it. */
static char *text(const char *format, ...) {
    char *made = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&made, format, values) < 0)
        abort();
    va_end(values);
    return made;
}

static void send_file(const char *name, const char *path) {
    static char page[PAGE], zeros[PAGE];
    struct stat file = {.st_size = 0};
    int from = open(path, O_RDONLY);
    if (from >= 0)
        fstat(from, &file);
    const char *line = text("\nFILE %s %lld\n", name, (long long)file.st_size);
    send_bytes(line, strlen(line));
    for (off_t left = file.st_size; left > 0;) {
        size_t size = left < PAGE ? (size_t)left : PAGE;
        if (read(from, page, size) != (ssize_t)size)
            memset(page, 0, sizeof page);
        char used = memcmp(page, zeros, size) != 0;
        send_bytes(&used, 1);
        if (used)
            send_bytes(page, size);
        left -= (off_t)size;
    }
    close(from);
}

/* Starts a program that reads from INPUT. */
static pid_t start(const char *name, int input) {
    pid_t child = fork();
    if (child != 0)
        return child;
    const char *path = text("/programs/%s", name);
    int to = open(text("/tmp/%s.truth", name), O_CREAT | O_WRONLY, 0644);
    dup2(input, 0);
    dup2(to, 1);
    dup2(to, 2);
    setenv("LD_LIBRARY_PATH", "/lib", 1);
    setenv("OMP_NUM_THREADS", "4", 1);
    setenv("OMP_DYNAMIC", "false", 1);
    /* Less to send. */
    setenv("OMP_STACKSIZE", "256k", 1);
    /* Some programs are to be met spinning, and told for what; the others asleep. */
    const char *how = strstr(name, "-spinning-");
    setenv("GOMP_SPINCOUNT", how != NULL ? "infinity" : "0", 1);
    if (how != NULL) {
        setenv("OMP_WAIT_POLICY", "active", 1);
        setenv("OMPD_TRUTH_SPINS", "1", 1);
        setenv("SPIN", how + strlen("-spinning-"), 1);
    }
    execl(path, path, (char *)NULL);
    _exit(127);
}

int main(void) {
    static const char *names[MOST_PROGRAMS];
    static pid_t children[MOST_PROGRAMS];
    int count = 0, input[2];
    mkdir("/proc", 0755);
    mkdir("/dev", 0755);
    mkdir("/tmp", 0777);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
    serial = open("/dev/ttyAMA0", O_RDWR | O_NOCTTY);
    struct termios raw;
    tcgetattr(serial, &raw);
    cfmakeraw(&raw);
    tcsetattr(serial, TCSANOW, &raw);
    put("/proc/sys/kernel/printk", "1");
    put("/proc/sys/kernel/core_pattern", "/tmp/core.%p");
    struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &any);

    /* Nobody ever writes to it: who reads from it sleeps. */
    if (pipe(input) != 0)
        return 1;
    DIR *programs = opendir("/programs");
    for (struct dirent *entry; programs != NULL && (entry = readdir(programs)) != NULL;) {
        if (entry->d_name[0] == '.' || count == MOST_PROGRAMS)
            continue;
        names[count] = text("%s", entry->d_name);
        children[count] = start(names[count], input[0]);
        count++;
    }
    sleep(SETTLE_SECONDS);
    /* First all of them: programs that hang end by themselves after a while. */
    for (int n = 0; n < count; n++) {
        kill(children[n], SIGQUIT);
        waitpid(children[n], NULL, 0);
    }
    for (int n = 0; n < count; n++) {
        send_file(text("%s.truth", names[n]), text("/tmp/%s.truth", names[n]));
        const char *path = text("/tmp/core.%d", (int)children[n]);
        send_file(text("%s.core", names[n]), path);
        unlink(path);
    }
    send_bytes("\nEND\n", 5);
    flush();
    tcdrain(serial);
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}
