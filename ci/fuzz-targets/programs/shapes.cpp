// As shapes.c, with the names of LLVM's runtime and what C++ adds: wrappers, bases, namespaces, static members.
namespace base {
template <class T> struct atomic { T value; T load () const { return value; } };
struct padding { alignas (64) char bytes[64]; };
}
struct kmp_tasking_flags { unsigned tiedness : 1, final : 1, merged_if0 : 1; unsigned tasktype : 1; unsigned long long started : 3; };
typedef kmp_tasking_flags kmp_tasking_flags_t;
union kmp_team;
struct kmp_taskdata { int td_task_id; kmp_tasking_flags_t td_flags; union kmp_team *td_team; kmp_taskdata *td_parent; int td_level;
                      base::atomic<int> td_incomplete_child_tasks; static int count; };
typedef struct kmp_taskdata kmp_taskdata_t;
struct kmp_desc_base { int ds_tid, ds_gtid; void *ds_thread; };
union kmp_desc { struct kmp_desc_base ds; double align; };
struct kmp_base_info : base::padding { kmp_desc th_info; union kmp_team *th_team; void *th_root; volatile int th_spin_here;
                                       kmp_taskdata_t *th_current_task; };
typedef struct kmp_base_team { struct { int t_nproc; }; int t_serialized, t_level, t_active_level; kmp_base_info **t_threads;
                               int t_matrix[3][5]; } kmp_base_team_t;
union kmp_team { kmp_base_team_t t; base::padding pad; };
int kmp_taskdata::count;
kmp_base_info **__kmp_threads;
int __kmp_threads_capacity = 32, __kmp_all_nth;
extern "C" int __kmpc_global_num_threads (void *) { return __kmp_all_nth; }
extern "C" int __kmpc_fork_call (int gtid)
{
  kmp_base_info *thread = __kmp_threads[gtid];
  return thread->th_team->t.t_nproc + thread->th_current_task->td_flags.final + thread->th_info.ds.ds_tid + kmp_taskdata::count;
}
