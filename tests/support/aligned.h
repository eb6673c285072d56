/* Allocates and frees aligned memory. On Windows, free() does not accept such memory. */
#ifndef SB_TESTS_ALIGNED_H
#define SB_TESTS_ALIGNED_H

#include <stddef.h>
#include <stdlib.h>

#ifdef _WIN32
#include <malloc.h>
#endif

/* `alignment` is a power of two of at least a pointer's size. */
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

#endif
