/* Objects ("things") that the running test owns. The test's end destroys them, the newest first and
   lent memory last; a rig that closes destroys those made since it was opened. Fuzz targets free
   their objects: fuzz/support/owned.c has the functions that struct wire needs. */
#ifndef SB_TESTS_OWNED_H
#define SB_TESTS_OWNED_H

#include <stdbool.h>
#include <stddef.h>

void test_own(void *thing, void (*end)(void *thing));
void test_own_loan(void *thing, void (*end)(void *thing));
/* Ends the thing now. */
void test_end(void *thing);
/* Removes the thing from the list of the test; returns false if the list did not contain it. */
bool test_disown(const void *thing);
size_t test_num_owned(void);
/* Ends all but the `first` things that the test owns. */
void test_end_after(size_t first);
/* Ends everything and forgets the test's fixture: the teardown of a test. */
int test_end_all(void **state);

#endif
