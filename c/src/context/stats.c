#include "context/context.h"

#include "base/error.h"

#include <string.h>

void sb__count_copy(sb_context *context, enum sb__direction direction, size_t bytes) {
    atomic_fetch_add_explicit(&context->copies[direction], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&context->copied_bytes[direction], bytes, memory_order_relaxed);
}

static void collect(sb_context *context, sb_stats *stats) {
    stats->host_bytes = atomic_load(&context->host.live);
    stats->host_peak = atomic_load(&context->host.peak);
    stats->pinned_bytes = atomic_load(&context->pinned.live);
    stats->pinned_peak = atomic_load(&context->pinned.peak);
    stats->device_bytes = atomic_load(&context->device_memory.live);
    stats->device_peak = atomic_load(&context->device_memory.peak);
    stats->cached_bytes = atomic_load(&context->cache.bytes);
    stats->borrowed_bytes = atomic_load(&context->borrowed);
    stats->uploads = atomic_load(&context->copies[SB__UPLOAD]);
    stats->upload_bytes = atomic_load(&context->copied_bytes[SB__UPLOAD]);
    stats->downloads = atomic_load(&context->copies[SB__DOWNLOAD]);
    stats->download_bytes = atomic_load(&context->copied_bytes[SB__DOWNLOAD]);
    stats->device_copies = atomic_load(&context->copies[SB__DEVICE_COPY]);
    stats->device_copy_bytes = atomic_load(&context->copied_bytes[SB__DEVICE_COPY]);
    stats->host_copies = atomic_load(&context->copies[SB__HOST_COPY]);
    stats->host_copy_bytes = atomic_load(&context->copied_bytes[SB__HOST_COPY]);
}

sb_status sb_context_stats(const sb_context *context, sb_stats *out, sb_error *err) {
    if (!out)
        return sb__fail_null(err, "out");
    if (out->struct_size < sizeof(size_t) + sizeof(uint64_t))
        return sb__fail(err, SB_ERR_ABI_MISMATCH, "sb_stats of %zu bytes holds no figure",
                        out->struct_size);
    sb_stats stats = SB_STATS_INIT;
    collect(sb__context(context), &stats);
    size_t given = out->struct_size;
    size_t known = given < sizeof stats ? given : sizeof stats;
    memset((char *)out + known, 0, given - known);
    memcpy(out, &stats, known);
    out->struct_size = given;
    return SB_OK;
}
