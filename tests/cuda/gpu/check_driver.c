/* Compares the declarations of driver.h with a toolkit's header: compiled, never run. */
#include "driver.h"

#include <cuda.h>

#define SAME_PROTOTYPE(result, symbol, parameters)                                                 \
    extern result(*const check_##symbol) parameters;                                               \
    result(*const check_##symbol) parameters = &symbol;
APPLICATION_FUNCTIONS(SAME_PROTOTYPE)
OPTIONAL_FUNCTIONS(SAME_PROTOTYPE)
#if CUDA_VERSION < 13000
OLD_FUNCTIONS(SAME_PROTOTYPE)
#endif

_Static_assert((int)STREAM_NON_BLOCKING == (int)CU_STREAM_NON_BLOCKING, "non-blocking");
_Static_assert((int)CAPTURE_GLOBAL == (int)CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
_Static_assert(sizeof(struct allocation) == sizeof(CUmemAllocationProp), "allocation");
_Static_assert(offsetof(struct allocation, location) == offsetof(CUmemAllocationProp, location),
               "location");
_Static_assert((int)GREEN_DEFAULT_STREAM == (int)CU_GREEN_CTX_DEFAULT_STREAM, "green");
_Static_assert((int)RESOURCE_SM == (int)CU_DEV_RESOURCE_TYPE_SM, "resource");
_Static_assert(RESOURCE_BYTES >= sizeof(CUdevResource), "resource");
_Static_assert((int)ATTACH_GLOBAL == (int)CU_MEM_ATTACH_GLOBAL, "managed");
