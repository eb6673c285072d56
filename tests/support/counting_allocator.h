/* An allocator for tests and fuzzing that counts calls, caps memory and fails on demand. Needs only
   the library's headers, not the library. */
#ifndef SB_TESTS_COUNTING_ALLOCATOR_H
#define SB_TESTS_COUNTING_ALLOCATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/context.h>

/* The state of the allocator. Initialise it with COUNTING_ALLOCATOR_INIT; read the members when no
   other thread allocates. A block without SB_ALLOC_ZEROED is filled with rubbish. */
struct counting_allocator {
    pthread_mutex_t lock;
    int64_t buffer_calls; /* alloc calls without SB_ALLOC_OBJECT, including failed calls */
    int64_t object_calls; /* alloc calls with SB_ALLOC_OBJECT, including failed calls */
    int64_t free_calls;
    int64_t live_blocks, live_buffers; /* live_buffers: blocks without SB_ALLOC_OBJECT */
    size_t live_bytes, peak_bytes;
    size_t byte_cap;         /* alloc fails if live_bytes would exceed this cap; 0: no cap */
    int64_t fail_nth;        /* the n-th alloc call from now fails; 0: no call fails */
    int64_t fail_nth_buffer; /* like fail_nth, but counts only calls without SB_ALLOC_OBJECT */
    int64_t failures;        /* calls that failed on demand or because of the cap */
    int64_t violations;      /* calls that break the contract of sb_allocator */
};

#define COUNTING_ALLOCATOR_INIT                                                                    \
    { .lock = PTHREAD_MUTEX_INITIALIZER }

sb_allocator counting_allocator_table(struct counting_allocator *counting);

#endif
