#include "memory/clear.h"

#include "base/error.h"
#include "host/arithmetic.h"
#include "memory/mem.h"
#include "memory/write.h"

static sb_status clear_device(struct sb__write *write, size_t bytes, struct sb__retired *retired,
                              sb_error *err) {
    sb_context *context = write->mem->context;
    sb_status st = sb__device_zero(context, write->ptr, bytes, context->stream, err);
    if (st != SB_OK) { /* a failed slot queues nothing */
        sb__write_refused(write, st);
        sb__write_cancel(write);
        return st;
    }
    st = sb__write_wait(write, err);
    if (st == SB_OK)
        sb__write_commit(write, retired);
    return st;
}

sb_status sb__mem_clear(sb_mem *mem, size_t bytes, struct sb__retired *retired, sb_error *err) {
    struct sb__write write;
    int32_t head = sb__head(mem);
    if (head == SB_HEAD_UNINITIALIZED || (!bytes && mem->bytes))
        return SB_OK;
    if (head == SB_HEAD_LOST)
        return sb__fail_lost(err);
    int32_t side = head == SB_HEAD_AT_CPU ? SB_SIDE_CPU : SB_SIDE_GPU;
    enum sb__write_mode mode = bytes == mem->bytes ? SB__WRITE_OVERWRITE : SB__WRITE_KEEP;
    sb_status st = sb__write_begin(&write, mem, side, mode, err);
    if (st != SB_OK)
        return st;
    if (side == SB_SIDE_GPU && bytes)
        return clear_device(&write, bytes, retired, err);
    if (bytes)
        sb__host_zero(&mem->context->parallel, write.ptr, bytes);
    sb__write_commit(&write, retired);
    return SB_OK;
}

sb_status sb_mem_clear(sb_mem *mem, sb_error *err) {
    struct sb__retired retired = {NULL, NULL};
    if (!mem)
        return sb__fail_null(err, "mem");
    sb_status st = sb__mem_clear(mem, mem->bytes, &retired, err);
    sb__retired_end(&retired);
    return st;
}
