/* A DEVICE SIMULATOR: no device and no OpenMP runtime, but a program that plays
 * both to an OMPT tool, as OpenMP 5.2 (19.2.5, 19.6.2) and 6.0 ask it of them,
 * and checks that the tool keeps its side.
 *
 *   device_simulator TOOL.so [MODE...]
 *
 * It starts the tool, begins a thread and introduces device 5.  Then it obeys
 * characters on standard input, and says {"did":"c","answer":n} for each:
 *
 *   w  offload: callbacks of the host, and a record of each kind on the device
 *   s p f e  what omp_control_tool does with 1, 2, 3, 4 (start, pause, flush, end)
 *   z  deliver a buffer with nothing in it, and nothing at all
 *   x  deliver a buffer that the tool never gave
 *   c  deliver all buffers at once, each on a thread of its own
 *   d  finalise the device (its tracing is stopped and flushed before)
 *   i  introduce it again
 *   m  introduce twelve more, without a look-up function
 *   k  fork; the child tells the state of the device in its copy of the block
 *   q  finalise the tool, and end
 *
 * Beside that it writes, one JSON object in a line: `record` for each record
 * that the device writes (members as in omp-tools.h), `call` for each call of an
 * entry point that commands, `asked` for each kind that is switched on, `error`
 * for each rule that the tool breaks.
 *
 * Modes: missing=NAME (an entry point the device has not), upstream (a look-up
 * function that knows none), no_lookup, by_kind (not all kinds at once),
 * refuse_start, native (records in a form of its own; native_by_flag: of one
 * flag only), backwards (later records
 * have earlier times), buffers=N and bytes=N (recommended limits), hoard (buffers
 * come back when flushed only), keep (buffers are delivered and kept until they
 * are full), stuck, circling, endless (cursors that never end), invalid, null,
 * unknown (records that are none), unaligned (records at odd addresses), draft
 * (it says that it is of OpenMP 4.5). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <omp-tools.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_records.h"

/* OpenMP 6.0; the header is older. */
typedef void (*ompt_get_buffer_limits_t)(ompt_device_t *, int *, size_t *);

enum { DEVICE = 5, KINDS = 37, MOST_BUFFERS = 64, PATTERN = 0xa5 };

/* What the tool takes for granted of the records. */
_Static_assert(sizeof(ompt_record_ompt_t) == 104 && offsetof(ompt_record_ompt_t, record) == 32, "record");
_Static_assert(sizeof(ompt_record_abstract_t) == 40, "abstract record");
_Static_assert(sizeof(ompt_record_target_data_op_t) == 72, "data operation");
_Static_assert(sizeof(ompt_record_target_kernel_t) == 24, "kernel");
_Static_assert(sizeof(ompt_record_target_map_t) == 56, "map");
_Static_assert(sizeof(ompt_record_dependences_t) == 32, "dependences");
_Static_assert(sizeof(ompt_record_implicit_task_t) == 40, "implicit task");

static const char *modes[32];
static int mode_count;

/* The rest of a mode that begins so; NULL without it. */
static const char *mode(const char *begin) {
    for (int n = 0; n < mode_count; n++)
        if (strncmp(modes[n], begin, strlen(begin)) == 0)
            return modes[n] + strlen(begin);
    return NULL;
}

static long mode_number(const char *begin, long otherwise) {
    const char *rest = mode(begin);
    return rest ? atol(rest) : otherwise;
}

static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&out);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    pthread_mutex_unlock(&out);
    va_end(arguments);
}

static void check(int holds, const char *rule) {
    if (!holds)
        say("{\"error\":\"%s\"}", rule);
}

/* ---- the device ------------------------------------------------------- */

/* A record as it lies in a buffer: how is nobody's business but the device's. */
struct written {
    uint64_t host_op_id;
    int form, type_is_odd;
    union {
        ompt_record_ompt_t ompt;
        struct {
            uint64_t own[2];
            ompt_record_abstract_t abstract;
        } native;
    } of;
};

struct buffer {
    unsigned char *at;
    size_t size, used, delivered;
    unsigned char *shadow; /* what has to be there */
};

static int the_device; /* its address is the handle */
static int alive, tracing, paused, ran_dry;
static unsigned char enabled[KINDS + 1], native_enabled;
static ompt_callback_buffer_request_t request;
static ompt_callback_buffer_complete_t complete;
static struct buffer buffers[MOST_BUFFERS];
static int buffer_count; /* those that the device has; the last one is written to */
static _Thread_local const struct buffer *delivering;

