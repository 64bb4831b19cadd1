/* Control variables that are lists.  A team of 2, the second of which opens a
 * region of 2.  Each thread says in its role what omp_get_max_threads() and
 * omp_get_proc_bind() return in its task and in regions inside of it, one level
 * after the other; and the same of the task that met the region it is in, which
 * nobody executes meanwhile.
 *
 * Argument: what the initial task and one of the inner tasks set by
 * omp_set_num_threads(), 0 for nothing. */
#include "truth.h"

enum { DEEP = 4 };

struct items {
    char nthreads[32], bind[32];
};

static struct items initial, outer;

static void look(struct items *items, int depth) {
    size_t n = strlen(items->nthreads), b = strlen(items->bind);
    snprintf(items->nthreads + n, sizeof items->nthreads - n, "%s%d", depth ? "," : "", omp_get_max_threads());
    snprintf(items->bind + b, sizeof items->bind - b, "%s%d", depth ? "," : "", (int)omp_get_proc_bind());
    if (depth + 1 == DEEP)
        return;
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0)
        look(items, depth + 1);
}

static const char *role(const char *name, const struct items *around) {
    static char texts[4][256];
    static atomic_int used;
    char *text = texts[truth_next(&used, 4)];
    struct items own = {"", ""};
    look(&own, 0);
    snprintf(text, sizeof texts[0], "%s nthreads=%s bind=%s around_nthreads=%s around_bind=%s", name, own.nthreads,
             own.bind, around->nthreads, around->bind);
    return text;
}

TRUTH_MARKER void inner_body(int set) {
    if (omp_get_thread_num() == 1 && set)
        omp_set_num_threads(set);
    truth_note(role("inner", &outer), TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, inner_body));
    truth_hold();
    truth_step();
}

TRUTH_MARKER void outer_body(int set) {
    if (omp_get_thread_num() == 0) {
        truth_note(role("coordinator", &initial), TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, outer_body));
        truth_ready("lists", 3);
        truth_release();
        truth_step();
        return;
    }
    look(&outer, 0);
#pragma omp parallel num_threads(2)
    {
        inner_body(set ? set - 1 : 0);
        TRUTH_KEEP_FRAME();
    }
}

int main(int argc, char **argv) {
    int set = argc > 1 ? atoi(argv[1]) : 0;
    truth_init();
    omp_set_max_active_levels(8);
    /* before GCC 11 nesting is a switch of its own */
    if (!omp_get_nested())
        omp_set_nested(1);
    if (set)
        omp_set_num_threads(set);
    look(&initial, 0);
#pragma omp parallel num_threads(2)
    {
        outer_body(set);
        TRUTH_KEEP_FRAME();
    }
    truth_done();
    return 0;
}
