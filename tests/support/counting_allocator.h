/* An allocator that counts, caps and fails, for tests and fuzzing. Needs
   nothing but the library's headers. */
#ifndef SB_TESTS_COUNTING_ALLOCATOR_H
#define SB_TESTS_COUNTING_ALLOCATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syncblob/context.h>

/* An sb_allocator that keeps books. Zero-initialise it with
   COUNTING_ALLOCATOR_INIT; read the members when no other thread allocates.
   Memory that is not asked for as zeroed comes filled with rubbish. */
struct counting_allocator {
    pthread_mutex_t lock;
    int64_t buffer_calls; /* alloc calls without SB_ALLOC_OBJECT, failed ones too */
    int64_t object_calls; /* alloc calls with SB_ALLOC_OBJECT, failed ones too */
    int64_t free_calls;
    int64_t live_blocks, live_buffers; /* all blocks; those without SB_ALLOC_OBJECT */
    size_t live_bytes, peak_bytes;
    size_t byte_cap;         /* live bytes at most; 0: none */
    int64_t fail_nth;        /* the n-th alloc call from now fails; 0: none. Firing disarms it */
    int64_t fail_nth_buffer; /* likewise among calls without SB_ALLOC_OBJECT */
    int64_t failures;        /* calls that failed on demand or by the cap */
    int64_t violations;      /* calls that break the contract of sb_allocator */
};

#define COUNTING_ALLOCATOR_INIT                                                                    \
    { .lock = PTHREAD_MUTEX_INITIALIZER }

sb_allocator counting_allocator_table(struct counting_allocator *counting);

#endif
