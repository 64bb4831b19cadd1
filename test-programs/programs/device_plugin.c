/* A plugin of libgomp for GPUs (libgomp-plugin.h of GCC) in which a thread plays the device, so that a host waits for a device where
 * there is none.  libgomp looks for its plugins by name, where LD_LIBRARY_PATH says.
 *
 * DEVICE_RUNS says how many target regions the device executes before it hangs.  A host waits for it as a GPU's plugin does: in a
 * function with a name of CUDA's driver, but for target regions that are tasks. */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What a plugin can do: it has the host's memory, needs no image of the program, and runs target regions. */
enum { SHARED_MEMORY = 1, NATIVE_CODE = 2, OPENMP = 4 };
enum { NVIDIA = 5 };

extern void GOMP_PLUGIN_target_task_completion(void *task);

struct region {
    void (*function)(void *);
    void *variables;
    /* Of a task. */
    void *task;
    sem_t done;
};

static int left;

static void *execute(void *of) {
    struct region *region = of;
    static sem_t never;
    while (__atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST) <= 0)
        sem_wait(&never);
    region->function(region->variables);
    if (region->task)
        GOMP_PLUGIN_target_task_completion(region->task);
    sem_post(&region->done);
    return NULL;
}

static struct region *begin(void *function, void *variables, void *task) {
    struct region *region = malloc(sizeof *region);
    pthread_t thread;
    *region = (struct region){.function = (void (*)(void *))function, .variables = variables, .task = task};
    sem_init(&region->done, 0, 0);
    if (pthread_create(&thread, NULL, execute, region) != 0)
        abort();
    pthread_detach(thread);
    return region;
}

/* No jump to the C library may take its frame off the stack. */
__attribute__((noinline)) int cuCtxSynchronize(struct region *region) {
    while (sem_wait(&region->done) != 0)
        ;
    return 0;
}

unsigned GOMP_OFFLOAD_version(void) { return DEVICE_PLUGIN_VERSION; }
const char *GOMP_OFFLOAD_get_name(void) { return "nvptx"; }
unsigned GOMP_OFFLOAD_get_caps(void) { return SHARED_MEMORY | NATIVE_CODE | OPENMP; }
int GOMP_OFFLOAD_get_type(void) { return NVIDIA; }
int GOMP_OFFLOAD_get_num_devices(void) { return 1; }
bool GOMP_OFFLOAD_init_device(int device) {
    const char *runs = getenv("DEVICE_RUNS");
    left = runs ? atoi(runs) : 0;
    return device == 0;
}
bool GOMP_OFFLOAD_fini_device(int device) { return device == 0; }
int GOMP_OFFLOAD_load_image(void) { return 0; }
bool GOMP_OFFLOAD_unload_image(void) { return true; }
/* With the host's memory none of these is called. */
void *GOMP_OFFLOAD_alloc(void) { return NULL; }
bool GOMP_OFFLOAD_free(void) { return true; }
bool GOMP_OFFLOAD_dev2host(void) { return false; }
bool GOMP_OFFLOAD_host2dev(void) { return false; }
bool GOMP_OFFLOAD_dev2dev(void) { return false; }
bool GOMP_OFFLOAD_can_run(void *function) { return function != NULL; }

void GOMP_OFFLOAD_run(int device, void *function, void *variables, void **arguments) {
    (void)device, (void)arguments;
    struct region *region = begin(function, variables, NULL);
    cuCtxSynchronize(region);
    free(region);
}

void GOMP_OFFLOAD_async_run(int device, void *function, void *variables, void **arguments, void *task) {
    (void)device, (void)arguments;
    begin(function, variables, task);
}
