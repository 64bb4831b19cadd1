/* Between stacks_jit.c and the code that it loads. */
#include "truth_stack.h"

typedef void visitor(truth_mark outer, int number);

/* Opens a region of so many threads, each of which calls VISIT with its number. */
typedef void visit_function(truth_mark outer, int threads, visitor *visit);
/* Holds the thread in a task. */
typedef void task_function(truth_mark outer);

visit_function jit_visit;
task_function jit_task;
