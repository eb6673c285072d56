/* The functions that the fake libnccl.so.2 exports besides NCCL's functions. fake_fail can make
   calls of NCCL fail, with an ncclResult_t as `code`. */
#ifndef SB_TESTS_FAKE_NCCL_H
#define SB_TESTS_FAKE_NCCL_H

#include "fake.h"

#include <nccl.h>

/* Makes the `nth` operation from now on of this rank, in any communicator, run forever. If `code`
   is not ncclSuccess, ncclCommGetAsyncError then reports `code`. A call with `nth` 0 removes the
   fault. */
FAKE_API void fake_nccl_fail(int rank, int64_t nth, ncclResult_t code);
/* Returns the number of communicators that are neither destroyed nor aborted. */
FAKE_API int64_t fake_nccl_live(void);

#endif
