/* A debugger of the least size that uses libompd.so: it lists the OpenMP threads of a process or a core, and prints why they
 * hang.  What it knows of processes is here: ptrace, /proc, and ELF.  docs/for-debuggers.md explains each part.
 *
 *     cc -o debugger debugger.c -I../include -ldl
 *     ./debugger libompd.so PID|CORE
 *
 * Linux on x86-64.  The process is stopped while it is read, and continues afterwards. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ompd-ext.h"

/* ---- A process or a core ---------------------------------------------------------------------------------------- */

enum { MAX_THREADS = 4096, MAX_MODULES = 1024, MAX_SEGMENTS = 65536 };

/* A file that is open for reading, mapped as a whole. */
struct file { const unsigned char *bytes; size_t size; };

/* A loaded file with its bytes.  bias is what is added to its addresses. */
struct module { char path[512]; struct file file; uint64_t bias; };

struct thread { int lwp; struct user_regs_struct registers; };

/* What OMPD calls the context of an address space. */
struct _ompd_aspace_cont {
    int memory;                                  /* /proc/PID/mem, or -1 for a core */
    struct file core;
    const Elf64_Phdr *segments[MAX_SEGMENTS];    /* of the core */
    int segment_count;
    struct module modules[MAX_MODULES];
    int module_count;
    struct thread threads[MAX_THREADS];
    int thread_count;
};
static struct _ompd_aspace_cont process;

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "debugger: %s %s: %s\n", what, name, strerror(errno));
    exit(2);
}

static struct file map(const char *path)
{
    struct stat status;
    void *bytes = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return bytes == MAP_FAILED ? (struct file){NULL, 0} : (struct file){bytes, (size_t)status.st_size};
}

/* The bytes of a file from an offset on, if it has so many. */
static const void *part(struct file file, uint64_t offset, uint64_t size)
{
    return file.bytes && offset <= file.size && size <= file.size - offset ? file.bytes + offset : NULL;
}

static const Elf64_Phdr *headers(struct file file, int *count)
{
    const Elf64_Ehdr *elf = part(file, 0, sizeof *elf);
    int is_elf = elf && memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64;
    const Elf64_Phdr *all = is_elf ? part(file, elf->e_phoff, (uint64_t)elf->e_phnum * sizeof *all) : NULL;
    *count = all ? elf->e_phnum : 0;
    return all;
}

static void add_module(uint64_t start, const char *path)
{
    if (process.module_count == MAX_MODULES || path[0] != '/')
        return;
    for (int n = 0; n < process.module_count; n++)
        if (strcmp(process.modules[n].path, path) == 0)
            return;
    struct module *module = &process.modules[process.module_count];
    snprintf(module->path, sizeof module->path, "%s", path);
    module->file = map(path);
    int count, n = 0;
    const Elf64_Phdr *all = headers(module->file, &count);
    while (n < count && all[n].p_type != PT_LOAD)
        n++;
    if (n < count) {
        module->bias = start - (all[n].p_vaddr & ~(uint64_t)4095);
        process.module_count++;
    }
}

