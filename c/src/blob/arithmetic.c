/* Updates, sums and scales blobs on the side (host or device) that has the current bytes. Each call
   checks in this order: its arguments, the dtype, whether the count is 0, the head. */
#include "blob/blob.h"

#include "base/dtype.h"
#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/mem.h"

static sb_status check_arithmetic(const sb_blob *blob, sb_error *err) {
    if (!blob)
        return sb__fail_null(err, "blob");
    if (sb__is_float(blob->dtype))
        return SB_OK;
    return sb__fail(err, SB_ERR_UNSUPPORTED, "there is no arithmetic on %s",
                    sb_dtype_name(blob->dtype));
}

static sb_status check_operand(const sb_blob *blob, sb_part part, sb_error *err) {
    sb_status st = !blob || sb__is_part(part) ? SB_OK : sb__check_part(part, err);
    return st != SB_OK ? st : check_arithmetic(blob, err);
}

static int32_t side_of(int32_t head) {
    return head == SB_HEAD_AT_CPU ? SB_SIDE_CPU : SB_SIDE_GPU;
}

static sb_status current_bytes(const sb_mem *mem, int32_t side, const void **out,
                               struct sb__retired *retired, sb_error *err) {
    return side == SB_SIDE_CPU ? sb__read_side(mem, SB_SIDE_CPU, out, retired, err)
                               : sb__read_for_own(mem, out, retired, err);
}

/* --- sums -------------------------------------------------------------------------- */

enum sum { ASUM, SUMSQ };

static sb_status sum_on_device(const sb_blob *blob, enum sum kind, const void *x, double *out,
                               sb_error *err) {
    sb_status st = sb__device_prepare_arithmetic(blob->context, blob->dtype, err);
    if (st != SB_OK)
        return st;
    int64_t count = blob->shape.count;
    return kind == ASUM ? sb__own_asum(blob->context, blob->dtype, count, x, out, err)
                        : sb__own_sumsq(blob->context, blob->dtype, count, x, out, err);
}

static double sum_on_host(const sb_blob *blob, enum sum kind, const void *x) {
    return kind == ASUM
               ? sb__host_asum(&blob->context->parallel, blob->dtype, blob->shape.count, x)
               : sb__host_sumsq(&blob->context->parallel, blob->dtype, blob->shape.count, x);
}

/* Not inlined, so that the fast path need not save registers. */
__attribute__((noinline)) static sb_status sum_memory(const sb_blob *blob, sb_part part,
                                                      enum sum kind, double *out, sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    const void *x;
    double result = 0;
    sb_status st = out ? check_operand(blob, part, err) : sb__fail_null(err, "out");
    if (st != SB_OK)
        return st;
    const sb_mem *mem = sb__blob_memory_or_none(blob, part);
    int32_t head = sb__head(mem);
    if (blob->shape.count == 0 || head == SB_HEAD_UNINITIALIZED) {
        *out = 0;
        return SB_OK;
    }
    if (head == SB_HEAD_LOST)
        return sb__fail_lost(err);
    st = current_bytes(mem, side_of(head), &x, &retired, err);
    if (st == SB_OK && side_of(head) == SB_SIDE_GPU)
        st = sum_on_device(blob, kind, x, &result, err);
    else if (st == SB_OK)
        result = sum_on_host(blob, kind, x);
    if (st == SB_OK)
        *out = result;
    sb__retired_end(&retired);
    return st;
}

static sb_status sum(const sb_blob *blob, sb_part part, enum sum kind, double *out, sb_error *err) {
    if (blob && out && sb__is_float(blob->dtype)) {
        const sb_mem *mem = sb__blob_memory_or_none(blob, part);
        if (sb__is_at_host(mem)) {
            *out = sum_on_host(blob, kind, sb__host_bytes(mem));
            return SB_OK;
        }
    }
    return sum_memory(blob, part, kind, out, err);
}

sb_status sb_blob_asum(const sb_blob *blob, sb_part part, double *out, sb_error *err) {
    return sum(blob, part, ASUM, out, err);
}

