/* An OMPT tool that registers what the companion registers, and does nothing:
 * what a tool costs at the least.  A library, for OMP_TOOL_LIBRARIES. */
#include <omp-tools.h>
#include <stddef.h>

/* It looks at no argument, so that one function does for all. */
static int nothing(void) { return 0; }

static int initialize(ompt_function_lookup_t lookup, int device, ompt_data_t *tool) {
    /* The older form of each is asked for where the newer one is refused. */
    static const int pairs[][2] = {{33, 8}, {34, 9}, {35, 10}, {36, 22}};
    ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
    (void)device, (void)tool;
    if (!set)
        return 0;
    for (int event = 1; event <= 37; event++)
        if ((event < 8 || event > 10) && event != 22 && (event < 33 || event > 36))
            set((ompt_callbacks_t)event, (ompt_callback_t)nothing);
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++)
        if (set((ompt_callbacks_t)pairs[n][0], (ompt_callback_t)nothing) < ompt_set_sometimes)
            set((ompt_callbacks_t)pairs[n][1], (ompt_callback_t)nothing);
    return 1;
}

static void finalize(ompt_data_t *tool) { (void)tool; }

ompt_start_tool_result_t *ompt_start_tool(unsigned version, const char *runtime) {
    static ompt_start_tool_result_t result = {initialize, finalize, {0}};
    (void)version, (void)runtime;
    return &result;
}
