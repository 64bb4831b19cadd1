/* A program with an OMPT tool of its own, which asks the runtime for numbers that no two calls get.
 *
 *   unique N OF M        how many different numbers M calls in three threads got, 0 not counted
 *   devices N            what ompt_get_num_devices says; no device is there
 *
 * and `ready`.  One byte on standard input lets it end. */
#include <omp-tools.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3, CALLS = 1000 };

static ompt_get_unique_id_t get_unique_id;
static ompt_get_num_devices_t get_num_devices;
static uint64_t numbers[THREADS * CALLS];

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool) {
    (void)device, (void)tool;
    get_unique_id = (ompt_get_unique_id_t)lookup("ompt_get_unique_id");
    get_num_devices = (ompt_get_num_devices_t)lookup("ompt_get_num_devices");
    return 1;
}

static void finalize(ompt_data_t *tool) { (void)tool; }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}

static int by_value(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int main(void) {
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS)
    for (int i = 0; i < CALLS; i++)
        numbers[omp_get_thread_num() * CALLS + i] = get_unique_id();
    qsort(numbers, THREADS * CALLS, sizeof *numbers, by_value);
    int different = 0;
    for (int i = 0; i < THREADS * CALLS; i++)
        different += numbers[i] != 0 && (i == 0 || numbers[i] != numbers[i - 1]);
    printf("unique %d OF %d\n", different, THREADS * CALLS);
    printf("devices %d\nready\n", get_num_devices());
    fflush(stdout);
    getchar();
    printf("done\n");
    return 0;
}
