/* A debugger that does everything wrong: it calls the functions of the interface in any order, with handles of another kind, handles
 * it has given back, numbers that never were one, and NULL; and its callbacks fail and lie. What it asks for in vain it shall be told
 * in vain: nothing is lost, nothing is written where it should not be, and it lives on.
 *
 *   wrong LIBRARY PID|CORE LWP SYMBOLS SEED STEPS */
#include "debugger.h"

#define OMPD_EXT_NO_OMP_TOOLS_H
#include "../../include/ompd-ext.h"

static uint64_t seed;

/* splitmix64: the same sequence on every machine. */
static uint64_t any(void) {
    uint64_t next = seed += 0x9e3779b97f4a7c15;
    next = (next ^ next >> 30) * 0xbf58476d1ce4e5b9;
    next = (next ^ next >> 27) * 0x94d049bb133111eb;
    return next ^ next >> 31;
}

static int one_in(unsigned number) { return any() % number == 0; }

/* What a callback does. They are true for a while, or nothing would ever be found that could be wrong. */
static unsigned wrong_one_in = 50;
enum { truly, fails, lies };

static int mood(void) {
    return wrong_one_in == 0 || !one_in(wrong_one_in) ? truly : one_in(2) ? fails : lies;
}

static ompd_rc_t any_failure(void) { return (ompd_rc_t)(1 + any() % 13); }

static void fill(void *to, size_t bytes) {
    for (unsigned char *at = to; bytes > 0; bytes--) {
        *at++ = one_in(2) ? (unsigned char)any() : 0;
    }
}

static ompd_rc_t wrong_alloc(ompd_size_t bytes, void **memory) {
    switch (mood()) {
    case fails: return any_failure();
    case lies: *memory = NULL; return ompd_rc_ok;
    default: return alloc_memory(bytes, memory);
    }
}

static ompd_rc_t wrong_free(void *memory) {
    ompd_rc_t done = free_memory(memory);
    return mood() == truly ? done : any_failure();
}

static ompd_rc_t wrong_print(const char *string, int category) {
    (void)category;
    return strlen(string) < 1 << 20 && mood() == truly ? ompd_rc_ok : any_failure();
}

static ompd_rc_t wrong_sizeof(ompd_address_space_context_t *context, ompd_device_type_sizes_t *sizes) {
    switch (mood()) {
    case fails: return any_failure();
    case lies: fill(sizes, sizeof *sizes); return ompd_rc_ok;
    default: return sizeof_type(context, sizes);
    }
}

static ompd_rc_t wrong_symbol(ompd_address_space_context_t *context, ompd_thread_context_t *thread, const char *name,
                              ompd_address_t *address, const char *file) {
    switch (mood()) {
    case fails: return any_failure();
    case lies: fill(address, sizeof *address); return ompd_rc_ok;
    default: return symbol_addr(context, thread, name, address, file);
    }
}

static ompd_rc_t wrong_read(ompd_address_space_context_t *context, ompd_thread_context_t *thread,
                            const ompd_address_t *address, ompd_size_t bytes, void *buffer) {
    switch (mood()) {
    case fails: fill(buffer, bytes / 2); return any_failure();
    case lies: fill(buffer, bytes); return ompd_rc_ok;
    default: return read_memory(context, thread, address, bytes, buffer);
    }
}

static ompd_rc_t wrong_convert(ompd_address_space_context_t *context, const void *input, ompd_size_t unit,
                               ompd_size_t number, void *output) {
    switch (mood()) {
    case fails: return any_failure();
    case lies: fill(output, unit * number); return ompd_rc_ok;
    default: return convert(context, input, unit, number, output);
    }
}

static ompd_rc_t wrong_context(ompd_address_space_context_t *context, ompd_thread_id_t kind, ompd_size_t size,
                               const void *id, ompd_thread_context_t **thread) {
    /* The true one keeps a place for each that was asked for, and has so many. */
    static ompd_thread_context_t own;
    switch (mood()) {
    case fails: return any_failure();
    case lies: *thread = NULL; return ompd_rc_ok;
    default: break;
    }
    (void)context;
    if (size != 8 || (kind != thread_id_lwp && kind != thread_id_pthread)) {
        return ompd_rc_unsupported;
    }
    memcpy(&own.id, id, 8);
    *thread = &own;
    return ompd_rc_ok;
}

