/* The smallest runtime there can be: a team of threads, each with its number, that wait until they are ended. */

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 3 };

struct toy_thread {
    int lwp;
    int number;
};

struct toy_team {
    long size;
    struct toy_thread threads[SIZE];
} toy_team;

typedef void (*Body)(int number);

static Body body_of_region;

static void *work(void *argument) {
    struct toy_thread *thread = argument;
    thread->lwp = (int)syscall(SYS_gettid);
    body_of_region(thread->number);
    return NULL;
}

/* Executes the body by SIZE threads, this one among them. */
void toy_fork(Body body) {
    pthread_t threads[SIZE];
    body_of_region = body;
    for (int number = 0; number < SIZE; number++) {
        toy_team.threads[number].number = number;
    }
    toy_team.size = SIZE;
    for (int number = 1; number < SIZE; number++) {
        pthread_create(&threads[number], NULL, work, &toy_team.threads[number]);
    }
    work(&toy_team.threads[0]);
}

static void say(int number) {
    printf("%d %d\n", number, (int)syscall(SYS_gettid));
    fflush(stdout);
    pause();
}

int main(void) {
    toy_fork(say);
}
