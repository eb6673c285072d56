#include "exchange.h"

#include "error.h"

#include <stdlib.h>

static bool is_current(int32_t head, sb_side side) {
    return head == SB_HEAD_SYNCED ||
           head == (side == SB_SIDE_CPU ? SB_HEAD_AT_CPU : SB_HEAD_AT_GPU);
}

/* Chooses the device's side if the device has the newest bytes and the engine accepts the device's
   memory, else the host's side. */
static sb_side side_for(sb_comm *comm, const sb_mem *mem, sb_dtype dtype,
                        enum sb__exchange_kind kind, bool scales) {
    sb_context *context = sb_mem_context(mem);
    const int32_t head = sb_mem_head(mem);
    if (kind == SB__EXCHANGE_HOST || !is_current(head, SB_SIDE_GPU))
        return SB_SIDE_CPU;
    if (!sb__comm_takes(comm, context))
        return SB_SIDE_CPU;
    if (head == SB_HEAD_SYNCED && sb_context_device_status(context) != SB_OK)
        return SB_SIDE_CPU; /* the host's bytes are also current */
    if (scales && sb__comm_is_half(dtype))
        return SB_SIDE_CPU; /* devices have no arithmetic for halves */
    return !scales || sb_context_prepare_arithmetic(context, NULL) == SB_OK ? SB_SIDE_GPU
                                                                            : SB_SIDE_CPU;
}

/* Returns whether the root can read its bytes on the host without running a deleter. A read that
   replaces read-only storage may run the storage's deleter. */
static bool is_read_in_place(const sb_mem *mem, sb_side side) {
    return side == SB_SIDE_CPU && (is_current(sb_mem_head(mem), side) ||
                                   sb_mem_storage(mem, side) != SB_STORAGE_BORROWED_READ_ONLY);
}

static sb_status read_in_place(struct sb__exchange *exchange, const sb_mem *mem, sb_error *err) {
    const void *bytes = NULL;
    sb_status st = sb_mem_cpu(mem, &bytes, err);
    exchange->buffer.ptr = (void *)bytes; /* the cast is safe: nothing writes to the root's bytes */
    return st;
}

static sb_status begin_write(struct sb__exchange *exchange, sb_mem *mem, sb_side side,
                             uint32_t flags, sb_error *err) {
    struct sb__comm_write *write = calloc(1, sizeof *write);
    if (!write)
        return sb__comm_fail_memory(err);
    sb_status st = sb_write_begin(mem, side, flags, &exchange->buffer.ptr, &write->write, err);
    if (st == SB_OK)
        exchange->write = write;
    else
        free(write);
    return st;
}

static uint32_t flags_of(sb_comm *comm, const sb_mem *mem, sb_side side, bool overwrites) {
    const bool queues = side == SB_SIDE_GPU && sb__comm_takes(comm, sb_mem_context(mem)) == 2;
    return (overwrites ? (uint32_t)SB_WRITE_OVERWRITE : 0u) |
           (queues ? (uint32_t)SB_WRITE_QUEUED : 0u);
}

static void describe(struct sb__exchange *exchange, enum sb__exchange_kind kind) {
    const sb_blob *blob = exchange->blob;
    exchange->buffer.count = sb_blob_count(blob);
    exchange->buffer.dtype = sb_blob_dtype(blob);
    if (kind == SB__EXCHANGE_SEND || kind == SB__EXCHANGE_RECEIVE) {
        exchange->buffer.count = (int64_t)sb__comm_blob_bytes(blob);
        exchange->buffer.dtype = SB_DTYPE_U8;
    }
}

