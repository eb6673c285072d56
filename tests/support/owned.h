/* Things that end with the running test, or before the rig that was opened before them: the latest
   first, loans after all others. The fuzzers, whose inputs end everything themselves, have another
   definition of what wires need. */
#ifndef SB_TESTS_OWNED_H
#define SB_TESTS_OWNED_H

#include <stdbool.h>
#include <stddef.h>

void test_own(void *thing, void (*end)(void *thing));
void test_own_loan(void *thing, void (*end)(void *thing));
/* Ends it now. */
void test_end(void *thing);
/* The test no longer owns it; false if it did not. */
bool test_disown(const void *thing);
size_t test_num_owned(void);
/* Ends all but the `first` things that the test owns. */
void test_end_after(size_t first);
/* The teardown of a test: also forgets its fixture. */
int test_end_all(void **state);

#endif
