/* Loads values into a blob in two steps: begin returns pointers to which the caller writes, and
   commit changes the blob. Begin changes nothing observable, and commit cannot fail. */
#ifndef SB_BLOB_LOAD_H
#define SB_BLOB_LOAD_H

#include "memory/write.h"

#include <syncblob/blob.h>

struct sb__shape {
    int32_t num_axes; /* -1 if the blob was never shaped */
    int64_t count;
    int64_t dims[SB_MAX_AXES];
};

/* Checks the dimensions and computes the count. Returns INVALID_ARGUMENT, OVER_LIMIT or
   SIZE_OVERFLOW in the same cases as sb_blob_reshape. */
sb_status sb__shape_make(struct sb__shape *out, const int64_t *dims, int32_t num_axes,
                         size_t element_size, sb_error *err);
const struct sb__shape *sb__blob_shape(const sb_blob *blob);
bool sb__shape_is(const struct sb__shape *shape, const int64_t *dims, int32_t num_axes);
/* Returns whether `shape` equals the last axes of `legacy`, and all other axes of `legacy` are
   1. */
bool sb__shape_is_legacy(const struct sb__shape *shape, const struct sb__shape *legacy);

static inline void sb__shape_copy(struct sb__shape *to, const struct sb__shape *from) {
    const int32_t num_axes = from->num_axes;
    to->num_axes = num_axes;
    to->count = from->count;
    for (int32_t i = 0; i < num_axes; i++)
        to->dims[i] = from->dims[i];
}

struct sb__load_side {
    bool wanted;
    sb_mem *fresh; /* a new memory, or NULL if the load writes the blob's old memory */
    struct sb__write write;
    void *ptr; /* where the caller writes the values: write.ptr or `scratch` */
    size_t bytes;
    bool in_place; /* the load writes existing storage */
    bool pinned;   /* `scratch` is page-locked */
    void *scratch; /* a buffer that commit copies to write.ptr, or NULL */
};

struct sb__load {
    sb_blob *blob;
    struct sb__shape shape;
    struct sb__load_side data, diff;
    struct sb__retired retired; /* replaced storage, which commit and cancel release */
};

/* These functions load a blob's data or diff on one side. Begin reuses storage that is large
   enough, and blobs that share this storage then see the values. Otherwise begin allocates storage.
   A failed begin needs no cancel. After commit the caller sets the shape. `retired` receives
   replaced storage. */
sb_status sb__load_side_begin(struct sb__load_side *load, sb_blob *blob, sb_part part,
                              const struct sb__shape *shape, int32_t side,
                              struct sb__retired *retired, sb_error *err);
void sb__load_side_cancel(struct sb__load_side *load, struct sb__retired *retired);
void sb__load_side_commit(struct sb__load_side *load, sb_blob *blob, sb_part part,
                          struct sb__retired *retired);

/* Returns an upper bound of the bytes that sb__load_begin allocates or copies for `bytes` bytes of
   values: `bytes`, or the memory's capacity if bytes beyond the values must also be copied. */
size_t sb__load_room(const sb_blob *blob, sb_part part, size_t bytes);

/* Returns sb__load_room plus the library's overhead: the sb_mem, and the rounding of page-locked
   memory to its size class. */
size_t sb__load_size(const sb_blob *blob, sb_part part, size_t bytes);

/* Begins to load data and, if `want_diff`, diff, on the host. The commit sets the blob's shape to
   `shape`. load->data.ptr and load->diff.ptr point to host memory for shape->count > 0 elements of
   the blob's dtype. The caller writes all elements. If `may_fail`, the caller may cancel after it
   has written some elements, so existing storage remains unchanged until commit. Errors:
   OUT_OF_MEMORY, CAP_REACHED and the errors of a mutable call. */
sb_status sb__load_begin(struct sb__load *load, sb_blob *blob, const struct sb__shape *shape,
                         bool want_diff, bool may_fail, sb_error *err);
void sb__load_commit(struct sb__load *load);
void sb__load_cancel(struct sb__load *load);

#endif