static void check_handle(const ompt_device_t *device) {
    check(device == &the_device, "another handle than that of the device");
    check(alive, "a call after the device was finalised");
}

static void get_buffer(void) {
    ompt_buffer_t *at = &the_device;
    size_t bytes = 77;
    request(DEVICE, &at, &bytes);
    if (bytes == 0) {
        ran_dry = 1;
        say("{\"refused\":true}");
        return;
    }
    check(at && at != &the_device && (uintptr_t)at % 8 == 0, "a buffer that is none");
    for (int n = 0; n < buffer_count; n++)
        check((unsigned char *)at + bytes <= buffers[n].at || (unsigned char *)at >= buffers[n].at + buffers[n].size,
              "a buffer that the device has already");
    if (buffer_count == MOST_BUFFERS) {
        check(0, "more buffers than anybody wants");
        exit(3);
    }
    struct buffer *buffer = &buffers[buffer_count++];
    *buffer = (struct buffer){.at = at, .size = bytes, .shadow = malloc(bytes)};
    memset(buffer->at, PATTERN, bytes);
    memset(buffer->shadow, PATTERN, bytes);
}

/* Cursors are places in a buffer, made unlike addresses and unlike small numbers. */
static ompt_buffer_cursor_t cursor_of(size_t at) { return (ompt_buffer_cursor_t)at ^ 0x5a5a000000000000u; }
static size_t place_of(ompt_buffer_cursor_t cursor) { return (size_t)(cursor ^ 0x5a5a000000000000u); }

/* Delivers what is new in a buffer, perhaps nothing; `owned` gives it back. */
static void deliver(int which, int owned) {
    struct buffer buffer = buffers[which];
    check(memcmp(buffer.at, buffer.shadow, buffer.size) == 0, "a buffer of the device was written to");
    delivering = &buffer;
    size_t bytes = buffer.used == buffer.delivered ? 0 : buffer.used;
    complete(DEVICE, buffer.at, bytes, cursor_of(buffer.delivered), owned);
    delivering = NULL;
    if (!owned) {
        check(memcmp(buffer.at, buffer.shadow, buffer.size) == 0, "a buffer of the device was written to at delivery");
        buffers[which].delivered = buffer.used;
        return;
    }
    free(buffer.shadow);
    memmove(&buffers[which], &buffers[which + 1], (size_t)(buffer_count - which - 1) * sizeof *buffers);
    buffer_count--;
}

static void deliver_all(int owned) {
    if (!owned)
        for (int n = 0; n < buffer_count; n++)
            deliver(n, 0);
    while (owned && buffer_count > 0)
        deliver(0, 1);
}

static pthread_barrier_t together;

static void *deliver_one(void *which) {
    struct buffer *buffer = which;
    pthread_barrier_wait(&together);
    delivering = buffer;
    complete(DEVICE, buffer->at, buffer->used, cursor_of(buffer->delivered), 1);
    free(buffer->shadow);
    return NULL;
}

/* Delivers all buffers at the same time, each on a thread of its own. */
static void deliver_together(void) {
    pthread_t threads[MOST_BUFFERS];
    pthread_barrier_init(&together, NULL, (unsigned)buffer_count);
    for (int n = 0; n < buffer_count; n++)
        if (pthread_create(&threads[n], NULL, deliver_one, &buffers[n]) != 0)
            exit(3);
    for (int n = 0; n < buffer_count; n++)
        pthread_join(threads[n], NULL);
    buffer_count = 0;
}

/* The device writes a record; says whether it is traced and there is room. */
static int put(const struct written *record) {
    if (!tracing || paused || ran_dry)
        return 0;
    if (record->form == ompt_record_ompt ? !enabled[record->of.ompt.type % (KINDS + 1)] : !native_enabled)
        return 0;
    if (buffer_count == 0)
        get_buffer();
    else if (buffers[buffer_count - 1].used + sizeof *record > buffers[buffer_count - 1].size) {
        if (!mode("hoard"))
            deliver(buffer_count - 1, 1);
        get_buffer();
    }
    if (ran_dry)
        return 0;
    struct buffer *buffer = &buffers[buffer_count - 1];
    memcpy(buffer->at + buffer->used, record, sizeof *record);
    memcpy(buffer->shadow + buffer->used, record, sizeof *record);
    buffer->used += sizeof *record;
    return 1;
}

