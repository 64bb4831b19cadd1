/* A library that uses OpenMP. */
#include <omp.h>

int user_threads(void) { return omp_get_max_threads(); }
