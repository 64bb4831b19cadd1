/* A member waits for detached tasks.  Their events go through a pipe to another
 * member, which reads there and fulfils them. */
#include "expect.h"

static int events[2];

static void make_task(void) {
    omp_event_handle_t event = (omp_event_handle_t)0;
#pragma omp task detach(event)
    {
        uintptr_t handle = (uintptr_t)event;
        if (write(events[1], &handle, sizeof handle) != sizeof handle)
            truth_fail("an event could not be sent");
    }
}

static void parent_body(void) {
    for (;;) {
        make_task();
        make_task();
#pragma omp taskwait
        truth_round("detach_fulfilled", 0);
    }
}

static void fulfiller_body(void) {
    for (;;) {
        uintptr_t handle;
        if (read(events[0], &handle, sizeof handle) != sizeof handle)
            truth_fail("an event could not be received");
        omp_fulfill_event((omp_event_handle_t)handle);
    }
}

int main(void) {
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    if (pipe(events) != 0)
        truth_fail("pipe");
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            parent_body();
        else
            fulfiller_body();
    }
    return 0;
}
