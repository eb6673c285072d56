/* Runs the rows of nccl_contract.tsv on whatever libcuda.so.1 and libnccl.so.2 are found: the
   fakes, or real ones with a device. A row whose result differs fails; one without code here,
   or code without a row, too. Ends with 77 where there is no NCCL. */
#include <cuda.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT         1000
#define BYTES         (COUNT * sizeof(float))
#define POLLS         30000 /* milliseconds */
#define STRING(name)  STRING_(name)
#define STRING_(name) #name
#define CU(name)      ((__typeof__(&(name)))look_up(driver, STRING(name)))
#define NCCL(name)    ((__typeof__(&(name)))look_up(nccl, STRING(name)))

static void *driver, *nccl;
static CUstream stream;
static CUdeviceptr memory;
static float values[COUNT];

static void (*look_up(void *library, const char *name))(void) {
    void (*function)(void) = NULL;
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "probe: there is no %s\n", name);
        exit(2);
    }
    memcpy(&function, &symbol, sizeof function);
    return function;
}

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

/* True once it is at rest and well. */
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

static bool in_progress(void) {
    ncclComm_t comm;
    const ncclResult_t result = begin(&comm, 0, 0);
    return settles(comm, result) && abort_it(comm);
}

static bool no_rank(void) {
    ncclComm_t comm;
    return begin(&comm, 1, 0) == ncclInvalidArgument;
}

static bool unknown_magic(void) {
    ncclComm_t comm;
    return begin(&comm, 0, 1) == ncclInvalidArgument;
}

static bool group_of_one(void) {
    ncclComm_t comm;
    bool right = NCCL(ncclGroupStart)() == ncclSuccess;
    const ncclResult_t result = begin(&comm, 0, 0);
    right &= result == ncclSuccess || result == ncclInProgress;
    const ncclResult_t ended = NCCL(ncclGroupEnd)();
    return right && settles(comm, ended) && abort_it(comm);
}

static bool finalize(void) {
    ncclComm_t comm;
    return make(&comm) && settles(comm, NCCL(ncclCommFinalize)(comm)) &&
           NCCL(ncclCommDestroy)(comm) == ncclSuccess;
}

static bool abort_idle(void) {
    ncclComm_t comm;
    return make(&comm) && abort_it(comm);
}

/* --- operations ---------------------------------------------------------------------------- */

static bool upload(void) {
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i - 300;
    return CU(cuMemcpyHtoDAsync)(memory, values, BYTES, stream) == CUDA_SUCCESS;
}

static bool finds_values(void) {
    float found[COUNT];
    if (CU(cuMemcpyDtoHAsync)(found, memory, BYTES, stream) != CUDA_SUCCESS ||
        CU(cuStreamSynchronize)(stream) != CUDA_SUCCESS)
        return false;
    return memcmp(found, values, BYTES) == 0;
}

static bool reduce(bool waits) {
    ncclComm_t comm;
    void *ptr = (void *)(uintptr_t)memory;
    bool right = make(&comm) && upload();
    if (waits)
        right = right && CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS;
    right = right &&
            settles(comm, NCCL(ncclAllReduce)(ptr, ptr, COUNT, ncclFloat32, ncclSum, comm, stream));
    return right && finds_values() && abort_it(comm);
}

static bool reduce_alone(void) {
    return reduce(true);
}

static bool after_stream(void) {
    return reduce(false);
}

static bool broadcast_alone(void) {
    ncclComm_t comm;
    void *ptr = (void *)(uintptr_t)memory;
    return make(&comm) && upload() &&
           settles(comm, NCCL(ncclBroadcast)(ptr, ptr, BYTES, ncclUint8, 0, comm, stream)) &&
           finds_values() && abort_it(comm);
}

static bool texts(void) {
    for (unsigned int i = 0; i <= ncclNumResults; i++)
        if (!NCCL(ncclGetErrorString)((ncclResult_t)i))
            return false;
    return true;
}

/* --- the table ----------------------------------------------------------------------------- */

#define ROW(name)                                                                                  \
    { #name, name, false }
static struct {
    const char *id;
    bool (*holds)(void);
    bool listed;
} rows[] = {
    ROW(in_progress),     ROW(no_rank),  ROW(unknown_magic), ROW(reduce_alone), ROW(after_stream),
    ROW(broadcast_alone), ROW(finalize), ROW(abort_idle),    ROW(group_of_one), ROW(texts),
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* How many failures: 0 or 1. */
static int check_row(const char *line) {
    const size_t length = strcspn(line, "\t");
    for (int i = 0; i < ROWS; i++) {
        if (strlen(rows[i].id) != length || strncmp(rows[i].id, line, length) != 0)
            continue;
        rows[i].listed = true;
        return rows[i].holds() ? 0 : printf("differs: %s", line) > 0;
    }
    return printf("nothing runs the row %s", line) > 0;
}

static bool open_device(void) {
    CUcontext context;
    CUdevice device;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver && CU(cuInit)(0) == CUDA_SUCCESS && CU(cuDeviceGet)(&device, 0) == CUDA_SUCCESS &&
           CU(cuDevicePrimaryCtxRetain)(&context, device) == CUDA_SUCCESS &&
           CU(cuCtxPushCurrent)(context) == CUDA_SUCCESS &&
           CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           CU(cuMemAlloc)(&memory, BYTES) == CUDA_SUCCESS;
}

int main(int argc, char **argv) {
    char line[1024];
    int failed = 0;
    FILE *table = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!table || !fgets(line, sizeof line, table) || !open_device()) {
        fprintf(stderr, "usage: probe_nccl nccl_contract.tsv, where there is a device\n");
        return 2;
    }
    nccl = dlopen("libnccl.so.2", RTLD_NOW);
    if (!nccl) {
        printf("skipped: %s\n", dlerror());
        return 77;
    }
    while (fgets(line, sizeof line, table))
        failed += check_row(line);
    (void)fclose(table);
    for (int i = 0; i < ROWS; i++)
        if (!rows[i].listed)
            failed += printf("%s has no row\n", rows[i].id) > 0;
    printf("%d rows, %d failed\n", ROWS, failed);
    return failed != 0;
}
