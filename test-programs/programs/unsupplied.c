/* A member of a team works on a stack in a page that somebody else is to supply
 * (userfaultfd(2)), and nobody does.  Says "ready" before it touches the page, or
 * "refused" if the kernel does not allow it.  It runs until it is killed. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <omp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 1 << 16 };

static void work(void) { pause(); }

/* Pages that nobody supplies; NULL if the kernel does not allow it. */
static void *unsupplied(void) {
    struct uffdio_api api = {.api = UFFD_API};
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
        return NULL;
    void *pages = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register area = {.range = {(unsigned long)pages, SIZE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return pages == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &area) ? NULL : pages;
}

int main(void) {
    void *pages = unsupplied();
    if (!pages) {
        puts("refused");
        return 0;
    }
    /* makecontext() would touch the page itself */
    char *top = (char *)pages + SIZE - 64;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
            puts("ready");
            fflush(stdout);
#if defined(__x86_64__)
            __asm__ volatile("mov %0, %%rsp; call *%1" : : "r"(top), "r"(work) : "memory");
#else
            (void)top, work();
#endif
        }
#pragma omp barrier
    }
    return 0;
}
