/* Wires of a fuzzer belong to the code that makes them. */
#include "owned.h"

void test_own_loan(void *thing, void (*end)(void *thing)) {
    (void)thing;
    (void)end;
}

bool test_disown(const void *thing) {
    return thing != NULL;
}
