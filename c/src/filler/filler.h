/* Checks an sb_filler and derives its random sequence for a shape. */
#ifndef SB_FILLER_FILLER_H
#define SB_FILLER_FILLER_H

#include "blob/load.h"
#include "filler/random.h"

#include <syncblob/filler.h>

/* Field numbers of FillerParameter in caffe.proto. */
enum {
    SB__FILLER_TYPE = 1,
    SB__FILLER_VALUE,
    SB__FILLER_MIN,
    SB__FILLER_MAX,
    SB__FILLER_MEAN,
    SB__FILLER_STD,
    SB__FILLER_SPARSE,
    SB__FILLER_VARIANCE_NORM
};

/* The size of sb_filler in version 0.1. */
#define SB__FIRST_FILLER_SIZE (offsetof(sb_filler, reserved) + sizeof(int32_t))

struct sb__filler_fault {
    uint32_t field, other; /* numbers of the faulty fields; `other` is 0 if one field is faulty */
    char text[96];         /* for example "std is -1, which is negative" */
};

/* Checks the members that do not depend on the blob. On failure returns false and describes the
   fault. */
bool sb__filler_check(const sb_filler *filler, struct sb__filler_fault *fault);

/* Returns SHAPE_MISMATCH if the type of the filler does not support the shape. Returns
   INVALID_ARGUMENT if filler->sparse exceeds the first dimension. shape->count must not be 0. */
sb_status sb__filler_check_shape(const sb_filler *filler, const struct sb__shape *shape,
                                 sb_error *err);

/* Returns the random sequence of a filler that has passed the checks above. */
struct sb__random sb__filler_random(const sb_filler *filler, const struct sb__shape *shape,
                                    int32_t dtype, uint64_t seed);

#endif
