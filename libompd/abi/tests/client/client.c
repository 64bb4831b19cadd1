/* A debugger in C, of the plainest kind: it reads a stopped process through
 * /proc/PID/mem, or what is in a core, knows symbols from a list it is given, and calls every
 * function of the interface, by the declarations of omp-tools.h. Each line it
 * prints is the name of a call, what it returned, and what it gave.
 *
 *   client LIBRARY PID|CORE LWP SYMBOLS         calls every function
 *   client --values LIBRARY PID PTHREAD SYMBOLS prints what it says of a thread
 *   client --count LIBRARY PID SYMBOLS PTHREAD...
 *                                               counts the callbacks of each kind of question
 *   client --count-stops ...                    the same, and says that the process does not run
 *   client --again LIBRARY PID LWP SYMBOLS      loads and unloads it many times, and prints the memory in use after each
 *   client --layout                             prints how structures are laid out */
#include <malloc.h>
#include <time.h>

#include "debugger.h"

#define CALL(name, ...) printf("%s %d", #name, (int)F(name)(__VA_ARGS__))

static void layout(void) {
#define SIZE(type) printf("sizeof " #type " %zu\n", sizeof(type))
#define OFFSET(type, field) printf("offsetof " #type "." #field " %zu\n", offsetof(type, field))
    SIZE(ompd_address_t);
    OFFSET(ompd_address_t, segment);
    OFFSET(ompd_address_t, address);
    SIZE(ompd_frame_info_t);
    OFFSET(ompd_frame_info_t, frame_address);
    OFFSET(ompd_frame_info_t, frame_flag);
    SIZE(ompd_device_type_sizes_t);
    OFFSET(ompd_device_type_sizes_t, sizeof_char);
    OFFSET(ompd_device_type_sizes_t, sizeof_short);
    OFFSET(ompd_device_type_sizes_t, sizeof_int);
    OFFSET(ompd_device_type_sizes_t, sizeof_long);
    OFFSET(ompd_device_type_sizes_t, sizeof_long_long);
    OFFSET(ompd_device_type_sizes_t, sizeof_pointer);
    SIZE(ompd_callbacks_t);
    OFFSET(ompd_callbacks_t, alloc_memory);
    OFFSET(ompd_callbacks_t, free_memory);
    OFFSET(ompd_callbacks_t, print_string);
    OFFSET(ompd_callbacks_t, sizeof_type);
    OFFSET(ompd_callbacks_t, symbol_addr_lookup);
    OFFSET(ompd_callbacks_t, read_memory);
    OFFSET(ompd_callbacks_t, write_memory);
    OFFSET(ompd_callbacks_t, read_string);
    OFFSET(ompd_callbacks_t, device_to_host);
    OFFSET(ompd_callbacks_t, host_to_device);
    OFFSET(ompd_callbacks_t, get_thread_context_for_thread_id);
    SIZE(ompd_rc_t);
    SIZE(ompd_scope_t);
    SIZE(ompd_word_t);
    SIZE(ompd_size_t);
    SIZE(ompd_wait_id_t);
    SIZE(ompd_icv_id_t);
    SIZE(ompd_thread_id_t);
    SIZE(ompd_device_t);
}

/* Control variables of every scope, by the handles for each. */
static void print_icvs(ompd_address_space_handle_t *space, ompd_thread_handle_t *thread,
                       ompd_parallel_handle_t *region, ompd_task_handle_t *task) {
    ompd_icv_id_t icv = 0;
    ompd_scope_t scope = ompd_scope_global;
    int more = 1;
    while (more == 1) {
        const char *name = NULL, *text = NULL;
        ompd_word_t value = 0;
        if (F(ompd_enumerate_icvs)(space, icv, &icv, &name, &scope, &more) != ompd_rc_ok) {
            return;
        }
        void *handle = scope == ompd_scope_parallel ? (void *)region
                       : scope == ompd_scope_task   ? (void *)task
                       : scope == ompd_scope_thread ? (void *)thread
                                                    : (void *)space;
        int rc = F(ompd_get_icv_from_scope)(handle, scope, icv, &value);
        printf("icv %s %d %d %" PRId64 "\n", name, (int)scope, rc, rc == ompd_rc_ok || rc == ompd_rc_incomplete ? value : 0);
        rc = F(ompd_get_icv_string_from_scope)(handle, scope, icv, &text);
        printf("text %s %d %s\n", name, rc, rc == ompd_rc_ok ? text : "");
    }
}

