/* A library with versioned, exported, hidden and thread-local names. */
int old_answer(void) { return 1; }
int new_answer(void) { return 2; }
__asm__(".symver old_answer, answer@OLD_1.0");
__asm__(".symver new_answer, answer@@NEW_2.0");

extern int puts(const char *);
__thread int mark = 5;
long exported_data[3] = {1, 2, 3};
static int secret(int x) { return puts("secret") + x; }
int (*table[])(int) = {secret};
int caller(int x) { return secret(x) + table[0](x) + mark; }
