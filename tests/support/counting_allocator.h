/* Declarations that tests and fuzz targets share. The declarations need the library's headers, but
   not the library. */
#ifndef SB_TESTS_COUNTING_ALLOCATOR_H
#define SB_TESTS_COUNTING_ALLOCATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <syncblob/context.h>

#ifdef _WIN32
#include <malloc.h>
#endif

/* Read the members only while no other thread allocates. The allocator fills a block without
   SB_ALLOC_ZEROED with rubbish. */
struct counting_allocator {
    pthread_mutex_t lock;
    int64_t buffer_calls; /* alloc calls without SB_ALLOC_OBJECT, including failed calls */
    int64_t object_calls; /* alloc calls with SB_ALLOC_OBJECT, including failed calls */
    int64_t free_calls;
    int64_t live_blocks, live_buffers; /* live_buffers: blocks without SB_ALLOC_OBJECT */
    size_t live_bytes, peak_bytes;
    size_t byte_cap;    /* alloc fails if live_bytes would exceed this cap (0: no cap) */
    int64_t fail_nth;   /* the n-th alloc call from now fails (0: no call fails) */
    int64_t failures;   /* calls that failed because of fail_nth or byte_cap */
    int64_t violations; /* calls that break the contract of sb_allocator */
};

#define COUNTING_ALLOCATOR_INIT                                                                    \
    { .lock = PTHREAD_MUTEX_INITIALIZER }

sb_allocator counting_allocator_table(struct counting_allocator *counting);

/* free() does not accept the memory on Windows. */
static inline void *test_aligned_alloc(size_t alignment, size_t bytes) {
#ifdef _WIN32
    return _aligned_malloc(bytes, alignment);
#else
    void *block;
    return posix_memalign(&block, alignment, bytes) == 0 ? block : NULL;
#endif
}

static inline void test_aligned_free(void *block) {
#ifdef _WIN32
    _aligned_free(block);
#else
    free(block);
#endif
}

/* Ignores a status. A cast to void would not silence the warning of SB_MUST_CHECK. */
static inline void ignore(sb_status status) {
    (void)status;
}

/* Makes the running test the owner of an object. When a test ends, its newest objects end first,
   and loans last. Fuzz targets link fuzz/support/loan.c instead, and must free each object
   themselves. */
void test_own(void *thing, void (*end)(void *thing));
void test_own_loan(void *thing, void (*end)(void *thing));
/* Destroys the object now. */
void test_end(void *thing);
/* Returns false if the test did not own the object. */
bool test_disown(const void *thing);
size_t test_num_owned(void);
/* Destroys the test's objects except the `first` oldest objects. */
void test_end_after(size_t first);
/* The teardown of a test: destroys all objects and forgets the test's fixture. */
int test_end_all(void **state);

#endif
