#include "context/context.h"

#include "base/error.h"
#include "base/options.h"

#define FIRST_SIZE (sizeof(size_t) + sizeof(uint64_t)) /* one figure */

void sb__count_copy(sb_context *context, enum sb__direction direction, size_t bytes) {
    (void)sb__counter_add(&context->copies[direction], 1);
    (void)sb__counter_add(&context->copied_bytes[direction], bytes);
}

static void collect(sb_context *context, sb_stats *stats) {
    stats->host_bytes = sb__counter_read(&context->host.live);
    stats->host_peak = sb__counter_read(&context->host.peak);
    stats->pinned_bytes = sb__counter_read(&context->pinned.live);
    stats->pinned_peak = sb__counter_read(&context->pinned.peak);
    stats->device_bytes = sb__counter_read(&context->device_memory.live);
    stats->device_peak = sb__counter_read(&context->device_memory.peak);
    stats->cached_bytes = sb__counter_read(&context->cache.bytes);
    stats->borrowed_bytes = sb__counter_read(&context->borrowed);
    stats->uploads = sb__counter_read(&context->copies[SB__UPLOAD]);
    stats->upload_bytes = sb__counter_read(&context->copied_bytes[SB__UPLOAD]);
    stats->downloads = sb__counter_read(&context->copies[SB__DOWNLOAD]);
    stats->download_bytes = sb__counter_read(&context->copied_bytes[SB__DOWNLOAD]);
    stats->device_copies = sb__counter_read(&context->copies[SB__DEVICE_COPY]);
    stats->device_copy_bytes = sb__counter_read(&context->copied_bytes[SB__DEVICE_COPY]);
    stats->host_copies = sb__counter_read(&context->copies[SB__HOST_COPY]);
    stats->host_copy_bytes = sb__counter_read(&context->copied_bytes[SB__HOST_COPY]);
    stats->quarantined_bytes = sb__counter_read(&context->quarantine.bytes);
    stats->leaked_bytes = sb__quarantine_leaked();
}

sb_status sb_context_stats(const sb_context *context, sb_stats *out, sb_error *err) {
    if (!out)
        return sb__fail_null(err, "out");
    sb_status st = sb__check_struct(out->struct_size, FIRST_SIZE, "sb_stats", err);
    if (st != SB_OK)
        return st;
    sb_stats stats = SB_STATS_INIT;
    collect(sb__context(context), &stats);
    sb__give_struct(out, out->struct_size, &stats, sizeof stats);
    return SB_OK;
}
