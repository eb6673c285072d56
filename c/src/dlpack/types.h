/* Converts between the element types of blobs and of DLPack. */
#ifndef SB_DLPACK_TYPES_H
#define SB_DLPACK_TYPES_H

#include <syncblob/dlpack.h>

/* Returns the DLPack type for `dtype`, which must be a valid SB_DTYPE_*. */
sb_dl_data_type sb__dl_type_of(int32_t dtype);
/* Returns the SB_DTYPE_* for a DLPack type, or 0 if blobs do not support the type. */
int32_t sb__dl_dtype(sb_dl_data_type type);

#endif