/* What the library says of one thread, for comparison with another one. */
static void values(ompd_address_space_context_t *context, uint64_t pthread) {
    ompd_address_space_handle_t *space = NULL;
    ompd_thread_handle_t *thread = NULL, *member = NULL;
    ompd_parallel_handle_t *region = NULL, *outer = NULL;
    ompd_task_handle_t *task = NULL, *next = NULL;
    ompd_word_t word = 0;
    ompd_wait_id_t wait_id = 0;
    ompd_address_t address = {0, 0};
    int rc = F(ompd_initialize)(201811, &callbacks);
    printf("initialize %d\n", rc);
    printf("process_initialize %d\n", F(ompd_process_initialize)(context, &space));
    rc = F(ompd_get_omp_version)(space, &word);
    printf("omp_version %d %" PRId64 "\n", rc, word);
    printf("thread %d\n", F(ompd_get_thread_handle)(space, thread_id_pthread, 8, &pthread, &thread));
    rc = F(ompd_get_state)(thread, &word, &wait_id);
    printf("state %d %" PRId64 "\n", rc, word);
    printf("region %d\n", F(ompd_get_curr_parallel_handle)(thread, &region));
    printf("task %d\n", F(ompd_get_curr_task_handle)(thread, &task));
    print_icvs(space, thread, region, task);
    for (int level = 0; region != NULL && level < 10; level++) {
        int threads = 0;
        while (threads < 100 && F(ompd_get_thread_in_parallel)(region, threads, &member) == ompd_rc_ok) {
            uint64_t id = 0;
            rc = F(ompd_get_thread_id)(member, thread_id_pthread, 8, &id);
            printf("member %d %d %d %" PRIx64 "\n", level, threads, rc, id);
            rc = F(ompd_get_task_in_parallel)(region, threads, &next);
            printf("implicit %d %d %d\n", level, threads, rc);
            if (rc == ompd_rc_ok) {
                rc = F(ompd_get_task_function)(next, &address);
                printf("function %d %d %d %" PRIx64 "\n", level, threads, rc, rc == ompd_rc_ok ? address.address : 0);
            }
            threads++;
        }
        printf("threads %d %d\n", level, threads);
        rc = F(ompd_get_enclosing_parallel_handle)(region, &outer);
        printf("enclosing %d %d\n", level, rc);
        region = rc == ompd_rc_ok ? outer : NULL;
    }
    for (int depth = 0; task != NULL && depth < 10; depth++) {
        rc = F(ompd_get_generating_task_handle)(task, &next);
        printf("generating %d %d\n", depth, rc);
        task = rc == ompd_rc_ok ? next : NULL;
    }
}

static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What was asked of the debugger since the last time, by callbacks for reading, symbols, thread contexts, byte order and sizes, and
 * memory; then bytes read, calls of the library, and microseconds of processor time. */
static void count(const char *row, long calls) {
    static double before;
    double now = processor_time();
    printf("%s %ld %ld %ld %ld %ld %ld %ld %.0f\n", row, counts.reads, counts.symbols, counts.contexts, counts.conversions,
           counts.memory, counts.bytes, calls, (now - before) * 1e6);
    memset(&counts, 0, sizeof counts);
    before = processor_time();
}

static void check(ompd_rc_t rc, const char *what) {
    if (rc != ompd_rc_ok) {
        fprintf(stderr, "%s: %d\n", what, (int)rc);
        exit(4);
    }
}

