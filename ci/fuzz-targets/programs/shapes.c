// A library with the names of libgomp and next to none of its code: structs for the extraction of DWARF, accessors for
// the decoder.  Needs no header and no other library.
typedef _Bool bool_t;
typedef struct bar { unsigned total, generation; unsigned awaited __attribute__ ((aligned (64))); unsigned awaited_final; } bar_t;

struct gomp_team;
struct gomp_task_icv { unsigned long nthreads_var; int run_sched_var; int run_sched_chunk_size; unsigned thread_limit_var;
                       bool_t dyn_var; unsigned char max_active_levels_var; char bind_var; };
struct state { struct gomp_team *team; unsigned team_id; unsigned level, active_level; };
struct node { struct gomp_task *task; struct node *next, *prev; bool_t in_use; };
struct gomp_task { struct gomp_task *parent; struct { void *first; } children; struct node pnode[3]; struct gomp_task_icv icv;
                   void (*fn) (void *); enum { implicit, undeferred, waiting, tied } kind; unsigned final_task : 1, other : 5;
                   unsigned long far : 40; };
struct gomp_team { unsigned nthreads; union { struct { void *root; } t; struct node l; } queue; struct state prev_ts;
                   bar_t barrier; int ordered[4][2]; struct gomp_task implicit_task[]; };
struct gomp_thread { void (*fn) (void *); struct state ts; struct gomp_task *task; const volatile int release; };

__thread struct gomp_thread self;
struct gomp_task_icv gomp_global_icv = { 1, 2, 3, 4, 1, 5, 0 };
unsigned long gomp_max_active_levels_var = 7, table[32];

#define EXPORT __attribute__ ((visibility ("default"), noinline))
EXPORT int omp_get_thread_num (void) { return self.ts.team_id; }
EXPORT int omp_get_num_threads (void) { return self.ts.team ? self.ts.team->nthreads : 1; }
EXPORT int omp_get_level (void) { return self.ts.level; }
EXPORT int omp_in_final (void) { return self.task && self.task->final_task; }
EXPORT int omp_get_dynamic (void) { return (self.task ? &self.task->icv : &gomp_global_icv)->dyn_var; }
EXPORT int omp_get_ancestor_thread_num (int level)
{
  struct state *ts = &self.ts;
  if (level < 0 || level > (int) ts->level)
    return -1;
  for (level = ts->level - level; level > 0; --level)
    ts = &ts->team->prev_ts;
  return ts->team_id;
}
EXPORT void GOMP_barrier (void)
{
  struct gomp_team *team = self.ts.team;
  if (team && __sync_sub_and_fetch (&team->barrier.awaited, 1) == 0)
    team->barrier.generation += 8;
}
EXPORT void GOMP_critical_start (void)
{
  static int lock;
  while (!__sync_bool_compare_and_swap (&lock, 0, 1))
    ;
}
EXPORT void fill (unsigned n, unsigned long *to)
{
  for (unsigned i = 0; i < 32; i++)
    table[i] = 8 * i + 1;
  switch (n)
    {
    case 0: *to = 5; break;
    case 1: *to = table[3]; break;
    case 2: GOMP_barrier (); break;
    case 3: *to = *to * 24 >> 3; break;
    case 4: to[n] = to[-1] ^ 77; break;
    default: *to = -1;
    }
}
