/* Tasks that have not begun, or are over but for their event: with priorities,
 * dependences of each kind, in task groups, with events.
 *
 * Of two threads, thread 1 goes to the barrier and takes the first two tasks:
 * one whose body ends at once and whose event nobody fulfills, and one that
 * holds it.  What the coordinator generates after that stays where it is.
 *
 * -DWITHOUT_EVENTS: for runtimes before OpenMP 5.0: no events, no
 *                   mutexinoutset
 * QUEUED_CHAIN=N    N more tasks, each depending on the one before
 * QUEUED_ORPHANS    a task that is over has generated three such tasks */
#include "truth.h"

static atomic_int holder_started;
static int cell_a, cell_b, cell_chain, cell_orphan; /* storage that dependences name */
#ifndef WITHOUT_EVENTS
static atomic_int detached_ran;
static int cell_c;
/* Looked up by name: the handles as the program has them. */
omp_event_handle_t detached_event, holder_event;
#endif

TRUTH_MARKER void holder_body(void) {
    truth_note("holder", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_EXPLICIT, holder_body));
    atomic_store(&holder_started, 1);
    truth_hold();
    truth_step();
}

/* Each construct in a function of its own, which its outlined body is named after. */
TRUTH_MARKER void generate_priorities(void) {
#pragma omp task priority(3)
    truth_step();
#pragma omp task priority(7)
    truth_step();
#pragma omp task
    truth_step();
}

TRUTH_MARKER void generate_writer(void) {
#pragma omp task depend(out : cell_a)
    truth_step();
}

TRUTH_MARKER void generate_reader(void) {
#pragma omp task depend(in : cell_a)
    truth_step();
}

TRUTH_MARKER void generate_updater(void) {
#pragma omp task depend(inout : cell_a) depend(in : cell_b)
    truth_step();
}

#ifndef WITHOUT_EVENTS
TRUTH_MARKER void generate_exclusive(void) {
#pragma omp task depend(mutexinoutset : cell_c)
    truth_step();
}
#endif

TRUTH_MARKER void generate_link(void) {
#pragma omp task depend(inout : cell_chain)
    truth_step();
}

TRUTH_MARKER void generate_orphan(void) {
#pragma omp task depend(inout : cell_orphan)
    truth_step();
}

TRUTH_MARKER void generate_orphans(void) {
#pragma omp task if (0)
    for (int i = 0; i < 3; i++)
        generate_orphan();
}

TRUTH_MARKER void generate_member(void) {
#pragma omp task
    truth_step();
}

TRUTH_MARKER void coordinator_body(void) {
#ifndef WITHOUT_EVENTS
    omp_event_handle_t detached, held;
#pragma omp task detach(detached)
    {
        detached_event = detached;
        atomic_store(&detached_ran, 1);
    }
    truth_wait_for(&detached_ran);
#pragma omp task detach(held)
    {
        holder_event = held;
        holder_body();
        TRUTH_KEEP_FRAME();
    }
#else
#pragma omp task
    {
        holder_body();
        TRUTH_KEEP_FRAME();
    }
#endif
    truth_wait_for(&holder_started);
    generate_priorities();
    generate_writer();
    generate_reader();
    generate_reader();
    generate_updater();
#ifndef WITHOUT_EVENTS
    generate_exclusive();
    generate_exclusive();
#endif
    const char *chain = getenv("QUEUED_CHAIN");
    for (long i = chain ? atol(chain) : 0; i > 0; i--)
        generate_link();
    if (getenv("QUEUED_ORPHANS"))
        generate_orphans();
#pragma omp taskgroup
    {
        generate_member();
#pragma omp taskgroup
        {
            generate_member();
            generate_member();
            truth_note("coordinator", TRUTH_PIPE, NULL, TRUTH_BODY(TRUTH_IMPLICIT, coordinator_body));
            truth_ready("tasks_queued", 2);
            truth_release();
        }
    }
#ifndef WITHOUT_EVENTS
    omp_fulfill_event(detached_event);
    omp_fulfill_event(holder_event);
#endif
    truth_step();
}

int main(void) {
    truth_init();
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            coordinator_body();
        TRUTH_KEEP_FRAME();
#pragma omp barrier
    }
    truth_done();
    return 0;
}
