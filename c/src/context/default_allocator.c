/* The built-in allocator. Large blocks are mapped from the kernel at 2 MiB boundaries, and the
   kernel is advised to use huge pages. The kernel zeroes the blocks. The first touch of huge pages
   costs a fifth as much as the first touch of small pages. */

#include "base/checked.h"
#include "context/context.h"
#include "port/pages.h"

#include <syncblob/context.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HUGE_PAGE ((size_t)2 << 20)

static bool is_large(size_t bytes, size_t alignment) {
    return bytes >= HUGE_PAGE && alignment <= HUGE_PAGE;
}

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* Returns the kernel's page size: 4, 16 or 64 KiB, which divide a huge page. */
static size_t page_size(void) {
    static _Atomic size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size == 0) {
        size = sb__page_size();
        atomic_store_explicit(&known, size, memory_order_relaxed);
    }
    return size;
}

static void *map_large(size_t bytes) {
    if (bytes > PTRDIFF_MAX) /* the rounding below could overflow */
        return NULL;
    return sb__pages_map(round_up(bytes, page_size()), HUGE_PAGE);
}

/* Uses malloc, which is faster, for objects of the library: they need only malloc's alignment. */
static void *small_block(size_t bytes, size_t alignment, uint32_t flags) {
    size_t length;
    if (flags & SB_ALLOC_OBJECT)
        return malloc(bytes);
    if (!sb__add_size(bytes, alignment, &length))
        return NULL;
    return sb__aligned_alloc(alignment, round_up(bytes, alignment));
}

static void *default_alloc(void *user, size_t bytes, size_t alignment, uint32_t flags) {
    (void)user;
    if (is_large(bytes, alignment))
        return map_large(bytes);
    void *block = small_block(bytes, alignment, flags);
    if (block && flags & SB_ALLOC_ZEROED && !(flags & SB__ALLOC_ANY))
        memset(block, 0, bytes);
    return block;
}

static void default_free(void *user, void *ptr, size_t bytes, size_t alignment, uint32_t flags) {
    (void)user;
    if (is_large(bytes, alignment))
        sb__pages_unmap(ptr, round_up(bytes, page_size()));
    else if (flags & SB_ALLOC_OBJECT)
        free(ptr);
    else
        sb__aligned_free(ptr);
}

const sb_allocator sb__default_allocator = {default_alloc, default_free, NULL};
