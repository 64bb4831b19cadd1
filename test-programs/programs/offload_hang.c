/* A program that hangs in a target region: what the device executes waits for a byte on standard input.  It says
 *
 *   construct FUNCTION LINE    where the construct is
 *   ready                      within the region
 *
 * and `done` once it has the byte. */
#include <stdio.h>
#include <unistd.h>

static char byte;

static __attribute__((noinline)) void hang(void) {
    const int line = __LINE__ + 3;
    printf("construct %s %d\n", __func__, line);
    /* The call of the runtime has the line of the code before it. */
    fflush(stdout); _Pragma("omp target map(tofrom : byte) device(1)")
    if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, &byte, 1) != 1)
        byte = 0;
}

int main(void) {
    hang();
    printf(byte == 0 ? "no byte\n" : "done\n");
    return byte == 0;
}
