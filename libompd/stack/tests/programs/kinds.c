// Waits in a function with variables of every kind, after saying "ready".
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct point {
    int x;
    double y;
};

struct many {
    signed char a, b, c, d, e, f, g, h, i;
};

struct mixed {
    int number;
    unsigned bits : 3;
    char text[6];
    struct point inner;
    int row[2];
    union {
        int i;
        float f;
    } either;
    const char *name;
};

enum color { RED, GREEN = 5, BLUE };
enum sign { MINUS = -1, PLUS = 1 };
typedef struct point place_t;
typedef unsigned long size_type;

static int counter = 41;
static volatile int sink;

__attribute__((noinline)) static void hold(void) {
    char byte;
    if (write(1, "ready\n", 6) != 6) abort();
    while (read(0, &byte, 1) > 0) {}
    sink++;
}

__attribute__((noinline)) static int kinds(int parameter, const struct point *at, bool yes) {
    static long kept = -7;
    signed char small = -3;
    char letter = 'x', quote = '\'', backslash = '\\', newline = '\n';
    unsigned char byte = 200;
    short brief = -300;
    unsigned short word = 65535;
    int whole = -70000;
    unsigned int count = 4000000000u;
    long long wide = -5000000000ll;
    unsigned long long most = 18446744073709551615ull;
    size_type size = 12;
    float half = 0.5f;
    double tenth = 0.1;
    long double extended = 1;
    bool no = !yes;
    enum color known = BLUE, unknown = (enum color)77;
    enum sign below = MINUS, beside = (enum sign)-9;
    char text[12] = "a\tb\"c\\\001d";
    char full[4] = { 'a', 'b', 'c', 'd' };
    char longer[80];
    int row[3] = { 1, -2, 3 };
    int rows[2][2] = { { 1, 2 }, { 3, 4 } };
    double several[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    int eight[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const char *const words[2] = { NULL, NULL };
    place_t place = { 3, 4.25 };
    struct many many = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct mixed mixed = { -1, 5, "inner", { 1, 2 }, { 1, 2 }, { 1 }, NULL };
    struct point pair[2] = { { 1, 2 }, { 3, 4 } };
    int (*function)(int) = NULL;
    void *nothing = NULL;
    volatile int shaky = 6;
    char computed[parameter];
    int hidden = 1;
    memset(longer, 'z', sizeof longer);
    memset(computed, 0, sizeof computed);
    for (int hidden = 2; hidden < 3; hidden++) {
        int inner = 9;
        hold();
        sink += inner;
    }
    sink += small + letter + quote + backslash + newline + byte + brief + word + whole + (int)count + (int)wide;
    sink += (int)most + (int)size + (int)half + (int)tenth + (int)extended + no + (int)known + (int)unknown + text[0];
    sink += full[0] + longer[0] + row[0] + rows[0][0] + (int)several[0] + eight[0] + (words[0] != NULL) + place.x;
    sink += many.a + mixed.number + pair[0].x + (function != NULL) + (nothing != NULL) + shaky + computed[0] + hidden;
    sink += (int)below + (int)beside + (int)kept++ + counter + at->x;
    int later = sink;
    return later;
}

int main(void) {
    struct point origin = { 1, 2 };
    return kinds(10, &origin, true) == 0;
}