/* ---- the thread of the device, which calls the tool's callbacks --------- */

static pthread_mutex_t jobs = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_changed = PTHREAD_COND_INITIALIZER;
static char job;
static void offload(void);

static void *device_thread(void *unused) {
    (void)unused;
    pthread_mutex_lock(&jobs);
    for (;;) {
        while (!job)
            pthread_cond_wait(&job_changed, &jobs);
        static unsigned char foreign[256];
        switch (job) {
        case 't':
            say("{\"device_thread\":%ld}", syscall(SYS_gettid));
            break;
        case 'w':
            offload();
            break;
        case 'f':
            deliver_all(!mode("keep"));
            break;
        case 'o':
            deliver_all(1);
            break;
        case 'c':
            if (buffer_count > 0)
                deliver_together();
            break;
        case 'z':
            if (!complete)
                break;
            if (buffer_count == 0)
                get_buffer();
            if (buffer_count > 0 && buffers[0].used == 0)
                deliver_all(1);
            complete(DEVICE, NULL, 0, 0, 1);
            break;
        case 'x':
            if (complete)
                complete(DEVICE, foreign, sizeof foreign, cursor_of(0), 1);
            break;
        default:
            pthread_mutex_unlock(&jobs);
            return NULL;
        }
        job = 0;
        pthread_cond_broadcast(&job_changed);
    }
}

/* Has the device's thread do something, and waits until it has. */
static void device_does(char what) {
    pthread_mutex_lock(&jobs);
    job = what;
    pthread_cond_broadcast(&job_changed);
    while (job && what != 'q')
        pthread_cond_wait(&job_changed, &jobs);
    pthread_mutex_unlock(&jobs);
}

/* ---- entry points of the device ------------------------------------- */

static int get_device_num_procs(ompt_device_t *device) {
    check_handle(device);
    return 96;
}

static ompt_device_time_t get_device_time(ompt_device_t *device) {
    check_handle(device);
    return device_time;
}

static double translate_time(ompt_device_t *device, ompt_device_time_t time) {
    check_handle(device);
    return 1000.0 + (double)time * 0x1p-20;
}

static ompt_set_result_t set_trace_ompt(ompt_device_t *device, unsigned enable, unsigned kind) {
    check_handle(device);
    check(kind <= KINDS, "there is no such kind of record");
    ompt_set_result_t answer = ompt_set_always;
    if (mode("by_kind")) {
        /* All there are, but not the callbacks 15 to 32 and the newer forms of target and target_map. */
        if (kind == 0)
            answer = ompt_set_never;
        else if (kind >= 15 && kind <= 32 && kind != ompt_callback_target_map)
            answer = ompt_set_error;
        else if (kind == ompt_callback_target_emi)
            answer = ompt_set_impossible;
        else if (kind == ompt_callback_target_map_emi)
            answer = ompt_set_never;
        else if (kind == ompt_callback_target_submit_emi)
            answer = ompt_set_sometimes;
    }
    say("{\"asked\":{\"kind\":%u,\"enable\":%u,\"answer\":%d}}", kind, enable, answer);
    for (unsigned n = 1; n <= KINDS; n++)
        if ((n == kind || kind == 0) && answer >= ompt_set_sometimes)
            enabled[n] = enable > 0;
    return answer;
}

static ompt_set_result_t set_trace_native(ompt_device_t *device, int enable, int flags) {
    check_handle(device);
    check((flags & ~0xff) == 0 && flags, "there is no such kind of native record");
    /* By one flag it has none, by all it has if it is to. */
    ompt_set_result_t answer = !mode("native")              ? ompt_set_never
                               : !mode("native_by_flag")    ? ompt_set_always
                               : flags == 0xff              ? ompt_set_error
                               : flags == ompt_native_driver ? ompt_set_sometimes
                                                            : ompt_set_never;
    say("{\"asked_native\":{\"flags\":%d,\"enable\":%d,\"answer\":%d}}", flags, enable, answer);
    if (answer >= ompt_set_sometimes)
        native_enabled = enable != 0;
    return answer;
}

static void get_buffer_limits(ompt_device_t *device, int *buffers_at_once, size_t *bytes) {
    check_handle(device);
    *buffers_at_once = (int)mode_number("buffers=", 4);
    *bytes = (size_t)mode_number("bytes=", 16384);
}

