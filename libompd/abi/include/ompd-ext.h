/* libompd.so beyond OMPD. Made from src/extension.rs by cbindgen; tests/header.rs compares.
 *
 * docs/libompd.md tells how these functions are used. The conventions of OMPD's functions hold for them. */

#ifndef OMPD_EXT_H
#define OMPD_EXT_H

#include <stdint.h>

/* Counts up whenever something is added here. Nothing of what a version declares changes in a later one. */
#define OMPDX_VERSION 1

/* OMPD's own types: the header beside this one, or that of LLVM's compilers. */
#ifndef OMPD_EXT_NO_OMP_TOOLS_H
#include <omp-tools.h>
#endif

/*
 Room for registers that matter at a place.
 */
#define OMPDX_REGISTERS 4

/*
 What begins or ends when a thread gets to a place.
 */
typedef enum {
    /*
     A parallel region begins: its team is complete, and none of its implicit tasks has begun.
     */
    ompdx_event_parallel_begin = 1,
    /*
     A parallel region ends: its threads have arrived at its end.
     */
    ompdx_event_parallel_end = 2,
    /*
     The code of an explicit task is about to be called.
     */
    ompdx_event_task_begin = 3,
    /*
     The code of an explicit task has returned.
     */
    ompdx_event_task_end = 4,
    /*
     A thread that the runtime has made begins, before its first region.
     */
    ompdx_event_thread_begin = 5,
    /*
     A thread that the runtime has made ends, after its last region.
     */
    ompdx_event_thread_end = 6,
    /*
     A thread comes to a barrier of its team, or to the end of a region. OMPD has no symbol for it.
     */
    ompdx_event_barrier_begin = 7,
    /*
     A thread comes to a lock that it will acquire (`omp_set_lock`, `omp_set_nest_lock`). OMPD has no symbol for it.
     */
    ompdx_event_lock_acquire = 8,
    /*
     A thread comes to a `critical` construct. OMPD has no symbol for it.
     */
    ompdx_event_critical_acquire = 9,
    /*
     A thread comes to a `taskwait` construct. OMPD has no symbol for it.
     */
    ompdx_event_taskwait_begin = 10,
    /*
     A thread comes to a worksharing loop, or to a `sections` construct. OMPD has no symbol for it.
     */
    ompdx_event_worksharing_begin = 11,
    /*
     A thread comes to a `single` construct. OMPD has no symbol for it.
     */
    ompdx_event_single_begin = 12
} ompdx_event_t;

/*
 Where the knowledge of how to read a value comes from.
 */
typedef enum {
    /*
     The value is not known.
     */
    ompdx_origin_unknown = 0,
    /*
     Debug information of the runtime.
     */
    ompdx_origin_dwarf = 1,
    /*
     A table in which the runtime describes itself.
     */
    ompdx_origin_table = 2,
    /*
     A symbol.
     */
    ompdx_origin_symbol = 3,
    /*
     The runtime's code.
     */
    ompdx_origin_code = 4,
    /*
     A layout of a release that came with this library, which fits the runtime.
     */
    ompdx_origin_profile = 5,
    /*
     Registers of a thread.
     */
    ompdx_origin_registers = 6,
    /*
     The stack of a thread.
     */
    ompdx_origin_stack = 7,
    /*
     The operating system.
     */
    ompdx_origin_os = 8,
    /*
     Something else, which the text names.
     */
    ompdx_origin_other = 9
} ompdx_origin_t;

/*
 A value whose origin can be asked for.
 */
typedef enum {
    /*
     Of a thread: its innermost region.
     */
    ompdx_item_thread_region = 1,
    /*
     Of a thread: its number in that.
     */
    ompdx_item_thread_number = 2,
    /*
     Of a thread: the task it executes.
     */
    ompdx_item_thread_task = 3,
    /*
     Of a thread: its state.
     */
    ompdx_item_thread_state = 4,
    /*
     Of a region: how many threads it has.
     */
    ompdx_item_region_size = 11,
    /*
     Of a region: its level of nesting.
     */
    ompdx_item_region_level = 12,
    /*
     Of a region: how many of the levels have more than one thread.
     */
    ompdx_item_region_active_level = 13,
    /*
     Of a region: the one around it.
     */
    ompdx_item_region_enclosing = 14,
    /*
     Of a region: its function.
     */
    ompdx_item_region_function = 15,
    /*
     Of a task: what kind of task it is.
     */
    ompdx_item_task_kind = 21,
    /*
     Of a task: what generated it.
     */
    ompdx_item_task_generating = 22,
    /*
     Of a task: the region it belongs to.
     */
    ompdx_item_task_region = 23,
    /*
     Of a task: its function.
     */
    ompdx_item_task_function = 24,
    /*
     Of a task: whether it is a final one.
     */
    ompdx_item_task_final = 25
} ompdx_item_t;

/*
 A place at which a debugger can stop the process when something begins or ends, or the reason why there is none.
 */
typedef struct {
    /*
     Number of the place, the same as long as the address space handle is valid; 0 if there is none.
     */
    uint64_t point;
    /*
     What begins or ends. One event may have several places; a thread passes through one of them. The symbols of OMPD (`own`) are a
     set by themselves: a debugger uses them, or the others.
     */
    ompdx_event_t event;
    /*
     1 for the symbols of OMPD (`ompd_bp_...`): runtimes pass through them only if started with `OMP_DEBUG=enabled`. 0 for
     equivalent places: runtimes always pass through them.
     */
    int own;
    /*
     Where the breakpoint belongs: the event is before the instruction is executed.
     */
    ompd_address_t address;
    /*
     How it was found.
     */
    ompdx_origin_t origin;
    /*
     How many of `registers` there are.
     */
    int register_count;
    /*
     DWARF numbers of the registers without which less is known at this place.
     */
    uint16_t registers[OMPDX_REGISTERS];
    /*
     Which runtime it is.
     */
    const char *runtime;
    /*
     Which place it is; if `point` is 0, what is not met, and why.
     */
    const char *place;
    /*
     What else has to hold for a hit to count; NULL if nothing. `ompdx_get_stop` tells whether it does.
     */
    const char *condition;
} ompdx_stop_point_t;

