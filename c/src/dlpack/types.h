/* Element types by their numbers in DLPack. */
#ifndef SB_DLPACK_TYPES_H
#define SB_DLPACK_TYPES_H

#include <syncblob/dlpack.h>

/* `dtype` is storable. */
sb_dl_data_type sb__dl_type_of(int32_t dtype);
/* SB_DTYPE_*; 0 for a type that no blob holds. */
int32_t sb__dl_dtype(sb_dl_data_type type);

#endif