static int start_trace(ompt_device_t *device, ompt_callback_buffer_request_t own_request,
                       ompt_callback_buffer_complete_t own_complete) {
    check_handle(device);
    check(own_request && own_complete, "tracing without callbacks");
    check(!tracing, "tracing was started twice");
    int answer = !mode("refuse_start");
    request = own_request, complete = own_complete;
    tracing = answer, paused = ran_dry = 0;
    say("{\"call\":\"start_trace\"}");
    return answer;
}

static int pause_trace(ompt_device_t *device, int begin) {
    check_handle(device);
    check(tracing, "a pause of what was not started");
    paused = begin != 0;
    say("{\"call\":\"pause_trace %d\"}", begin != 0);
    return 1;
}

static int flush_trace(ompt_device_t *device) {
    check_handle(device);
    check(tracing, "a flush of what was not started");
    say("{\"call\":\"flush_trace\"}");
    device_does('f');
    return 1;
}

static int stop_trace(ompt_device_t *device) {
    check_handle(device);
    check(tracing, "a stop of what was not started");
    say("{\"call\":\"stop_trace\"}");
    device_does('o');
    tracing = paused = 0;
    return 1;
}

static const struct written *look(ompt_buffer_t *buffer, ompt_buffer_cursor_t cursor) {
    check(delivering && buffer == delivering->at, "a look into a buffer that is not being delivered");
    if (!delivering || buffer != delivering->at)
        return NULL;
    size_t at = place_of(cursor);
    if (mode("endless"))
        at = delivering->delivered;
    if (at >= delivering->used || (at - delivering->delivered) % sizeof(struct written) != 0)
        return NULL;
    return (const struct written *)(delivering->at + at);
}

static int advance_buffer_cursor(ompt_device_t *device, ompt_buffer_t *buffer, size_t size,
                                 ompt_buffer_cursor_t current, ompt_buffer_cursor_t *next) {
    check_handle(device);
    check(delivering && size == delivering->size, "another size than that of the buffer");
    if (!look(buffer, current))
        return 0;
    size_t at = place_of(current) + sizeof(struct written);
    if (mode("stuck"))
        at -= sizeof(struct written);
    else if (mode("circling") && at >= delivering->delivered + 5 * sizeof(struct written))
        at -= 3 * sizeof(struct written);
    else if (!mode("endless") && at >= delivering->used)
        return 0;
    *next = cursor_of(at);
    return 1;
}

static ompt_record_t get_record_type(ompt_buffer_t *buffer, ompt_buffer_cursor_t cursor) {
    const struct written *record = look(buffer, cursor);
    if (!record || (mode("invalid") && record->type_is_odd))
        return ompt_record_invalid;
    return (ompt_record_t)record->form;
}

/* Every other record is assembled elsewhere, where the next call destroys it. */
static ompt_record_ompt_t *get_record_ompt(ompt_buffer_t *buffer, ompt_buffer_cursor_t cursor) {
    static _Thread_local union {
        uint64_t align;
        unsigned char bytes[4 + sizeof(ompt_record_ompt_t)];
    } own;
    const struct written *record = look(buffer, cursor);
    memset(&own, 0xee, sizeof own);
    check(record && record->form == ompt_record_ompt, "a record was taken for one of OMPT's form");
    if (!record || (mode("null") && record->type_is_odd))
        return NULL;
    unsigned char *to = own.bytes + (mode("unaligned") ? 4 : 0);
    if (mode("unaligned") || record->type_is_odd) {
        memcpy(to, &record->of.ompt, sizeof record->of.ompt);
        return (void *)to;
    }
    return (void *)&record->of.ompt;
}

static void *get_record_native(ompt_buffer_t *buffer, ompt_buffer_cursor_t cursor, ompt_id_t *host_op_id) {
    const struct written *record = look(buffer, cursor);
    check(record && record->form == ompt_record_native, "a record was taken for a native one");
    if (!record)
        return NULL;
    *host_op_id = record->host_op_id;
    return (void *)record->of.native.own;
}

static ompt_record_abstract_t *get_record_abstract(void *native) {
    static _Thread_local ompt_record_abstract_t own;
    const uint64_t *record = native;
    check(record[0] == 0x6e617469u, "no native record");
    own = *(const ompt_record_abstract_t *)(record + 2);
    return &own;
}