/* Stops all threads of a process, those that begin meanwhile too. */
static void open_process(int pid)
{
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    for (int before = -1; before != process.thread_count;) {
        before = process.thread_count;
        DIR *directory = opendir(path);
        if (!directory)
            fail("cannot read", path);
        for (struct dirent *entry; (entry = readdir(directory));) {
            int lwp = atoi(entry->d_name), known = lwp == 0;
            for (int n = 0; n < process.thread_count; n++)
                known |= process.threads[n].lwp == lwp;
            if (known || process.thread_count == MAX_THREADS)
                continue;
            if (ptrace(PTRACE_SEIZE, lwp, NULL, NULL) != 0) {
                if (errno == ESRCH)
                    continue;
                fail("cannot trace thread", entry->d_name);
            }
            ptrace(PTRACE_INTERRUPT, lwp, NULL, NULL);
            int status;
            struct thread *thread = &process.threads[process.thread_count];
            if (waitpid(lwp, &status, __WALL) == lwp && WIFSTOPPED(status) &&
                ptrace(PTRACE_GETREGS, lwp, NULL, &thread->registers) == 0) {
                thread->lwp = lwp;
                process.thread_count++;
            }
        }
        closedir(directory);
    }
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    if ((process.memory = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        fail("cannot open", path);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        fail("cannot open", path);
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, offset;
        char name[512] = "";
        if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %511[^\n]", &start, &offset, name) >= 2 && offset == 0)
            add_module(start, name);
    }
    fclose(maps);
}

/* Reads threads and names of files from the notes of a core. */
static void read_notes(const Elf64_Phdr *segment)
{
    uint64_t at = segment->p_offset, end = at + segment->p_filesz;
    while (end >= at && end - at >= sizeof(Elf64_Nhdr)) {
        const Elf64_Nhdr *note = part(process.core, at, sizeof *note);
        if (!note)
            return;
        uint64_t data = at + sizeof *note + ((note->n_namesz + 3) & ~3u);
        const prstatus_t *status = part(process.core, data, sizeof *status);
        if (note->n_type == NT_PRSTATUS && status && process.thread_count < MAX_THREADS) {
            struct thread *thread = &process.threads[process.thread_count++];
            thread->lwp = status->pr_pid;
            memcpy(&thread->registers, &status->pr_reg, sizeof thread->registers);
        }
        const uint64_t *files = part(process.core, data, note->n_descsz);
        if (note->n_type == NT_FILE && files && note->n_descsz >= 16 && files[0] <= (note->n_descsz - 16) / 24) {
            const char *name = (const char *)(files + 2 + 3 * files[0]), *last = (const char *)files + note->n_descsz;
            for (uint64_t n = 0; n < files[0] && name < last && memchr(name, 0, (size_t)(last - name)); n++) {
                if (files[2 + 3 * n + 2] == 0)
                    add_module(files[2 + 3 * n], name);
                name += strlen(name) + 1;
            }
        }
        at = data + ((note->n_descsz + 3) & ~3u);
    }
}

static void open_core(const char *path)
{
    int count;
    process.memory = -1, errno = 0;
    process.core = map(path);
    const Elf64_Phdr *all = headers(process.core, &count);
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)process.core.bytes;
    if (!all || elf->e_type != ET_CORE || elf->e_machine != EM_X86_64)
        fail("not a process, and not a core of x86-64:", (errno = errno ? errno : ENOEXEC, path));
    for (int n = 0; n < count; n++) {
        if (all[n].p_type == PT_LOAD && process.segment_count < MAX_SEGMENTS)
            process.segments[process.segment_count++] = &all[n];
        if (all[n].p_type == PT_NOTE)
            read_notes(&all[n]);
    }
}

/* Reads from a core as much as one of its segments has; else from the file that was mapped there. */
static size_t read_core(uint64_t address, unsigned char *to, size_t size)
{
    for (int n = 0; n < process.segment_count; n++) {
        const Elf64_Phdr *segment = process.segments[n];
        uint64_t inside = address - segment->p_vaddr;
        if (address < segment->p_vaddr || inside >= segment->p_filesz)
            continue;
        size_t here = size < segment->p_filesz - inside ? size : (size_t)(segment->p_filesz - inside);
        const void *from = part(process.core, segment->p_offset + inside, here);
        return from ? (memcpy(to, from, here), here) : 0;
    }
    for (int m = 0; m < process.module_count; m++) {
        const struct module *module = &process.modules[m];
        int count;
        const Elf64_Phdr *all = headers(module->file, &count);
        for (int n = 0; n < count; n++) {
            uint64_t inside = address - module->bias - all[n].p_vaddr;
            /* What the process may have written is not in the file. */
            if (all[n].p_type != PT_LOAD || (all[n].p_flags & PF_W) || inside >= all[n].p_filesz)
                continue;
            size_t here = size < all[n].p_filesz - inside ? size : (size_t)(all[n].p_filesz - inside);
            const void *from = part(module->file, all[n].p_offset + inside, here);
            return from ? (memcpy(to, from, here), here) : 0;
        }
    }
    return 0;
}

/* ---- What the library asks for ----------------------------------------------------------------------------------- */

