/* Linked into every test program: lets any process of the same user inspect
 * this one where the Yama security module (ptrace_scope 1) would only let a
 * parent do it.  Kernels without Yama refuse the call, which is fine.  With
 * OMPD_YAMA_DECIDES in the environment the module decides. */
#include <stdlib.h>
#include <sys/prctl.h>

__attribute__((constructor)) static void allow_inspection(void) {
    if (!getenv("OMPD_YAMA_DECIDES"))
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}
