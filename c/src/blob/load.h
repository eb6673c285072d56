/* Loading into a blob in two steps, for readers of bytes: begin returns pointers to write to,
   commit changes the blob. Begin changes nothing observable, and commit cannot fail. */
#ifndef SB_BLOB_LOAD_H
#define SB_BLOB_LOAD_H

#include "memory/write.h"

#include <syncblob/blob.h>

struct sb__shape {
    int32_t num_axes; /* -1: never shaped */
    int64_t count;
    int64_t dims[SB_MAX_AXES];
};

/* Checks dimensions and computes the count; INVALID_ARGUMENT, OVER_LIMIT, SIZE_OVERFLOW as in
   sb_blob_reshape. */
sb_status sb__shape_make(struct sb__shape *out, const int64_t *dims, int32_t num_axes,
                         size_t element_size, sb_error *err);
const struct sb__shape *sb__blob_shape(const sb_blob *blob);
bool sb__shape_is(const struct sb__shape *shape, const int64_t *dims, int32_t num_axes);
/* Returns whether `shape` has the last axes of `legacy`, and the other axes of `legacy` are 1. */
bool sb__shape_is_legacy(const struct sb__shape *shape, const struct sb__shape *legacy);

/* Copies only the dimensions in use. */
static inline void sb__shape_copy(struct sb__shape *to, const struct sb__shape *from) {
    const int32_t num_axes = from->num_axes;
    to->num_axes = num_axes;
    to->count = from->count;
    for (int32_t i = 0; i < num_axes; i++)
        to->dims[i] = from->dims[i];
}

struct sb__load_side {
    bool wanted;
    sb_mem *fresh; /* a new memory, or NULL if the blob's memory is written */
    struct sb__write write;
    void *ptr; /* the values' target: write.ptr or the scratch buffer */
    size_t bytes;
    bool in_place; /* existing storage is written */
    bool pinned;   /* the scratch buffer is page-locked */
    void *scratch; /* copied to write.ptr at the commit; NULL: none */
};

struct sb__load {
    sb_blob *blob;
    struct sb__shape shape;
    struct sb__load_side data, diff;
    struct sb__retired retired; /* replaced storage: ended by commit and cancel */
};

/* Loads one side, on the host or the device: writes existing storage of sufficient size in place,
   so that blobs that share the storage see the values; else allocates new storage. A failed begin
   needs no cancel. After the commit the caller sets the shape. Replaced storage is added to
   `retired`. */
sb_status sb__load_side_begin(struct sb__load_side *load, sb_blob *blob, sb_part part,
                              const struct sb__shape *shape, int32_t side,
                              struct sb__retired *retired, sb_error *err);
void sb__load_side_cancel(struct sb__load_side *load, struct sb__retired *retired);
void sb__load_side_commit(struct sb__load_side *load, sb_blob *blob, sb_part part,
                          struct sb__retired *retired);

/* Returns the most bytes that sb__load_begin allocates or moves for a side with `bytes` bytes of
   values: the memory's capacity if the bytes beyond the values must move, too. */
size_t sb__load_room(const sb_blob *blob, sb_part part, size_t bytes);

/* Returns sb__load_room plus the library's overhead: the handle, and the rounding of page-locked
   memory to its size class. */
size_t sb__load_size(const sb_blob *blob, sb_part part, size_t bytes);

/* Begins to load data and, if wanted, diff, on the host; commit sets the blob's shape to `shape`.
   For each wanted side, load.X.ptr points to host memory for shape.count elements of the blob's
   dtype (count > 0): the caller writes all of them. `may_fail`: the writer may fail before the end;
   existing storage is then not written until commit. Errors: OUT_OF_MEMORY, CAP_REACHED and the
   errors of a mutable call. */
sb_status sb__load_begin(struct sb__load *load, sb_blob *blob, const struct sb__shape *shape,
                         bool want_diff, bool may_fail, sb_error *err);
void sb__load_commit(struct sb__load *load);
void sb__load_cancel(struct sb__load *load);

#endif
