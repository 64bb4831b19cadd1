/* Two threads of the program's own have a team each; the first thread waits for
 * them to end, which they never do. */
#include "expect.h"

static atomic_int other_ran;

static void *team_thread(void *cells) {
    volatile int *cell = cells;
    for (;;) {
#pragma omp parallel for num_threads(3)
        for (int i = 0; i < 3000; i++)
            cell[i % 64] = i;
        if (cell[64] == 0) {
            atomic_store(&other_ran, 1);
        } else {
            truth_wait_for(&other_ran);
            truth_round("pthread_pools", 1);
        }
    }
    return NULL;
}

int main(void) {
    static int cells[2][65] = {[1] = {[64] = 1}};
    pthread_t threads[2];
    truth_init_for(TRUTH_HEALTHY_SECONDS);
    truth_note_with("joiner", TRUTH_JOIN, NULL, TRUTH_NO_BODY, 0);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, team_thread, cells[i]) != 0)
            truth_fail("pthread_create");
    return pthread_join(threads[0], NULL);
}
