#include "wire/progress.h"

#include "base/error.h"
#include "base/options.h"

#define STEP_BYTES 65536 /* bytes between two reports */

/* The size of sb_progress in version 0.1. */
#define FIRST_SIZE (offsetof(sb_progress, report) + sizeof(((sb_progress *)0)->report))

sb_status sb__progress_adopt(sb_progress *out, const sb_progress *theirs, sb_error *err) {
    sb_progress ours = SB_PROGRESS_INIT;
    sb_status st = SB_OK;
    if (theirs)
        st = sb__adopt_struct(&ours, sizeof ours, FIRST_SIZE, theirs, theirs->struct_size,
                              "sb_progress", err);
    if (st == SB_OK && theirs && !ours.report)
        st = sb__fail_null(err, "report");
    if (st == SB_OK)
        *out = ours;
    return st;
}

struct sb__progress *sb__progress_begin(struct sb__progress *progress, const sb_progress *to,
                                        uint64_t total) {
    if (!to || !to->report)
        return NULL;
    *progress = (struct sb__progress){.to = *to, .total = total};
    return progress;
}

void sb__progress_next_walk(struct sb__progress *progress) {
    if (progress)
        progress->walk++;
}

static sb_status report(struct sb__progress *progress, sb_error *err) {
    progress->unreported = 0;
    if (progress->to.report(progress->to.user, progress->done, progress->total) == 0)
        return SB_OK;
    return sb__fail(err, SB_ERR_CANCELLED, "cancelled by the caller at %llu of %llu bytes",
                    (unsigned long long)progress->done, (unsigned long long)progress->total);
}

sb_status sb__progress_done(struct sb__progress *progress, uint64_t done, size_t bytes,
                            sb_error *err) {
    if (!progress)
        return SB_OK;
    if (done > progress->done)
        progress->done = done < progress->total ? done : progress->total;
    progress->unreported += bytes;
    return progress->unreported < STEP_BYTES ? SB_OK : report(progress, err);
}

sb_status sb__progress_walked(struct sb__progress *progress, uint32_t at, size_t bytes,
                              sb_error *err) {
    uint64_t done = 0;
    if (progress && progress->walks > 0)
        done = (progress->walk * progress->total + (at - progress->begin)) / progress->walks;
    return sb__progress_done(progress, done, bytes, err);
}

sb_status sb__progress_end(struct sb__progress *progress, sb_error *err) {
    if (!progress)
        return SB_OK;
    progress->done = progress->total;
    return report(progress, err);
}
