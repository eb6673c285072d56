#include "format/payload.h"

#include <string.h>

#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#define CHUNK_BYTES     4096

struct copy {
    struct sb__reader *reader;
    uint32_t field;
    size_t wire_size, size; /* of a value in the bytes and of one in memory */
    unsigned char *dst;
    int64_t left;
    sb_error *err;
};

/* The wire is little-endian. */
static void to_host_order(unsigned char *bytes, size_t count, size_t size) {
    if (!BIG_ENDIAN_HOST)
        return;
    for (unsigned char *value = bytes; count > 0; count--, value += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char swapped = value[i];
            value[i] = value[size - 1 - i];
            value[size - 1 - i] = swapped;
        }
    }
}

static void widen(const unsigned char *src, unsigned char *dst, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float narrow;
        memcpy(&narrow, src + i * sizeof narrow, sizeof narrow);
        double wide = (double)narrow;
        memcpy(dst + i * sizeof wide, &wide, sizeof wide);
    }
}

static void narrow(const unsigned char *src, unsigned char *dst, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double wide;
        memcpy(&wide, src + i * sizeof wide, sizeof wide);
        float rounded = (float)wide;
        memcpy(dst + i * sizeof rounded, &rounded, sizeof rounded);
    }
}

static sb_status convert(struct copy *copy, uint32_t offset, size_t count) {
    unsigned char chunk[CHUNK_BYTES];
    while (count > 0) {
        size_t n = CHUNK_BYTES / copy->wire_size < count ? CHUNK_BYTES / copy->wire_size : count;
        size_t bytes = n * copy->wire_size;
        sb_status st = sb__reader_copy(copy->reader, offset, chunk, bytes, copy->err);
        if (st != SB_OK)
            return st;
        to_host_order(chunk, n, copy->wire_size);
        if (copy->wire_size < copy->size)
            widen(chunk, copy->dst, n);
        else
            narrow(chunk, copy->dst, n);
        copy->dst += n * copy->size;
        offset += (uint32_t)bytes;
        count -= n;
    }
    return SB_OK;
}

static sb_status copy_values(struct copy *copy, uint32_t offset, size_t count) {
    if (copy->wire_size != copy->size)
        return convert(copy, offset, count);
    sb_status st = sb__reader_copy(copy->reader, offset, copy->dst, count * copy->size, copy->err);
    if (st != SB_OK)
        return st;
    to_host_order(copy->dst, count, copy->size);
    copy->dst += count * copy->size;
    return SB_OK;
}

/* Bytes that change under us may hold more values now: the bound is looked at each time. */
static sb_status copy_field(struct copy *copy, const struct sb__field *field) {
    uint32_t single = copy->wire_size == 4 ? SB__WIRE_FIXED32 : SB__WIRE_FIXED64;
    if (field->number != copy->field || (field->type != SB__WIRE_BYTES && field->type != single))
        return SB_OK;
    size_t count = (field->end - field->begin) / copy->wire_size;
    if ((int64_t)count > copy->left)
        return sb__source_changed(copy->err);
    copy->left -= (int64_t)count;
    return copy_values(copy, field->begin, count);
}

sb_status sb__payload_copy(struct sb__reader *reader, const struct sb__blob_index *index,
                           const struct sb__payload *payload, int32_t dtype, void *dst,
                           sb_error *err) {
    static const struct sb__path path = {NULL, "", -1, sb__blob_fields};
    struct copy copy = {reader,
                        payload->field,
                        sb__payload_size(payload->field),
                        sb_dtype_size(dtype),
                        dst,
                        payload->count,
                        err};
    struct sb__field field = {.end = index->begin};
    sb_status st = SB_OK;
    while (copy.left > 0 && /* what comes after the last value was checked before */
           (st = sb__wire_next(reader, &path, index->end, &field, err)) == SB_OK &&
           field.number != 0) {
        st = copy_field(&copy, &field);
        if (st != SB_OK)
            return st;
    }
    if (st == SB_OK && copy.left > 0)
        return sb__source_changed(err);
    return st;
}
