/* A source of bytes: the caller's memory, a mapped file, or callbacks (the caller's, or the
   library's for a file that pread reads). Several threads may read one source. */
#ifndef SB_WIRE_SOURCE_H
#define SB_WIRE_SOURCE_H

#include <syncblob/io.h>

#include <stdbool.h>

/* Protobuf's limit for the bytes of a message. Every offset therefore fits into uint32_t. */
#define SB__MAX_MESSAGE_BYTES INT32_MAX

/* The size of sb_source in version 0.1. */
#define SB__SOURCE_FIRST_SIZE (offsetof(sb_source, close) + sizeof(((sb_source *)0)->close))

/* Numbers that change if the bytes change. `changed` and `names` are 0 except for files. */
struct sb__stamp {
    uint64_t version, changed, names;
};

struct sb__source {
    const unsigned char *bytes; /* all bytes; NULL if callbacks read the bytes */
    uint32_t size;
    bool mapped;
    sb_source from;         /* the source's functions; NULL for the caller's memory */
    struct sb__stamp stamp; /* taken when the source was opened */
};

void sb__source_close(struct sb__source *source);

/* Returns whether a read may fail, or return other bytes than an earlier read. Returns true for
   callbacks and mapped files, and false for the caller's memory. */
static inline bool sb__source_may_change(const struct sb__source *source) {
    return source->from.read_at != NULL;
}

/* Copies `size` > 0 bytes from `offset` on, which are inside the source. Fails with IO,
   OUT_OF_MEMORY or CANCELLED. */
sb_status sb__source_read(const struct sb__source *source, uint32_t offset, void *dst, size_t size,
                          sb_error *err);
/* Reads the current stamp through the source's functions. Fails as sb__source_read does. */
sb_status sb__source_stamp(const sb_source *from, struct sb__stamp *out, sb_error *err);
/* Fails with IO if the bytes have changed since the source was opened. Also fails as
   sb__source_stamp does. */
sb_status sb__source_check(const struct sb__source *source, sb_error *err);
sb_status sb__source_changed(sb_error *err);

/* Fills `err` from the failure of a caller's callback, and returns OUT_OF_MEMORY, CANCELLED or IO.
   `status` is the callback's status. `reported` is the error that the callback filled in. The
   error's message was "" before the call. `who` names the callback, for example "the source". */
sb_status sb__callback_failed(sb_status status, const sb_error *reported, const char *who,
                              int64_t offset, sb_error *err);

/* Makes a source, without `close`, of a regular file. Error messages name the file `shown`. Fails
   with IO. */
sb_status sb__descriptor_source(intptr_t file, const char *shown, sb_source *out, sb_error *err);
/* Returns whether the source was made by sb__descriptor_source. */
bool sb__descriptor_is(const sb_source *source);
/* Reads the stamp of a source that sb__descriptor_source has made. Fails with IO. */
sb_status sb__descriptor_stamp(void *user, struct sb__stamp *out, sb_error *err);
void sb__descriptor_close(void *user);

#endif
