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

static void send_bytes(const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t sent = write(serial, at, size);
        if (sent > 0) {
            at += sent;
            size -= (size_t)sent;
        }
    }
}

static void send_file(const char *name, const char *path) {
    static char page[PAGE], zeros[PAGE];
    char line[512];
    struct stat file = {.st_size = 0};
    int from = open(path, O_RDONLY);
    if (from >= 0)
        fstat(from, &file);
    snprintf(line, sizeof line, "\nFILE %s %lld\n", name, (long long)file.st_size);
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

static pid_t start(const char *name, int input) {
    pid_t child = fork();
    if (child != 0)
        return child;
    char path[512], output[512];
    snprintf(path, sizeof path, "/programs/%s", name);
    snprintf(output, sizeof output, "/tmp/%s.truth", name);
    int to = open(output, O_CREAT | O_WRONLY, 0644);
    dup2(input, 0);
    dup2(to, 1);
    dup2(to, 2);
    setenv("LD_LIBRARY_PATH", "/lib", 1);
    setenv("OMP_NUM_THREADS", "4", 1);
    setenv("OMP_DYNAMIC", "false", 1);
    /* Some programs are to be met spinning, the others asleep. */
    if (strstr(name, "-spinning") != NULL)
        setenv("OMP_WAIT_POLICY", "active", 1), setenv("OMPD_TRUTH_SPINS", "1", 1);
    else
        setenv("GOMP_SPINCOUNT", "0", 1);
    execl(path, path, (char *)NULL);
    _exit(127);
}

int main(void) {
    static char names[MOST_PROGRAMS][256];
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
        snprintf(names[count], sizeof names[count], "%s", entry->d_name);
        children[count] = start(names[count], input[0]);
        count++;
    }
    sleep(SETTLE_SECONDS);
    for (int n = 0; n < count; n++) {
        char path[512], name[512];
        kill(children[n], SIGQUIT);
        waitpid(children[n], NULL, 0);
        snprintf(name, sizeof name, "%s.truth", names[n]);
        snprintf(path, sizeof path, "/tmp/%s", name);
        send_file(name, path);
        snprintf(name, sizeof name, "%s.core", names[n]);
        snprintf(path, sizeof path, "/tmp/core.%d", (int)children[n]);
        send_file(name, path);
        unlink(path);
    }
    send_bytes("\nEND\n", 5);
    tcdrain(serial);
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}
