/* The engine of communicators over MPI. The engine uses only public headers, except for the
   conversion of 16-bit floats. */
#include <syncblob/mpi.h>

#include "../src/base/half.h"

#include <syncblob/comm_engine.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The maximum number of elements of one MPI call: MPI's counts are ints. Tests lower the limit. */
#ifndef SB__MPI_PIECE
#define SB__MPI_PIECE (1 << 30)
#endif

/* A nonblocking call reduces at most this many bytes for each rank. Small calls keep data in the
   caches, and one call's messages overlap with another call's additions. But each call adds a
   latency for each rank. `./dev bench comm` measures sizes for two ranks. For more ranks the size
   is an estimate. */
#ifndef SB__MPI_BYTES_A_RANK
#define SB__MPI_BYTES_A_RANK (512 << 10)
#endif

/* The maximum number of nonblocking calls in flight: MPI allocates a buffer for each call, and only
   a few buffers fit in the caches. */
#ifndef SB__MPI_FLYING
#define SB__MPI_FLYING 8
#endif

/* A buffer that is divided into pieces, one for each MPI call. */
struct pieces {
    sb_comm_buffer buffer;
    int64_t length, count;
};

/* A reduction. MPI calls for the reduction's pieces begin when earlier calls complete. */
struct request {
    struct request *next;
    struct pieces pieces;
    sb_comm_op op;
    int64_t begun, landed;
};

/* A rank's handle. While requests are in progress, the library calls only the slots of requests. */
struct end {
    struct end *next_retired;
    MPI_Comm comm;
    int64_t request_bytes; /* the maximum size of one nonblocking call */
    bool any_thread;       /* any thread may call MPI, not only the main thread */
    MPI_Op halves[2][3];   /* sum, min, max of F16 and BF16, which are not types of MPI */
    struct request *first; /* requests with pieces that have not begun, oldest first */
    int num_flying;
    MPI_Request flying[SB__MPI_FLYING];
    struct request *owners[SB__MPI_FLYING];
    /* The failed MPI call and its code; NULL and 0 if no call has failed. After a failure no piece
       begins. */
    const char *failed;
    int code;
};

static sb_status fail(sb_error *err, int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "", message[sizeof err->message];
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    const size_t used = strlen(what) < 40 ? strlen(what) : 40;
    const size_t more = strlen(text) < sizeof message - 50 ? strlen(text) : sizeof message - 50;
    memcpy(message, what, used);
    memcpy(message + used, ": ", 2);
    memcpy(message + used + 2, text, more);
    message[used + 2 + more] = '\0';
    return sb_error_fill(err, SB_ERR_COMM_FAILURE, code, message);
}

static bool is_finalized(void) {
    int finalized = 0;
    (void)MPI_Finalized(&finalized);
    return finalized;
}

/* Returns whether MPI's thread level allows calls on any thread, not only on the main thread. */
static bool any_thread_may_call(void) {
    int level = MPI_THREAD_SINGLE;
    (void)MPI_Query_thread(&level);
    return level >= MPI_THREAD_SERIALIZED;
}

static sb_status check_thread(bool any_thread, sb_error *err) {
    int is_main = 1;
    if (!any_thread)
        (void)MPI_Is_thread_main(&is_main);
    if (is_main)
        return SB_OK;
    return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0,
                         "only the main thread may call MPI; initialise MPI with "
                         "MPI_THREAD_SERIALIZED");
}

/* Fails if MPI is finalised, or this thread may not call MPI. */
static sb_status check_call(const struct end *end, sb_error *err) {
    if (is_finalized())
        return sb_error_fill(err, SB_ERR_UNSUPPORTED, 0, "MPI was finalised");
    return check_thread(end->any_thread, err);
}

/* --- operations and pieces -------------------------------------------------------------- */

#define DEFINE_COMBINE(name, widen, narrow, combined)                                              \
    static void name(void *in, void *inout, int *count, MPI_Datatype *type) {                      \
        const uint16_t *from = in;                                                                 \
        uint16_t *to = inout;                                                                      \
        (void)type;                                                                                \
        for (int i = 0; i < *count; i++) {                                                         \
            const float a = widen(from[i]), b = widen(to[i]);                                      \
            to[i] = narrow(combined);                                                              \
        }                                                                                          \
    }

