/* One source for both kinds of locks: omp_lock_t, or with -DNEST nestable
 * locks, of which every runtime records the owner. */
#ifndef LOCK_KIND_H
#define LOCK_KIND_H

#include "expect.h"

#ifdef NEST
typedef omp_nest_lock_t some_lock;
#define LOCK_WAIT TRUTH_NEST_LOCK
#define LOCK_KIND "nest_lock"
#define lock_init omp_init_nest_lock
#define lock_set omp_set_nest_lock
#define lock_unset omp_unset_nest_lock
#else
typedef omp_lock_t some_lock;
#define LOCK_WAIT TRUTH_LOCK
#define LOCK_KIND "lock"
#define lock_init omp_init_lock
#define lock_set omp_set_lock
#define lock_unset omp_unset_lock
#endif

#endif
