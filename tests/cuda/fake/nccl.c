/* The fake libnccl.so.2, over the fake driver, with calls that do not block. Unless the schedule is
   eager, a call ends only after a few calls of ncclCommGetAsyncError. A kernel ends once the
   kernels of all ranks have begun. */
#include "fake.h"
#include "halves.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 8
#define ID_BYTE   0x5A

enum kind { REDUCE, BROADCAST };

struct part {
    struct part *next;
    ncclComm_t comm;
    uint64_t number;
    enum kind kind;
    int op, root;
    ncclDataType_t type;
    size_t count;
    CUdeviceptr ptr;
    char *bytes;
    CUstream stream;
    bool begun, done, stuck;
};

/* Groups, communicators and parts are never freed: kernels may still use them. */
struct group {
    struct group *next;
    uint64_t id;
    int size, joined, left, finalized;
    ncclComm_t comms[MAX_RANKS];
};

struct ncclComm {
    struct group *group;
    int rank;
    CUcontext context;
    int64_t maker;
    uint64_t operations;
    struct part *parts; /* newest first */
    struct part *posting;
    ncclResult_t error;
    int delay;
    bool is_alive, finalizes;
};

static struct group *groups;
static uint64_t last_id;
static int64_t live;
static struct armed {
    int rank;
    int64_t in;
    ncclResult_t code;
} armed;

static _Thread_local int depth;

void fake_nccl_fail(int rank, int64_t nth, int code) {
    FAKE_LOCKED;
    armed = (struct armed){rank, nth, (ncclResult_t)code};
}

int64_t fake_nccl_live(void) {
    FAKE_LOCKED;
    return live;
}

static void *need_memory(size_t bytes) {
    void *made = malloc(bytes);
    if (!made)
        abort();
    return made;
}

#define BEGIN_AS(function)                                                                         \
    FAKE_LOCKED;                                                                                   \
    const struct fake_blas_call begun = fake_blas(function);                                       \
    if (begun.status)                                                                              \
    return (ncclResult_t)begun.status
#define BEGIN BEGIN_AS(__func__)

static bool is_known(ncclComm_t comm, const char *function) {
    for (const struct group *group = groups; group; group = group->next)
        for (int r = 0; r < group->size; r++)
            if (comm && group->comms[r] == comm && comm->is_alive)
                return true;
    fake_violation("%s of %p, which is not a communicator", function, (void *)comm);
    return false;
}

static CUcontext now_current(void) {
    CUcontext context = NULL;
    (void)cuCtxGetCurrent(&context);
    return context;
}

/* Without a current device, NCCL would leave a context current on the thread. */
static void need_device(const char *function) {
    if (!now_current())
        fake_violation("%s is called while no device is current", function);
}

static const struct {
    size_t size;
    sb_dtype dtype;
} types[] = {[ncclInt8] = {1, 0},
             [ncclUint8] = {1, 0},
             [ncclFloat64] = {8, SB_DTYPE_F64},
             [ncclFloat32] = {4, SB_DTYPE_F32},
             [ncclFloat16] = {2, SB_DTYPE_F16},
             [ncclBfloat16] = {2, SB_DTYPE_BF16}};

static struct part *part_of(ncclComm_t comm, uint64_t number) {
    struct part *part = comm ? comm->parts : NULL;
    while (part && part->number != number)
        part = part->next;
    return part;
}

static double combine(struct part *const *parts, int size, int64_t i) {
    const sb_dtype dtype = types[parts[0]->type].dtype;
    double value = get_value(dtype, parts[0]->bytes, i);
    for (int r = 1; r < size; r++) {
        const double other = get_value(dtype, parts[r]->bytes, i);
        if (parts[0]->op == ncclSum)
            value += other;
        else if (parts[0]->op == ncclMin ? other < value : other > value)
            value = other;
    }
    return value;
}

/* NCCL up to 2.22 stores directly to buffers of peer devices in the same process. See p2pSendSetup
   (transport/p2p.cc) and setDataPtrs (device/prims_simple.h) of v2.18.3. */
static void check_access(struct part *const *parts, int size, size_t bytes) {
    for (int r = 0; r < size && fake_get(FAKE_PEERS); r++)
        for (int other = 0; other < size; other++)
            if (!fake_may_store(parts[other]->comm->context, parts[r]->ptr, bytes))
                fake_violation(
                    "rank %d stores to memory of rank %d, which its device may not access", other,
                    r);
}

