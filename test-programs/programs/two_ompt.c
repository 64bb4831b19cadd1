/* Two runtimes with OMPT in one process, as where an extension brings its own beside the program's. Both are opened by name, each has a
   region of two threads, the first one first. Says "ready" and waits until it may go on.

   usage: two_ompt FIRST SECOND */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void outlined(void *);
typedef void parallel_call(outlined *, void *, unsigned, unsigned);

static int arrived;

static void in_region(void *unused)
{
    (void)unused;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
}

static void *function(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: two_ompt FIRST SECOND\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        /* The second is not to use the functions of the first, nor of the one that this program is linked with. */
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
        arrived = 0;
        /* libomp and libiomp5 have GCC's entry points too. */
        ((parallel_call *)function(library, "GOMP_parallel"))(in_region, NULL, 2, 0);
        printf("region %d\n", arrived);
    }
    printf("ready\n");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    printf("done\n");
    return 0;
}
