#include "base/error.h"

#include "port/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void write_error(sb_error *err, sb_status status, int device_code, int64_t offset,
                        const char *format, va_list args) {
    char text[sizeof err->message] = {0}; /* formatted first, because the arguments may point into
                                             err->message */
    if (!err)
        return;
    (void)vsnprintf(text, sizeof text, format, args);
    err->code = status;
    err->device_code = device_code;
    err->offset = offset;
    memcpy(err->message, text, sizeof text);
}

sb_status sb__fail(sb_error *err, sb_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_error(err, status, 0, -1, format, args);
    va_end(args);
    return status;
}

sb_status sb__fail_at(sb_error *err, sb_status status, int64_t offset, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_error(err, status, 0, offset, format, args);
    va_end(args);
    return status;
}

sb_status sb__fail_io(sb_error *err, int error, const char *format, ...) {
    char buffer[96];
    va_list args;
    va_start(args, format);
    write_error(err, SB_ERR_IO, error, -1, format, args);
    va_end(args);
    if (!err)
        return SB_ERR_IO;
    const char *reason = sb__system_text(error, buffer, sizeof buffer);
    size_t length = strlen(err->message);
    (void)snprintf(err->message + length, sizeof err->message - length, ": %s", reason);
    return SB_ERR_IO;
}

sb_status sb_error_fill(sb_error *err, sb_status status, int32_t device_code, const char *message) {
    (void)sb__fail(err, status, "%s", message ? message : sb_status_text(status));
    if (err)
        err->device_code = device_code;
    return status;
}

sb_status sb__fail_reported(sb_error *err, sb_status status, int64_t offset,
                            const sb_error *reported, const char *who) {
    if (!reported->message[0])
        return sb__fail_at(err, status, offset, "%s failed and gave no reason", who);
    if (err) {
        *err = *reported;
        err->code = status;
        err->offset = offset;
        err->message[sizeof err->message - 1] = '\0';
    }
    return status;
}

sb_status sb__fail_null(sb_error *err, const char *what) {
    return sb__fail(err, SB_ERR_INVALID_ARGUMENT, "%s is NULL", what);
}

sb_status sb__fail_memory(sb_error *err, size_t bytes) {
    return sb__fail(err, SB_ERR_OUT_OF_MEMORY, "the allocator cannot allocate %zu bytes", bytes);
}

sb_status sb__fail_buffer(sb_error *err, size_t capacity, size_t size, size_t *out_size) {
    if (out_size)
        *out_size = size;
    return sb__fail(err, SB_ERR_BUFFER_TOO_SMALL, "%zu bytes are needed, the buffer has %zu", size,
                    capacity);
}

static size_t escape_byte(unsigned char c, char separator, char *out) {
    static const char hex[] = "0123456789abcdef";
    if (c == separator || (c >= 0x20 && c < 0x7f && c != '\\' && c != '"')) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '\\';
    out[1] = 'x';
    out[2] = hex[c >> 4];
    out[3] = hex[c & 15];
    return 4;
}

static const char *escape(const char *bytes, size_t size, char separator, char *out,
                          size_t capacity) {
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        if (used + 8 > capacity) { /* room for an escape and for "...", 4 bytes each */
            memcpy(out + used, "...", sizeof "...");
            return out;
        }
        used += escape_byte((unsigned char)bytes[i], separator, out + used);
    }
    out[used] = '\0';
    return out;
}

const char *sb__escape(const char *bytes, size_t size, char *out, size_t capacity) {
    return escape(bytes, size, '/', out, capacity); /* '/' is never escaped anyway */
}

const char *sb__escape_path(const char *path, char *out, size_t capacity) {
    return escape(path, strlen(path), SB__PATH_SEPARATOR, out, capacity);
}
