// Waits in a function that knows locks by variables and pointers, after saying "ready".
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct cell {
    double value;
    omp_lock_t lock;
};

struct grid {
    int size;
    struct cell corner;
    struct cell row[3];
    omp_nest_lock_t nest;
    pthread_mutex_t mutex;
    struct grid *next;
    struct cell *cells;
    void *opaque;
};

omp_lock_t alone;
omp_lock_t several[4];
static omp_lock_t table[2][3];
static struct grid grid;
struct grid *heap;
static omp_lock_t *pointed;
static int number;
static volatile int sink;

__attribute__((noinline)) static void hold(void) {
    char byte;
    if (write(1, "ready\n", 6) != 6) abort();
    while (read(0, &byte, 1) > 0) {}
    sink++;
}

// The addresses of what has a name, and of what has none.
const void *volatile places[32];

__attribute__((noinline)) static void work(struct grid *of) {
    omp_lock_t local;
    struct cell cell[2];
    places[10] = &local;
    places[11] = &cell[1].lock;
    places[12] = &of->row[2].lock;
    hold();
    sink += of->size + ((char *)&local)[0] + (int)cell[0].value;
}

int main(void) {
    static struct grid inner;
    heap = calloc(1, sizeof *heap);
    heap->next = calloc(1, sizeof *heap);
    heap->cells = calloc(5, sizeof *heap->cells);
    heap->opaque = calloc(1, sizeof *heap);
    pointed = calloc(1, sizeof *pointed);
    places[0] = &alone;
    places[1] = &several[2];
    places[2] = &table[1][2];
    places[3] = &grid.corner.lock;
    places[4] = &grid.row[1].lock;
    places[5] = &grid.nest;
    places[6] = &grid.mutex;
    places[7] = &heap->next->corner.lock;
    places[8] = &heap->cells[3].lock;
    places[9] = pointed;
    places[13] = &heap->corner.lock;
    places[14] = &heap->row[0].lock;
    places[15] = &heap->cells[0].lock;
    // What is no lock, lies in none, or is reached by no type.
    places[16] = &number;
    places[17] = (char *)&grid.corner.lock + 1;
    places[18] = &grid.corner.value;
    places[19] = &((struct grid *)heap->opaque)->corner.lock;
    places[20] = &heap->cells[5].lock;
    // What libomp writes into locks: their numbers. Two have the same.
    *(int *)&several[1] = 7;
    *(int *)&heap->corner.lock = 8;
    *(int *)&heap->cells[2].lock = 9;
    *(int *)&table[0][1] = 10;
    *(int *)&grid.row[0].lock = 10;
    number = 11;
    inner.size = 1;
    work(&inner);
    return sink == 0;
}
