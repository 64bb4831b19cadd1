/* What the clients share: a debugger that reads a stopped process through /proc/PID/mem, or what is in a core, and knows symbols
 * from a list it is given. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include OMP_TOOLS_H

/* `OMPD_THREAD_ID_PTHREAD` and `_LWP` of ompd-types.h, which nobody ships. */
enum { thread_id_pthread = 0, thread_id_lwp = 1 };

/* With segments it is a core, without a process. */
struct _ompd_aspace_cont { int memory; size_t count; Elf64_Phdr *segments; };
struct _ompd_thread_cont { unsigned long id; };

static struct symbol { char name[256]; uint64_t address; } *symbols;
static size_t symbol_count;
static long allocated;

/* What a debugger may offer beyond OMPD (docs/libompd.md): here, that the process has not run. */
enum { extra_kind = 1071707 };
static const ompd_seg_t extra_stop = 0x6f6d70640002;
static int tells_of_stops;

/* Calls of callbacks, by what they are for; and the bytes read. */
static struct counts { long reads, symbols, contexts, conversions, memory, bytes; } counts;

static ompd_rc_t alloc_memory(ompd_size_t nbytes, void **ptr) {
    counts.memory++;
    *ptr = malloc(nbytes);
    allocated += *ptr != NULL;
    return *ptr != NULL ? ompd_rc_ok : ompd_rc_nomem;
}

static ompd_rc_t free_memory(void *ptr) {
    counts.memory++;
    allocated -= ptr != NULL;
    free(ptr);
    return ompd_rc_ok;
}

static ompd_rc_t print_string(const char *string, int category) {
    return fprintf(stderr, "%d %s\n", category, string) < 0 ? ompd_rc_error : ompd_rc_ok;
}

static ompd_rc_t sizeof_type(ompd_address_space_context_t *context, ompd_device_type_sizes_t *sizes) {
    ompd_device_type_sizes_t own = {sizeof(char), sizeof(short), sizeof(int), sizeof(long), sizeof(long long),
                                    sizeof(void *)};
    counts.conversions++;
    *sizes = own;
    return context != NULL ? ompd_rc_ok : ompd_rc_bad_input;
}

static ompd_rc_t symbol_addr(ompd_address_space_context_t *context, ompd_thread_context_t *thread, const char *name,
                             ompd_address_t *address, const char *file) {
    (void)file;
    counts.symbols++;
    char own[300];
    if (thread != NULL) {
        /* Thread-local ones are in the list once for each thread. */
        snprintf(own, sizeof own, "%s@%lx", name, thread->id);
        name = own;
    }
    for (size_t n = 0; context != NULL && n < symbol_count; n++) {
        if (strcmp(symbols[n].name, name) == 0) {
            address->segment = ompd_segment_none;
            address->address = symbols[n].address;
            return ompd_rc_ok;
        }
    }
    return ompd_rc_error;
}

static ompd_rc_t read_memory(ompd_address_space_context_t *context, ompd_thread_context_t *thread,
                             const ompd_address_t *address, ompd_size_t nbytes, void *buffer) {
    (void)thread;
    counts.reads++;
    if (tells_of_stops && address->segment == extra_stop && nbytes == 8) {
        counts.bytes += 8;
        memset(buffer, 1, 8);
        return ompd_rc_ok;
    }
    if (address->segment != ompd_segment_none) {
        return ompd_rc_bad_input;
    }
    counts.bytes += (long)nbytes;
    if (context->segments == NULL) {
        ssize_t got = pread(context->memory, buffer, nbytes, (off_t)address->address);
        return got == (ssize_t)nbytes ? ompd_rc_ok : ompd_rc_error;
    }
    uint64_t at = address->address;
    for (char *to = buffer; nbytes > 0;) {
        const Elf64_Phdr *holder = NULL;
        for (size_t n = 0; n < context->count && holder == NULL; n++) {
            const Elf64_Phdr *own = &context->segments[n];
            holder = own->p_type == PT_LOAD && at >= own->p_vaddr && at - own->p_vaddr < own->p_filesz ? own : NULL;
        }
        if (holder == NULL) {
            return ompd_rc_error;
        }
        uint64_t inside = at - holder->p_vaddr, left = holder->p_filesz - inside, part = nbytes < left ? nbytes : left;
        if (pread(context->memory, to, part, (off_t)(holder->p_offset + inside)) != (ssize_t)part) {
            return ompd_rc_error;
        }
        at += part, to += part, nbytes -= part;
    }
    return ompd_rc_ok;
}

