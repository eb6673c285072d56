#ifndef SB_BASE_DTYPE_H
#define SB_BASE_DTYPE_H

#include <stdbool.h>
#include <syncblob/base.h>

#define SB__IS_DTYPE(NAME, number, name, type, kind, with) (with) == SB_DTYPE_##NAME ||

/* Returns whether `dtype` is F32 or F64. The library has arithmetic and fillers for these dtypes,
   and writes BlobProto messages of them. */
static inline bool sb__is_float(sb_dtype dtype) {
    return SB_DTYPE_FLOAT_LIST(SB__IS_DTYPE, dtype) false;
}

static inline bool sb__is_integer(sb_dtype dtype) {
    return SB_DTYPE_INTEGER_LIST(SB__IS_DTYPE, dtype) false;
}

#endif
