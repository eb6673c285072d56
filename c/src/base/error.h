/* Filling in an sb_error. */
#ifndef SB_BASE_ERROR_H
#define SB_BASE_ERROR_H

#include "port/text.h"

#include <syncblob/status.h>

/* Writes `err` (may be NULL) and returns `status`. */
sb_status sb__fail(sb_error *err, sb_status status, const char *format, ...) SB__PRINTF(3, 4);
/* The same with a byte offset. */
sb_status sb__fail_at(sb_error *err, sb_status status, int64_t offset, const char *format, ...)
    SB__PRINTF(4, 5);
/* The same with an error number of the system (port/files.h), whose text is appended. */
sb_status sb__fail_io(sb_error *err, int error, const char *format, ...) SB__PRINTF(3, 4);

/* The error that a callback has reported, from a message of "", as ours; `who` failed. */
sb_status sb__fail_reported(sb_error *err, sb_status status, int64_t offset,
                            const sb_error *reported, const char *who);

/* The statuses that every function with pointers returns. */
sb_status sb__fail_null(sb_error *err, const char *what);
sb_status sb__fail_memory(sb_error *err, size_t bytes);
/* A buffer of `capacity` bytes for `size`, which goes to `out_size` (may be NULL). */
sb_status sb__fail_buffer(sb_error *err, size_t capacity, size_t size, size_t *out_size);

/* For a call that cannot fail, or whose failure changes nothing: SB_MUST_CHECK warns of a cast to
   void, too. */
static inline void sb__ignore(sb_status status) {
    (void)status;
}

/* `bytes` as printable ASCII into `out`, cut with "..." at `capacity` (>= 8). */
const char *sb__escape(const char *bytes, size_t size, char *out, size_t capacity);
/* The same for a path, whose separators stay. */
const char *sb__escape_path(const char *path, char *out, size_t capacity);

#endif
