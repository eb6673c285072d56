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
/* Destroys the objects that the test owns except for the oldest `first`. */
void test_end_after(size_t first);
/* The teardown of a test: destroys all objects and forgets the test's fixture. */
int test_end_all(void **state);

#endif