/* The same questions to any library; handles are given back at once. */
static void count_all(ompd_address_space_context_t *context, int threads, char **pthreads) {
    ompd_address_space_handle_t *space = NULL;
    ompd_thread_handle_t **handles = calloc((size_t)threads, sizeof *handles), *member;
    ompd_parallel_handle_t *region = NULL, *outer = NULL, *of_task = NULL;
    ompd_task_handle_t *task = NULL, *generating = NULL;
    ompd_word_t word = 0, size = 0;
    ompd_wait_id_t wait_id = 0;
    ompd_address_t address = {0, 0};
    long calls = 2;
    count("begin", 0);
    check(F(ompd_initialize)(201811, &callbacks), "initialize");
    check(F(ompd_process_initialize)(context, &space), "process_initialize");
    count("init", calls);

    for (calls = 0; calls < 2 * threads; calls += 2) {
        uint64_t pthread = strtoull(pthreads[calls / 2], NULL, 16);
        check(F(ompd_get_thread_handle)(space, thread_id_pthread, 8, &pthread, &handles[calls / 2]), "thread_handle");
        check(F(ompd_get_state)(handles[calls / 2], &word, &wait_id), "state");
    }
    count("threads", calls);

    ompd_icv_id_t icv = 0, team_size = 0;
    ompd_scope_t scope = ompd_scope_global;
    const char *name = NULL;
    for (int more = 1; more == 1;) {
        check(F(ompd_enumerate_icvs)(space, icv, &icv, &name, &scope, &more), "enumerate_icvs");
        team_size = strcmp(name, "team-size-var") == 0 ? icv : team_size;
        free_memory((void *)name);
    }
    count("enumeration", 0);

    calls = 1;
    check(F(ompd_get_curr_parallel_handle)(handles[0], &region), "curr_parallel");
    for (int level = 0; region != NULL; level++) {
        check(F(ompd_get_icv_from_scope)(region, ompd_scope_parallel, team_size, &size), "team-size-var");
        for (int n = 0; n < size; n++, calls += 2) {
            uint64_t id = 0;
            check(F(ompd_get_thread_in_parallel)(region, n, &member), "thread_in_parallel");
            check(F(ompd_get_thread_id)(member, thread_id_pthread, 8, &id), "thread_id");
            F(ompd_rel_thread_handle)(member);
        }
        calls += 2;
        ompd_rc_t rc = F(ompd_get_enclosing_parallel_handle)(region, &outer);
        F(ompd_rel_parallel_handle)(region);
        region = rc == ompd_rc_ok ? outer : NULL;
    }
    count("parallel", calls);

    calls = 0;
    check(F(ompd_get_curr_parallel_handle)(handles[0], &region), "curr_parallel");
    check(F(ompd_get_icv_from_scope)(region, ompd_scope_parallel, team_size, &size), "team-size-var");
    for (int n = 0; n < size; n++, calls += 4) {
        check(F(ompd_get_task_in_parallel)(region, n, &task), "task_in_parallel");
        check(F(ompd_get_task_function)(task, &address), "task_function");
        check(F(ompd_get_task_parallel_handle)(task, &of_task), "task_parallel");
        check(F(ompd_get_generating_task_handle)(task, &generating), "generating_task");
        F(ompd_rel_parallel_handle)(of_task);
        F(ompd_rel_task_handle)(generating);
        F(ompd_rel_task_handle)(task);
    }
    for (int n = 0; n < threads; n++, calls++) {
        check(F(ompd_get_curr_task_handle)(handles[n], &task), "curr_task");
        F(ompd_rel_task_handle)(task);
    }
    count("tasks", calls + 2);

    for (calls = 0; calls < 2 * threads; calls += 2) {
        ompd_frame_info_t exit_frame, enter_frame;
        check(F(ompd_get_curr_task_handle)(handles[calls / 2], &task), "curr_task");
        check(F(ompd_get_task_frame)(task, &exit_frame, &enter_frame), "task_frame");
        F(ompd_rel_task_handle)(task);
    }
    count("frames", calls);

    check(F(ompd_get_curr_task_handle)(handles[0], &task), "curr_task");
    calls = 1;
    icv = 0;
    for (int more = 1; more == 1; calls += 3) {
        const char *text = NULL;
        check(F(ompd_enumerate_icvs)(space, icv, &icv, &name, &scope, &more), "enumerate_icvs");
        if (strcmp(name, "def-allocator-var") == 0) {
            /* Theirs does not have it: the same questions to both. */
            free_memory((void *)name);
            calls -= 2;
            continue;
        }
        void *handle = scope == ompd_scope_parallel ? (void *)region
                       : scope == ompd_scope_task   ? (void *)task
                       : scope == ompd_scope_thread ? (void *)handles[0]
                                                    : (void *)space;
        /* Its text if it is no number: theirs has no text of the others. */
        if (F(ompd_get_icv_from_scope)(handle, scope, icv, &word) != ompd_rc_ok &&
            F(ompd_get_icv_string_from_scope)(handle, scope, icv, &text) == ompd_rc_ok) {
            free_memory((void *)text);
        }
        free_memory((void *)name);
    }
    count("icvs", calls);
    F(ompd_rel_task_handle)(task);
    F(ompd_rel_parallel_handle)(region);
    for (int n = 0; n < threads; n++) {
        F(ompd_rel_thread_handle)(handles[n]);
    }
    free(handles);
    F(ompd_rel_address_space_handle)(space);
    F(ompd_finalize)();
}

