/* Plays a runtime with the OMPT of OpenMP Technical Report 2: starts the tool
 * that a preloaded library has, and tells it of every event once.
 *
 * Event N has region 1000 + N, task 2000 + N, for a second task 2100 + N, and
 * wait id 3000 + N.  Prints `ready` and waits for a byte on standard input, three
 * times:
 *
 *   1. after all events of the first thread but control and shutdown,
 *   2. after a pause (control 2) and a flush event in it,
 *   3. after a start (control 1), a second thread, and the shutdown.
 *
 * The argument is the version that the tool is told; it then says `no tool` if
 * that does not want it.  With a second one the tool is started by `ompt_tool`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 61, INITIAL = 1, WORKER = 2, REQUESTED = 7 };

typedef void (*callback_t)(void);
typedef callback_t (*lookup_t)(const char *);
typedef int (*initialize_t)(lookup_t, const char *, unsigned);
typedef void (*start_t)(lookup_t, const char *, unsigned);

static callback_t callbacks[EVENTS + 1];

/* Most are told always; some answer otherwise, as some runtimes would. */
static int set_callback(int event, callback_t callback) {
    if (event < 1 || event > EVENTS)
        return 0;
    callbacks[event] = callback;
    switch (event) {
    case 9:
    case 10: /* idle: not at this time */
        return 1;
    case 37:
    case 38: /* master: there is none */
        return 2;
    case 61: /* flush: when convenient */
    case 50: /* waiting for ordered: unlike the others of its kind */
        return 3;
    default:
        return 4;
    }
}

static int get_callback(int event, callback_t *callback) {
    if (event < 1 || event > EVENTS || !callbacks[event])
        return 0;
    *callback = callbacks[event];
    return 1;
}

static callback_t lookup(const char *name) {
    if (strcmp(name, "ompt_set_callback") == 0)
        return (callback_t)set_callback;
    if (strcmp(name, "ompt_get_callback") == 0)
        return (callback_t)get_callback;
    return NULL;
}

static void thread(int event, int type, uint64_t id) { ((void (*)(int, uint64_t))callbacks[event])(type, id); }

static void pair(int event, uint64_t first, uint64_t second) {
    ((void (*)(uint64_t, uint64_t))callbacks[event])(first, second);
}

static void one(int event, uint64_t what) { ((void (*)(uint64_t))callbacks[event])(what); }

static void tell(int event) {
    uint64_t region = 1000 + (uint64_t)event, task = 2000 + (uint64_t)event, other = 2100 + (uint64_t)event;
    void *frames[2] = {NULL, NULL};
    switch (event) {
    case 1:
        ((void (*)(uint64_t, void *, uint64_t, uint32_t, void *))callbacks[event])(task, frames, region, REQUESTED,
                                                                                   (void *)tell);
        break;
    case 3:
        ((void (*)(uint64_t, void *, uint64_t, void *))callbacks[event])(other, frames, task, (void *)tell);
        break;
    case 4:
    case 24:
    case 25:
        one(event, task);
        break;
    case 26:
        pair(event, task, other);
        break;
    case 27:
    case 29:
    case 31:
    case 35:
        ((void (*)(uint64_t, uint64_t, void *))callbacks[event])(region, task, (void *)tell);
        break;
    case 9:
    case 10:
    case 61:
        one(event, 1);
        break;
    default:
        if ((event >= 17 && event <= 21) || event >= 45)
            one(event, 3000 + (uint64_t)event);
        else
            pair(event, region, task);
    }
}

static void hold(void) {
    char byte;
    printf("ready\n");
    fflush(stdout);
    if (read(0, &byte, 1) != 1)
        exit(1);
}

static void *worker(void *unused) {
    thread(5, WORKER, 2);
    pair(22, 1022, 2022);
    thread(6, WORKER, 2);
    return unused;
}

int main(int argc, char **argv) {
    initialize_t initialize = (initialize_t)dlsym(RTLD_DEFAULT, "ompt_initialize");
    start_t (*tool)(void) = (start_t(*)(void))dlsym(RTLD_DEFAULT, "ompt_tool");
    pthread_t second;
    if (argc < 2) {
        fprintf(stderr, "usage: tr2_runtime VERSION [tool]\n");
        return 1;
    }
    const char *name = "an old runtime";
    unsigned version = (unsigned)atoi(argv[1]);
    int started = 0;
    if (argc > 2 && tool) {
        tool()(lookup, name, version);
        started = callbacks[1] != NULL;
    } else if (argc == 2 && initialize)
        started = initialize(lookup, name, version);
    if (!started) {
        printf("no tool\n");
        return 0;
    }
    for (int event = 1; event <= EVENTS; event++)
        if (!callbacks[event]) {
            fprintf(stderr, "event %d has no callback\n", event);
            return 1;
        }
    thread(5, INITIAL, 1);
    for (int event = 1; event <= EVENTS; event++)
        if (event < 5 || event > 8)
            tell(event);
    hold();
    pair(7, 2, 9);
    tell(61);
    hold();
    pair(7, 1, 0);
    if (pthread_create(&second, NULL, worker, NULL) != 0 || pthread_join(second, NULL) != 0)
        return 1;
    callbacks[8]();
    hold();
    return 0;
}