/* Opens a process by its number, or a core by its path. */
static void open_memory(ompd_address_space_context_t *context, const char *what) {
    if (strchr(what, '/') == NULL) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%s/mem", what);
        context->memory = open(path, O_RDONLY);
        return;
    }
    Elf64_Ehdr header;
    context->memory = open(what, O_RDONLY);
    if (pread(context->memory, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        perror(what);
        exit(3);
    }
    size_t bytes = header.e_phnum * sizeof(Elf64_Phdr);
    context->count = header.e_phnum;
    context->segments = malloc(bytes);
    if (pread(context->memory, context->segments, bytes, (off_t)header.e_phoff) != (ssize_t)bytes) {
        perror(what);
        exit(3);
    }
}

static ompd_rc_t no_write(ompd_address_space_context_t *context, ompd_thread_context_t *thread,
                          const ompd_address_t *address, ompd_size_t nbytes, const void *buffer) {
    (void)context, (void)thread, (void)address, (void)nbytes, (void)buffer;
    puts("WRITE");
    return ompd_rc_error;
}

static ompd_rc_t convert(ompd_address_space_context_t *context, const void *input, ompd_size_t unit,
                         ompd_size_t count, void *output) {
    counts.conversions++;
    memmove(output, input, unit * count);
    return context != NULL ? ompd_rc_ok : ompd_rc_bad_input;
}

static ompd_rc_t thread_context(ompd_address_space_context_t *context, ompd_thread_id_t kind, ompd_size_t size,
                                const void *id, ompd_thread_context_t **thread) {
    static ompd_thread_context_t contexts[4096];
    static size_t used;
    (void)context;
    counts.contexts++;
    if (tells_of_stops && kind == extra_kind) {
        return ompd_rc_ok;
    }
    if (kind != thread_id_lwp && kind != thread_id_pthread) {
        return ompd_rc_unsupported;
    }
    if (size != 8 || used == sizeof contexts / sizeof contexts[0]) {
        return ompd_rc_bad_input;
    }
    contexts[used].id = *(const uint64_t *)id;
    *thread = &contexts[used++];
    return ompd_rc_ok;
}

static ompd_callbacks_t callbacks = {alloc_memory, free_memory, print_string, sizeof_type,
                                     symbol_addr,  read_memory, no_write,     read_memory,
                                     convert,      convert,     thread_context};

static void *library;

static void *entry(const char *name) {
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s is missing\n", name);
        exit(3);
    }
    return found;
}

/* The function of this name, by its declaration. */
#define F(name) ((__typeof__(&name))entry(#name))

/* Functions of OpenMP 5.2 that older headers do not declare. */
typedef ompd_rc_t kinds_fn(ompd_address_space_handle_t *, ompd_thread_id_t **, ompd_size_t **, int *);
typedef ompd_rc_t device_fn(ompd_thread_handle_t *, ompd_address_space_handle_t **);

static void read_symbols(const char *path) {
    FILE *list = fopen(path, "r");
    if (list == NULL) {
        perror(path);
        exit(3);
    }
    symbols = malloc(sizeof *symbols * 200000);
    while (symbol_count < 200000 && fscanf(list, "%255s %" SCNx64, symbols[symbol_count].name,
                                           &symbols[symbol_count].address) == 2) {
        symbol_count++;
    }
    fclose(list);
}
