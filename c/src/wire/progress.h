/* Reports the progress of a call to the caller's callback. */
#ifndef SB_WIRE_PROGRESS_H
#define SB_WIRE_PROGRESS_H

#include <syncblob/io.h>

/* The progress of one call. The functions below accept NULL if the caller has no callback. */
struct sb__progress {
    sb_progress to;
    uint64_t done, total;
    uint64_t unreported;  /* bytes since the last report */
    uint32_t begin;       /* the offset at which each walk (a pass over the source) begins */
    uint32_t walk, walks; /* the current walk, and the number of walks; 0 if the call does not
                             compute `done` from the offset */
};

/* Copies the caller's struct, which may be NULL. Fails with INVALID_ARGUMENT (`report` is NULL),
   UNSUPPORTED or ABI_MISMATCH. */
sb_status sb__progress_adopt(sb_progress *out, const sb_progress *theirs, sb_error *err);
/* Initialises and returns `progress`. Returns NULL if `to` or to->report is NULL. */
struct sb__progress *sb__progress_begin(struct sb__progress *progress, const sb_progress *to,
                                        uint64_t total);
void sb__progress_next_walk(struct sb__progress *progress);

/* Counts `bytes` as processed and raises progress->done to `done`. Reports if enough bytes were
   processed since the last report. Fails with CANCELLED. */
sb_status sb__progress_done(struct sb__progress *progress, uint64_t done, size_t bytes,
                            sb_error *err);
/* As sb__progress_done, for a walk over the source that has reached the offset `at`. */
sb_status sb__progress_walked(struct sb__progress *progress, uint32_t at, size_t bytes,
                              sb_error *err);
/* Makes the last report, after all steps that can fail. Fails with CANCELLED. */
sb_status sb__progress_end(struct sb__progress *progress, sb_error *err);

#endif
