#include "blob_message.h"

#include <string.h>

static const uint32_t fields[4] = {5, 6, 8, 9};

void message_encode_shape(const struct plain_shape *shape, bool unpacked, bool cut,
                          struct wire *out) {
    if (unpacked)
        for (int32_t i = 0; i < shape->num_axes; i++)
            wire_number(out, 1, (uint64_t)shape->dims[i]);
    else if (shape->num_axes > 0)
        wire_numbers(out, 1, shape->dims, (size_t)shape->num_axes);
    if (cut && out->size)
        out->size--;
}

static double value_of(const struct blob_message *message, int slot, int64_t i) {
    return (double)(((int64_t)message->seed * 13 + (int64_t)slot * 31 + i * 5) % 199 - 99);
}

static void put_value(struct wire *out, int slot, double value) {
    const float narrow = (float)value;
    wire_value(out, slot < 2 ? (const void *)&narrow : &value,
               slot < 2 ? sizeof narrow : sizeof value);
}

static void put_payload(struct wire *out, const struct blob_message *message, int slot) {
    struct wire packed = {0};
    for (int64_t i = 0; i < message->counts[slot]; i++) {
        if (message->unpacked)
            wire_tag(out, fields[slot], slot < 2 ? 5 : 1);
        put_value(message->unpacked ? out : &packed, slot, value_of(message, slot, i));
    }
    if (packed.size)
        wire_message(out, fields[slot], &packed);
    wire_free(&packed);
}

void message_encode(const struct blob_message *message, struct wire *out) {
    struct wire shape = {0};
    for (uint32_t i = 0; i < 4; i++)
        if (message->legacy & 1u << i)
            wire_number(out, i + 1, (uint64_t)message->legacy_dims[i]);
    for (int slot = 0; slot < 4; slot++)
        put_payload(out, message, slot);
    message_encode_shape(&message->shape, message->unpacked, false, &shape);
    if (message->has_shape)
        wire_message(out, 7, &shape);
    wire_free(&shape);
    if (message->cut && out->size)
        out->size--;
}

/* --- results of reading ------------------------------------------------------------ */

sb_status message_shape_status(struct plain_shape *shape) {
    sb_status st = plain_shape_check(shape, sizeof(float));
    return st == SB_OK                  ? SB_OK
           : st == SB_ERR_SIZE_OVERFLOW ? SB_ERR_DATA_OVERFLOW
                                        : SB_ERR_BAD_SHAPE;
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
    int32_t axes = blob->num_axes;
    /* The number of leading dimensions that only the message has; these dimensions must be 1. */
    int32_t missing = message->legacy && axes >= 0 && axes <= 4 ? 4 - axes : 0;
    if (axes + missing != judged->num_axes)
        return false;
    for (int32_t i = 0; i < judged->num_axes; i++)
        if (judged->dims[i] != (i < missing ? 1 : blob->dims[i - missing]))
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
    for (int64_t i = 0; i < message->counts[slot]; i++)
        plain_put(out, (size_t)i, dtype, value_of(message, slot, i));
}

/* --- results of writing ------------------------------------------------------------ */

/* Writes no shape for a scalar, and one axis of size 0 for a blob that was never shaped. */
static void put_shape(struct wire *out, const struct plain_blob *blob) {
    struct plain_shape shape = plain_shape_of(blob);
    struct wire bytes = {0};
    if (shape.num_axes == 0)
        return;
    if (shape.num_axes < 0)
        shape = (struct plain_shape){.num_axes = 1};
    message_encode_shape(&shape, false, false, &bytes);
    wire_message(out, 7, &bytes);
    wire_free(&bytes);
}

static void put_memory(struct wire *out, const struct plain_blob *blob, int which) {
    if (plain_bytes(blob) > 0)
        wire_values(out, fields[which + (blob->dtype == SB_DTYPE_F64 ? 2 : 0)],
                    blob->memory[which]->value, sb_dtype_size(blob->dtype), plain_bytes(blob));
}

void message_of_blob(const struct plain_blob *blob, bool with_diff, struct wire *out) {
    if (blob->dtype == SB_DTYPE_F64)
        put_shape(out, blob);
    put_memory(out, blob, DATA);
    if (with_diff)
        put_memory(out, blob, DIFF);
    if (blob->dtype == SB_DTYPE_F32)
        put_shape(out, blob);
}

size_t message_size_of_blob(const struct plain_blob *blob, bool with_diff) {
    struct wire out = {0};
    size_t bytes = plain_bytes(blob);
    put_shape(&out, blob);
    size_t size = out.size;
    if (bytes > 0) {
        wire_tag(&out, fields[0], 2);
        wire_varint(&out, bytes);
        size += (with_diff ? 2 : 1) * (out.size - size + bytes);
    }
    wire_free(&out);
    return size;
}