static void carry_out(struct part *const *parts, int size) {
    const struct part *first = parts[0];
    const size_t bytes = first->count * types[first->type].size;
    for (int r = 0; r < size; r++) {
        parts[r]->bytes = fake_address(parts[r]->ptr, bytes);
        if (!parts[r]->bytes) {
            fake_violation("rank %d: %zu bytes at %p are not allocated at this time", r, bytes,
                           (void *)(uintptr_t)parts[r]->ptr);
            return;
        }
    }
    check_access(parts, size, bytes);
    for (int r = 0; r < size && first->kind == BROADCAST; r++)
        memmove(parts[r]->bytes, parts[first->root]->bytes, bytes);
    for (int64_t i = 0; i < (int64_t)first->count && first->kind == REDUCE; i++) {
        const double value = combine(parts, size, i);
        for (int r = 0; r < size; r++)
            put_value(types[first->type].dtype, parts[r]->bytes, i, value);
    }
}

/* NCCL may hang or return wrong values if ranks make unequal calls. */
static bool agree(const struct part *a, const struct part *b) {
    const bool equal = a->kind == b->kind && a->op == b->op && a->root == b->root &&
                       a->type == b->type && a->count == b->count;
    if (!equal)
        fake_violation("ranks %d and %d make unequal calls", a->comm->rank, b->comm->rank);
    return equal;
}

/* The kernels of an aborted rank are done, and its buffers may have any values. */
static bool passes(void *user) {
    struct part *part = user, *parts[MAX_RANKS];
    const struct group *group = part->comm->group;
    part->begun = true;
    if (part->done || !part->comm->is_alive)
        return true;
    for (int r = 0; r < group->size; r++) {
        parts[r] = part_of(group->comms[r], part->number);
        if (!parts[r] || !parts[r]->begun || parts[r]->stuck || !group->comms[r]->is_alive ||
            !agree(part, parts[r]))
            return false;
    }
    carry_out(parts, group->size);
    for (int r = 0; r < group->size; r++)
        parts[r]->done = true;
    return true;
}

static int draw_delay(void) {
    static unsigned int turn;
    const char *schedule = getenv("FAKE_SCHEDULE");
    if (!schedule || strcmp(schedule, "eager") == 0)
        return 0;
    return strcmp(schedule, "lazy") == 0 ? 3 : (int)(turn++ * 2654435761u >> 30);
}

static void put_on_stream(ncclComm_t comm) {
    struct part *part = comm->posting;
    comm->posting = NULL;
    fake_reserve(comm->context, part->stream, false);
    if (fake_gate(comm->context, part->stream, passes, part, part->ptr,
                  part->count * types[part->type].size) != CUDA_SUCCESS)
        comm->error = ncclUnhandledCudaError;
}

static ncclResult_t progress(ncclComm_t comm) {
    if (comm->error != ncclSuccess)
        return comm->error;
    if (comm->group->joined < comm->group->size)
        return ncclInProgress;
    if (comm->delay && comm->delay--)
        return ncclInProgress;
    if (comm->posting)
        put_on_stream(comm);
    if (comm->finalizes && comm->group->finalized + comm->group->left < comm->group->size)
        return ncclInProgress;
    return comm->error;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out) {
    BEGIN;
    if (depth > 0)
        fake_violation("ncclCommGetAsyncError is called in a group, where no call can end");
    if (!is_known(comm, __func__))
        return ncclInvalidArgument;
    *out = progress(comm);
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
    BEGIN;
    last_id++;
    memset(out, ID_BYTE, sizeof *out);
    memcpy(out->internal, &last_id, sizeof last_id);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    BEGIN;
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    const bool is_open = depth > 0;
    depth -= is_open; /* the group ends even if the call fails */
    BEGIN;
    return is_open ? ncclSuccess : ncclInvalidUsage;
}

static struct group *find_group(const ncclUniqueId *id, int size) {
    ncclUniqueId whole;
    uint64_t number;
    memcpy(&number, id->internal, sizeof number);
    memset(&whole, ID_BYTE, sizeof whole);
    memcpy(whole.internal, &number, sizeof number);
    if (number == 0 || number > last_id || memcmp(&whole, id, sizeof whole) != 0)
        fake_violation("the identifier is not from ncclGetUniqueId");
    for (struct group *group = groups; group; group = group->next)
        if (group->id == number && group->size == size && group->joined < size)
            return group;
    struct group *made = need_memory(sizeof *made);
    *made = (struct group){.next = groups, .id = number, .size = size};
    return groups = made;
}

