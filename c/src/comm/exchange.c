#include "comm/exchange.h"

#include "base/error.h"
#include "base/sort.h"
#include "memory/mem.h"

/* The device's side, if that holds the newest bytes and the engine takes it. */
static int32_t side_for(sb_comm *comm, sb_mem *mem, sb_dtype dtype, enum sb__exchange_kind kind,
                        double factor) {
    const int32_t head = sb__head(mem);
    if (kind == SB__EXCHANGE_HOST || (head != SB_HEAD_AT_GPU && head != SB_HEAD_SYNCED))
        return SB_SIDE_CPU;
    if (!sb__comm_takes(comm, mem->context))
        return SB_SIDE_CPU;
    if (head == SB_HEAD_SYNCED && sb_context_device_status(mem->context) != SB_OK)
        return SB_SIDE_CPU; /* whose bytes are current, too */
    const bool scales = kind == SB__EXCHANGE_REDUCE && factor != 1.0;
    if (scales && sb__is_half(dtype))
        return SB_SIDE_CPU; /* devices have no arithmetic of it */
    return !scales || sb__device_prepare_arithmetic(mem->context, NULL) == SB_OK ? SB_SIDE_GPU
                                                                                 : SB_SIDE_CPU;
}

static sb_status begin_send(struct sb__exchange *exchange, sb_mem *mem, int32_t side,
                            sb_error *err) {
    const void *bytes = NULL;
    sb_status st = sb__read_side(mem, side, &bytes, exchange->retired, err);
    exchange->buffer.ptr = (void *)bytes; /* the root's, which is read alone */
    return st;
}

static sb_status begin_write(struct sb__exchange *exchange, sb_mem *mem, int32_t side,
                             enum sb__write_mode mode, sb_error *err) {
    sb_status st = sb__write_begin(&exchange->write, mem, side, mode, err);
    if (st == SB_OK)
        (void)sb_mem_retain(mem); /* whatever becomes of the blob */
    exchange->buffer.ptr = exchange->write.ptr;
    return st;
}

static void end_write(struct sb__exchange *exchange) {
    sb__retire_mem(exchange->retired, exchange->write.mem);
    exchange->write.mem = NULL;
}

/* Most engines know no streams: what callers queued on the legacy one is done, too. */
static sb_status finish_device(sb_comm *comm, sb_context *context, sb_error *err) {
    if (sb__comm_takes(comm, context) == 2)
        return SB_OK;
    return sb__streams_wait(context, sb__slot_bit(SB__LEGACY_SLOT) | sb__slot_bit(SB__OWN_SLOT),
                            err);
}

sb_status sb__exchange_begin(struct sb__exchange *exchange, sb_comm *comm, sb_blob *blob,
                             sb_part part, enum sb__exchange_kind kind, double factor,
                             struct sb__retired *retired, sb_error *err) {
    sb_mem *mem;
    *exchange = (struct sb__exchange){
        .buffer = {.count = blob->shape.count, .dtype = blob->dtype},
        .retired = retired,
    };
    if (kind == SB__EXCHANGE_SEND || kind == SB__EXCHANGE_RECEIVE) {
        exchange->buffer.count = (int64_t)sb__blob_bytes(blob);
        exchange->buffer.dtype = SB_DTYPE_U8;
    }
    if (!blob->shape.count)
        return SB_OK;
    sb_status st = sb__blob_memory(blob, part, &mem, err);
    if (st != SB_OK)
        return st;
    const bool is_whole = mem->bytes == sb__blob_bytes(blob);
    const int32_t side = side_for(comm, mem, blob->dtype, kind, factor);
    if (kind == SB__EXCHANGE_SEND)
        st = begin_send(exchange, mem, side, err);
    else
        st = begin_write(
            exchange, mem, side,
            kind == SB__EXCHANGE_RECEIVE && is_whole ? SB__WRITE_OVERWRITE : SB__WRITE_KEEP, err);
    if (st != SB_OK || side == SB_SIDE_CPU)
        return st;
    exchange->buffer.context = mem->context;
    st = finish_device(comm, mem->context, err);
    if (st != SB_OK)
        sb__exchange_cancel(exchange);
    return st;
}

static sb_status scale_on_device(struct sb__exchange *exchange, double factor, sb_error *err) {
    sb_context *context = exchange->buffer.context;
    sb_status st = sb__device_scale(context, exchange->buffer.dtype, exchange->buffer.count, factor,
                                    exchange->buffer.ptr, context->stream, err);
    if (st == SB_OK)
        st = sb__own_wait(context, err);
    if (st == SB_OK)
        return SB_OK;
    sb__write_spoiled(&exchange->write);
    return sb__device_spoiled(context, err);
}

sb_status sb__exchange_end(struct sb__exchange *exchange, double factor, sb_error *err) {
    struct sb__write *write = &exchange->write;
    const sb_comm_buffer *buffer = &exchange->buffer;
    sb_status st = SB_OK;
    if (!write->mem)
        return SB_OK;
    if (factor != 1.0 && buffer->context)
        st = scale_on_device(exchange, factor, err);
    else if (factor != 1.0)
        sb__comm_scale(write->mem->context, buffer->dtype, buffer->count, factor, buffer->ptr);
    if (st == SB_OK)
        sb__write_commit(write, exchange->retired);
    end_write(exchange);
    return st;
}

void sb__exchange_cancel(struct sb__exchange *exchange) {
    if (!exchange->write.mem)
        return;
    sb__write_cancel(&exchange->write);
    end_write(exchange);
}

void sb__exchange_failed(struct sb__exchange *exchange, bool is_over) {
    struct sb__write *write = &exchange->write;
    if (!write->mem)
        return;
    if (is_over || !write->replaces)
        sb__write_half_done(write);
    else
        sb__retiree_free(write->mem->context, write->place);
    if (is_over)
        end_write(exchange);
    write->mem = NULL;
}

static bool is_before(const void *user, const void *a, const void *b) {
    (void)user;
    const sb_mem *const *one = a, *const *other = b;
    return (uintptr_t)*one < (uintptr_t)*other;
}

sb_status sb__check_apart(const sb_mem **memories, int64_t count, sb_error *err) {
    sb__sort(memories, count, sizeof *memories, is_before, NULL);
    for (int64_t i = 1; i < count; i++)
        if (memories[i] == memories[i - 1])
            return sb__fail(err, SB_ERR_SHARED, "two of the blobs have one memory");
    return SB_OK;
}
