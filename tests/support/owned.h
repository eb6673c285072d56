/* The objects ("things") that the running test owns. test_end_all destroys the objects, the newest
   first and lent memory last; rig_close destroys the objects made since rig_open. Fuzz targets free
   their objects themselves: they link fuzz/support/owned.c, which keeps no list. */
#ifndef SB_TESTS_OWNED_H
#define SB_TESTS_OWNED_H

#include <stdbool.h>
#include <stddef.h>

void test_own(void *thing, void (*end)(void *thing));
void test_own_loan(void *thing, void (*end)(void *thing));
/* Destroys the thing now. */
void test_end(void *thing);
/* Removes the thing from the list of the test; returns false if the list did not contain it. */
bool test_disown(const void *thing);
size_t test_num_owned(void);
/* Destroys the test's objects except the `first` oldest objects. */
void test_end_after(size_t first);
/* The teardown of a test: destroys all objects and forgets the test's fixture. */
int test_end_all(void **state);

#endif
