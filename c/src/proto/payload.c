#include "proto/payload.h"

#include "base/dtype.h"
#include "base/half.h"
#include "host/convert.h"

#include <string.h>

#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define CHUNK_BYTES     4096

typedef size_t whole_fn(const double *src, unsigned char *dst, size_t count);

struct copy {
    struct sb__reader *reader;
    const struct sb__path *path;
    const struct sb__payload *payload;
    int32_t dtype;
    size_t wire_size, size; /* bytes of a stored value, and of a value in memory */
    sb__convert *convert;   /* NULL if the values need no conversion */
    whole_fn *whole;        /* for an integer `dtype`: converts the doubles that `convert` makes */
    unsigned char *begin, *dst;
    int64_t first;      /* the first requested value */
    int64_t skip, left; /* numbers of values still to skip, and then to copy */
    int64_t present;    /* number of values in the message's remaining fields */
    sb_error *err;
};

/* Swaps the bytes of each value on a big-endian host, because messages are little-endian. */
static void to_host_order(unsigned char *bytes, size_t count, size_t size) {
    if (!BIG_ENDIAN_HOST)
        return;
    for (unsigned char *value = bytes; count > 0; count--, value += size) { /* same: no swap */
        for (size_t i = 0; i < size / 2; i++) {                             /* same: no swap */
            unsigned char swapped = value[i];
            value[i] = value[size - 1 - i]; /* same: no swap */
            value[size - 1 - i] = swapped;  /* same: no swap */
        }
    }
}

/* --- conversions ---------------------------------------------------------------------- */

#define DEFINE_CONVERT(name, from, to, of)                                                         \
    static void name(const unsigned char *src, unsigned char *dst, size_t count) {                 \
        for (size_t i = 0; i < count; i++) {                                                       \
            from stored;                                                                           \
            memcpy(&stored, src + i * sizeof stored, sizeof stored);                               \
            to value = (to)of(stored);                                                             \
            memcpy(dst + i * sizeof value, &value, sizeof value);                                  \
        }                                                                                          \
    }

DEFINE_CONVERT(half_to_float, uint16_t, float, sb__float_of_f16)
DEFINE_CONVERT(half_to_double, uint16_t, double, sb__float_of_f16)
DEFINE_CONVERT(int_to_float, int32_t, float, )
DEFINE_CONVERT(int_to_double, int32_t, double, )
DEFINE_CONVERT(unsigned_to_float, uint32_t, float, )
DEFINE_CONVERT(unsigned_to_double, uint32_t, double, )
DEFINE_CONVERT(double_to_double, double, double, )

/* Indexed by the stored dtype. double_to_double is used only for integer targets. */
static const struct {
    sb__convert *to_float, *to_double;
} conversions[] = {
    [SB_DTYPE_F32] = {NULL, sb__widen},
    [SB_DTYPE_F64] = {sb__narrow, double_to_double},
    [SB_DTYPE_F16] = {half_to_float, half_to_double},
    [SB_DTYPE_I32] = {int_to_float, int_to_double},
    [SB_DTYPE_U32] = {unsigned_to_float, unsigned_to_double},
};

/* Returns NULL if the values need no conversion. For an integer `dtype`, returns the conversion to
   double. */
static sb__convert *conversion(int32_t stored, int32_t dtype) {
    if (sb__is_integer(dtype))
        return conversions[stored].to_double;
    if (stored == dtype)
        return NULL;
    return dtype == SB_DTYPE_F64 ? conversions[stored].to_double : conversions[stored].to_float;
}

/* Defines functions that convert values to integers and return the number of converted values. The
   functions stop at the first value that the type cannot hold. Such a value is a fraction, beyond
   the type's range, or NaN. `above` is a power of 2, which double represents exactly, unlike
   INT64_MAX. */
#define DEFINE_WHOLE(NAME, number, name, type, kind, with)                                         \
    static size_t whole_to_##name(const double *src, unsigned char *dst, size_t count) {           \
        const bool has_sign = (type)-1 < (type)1;                                                  \
        const double half = (double)(UINT64_C(1) << (8 * sizeof(type) - 1));                       \
        const double above = half * (2 - has_sign), least = -half * has_sign;                      \
        size_t i = 0;                                                                              \
        for (; i < count && src[i] >= least && src[i] < above; i++) {                              \
            const type value = (type)src[i];                                                       \
            if ((double)value != src[i])                                                           \
                break;                                                                             \
            memcpy(dst + i * sizeof value, &value, sizeof value);                                  \
        }                                                                                          \
        return i;                                                                                  \
    }

SB_DTYPE_INTEGER_LIST(DEFINE_WHOLE, )

/* Returns NULL if `dtype` is not an integer type. */
static whole_fn *whole_of(int32_t dtype) {
    switch (dtype) {
#define CASE(NAME, number, name, type, kind, with)                                                 \
    case SB_DTYPE_##NAME:                                                                          \
        return whole_to_##name;
        SB_DTYPE_INTEGER_LIST(CASE, )
#undef CASE
    }
    return NULL;
}

/* --- copies ----------------------------------------------------------------------------- */

