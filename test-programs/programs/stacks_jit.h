/* Between stacks_jit.c and the code that it loads. */
#include "stacks_visit.h"

/* Holds the thread in a task. */
typedef void task_function(truth_mark outer);

visit_function jit_visit;
task_function jit_task;