static ompt_interface_fn_t device_lookup(const char *name) {
    static const struct {
        const char *name;
        ompt_interface_fn_t entry;
    } all[] = {
#define ENTRY(name) {"ompt_" #name, (ompt_interface_fn_t)(ompt_##name##_t){name}}
        ENTRY(get_device_num_procs), ENTRY(get_device_time),  ENTRY(translate_time),
        ENTRY(set_trace_ompt),       ENTRY(set_trace_native), ENTRY(get_buffer_limits),
        ENTRY(start_trace),          ENTRY(pause_trace),      ENTRY(flush_trace),
        ENTRY(stop_trace),           ENTRY(get_record_type),  ENTRY(advance_buffer_cursor),
        ENTRY(get_record_ompt),      ENTRY(get_record_native), ENTRY(get_record_abstract),
    };
    char missing[64];
    snprintf(missing, sizeof missing, "missing=%s", name);
    for (int n = 0; n < mode_count; n++)
        if (strcmp(modes[n], missing) == 0 || strcmp(modes[n], "upstream") == 0)
            return NULL;
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (strcmp(all[n].name, name) == 0)
            return all[n].entry;
    check(0, "an entry point that no device has");
    return NULL;
}

/* ---- what is offloaded ----------------------------------------------- */

static void offload(void) {
    for (int kind = 1; kind <= KINDS; kind++) {
        struct written record;
        memset(&record, 0xcc, sizeof record);
        record.type_is_odd = kind % 2;
        fields[0] = 0;
        /* Events of devices are no events on devices. */
        if (kind >= ompt_callback_device_initialize && kind <= ompt_callback_device_unload)
            continue;
        if (mode("native")) {
            record.form = ompt_record_native;
            record.host_op_id = kernel_id;
            record.of.native.own[0] = 0x6e617469u;
            record.of.native.abstract = (ompt_record_abstract_t){
                kind % 3 ? ompt_record_native_event : ompt_record_native_info,
                kind == 7 ? NULL : kind % 2 ? "kernel" : "a name that is longer than what is kept",
                next_time(), kind % 5 ? next_time() : 0, kind % 4 ? value() : 0};
            ompt_record_abstract_t *r = &record.of.native.abstract;
            field("host_op_id", record.host_op_id);
            field("rclass", r->rclass);
            field("start_time", r->start_time);
            field("end_time", r->end_time);
            field("hwid", r->hwid);
            if (put(&record))
                say("{\"record\":{\"form\":\"native\",\"text\":\"%s\",\"fields\":{%s}}}", r->type ? r->type : "",
                    fields);
            continue;
        }
        record.form = ompt_record_ompt;
        ompt_record_ompt_t *r = &record.of.ompt;
        r->type = (ompt_callbacks_t)kind;
        r->time = next_time();
        r->thread_id = value();
        r->target_id = target_data.value;
        fill(r);
        if (mode("unknown") && record.type_is_odd)
            r->type = (ompt_callbacks_t)(kind + KINDS + 1);
        if (put(&record))
            say("{\"record\":{\"form\":\"ompt\",\"type\":%d,\"time\":%" PRIu64 ",\"thread_id\":%" PRIu64
                ",\"target_id\":%" PRIu64 ",\"fields\":{%s}}}",
                (int)r->type, r->time, r->thread_id, r->target_id, fields);
    }
}

/* ---- the host ---------------------------------------------------------- */

static ompt_callback_t callbacks[KINDS + 1];
static uint64_t block; /* where the tool says that it writes */

static ompt_set_result_t set_callback(ompt_callbacks_t event, ompt_callback_t callback) {
    if (event < 1 || event > KINDS)
        return ompt_set_error;
    callbacks[event] = callback;
    return ompt_set_always;
}

static ompt_interface_fn_t lookup(const char *name) {
    return strcmp(name, "ompt_set_callback") == 0 ? (ompt_interface_fn_t)set_callback : NULL;
}

