/* confined CALL PROGRAM...: executes a program to which the kernel refuses one
 * system call, by a filter as containers have it: ptrace, process_vm_readv or
 * pidfd_open. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        unsigned number;
    } calls[] = {{"ptrace", SYS_ptrace}, {"process_vm_readv", SYS_process_vm_readv}, {"pidfd_open", SYS_pidfd_open}};
    if (argc < 3)
        return 2;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(argv[1], calls[i].name))
            continue;
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
            perror("seccomp");
            return 2;
        }
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        return 2;
    }
    fprintf(stderr, "confined: %s is not known\n", argv[1]);
    return 2;
}
