/* How far a call has come, reported to the caller. */
#ifndef SB_WIRE_PROGRESS_H
#define SB_WIRE_PROGRESS_H

#include <syncblob/io.h>

/* Of one call, on its stack. Where one is asked for NULL means that nobody asked. */
struct sb__progress {
    sb_progress to;
    uint64_t done, total;
    uint64_t unreported;  /* bytes that went by since the last report */
    uint32_t begin;       /* where walks over the source begin */
    uint32_t walk, walks; /* this one and how many make the whole; 0 walks: they count nothing */
};

/* A caller's struct, NULL for none, as one of ours. INVALID_ARGUMENT (no report), UNSUPPORTED,
   ABI_MISMATCH. */
sb_status sb__progress_adopt(sb_progress *out, const sb_progress *theirs, sb_error *err);
/* NULL if nobody asked (`to` NULL or without report), else `progress`. */
struct sb__progress *sb__progress_begin(struct sb__progress *progress, const sb_progress *to,
                                        uint64_t total);
void sb__progress_next_walk(struct sb__progress *progress);

/* `bytes` more went by. CANCELLED. */
sb_status sb__progress_done(struct sb__progress *progress, uint64_t done, size_t bytes,
                            sb_error *err);
/* The same on a walk, which has come to offset `at`. */
sb_status sb__progress_walked(struct sb__progress *progress, uint32_t at, size_t bytes,
                              sb_error *err);
/* All is done that can fail. CANCELLED. */
sb_status sb__progress_end(struct sb__progress *progress, sb_error *err);

#endif
