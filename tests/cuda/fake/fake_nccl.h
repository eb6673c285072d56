/* The functions that the fake libnccl.so.2 exports besides NCCL's. fake_fail makes calls of NCCL
   fail, with a ncclResult_t as the code. */
#ifndef SB_TESTS_FAKE_NCCL_H
#define SB_TESTS_FAKE_NCCL_H

#include "fake.h"

#include <nccl.h>

/* Makes the `nth` operation of this rank from now on, in any communicator, run forever. Unless
   `code` is ncclSuccess, ncclCommGetAsyncError soon returns `code`. A call with `nth` 0 removes the
   fault. */
FAKE_API void fake_nccl_fail(int rank, int64_t nth, ncclResult_t code);
/* Returns the number of communicators that are neither destroyed nor aborted. */
FAKE_API int64_t fake_nccl_live(void);

#endif
