#ifndef SB_BASE_ERROR_H
#define SB_BASE_ERROR_H

#include "port/text.h"

#include <syncblob/status.h>

/* Fills `err` (may be NULL) with the status and the message, and returns `status`. */
sb_status sb__fail(sb_error *err, sb_status status, const char *format, ...) SB__PRINTF(3, 4);
/* As sb__fail, but also stores a byte offset. */
sb_status sb__fail_at(sb_error *err, sb_status status, int64_t offset, const char *format, ...)
    SB__PRINTF(4, 5);
/* As sb__fail with the status IO. Appends the text of `error`, the system's error number
   (port/files.h), to the message. */
sb_status sb__fail_io(sb_error *err, int error, const char *format, ...) SB__PRINTF(3, 4);

/* Fills `err` from `reported`, which the callback `who` has filled in. If `reported` has no
   message, writes a message that names the callback. */
sb_status sb__fail_reported(sb_error *err, sb_status status, int64_t offset,
                            const sb_error *reported, const char *who);

/* Fails with INVALID_ARGUMENT, because the argument named `what` is NULL. */
sb_status sb__fail_null(sb_error *err, const char *what);
sb_status sb__fail_memory(sb_error *err, size_t bytes);
/* Stores `size`, the required capacity, in `out_size` (may be NULL) and returns
   BUFFER_TOO_SMALL. */
sb_status sb__fail_buffer(sb_error *err, size_t capacity, size_t size, size_t *out_size);

/* Ignores the status of a call that cannot fail, or whose failure does not matter. A cast to void
   would not suffice: if the function is marked SB_MUST_CHECK, compilers warn nevertheless. */
static inline void sb__ignore(sb_status status) {
    (void)status;
}

/* Writes `bytes` to `out` as printable ASCII. A text that does not fit into `capacity` (>= 8) bytes
   ends with "...". */
const char *sb__escape(const char *bytes, size_t size, char *out, size_t capacity);
/* As sb__escape, but does not escape the separators of a path. */
const char *sb__escape_path(const char *path, char *out, size_t capacity);

#endif