/* A session that begins and ends with the library itself. */
static void session(const char *path, ompd_address_space_context_t *context, uint64_t lwp) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    ompd_address_space_handle_t *space = NULL;
    ompd_thread_handle_t *thread = NULL;
    const char *text = NULL;
    ompd_word_t state = 0, more = 0;
    ompd_wait_id_t wait_id = 0;
    ompd_icv_id_t icv = 0;
    ompd_scope_t scope = ompd_scope_global;
    int more_icvs = 0;
    check(F(ompd_get_version_string)(&text), "ompd_get_version_string");
    check(F(ompd_initialize)(202111, &callbacks), "ompd_initialize");
    check(F(ompd_process_initialize)(context, &space), "ompd_process_initialize");
    check(F(ompd_enumerate_icvs)(space, icv, &icv, &text, &scope, &more_icvs), "ompd_enumerate_icvs");
    free_memory((void *)text);
    check(F(ompd_enumerate_states)(space, 0x102, &state, &text, &more), "ompd_enumerate_states");
    free_memory((void *)text);
    check(F(ompd_get_thread_handle)(space, thread_id_lwp, 8, &lwp, &thread), "ompd_get_thread_handle");
    check(F(ompd_get_state)(thread, &state, &wait_id), "ompd_get_state");
    check(F(ompd_rel_thread_handle)(thread), "ompd_rel_thread_handle");
    check(F(ompd_rel_address_space_handle)(space), "ompd_rel_address_space_handle");
    check(F(ompd_finalize)(), "ompd_finalize");
    dlclose(library);
}

static void again(const char *path, ompd_address_space_context_t *context, uint64_t lwp) {
    for (int round = 0; round < 12; round++) {
        session(path, context, lwp);
        /* Blocks that malloc takes from the system by themselves count apart. */
        struct mallinfo2 used = mallinfo2();
        printf("round %d %zu %ld\n", round, used.uordblks + used.hblkhd, allocated);
    }
}

