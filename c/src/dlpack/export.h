/* A tensor of this copy of the library, from inside. */
#ifndef SB_DLPACK_EXPORT_H
#define SB_DLPACK_EXPORT_H

#include <syncblob/dlpack.h>

struct sb__lease;

struct sb__export {
    union {
        sb_dl_managed_versioned versioned;
        sb_dl_managed legacy;
    } tensor;
    sb_context *context;     /* retained: the blob's; the storage may be another's */
    struct sb__lease *lease; /* the tensor is one of its holders */
    size_t bytes;            /* of this struct */
    int64_t dims[];          /* the shape, then the strides */
};

/* The export that a tensor is; NULL: it is another producer's, or wrapped by one. */
struct sb__export *sb__export_of(const sb_dl_managed_versioned *tensor);
struct sb__export *sb__export_of_legacy(const sb_dl_managed *tensor);
/* Frees the tensor alone: its place among the lease's holders stays. */
void sb__export_free(struct sb__export *e);

#endif