DEFINE_COMBINE(sum_f16, sb__float_of_f16, sb__f16_of_float, a + b)
DEFINE_COMBINE(min_f16, sb__float_of_f16, sb__f16_of_float, a < b ? a : b)
DEFINE_COMBINE(max_f16, sb__float_of_f16, sb__f16_of_float, a > b ? a : b)
DEFINE_COMBINE(sum_bf16, sb__float_of_bf16, sb__bf16_of_float, a + b)
DEFINE_COMBINE(min_bf16, sb__float_of_bf16, sb__bf16_of_float, a < b ? a : b)
DEFINE_COMBINE(max_bf16, sb__float_of_bf16, sb__bf16_of_float, a > b ? a : b)

static MPI_User_function *const combine_halves[2][3] = {{sum_f16, min_f16, max_f16},
                                                        {sum_bf16, min_bf16, max_bf16}};

/* Creates the 16-bit ops. An op that cannot be created stays MPI_OP_NULL, and its use fails. */
static void make_ops(struct end *end) {
    for (int i = 0; i < 6; i++) {
        MPI_Op *op = &end->halves[i / 3][i % 3];
        *op = MPI_OP_NULL;
        (void)MPI_Op_create(combine_halves[i / 3][i % 3], 1, op);
    }
}

static void free_ops(struct end *end) {
    for (int i = 0; i < 6; i++)
        if (end->halves[i / 3][i % 3] != MPI_OP_NULL)
            (void)MPI_Op_free(&end->halves[i / 3][i % 3]);
}

static bool is_half(sb_dtype dtype) {
    return dtype == SB_DTYPE_F16 || dtype == SB_DTYPE_BF16;
}

static MPI_Datatype datatype_of(sb_dtype dtype) {
    return is_half(dtype)          ? MPI_UINT16_T
           : dtype == SB_DTYPE_F32 ? MPI_FLOAT
           : dtype == SB_DTYPE_F64 ? MPI_DOUBLE
                                   : MPI_BYTE;
}

static MPI_Op op_of(const struct end *end, sb_dtype dtype, sb_comm_op op) {
    if (is_half(dtype))
        return end->halves[dtype == SB_DTYPE_BF16][op == SB_COMM_MIN   ? 1
                                                   : op == SB_COMM_MAX ? 2
                                                                       : 0];
    return op == SB_COMM_MIN ? MPI_MIN : op == SB_COMM_MAX ? MPI_MAX : MPI_SUM;
}

static struct pieces cut(const sb_comm_buffer *buffer, int64_t bytes) {
    const int64_t fitting = bytes / (int64_t)sb_dtype_size(buffer->dtype);
    const int64_t length = fitting < SB__MPI_PIECE ? fitting : SB__MPI_PIECE;
    return (struct pieces){*buffer, length, (buffer->count - 1) / length + 1};
}

/* Returns the address and the count of piece `i`. */
static void *piece(const struct pieces *pieces, int64_t i, int *out_count) {
    const sb_comm_buffer *buffer = &pieces->buffer;
    const int64_t first = i * pieces->length, left = buffer->count - first;
    *out_count = (int)(left < pieces->length ? left : pieces->length);
    return (char *)buffer->ptr + (size_t)first * sb_dtype_size(buffer->dtype);
}

/* --- pieces in flight ---------------------------------------------------------------- */

/* Returns whether an MPI call succeeded. Records a failure for later calls on requests. */
static bool went_well(struct end *end, int code, const char *call) {
    if (code == MPI_SUCCESS)
        return true;
    end->failed = call;
    end->code = code;
    return false;
}

static void begin_pieces(struct end *end) {
    while (end->first && end->num_flying < SB__MPI_FLYING && !end->failed) {
        struct request *request = end->first;
        const sb_dtype dtype = request->pieces.buffer.dtype;
        int count;
        void *ptr = piece(&request->pieces, request->begun, &count);
        if (!went_well(end,
                       MPI_Iallreduce(MPI_IN_PLACE, ptr, count, datatype_of(dtype),
                                      op_of(end, dtype, request->op), end->comm,
                                      &end->flying[end->num_flying]),
                       "MPI_Iallreduce"))
            return;
        end->owners[end->num_flying++] = request;
        if (++request->begun == request->pieces.count)
            end->first = request->next;
    }
}

