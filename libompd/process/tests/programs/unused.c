/* Three mappings of which only the pages 0, 40 and 41 are used: private memory, shared memory, and a file. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 64 };

static size_t page;

static volatile char *map(int flags, int file) {
    volatile char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED)
        _exit(1);
    /* A huge page would be used as a whole.  A kernel without huge pages has no such advice. */
    (void)madvise((void *)memory, PAGES * page, MADV_NOHUGEPAGE);
    memory[0] = memory[40 * page] = memory[41 * page] = 1;
    return memory;
}

int main(void) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    int file = memfd_create("file", 0);
    if (file < 0 || ftruncate(file, (off_t)(PAGES * page)) != 0)
        return 1;
    printf("known %p %zu\n", (void *)map(MAP_PRIVATE | MAP_ANONYMOUS, -1), page);
    printf("constant %p\n", (void *)map(MAP_SHARED | MAP_ANONYMOUS, -1));
    printf("word %p\nready\n", (void *)map(MAP_PRIVATE, file));
    fflush(stdout);
    pause();
    return 0;
}
