#include "proto/read_blob.h"

#include "base/checked.h"
#include "base/dtype.h"
#include "base/error.h"
#include "proto/payload.h"

#include <stdio.h>
#include <string.h>

/* --- shapes -------------------------------------------------------------------- */

bool sb__shape_equals_index(const struct sb__shape *shape, const struct sb__blob_index *index) {
    if (index->legacy)
        return sb__shape_is_legacy(shape, &index->shape);
    return sb__shape_is(shape, index->shape.dims, index->shape.num_axes);
}

#define COUNT_BYTES 32 /* room for "... (9223372036854775807)" */

/* Writes the shape as text, with the count. Omits the last dimensions if `out` is too small. */
static const char *shape_text(const struct sb__shape *shape, char *out, size_t capacity) {
    size_t used = 0, room = capacity - COUNT_BYTES;
    for (int32_t i = 0; i < shape->num_axes; i++) {
        int n = snprintf(out + used, room - used, "%lld ", (long long)shape->dims[i]);
        if ((size_t)n >= room - used) {
            memcpy(out + used, "... ", 4);
            used += 4;
            break;
        }
        used += (size_t)n;
    }
    (void)snprintf(out + used, capacity - used, "(%lld)", (long long)shape->count);
    return out;
}

static sb_status target_shape(const sb_blob *blob, const struct sb__blob_index *index, bool reshape,
                              const struct sb__path *path, struct sb__shape *out, sb_error *err) {
    char have[72], given[72];
    size_t bytes;
    if (!reshape) {
        *out = *sb__blob_shape(blob);
        if (sb__shape_equals_index(out, index))
            return SB_OK;
        return sb__fail(err, SB_ERR_SHAPE_MISMATCH, "the blob is %s, but the message is %s",
                        shape_text(out, have, sizeof have),
                        shape_text(&index->shape, given, sizeof given));
    }
    if (!sb__bytes_of(index->shape.count, sb_dtype_size(sb_blob_dtype(blob)), &bytes))
        return sb__wire_fail(path, 0, SB_ERR_DATA_OVERFLOW, index->begin, err,
                             "the shape's byte count overflows; the message begins");
    sb__shape_copy(out, &index->shape);
    return SB_OK;
}

/* --- types ----------------------------------------------------------------------- */

/* Called for a blob of F16. Fails if the stored values are not F16, because the library does not
   round values to F16. */
static sb_status check_halves(const struct sb__path *path, const struct sb__payload *payload,
                              sb_error *err) {
    if (payload->count == 0 || payload->dtype == SB_DTYPE_F16)
        return SB_OK;
    return sb__wire_fail(path, payload->field, SB_ERR_DTYPE_MISMATCH, payload->offset, err,
                         "a blob of f16 cannot hold %s", sb_dtype_name(payload->dtype));
}

/* --- payload --------------------------------------------------------------------- */

static bool within(const struct sb__blob_index *index, const struct sb__read_blob *how, size_t data,
                   size_t diff) {
    size_t total;
    return sb__add_size(data, index->diff.count > 0 ? diff : 0, &total) &&
           sb__add_size(total, how->held, &total) && total <= how->limits->max_memory;
}

static sb_status check_memory(const sb_blob *blob, const struct sb__blob_index *index,
                              const struct sb__path *path, const struct sb__read_blob *how,
                              sb_error *err) {
    size_t bytes;
    if (!sb__bytes_of(index->shape.count, sb_dtype_size(sb_blob_dtype(blob)), &bytes) ||
        !within(index, how, bytes, bytes))
        return sb__wire_fail(
            path, 0, SB_ERR_DATA_LIMIT, index->begin, err,
            "%lld elements exceed the memory limit of %zu bytes; the message begins",
            (long long)index->shape.count, how->limits->max_memory);
    if (how->limits->max_memory == SIZE_MAX || /* no limit */
        within(index, how, sb__load_size(blob, SB_DATA, bytes),
               sb__load_size(blob, SB_DIFF, bytes)))
        return SB_OK;
    const size_t data = sb__load_room(blob, SB_DATA, bytes),
                 diff = sb__load_room(blob, SB_DIFF, bytes), room = data > bytes ? data : diff;
    if (room > bytes)
        return sb__wire_fail(path, 0, SB_ERR_DATA_LIMIT, index->begin, err,
                             "the blob's storage must move to the host, but its %zu bytes exceed "
                             "the memory limit of %zu; the message begins",
                             room, how->limits->max_memory);
    return sb__wire_fail(path, 0, SB_ERR_DATA_LIMIT, index->begin, err,
                         "%lld elements, with the library's own objects, exceed the memory limit "
                         "of %zu bytes; the message begins",
                         (long long)index->shape.count, how->limits->max_memory);
}

