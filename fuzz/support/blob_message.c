#include "blob_message.h"

#include <string.h>

#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static const int32_t fields[4] = {5, 6, 8, 9};

static void put(struct message_bytes *out, const void *bytes, size_t size) {
    fuzz_check(size <= MESSAGE_MAX - out->size, "the harness writes too long a message");
    if (size)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void put_varint(struct message_bytes *out, uint64_t value) {
    unsigned char byte;
    do {
        byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(out, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_tag(struct message_bytes *out, int32_t field, int32_t wire_type) {
    put_varint(out, (uint64_t)field << 3 | (uint64_t)wire_type);
}

static void put_bytes(struct message_bytes *out, int32_t field, const struct message_bytes *value) {
    put_tag(out, field, 2);
    put_varint(out, value->size);
    put(out, value->bytes, value->size);
}

void message_encode_shape(const struct plain_shape *shape, bool unpacked, bool cut,
                          struct message_bytes *out) {
    struct message_bytes dims;
    out->size = dims.size = 0;
    for (int32_t i = 0; i < shape->num_axes; i++) {
        if (unpacked)
            put_tag(out, 1, 0);
        put_varint(unpacked ? out : &dims, (uint64_t)shape->dims[i]);
    }
    if (dims.size)
        put_bytes(out, 1, &dims);
    if (cut && out->size)
        out->size--;
}

static double value_of(const struct blob_message *message, int slot, int64_t i) {
    return (double)(((int64_t)message->seed * 13 + (int64_t)slot * 31 + i * 5) % 199 - 99);
}

/* The wire is little-endian. */
static void put_element(struct message_bytes *out, const void *element, size_t width) {
    const unsigned char *bytes = element;
    for (size_t i = 0; i < width; i++)
        put(out, bytes + (BIG_ENDIAN_HOST ? width - 1 - i : i), 1);
}

static void put_value(struct message_bytes *out, int slot, double value) {
    const float narrow = (float)value;
    if (slot < 2)
        put_element(out, &narrow, sizeof narrow);
    else
        put_element(out, &value, sizeof value);
}

static void put_payload(struct message_bytes *out, const struct blob_message *message, int slot) {
    struct message_bytes values;
    values.size = 0;
    for (int64_t i = 0; i < message->counts[slot]; i++) {
        if (message->unpacked)
            put_tag(out, fields[slot], slot < 2 ? 5 : 1);
        put_value(message->unpacked ? out : &values, slot, value_of(message, slot, i));
    }
    if (values.size)
        put_bytes(out, fields[slot], &values);
}

void message_encode(const struct blob_message *message, struct message_bytes *out) {
    struct message_bytes shape;
    out->size = 0;
    for (int i = 0; i < 4; i++)
        if (message->legacy & 1u << i) {
            put_tag(out, i + 1, 0);
            put_varint(out, (uint64_t)message->legacy_dims[i]);
        }
    for (int slot = 0; slot < 4; slot++)
        put_payload(out, message, slot);
    if (message->has_shape) {
        message_encode_shape(&message->shape, message->unpacked, false, &shape);
        put_bytes(out, 7, &shape);
    }
    if (message->cut && out->size)
        out->size--;
}

/* --- what reading gives ------------------------------------------------------------ */

sb_status message_shape_status(struct plain_shape *shape) {
    switch (plain_shape_check(shape, sizeof(float))) {
    case SB_OK:
        return SB_OK;
    case SB_ERR_SIZE_OVERFLOW:
        return SB_ERR_DATA_OVERFLOW;
    default:
        return SB_ERR_BAD_SHAPE;
    }
}

sb_status message_judge(const struct blob_message *message, struct plain_shape *out) {
    *out = (struct plain_shape){.num_axes = 0, .count = 1};
    if (message->legacy == 0) {
        if (message->has_shape)
            *out = message->shape;
        return message_shape_status(out);
    }
    out->num_axes = 4;
    for (int i = 0; i < 4; i++) {
        out->dims[i] = message->legacy & 1u << i ? message->legacy_dims[i] : 0;
        if (out->dims[i] < 0)
            return SB_ERR_BAD_SHAPE;
        if (out->dims[i] > INT32_MAX)
            return SB_ERR_DATA_OVERFLOW;
    }
    return message_shape_status(out);
}

bool message_shape_is(const struct blob_message *message, const struct plain_shape *judged,
                      const struct plain_blob *blob) {
    struct plain_shape ours = plain_shape_of(blob);
    if (message->legacy && ours.num_axes >= 0 && ours.num_axes <= 4) { /* ones in front */
        int32_t missing = 4 - ours.num_axes;
        for (int32_t i = 3; i >= 0; i--)
            ours.dims[i] = i < missing ? 1 : ours.dims[i - missing];
        ours.num_axes = 4;
    }
    if (ours.num_axes != judged->num_axes)
        return false;
    for (int32_t i = 0; i < ours.num_axes; i++)
        if (ours.dims[i] != judged->dims[i])
            return false;
    return true;
}

static int slot_of(const struct blob_message *message, int which) {
    return message->counts[which + 2] > 0 ? which + 2 : which;
}

int64_t message_count(const struct blob_message *message, int which) {
    return message->counts[slot_of(message, which)];
}

void message_values(const struct blob_message *message, int which, int32_t dtype,
                    unsigned char *out) {
    int slot = slot_of(message, which);
    for (int64_t i = 0; i < message->counts[slot]; i++) {
        double wide = value_of(message, slot, i);
        float narrow = (float)wide;
        int32_t whole = (int32_t)wide;
        int8_t small = (int8_t)wide; /* all values fit */
        if (dtype == SB_DTYPE_F32)
            memcpy(out + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
        else if (dtype == SB_DTYPE_I32)
            memcpy(out + (size_t)i * sizeof whole, &whole, sizeof whole);
        else if (dtype == SB_DTYPE_I8)
            memcpy(out + (size_t)i * sizeof small, &small, sizeof small);
        else
            memcpy(out + (size_t)i * sizeof wide, &wide, sizeof wide);
    }
}

/* --- what writing gives ------------------------------------------------------------ */

/* A scalar has no shape field; a blob that was never shaped is written as one empty axis. */
static void put_shape(struct message_bytes *out, const struct plain_blob *blob) {
    struct plain_shape shape = plain_shape_of(blob);
    struct message_bytes bytes;
    if (shape.num_axes == 0)
        return;
    if (shape.num_axes < 0)
        shape = (struct plain_shape){.num_axes = 1};
    message_encode_shape(&shape, false, false, &bytes);
    put_bytes(out, 7, &bytes);
}

static void put_memory(struct message_bytes *out, const struct plain_blob *blob, int which) {
    const size_t width = sb_dtype_size(blob->dtype);
    struct message_bytes values;
    values.size = 0;
    for (size_t at = 0; at < plain_bytes(blob); at += width)
        put_element(&values, blob->memory[which]->value + at, width);
    if (values.size == 0)
        return;
    put_bytes(out, fields[which + (blob->dtype == SB_DTYPE_F64 ? 2 : 0)], &values);
}

void message_of_blob(const struct plain_blob *blob, bool with_diff, struct message_bytes *out) {
    out->size = 0;
    if (blob->dtype == SB_DTYPE_F64)
        put_shape(out, blob);
    put_memory(out, blob, DATA);
    if (with_diff)
        put_memory(out, blob, DIFF);
    if (blob->dtype == SB_DTYPE_F32)
        put_shape(out, blob);
}

size_t message_size_of_blob(const struct plain_blob *blob, bool with_diff) {
    struct message_bytes out;
    size_t bytes = plain_bytes(blob);
    out.size = 0;
    put_shape(&out, blob);
    if (bytes == 0)
        return out.size;
    size_t shape = out.size;
    put_tag(&out, fields[0], 2);
    put_varint(&out, bytes);
    return shape + (with_diff ? 2 : 1) * (out.size - shape + bytes);
}
