/* sb_filler from inside: what is wrong with one, and what it makes of a shape. */
#ifndef SB_FILLER_FILLER_H
#define SB_FILLER_FILLER_H

#include "blob/load.h"
#include "filler/random.h"

#include <syncblob/filler.h>

/* FillerParameter's numbers of its fields. */
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

/* What sb_filler ended with in version 0.1. */
#define SB__FIRST_FILLER_SIZE (offsetof(sb_filler, reserved) + sizeof(int32_t))

struct sb__filler_fault {
    uint32_t field, other; /* `other` is part of it, or 0 */
    char text[96];         /* "std is -1, which is negative" */
};

/* False, and why, for parameters that no blob can be filled by. */
bool sb__filler_check(const sb_filler *filler, struct sb__filler_fault *fault);

/* Shapes that the type does not fit, and sparse above the first dimension: SHAPE_MISMATCH,
   INVALID_ARGUMENT. The count is not 0. */
sb_status sb__filler_check_shape(const sb_filler *filler, const struct sb__shape *shape,
                                 sb_error *err);

/* The sequence of a filler that draws random numbers, after both checks. */
struct sb__random sb__filler_random(const sb_filler *filler, const struct sb__shape *shape,
                                    int32_t dtype, uint64_t seed);

#endif
