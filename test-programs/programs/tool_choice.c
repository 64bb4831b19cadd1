/* Tools of OMPT that are found in different ways.  A library, or linked into a program.  NAME is what each prints of itself,
 * DECLINES and REFUSES say that it has no tool for the process, and that it does not stay. */
#include <stdint.h>
#include <stdio.h>

#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

typedef union { uint64_t value; void *ptr; } data_t;
typedef void (*function_t)(void);
typedef function_t (*lookup_t)(const char *);
typedef struct {
    int (*initialize)(lookup_t, int, data_t *);
    void (*finalize)(data_t *);
    data_t tool_data;
} result_t;

static void says(const char *what)
{
    printf("%s %s\n", TEXT(NAME), what);
    fflush(stdout);
}

__attribute__((unused)) static int initialize(lookup_t lookup, int device, data_t *data)
{
    (void)lookup, (void)device, (void)data;
#ifdef REFUSES
    says("refuses");
    return 0;
#else
    says("begins");
    return 1;
#endif
}

__attribute__((unused)) static void finalize(data_t *data)
{
    (void)data;
    says("ends");
}

result_t *ompt_start_tool(unsigned version, const char *runtime);
result_t *ompt_start_tool(unsigned version, const char *runtime)
{
    (void)version, (void)runtime;
#ifdef DECLINES
    says("declines");
    return NULL;
#else
    static result_t result = {initialize, finalize, {0}};
    return &result;
#endif
}

#ifdef PROGRAM
int main(void)
{
    int members = 0;
#pragma omp parallel num_threads(2)
#pragma omp atomic
    members++;
    printf("program\n");
    return members != 2;
}
#endif
