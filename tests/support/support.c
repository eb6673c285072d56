#include "support.h"

#include <unistd.h>

void counting_allocator_assert_clean(struct counting_allocator *counting) {
    assert_int_equal(counting->live_blocks, 0);
    assert_int_equal(counting->live_bytes, 0);
    assert_int_equal(counting->violations, 0);
}

/* --- assertions ------------------------------------------------------------- */

void support_fail(const char *file, int line, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s\n", text);
    _fail(file, line);
    abort(); /* not reached: _fail jumps */
}

/* A message never contains this byte: messages are printable. */
#define ERROR_POISON 0xEE

_Thread_local sb_error err;

void support_poison_error(sb_error *err) {
    memset(err, ERROR_POISON, sizeof *err);
}

static bool holds_poison(const void *bytes, size_t size, bool all) {
    const unsigned char *p = bytes;
    size_t found = 0;
    for (size_t i = 0; i < size; i++)
        found += p[i] == ERROR_POISON;
    return all ? found == size : found > 0;
}

static const char *error_fault(const sb_error *err, sb_status status) {
    if (status == SB_OK)
        return holds_poison(err, sizeof *err, true) ? NULL : "the call succeeded but wrote err";
    if (holds_poison(err, sizeof *err, true))
        return "the call failed but did not write err";
    if (err->code != status)
        return "err.code is not the returned status";
    if (holds_poison(&err->device_code, sizeof err->device_code, true) ||
        holds_poison(&err->offset, sizeof err->offset, true))
        return "err.device_code or err.offset was not written";
    if (err->offset < -1)
        return "err.offset is below -1";
    if (holds_poison(err->message, sizeof err->message, false))
        return "err.message was written only in part";
    if (err->message[0] == '\0' || !memchr(err->message, 0, sizeof err->message))
        return "err.message is empty or not terminated";
    return NULL;
}

void support_check_status(sb_status expected, sb_status found, const sb_error *err,
                          const char *expression, const char *file, int line) {
    const char *fault = error_fault(err, found);
    if (found != expected)
        support_fail(file, line, "%s\n  expected %s, got %s: %.239s", expression,
                     sb_status_name(expected), sb_status_name(found),
                     found == SB_OK || (fault && found != SB_OK) ? "" : err->message);
    if (fault)
        support_fail(file, line, "%s\n  %s", expression, fault);
}

/* --- files and numbers --------------------------------------------------------- */

#ifndef SB_SOURCE_DIR
#define SB_SOURCE_DIR "."
#endif

const char *test_data_path(const char *name, char *buffer, size_t capacity) {
    const char *folder = getenv("SYNCBLOB_TEST_DATA");
    if (!folder || !*folder)
        folder = SB_SOURCE_DIR "/../shared/data";
    int length = snprintf(buffer, capacity, "%s/%s", folder, name);
    if (length > 0 && (size_t)length < capacity && access(buffer, R_OK) == 0)
        return buffer;
    print_message("skipped: no readable file %s in %s (SYNCBLOB_TEST_DATA names the folder)\n",
                  name, folder);
    return NULL;
}

uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

sb_status blob_message(const sb_blob *blob, uint32_t flags, void **out, size_t *out_size,
                       sb_error *err) {
    size_t size;
    sb_status st = sb_blob_proto_size(blob, flags, &size, err);
    if (st != SB_OK)
        return st;
    void *bytes = malloc(size ? size : 1);
    assert_non_null(bytes);
    st = sb_blob_to_proto(blob, flags, bytes, size, out_size, err);
    if (st == SB_OK)
        *out = bytes;
    else
        free(bytes);
    return st;
}

int64_t num_blobs(const sb_model *model, int64_t layer) {
    sb_error err;
    int64_t count = 0;
    sb_status st = sb_model_num_blobs(model, layer, &count, &err);
    if (st != SB_ERR_INDEX_OUT_OF_RANGE)
        assert_ok(st);
    return count;
}
