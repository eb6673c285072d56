#include "comm.h"

#include "../../src/base/half.h"
#include "error.h"
#include "port.h"

#include <ctype.h>
#include <stdlib.h>

static bool is_ours(const sb_comm *comm) {
    return comm->process == sb__comm_process();
}

/* --- life ------------------------------------------------------------------------- */

static bool is_name(const char *name) {
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p))
            return false;
    return *name != '\0';
}

static sb_status check_engine(const sb_comm_engine *engine, sb_error *err) {
    const char *missing = !engine->name                               ? "a name"
                          : !engine->open || !engine->close           ? "the slots open and close"
                          : !engine->all_reduce || !engine->broadcast ? "all_reduce and broadcast"
                                                                      : NULL;
    const int requests = !!engine->start + !!engine->test + !!engine->wait + !!engine->abandon;
    if (engine->flags & ~(uint32_t)SB_COMM_ENGINE_HALF)
        return sb__comm_fail(err, SB_ERR_UNSUPPORTED, "unknown flags 0x%x of an engine",
                             engine->flags);
    if (missing)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "an engine's table must have %s",
                             missing);
    if (requests != 0 && requests != 4)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "an engine's table must have all of the slots start, test, wait and "
                             "abandon, or none of them");
    if (!is_name(engine->name))
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "an engine's name must consist of letters and digits");
    return SB_OK;
}

static sb_status adopt_engine(sb_comm_engine *ours, const sb_comm_engine *theirs, sb_error *err) {
    const size_t required = offsetof(sb_comm_engine, barrier);
    sb_status st = sb__comm_check_struct(theirs->struct_size, required, "an engine's table", err);
    if (st == SB_OK && theirs->abi_version != SB_COMM_ENGINE_ABI_VERSION)
        return sb__comm_fail(err, SB_ERR_ABI_MISMATCH, "an engine's table has version %u, not %d",
                             theirs->abi_version, SB_COMM_ENGINE_ABI_VERSION);
    if (st == SB_OK)
        st = sb__comm_adopt_struct(ours, sizeof *ours, required, theirs, theirs->struct_size,
                                   "an engine's table", err);
    return st == SB_OK ? check_engine(ours, err) : st;
}

/* Returns `st`, or COMM_FAILURE if a slot may not return `st`. */
static sb_status known_status(sb_status st) {
    const bool is_known =
        st == SB_ERR_OUT_OF_MEMORY || st == SB_ERR_UNSUPPORTED || st == SB_ERR_DEVICE_LOST;
    return is_known ? st : SB_ERR_COMM_FAILURE;
}

static sb_status open_end(sb_comm *comm, void *user, sb_error *err) {
    const sb_comm_engine *engine = &comm->engine;
    sb_error slot_err = {.code = SB_OK};
    sb_status st = engine->open(user, &comm->end, &comm->rank, &comm->size, &slot_err);
    if (st != SB_OK)
        return sb__comm_fail_slot(err, known_status(st), &slot_err, engine->name);
    if (comm->rank >= 0 && comm->rank < comm->size)
        return SB_OK;
    engine->close(comm->end, true);
    return sb__comm_fail(err, SB_ERR_COMM_FAILURE, "%s reports rank %d of %d", engine->name,
                         comm->rank, comm->size);
}

sb_status sb_comm_create(sb_context *context, const sb_comm_engine *engine, void *user,
                         sb_comm **out, sb_error *err) {
    sb_comm_engine table = {.struct_size = sizeof table};
    if (!engine || !out)
        return sb__comm_fail_null(err, engine ? "out" : "engine");
    sb_status st = adopt_engine(&table, engine, err);
    if (st != SB_OK)
        return st;
    sb_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return sb__comm_fail_memory(err);
    comm->engine = table;
    st = open_end(comm, user, err);
    if (st != SB_OK) {
        free(comm);
        return st;
    }
    comm->context = sb_context_retain(context);
    comm->process = sb__comm_process();
    *out = comm;
    return SB_OK;
}

void sb_comm_destroy(sb_comm *comm) {
    if (!comm)
        return;
    sb_context *context = comm->context;
    if (is_ours(comm))
        comm->engine.close(comm->end, comm->failed);
    free(comm);
    sb_context_release(context);
}

int32_t sb_comm_rank(const sb_comm *comm) {
    return comm ? comm->rank : -1;
}

int32_t sb_comm_size(const sb_comm *comm) {
    return comm ? comm->size : 0;
}

/* --- checks ------------------------------------------------------------------------ */