sb_status sb_blob_sumsq(const sb_blob *blob, sb_part part, double *out, sb_error *err) {
    return sum(blob, part, SUMSQ, out, err);
}

/* --- in place ----------------------------------------------------------------------- */

/* State of an operation that modifies a memory in place, on the side of the memory's head. `target`
   holds the stream of an operation on the device. */
struct in_place {
    struct sb__write write;
    struct sb__target target;
    struct sb__retired retired;
};

/* Begins a write on the side of the head. On the device, also prepares arithmetic. If `stream` is
   NULL, uses the library's stream. */
static sb_status begin(struct in_place *work, sb_mem *mem, sb_dtype dtype, const sb_stream *stream,
                       sb_error *err) {
    int32_t head = sb__head(mem);
    if (head == SB_HEAD_LOST)
        return sb__fail_lost(err);
    if (side_of(head) == SB_SIDE_CPU)
        return sb__write_begin(&work->write, mem, SB_SIDE_CPU, SB__WRITE_KEEP, err);
    sb_status st = sb__device_prepare_arithmetic(mem->context, dtype, err);
    work->target = sb__own_target(mem, SB__FOR_OWN_QUEUE);
    if (st == SB_OK && stream)
        st = sb__stream_target(mem, *stream, &work->target, err);
    work->target.write = &work->write;
    return st == SB_OK ? sb__write_begin_for(&work->write, mem, SB_SIDE_GPU, SB__WRITE_KEEP,
                                             &work->target, err)
                       : st;
}

/* Ends an operation on the device. `st` is the status from the backend. After an error other than
   OUT_OF_MEMORY and UNSUPPORTED, the backend may have written some bytes. `read` (may be NULL) is a
   second memory, which the work only reads. */
static sb_status end_on_device(struct in_place *work, const sb_mem *read, sb_status st,
                               sb_error *err) {
    if (st == SB_ERR_OUT_OF_MEMORY || st == SB_ERR_UNSUPPORTED) { /* nothing was queued */
        sb__write_cancel(&work->write);
        return st;
    }
    if (st == SB_OK)
        st = sb__write_queued(&work->write, &work->target, err);
    if (st != SB_OK) {
        sb__write_spoiled(&work->write);
        return sb__device_spoiled(work->write.mem->context, st, err);
    }
    sb__write_commit_for(&work->write, &work->target, &work->retired);
    if (read)
        sb__note_read(read, &work->target);
    return SB_OK;
}

static sb_status subtract(sb_blob *blob, struct in_place *work, const sb_mem *diff, const void *x,
                          sb_error *err) {
    sb_context *context = blob->context;
    struct sb__write *write = &work->write;
    int64_t count = blob->shape.count;
    if (write->side == SB_SIDE_GPU) {
        sb_status st = sb__device_axpy(context, blob->dtype, count, -1.0, x, write->ptr,
                                       work->target.stream, err);
        return end_on_device(work, diff == write->mem ? NULL : diff, st, err);
    }
    sb__host_axpy(&context->parallel, blob->dtype, count, -1.0, x, write->ptr);
    sb__write_commit(write, &work->retired);
    return SB_OK;
}

/* Makes the bytes of diff current on the side of `work`, and sets `*out` to these bytes. */
static sb_status read_diff(struct in_place *work, const sb_blob *blob, const sb_mem *diff,
                           const void **out, sb_error *err) {
    const struct sb__write *write = &work->write;
    if (diff == write->mem) {
        *out = write->ptr;
        return SB_OK;
    }
    sb_status st = write->side == SB_SIDE_CPU
                       ? sb__read_side(diff, SB_SIDE_CPU, out, &work->retired, err)
                       : sb__read_for(diff, &work->target, out, &work->retired, err);
    if (st == SB_OK && *out != write->ptr && sb__overlap(*out, write->ptr, sb__blob_bytes(blob)))
        st = sb__fail_overlap(err);
    return st;
}

