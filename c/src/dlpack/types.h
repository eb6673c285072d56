/* Converts between the element types of blobs and of DLPack. */
#ifndef SB_DLPACK_TYPES_H
#define SB_DLPACK_TYPES_H

#include <syncblob/dlpack.h>

/* Returns the type of `dtype`, a valid SB_DTYPE_*. */
sb_dl_data_type sb__dl_type_of(int32_t dtype);
/* Returns SB_DTYPE_*, or 0 for a type that blobs do not support. */
int32_t sb__dl_dtype(sb_dl_data_type type);

#endif
