// A std::thread, which belongs to no team, and a member of one take two locks in opposite order, by guards that would
// give them back.
//   -DNEST  nestable locks
#include "truth_calls.h"

#include <omp.h>
#include <thread>

namespace {

#ifdef NEST
constexpr const char *kind = "nest_lock";
struct Lock {
    omp_nest_lock_t word;
    Lock() { omp_init_nest_lock(&word); }
    ~Lock() { omp_destroy_nest_lock(&word); }
    void set() { omp_set_nest_lock(&word); }
    void unset() { omp_unset_nest_lock(&word); }
};
#else
constexpr const char *kind = "lock";
struct Lock {
    omp_lock_t word;
    Lock() { omp_init_lock(&word); }
    ~Lock() { omp_destroy_lock(&word); }
    void set() { omp_set_lock(&word); }
    void unset() { omp_unset_lock(&word); }
};
#endif

class Guard {
  public:
    explicit Guard(Lock &lock) : lock(lock) { lock.set(); }
    ~Guard() { lock.unset(); }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

  private:
    Lock &lock;
};

enum Flag { A_HELD, B_HELD };

void outside(Lock &a, Lock &b) {
    Guard first(a);
    hang_note_lock("a", kind, &a.word);
    hang_raise(A_HELD);
    hang_await(B_HELD);
    hang_note("outsider", kind, &b.word);
    Guard second(b);
}

void inside(Lock &a, Lock &b) {
    Guard first(b);
    hang_note_lock("b", kind, &b.word);
    hang_raise(B_HELD);
    hang_await(A_HELD);
    hang_note("member", kind, &a.word);
    hang_tell("lock_cycle_cpp", 3);
    Guard second(a);
}

} // namespace

int main() {
    hang_init();
    hang_expect("deadlock", "lock_cycle", "closed_waits", "outsider,member", "a,b");
    Lock a, b;
    std::thread outsider([&] { outside(a, b); });
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            inside(a, b);
        else
            hang_note("bystander", "barrier", nullptr);
    }
    outsider.join();
}
