// Threads wait for locks that no symbol names: in frames, in allocated memory, in containers. The role of each
// is what its source calls the lock.
#include "truth_calls.h"

#include <memory>
#include <mutex>
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <thread>
#include <vector>

struct Lock {
    omp_lock_t word;
    Lock() { omp_init_lock(&word); }
};

struct Cell {
    int used = 1;
    Lock lock;
    std::mutex mutex;
};

struct Simulation {
    double time = 0;
    Cell *cell = new Cell;
    std::vector<Lock> locks = std::vector<Lock>(5);
    std::unique_ptr<Cell> second = std::unique_ptr<Cell>(new Cell);
};

struct Grid {
    int size;
    omp_lock_t lock;
};

struct Grid *grid;
static Cell *cells[3];
// What is no pointer is not followed.
static uintptr_t hidden;

enum { WAITERS = 9 };
enum Flag { HELD };

#define KEPT __attribute__((noinline))
#define WAITS(ROLE, LOCK)                                                                                              \
    do {                                                                                                               \
        hang_note(ROLE, "lock", &(LOCK));                                                                              \
        omp_set_lock(&(LOCK));                                                                                         \
    } while (0)

KEPT static Cell *concealed(int index) { return reinterpret_cast<Cell *>(~hidden) + index; }

// Two threads execute it with different cells, which are reached from here alone.
KEPT static void alone(Cell *own) {
    WAITS("alone::own->lock.word", own->lock.word);
    __asm__ volatile("" : : "r"(own) : "memory");
}

KEPT static void hold(omp_lock_t *mine, Simulation &simulation) {
    omp_set_lock(mine);
    omp_set_lock(&grid->lock);
    omp_set_lock(&simulation.cell->lock.word);
    omp_set_lock(&simulation.locks[3].word);
    omp_set_lock(&simulation.second->lock.word);
    omp_set_lock(&cells[2]->lock.word);
    cells[1]->mutex.lock();
    for (int index = 0; index < 2; index++)
        omp_set_lock(&concealed(index)->lock.word);
    hang_raise(HELD);
}

KEPT static void wait(int member, omp_lock_t *mine, Simulation &simulation) {
    hang_await(HELD);
    switch (member) {
    case 1:
        WAITS("main::mine", *mine);
        break;
    case 2:
        WAITS("grid->lock", grid->lock);
        break;
    case 3:
        WAITS("main::simulation.cell->lock.word", simulation.cell->lock.word);
        break;
    case 4:
        WAITS("main::simulation.locks[3].word", simulation.locks[3].word);
        break;
    case 5:
        WAITS("main::simulation.second->lock.word", simulation.second->lock.word);
        break;
    case 6:
        WAITS("cells[2]->lock.word", cells[2]->lock.word);
        break;
    case 7:
        hang_note("cells[1]->mutex", "mutex", &cells[1]->mutex);
        cells[1]->mutex.lock();
        break;
    default:
        alone(concealed(member - 8));
    }
    __asm__ volatile("" : : "r"(mine), "r"(&simulation) : "memory");
}

int main() {
    hang_init();
    hang_expect("deadlock", "missing_member", "missing_member", "holder", "");
    // libomp numbers locks, and this one gets 0, as variables have that nobody has written.
    static omp_lock_t zero;
    omp_init_lock(&zero);
    omp_lock_t mine;
    omp_init_lock(&mine);
    Simulation simulation;
    grid = static_cast<Grid *>(malloc(sizeof *grid));
    omp_init_lock(&grid->lock);
    for (Cell *&cell : cells)
        cell = new Cell;
    hidden = ~reinterpret_cast<uintptr_t>(new Cell[2]);
#pragma omp parallel num_threads(WAITERS + 1)
    {
        int member = omp_get_thread_num();
        if (member == 0) {
            hold(&mine, simulation);
            hang_note("holder", "barrier", nullptr);
            hang_tell("lock_objects", WAITERS + 1);
        } else {
            wait(member, &mine, simulation);
        }
#pragma omp barrier
    }
    return simulation.time > 1;
}