/*
 What a debugger calls a thread.
 */
typedef struct {
    /*
     Kernel thread id.
     */
    int64_t lwp;
    /*
     Its name or number in the debugger. Tables show a `*` at its begin, by which the selected thread can be marked.
     */
    const char *label;
} ompdx_thread_label_t;

/*
 How `ompdx_report_text` shows things.
 */
typedef struct {
    /*
     Columns to lay out for; 0 for 80.
     */
    int width;
    /*
     1: with the origins of values, and nothing cut.
     */
    int verbose;
    /*
     1: with the escape sequences by which terminals show colours.
     */
    int colour;
    /*
     What the debugger calls threads; NULL if there are none.
     */
    const ompdx_thread_label_t *labels;
    /*
     How many of those there are.
     */
    ompd_size_t label_count;
} ompdx_text_options_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Lists the places of all runtimes of a process, and with `point` 0 what has none. From then on threads are recognised at them, and
 what OMPD's functions say of such a thread is what OMPD asks for at that event.

 The array and all its strings are one block of the debugger's memory: it frees the array only.
 */
ompd_rc_t ompdx_stop_points(ompd_address_space_handle_t *address_space,
                            ompdx_stop_point_t **points,
                            ompd_size_t *count);

/*
 Tells that a thread is at a place, for debuggers that offer no registers; with `point` 0, that it is at none any more. It holds until
 then, or until `ompdx_drop_cache`: the debugger takes it back before it lets the thread run.

 `registers` are the values of those that the place names, in their order; the last ones may be left out, and then less is known.
 */
ompd_rc_t ompdx_set_stop(ompd_thread_handle_t *thread_handle,
                         uint64_t point,
                         const uint64_t *registers,
                         ompd_size_t register_count);

/*
 The place that a thread is at, and whether the hit counts: 0 if what else has to hold does not. `ompd_rc_unavailable` if it is at
 none.
 */
ompd_rc_t ompdx_get_stop(ompd_thread_handle_t *thread_handle,
                         uint64_t *point,
                         ompdx_event_t *event,
                         int *counts);

/*
 The function that a compiler made of the body of a region.
 */
ompd_rc_t ompdx_get_parallel_function(ompd_parallel_handle_t *parallel_handle,
                                      ompd_address_t *entry_point);

/*
 Where in the process the runtime keeps its record of a thread, a region or a task. The address identifies each of them at one
 moment, and as long as it exists. It is 0 for the region around the program, which has no record. Regions of one thread that
 are nested in each other may share one.
 */
ompd_rc_t ompdx_get_descriptor(void *handle,
                               ompd_address_t *descriptor);

/*
 Where the knowledge of a value comes from. `handle` is of a thread, a region or a task, as the item asks for.

 `text` says more: what was looked at, or, if the value is not known (`ompdx_origin_unknown`), why.
 */
ompd_rc_t ompdx_get_origin(void *handle,
                           int item,
                           ompdx_origin_t *origin,
                           const char **text);

/*
 All that is known of a process, as the JSON that `ompd-inspect --json` prints (`docs/report.schema.json`). It has threads,
 teams, tasks, what waits for what, locks, loops, control variables, stacks, and verdicts. It is one look at a process that the
 debugger holds.

 The library asks for the registers of every thread, in any way that the debugger offers. Without them there are no stacks, and
 what libgomp's threads wait for is not known. The text is in the debugger's memory, and the debugger frees it.
 */
ompd_rc_t ompdx_report_json(ompd_address_space_handle_t *address_space,
                            const char **json);

/*
 The same for people, in the tables of `ompd-inspect`. `view` is the name of one of its commands, or `summary`. One of the
 options `--tree`, `--all`, `--dot`, `--folded` and `--svg` may follow, where that command has it. Any other view is
 `ompd_rc_bad_input`. (Pictures that need Graphviz are not drawn.) `options` may be NULL.

 `history`, perhaps with `--by-time` and `--last N`, has what the companion recorded, or the reason why there is nothing. It
 reads neither threads nor registers.
 */
ompd_rc_t ompdx_report_text(ompd_address_space_handle_t *address_space,
                            const char *view,
                            const ompdx_text_options_t *options,
                            const char **text);

/*
 Names a folder in which the files are that a process has mapped: a copy of the file system of the machine it runs on, or a folder
 with its libraries. It holds for processes that are initialised from then on. Files there come before those at the paths that
 the process names. Both count only if their build-ids are those of the process. NULL or an empty string: there is none.
 */
ompd_rc_t ompdx_set_lib_root(const char *directory);

/*
 Reads everything anew, and forgets what `ompdx_set_stop` reported. Handles stay valid.

 What is known of a process is read anew with every call anyway, unless the debugger offers the count of stops. What the files
 of its modules and the code of its runtimes show is kept; this function drops that as well.
 */
ompd_rc_t ompdx_drop_cache(ompd_address_space_handle_t *address_space);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* OMPD_EXT_H */
