/* Replaces functions of tests/support/support.c, which frees objects at the end of a unit test. */
#include "counting_allocator.h"

void test_own_loan(void *thing, void (*end)(void *thing)) {
    (void)thing;
    (void)end;
}

bool test_disown(const void *thing) {
    return thing != NULL;
}