#define CALL(name, ...)                                                                                                \
    do {                                                                                                               \
        if (callbacks[ompt_callback_##name])                                                                           \
            ((ompt_callback_##name##_t)callbacks[ompt_callback_##name])(__VA_ARGS__);                                  \
    } while (0)

static void host_offloads(void) {
    static char host[64], device[64];
    /* The numbers of operations stay as the tool left them, as LLVM's runtime leaves them. */
    target_data.value = 0;
    CALL(target_emi, ompt_target, ompt_scope_begin, DEVICE, NULL, &target_task, &target_data, host);
    CALL(target_data_op_emi, ompt_scope_begin, &target_task, &target_data, &data_op_id,
         ompt_target_data_transfer_to_device, host, -1, device, DEVICE, sizeof host, host);
    CALL(target_submit_emi, ompt_scope_begin, &target_data, &kernel_id, 7);
    say("{\"ids\":{\"target\":%" PRIu64 ",\"data_op\":%" PRIu64 ",\"kernel\":%" PRIu64 "}}", target_data.value,
        data_op_id, kernel_id);
    device_does('w');
    CALL(target_submit_emi, ompt_scope_end, &target_data, &kernel_id, 7);
    CALL(target_data_op_emi, ompt_scope_end, &target_task, &target_data, &data_op_id,
         ompt_target_data_transfer_to_device, host, -1, device, DEVICE, sizeof host, host);
    CALL(target_emi, ompt_target, ompt_scope_end, DEVICE, NULL, &target_task, &target_data, host);
}

static int control_tool(uint64_t command) {
    if (!callbacks[ompt_callback_control_tool])
        return -1;
    return ((ompt_callback_control_tool_t)callbacks[ompt_callback_control_tool])(command, 0, NULL, NULL);
}

static void introduce(void) {
    alive = 1;
    CALL(device_initialize, DEVICE, mode("no_lookup") ? NULL : mode("upstream") ? "unknown" : "Nobody;simulator;1",
         &the_device, mode("no_lookup") ? NULL : device_lookup, mode("upstream") || mode("no_lookup") ? NULL : "none");
}

/* The child of a fork tells what it finds in its copy of the block: the state of the first device. */
static void fork_once(void) {
    pid_t child = fork();
    if (child == 0) {
        printf("{\"child_state\":%" PRIu64 "}\n", *(const volatile uint64_t *)(block + 1024));
        fflush(stdout);
        _exit(0);
    }
    check(child > 0 && waitpid(child, NULL, 0) == child, "no child");
}

static int obey(int command) {
    switch (command) {
    case 'w':
        host_offloads();
        return 0;
    case 's':
        return control_tool(1);
    case 'p':
        return control_tool(2);
    case 'f':
        return control_tool(3);
    case 'e':
        return control_tool(4);
    case 'z':
    case 'x':
    case 'c':
        device_does((char)command);
        return 0;
    case 'i':
        introduce();
        return 0;
    case 'm':
        for (int n = 100; n < 112; n++)
            CALL(device_initialize, n, NULL, NULL, NULL, NULL);
        return 0;
    case 'k':
        fork_once();
        return 0;
    case 'd':
        if (tracing) {
            device_does('o');
            tracing = 0;
        }
        CALL(device_finalize, DEVICE);
        alive = 0;
        return 0;
    default:
        return -1;
    }
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 32)
        return 2;
    for (int n = 2; n < argc; n++)
        modes[mode_count++] = argv[n];
    backwards = mode("backwards") != NULL;
    void *tool = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!tool) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    ompt_start_tool_result_t *(*start)(unsigned, const char *) =
        (ompt_start_tool_result_t * (*)(unsigned, const char *)) dlsym(tool, "ompt_start_tool");
    ompt_start_tool_result_t *result = start ? start(mode("draft") ? 201611 : 202111, "device simulator") : NULL;
    if (!result || !result->initialize(lookup, 6, &result->tool_data)) {
        fprintf(stderr, "the tool does not want to\n");
        return 2;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, device_thread, NULL) != 0)
        return 2;
    device_does('t');
    ompt_data_t thread_data = {0};
    CALL(thread_begin, ompt_thread_initial, &thread_data);
    introduce();
    const uint64_t *symbol = dlsym(tool, "ompt_companion_block");
    block = symbol ? *symbol : 0;
    say("{\"ready\":{\"pid\":%d,\"block\":%" PRIu64 ",\"device_time\":%" PRIu64 "}}", (int)getpid(), block,
        device_time);
    int command;
    while ((command = getchar()) != EOF && command != 'q')
        say("{\"did\":\"%c\",\"answer\":%d}", command, obey(command));
    result->finalize(&result->tool_data);
    if (alive)
        obey('d');
    check(buffer_count == 0, "the device still has buffers");
    device_does('q');
    pthread_join(thread, NULL);
    say("{\"done\":true}");
    return 0;
}