int main(int argc, char **argv) {
    if (argc == 6 && strcmp(argv[1], "--again") == 0) {
        ompd_address_space_context_t context = {-1, 0, NULL};
        open_memory(&context, argv[3]);
        read_symbols(argv[5]);
        again(argv[2], &context, strtoull(argv[4], NULL, 10));
        return 0;
    }
    if (argc >= 6 && strncmp(argv[1], "--count", 7) == 0) {
        tells_of_stops = strcmp(argv[1], "--count-stops") == 0;
        ompd_address_space_context_t context = {-1, 0, NULL};
        open_memory(&context, argv[3]);
        read_symbols(argv[4]);
        dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
        library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL || context.memory < 0) {
            fprintf(stderr, "%s\n", library == NULL ? dlerror() : argv[3]);
            return 3;
        }
        count_all(&context, argc - 5, argv + 5);
        return 0;
    }
    if (argc == 6 && strcmp(argv[1], "--values") == 0) {
        ompd_address_space_context_t context = {-1, 0, NULL};
        open_memory(&context, argv[3]);
        read_symbols(argv[5]);
        /* Intel's library uses the C++ library without saying so. */
        dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
        library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL || context.memory < 0) {
            fprintf(stderr, "%s\n", library == NULL ? dlerror() : "no memory");
            return 3;
        }
        values(&context, strtoull(argv[4], NULL, 16));
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--layout") == 0) {
        layout();
        return 0;
    }
    if (argc != 5) {
        return 2;
    }
    ompd_address_space_context_t context = {-1, 0, NULL};
    open_memory(&context, argv[2]);
    uint64_t lwp = strtoull(argv[3], NULL, 10);
    read_symbols(argv[4]);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || context.memory < 0) {
        fprintf(stderr, "%s\n", library == NULL ? dlerror() : "no memory");
        return 3;
    }

    ompd_word_t word = -1, more = 1, state = 0x102;
    const char *text = NULL;
    ompd_address_space_handle_t *space = NULL, *device = NULL;
    CALL(ompd_get_api_version, &word), printf(" %" PRId64 "\n", word);
    CALL(ompd_get_version_string, &text), printf(" %s\n", text);
    CALL(ompd_initialize, 202111, &callbacks), puts("");
    CALL(ompd_process_initialize, &context, &space), puts("");
    CALL(ompd_device_initialize, space, NULL, 2, 8, &lwp, &device), puts("");
    CALL(ompd_get_omp_version, space, &word), puts("");
    int rc = F(ompd_get_omp_version_string)(space, &text);
    printf("ompd_get_omp_version_string %d\n", rc);
    if (rc == 0) {
        free_memory((void *)text);
    }
    ompd_thread_id_t *kinds;
    ompd_size_t *sizes;
    int count = 0, number = 0, order = 7;
    rc = ((kinds_fn *)entry("ompd_get_device_thread_id_kinds"))(space, &kinds, &sizes, &count);
    printf("ompd_get_device_thread_id_kinds %d %d\n", rc, count);
    free_memory(kinds);
    free_memory(sizes);

    ompd_thread_handle_t *thread = NULL, *member = NULL;
    ompd_parallel_handle_t *region = NULL, *outer = NULL, *of_task = NULL;
    ompd_task_handle_t *task = NULL, *generating = NULL, *scheduling = NULL, *implicit = NULL;
    CALL(ompd_get_thread_handle, space, thread_id_lwp, 8, &lwp, &thread), puts("");
    uint64_t id = 0;
    CALL(ompd_get_thread_id, thread, thread_id_lwp, 8, &id), printf(" %" PRIu64 "\n", id);
    rc = ((device_fn *)entry("ompd_get_device_from_thread"))(thread, &device);
    printf("ompd_get_device_from_thread %d %d\n", rc, device == space);
    CALL(ompd_get_curr_parallel_handle, thread, &region), puts("");
    CALL(ompd_get_enclosing_parallel_handle, region, &outer), puts("");
    CALL(ompd_parallel_handle_compare, region, outer, &order), printf(" %d\n", order);
    CALL(ompd_get_thread_in_parallel, region, 0, &member), puts("");
    CALL(ompd_thread_handle_compare, member, member, &order), printf(" %d\n", order);
    CALL(ompd_get_curr_task_handle, thread, &task), puts("");
    CALL(ompd_get_task_parallel_handle, task, &of_task), puts("");
    CALL(ompd_get_task_in_parallel, region, 0, &implicit), puts("");
    CALL(ompd_task_handle_compare, task, task, &order), printf(" %d\n", order);
    CALL(ompd_get_generating_task_handle, task, &generating), puts("");
    CALL(ompd_get_scheduling_task_handle, task, &scheduling), puts("");
    ompd_address_t address;
    ompd_frame_info_t exit_frame, enter_frame;
    CALL(ompd_get_task_function, task, &address), puts("");
    CALL(ompd_get_task_frame, task, &exit_frame, &enter_frame), puts("");
    ompd_wait_id_t wait_id = 0;
    CALL(ompd_get_state, thread, &word, &wait_id), puts("");

    for (count = 0; more == 1; count++) {
        rc = F(ompd_enumerate_states)(space, state, &state, &text, &more);
        if (rc != 0) {
            break;
        }
        free_memory((void *)text);
    }
    printf("ompd_enumerate_states %d %d\n", rc, count);
    const char *const *variables = NULL;
    CALL(ompd_get_display_control_vars, space, &variables), puts("");
    for (number = 0; variables[number] != NULL;) {
        number++;
    }
    CALL(ompd_rel_display_control_vars, &variables), printf(" %d\n", number > 0);

    ompd_icv_id_t icv = 0;
    ompd_scope_t scope = ompd_scope_global;
    int more_icvs = 1, known = 0, texts = 0;
    for (count = 0; more_icvs == 1; count++) {
        rc = F(ompd_enumerate_icvs)(space, icv, &icv, &text, &scope, &more_icvs);
        if (rc != 0) {
            break;
        }
        free_memory((void *)text);
        void *handle = scope == ompd_scope_parallel                                       ? (void *)region
                       : scope == ompd_scope_task || scope == ompd_scope_implicit_task    ? (void *)task
                       : scope == ompd_scope_thread                                       ? (void *)thread
                                                                                          : (void *)space;
        int got = F(ompd_get_icv_from_scope)(handle, scope, icv, &word);
        known += got == ompd_rc_ok || got == ompd_rc_incomplete;
        if (F(ompd_get_icv_string_from_scope)(handle, scope, icv, &text) == ompd_rc_ok) {
            texts++;
            free_memory((void *)text);
        }
    }
    printf("ompd_enumerate_icvs %d %d\n", rc, count > 20);
    printf("ompd_get_icv_from_scope 0 %d\n", known > 15);
    printf("ompd_get_icv_string_from_scope 0 %d\n", texts > 15);
    CALL(ompd_get_tool_data, thread, ompd_scope_thread, &word, &address), puts("");

    CALL(ompd_rel_task_handle, task), puts("");
    CALL(ompd_rel_parallel_handle, region), puts("");
    CALL(ompd_rel_thread_handle, thread), puts("");
    CALL(ompd_rel_address_space_handle, space), puts("");
    CALL(ompd_finalize), puts("");
    printf("allocated %ld\n", allocated);
    /* It stays loaded: what it has made of the layouts it brings is the same for all processes, and is kept. */
    free(symbols);
    free(context.segments);
    close(context.memory);
    return 0;
}
