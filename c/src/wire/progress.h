/* Progress of a call. */
#ifndef SB_WIRE_PROGRESS_H
#define SB_WIRE_PROGRESS_H

#include <syncblob/io.h>

/* The progress of one call, on the call's stack. Functions accept NULL for no callback. */
struct sb__progress {
    sb_progress to;
    uint64_t done, total;
    uint64_t unreported;  /* bytes since the last report */
    uint32_t begin;       /* the offset at which walks over the source begin */
    uint32_t walk, walks; /* the current walk, and the number of walks; if 0, walks do not change
                             `done` */
};

/* Copies the caller's struct, which may be NULL. INVALID_ARGUMENT (no report), UNSUPPORTED,
   ABI_MISMATCH. */
sb_status sb__progress_adopt(sb_progress *out, const sb_progress *theirs, sb_error *err);
/* Returns `progress`, or NULL without a callback (`to` NULL or without report). */
struct sb__progress *sb__progress_begin(struct sb__progress *progress, const sb_progress *to,
                                        uint64_t total);
void sb__progress_next_walk(struct sb__progress *progress);

/* Counts `bytes` as processed, raises `done`, and reports if due. CANCELLED. */
sb_status sb__progress_done(struct sb__progress *progress, uint64_t done, size_t bytes,
                            sb_error *err);
/* sb__progress_done for a walk over the source that has reached the offset `at`. */
sb_status sb__progress_walked(struct sb__progress *progress, uint32_t at, size_t bytes,
                              sb_error *err);
/* Makes the last report, after all steps that can fail. CANCELLED. */
sb_status sb__progress_end(struct sb__progress *progress, sb_error *err);

#endif
