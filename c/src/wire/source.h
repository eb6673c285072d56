/* Where bytes are read from: memory of the caller's, a mapped file, or
   callbacks, which are ours for a file that is read by pread. Safe to read from
   several threads at once. */
#ifndef SB_WIRE_SOURCE_H
#define SB_WIRE_SOURCE_H

#include <syncblob/io.h>

#include <stdbool.h>

/* Protobuf's own limit for a message, so that an offset is a uint32_t. */
#define SB__MAX_MESSAGE_BYTES INT32_MAX

/* What sb_source ended with in version 0.1. */
#define SB__SOURCE_FIRST_SIZE (offsetof(sb_source, close) + sizeof(((sb_source *)0)->close))

/* What changes when the bytes do; of a file the last two, else they are 0. */
struct sb__stamp {
    uint64_t version, changed, names;
};

struct sb__source {
    const unsigned char *bytes; /* all of them; NULL: they are asked for */
    uint32_t size;
    bool mapped;
    sb_source from;         /* no slots: memory of the caller's */
    struct sb__stamp stamp; /* when it was opened */
};

void sb__source_close(struct sb__source *source);

/* What is asked for may fail to come, or be others the next time, and so may a mapped file; the
   caller's bytes are as they were. */
static inline bool sb__source_may_change(const struct sb__source *source) {
    return source->from.read_at != NULL;
}

/* Copies bytes [offset, offset + size), which lie inside; size > 0. IO, OUT_OF_MEMORY, CANCELLED.
 */
sb_status sb__source_read(const struct sb__source *source, uint32_t offset, void *dst, size_t size,
                          sb_error *err);
/* The stamp of its bytes now, by the source's slots; what `version` returns, IO. */
sb_status sb__source_stamp(const sb_source *from, struct sb__stamp *out, sb_error *err);
/* IO if the bytes are not what they were when the source was opened; also what its slot returns. */
sb_status sb__source_check(const struct sb__source *source, sb_error *err);
sb_status sb__source_changed(sb_error *err);

/* What a callback of the caller's has returned, as the library returns it; `reported` is what it
   wrote, from a message of "". `who` failed: "the source". */
sb_status sb__callback_failed(sb_status status, const sb_error *reported, const char *who,
                              int64_t offset, sb_error *err);

/* A regular file as a source without `close`. `shown` names it in errors. IO. */
sb_status sb__descriptor_source(intptr_t file, const char *shown, sb_source *out, sb_error *err);
/* Whether the source's slots are those of a file; then its stamp. IO. */
bool sb__descriptor_is(const sb_source *source);
sb_status sb__descriptor_stamp(void *user, struct sb__stamp *out, sb_error *err);
void sb__descriptor_close(void *user);

#endif
