/* Where bytes are read from: the caller's memory, a mapped file, or a file read
   by pread. Safe to read from several threads at once. */
#ifndef SB_FORMAT_SOURCE_H
#define SB_FORMAT_SOURCE_H

#include <syncblob/status.h>

#include <stdbool.h>
#include <time.h>

/* Protobuf's own limit for a message, so that an offset is a uint32_t. */
#define SB__MAX_MESSAGE_BYTES INT32_MAX

struct sb__source {
    const unsigned char *bytes; /* all of them; NULL for a file that is read */
    uint32_t size;
    bool mapped;
    int fd;                   /* -1: no file */
    struct timespec modified; /* the file's time when it was opened */
};

/* `bytes` may be NULL when size is 0. INVALID_ARGUMENT, DATA_LIMIT. */
sb_status sb__source_of_bytes(struct sb__source *out, const void *bytes, size_t size,
                              sb_error *err);
/* A regular file. IO, DATA_LIMIT. */
sb_status sb__source_open(struct sb__source *out, const char *path, bool mapped, sb_error *err);
void sb__source_close(struct sb__source *source);

/* Bytes of a file may fail to come, or be others the next time; the caller's are as they were. */
static inline bool sb__source_may_change(const struct sb__source *source) {
    return source->fd >= 0;
}

/* Copies bytes [offset, offset + size) of a file that is read; they lie inside. IO. */
sb_status sb__source_read(const struct sb__source *source, uint32_t offset, void *dst, size_t size,
                          sb_error *err);
/* IO if the file is not what it was when it was opened. */
sb_status sb__source_check(const struct sb__source *source, sb_error *err);
sb_status sb__source_changed(sb_error *err);

#endif
