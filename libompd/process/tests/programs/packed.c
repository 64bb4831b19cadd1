/* Enough pointers to need several words of packed relocations. */
static int numbers[200];
extern int values[200] __attribute__((alias("numbers"), visibility("hidden")));
#define ONE(n) &values[n],
#define TEN(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3) ONE(n + 4) ONE(n + 5) ONE(n + 6) ONE(n + 7) ONE(n + 8) ONE(n + 9)
#define FIFTY(n) TEN(n) TEN(n + 10) TEN(n + 20) TEN(n + 30) TEN(n + 40)
__attribute__((visibility("hidden"))) int *table[200] = {FIFTY(0) FIFTY(50) FIFTY(100) FIFTY(150)};
/* Read-only once they are relocated. */
__attribute__((visibility("hidden"))) int *const fixed[200] = {FIFTY(0) FIFTY(50) FIFTY(100) FIFTY(150)};
int use(int n) { return *table[n] + *fixed[n] + numbers[n]; }
