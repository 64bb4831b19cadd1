// Names of C++ in logical stacks: namespaces, classes, templates, lambdas, and
// the block that handles an exception.
#include "truth_stack.h"

#include <omp.h>
#include <stdexcept>

namespace {

const int threads = 8;

truth_mark named(truth_mark outer, const char *function, int line) {
    return truth_frame(outer, __FILE__, function, line, TRUTH_FRAME);
}

truth_mark opens(truth_mark outer, const char *construct, const char *function, int line) {
    return truth_opens(outer, __FILE__, function, line, TRUTH_FRAME, construct);
}

} // namespace

// The frame of the function of this name, at this line or so many further on.
#define CALL_IN(OUTER, NAME) named((OUTER), NAME, __LINE__)
#define AT_IN(OUTER, NAME, LINES_ON) named((OUTER), NAME, __LINE__ + (LINES_ON))
#define OPENS_IN(OUTER, CONSTRUCT, NAME, LINES_ON) opens((OUTER), CONSTRUCT, NAME, __LINE__ + (LINES_ON))

namespace solver {

namespace {

FRAME void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT_IN(outer, "solver::(anonymous namespace)::hold", 1));
    truth_stack_hold();
    truth_stack_step();
}

} // namespace

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT_IN(outer, "solver::coordinate", 1));
    truth_stack_ready("stacks_cpp", threads);
    truth_stack_release();
    truth_stack_step();
}

template <typename T> class Grid {
public:
    explicit Grid(T step) : step_(step) {}
    void relax(truth_mark outer, int sweeps) const;
    void split(truth_mark outer);

private:
    T step_;
};

template <typename T> FRAME void Grid<T>::relax(truth_mark outer, int sweeps) const {
    hold(CALL_IN(outer, "solver::Grid<double>::relax"), sweeps > step_ ? "method of a template" : "");
    KEEP();
}

template <typename T> FRAME void Grid<T>::split(truth_mark outer) {
    truth_mark opened = OPENS_IN(outer, "parallel", "solver::Grid<double>::split", 1);
#pragma omp parallel num_threads(2)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            relax(CALL_IN(in, "solver::Grid<double>::split"), 9);
        else
            hold(CALL_IN(in, "solver::Grid<double>::split"), "region in a method of a template");
        truth_leave(in);
    }
    KEEP();
}

// What calls a function object.
template <typename F> FRAME void apply(truth_mark outer, F function) {
    function(CALL_IN(outer, "solver::apply<{lambda}>"), 1);
    KEEP();
}

FRAME static void in_lambda(truth_mark outer) {
    auto body = [](truth_mark from, int number) {
        hold(CALL_IN(from, "solver::in_lambda::{lambda}"), number == 1 ? "lambda" : "");
        KEEP();
    };
    apply(CALL_IN(outer, "solver::in_lambda"), body);
    KEEP();
}

FRAME static void region_in_lambda(truth_mark outer) {
    auto body = [](truth_mark from, int number) {
        truth_mark opened = OPENS_IN(from, "parallel", "solver::region_in_lambda::{lambda}", 1);
#pragma omp parallel num_threads(2)
        {
            truth_mark in = truth_enter(opened);
            hold(CALL_IN(in, "solver::region_in_lambda::{lambda}"), number == 1 ? "region in a lambda" : "");
            truth_leave(in);
        }
        KEEP();
    };
    apply(CALL_IN(outer, "solver::region_in_lambda"), body);
    KEEP();
}

class Task {
public:
    FRAME static void run(truth_mark outer);
};

FRAME void Task::run(truth_mark outer) {
    truth_mark opened = OPENS_IN(outer, "task", "solver::Task::run", 1);
#pragma omp task if (0)
    {
        truth_mark in = truth_enter(opened);
        hold(CALL_IN(in, "solver::Task::run"), "task in a static method");
        truth_leave(in);
    }
    KEEP();
}

FRAME static void fail() { throw std::runtime_error("as it should"); }

FRAME static void handle(truth_mark outer) {
    try {
        fail();
    } catch (const std::runtime_error &) {
        // optimised code has this in another part of the executable
        hold(CALL_IN(outer, "solver::handle"), "handler of an exception");
        KEEP();
    }
}

} // namespace solver

FRAME static void run(truth_mark outer) {
    truth_mark opened = OPENS_IN(outer, "parallel", "run", 1);
#pragma omp parallel num_threads(6)
    {
        truth_mark in = truth_enter(opened);
        if (omp_get_thread_num() == 0)
            solver::coordinate(CALL_IN(in, "run"));
        if (omp_get_thread_num() == 1)
            solver::Grid<double>(0.5).split(CALL_IN(in, "run"));
        if (omp_get_thread_num() == 2)
            solver::in_lambda(CALL_IN(in, "run"));
        if (omp_get_thread_num() == 3)
            solver::region_in_lambda(CALL_IN(in, "run"));
        if (omp_get_thread_num() == 4)
            solver::Task::run(CALL_IN(in, "run"));
        if (omp_get_thread_num() == 5)
            solver::handle(CALL_IN(in, "run"));
        truth_leave(in);
    }
    KEEP();
}

int main() {
    truth_stack_init();
    omp_set_max_active_levels(4);
    run(CALL_IN(truth_thread_base(), "main"));
    truth_stack_done();
    return 0;
}
