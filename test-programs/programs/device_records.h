/* Records of every kind, with members that are unlike one another, for the
 * device simulator (device_simulator.c). */
#ifndef DEVICE_RECORDS_H
#define DEVICE_RECORDS_H

#include <inttypes.h>
#include <omp-tools.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The host's side of it, from the tool: the ids that records have. */
static ompt_data_t target_task, target_data;
static ompt_id_t data_op_id, kernel_id;

static uint64_t value(void) {
    static uint64_t last = UINT64_C(0x1000000000000001);
    return last += UINT64_C(0x100000007);
}
static void *address(void) { return (void *)(uintptr_t)(value() & 0x7fffffffffffu); }
static int small(void) { return (int)(value() % 29) + 1; }
static int flags(void) { return (int)(0x80000000u | (unsigned)(value() & 0xffffff)); }

static uint64_t device_time = UINT64_C(1) << 30;
static int backwards; /* the device's clock */

static uint64_t next_time(void) { return backwards ? (device_time -= 11) : (device_time += 11); }

/* Says a member of a record, and sets it. */
static char fields[1024];
static void field(const char *name, uint64_t number) {
    size_t length = strlen(fields);
    snprintf(fields + length, sizeof fields - length, "%s\"%s\":%" PRIu64, length ? "," : "", name, number);
}
#define SET(member, is)                                                                                                \
    do {                                                                                                               \
        r->member = (is);                                                                                              \
        field(#member, (uint64_t)r->member);                                                                           \
    } while (0)
#define ENDPOINT ((ompt_scope_endpoint_t)(value() % 3 + 1))

/* Arrays of maps, which have to be there as long as a buffer. */
enum { ITEMS = 11 };
static void *hosts[ITEMS], *devices[ITEMS];
static size_t sizes[ITEMS];

static void fill(ompt_record_ompt_t *all) {
    static const char message[] = "not ended by a zero|";
#define MEMBER(name) __typeof__(all->record.name) *r = &all->record.name
    switch ((int)all->type) {
    case ompt_callback_thread_begin: {
        MEMBER(thread_begin);
        SET(thread_type, ompt_thread_other);
        break;
    }
    case ompt_callback_parallel_begin: {
        MEMBER(parallel_begin);
        SET(encountering_task_id, value());
        SET(parallel_id, value());
        SET(requested_parallelism, (unsigned)flags());
        SET(flags, flags());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_parallel_end: {
        MEMBER(parallel_end);
        SET(parallel_id, value());
        SET(encountering_task_id, value());
        SET(flags, flags());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_task_create: {
        MEMBER(task_create);
        SET(encountering_task_id, value());
        SET(new_task_id, value());
        SET(flags, flags());
        SET(has_dependences, 1);
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_task_schedule: {
        MEMBER(task_schedule);
        SET(prior_task_id, value());
        SET(prior_task_status, ompt_task_switch);
        SET(next_task_id, value());
        break;
    }
    case ompt_callback_implicit_task: {
        MEMBER(implicit_task);
        SET(endpoint, ENDPOINT);
        SET(parallel_id, value());
        SET(task_id, value());
        SET(actual_parallelism, (unsigned)flags());
        SET(index, (unsigned)small());
        SET(flags, flags());
        break;
    }
    case ompt_callback_target:
    case ompt_callback_target_emi: {
        MEMBER(target);
        SET(kind, ompt_target_exit_data_nowait);
        SET(endpoint, ENDPOINT);
        SET(device_num, 5);
        SET(task_id, value());
        SET(target_id, target_data.value);
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_target_data_op:
    case ompt_callback_target_data_op_emi: {
        MEMBER(target_data_op);
        SET(host_op_id, data_op_id);
        SET(optype, ompt_target_data_transfer_to_device_async);
        SET(src_addr, address());
        SET(src_device_num, -1);
        SET(dest_addr, address());
        SET(dest_device_num, 5);
        SET(bytes, value());
        SET(end_time, next_time());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_target_submit:
    case ompt_callback_target_submit_emi: {
        MEMBER(target_kernel);
        SET(host_op_id, kernel_id);
        SET(requested_num_teams, (unsigned)flags());
        SET(granted_num_teams, (unsigned)flags());
        SET(end_time, next_time());
        break;
    }
    case ompt_callback_control_tool: {
        MEMBER(control_tool);
        SET(command, value());
        SET(modifier, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_sync_region:
    case ompt_callback_sync_region_wait:
    case ompt_callback_reduction: {
        MEMBER(sync_region);
        SET(kind, ompt_sync_region_taskgroup);
        SET(endpoint, ENDPOINT);
        SET(parallel_id, value());
        SET(task_id, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_mutex_released:
    case ompt_callback_mutex_acquired:
    case ompt_callback_lock_destroy: {
        MEMBER(mutex);
        SET(kind, ompt_mutex_critical);
        SET(wait_id, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_dependences: {
        MEMBER(dependences);
        SET(task_id, value());
        SET(dep.variable.value, value());
        SET(dep.dependence_type, ompt_dependence_type_sink);
        SET(ndeps, small());
        break;
    }
    case ompt_callback_task_dependence: {
        MEMBER(task_dependence);
        SET(src_task_id, value());
        SET(sink_task_id, value());
        break;
    }
    case ompt_callback_work: {
        MEMBER(work);
        SET(wstype, ompt_work_distribute);
        SET(endpoint, ENDPOINT);
        SET(parallel_id, value());
        SET(task_id, value());
        SET(count, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_masked: {
        MEMBER(masked);
        SET(endpoint, ENDPOINT);
        SET(parallel_id, value());
        SET(task_id, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_target_map:
    case ompt_callback_target_map_emi: {
        MEMBER(target_map);
        SET(target_id, value());
        SET(nitems, ITEMS);
        SET(codeptr_ra, address());
        r->host_addr = hosts, r->device_addr = devices, r->bytes = sizes;
        r->mapping_flags = NULL;
        for (int n = 0; n < ITEMS; n++)
            hosts[n] = (void *)(uintptr_t)(n + 1000), devices[n] = (void *)(uintptr_t)(n + 2000), sizes[n] = (size_t)n;
        break;
    }
    case ompt_callback_lock_init:
    case ompt_callback_mutex_acquire: {
        MEMBER(mutex_acquire);
        SET(kind, ompt_mutex_nest_lock);
        SET(hint, (unsigned)small());
        SET(impl, (unsigned)flags());
        SET(wait_id, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_nest_lock: {
        MEMBER(nest_lock);
        SET(endpoint, ENDPOINT);
        SET(wait_id, value());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_flush: {
        MEMBER(flush);
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_cancel: {
        MEMBER(cancel);
        SET(task_id, value());
        SET(flags, flags());
        SET(codeptr_ra, address());
        break;
    }
    case ompt_callback_dispatch: {
        MEMBER(dispatch);
        SET(parallel_id, value());
        SET(task_id, value());
        SET(kind, ompt_dispatch_section);
        SET(instance.value, value());
        break;
    }
    case ompt_callback_error: {
        /* Not in the union of every header; it is in that of OpenMP 5.2. */
        ompt_record_error_t error, *r = &error;
        SET(severity, ompt_fatal);
        SET(length, sizeof message - 2);
        SET(codeptr_ra, address());
        r->message = message;
        memcpy(&all->record, r, sizeof error);
        break;
    }
    default: /* thread_end has nothing */
        break;
    }
}

#endif
