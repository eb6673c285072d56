/* Functions that fill an sb_error, and that read option structs of older and newer callers. */
#ifndef SB_COMM_ERROR_H
#define SB_COMM_ERROR_H

#include "port.h"

#include <syncblob/status.h>

/* Writes `err` (may be NULL) and returns `status`. */
sb_status sb__comm_fail(sb_error *err, sb_status status, const char *format, ...)
    SB__COMM_PRINTF(3, 4);
/* Fills `err` from the error of a slot, whose message may be "". Returns `status`. */
sb_status sb__comm_fail_slot(sb_error *err, sb_status status, const sb_error *slot_err,
                             const char *engine);
/* Copies `cause` to `err` (may be NULL). */
static inline void sb__comm_copy_error(sb_error *err, const sb_error *cause) {
    if (err)
        *err = *cause;
}
sb_status sb__comm_fail_null(sb_error *err, const char *what);
sb_status sb__comm_fail_memory(sb_error *err);

/* Checks that some version of the struct has `given` bytes. The first version had `first` bytes. */
sb_status sb__comm_check_struct(size_t given, size_t first, const char *what, sb_error *err);
/* Copies the caller's struct over the defaults in `ours`. Returns UNSUPPORTED if the caller has set
   a member that this version does not know. */
sb_status sb__comm_adopt_struct(void *ours, size_t known, size_t first, const void *theirs,
                                size_t given, const char *what, sb_error *err);

/* Ignores the status of a call that cannot fail, or whose failure changes nothing. */
static inline void sb__comm_ignore(sb_status status) {
    (void)status;
}

#endif
