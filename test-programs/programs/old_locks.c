/* Nestable locks as a program of GCC before 4.4 has them: smaller than today's, and asked for by their version.  The argument
 * says whether a program of C or of Fortran has them.  Prints what happened, and whether what lies behind a lock is as it was. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

typedef struct { int owner, count; } old_t;
#define FUNCTION(type, name, version)                                                                                                      \
    type name##_old(void *);                                                                                                               \
    __asm__(".symver " #name "_old, " #name "@" version)
FUNCTION(void, omp_init_nest_lock, "OMP_1.0");
FUNCTION(void, omp_set_nest_lock, "OMP_1.0");
FUNCTION(void, omp_unset_nest_lock, "OMP_1.0");
FUNCTION(int, omp_test_nest_lock, "OMP_1.0");
FUNCTION(void, omp_destroy_nest_lock, "OMP_1.0");
FUNCTION(void, omp_init_nest_lock_, "OMP_1.0");
FUNCTION(void, omp_set_nest_lock_, "OMP_1.0");
FUNCTION(void, omp_unset_nest_lock_, "OMP_1.0");
FUNCTION(int, omp_test_nest_lock_, "OMP_1.0");
FUNCTION(void, omp_destroy_nest_lock_, "OMP_1.0");

static struct { old_t lock; long behind[2]; } c = {{0, 0}, {111, 222}}, fortran = {{0, 0}, {111, 222}};

int main(int argc, char **argv)
{
    int is_fortran = argc > 1 && strcmp(argv[1], "fortran") == 0, sum = 0, tested = 0;
    omp_lock_t new;
    omp_init_lock(&new);
    if (is_fortran)
        omp_init_nest_lock__old(&fortran.lock);
    else
        omp_init_nest_lock_old(&c.lock);
#pragma omp parallel num_threads(3)
    for (int i = 0; i < 100; i++) {
        omp_set_lock(&new);
        omp_unset_lock(&new);
        if (is_fortran) {
            omp_set_nest_lock__old(&fortran.lock);
            tested += omp_test_nest_lock__old(&fortran.lock);
            omp_set_nest_lock__old(&fortran.lock);
            sum += fortran.lock.count;
            for (int n = 0; n < 3; n++)
                omp_unset_nest_lock__old(&fortran.lock);
        } else {
            omp_set_nest_lock_old(&c.lock);
            tested += omp_test_nest_lock_old(&c.lock);
            omp_set_nest_lock_old(&c.lock);
            sum += c.lock.count;
            for (int n = 0; n < 3; n++)
                omp_unset_nest_lock_old(&c.lock);
        }
    }
    if (is_fortran)
        omp_destroy_nest_lock__old(&fortran.lock);
    else
        omp_destroy_nest_lock_old(&c.lock);
    omp_destroy_lock(&new);
    printf("sum %d, tested %d\n", sum, tested);
    printf("behind %ld %ld %ld %ld\n", c.behind[0], c.behind[1], fortran.behind[0], fortran.behind[1]);
    return 0;
}
