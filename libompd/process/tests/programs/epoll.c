/* Sleeps in epoll_wait, which a stop would end early, until there is something to read. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

int main(void) {
    int set = epoll_create1(0);
    struct epoll_event input = {.events = EPOLLIN};
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, 0, &input) != 0)
        return 1;
    printf("ready\n");
    fflush(stdout);
    int got = epoll_wait(set, &input, 1, -1);
    printf("answer %d\n", got < 0 ? -errno : got);
    return 0;
}
