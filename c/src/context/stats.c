#include "context/context.h"

#include "base/error.h"
#include "base/options.h"

#define FIRST_SIZE (sizeof(size_t) + sizeof(uint64_t)) /* struct_size and one counter */

/* Limits `*out_live` to the peak, because account->live includes requests in progress, whose bytes
   are not allocated yet. */
static void read_account(const struct sb__account *account, uint64_t *out_live,
                         uint64_t *out_peak) {
    const uint64_t live = sb__counter_read(&account->live);
    *out_peak = sb__counter_read(&account->peak);
    *out_live = live < *out_peak ? live : *out_peak;
}

/* Adds the bytes that a backend failed to free, which the statistics count as live. */
static void add_kept(sb_context *context, sb_stats *stats) {
    uint64_t device, pinned;
    context->kept_bytes(context->device, &device, &pinned);
    stats->quarantined_bytes += device + pinned;
    stats->device_bytes += device;
    stats->pinned_bytes += pinned;
    sb__counter_raise(&context->device_memory.peak, stats->device_bytes);
    sb__counter_raise(&context->pinned.peak, stats->pinned_bytes);
    stats->device_peak = sb__counter_read(&context->device_memory.peak);
    stats->pinned_peak = sb__counter_read(&context->pinned.peak);
}

static void collect(sb_context *context, sb_stats *stats) {
    read_account(&context->host, &stats->host_bytes, &stats->host_peak);
    read_account(&context->pinned, &stats->pinned_bytes, &stats->pinned_peak);
    read_account(&context->device_memory, &stats->device_bytes, &stats->device_peak);
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
    if (context->kept_bytes)
        add_kept(context, stats);
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
