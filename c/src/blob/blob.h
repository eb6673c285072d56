/* The struct of sb_blob and functions of blob/. */
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
    /* Created by the first call that needs them, also a const call: &sb__no_memory until then. */
    _Atomic(sb_mem *) memory[2]; /* by sb_part */
    _Atomic(sb_mem *) gpu_shape; /* dims, for the device */
};

static inline bool sb__is_part(sb_part part) {
    return (uint32_t)part <= SB_DIFF;
}

/* INVALID_ARGUMENT unless `part` is SB_DATA or SB_DIFF. */
sb_status sb__check_part(sb_part part, sb_error *err);

/* The size of the elements in bytes; sb__shape_make has checked that it fits. */
static inline size_t sb__blob_bytes(const sb_blob *blob) {
    return (size_t)blob->shape.count * blob->element_size;
}

/* A placeholder where no memory was created: never written, of size 0, with a state word that fails
   every fast path. Read-only. */
extern const sb_mem sb__no_memory;

static inline sb_mem *sb__no_mem(void) {
    return (sb_mem *)&sb__no_memory;
}

/* Recognised by having no owner, not by its address: the blob may belong to another copy of the
   library in the process. */
static inline bool sb__is_no_memory(const sb_mem *mem) {
    return atomic_load_explicit(&mem->refs, memory_order_relaxed) == 0;
}

/* The memory if it exists, else NULL. */
static inline sb_mem *sb__peek(const _Atomic(sb_mem *) *memory) {
    sb_mem *mem = atomic_load_explicit(memory, memory_order_acquire);
    return sb__is_no_memory(mem) ? NULL : mem;
}

/* The memory, or sb__no_memory, also for an invalid part. Branches cost less than a computed index.
 */
static inline const sb_mem *sb__blob_memory_or_none(const sb_blob *blob, sb_part part) {
    if (__builtin_expect(part == SB_DATA, 1))
        return atomic_load_explicit(&blob->memory[SB_DATA], memory_order_acquire);
    return part == SB_DIFF ? atomic_load_explicit(&blob->memory[SB_DIFF], memory_order_acquire)
                           : &sb__no_memory;
}

/* The memory; NULL if it does not exist, and for an invalid part. */
static inline sb_mem *sb__blob_peek(const sb_blob *blob, sb_part part) {
    return sb__is_part(part) ? sb__peek(&blob->memory[part]) : NULL;
}

/* The memory, created if necessary. */
sb_status sb__blob_memory(const sb_blob *blob, sb_part part, sb_mem **out, sb_error *err);

/* Replaces a blob's memory by `mem` (owned; NULL: none) and adds the old one to `retired`; the
   caller has exclusive access to the blob. */
void sb__swap(_Atomic(sb_mem *) *memory, sb_mem *mem, struct sb__retired *retired);
/* sb__swap as the last step of a call: runs deleters. */
void sb__replace(_Atomic(sb_mem *) *memory, sb_mem *mem);

/* Sets a checked shape; adds memories that are too small to `retired`. Returns SB_REALLOCATED_*
   bits. */
uint32_t sb__blob_take_shape(sb_blob *blob, const struct sb__shape *shape,
                             struct sb__retired *retired);

/* Four axes, the most frequent case, are compared without a loop. */
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