static ompd_rc_t alloc_memory(ompd_size_t size, void **memory)
{
    return (*memory = malloc(size ? (size_t)size : 1)) ? ompd_rc_ok : ompd_rc_nomem;
}

static ompd_rc_t free_memory(void *memory) { return free(memory), ompd_rc_ok; }

static ompd_rc_t print_string(const char *text, int category) { return (void)category, fputs(text, stderr), ompd_rc_ok; }

static ompd_rc_t sizeof_type(ompd_address_space_context_t *context, ompd_device_type_sizes_t *sizes)
{
    return (void)context, *sizes = (ompd_device_type_sizes_t){1, 2, 4, 8, 8, 8}, ompd_rc_ok;
}

static ompd_rc_t symbol_address(ompd_address_space_context_t *context, ompd_thread_context_t *thread, const char *name,
                                ompd_address_t *address, const char *file_name)
{
    (void)thread, (void)file_name;
    for (int m = 0; m < context->module_count; m++) {
        struct file file = context->modules[m].file;
        const Elf64_Ehdr *elf = part(file, 0, sizeof *elf);
        const Elf64_Shdr *sections = elf ? part(file, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof *sections) : NULL;
        for (int n = 0; sections && n < elf->e_shnum; n++) {
            const Elf64_Shdr *table = &sections[n];
            if ((table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM) || table->sh_link >= elf->e_shnum)
                continue;
            const Elf64_Shdr *strings = &sections[table->sh_link];
            const Elf64_Sym *symbols = part(file, table->sh_offset, table->sh_size);
            const char *names = part(file, strings->sh_offset, strings->sh_size);
            for (uint64_t s = 0; symbols && names && s < table->sh_size / sizeof *symbols; s++) {
                const Elf64_Sym *symbol = &symbols[s];
                if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) == STT_TLS ||
                    symbol->st_name >= strings->sh_size ||
                    strncmp(names + symbol->st_name, name, strings->sh_size - symbol->st_name) != 0)
                    continue;
                *address = (ompd_address_t){0, symbol->st_value + context->modules[m].bias};
                return ompd_rc_ok;
            }
        }
    }
    return ompd_rc_error;
}

/* Beyond OMPD: the segments from which registers and a number of the stop are read. */
#define OFFERS 1071707
#define REGISTERS 0x6f6d70640001u
#define STOP 0x6f6d70640002u

static ompd_rc_t read_memory(ompd_address_space_context_t *context, ompd_thread_context_t *thread,
                             const ompd_address_t *address, ompd_size_t size, void *buffer)
{
    static const uint64_t stop = 1; /* The process never runs between two questions. */
    if (address->segment == REGISTERS && thread && size == sizeof ((struct thread *)0)->registers) {
        memcpy(buffer, &((struct thread *)thread)->registers, (size_t)size);
        return ompd_rc_ok;
    }
    if (address->segment == STOP && size == sizeof stop) {
        memcpy(buffer, &stop, sizeof stop);
        return ompd_rc_ok;
    }
    if (address->segment != 0)
        return ompd_rc_error;
    for (size_t done = 0; done < size;) {
        unsigned char *to = (unsigned char *)buffer + done;
        uint64_t at = address->address + done;
        ssize_t got = context->memory >= 0 ? pread(context->memory, to, (size_t)size - done, (off_t)at)
                                           : (ssize_t)read_core(at, to, (size_t)size - done);
        if (got <= 0)
            return ompd_rc_error;
        done += (size_t)got;
    }
    return ompd_rc_ok;
}

static ompd_rc_t write_memory(ompd_address_space_context_t *context, ompd_thread_context_t *thread,
                              const ompd_address_t *address, ompd_size_t size, const void *buffer)
{
    return (void)context, (void)thread, (void)address, (void)size, (void)buffer, ompd_rc_error; /* It never writes. */
}

/* Debugger and process are of one machine: bytes stay as they are. */
static ompd_rc_t convert(ompd_address_space_context_t *context, const void *input, ompd_size_t unit, ompd_size_t count,
                         void *output)
{
    return (void)context, memmove(output, input, (size_t)(unit * count)), ompd_rc_ok;
}

