/* The tests of the program that this is linked into. */
#include "support.h"

static struct CMUnitTest tests[64]; /* cmocka passes over those without a name */
static int lines[64], num_tests;

void test_add(struct CMUnitTest test, int line) {
    if ((size_t)num_tests == sizeof tests / sizeof *tests)
        abort();
    int at = num_tests++;
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = test;
    lines[at] = line;
}

int run_all_tests(void) {
    return cmocka_run_group_tests(tests, NULL, NULL);
}
