/* The rows of contract.tsv for NCCL. */
#include "probe.h"

#include <nccl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define COUNT      1000
#define BYTES      (COUNT * sizeof(float))
#define POLLS      30000 /* one each millisecond */
#define NCCL(name) ((__typeof__(&(name)))look_up(nccl, STRING(name)))

/* --- ranks --------------------------------------------------------------------------------- */

static ncclResult_t begin(ncclComm_t *comm, int rank, unsigned int magic) {
    ncclConfig_t whole = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    whole.size = offsetof(ncclConfig_t, cgaClusterSize) + sizeof(int);
    whole.version = NCCL_VERSION(2, 14, 0);
    whole.magic = magic ? magic : whole.magic;
    whole.blocking = 0;
    *comm = NULL;
    if (NCCL(ncclGetUniqueId)(&id) != ncclSuccess)
        return ncclSystemError;
    return NCCL(ncclCommInitRankConfig)(comm, 1, id, rank, &whole);
}

/* Waits until the communicator's call is not in progress. Returns whether the call succeeded. */
static bool settles(ncclComm_t comm, ncclResult_t first) {
    ncclResult_t state = first;
    for (int i = 0; i < POLLS && (first == ncclSuccess || first == ncclInProgress); i++) {
        if (NCCL(ncclCommGetAsyncError)(comm, &state) != ncclSuccess || state != ncclInProgress)
            return state == ncclSuccess;
        (void)usleep(1000);
    }
    return false;
}

static bool make(ncclComm_t *comm) {
    const ncclResult_t result = begin(comm, 0, 0);
    return settles(*comm, result);
}

static bool abort_it(ncclComm_t comm) {
    return NCCL(ncclCommAbort)(comm) == ncclSuccess;
}

ROW(no_rank) {
    ncclComm_t comm;
    return begin(&comm, 1, 0) == ncclInvalidArgument;
}

ROW(unknown_magic) {
    ncclComm_t comm;
    return begin(&comm, 0, 1) == ncclInvalidArgument;
}

ROW(group_of_one) {
    ncclComm_t comm;
    bool right = NCCL(ncclGroupStart)() == ncclSuccess;
    const ncclResult_t result = begin(&comm, 0, 0);
    right &= result == ncclSuccess || result == ncclInProgress;
    const ncclResult_t ended = NCCL(ncclGroupEnd)();
    return right && settles(comm, ended) && abort_it(comm);
}

ROW(finalize) {
    ncclComm_t comm;
    return make(&comm) && settles(comm, NCCL(ncclCommFinalize)(comm)) &&
           NCCL(ncclCommDestroy)(comm) == ncclSuccess;
}

ROW(in_progress) {
    ncclComm_t comm;
    return make(&comm) && abort_it(comm);
}

/* --- operations ---------------------------------------------------------------------------- */

static CUdeviceptr memory;
static float values[COUNT];

static bool upload(void) {
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i - 300;
    return OK(CU(cuMemAlloc)(&memory, BYTES)) &&
           OK(CU(cuMemcpyHtoDAsync)(memory, values, BYTES, stream));
}

/* Returns whether the memory holds the values; frees the memory. */
static bool finds_values(void) {
    float found[COUNT];
    return OK(CU(cuMemcpyDtoHAsync)(found, memory, BYTES, stream)) &&
           OK(CU(cuStreamSynchronize)(stream)) && memcmp(found, values, BYTES) == 0 &&
           OK(CU(cuMemFree)(memory));
}

static bool reduce(bool waits) {
    ncclComm_t comm;
    bool right = make(&comm) && upload();
    void *ptr = (void *)(uintptr_t)memory;
    if (waits)
        right = right && OK(CU(cuStreamSynchronize)(stream));
    right = right &&
            settles(comm, NCCL(ncclAllReduce)(ptr, ptr, COUNT, ncclFloat32, ncclSum, comm, stream));
    return right && finds_values() && abort_it(comm);
}

HOLDS(reduce_alone, reduce(true))
HOLDS(after_stream, reduce(false))

ROW(broadcast_alone) {
    ncclComm_t comm;
    const bool right = make(&comm) && upload();
    void *ptr = (void *)(uintptr_t)memory;
    return right &&
           settles(comm, NCCL(ncclBroadcast)(ptr, ptr, BYTES, ncclUint8, 0, comm, stream)) &&
           finds_values() && abort_it(comm);
}

ROW(texts) {
    for (unsigned int i = 0; i <= ncclNumResults; i++)
        if (!NCCL(ncclGetErrorString)((ncclResult_t)i))
            return false;
    return true;
}