sb_status sb__comm_check_process(const sb_comm *comm, sb_error *err) {
    if (!comm)
        return sb__comm_fail_null(err, "comm");
    if (!is_ours(comm))
        return sb__comm_fail(err, SB_ERR_FORKED,
                             "the communicator was made before a fork; make another in the child");
    return SB_OK;
}

sb_status sb__comm_check_usable(const sb_comm *comm, sb_error *err) {
    sb_status st = sb__comm_check_process(comm, err);
    if (st == SB_OK && comm->failed)
        return sb__comm_fail(err, SB_ERR_COMM_FAILURE,
                             "the communicator is unusable after an earlier failure");
    return st;
}

sb_status sb__comm_check(const sb_comm *comm, sb_error *err) {
    sb_status st = sb__comm_check_usable(comm, err);
    if (st == SB_OK && comm->has_step)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "a reducer's step is in progress: wait for its end first");
    return st;
}

sb_status sb__comm_check_op(sb_comm_op op, sb_error *err) {
    if (op >= SB_COMM_SUM && op <= SB_COMM_MAX)
        return SB_OK;
    return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "%d is not an op", op);
}

sb_status sb__comm_check_dtype(const sb_comm *comm, sb_dtype dtype, sb_error *err) {
    if (dtype == SB_DTYPE_F32 || dtype == SB_DTYPE_F64)
        return SB_OK;
    if (!sb__comm_is_half(dtype))
        return sb__comm_fail(err, SB_ERR_UNSUPPORTED, "%s values cannot be reduced",
                             sb_dtype_name(dtype));
    if (comm->engine.flags & SB_COMM_ENGINE_HALF)
        return SB_OK;
    return sb__comm_fail(err, SB_ERR_UNSUPPORTED, "%s does not reduce %s", comm->engine.name,
                         sb_dtype_name(dtype));
}

sb_status sb__comm_check_root(const sb_comm *comm, int32_t root, sb_error *err) {
    if (root >= 0 && root < comm->size)
        return SB_OK;
    return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "rank %d does not exist: there are %d ranks",
                         root, comm->size);
}

/* --- slots -------------------------------------------------------------------------- */

/* Handles the failure `st` of a slot. Returns the status for the caller of the public function. */
static sb_status slot_failed(sb_comm *comm, sb_status st, const sb_error *slot_err, sb_error *err) {
    st = known_status(st);
    if (st == SB_ERR_COMM_FAILURE)
        comm->failed = true;
    return sb__comm_fail_slot(err, st, slot_err, comm->engine.name);
}

/* Makes the enclosing function return the status of CALL, which passes `slot_err` to a slot. */
#define SLOT(comm, err, CALL)                                                                      \
    do {                                                                                           \
        sb_error slot_error = {.code = SB_OK}, *slot_err = &slot_error;                            \
        sb_status slot_st = CALL;                                                                  \
        return slot_st == SB_OK ? SB_OK : slot_failed(comm, slot_st, slot_err, err);               \
    } while (0)

static sb_comm_op op_of_engine(sb_comm_op op) {
    return op == SB_COMM_MEAN ? SB_COMM_SUM : op;
}

sb_status sb__comm_all_reduce(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer,
                              sb_error *err) {
    if (!buffer->count)
        return SB_OK;
    SLOT(comm, err, comm->engine.all_reduce(comm->end, op_of_engine(op), buffer, slot_err));
}

sb_status sb__comm_broadcast(sb_comm *comm, int32_t root, const sb_comm_buffer *buffer,
                             sb_error *err) {
    if (!buffer->count)
        return SB_OK;
    SLOT(comm, err, comm->engine.broadcast(comm->end, root, buffer, slot_err));
}

int32_t sb__comm_takes(sb_comm *comm, sb_context *context) {
    return comm->engine.takes ? comm->engine.takes(comm->end, context) : 0;
}

sb_status sb__comm_start(sb_comm *comm, sb_comm_op op, const sb_comm_buffer *buffer, void **out,
                         sb_error *err) {
    if (!comm->engine.start || !buffer->count)
        return sb__comm_all_reduce(comm, op, buffer, err);
    SLOT(comm, err, comm->engine.start(comm->end, op_of_engine(op), buffer, out, slot_err));
}

static sb_status test(sb_comm *comm, void *request, int32_t *done, sb_error *err) {
    SLOT(comm, err, comm->engine.test(comm->end, request, done, slot_err));
}