/* Prepares the progress: copying the values is one walk over the message. */
static void begin_values(struct sb__reader *reader, const struct sb__blob_index *index) {
    if (!reader->progress)
        return;
    reader->progress->begin = index->begin;
    reader->progress->walks = 1;
}

static sb_status end_values(const struct sb__reader *reader, sb_error *err) {
    sb_status st = sb__source_check(reader->source, err);
    return st == SB_OK ? sb__progress_end(reader->progress, err) : st;
}

static sb_status copy_payload(sb_blob *blob, struct sb__reader *reader, const struct sb__path *path,
                              const struct sb__blob_index *index, struct sb__load *load,
                              sb_error *err) {
    int32_t dtype = sb_blob_dtype(blob);
    begin_values(reader, index);
    sb_status st = sb__payload_copy(reader, path, index, &index->data, 0, index->data.count, dtype,
                                    load->data.ptr, err);
    if (st == SB_OK && index->diff.count > 0)
        st = sb__payload_copy(reader, path, index, &index->diff, 0, index->diff.count, dtype,
                              load->diff.ptr, err);
    return st == SB_OK ? end_values(reader, err) : st;
}

/* Returns whether the copy of values may fail. The progress callback may cancel the copy. The
   source may change or fail. An integer dtype may be unable to represent a value. */
static bool may_fail(const sb_blob *blob, const struct sb__reader *reader) {
    return reader->progress || sb__source_may_change(reader->source) ||
           sb__is_integer(sb_blob_dtype(blob));
}

sb_status sb__read_blob(sb_blob *blob, struct sb__reader *reader, const struct sb__path *path,
                        uint32_t begin, uint32_t end, const struct sb__read_blob *how,
                        sb_error *err) {
    struct sb__blob_index index;
    struct sb__shape shape;
    struct sb__load load;
    sb_status st = sb__blob_index(reader, path, begin, end, how->limits, &index, err);
    if (st != SB_OK)
        return st;
    const struct sb__path names = sb__blob_index_path(&index, path);
    if (how->is_whole)
        st = sb__blob_index_check_source(&index, reader->source, err);
    if (st == SB_OK)
        st = target_shape(blob, &index, how->reshape, path, &shape, err);
    if (st == SB_OK)
        st = sb__blob_index_check(&index, path, true, err);
    if (st == SB_OK && sb_blob_dtype(blob) == SB_DTYPE_F16) {
        st = check_halves(&names, &index.data, err);
        if (st == SB_OK)
            st = check_halves(&names, &index.diff, err);
    }
    if (st == SB_OK)
        st = check_memory(blob, &index, path, how, err);
    if (st == SB_OK)
        st = sb__load_begin(&load, blob, &shape, index.diff.count > 0, may_fail(blob, reader), err);
    if (st != SB_OK)
        return st;
    st = copy_payload(blob, reader, &names, &index, &load, err);
    if (st == SB_OK)
        sb__load_commit(&load);
    else
        sb__load_cancel(&load);
    return st;
}

sb_status sb__read_values(struct sb__reader *reader, const struct sb__path *path, uint32_t begin,
                          uint32_t end, const sb_limits *limits, const struct sb__values *wanted,
                          void *out, sb_error *err) {
    struct sb__blob_index index;
    sb_status st = sb__blob_index(reader, path, begin, end, limits, &index, err);
    if (st != SB_OK)
        return st;
    const struct sb__path names = sb__blob_index_path(&index, path);
    const struct sb__payload *payload = wanted->part == SB_DATA ? &index.data : &index.diff;
    st = sb__payload_check(&index, &names, payload, err);
    if (st != SB_OK)
        return st;
    if (wanted->count > payload->count - wanted->first)
        return sb__fail(err, SB_ERR_INDEX_OUT_OF_RANGE,
                        "values %lld to %lld were requested of %lld", (long long)wanted->first,
                        (long long)(wanted->first + wanted->count), (long long)payload->count);
    if (wanted->dtype == SB_DTYPE_F16)
        st = check_halves(&names, payload, err);
    begin_values(reader, &index);
    if (st == SB_OK)
        st = sb__payload_copy(reader, &names, &index, payload, wanted->first, wanted->count,
                              wanted->dtype, out, err);
    return st == SB_OK ? end_values(reader, err) : st;
}