sb_status sb__exchange_begin(struct sb__exchange *exchange, sb_comm *comm, sb_blob *blob,
                             sb_part part, enum sb__exchange_kind kind, bool scales,
                             struct sb__comm_write **ended, sb_error *err) {
    sb_mem *mem;
    *exchange = (struct sb__exchange){.blob = blob, .part = part, .ended = ended};
    describe(exchange, kind);
    if (!exchange->buffer.count)
        return SB_OK;
    sb_status st = sb_blob_mutable_mem(blob, part, &mem, err);
    if (st != SB_OK)
        return st;
    const sb_side side = side_for(comm, mem, sb_blob_dtype(blob), kind, scales);
    const bool is_whole = sb_mem_size(mem) == sb__comm_blob_bytes(blob);
    exchange->sends = kind == SB__EXCHANGE_SEND;
    if (side == SB_SIDE_GPU)
        exchange->buffer.context = sb_mem_context(mem);
    if (exchange->sends && is_read_in_place(mem, side))
        return read_in_place(exchange, mem, err);
    return begin_write(exchange, mem, side,
                       flags_of(comm, mem, side, kind == SB__EXCHANGE_RECEIVE && is_whole), err);
}

static void leave(struct sb__exchange *exchange) {
    struct sb__comm_write *write = exchange->write;
    exchange->write = NULL;
    write->next = *exchange->ended;
    *exchange->ended = write;
}

static sb_status scale_on_host(const struct sb__exchange *exchange, double factor) {
    void *values;
    sb_status st = sb_blob_mutable_cpu(exchange->blob, exchange->part, &values, NULL);
    return st == SB_OK ? sb_blob_scale(exchange->blob, exchange->part, factor, NULL) : st;
}

/* Scales the result. If the device fails although its arithmetic was prepared, scales on the
   host. */
static sb_status scale(const struct sb__exchange *exchange, double factor, sb_error *err) {
    sb_error cause;
    sb_status st = sb_blob_scale(exchange->blob, exchange->part, factor, &cause);
    if (st == SB_OK || scale_on_host(exchange, factor) == SB_OK)
        return SB_OK;
    cause.code = SB_ERR_DEVICE_LOST;
    sb__comm_copy_error(err, &cause);
    return SB_ERR_DEVICE_LOST;
}

sb_status sb__exchange_end(struct sb__exchange *exchange, double factor, sb_error *err) {
    const sb_comm_buffer *buffer = &exchange->buffer;
    const bool scales = factor != 1.0, is_half = sb__comm_is_half(buffer->dtype);
    if (!exchange->write)
        return SB_OK;
    if (exchange->sends) {
        sb__exchange_cancel(exchange);
        return SB_OK;
    }
    if (scales && is_half)
        sb__comm_scale(buffer->dtype, buffer->count, factor, buffer->ptr);
    sb__comm_ignore(
        sb_write_end(exchange->write->write, SB_WRITE_DONE, NULL)); /* cannot fail: the write has
                                                                       not ended */
    leave(exchange);
    return scales && !is_half ? scale(exchange, factor, err) : (sb_status)SB_OK;
}

void sb__exchange_cancel(struct sb__exchange *exchange) {
    if (exchange->write)
        leave(exchange);
}

void sb__exchange_failed(struct sb__exchange *exchange, bool is_over) {
    if (!exchange->write)
        return;
    if (!exchange->sends)
        sb__comm_ignore(sb_write_end(exchange->write->write,
                                     is_over ? SB_WRITE_SPOILED : SB_WRITE_ABANDONED, NULL));
    leave(exchange);
}

void sb__comm_writes_destroy(struct sb__comm_write **list) {
    struct sb__comm_write *write = *list;
    *list = NULL;
    while (write) {
        struct sb__comm_write *next = write->next;
        sb_write_destroy(write->write);
        free(write);
        write = next;
    }
}

static int compare(const void *a, const void *b) {
    const sb_mem *const *one = a, *const *other = b;
    return ((uintptr_t)*one > (uintptr_t)*other) - ((uintptr_t)*one < (uintptr_t)*other);
}

sb_status sb__check_apart(const sb_mem **memories, int64_t count, sb_error *err) {
    qsort(memories, (size_t)count, sizeof *memories, compare);
    for (int64_t i = 1; i < count; i++)
        if (memories[i] == memories[i - 1])
            return sb__comm_fail(err, SB_ERR_SHARED, "two of the blobs share a memory");
    return SB_OK;
}