static void land(struct end *end, int num, const int *indices) {
    int left = 0;
    for (int i = 0; i < num; i++) {
        end->owners[indices[i]]->landed++;
        end->owners[indices[i]] = NULL;
    }
    for (int i = 0; i < end->num_flying; i++) {
        if (!end->owners[i])
            continue;
        end->flying[left] = end->flying[i];
        end->owners[left++] = end->owners[i];
    }
    end->num_flying = left;
}

/* Removes completed pieces and begins further pieces. If `waits`, first waits until a piece
   completes, unless MPI fails. Returns whether a piece completed. */
static bool advance(struct end *end, bool waits) {
    int indices[SB__MPI_FLYING], num = 0;
    if (end->failed || !end->num_flying)
        return false;
    if (waits ? !went_well(
                    end,
                    MPI_Waitsome(end->num_flying, end->flying, &num, indices, MPI_STATUSES_IGNORE),
                    "MPI_Waitsome")
              : !went_well(
                    end,
                    MPI_Testsome(end->num_flying, end->flying, &num, indices, MPI_STATUSES_IGNORE),
                    "MPI_Testsome"))
        return false;
    if (num == MPI_UNDEFINED) /* no active requests: all pieces have completed */
        for (num = 0; num < end->num_flying; num++)
            indices[num] = num;
    land(end, num, indices);
    begin_pieces(end);
    return num > 0;
}

/* --- slots ------------------------------------------------------------------------- */

static sb_status engine_open(void *user, void **out, int32_t *out_rank, int32_t *out_size,
                             sb_error *err) {
    int rank = 0, size = 0;
    struct end *end = malloc(sizeof *end);
    if (!end)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, NULL);
    *end = (struct end){.comm = MPI_COMM_NULL, .any_thread = any_thread_may_call()};
    const int code = MPI_Comm_dup(*(const MPI_Comm *)user, &end->comm);
    if (code != MPI_SUCCESS) {
        free(end);
        return fail(err, code, "MPI_Comm_dup");
    }
    (void)MPI_Comm_set_errhandler(end->comm, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(end->comm, &rank);
    (void)MPI_Comm_size(end->comm, &size);
    make_ops(end);
    end->request_bytes = (int64_t)SB__MPI_BYTES_A_RANK * size;
    *out = end;
    *out_rank = rank;
    *out_size = size;
    return SB_OK;
}

/* Handles that were closed on threads that may not call MPI. The next thread that may call MPI, and
   that creates or closes a handle, frees these handles. MPI_Finalize frees the MPI objects of the
   remaining handles. */
static _Atomic(struct end *) retired;

static void retire(struct end *end) {
    end->next_retired = atomic_load(&retired);
    while (!atomic_compare_exchange_weak(&retired, &end->next_retired, end))
        continue;
}

static void free_end(struct end *end) {
    if (!is_finalized()) {
        free_ops(end);
        (void)MPI_Comm_free(&end->comm);
    }
    free(end);
}

static void free_retired(void) {
    struct end *next;
    for (struct end *end = atomic_exchange(&retired, NULL); end; end = next) {
        next = end->next_retired;
        free_end(end);
    }
}

static void engine_close(void *comm, int32_t failed) {
    struct end *end = comm;
    sb_error unused;
    if (failed) {
        free(end); /* keeps MPI's communicator: MPI_Comm_free may wait for other ranks */
    } else if (is_finalized() || check_thread(end->any_thread, &unused) == SB_OK) {
        free_end(end);
        free_retired();
    } else {
        retire(end);
    }
}

static sb_status engine_all_reduce(void *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                                   sb_error *err) {
    const struct end *end = comm;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    const struct pieces pieces = cut(buffer, INT64_MAX);
    for (int64_t i = 0; i < pieces.count; i++) {
        int count;
        void *ptr = piece(&pieces, i, &count);
        const int code = MPI_Allreduce(MPI_IN_PLACE, ptr, count, datatype_of(buffer->dtype),
                                       op_of(end, buffer->dtype, op), end->comm);
        if (code != MPI_SUCCESS)
            return fail(err, code, "MPI_Allreduce");
    }
    return SB_OK;
}

