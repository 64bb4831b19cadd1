/* A program that offloads to the processor by OpenCL, and says what it has done, as `offloaded` does.
 *
 *   op KIND BYTES ADDRESS      an operation on data, in the order in which they are done; the address is that of the data
 *                              on the host, 0 for none
 *   target KIND                a construct begins; KIND is that of ompt_target_t
 *   submit TEAMS               within it
 *   end                        it is over
 *   devices N                  how many there are
 *   processors N               of the host
 *   wrong N                    values that did not come back as they should, and calls that failed
 *
 * and `ready`.  One byte on standard input lets it end.
 *
 * It needs no compiler for devices: it calls the library that offloads as compilers do, and its kernel is SPIR-V. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TARGET = 1, ENTER = 2, EXIT = 3, UPDATE = 4 };
enum { ALLOC = 1, TO = 2, FROM = 3 };
/* Bits of the kind of a mapping. */
enum { MAP_TO = 1, MAP_FROM = 2 };

/* What compilers tell the library: kernels, images with code for devices, and both together. */
struct entry {
    void *address;
    const char *name;
    size_t size;
    int32_t flags, reserved;
};
struct image {
    void *start, *end;
    struct entry *first, *last;
};
struct binary {
    int32_t count;
    struct image *images;
    struct entry *first, *last;
};
void __tgt_register_lib(struct binary *);
void __tgt_unregister_lib(struct binary *);
int __tgt_target(int64_t device, void *kernel, int32_t count, void **bases, void **begins, int64_t *sizes, int64_t *kinds);
void __tgt_target_data_begin(int64_t device, int32_t count, void **bases, void **begins, int64_t *sizes, int64_t *kinds);
void __tgt_target_data_end(int64_t device, int32_t count, void **bases, void **begins, int64_t *sizes, int64_t *kinds);
void __tgt_target_data_update(int64_t device, int32_t count, void **bases, void **begins, int64_t *sizes, int64_t *kinds);

/* An instruction of SPIR-V: how many words it has, and which it is. */
#define SPIRV(words, operation) ((uint32_t)(words) << 16 | (operation))
enum { CAPABILITY = 17, MEMORY_MODEL = 14, ENTRY_POINT = 15, TYPE_VOID = 19, TYPE_FUNCTION = 33, FUNCTION = 54 };
enum { FUNCTION_END = 56, LABEL = 248, RETURN = 253 };
enum { ADDRESSES = 4, LINKAGE = 5, KERNEL = 6, PHYSICAL_64 = 2, OPENCL = 2 };
/* Numbers of what the module defines, and one more than the last. */
enum { VOID = 1, NOTHING, EMPTY, BODY, BOUND };

/* A kernel `empty` that does nothing. */
static uint32_t module[] = {
    0x07230203, 0x00010000, 0, BOUND, 0,
    SPIRV(2, CAPABILITY), ADDRESSES,
    SPIRV(2, CAPABILITY), LINKAGE,
    SPIRV(2, CAPABILITY), KERNEL,
    SPIRV(3, MEMORY_MODEL), PHYSICAL_64, OPENCL,
    SPIRV(5, ENTRY_POINT), KERNEL, EMPTY, 'e' | 'm' << 8 | 'p' << 16 | 't' << 24, 'y',
    SPIRV(2, TYPE_VOID), VOID,
    SPIRV(3, TYPE_FUNCTION), NOTHING, VOID,
    SPIRV(5, FUNCTION), VOID, EMPTY, 0, NOTHING,
    SPIRV(2, LABEL), BODY,
    SPIRV(1, RETURN),
    SPIRV(1, FUNCTION_END),
};
static char empty;
static struct entry entries[] = {{&empty, "empty", 0, 0, 0}};
static struct image image = {module, module + sizeof module / sizeof *module, entries, entries + 1};
static struct binary binary = {1, &image, entries, entries + 1};

static int there[1000], back[1000], mapped[100];
static int wrong;

static void say_op(int kind, size_t bytes, const void *host) {
    printf("op %d %zu %lx\n", kind, bytes, (unsigned long)host);
}

static void copies(void) {
    const int device = 0, host = omp_get_initial_device();
    void *memory = omp_target_alloc(sizeof there, device);
    say_op(ALLOC, sizeof there, NULL);
    for (int i = 0; i < 1000; i++)
        there[i] = 3 * i;
    wrong += omp_target_memcpy(memory, there, sizeof there, 0, 0, device, host) != 0;
    say_op(TO, sizeof there, there);
    wrong += omp_target_memcpy(back, memory, sizeof there, 0, 0, host, device) != 0;
    say_op(FROM, sizeof there, back);
    wrong += memcmp(there, back, sizeof there) != 0;
    omp_target_free(memory, device);
}

static void constructs(void) {
    void *address = mapped;
    int64_t size = sizeof mapped, both = MAP_TO | MAP_FROM, to = MAP_TO;
    printf("target %d\n", ENTER);
    __tgt_target_data_begin(0, 1, &address, &address, &size, &both);
    say_op(ALLOC, sizeof mapped, NULL);
    say_op(TO, sizeof mapped, mapped);
    printf("end\ntarget %d\n", UPDATE);
    __tgt_target_data_update(0, 1, &address, &address, &size, &to);
    say_op(TO, sizeof mapped, mapped);
    printf("end\ntarget %d\nsubmit 1\n", TARGET);
    wrong += __tgt_target(0, &empty, 0, NULL, NULL, NULL, NULL) != 0;
    printf("end\ntarget %d\n", EXIT);
    __tgt_target_data_end(0, 1, &address, &address, &size, &both);
    say_op(FROM, sizeof mapped, mapped);
    printf("end\n");
}

int main(void) {
    __tgt_register_lib(&binary);
    printf("devices %d\n", omp_get_num_devices());
    printf("processors %d\n", omp_get_num_procs());
    if (omp_get_num_devices() > 0) {
        copies();
        constructs();
    }
    printf("wrong %d\nready\n", wrong);
    fflush(stdout);
    getchar();
    __tgt_unregister_lib(&binary);
    printf("done\n");
    return 0;
}
