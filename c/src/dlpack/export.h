/* A tensor that this copy of the library has exported. */
#ifndef SB_DLPACK_EXPORT_H
#define SB_DLPACK_EXPORT_H

#include <syncblob/dlpack.h>

struct sb__lease;

struct sb__export {
    union {
        sb_dl_managed_versioned versioned;
        sb_dl_managed legacy;
    } tensor;
    sb_context *context;     /* the blob's context, retained (not always the lease's context) */
    struct sb__lease *lease; /* the tensor's lease of the storage */
    int32_t side;            /* the tensor's side (both sides may share the lease's storage) */
    size_t bytes;            /* the size of this struct */
    int64_t dims[];          /* the shape, then the strides */
};

/* Returns the struct that contains `tensor`, or NULL if another producer made or wrapped the
   tensor. */
struct sb__export *sb__export_of(const sb_dl_managed_versioned *tensor);
struct sb__export *sb__export_of_legacy(const sb_dl_managed *tensor);
/* Frees the struct and its tensor without releasing the lease. */
void sb__export_free(struct sb__export *e);

#endif