static sb_status engine_broadcast(void *comm, int32_t root, const sb_comm_buffer *buffer,
                                  sb_error *err) {
    const struct end *end = comm;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    const struct pieces pieces = cut(buffer, INT64_MAX);
    for (int64_t i = 0; i < pieces.count; i++) {
        int count;
        void *ptr = piece(&pieces, i, &count);
        const int code = MPI_Bcast(ptr, count, datatype_of(buffer->dtype), root, end->comm);
        if (code != MPI_SUCCESS)
            return fail(err, code, "MPI_Bcast");
    }
    return SB_OK;
}

static sb_status engine_barrier(void *comm, sb_error *err) {
    const struct end *end = comm;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    const int code = MPI_Barrier(end->comm);
    return code == MPI_SUCCESS ? SB_OK : fail(err, code, "MPI_Barrier");
}

static sb_status engine_start(void *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                              sb_error *err) {
    struct end *end = comm;
    struct request **last = &end->first;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    struct request *request = malloc(sizeof *request);
    if (!request)
        return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, NULL);
    *request = (struct request){.pieces = cut(buffer, end->request_bytes), .op = op};
    while (*last)
        last = &(*last)->next;
    *last = request;
    begin_pieces(end);
    *out = request;
    return SB_OK;
}

static bool is_done(const struct request *request) {
    return request->landed == request->pieces.count;
}

static sb_status engine_test(void *comm, void *asked, int32_t *out_done, sb_error *err) {
    struct end *end = comm;
    struct request *request = asked;
    *out_done = 0;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    while (!is_done(request) && advance(end, false))
        continue;
    if (end->failed)
        return fail(err, end->code, end->failed);
    *out_done = is_done(request);
    if (*out_done)
        free(request);
    return SB_OK;
}

static sb_status engine_wait(void *comm, void *asked, sb_error *err) {
    struct end *end = comm;
    struct request *request = asked;
    sb_status st = check_call(end, err);
    if (st != SB_OK)
        return st;
    while (!is_done(request) && advance(end, true))
        continue;
    if (end->failed)
        return fail(err, end->code, end->failed);
    free(request);
    return SB_OK;
}

/* Makes all requests fail: no further piece begins, but pieces in flight cannot be cancelled.
   Returns 0 if a piece of this request is still in flight, else 1. */
static int32_t engine_abandon(void *comm, void *asked) {
    struct end *end = comm;
    struct request *request = asked;
    sb_error cause;
    int done = 1;
    if (check_call(end, &cause) != SB_OK)
        return 0;
    if (!end->failed)
        (void)went_well(end, MPI_ERR_OTHER, "a request was abandoned");
    for (int i = 0; i < end->num_flying && done; i++)
        if (end->owners[i] == request &&
            MPI_Test(&end->flying[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            done = 0;
    if (done)
        free(request);
    return done != 0;
}

/* The slot `takes` is missing, so the library passes only host memory to MPI. Open MPI accepts
   device memory only in blocking calls, and MPICH exports device memory by cudaIpcGetMemHandle,
   which refuses memory of a pool. */
static const sb_comm_engine engine = {
    .struct_size = sizeof engine,
    .abi_version = SB_COMM_ENGINE_ABI_VERSION,
    .flags = SB_COMM_ENGINE_HALF,
    .name = "mpi",
    .open = engine_open,
    .close = engine_close,
    .all_reduce = engine_all_reduce,
    .broadcast = engine_broadcast,
    .barrier = engine_barrier,
    .start = engine_start,
    .test = engine_test,
    .wait = engine_wait,
    .abandon = engine_abandon,
};

sb_status sb_mpi_comm_create(sb_context *context, MPI_Comm mpi_comm, sb_comm **out, sb_error *err) {
    int initialized = 0, is_inter = 0;
    (void)MPI_Initialized(&initialized);
    if (!out)
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0, "out is NULL");
    if (!initialized || is_finalized())
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0,
                             initialized ? "MPI was finalised" : "MPI was not initialised");
    if (mpi_comm == MPI_COMM_NULL)
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0, "mpi_comm is MPI_COMM_NULL");
    sb_status st = check_thread(any_thread_may_call(), err);
    if (st != SB_OK)
        return st;
    free_retired();
    (void)MPI_Comm_test_inter(mpi_comm, &is_inter);
    if (is_inter)
        return sb_error_fill(err, SB_ERR_INVALID_ARGUMENT, 0, "mpi_comm is an intercommunicator");
    return sb_comm_create(context, &engine, &mpi_comm, out, err);
}
