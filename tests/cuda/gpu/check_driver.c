/* The declarations of driver.h against a toolkit's header: compiled, never run. */
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
_Static_assert((int)ATTACH_GLOBAL == (int)CU_MEM_ATTACH_GLOBAL, "managed");
