#include "wire/wire.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_VARINT_BYTES 10
#define MAX_FIELD_NUMBER ((1u << 29) - 1)
#define WATCHED_BYTES    (1u << 20)

/* --- errors --------------------------------------------------------------- */

struct text {
    char bytes[128];
    size_t used;
};

static void append(struct text *text, const char *format, ...) SB__PRINTF(2, 3);

static void append(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const size_t left = sizeof text->bytes - text->used;
    const int n = vsnprintf(text->bytes + text->used, left, format, args);
    va_end(args);
    text->used += (size_t)n < left ? (size_t)n : left - 1;
}

const char *sb__field_name(const struct sb__field_name *fields, uint32_t number) {
    for (; fields->number != 0; fields++)
        if (fields->number == number)
            return fields->name;
    return NULL;
}

static void append_path(struct text *text, const struct sb__path *path) {
    if (!path->parent)
        return;
    append_path(text, path->parent);
    append(text, text->used ? ".%s" : "%s", path->name);
    if (path->index >= 0)
        append(text, "[%lld]", (long long)path->index);
}

static void append_field(struct text *text, const struct sb__path *path, uint32_t field) {
    if (field == 0)
        return;
    const char *name = sb__field_name(path->fields, field);
    if (text->used)
        append(text, ".");
    if (name)
        append(text, "%s", name);
    else
        append(text, "field %u", field);
}

sb_status sb__wire_fail(const struct sb__path *path, uint32_t field, sb_status status,
                        uint32_t offset, sb_error *err, const char *format, ...) {
    struct text where = {.used = 0};
    char what[sizeof where.bytes];
    va_list args;
    append_path(&where, path);
    append_field(&where, path, field);
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return sb__fail_at(err, status, offset, "%s%s%s at offset %u", where.bytes,
                       where.used ? ": " : "", what, offset);
}

static sb_status fail_missing(const struct sb__path *path, uint32_t field, uint32_t at,
                              uint64_t missing, sb_error *err) {
    return sb__wire_fail(path, field, SB_ERR_MALFORMED, at, err, "%llu byte%s missing",
                         (unsigned long long)missing, missing == 1 ? " is" : "s are");
}

/* --- bytes ------------------------------------------------------------------ */

void sb__reader_init(struct sb__reader *reader, const struct sb__source *source) {
    reader->source = source;
    reader->bytes = source->bytes ? source->bytes : reader->window;
    reader->begin = 0;
    reader->end = source->bytes ? source->size : 0;
    reader->at = 0;
    reader->progress = NULL;
}

void sb__reader_watch(struct sb__reader *reader, struct sb__progress *progress) {
    reader->progress = progress;
    if (progress)
        reader->begin = reader->end = 0; /* so that bytes in memory are also read in pieces */
}

static bool in_window(const struct sb__reader *reader, uint32_t offset, size_t size) {
    return offset >= reader->begin && offset <= reader->end && size <= reader->end - offset;
}

/* Sets reader->bytes to a window that has the `size` bytes at reader->at. */
static sb_status fetch(struct sb__reader *reader, uint32_t size, sb_error *err) {
    if (in_window(reader, reader->at, size))
        return SB_OK;
    const unsigned char *bytes = reader->source->bytes;
    uint32_t left = reader->source->size - reader->at;
    uint32_t n = left < SB__WINDOW_BYTES ? left : SB__WINDOW_BYTES;
    sb_status st = SB_OK;
    reader->begin = reader->end = 0;
    if (bytes)
        reader->bytes = bytes + reader->at;
    else
        st = sb__source_read(reader->source, reader->at, reader->window, n, err);
    if (st != SB_OK)
        return st;
    reader->begin = reader->at;
    reader->end = reader->at + n;
    return sb__progress_walked(reader->progress, reader->end, n, err);
}

/* Reads in pieces, to report progress. */
static sb_status read_watched(const struct sb__reader *reader, uint32_t offset, unsigned char *dst,
                              size_t size, sb_error *err) {
    sb_status st = SB_OK;
    while (st == SB_OK && size > 0) {
        uint32_t n = size < WATCHED_BYTES ? (uint32_t)size : WATCHED_BYTES;
        st = sb__source_read(reader->source, offset, dst, n, err);
        offset += n;
        dst += n;
        size -= n;
        if (st == SB_OK)
            st = sb__progress_walked(reader->progress, offset, n, err);
    }
    return st;
}