static sb_status update_in(struct in_place *work, sb_blob *blob, const sb_stream *stream,
                           sb_error *err) {
    const void *x;
    sb_mem *diff;
    sb_status st = check_arithmetic(blob, err);
    if (st != SB_OK || blob->shape.count == 0)
        return st;
    sb_mem *data = sb__blob_peek(blob, SB_DATA);
    if (!data || sb__head(data) == SB_HEAD_UNINITIALIZED)
        return sb__fail(err, SB_ERR_UNINITIALIZED, "data was never written");
    st = sb__blob_memory(blob, SB_DIFF, &diff, err);
    if (st == SB_OK)
        st = begin(work, data, blob->dtype, stream, err);
    if (st != SB_OK)
        return st;
    st = read_diff(work, blob, diff, &x, err);
    if (st != SB_OK) {
        sb__write_cancel(&work->write);
        return st;
    }
    return subtract(blob, work, diff, x, err);
}

__attribute__((noinline)) static sb_status update_memory(sb_blob *blob, const sb_stream *stream,
                                                         sb_error *err) {
    struct in_place work = {.write = {.mem = NULL}};
    sb_status st = update_in(&work, blob, stream, err);
    sb__retired_end(&work.retired);
    return st;
}

static sb_status update(sb_blob *blob, const sb_stream *stream, sb_error *err) {
    if (!blob)
        return update_memory(blob, stream, err);
    const sb_mem *data = sb__blob_memory_or_none(blob, SB_DATA),
                 *diff = sb__blob_memory_or_none(blob, SB_DIFF);
    if (!sb__is_written_at_host(data) || !sb__is_at_host(diff) || !sb__is_float(blob->dtype))
        return update_memory(blob, stream, err);
    const void *x = sb__host_bytes(diff);
    void *y = sb__host_bytes(data);
    if (x != y && sb__overlap(x, y, sb__blob_bytes(blob)))
        return sb__fail_overlap(err);
    sb__host_axpy(&blob->context->parallel, blob->dtype, blob->shape.count, -1.0, x, y);
    return SB_OK;
}

sb_status sb_blob_update(sb_blob *blob, sb_error *err) {
    return update(blob, NULL, err);
}

sb_status sb_blob_update_on(sb_blob *blob, sb_stream stream, sb_error *err) {
    return update(blob, &stream, err);
}

__attribute__((noinline)) static sb_status scale_memory(sb_blob *blob, sb_part part, double factor,
                                                        const sb_stream *stream, sb_error *err) {
    struct in_place work = {.write = {.mem = NULL}};
    sb_status st = check_operand(blob, part, err);
    if (st != SB_OK || blob->shape.count == 0)
        return st;
    sb_mem *mem = sb__blob_peek(blob, part);
    if (!mem || sb__head(mem) == SB_HEAD_UNINITIALIZED)
        return SB_OK;
    st = begin(&work, mem, blob->dtype, stream, err);
    if (st != SB_OK)
        return st;
    sb_context *context = blob->context;
    int64_t count = blob->shape.count;
    if (work.write.side == SB_SIDE_GPU) {
        st = sb__device_scale(context, blob->dtype, count, factor, work.write.ptr,
                              work.target.stream, err);
        st = end_on_device(&work, NULL, st, err);
    } else {
        sb__host_scale(&context->parallel, blob->dtype, count, factor, work.write.ptr);
        sb__write_commit(&work.write, &work.retired);
    }
    sb__retired_end(&work.retired);
    return st;
}

static sb_status scale(sb_blob *blob, sb_part part, double factor, const sb_stream *stream,
                       sb_error *err) {
    if (blob && sb__is_float(blob->dtype)) {
        const sb_mem *mem = sb__blob_memory_or_none(blob, part);
        if (sb__is_written_at_host(mem)) {
            sb__host_scale(&blob->context->parallel, blob->dtype, blob->shape.count, factor,
                           sb__host_bytes(mem));
            return SB_OK;
        }
    }
    return scale_memory(blob, part, factor, stream, err);
}

sb_status sb_blob_scale(sb_blob *blob, sb_part part, double factor, sb_error *err) {
    return scale(blob, part, factor, NULL, err);
}

sb_status sb_blob_scale_on(sb_blob *blob, sb_part part, double factor, sb_stream stream,
                           sb_error *err) {
    return scale(blob, part, factor, &stream, err);
}
