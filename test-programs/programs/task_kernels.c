/* Small kernels of tasks and of worksharing, as benchmarks of OpenMP have them.  Prints what each has computed, the same on
 * every run. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fibonacci numbers: tasks in tasks, some of them included and some final. */
static long fibonacci(int n)
{
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) if (n > 5) final(n < 12) mergeable
    a = fibonacci(n - 1);
#pragma omp task shared(b) untied
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

/* Queens on a board: each task has a copy of the board. */
static int queens(int size, int row, const char *board)
{
    int found = 0;
    if (row == size)
        return 1;
    for (int column = 0; column < size; column++) {
        int fits = 1;
        for (int before = 0; before < row && fits; before++) {
            int distance = board[before] - column;
            fits = distance != 0 && distance != row - before && distance != before - row;
        }
        if (!fits)
            continue;
        char next[16];
        memcpy(next, board, sizeof next);
        next[row] = (char)column;
#pragma omp task firstprivate(next) shared(found) if (row < 3)
        {
            int below = queens(size, row + 1, next);
#pragma omp atomic
            found += below;
        }
    }
#pragma omp taskwait
    return found;
}

/* Sorting by halves. */
static void sort(int *items, int *space, int count)
{
    if (count < 2)
        return;
    int half = count / 2;
#pragma omp taskgroup
    {
#pragma omp task if (count > 100)
        sort(items, space, half);
#pragma omp task if (count > 100)
        sort(items + half, space + half, count - half);
    }
    int left = 0, right = half;
    for (int n = 0; n < count; n++)
        space[n] = right == count || (left < half && items[left] <= items[right]) ? items[left++] : items[right++];
    memcpy(items, space, sizeof *items * (size_t)count);
}

/* A matrix by blocks, each of which waits for those above and to the left of it. */
enum { BLOCKS = 12 };
static long wavefront(void)
{
    static long block[BLOCKS + 1][BLOCKS + 1];
    for (int i = 0; i <= BLOCKS; i++)
        block[i][0] = block[0][i] = i + 1;
    for (int i = 1; i <= BLOCKS; i++)
        for (int j = 1; j <= BLOCKS; j++) {
#pragma omp task depend(in : block[i - 1][j], block[i][j - 1]) depend(out : block[i][j]) priority(i)
            block[i][j] = (block[i - 1][j] * 3 + block[i][j - 1] * 5) % 100003;
        }
#pragma omp taskwait
    return block[BLOCKS][BLOCKS];
}

/* A product of matrices by loops of tasks, and its trace by a reduction of tasks. */
static long product(void)
{
    enum { SIZE = 48 };
    static int a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];
    long trace = 0;
#pragma omp taskloop collapse(2) grainsize(64)
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            a[i][j] = i + j, b[i][j] = 2 * i - j;
#pragma omp taskloop num_tasks(10)
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++)
            for (int k = 0; k < SIZE; k++)
                c[i][j] += a[i][k] * b[k][j];
#if __GNUC__ >= 9
#pragma omp taskloop reduction(+ : trace)
    for (int i = 0; i < SIZE; i++)
        trace += c[i][i];
#else
    for (int i = 0; i < SIZE; i++)
        trace += c[i][i];
#endif
    return trace;
}

/* Each way to share work and to wait, many times. */
static long constructs(int threads)
{
    long sum = 0, largest = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int round = 0; round < 50; round++) {
#pragma omp parallel num_threads(threads) reduction(+ : sum) reduction(max : largest)
        {
#pragma omp for schedule(static, 3)
            for (int i = 0; i < 60; i++)
                sum += i;
#pragma omp for schedule(dynamic, 4) nowait
            for (int i = 0; i < 60; i++)
                sum += i;
#pragma omp for schedule(guided) ordered
            for (int i = 0; i < 60; i++) {
#pragma omp ordered
                largest = i > largest ? i : largest;
            }
#pragma omp sections
            {
#pragma omp section
                sum += 1;
#pragma omp section
                sum += 2;
            }
#pragma omp single
            sum += 3;
#pragma omp master
            sum += 4;
#pragma omp barrier
#pragma omp critical
            sum += 0;
            omp_set_lock(&lock);
            omp_unset_lock(&lock);
        }
    }
    omp_destroy_lock(&lock);
    return sum + largest;
}

enum { NODES = 600 };
static int visited;

/* A walk of a tree.  The last act of each task is a jump to the runtime. */
static void visit(int node)
{
    if (node < NODES) {
#pragma omp atomic
        visited++;
#pragma omp task
        visit(2 * node + 1);
#pragma omp task
        visit(2 * node + 2);
    }
#pragma omp taskwait
}

int main(void)
{
    enum { ITEMS = 20000, THREADS = 4 };
    static int items[ITEMS], space[ITEMS];
    char board[16] = {0};
    unsigned random = 1;
    for (int n = 0; n < ITEMS; n++)
        items[n] = (int)((random = random * 1103515245u + 12345u) >> 8);
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    {
        printf("fibonacci %ld\n", fibonacci(20));
        printf("queens %d\n", queens(8, 0, board));
        printf("wavefront %ld\n", wavefront());
        printf("product %ld\n", product());
        sort(items, space, ITEMS);
    }
    int sorted = 1;
    for (int n = 1; n < ITEMS; n++)
        sorted &= items[n - 1] <= items[n];
    printf("sorted %d, middle %d\n", sorted, items[ITEMS / 2]);
    printf("constructs %ld\n", constructs(THREADS));
    /* Outside of all regions, and in one. */
    visit(0);
    int outside = visited;
#pragma omp parallel num_threads(THREADS)
#pragma omp single
    visit(0);
    printf("visited %d, %d\n", outside, visited - outside);
    return 0;
}