const unsigned char *sb__reader_peek(const struct sb__reader *reader, uint32_t offset,
                                     size_t size) {
    return in_window(reader, offset, size) ? reader->bytes + (offset - reader->begin) : NULL;
}

sb_status sb__reader_copy(const struct sb__reader *reader, uint32_t offset, void *dst, size_t size,
                          sb_error *err) {
    const unsigned char *bytes = sb__reader_peek(reader, offset, size);
    if (!bytes)
        return reader->progress ? read_watched(reader, offset, dst, size, err)
                                : sb__source_read(reader->source, offset, dst, size, err);
    if (size > 0)
        memcpy(dst, bytes, size);
    return SB_OK;
}

/* --- values ------------------------------------------------------------------- */

__attribute__((noinline)) static sb_status long_varint(struct sb__reader *reader,
                                                       const struct sb__path *path, uint32_t end,
                                                       uint32_t field, uint64_t *out,
                                                       sb_error *err) {
    uint64_t value = 0;
    unsigned char byte = 0;
    for (unsigned i = 0; i < MAX_VARINT_BYTES; i++) {
        if (reader->at == end)
            return fail_missing(path, field, end, 1, err);
        sb_status st = fetch(reader, 1, err);
        if (st != SB_OK)
            return st;
        byte = reader->bytes[reader->at++ - reader->begin];
        if (i == MAX_VARINT_BYTES - 1 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = value;
            return SB_OK;
        }
    }
    return sb__wire_fail(path, field, SB_ERR_MALFORMED, reader->at - MAX_VARINT_BYTES, err,
                         byte < 0x80 ? "the number has bits beyond 64; it begins"
                                     : "a number of more than 10 bytes begins");
}

/* The fast path for a varint of one byte in the window. Returns false for other varints. */
static bool one_byte(struct sb__reader *reader, uint32_t end, uint64_t *out) {
    if (reader->at >= end || !in_window(reader, reader->at, 1))
        return false;
    unsigned char byte = reader->bytes[reader->at - reader->begin];
    if (byte >= 0x80)
        return false;
    reader->at++;
    *out = byte;
    return true;
}

sb_status sb__wire_varint(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                          uint32_t field, uint64_t *out, sb_error *err) {
    return one_byte(reader, end, out) ? SB_OK : long_varint(reader, path, end, field, out, err);
}

static sb_status read_tag(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                          struct sb__field *field, sb_error *err) {
    uint64_t tag = 0; /* initialised, because analysers do not see that SB_OK implies a tag */
    field->offset = reader->at;
    sb_status st = sb__wire_varint(reader, path, end, 0, &tag, err);
    if (st != SB_OK)
        return st;
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_NUMBER)
        return sb__wire_fail(path, 0, SB_ERR_MALFORMED, field->offset, err,
                             "the field number %llu is invalid", (unsigned long long)(tag >> 3));
    field->number = (uint32_t)(tag >> 3);
    field->type = (uint32_t)(tag & 7);
    field->value = 0;
    return SB_OK;
}

static sb_status read_fixed(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                            struct sb__field *field, uint32_t size, sb_error *err) {
    field->begin = reader->at;
    if (size > end - field->begin)
        return fail_missing(path, field->number, end, size - (end - field->begin), err);
    sb_status st = fetch(reader, size, err);
    if (st != SB_OK)
        return st;
    const unsigned char *p = reader->bytes + (field->begin - reader->begin);
    for (unsigned i = 0; i < size; i++)
        field->value |= (uint64_t)p[i] << (8 * i);
    reader->at = field->end = field->begin + size;
    return SB_OK;
}

static sb_status read_length(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                             struct sb__field *field, sb_error *err) {
    uint64_t length = 0;
    sb_status st = sb__wire_varint(reader, path, end, field->number, &length, err);
    if (st != SB_OK)
        return st;
    field->begin = reader->at;
    if (length > end - field->begin)
        return fail_missing(path, field->number, end, length - (end - field->begin), err);
    reader->at = field->end = field->begin + (uint32_t)length;
    return SB_OK;
}