/* Converts a chunk to integers through double, which represents every stored value exactly. */
static sb_status whole(struct copy *copy, const unsigned char *chunk, uint32_t offset,
                       size_t count) {
    double wide[CHUNK_BYTES / sizeof(double)];
    copy->convert(chunk, (unsigned char *)wide, count);
    const size_t fit = copy->whole(wide, copy->dst, count);
    if (fit == count)
        return SB_OK;
    const size_t copied = (size_t)(copy->dst - copy->begin) / copy->size + fit;
    const int64_t element = copy->first + (int64_t)copied;
    const int digits = copy->wire_size == sizeof(double) ? 17 : 10;
    return sb__wire_fail(copy->path, copy->payload->field, SB_ERR_DATA_OVERFLOW,
                         offset + (uint32_t)(fit * copy->wire_size), copy->err,
                         "element %lld is %.*g, which %s does not hold", (long long)element, digits,
                         wide[fit], sb_dtype_name(copy->dtype));
}

/* Converts the stored bytes without copying them first. Returns false if a copy is needed. */
static bool convert_in_place(struct copy *copy, uint32_t offset, size_t count) {
    const unsigned char *bytes = NULL;
    if (!BIG_ENDIAN_HOST && !copy->whole)
        bytes = sb__reader_peek(copy->reader, offset, count * copy->wire_size);
    if (!bytes)
        return false;
    copy->convert(bytes, copy->dst, count);
    copy->dst += count * copy->size;
    return true;
}

static sb_status convert(struct copy *copy, uint32_t offset, size_t count) {
    unsigned char chunk[CHUNK_BYTES];
    const size_t room = CHUNK_BYTES / (copy->whole ? sizeof(double) : copy->wire_size);
    while (count > 0) {
        size_t n = room < count ? room : count;
        size_t bytes = n * copy->wire_size;
        sb_status st = sb__reader_copy(copy->reader, offset, chunk, bytes, copy->err);
        if (st != SB_OK)
            return st;
        to_host_order(chunk, n, copy->wire_size);
        if (copy->whole)
            st = whole(copy, chunk, offset, n);
        else
            copy->convert(chunk, copy->dst, n);
        if (st != SB_OK)
            return st;
        copy->dst += n * copy->size;
        offset += (uint32_t)bytes;
        count -= n;
    }
    return SB_OK;
}

static sb_status copy_values(struct copy *copy, uint32_t offset, size_t count) {
    if (copy->convert)
        return convert_in_place(copy, offset, count) ? SB_OK : convert(copy, offset, count);
    sb_status st = sb__reader_copy(copy->reader, offset, copy->dst, count * copy->size, copy->err);
    if (st != SB_OK)
        return st;
    to_host_order(copy->dst, count, copy->size);
    copy->dst += count * copy->size;
    return SB_OK;
}

static bool is_part(const struct sb__payload *payload, const struct sb__field *field) {
    if (field->number != payload->field)
        return false;
    const uint32_t single = payload->dtype == SB_DTYPE_F64 ? SB__WIRE_FIXED64 : SB__WIRE_FIXED32;
    return field->type == SB__WIRE_BYTES || field->type == single;
}

/* Copies the requested values of a field. Checks the field's number of values, because the source
   may have changed since it was indexed. */
static sb_status copy_field(struct copy *copy, const struct sb__field *field) {
    if (!is_part(copy->payload, field))
        return SB_OK;
    int64_t count = (int64_t)((field->end - field->begin) / copy->wire_size);
    if (count > copy->present)
        return sb__source_changed(copy->err);
    copy->present -= count;
    const int64_t skipped = copy->skip < count ? copy->skip : count;
    copy->skip -= skipped;
    count = copy->left < count - skipped ? copy->left : count - skipped;
    copy->left -= count;
    if (count == 0) /* a source is never asked for 0 bytes */
        return SB_OK;
    return copy_values(copy, field->begin + (uint32_t)skipped * (uint32_t)copy->wire_size,
                       (size_t)count);
}

sb_status sb__payload_copy(struct sb__reader *reader, const struct sb__path *path,
                           const struct sb__blob_index *index, const struct sb__payload *payload,
                           int64_t first, int64_t count, int32_t dtype, void *dst, sb_error *err) {
    struct copy copy = {.reader = reader,
                        .path = path,
                        .payload = payload,
                        .dtype = dtype,
                        .wire_size = sb_dtype_size(payload->dtype),
                        .size = sb_dtype_size(dtype),
                        .convert = conversion(payload->dtype, dtype),
                        .whole = whole_of(dtype),
                        .begin = dst,
                        .dst = dst,
                        .first = first,
                        .skip = first,
                        .left = count,
                        .present = payload->count,
                        .err = err};
    struct sb__field field = {.end = payload->offset};
    sb_status st = SB_OK;
    while (copy.left > 0 && /* the fields after the range have been checked by sb__blob_index */
           (st = sb__wire_next(reader, path, index->end, &field, err)) == SB_OK &&
           field.number != 0) {
        st = copy_field(&copy, &field);
        if (st != SB_OK)
            return st;
    }
    if (st == SB_OK && copy.left > 0)
        return sb__source_changed(err);
    return st;
}
