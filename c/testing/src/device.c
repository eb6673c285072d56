#include "device.h"

#include <syncblob/context.h>

#include <stdarg.h>
#include <stdio.h>

sb_status sb__testing_lock(const sb_context *context, struct sb__testing_handle *out,
                           sb_error *err) {
    const void *table;
    sb_status st = sb_context_extension(context, SB_SIM_DEVICE, &table, &out->device, err);
    if (st != SB_OK)
        return st;
    out->table = table;
    out->table->lock(out->device);
    return SB_OK;
}

sb_status sb__testing_unlock(const struct sb__testing_handle *sim, sb_status status) {
    sim->table->unlock(sim->device);
    return status;
}

sb_status sb__testing_fail(sb_error *err, sb_status status, const char *format, ...) {
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    /* The warning of clang-tidy 14 is wrong: `args` is initialised. */
    (void)vsnprintf(message, sizeof message, format, args); /* NOLINT(*valist.Uninitialized) */
    va_end(args);
    return sb_error_fill(err, status, 0, message);
}

sb_status sb__testing_fail_null(sb_error *err, const char *parameter) {
    return sb__testing_fail(err, SB_ERR_INVALID_ARGUMENT, "%s is NULL", parameter);
}
