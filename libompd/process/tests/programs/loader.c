/* loader [FILE]: loads the library FILE, says "ready" and waits for the end of its input. With -DLINKED it calls a
 * function of a library it is linked to. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
int user_threads(void);
#endif

int main(int count, char **args) {
    if (count > 1 && !dlopen(args[1], RTLD_NOW)) {
        puts(dlerror());
        return 1;
    }
#ifdef LINKED
    if (user_threads() < 1) return 1;
#endif
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
