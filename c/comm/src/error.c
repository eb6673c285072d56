#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* No version of any struct is larger than this number of bytes. */
#define MAX_STRUCT_SIZE 4096

sb_status sb__comm_fail(sb_error *err, sb_status status, const char *format, ...) {
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sb_error_fill(err, status, 0, text);
}

sb_status sb__comm_fail_slot(sb_error *err, sb_status status, const sb_error *slot_err,
                             const char *engine) {
    if (!slot_err->message[0])
        return sb__comm_fail(err, status, "%s failed and gave no reason", engine);
    char text[sizeof slot_err->message]; /* a copy, because the text may lack a NUL, or may be
                                            err->message */
    memcpy(text, slot_err->message, sizeof text);
    text[sizeof text - 1] = '\0';
    return sb_error_fill(err, status, slot_err->device_code, text);
}

sb_status sb__comm_fail_null(sb_error *err, const char *what) {
    return sb__comm_fail(err, SB_ERR_INVALID_ARGUMENT, "%s is NULL", what);
}

sb_status sb__comm_fail_memory(sb_error *err) {
    return sb_error_fill(err, SB_ERR_OUT_OF_MEMORY, 0, "no memory for a handle");
}

sb_status sb__comm_check_struct(size_t given, size_t first, const char *what, sb_error *err) {
    if (given < first || given > MAX_STRUCT_SIZE)
        return sb__comm_fail(err, SB_ERR_ABI_MISMATCH,
                             "%s has %zu bytes or more, struct_size is %zu", what, first, given);
    if (given % sizeof given)
        return sb__comm_fail(err, SB_ERR_ABI_MISMATCH,
                             "%s ends within a member, struct_size is %zu", what, given);
    return SB_OK;
}

sb_status sb__comm_adopt_struct(void *ours, size_t known, size_t first, const void *theirs,
                                size_t given, const char *what, sb_error *err) {
    sb_status st = sb__comm_check_struct(given, first, what, err);
    if (st != SB_OK)
        return st;
    for (size_t i = known; i < given; i++)
        if (((const unsigned char *)theirs)[i])
            return sb__comm_fail(err, SB_ERR_UNSUPPORTED,
                                 "%s sets a member at byte %zu that this version does not know",
                                 what, i);
    memcpy(ours, theirs, given < known ? given : known);
    return SB_OK;
}