static ncclResult_t check_join(const struct group *group, int rank, const ncclConfig_t *config) {
    static const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
    if (config->magic != initial.magic || config->size > sizeof initial)
        return ncclInvalidArgument;
    if (config->blocking != 0)
        fake_violation("a communicator has a blocking configuration");
    if (rank < 0 || rank >= group->size || group->comms[rank])
        return ncclInvalidArgument;
    for (int r = 0; r < group->size; r++) {
        if (group->comms[r] && group->comms[r]->context == now_current())
            return ncclInvalidUsage; /* NCCL refuses two ranks on one device */
        if (group->comms[r] && depth == 0 && group->comms[r]->maker == fake_thread())
            fake_violation("one thread makes two ranks outside of a group, which hangs");
    }
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    BEGIN;
    need_device(__func__);
    if (size > MAX_RANKS)
        return ncclInvalidArgument;
    struct group *group = find_group(&id, size);
    const ncclResult_t result = check_join(group, rank, config);
    if (result != ncclSuccess)
        return result;
    ncclComm_t made = need_memory(sizeof *made);
    *made = (struct ncclComm){.group = group,
                              .rank = rank,
                              .context = now_current(),
                              .maker = fake_thread(),
                              .delay = draw_delay(),
                              .is_alive = true};
    group->comms[rank] = *comm = made;
    group->joined++;
    live++;
    return depth ? ncclSuccess : ncclInProgress;
}

static void end(ncclComm_t comm) {
    struct group *group = comm->group;
    comm->is_alive = false;
    if (comm->posting)
        fake_reserve(comm->context, comm->posting->stream, false);
    live--;
    group->left++;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    need_device(__func__);
    BEGIN;
    if (!is_known(comm, __func__))
        return ncclInvalidArgument;
    comm->finalizes = true;
    comm->group->finalized++;
    comm->delay = draw_delay();
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    BEGIN;
    if (!is_known(comm, __func__))
        return ncclInvalidArgument;
    if (!comm->finalizes || progress(comm) != ncclSuccess)
        fake_violation("ncclCommDestroy is called before ncclCommFinalize is done, and may wait");
    comm->group->finalized--; /* end() counts the rank in `left` */
    end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    FAKE_LOCKED;
    const struct fake_blas_call begun = fake_blas(__func__);
    need_device(__func__);
    if (!is_known(comm, __func__))
        return ncclInvalidArgument;
    comm->group->finalized -= comm->finalizes; /* even if the call fails: nobody retries an abort */
    end(comm);
    return (ncclResult_t)begun.status;
}

static ncclResult_t check_call(ncclComm_t comm, const struct part *part, const char *function) {
    const size_t bytes = part->count * types[part->type].size;
    if (!is_known(comm, function))
        return ncclInvalidArgument;
    if (comm->posting || comm->delay || comm->finalizes || comm->group->joined < comm->group->size)
        fake_violation("%s is called while an earlier call is in progress", function);
    if (now_current() != comm->context)
        fake_violation("%s is called while another device is current", function);
    if (!fake_knows(part->stream))
        fake_violation("%s on a handle that is not a stream", function);
    if (!fake_is_memory_of(comm->context, part->ptr, bytes))
        fake_violation("%s of memory that is not the device's", function);
    return comm->error;
}

/* NCCL's guide (ncclCommGetAsyncError) forbids other work on the stream until the state is
   ncclSuccess. */
static ncclResult_t queue(const char *function, ncclComm_t comm, struct part wanted,
                          const void *from, const void *to) {
    BEGIN_AS(function);
    wanted.comm = comm;
    wanted.ptr = (CUdeviceptr)(uintptr_t)to;
    if (from != to)
        fake_violation("the fake NCCL works only in place");
    const ncclResult_t result = check_call(comm, &wanted, function);
    if (result != ncclSuccess)
        return result;
    struct part *part = need_memory(sizeof *part);
    *part = wanted;
    part->number = comm->operations++;
    part->next = comm->parts;
    comm->parts = comm->posting = part;
    if (armed.in && armed.rank == comm->rank && --armed.in == 0) {
        part->stuck = true;
        comm->error = armed.code;
    }
    comm->delay = draw_delay();
    fake_reserve(comm->context, part->stream, true);
    if (comm->delay)
        return ncclInProgress;
    put_on_stream(comm);
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    const struct part wanted = {
        .kind = REDUCE, .op = (int)op, .type = type, .count = count, .stream = stream};
    return queue(__func__, comm, wanted, from, to);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    const struct part wanted = {
        .kind = BROADCAST, .root = root, .type = type, .count = count, .stream = stream};
    return queue(__func__, comm, wanted, from, to);
}

/* nccl.h does not exclude that these texts are NULL. */
const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError    ? "remote process exited or there was a network error"
           : result == ncclInvalidUsage ? "invalid usage"
                                        : NULL;
}

const char *ncclGetLastError(ncclComm_t comm) {
    return !comm ? "a rank has gone" : comm->rank ? "" : NULL;
}