/* Handles that were given, by kind, alive or not. */
enum kind { space, thread, region, task, kinds_of_handles, most = 8 };
static void *handles[kinds_of_handles][most];

/* Mostly one of the kind that is expected. */
static void *handle(enum kind kind) {
    if (one_in(24)) {
        return NULL;
    }
    if (one_in(24)) {
        return (void *)(uintptr_t)(any() >> any() % 64);
    }
    return handles[one_in(12) ? any() % kinds_of_handles : kind][any() % most];
}

static void *any_handle(void) { return handle((enum kind)(any() % kinds_of_handles)); }

static void *given;
static enum kind given_kind;

/* A place for a handle, or none. */
static void *place(enum kind kind) {
    given = NULL;
    given_kind = kind;
    return one_in(20) ? NULL : &given;
}

static long returned[16];

static ompd_rc_t note(ompd_rc_t rc) {
    if ((unsigned)rc > 13) {
        fprintf(stderr, "%d is no code\n", (int)rc);
        exit(5);
    }
    returned[rc]++;
    /* It takes the place of several, so that some are alive and some are not. */
    for (int at = 0; rc == ompd_rc_ok && given != NULL && at < most; at++) {
        if (one_in(2)) {
            handles[given_kind][at] = given;
        }
    }
    given = NULL;
    return rc;
}

static const char *text;

static const char **text_place(void) {
    text = NULL;
    return one_in(10) ? NULL : &text;
}

/* Text that was given ends, and is given back. */
static void text_done(ompd_rc_t rc) {
    if (note(rc) == ompd_rc_ok && text != NULL) {
        counts.bytes += (long)strlen(text);
        free_memory((void *)text);
    }
    text = NULL;
}

static ompd_address_space_context_t context = {-1, 0, NULL};
static uint64_t lwp;

/* What goes beyond OMPD. */
static void step_beyond(void) {
    static const char *const views[] = {"summary", "threads", "tasks --tree", "locks", "stacks --all", "waits --dot",
                                        "icvs",    "history", "summary --no", "",      "\xff"};
    static const ompdx_thread_label_t labels[] = {{1, "1"}, {-1, "*1.2"}};
    ompdx_stop_point_t *points = NULL;
    ompd_size_t count = 0;
    ompd_address_t address;
    ompdx_event_t event;
    ompdx_origin_t origin;
    uint64_t point = 0, registers[OMPDX_REGISTERS + 1];
    int counts_here = 0;
    switch (any() % 10) {
    case 0: {
        ompd_rc_t rc = F(ompdx_stop_points)(handle(space), one_in(10) ? NULL : &points, one_in(10) ? NULL : &count);
        if (note(rc) == ompd_rc_ok) {
            for (ompd_size_t at = 0; at < count; at++) {
                counts.bytes += (long)strlen(points[at].place) + (long)strlen(points[at].runtime);
            }
            free_memory(points);
        }
        break;
    }
    case 1:
    case 2:
        fill(registers, sizeof registers);
        point = one_in(6) ? any() : any() % 40;
        note(F(ompdx_set_stop)(handle(thread), point, one_in(6) ? NULL : registers, any() % (OMPDX_REGISTERS + 2)));
        break;
    case 3:
        note(F(ompdx_get_stop)(handle(thread), one_in(10) ? NULL : &point, one_in(10) ? NULL : &event,
                               one_in(10) ? NULL : &counts_here));
        break;
    case 4: note(F(ompdx_get_parallel_function)(handle(region), one_in(10) ? NULL : &address)); break;
    case 5: note(F(ompdx_get_descriptor)(any_handle(), one_in(10) ? NULL : &address)); break;
    case 6:
        text_done(F(ompdx_get_origin)(any_handle(), (int)(any() % 30), one_in(10) ? NULL : &origin, text_place()));
        break;
    case 7:
        if (one_in(3)) {
            text_done(F(ompdx_report_json)(handle(space), text_place()));
        }
        break;
    case 8: {
        ompdx_text_options_t options = {(int)any() >> any() % 32, one_in(2), one_in(2), one_in(3) ? NULL : labels,
                                        any() % 3};
        const char *view = one_in(10) ? NULL : views[any() % (sizeof views / sizeof views[0])];
        if (one_in(3)) {
            text_done(F(ompdx_report_text)(handle(space), view, one_in(3) ? NULL : &options, text_place()));
        }
        break;
    }
    default:
        if (one_in(2)) {
            note(F(ompdx_drop_cache)(handle(space)));
        } else {
            note(F(ompdx_set_lib_root)(one_in(3) ? NULL : one_in(2) ? "" : "/no/such/folder"));
        }
    }
}