sb_status sb__comm_test(sb_comm *comm, void *request, bool *out_done, sb_error *err) {
    int32_t done = 0;
    sb_status st = test(comm, request, &done, err);
    *out_done = done;
    return st;
}

sb_status sb__comm_wait(sb_comm *comm, void *request, sb_error *err) {
    SLOT(comm, err, comm->engine.wait(comm->end, request, slot_err));
}

bool sb__comm_abandon(sb_comm *comm, void *request) {
    return !request || (is_ours(comm) && comm->engine.abandon(comm->end, request));
}

sb_status sb__comm_disable(sb_comm *comm, sb_error *err) {
    comm->failed = true;
    if (err)
        err->code = SB_ERR_COMM_FAILURE;
    return SB_ERR_COMM_FAILURE;
}

static void scale_halves(sb_dtype dtype, int64_t count, float factor, uint16_t *values) {
    for (int64_t i = 0; i < count; i++)
        values[i] = dtype == SB_DTYPE_F16
                        ? sb__f16_of_float(sb__float_of_f16(values[i]) * factor)
                        : sb__bf16_of_float(sb__float_of_bf16(values[i]) * factor);
}

static void scale_floats(int64_t count, float factor, float *values) {
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
}

static void scale_doubles(int64_t count, double factor, double *values) {
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
}

void sb__comm_scale(sb_dtype dtype, int64_t count, double factor, void *values) {
    if (sb__comm_is_half(dtype))
        scale_halves(dtype, count, (float)factor, values);
    else if (dtype == SB_DTYPE_F32)
        scale_floats(count, (float)factor, values);
    else
        scale_doubles(count, factor, values);
}

double sb__comm_factor(const sb_comm *comm, sb_comm_op op) {
    return op == SB_COMM_MEAN ? 1.0 / comm->size : 1.0;
}

/* --- the caller's host memory ------------------------------------------------------ */

static sb_status check_values(const sb_comm *comm, sb_comm_op op, sb_dtype dtype, int64_t count,
                              const void *values, sb_error *err) {
    sb_status st = sb__comm_check_op(op, err);
    if (st != SB_OK)
        return st;
    st = sb__comm_check_dtype(comm, dtype, err);
    if (st != SB_OK)
        return st;
    if (count < 0 || (uint64_t)count > PTRDIFF_MAX / sb_dtype_size(dtype))
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT,
                             "the number of values is %lld: negative or too large",
                             (long long)count);
    return count && !values ? sb__comm_fail_null(err, "values") : SB_OK;
}

sb_status sb_comm_all_reduce(sb_comm *comm, sb_comm_op op, sb_dtype dtype, int64_t count,
                             void *values, sb_error *err) {
    sb_status st = sb__comm_check(comm, err);
    if (st == SB_OK)
        st = check_values(comm, op, dtype, count, values, err);
    if (st != SB_OK)
        return st;
    const sb_comm_buffer buffer = {.ptr = values, .count = count, .dtype = dtype};
    st = sb__comm_all_reduce(comm, op, &buffer, err);
    const double factor = sb__comm_factor(comm, op);
    if (st == SB_OK && count && factor != 1.0)
        sb__comm_scale(dtype, count, factor, values);
    return st;
}

sb_status sb_comm_broadcast(sb_comm *comm, int32_t root, void *bytes, size_t size, sb_error *err) {
    sb_status st = sb__comm_check(comm, err);
    if (st == SB_OK)
        st = sb__comm_check_root(comm, root, err);
    if (st != SB_OK)
        return st;
    if (size && !bytes)
        return sb__comm_fail_null(err, "bytes");
    if (size > PTRDIFF_MAX)
        return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "%zu bytes are more than PTRDIFF_MAX",
                             size);
    const sb_comm_buffer buffer = {.ptr = bytes, .count = (int64_t)size, .dtype = SB_DTYPE_U8};
    return sb__comm_broadcast(comm, root, &buffer, err);
}

static sb_status barrier(sb_comm *comm, sb_error *err) {
    SLOT(comm, err, comm->engine.barrier(comm->end, slot_err));
}

sb_status sb_comm_barrier(sb_comm *comm, sb_error *err) {
    sb_status st = sb__comm_check(comm, err);
    if (st != SB_OK)
        return st;
    double nothing = 0;
    const sb_comm_buffer buffer = {.ptr = &nothing, .count = 1, .dtype = SB_DTYPE_F64};
    return comm->engine.barrier ? barrier(comm, err)
                                : sb__comm_all_reduce(comm, SB_COMM_SUM, &buffer, err);
}
