/* The regions are in code that lies in no file: an object that is loaded and
 * registered for debuggers as LLVM's engines do (GDB manual, "JIT Interface").
 * The registered copy has the addresses of its sections, and is not relocated
 * otherwise. */
#include "stacks_jit.h"

#include <dlfcn.h>
#include <elf.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 6 };

#if defined(__x86_64__)
enum { ABSOLUTE = R_X86_64_64, RELATIVE = R_X86_64_PC64, RELATIVE_32 = R_X86_64_PC32 };
#elif defined(__aarch64__)
enum { ABSOLUTE = R_AARCH64_ABS64, RELATIVE = R_AARCH64_PREL64, RELATIVE_32 = R_AARCH64_PREL32 };
#else
#error "which relocations are these?"
#endif

/* The interface: debuggers look for these names. */
struct jit_code_entry {
    struct jit_code_entry *next, *prev;
    const char *symfile_addr;
    uint64_t symfile_size;
};
struct jit_descriptor {
    uint32_t version, action_flag;
    struct jit_code_entry *relevant_entry, *first_entry;
};
void __jit_debug_register_code(void);
__attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }
extern struct jit_descriptor __jit_debug_descriptor;
struct jit_descriptor __jit_debug_descriptor = {.version = 1};

/* The object, in a section of this program. */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        "object_begin: .incbin \"" JIT_OBJECT "\"\n"
        "object_end:\n"
        ".popsection");
extern const char object_begin[], object_end[];

static _Noreturn void fail(const char *what, const char *name) {
    fprintf(stderr, "stacks_jit: %s %s\n", what, name);
    exit(1);
}

static uint64_t address(const char *object, const Elf64_Shdr *sections, const Elf64_Shdr *table, uint64_t index) {
    const Elf64_Sym *symbol = (const Elf64_Sym *)(object + table->sh_offset) + index;
    if (symbol->st_shndx != SHN_UNDEF)
        return sections[symbol->st_shndx].sh_addr + symbol->st_value;
    const char *name = object + sections[table->sh_link].sh_offset + symbol->st_name;
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL)
        fail("no symbol", name);
    return (uint64_t)(uintptr_t)found;
}

static void relocate(const char *object, const Elf64_Shdr *sections, const Elf64_Shdr *relocations) {
    const Elf64_Shdr *table = sections + relocations->sh_link;
    const Elf64_Rela *first = (const Elf64_Rela *)(object + relocations->sh_offset);
    const Elf64_Rela *end = first + relocations->sh_size / sizeof *first;
    for (const Elf64_Rela *each = first; each < end; each++) {
        uint64_t place = sections[relocations->sh_info].sh_addr + each->r_offset;
        uint64_t value = address(object, sections, table, ELF64_R_SYM(each->r_info)) + (uint64_t)each->r_addend;
        size_t length = 8;
        switch (ELF64_R_TYPE(each->r_info)) {
        case ABSOLUTE:
            break;
        case RELATIVE_32:
            length = 4;
            __attribute__((fallthrough));
        case RELATIVE:
            value -= place;
            break;
        default:
            fail("relocation", "of another kind");
        }
        memcpy((void *)(uintptr_t)place, &value, length);
    }
}

/* Loads the object and registers a copy of it. */
static char *load(void) {
    size_t length = (size_t)(object_end - object_begin);
    char *object = malloc(length);
    if (object == NULL)
        fail("no memory", "for the object");
    memcpy(object, object_begin, length);
    Elf64_Ehdr *header = (Elf64_Ehdr *)object;
    Elf64_Shdr *sections = (Elf64_Shdr *)(object + header->e_shoff);
    const size_t room = 1 << 20;
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    char *code = mmap(NULL, room, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        fail("no memory", "for code");
    char *next = code;
    for (Elf64_Shdr *each = sections; each < sections + header->e_shnum; each++) {
        if (!(each->sh_flags & SHF_ALLOC) || each->sh_size == 0)
            continue;
        each->sh_addr = (uint64_t)(uintptr_t)next;
        if (each->sh_type != SHT_NOBITS)
            memcpy(next, object + each->sh_offset, each->sh_size);
        next += (each->sh_size + 63) & ~63UL;
    }
    for (const Elf64_Shdr *each = sections; each < sections + header->e_shnum; each++)
        if (each->sh_type == SHT_RELA && sections[each->sh_info].sh_addr != 0)
            relocate(object, sections, each);
    __builtin___clear_cache(code, next);

    struct jit_code_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        fail("no memory", "for an entry");
    entry->symfile_addr = object;
    entry->symfile_size = length;
    __jit_debug_descriptor.first_entry = __jit_debug_descriptor.relevant_entry = entry;
    __jit_debug_descriptor.action_flag = 1;
    __jit_debug_register_code();
    return object;
}

static void *function(const char *object, const char *name) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(object + header->e_shoff);
    for (const Elf64_Shdr *table = sections; table < sections + header->e_shnum; table++) {
        if (table->sh_type != SHT_SYMTAB)
            continue;
        const char *names = object + sections[table->sh_link].sh_offset;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(object + table->sh_offset);
        for (uint64_t index = 0; index < table->sh_size / sizeof *symbols; index++)
            if (strcmp(names + symbols[index].st_name, name) == 0)
                return (void *)(uintptr_t)address(object, sections, table, index);
    }
    fail("no function", name);
}

static visit_function *visit_in_jit;
static task_function *task_in_jit;

FRAME static void hold(truth_mark outer, const char *role) {
    truth_stack_note(role, STACK_PIPE, AT(outer, 1));
    truth_stack_hold();
    truth_stack_step();
}

static void visit_inner(truth_mark outer, int number) {
    hold(CALL(outer), number == 0 ? "inner visitor" : "other inner visitor");
    KEEP();
}

FRAME static void coordinate(truth_mark outer) {
    truth_stack_note("coordinator", STACK_PIPE, AT(outer, 1));
    truth_stack_ready("stacks_jit", THREADS);
    truth_stack_release();
    truth_stack_step();
}

static void visit_outer(truth_mark outer, int number) {
    if (number == 0)
        coordinate(CALL(outer));
    if (number == 1)
        visit_in_jit(CALL(outer), 2, visit_inner);
    if (number == 2)
        task_in_jit(CALL(outer));
    if (number == 3) {
        truth_mark opened = OPENS(outer, "parallel", 1);
#pragma omp parallel num_threads(2)
        {
            truth_mark in = truth_enter(opened);
            hold(CALL(in), "region of the program");
            truth_leave(in);
        }
    }
    KEEP();
}

int main(void) {
    truth_stack_init();
    omp_set_max_active_levels(4);
    const char *object = load();
    visit_in_jit = (visit_function *)function(object, "jit_visit");
    task_in_jit = (task_function *)function(object, "jit_task");
    visit_in_jit(CALL(truth_thread_base()), 4, visit_outer);
    truth_stack_done();
    return 0;
}