static void step(void) {
    static const ompd_word_t versions[] = {201811, 202011, 202111, 202411, 0, -1};
    ompd_word_t word = 0, more = 0;
    int number = 0;
    ompd_scope_t scope = (ompd_scope_t)(any() % 8), next = scope;
    ompd_icv_id_t icv = any() % 60;
    ompd_address_t address;
    ompd_frame_info_t frames[2];
    ompd_wait_id_t wait_id;
    ompd_word_t *to = one_in(10) ? NULL : &word;
    int *to_number = one_in(10) ? NULL : &number, member = (int)(any() % 12) - 2;
    uint64_t id = one_in(4) ? any() : lwp, size = one_in(6) ? any() % 9 : 8;
    switch (any() % 46) {
    case 0:
        if (one_in(40)) {
            note(F(ompd_finalize)());
        }
        break;
    case 1:
        /* Which wrong table is refused and which is used is tested elsewhere: this one is whole. */
        note(F(ompd_initialize)(versions[any() % 6], one_in(10) ? NULL : &callbacks));
        break;
    case 2: note(F(ompd_get_api_version)(to)); break;
    case 3:
        /* This one is the library's own. */
        if (note(F(ompd_get_version_string)(text_place())) == ompd_rc_ok && text != NULL) {
            counts.bytes += (long)strlen(text);
        }
        break;
    case 4:
        if (one_in(4)) {
            note(F(ompd_process_initialize)(one_in(10) ? NULL : &context, place(space)));
        }
        break;
    case 5:
        note(F(ompd_device_initialize)(handle(space), &context, (ompd_device_t)(any() % 9), 8, &id, place(space)));
        break;
    case 6: {
        ompd_thread_id_t *kinds = NULL;
        ompd_size_t *sizes = NULL;
        void *of = handle(space);
        kinds_fn *get = (kinds_fn *)entry("ompd_get_device_thread_id_kinds");
        if (note(get(of, &kinds, &sizes, &number)) == ompd_rc_ok) {
            free_memory(kinds);
            free_memory(sizes);
        }
        break;
    }
    case 7:
        if (one_in(16)) {
            note(F(ompd_rel_address_space_handle)(handle(space)));
        }
        break;
    case 8: note(F(ompd_get_omp_version)(handle(space), to)); break;
    case 9: text_done(F(ompd_get_omp_version_string)(handle(space), text_place())); break;
    case 10: note(F(ompd_get_thread_in_parallel)(handle(region), member, place(thread))); break;
    case 11:
    case 12:
        note(F(ompd_get_thread_handle)(handle(space), any() % 3, size, one_in(10) ? NULL : &id, place(thread)));
        break;
    case 13: note(F(ompd_rel_thread_handle)(handle(thread))); break;
    case 14: note(F(ompd_thread_handle_compare)(handle(thread), handle(thread), to_number)); break;
    case 15: note(F(ompd_get_thread_id)(handle(thread), any() % 3, size, one_in(10) ? NULL : &id)); break;
    case 16: note(((device_fn *)entry("ompd_get_device_from_thread"))(handle(thread), place(space))); break;
    case 17:
    case 18: note(F(ompd_get_curr_parallel_handle)(handle(thread), place(region))); break;
    case 19: note(F(ompd_get_enclosing_parallel_handle)(handle(region), place(region))); break;
    case 20: note(F(ompd_get_task_parallel_handle)(handle(task), place(region))); break;
    case 21: note(F(ompd_rel_parallel_handle)(handle(region))); break;
    case 22: note(F(ompd_parallel_handle_compare)(handle(region), handle(region), to_number)); break;
    case 23:
    case 24: note(F(ompd_get_curr_task_handle)(handle(thread), place(task))); break;
    case 25: note(F(ompd_get_generating_task_handle)(handle(task), place(task))); break;
    case 26: note(F(ompd_get_scheduling_task_handle)(handle(task), place(task))); break;
    case 27: note(F(ompd_get_task_in_parallel)(handle(region), member, place(task))); break;
    case 28: note(F(ompd_rel_task_handle)(handle(task))); break;
    case 29: note(F(ompd_task_handle_compare)(handle(task), handle(task), to_number)); break;
    case 30: note(F(ompd_get_task_function)(handle(task), one_in(10) ? NULL : &address)); break;
    case 31:
        note(F(ompd_get_task_frame)(handle(task), one_in(10) ? NULL : &frames[0], one_in(10) ? NULL : &frames[1]));
        break;
    case 32:
        text_done(F(ompd_enumerate_states)(handle(space), one_in(3) ? (ompd_word_t)any() : 0x102, to, text_place(),
                                           one_in(10) ? NULL : &more));
        break;
    case 33: note(F(ompd_get_state)(handle(thread), to, one_in(10) ? NULL : &wait_id)); break;
    case 34: {
        const char *const *list = NULL;
        ompd_rc_t rc = note(F(ompd_get_display_control_vars)(handle(space), one_in(10) ? NULL : &list));
        if (rc == ompd_rc_ok && list != NULL) {
            for (size_t at = 0; list[at] != NULL; at++) {
                counts.bytes += (long)strlen(list[at]);
            }
            note(F(ompd_rel_display_control_vars)(&list));
        }
        break;
    }
    case 35: {
        const char *const *none = NULL;
        note(F(ompd_rel_display_control_vars)(one_in(2) ? NULL : &none));
        break;
    }
    case 36:
        text_done(F(ompd_enumerate_icvs)(handle(space), icv, one_in(10) ? NULL : &icv, text_place(),
                                         one_in(10) ? NULL : &next, to_number));
        break;
    case 37: note(F(ompd_get_icv_from_scope)(any_handle(), scope, icv, to)); break;
    case 38: text_done(F(ompd_get_icv_string_from_scope)(any_handle(), scope, icv, text_place())); break;
    case 39: note(F(ompd_get_tool_data)(any_handle(), scope, to, one_in(10) ? NULL : &address)); break;
    default: step_beyond();
    }
}