static ompd_rc_t thread_context(ompd_address_space_context_t *context, ompd_thread_id_t kind, ompd_size_t size,
                                const void *id, ompd_thread_context_t **thread)
{
    if (kind == OFFERS)
        return *thread = (ompd_thread_context_t *)&context->threads[0], ompd_rc_ok;
    if (kind != OMPD_THREAD_ID_LWP)
        return ompd_rc_unsupported;
    uint64_t lwp = 0;
    memcpy(&lwp, id, size < sizeof lwp ? (size_t)size : sizeof lwp);
    for (int n = 0; n < context->thread_count; n++)
        if ((uint64_t)context->threads[n].lwp == lwp)
            return *thread = (ompd_thread_context_t *)&context->threads[n], ompd_rc_ok;
    return ompd_rc_unavailable;
}

/* ---- What is asked of the library --------------------------------------------------------------------------------- */

static void *library;
#define OMPD(name) ((__typeof__(&name))dlsym(library, #name))

/* A control variable by its name, of whichever of the handles it belongs to; -1 if it is unknown. */
static int icv(ompd_address_space_handle_t *space, const char *wanted, void *region, void *task)
{
    ompd_icv_id_t id = 0;
    ompd_scope_t scope;
    ompd_word_t value = -1;
    const char *name;
    for (int more = 1; more && OMPD(ompd_enumerate_icvs)(space, id, &id, &name, &scope, &more) == ompd_rc_ok;) {
        if (strcmp(name, wanted) == 0)
            OMPD(ompd_get_icv_from_scope)(scope == ompd_scope_parallel ? region : task, scope, id, &value);
        free_memory((void *)name);
    }
    return (int)value;
}

static void print_thread(ompd_address_space_handle_t *space, uint64_t lwp)
{
    ompd_thread_handle_t *thread;
    ompd_parallel_handle_t *region = NULL;
    ompd_task_handle_t *task = NULL;
    ompd_word_t state = 0x102; /* ompt_state_undefined */
    if (OMPD(ompd_get_thread_handle)(space, OMPD_THREAD_ID_LWP, sizeof lwp, &lwp, &thread) != ompd_rc_ok) {
        printf("%" PRIu64 "  no OpenMP thread\n", lwp);
        return;
    }
    OMPD(ompd_get_curr_parallel_handle)(thread, &region);
    OMPD(ompd_get_curr_task_handle)(thread, &task);
    OMPD(ompd_get_state)(thread, &state, NULL);
    printf("%" PRIu64 "  team of %d, level %d, state %#x\n", lwp, icv(space, "team-size-var", region, task),
           icv(space, "levels-var", region, task), (unsigned)state);
    OMPD(ompd_rel_task_handle)(task);
    OMPD(ompd_rel_parallel_handle)(region);
    OMPD(ompd_rel_thread_handle)(thread);
}

int main(int argc, char **argv)
{
    static const ompd_callbacks_t callbacks = {alloc_memory, free_memory, print_string, sizeof_type, symbol_address,
                                               read_memory, write_memory, read_memory, convert, convert, thread_context};
    ompd_address_space_handle_t *space;
    const char *text;
    if (argc != 3 || !(library = dlopen(argv[1], RTLD_NOW))) {
        fprintf(stderr, "usage: debugger LIBOMPD PID|CORE\n%s\n", argc == 3 ? dlerror() : "");
        return 2;
    }
    int pid = atoi(argv[2]);
    if (pid > 0)
        open_process(pid);
    else
        open_core(argv[2]);
    if (OMPD(ompd_initialize)(202111, &callbacks) != ompd_rc_ok ||
        OMPD(ompd_process_initialize)(&process, &space) != ompd_rc_ok)
        return 1; /* print_string has said why. */
    for (int n = 0; n < process.thread_count; n++)
        print_thread(space, (uint64_t)process.threads[n].lwp);
    if (OMPD(ompdx_report_text)(space, "summary", NULL, &text) == ompd_rc_ok) {
        fputs(text, stdout);
        free_memory((void *)text);
    }
    OMPD(ompd_rel_address_space_handle)(space);
    OMPD(ompd_finalize)();
    /* Threads that are traced continue when this process ends. */
    return 0;
}