static sb_status read_value(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                            struct sb__field *field, sb_error *err) {
    sb_status st;
    switch (field->type) {
    case SB__WIRE_VARINT:
        field->begin = reader->at;
        st = sb__wire_varint(reader, path, end, field->number, &field->value, err);
        field->end = reader->at;
        return st;
    case SB__WIRE_FIXED64:
        return read_fixed(reader, path, end, field, 8, err);
    case SB__WIRE_BYTES:
        return read_length(reader, path, end, field, err);
    case SB__WIRE_FIXED32:
        return read_fixed(reader, path, end, field, 4, err);
    default:
        return sb__wire_fail(path, field->number, SB_ERR_MALFORMED, field->offset, err,
                             "wire type %u is unknown; the field begins", field->type);
    }
}

static sb_status fail_group_end(const struct sb__path *path, const struct sb__field *field,
                                sb_error *err) {
    return sb__wire_fail(path, field->number, SB_ERR_MALFORMED, field->offset, err,
                         "an unmatched group end tag");
}

/* Skips the group `outer`, whose begin tag was read. */
static sb_status skip_group(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                            struct sb__field *outer, sb_error *err) {
    uint32_t open[SB__MAX_GROUP_DEPTH];
    size_t depth = 0;
    struct sb__field field = *outer;
    outer->begin = reader->at;
    for (;;) {
        if (field.type == SB__WIRE_GROUP_BEGIN) {
            if (depth == SB__MAX_GROUP_DEPTH)
                return sb__wire_fail(path, outer->number, SB_ERR_DATA_LIMIT, field.offset, err,
                                     "groups nest deeper than %d", SB__MAX_GROUP_DEPTH);
            open[depth++] = field.number;
        } else if (field.type == SB__WIRE_GROUP_END) {
            /* `open` is not empty, because the first field began a group.
               NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
            if (field.number != open[depth - 1])
                return fail_group_end(path, &field, err);
            if (--depth == 0)
                break;
        } else {
            sb_status st = read_value(reader, path, end, &field, err);
            if (st != SB_OK)
                return st;
        }
        sb_status st = read_tag(reader, path, end, &field, err);
        if (st != SB_OK)
            return st;
    }
    outer->end = reader->at;
    return SB_OK;
}

/* The fast path for a tag of one or two bytes and a number or length of one byte, all in the
   window. Returns false for other or malformed fields. */
static bool short_field(struct sb__reader *reader, uint32_t end, struct sb__field *field) {
    const uint32_t at = reader->at;
    if (end - at < 3 || !in_window(reader, at, 3)) /* same: the slow path works */
        return false;
    const unsigned char *bytes = reader->bytes + (at - reader->begin);
    uint32_t tag = bytes[0], value = bytes[1], behind = at + 2;
    if (tag >= 0x80) {
        tag = (tag & 0x7f) | value << 7; /* same: the slow path works */
        value = bytes[2];
        behind++;
    }
    const uint32_t type = tag & 7;                 /* same: the slow path works */
    if (tag < 8 || tag >= 0x4000 || value >= 0x80) /* same: the slow path works */
        return false;
    if (type == SB__WIRE_VARINT) { /* same: the slow path works */
        field->begin = behind - 1;
        field->end = behind;
        field->value = value;
    } else if (type == SB__WIRE_BYTES && value <= end - behind) { /* same: the slow path works */
        field->begin = behind;
        field->end = behind + value;
        field->value = 0;
    } else {
        return false;
    }
    field->number = tag >> 3;
    field->type = type;
    field->offset = at;
    reader->at = field->end;
    return true;
}

/* Not inlined: keeps the fast path's stack frame small. */
__attribute__((noinline)) static sb_status any_field(struct sb__reader *reader,
                                                     const struct sb__path *path, uint32_t end,
                                                     struct sb__field *field, sb_error *err) {
    sb_status st = read_tag(reader, path, end, field, err);
    if (st != SB_OK)
        return st;
    if (field->type == SB__WIRE_GROUP_BEGIN)
        return skip_group(reader, path, end, field, err);
    if (field->type == SB__WIRE_GROUP_END)
        return fail_group_end(path, field, err);
    return read_value(reader, path, end, field, err);
}

sb_status sb__wire_next(struct sb__reader *reader, const struct sb__path *path, uint32_t end,
                        struct sb__field *field, sb_error *err) {
    reader->at = field->end;
    field->number = 0;
    if (reader->at >= end || short_field(reader, end, field))
        return SB_OK;
    return any_field(reader, path, end, field, err);
}