int main(int argc, char **argv) {
    if (argc != 7) {
        return 2;
    }
    open_memory(&context, argv[2]);
    lwp = strtoull(argv[3], NULL, 10);
    read_symbols(argv[4]);
    seed = strtoull(argv[5], NULL, 10);
    long steps = strtol(argv[6], NULL, 10);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || context.memory < 0) {
        fprintf(stderr, "%s\n", library == NULL ? dlerror() : "no memory");
        return 3;
    }
    ompd_callbacks_t wrong = {wrong_alloc, wrong_free, wrong_print,   wrong_sizeof,  wrong_symbol, wrong_read,
                              no_write,    wrong_read, wrong_convert, wrong_convert, wrong_context};
    callbacks = wrong;
    for (long at = 0; at < steps; at++) {
        /* Stretches of true answers, of some wrong ones and of many. */
        if (at % 64 == 0) {
            static const unsigned rates[] = {0, 1000, 50, 4};
            wrong_one_in = rates[any() % 4];
        }
        step();
    }
    wrong_one_in = 0;
    /* An error if it is not there to be ended. */
    note(F(ompd_finalize)());
    printf("codes");
    for (int rc = 0; rc < 14; rc++) {
        printf(" %ld", returned[rc]);
    }
    printf("\nallocated %ld\n", allocated);
    free(symbols);
    free(context.segments);
    close(context.memory);
    return 0;
}
