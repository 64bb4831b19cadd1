// Two members take a std::mutex and a lock of OpenMP in opposite order, and each waits for the other's.
#include "truth_calls.h"

#include <mutex>
#include <omp.h>

namespace {

enum Flag { MUTEX_HELD, LOCK_HELD };

std::mutex mutex;
omp_lock_t lock;

void mutex_first() {
    std::lock_guard<std::mutex> guard(mutex);
    hang_raise(MUTEX_HELD);
    hang_await(LOCK_HELD);
    hang_note("holder of the mutex", "lock", &lock);
    omp_set_lock(&lock);
}

void lock_first() {
    omp_set_lock(&lock);
    hang_note_lock("a", "lock", &lock);
    hang_raise(LOCK_HELD);
    hang_await(MUTEX_HELD);
    hang_note("holder of a", "mutex", nullptr);
    hang_tell("mutex_and_lock_cpp", 2);
    std::lock_guard<std::mutex> guard(mutex);
}

} // namespace

int main() {
    hang_init();
    hang_expect("deadlock", "lock_cycle", "closed_waits", "holder of the mutex,holder of a", "a");
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            mutex_first();
        else
            lock_first();
    }
}
