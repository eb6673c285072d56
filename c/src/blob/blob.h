#ifndef SB_BLOB_BLOB_H
#define SB_BLOB_BLOB_H

#include "blob/load.h"
#include "memory/mem.h"

#include <syncblob/blob.h>

struct sb_blob {
    sb_context *context;
    int32_t dtype;
    uint32_t element_size; /* bytes */
    struct sb__shape shape;
    /* Each pointer is &sb__no_memory until a call (even a const call) creates the memory. */
    _Atomic(sb_mem *) memory[2]; /* indexed by sb_part */
    _Atomic(sb_mem *) gpu_shape; /* the dimensions, for sb_blob_gpu_shape */
};

static inline bool sb__is_part(sb_part part) {
    return (uint32_t)part <= SB_DIFF;
}

sb_status sb__check_part(sb_part part, sb_error *err);

/* Returns the size of all elements in bytes. sb__shape_make has checked that the product fits. */
static inline size_t sb__blob_bytes(const sb_blob *blob) {
    return (size_t)blob->shape.count * blob->element_size;
}

/* The placeholder for a memory that does not exist yet. The placeholder has the size 0 and the head
   UNINITIALIZED, fails every check of a fast path, and is never modified. */
extern const sb_mem sb__no_memory;

static inline sb_mem *sb__no_mem(void) {
    return (sb_mem *)&sb__no_memory;
}

/* Recognises the placeholder by its count of owners, 0. The address does not identify the
   placeholder: each copy of the library in the process has a separate placeholder, and any copy may
   have created the blob. */
static inline bool sb__is_placeholder(const sb_mem *mem) {
    return atomic_load_explicit(&mem->refs, memory_order_relaxed) == 0;
}

static inline sb_mem *sb__peek(const _Atomic(sb_mem *) *memory) {
    sb_mem *mem = atomic_load_explicit(memory, memory_order_acquire);
    return sb__is_placeholder(mem) ? NULL : mem;
}

/* Returns the part's memory, or the placeholder if the memory does not exist or `part` is invalid.
   Uses branches, which are faster than a computed index. */
static inline const sb_mem *sb__blob_memory_or_none(const sb_blob *blob, sb_part part) {
    if (__builtin_expect(part == SB_DATA, 1))
        return atomic_load_explicit(&blob->memory[SB_DATA], memory_order_acquire);
    return part == SB_DIFF ? atomic_load_explicit(&blob->memory[SB_DIFF], memory_order_acquire)
                           : &sb__no_memory;
}

/* Returns the part's memory, or NULL if the memory does not exist or `part` is invalid. */
static inline sb_mem *sb__blob_peek(const sb_blob *blob, sb_part part) {
    return sb__is_part(part) ? sb__peek(&blob->memory[part]) : NULL;
}

/* Sets `*out` to the part's memory, which the call creates if necessary. */
sb_status sb__blob_memory(const sb_blob *blob, sb_part part, sb_mem **out, sb_error *err);

/* Replaces a blob's memory by `mem` (may be NULL) and takes ownership of `mem`. Adds the old memory
   to `retired` if the blob was its last owner. The caller has exclusive access to the blob. */
void sb__swap(_Atomic(sb_mem *) *memory, sb_mem *mem, struct sb__retired *retired);
/* As sb__swap, but releases the old memory at once, which may run deleters. */
void sb__replace(_Atomic(sb_mem *) *memory, sb_mem *mem);

/* Sets a shape that sb__shape_make has checked. Moves to `retired` the memories that are too small.
   Returns SB_REALLOCATED_* bits. */
uint32_t sb__blob_take_shape(sb_blob *blob, const struct sb__shape *shape,
                             struct sb__retired *retired);

/* Returns whether the shapes are equal. Four axes, the most frequent case, need no loop. */
static inline bool sb__shape_same(const struct sb__shape *a, const struct sb__shape *b) {
    const int64_t *x = a->dims, *y = b->dims;
    const int32_t axes = a->num_axes;
    if (axes != b->num_axes)
        return false;
    if (axes == 4)
        return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]));
    for (int32_t i = 0; i < axes; i++)
        if (x[i] != y[i])
            return false;
    return true;
}

#endif
