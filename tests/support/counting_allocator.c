#include "counting_allocator.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_MAGIC       0x53594e43424c4f42u
#define RUBBISH           0xA5
#define RUBBISH_BYTES_MAX ((size_t)64 << 20) /* larger blocks are filled only in part */

/* The alignment of at least 64 bytes leaves room for this header in front of every block. */
struct block {
    uint64_t magic;
    size_t bytes, alignment;
    uint32_t flags;
};

_Static_assert(sizeof(struct block) <= 64, "the header fits in front of any block");

static struct block *block_of(void *ptr) {
    return (struct block *)(void *)((unsigned char *)ptr - sizeof(struct block));
}

static bool arguments_hold(size_t bytes, size_t alignment, uint32_t flags) {
    return bytes > 0 && alignment >= 64 && (alignment & (alignment - 1)) == 0 &&
           (flags & ~(uint32_t)(SB_ALLOC_ZEROED | SB_ALLOC_OBJECT)) == 0;
}

static bool may_allocate(struct counting_allocator *counting, size_t bytes, uint32_t flags) {
    bool refused = counting->fail_nth > 0 && --counting->fail_nth == 0;
    refused |= counting->byte_cap && counting->live_bytes + bytes > counting->byte_cap;
    *(flags & SB_ALLOC_OBJECT ? &counting->object_calls : &counting->buffer_calls) += 1;
    counting->failures += refused;
    return !refused;
}

static void book(struct counting_allocator *counting, size_t bytes, uint32_t flags) {
    counting->live_blocks++;
    counting->live_buffers += (flags & SB_ALLOC_OBJECT) == 0;
    counting->live_bytes += bytes;
    if (counting->live_bytes > counting->peak_bytes)
        counting->peak_bytes = counting->live_bytes;
}

static void *carve(size_t bytes, size_t alignment, uint32_t flags) {
    void *raw = test_aligned_alloc(alignment, bytes + alignment);
    if (!raw)
        return NULL;
    unsigned char *ptr = (unsigned char *)raw + alignment;
    if (flags & SB_ALLOC_ZEROED)
        memset(ptr, 0, bytes);
    else
        memset(ptr, RUBBISH, bytes < RUBBISH_BYTES_MAX ? bytes : RUBBISH_BYTES_MAX);
    *block_of(ptr) = (struct block){BLOCK_MAGIC, bytes, alignment, flags};
    return ptr;
}

static void *counting_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    struct counting_allocator *counting = user;
    void *ptr = NULL;
    pthread_mutex_lock(&counting->lock);
    if (!arguments_hold(bytes, alignment, flags))
        counting->violations++;
    else if (may_allocate(counting, bytes, flags))
        ptr = carve(bytes, alignment, flags);
    if (ptr)
        book(counting, bytes, flags);
    pthread_mutex_unlock(&counting->lock);
    return ptr;
}

static void counting_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
    struct counting_allocator *counting = user;
    pthread_mutex_lock(&counting->lock);
    counting->free_calls++;
    struct block *block = ptr ? block_of(ptr) : NULL;
    if (!block || block->magic != BLOCK_MAGIC) {
        counting->violations++;
    } else {
        counting->violations +=
            block->bytes != bytes || block->alignment != alignment || block->flags != flags;
        counting->live_blocks--;
        counting->live_buffers -= (block->flags & SB_ALLOC_OBJECT) == 0;
        counting->live_bytes -= block->bytes;
        void *raw = (unsigned char *)ptr - block->alignment;
        block->magic = 0;
        test_aligned_free(raw);
    }
    pthread_mutex_unlock(&counting->lock);
}

sb_allocator counting_allocator_table(struct counting_allocator *counting) {
    return (sb_allocator){counting_alloc, counting_free, counting};
}
