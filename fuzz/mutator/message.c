#include "message.h"

#include "base/draw.h"

#include <string.h>

size_t varint_read(const uint8_t *bytes, size_t size, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < size && i < 10; i++) {
        *out |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80)
            return i + 1;
    }
    return 0;
}

/* Returns the end of the value that begins at `at`; 0 if the value is malformed or incomplete. */
static size_t value_end(const uint8_t *bytes, size_t size, size_t at, struct field *field) {
    uint64_t value;
    size_t length = 0;
    field->value = at;
    switch (field->type) {
    case VARINT:
        length = varint_read(bytes + at, size - at, &value);
        return length ? at + length : 0;
    case FIXED64:
        return size - at >= 8 ? at + 8 : 0;
    case FIXED32:
        return size - at >= 4 ? at + 4 : 0;
    case BYTES:
        length = varint_read(bytes + at, size - at, &value);
        field->value = at + length;
        return length && value <= size - field->value ? field->value + (size_t)value : 0;
    default:
        return at; /* the start or end tag of a group has no value */
    }
}

/* Parses a field, or the start tag of a group; returns its end, or 0 on failure. */
static size_t parse_one(const uint8_t *bytes, size_t size, size_t at, struct field *field) {
    uint64_t tag;
    size_t length = varint_read(bytes + at, size - at, &tag);
    if (length == 0 || tag >> 3 == 0 || tag > UINT32_MAX || (tag & 7) > FIXED32)
        return 0;
    field->begin = at;
    field->number = (uint32_t)(tag >> 3);
    field->type = (unsigned)(tag & 7);
    return field->end = value_end(bytes, size, at + length, field);
}

/* Returns the end of the group whose start tag ends at `at`, or 0 if no end tag follows. */
static size_t group_end(const uint8_t *bytes, size_t size, size_t at) {
    struct field inside;
    for (size_t depth = 1; at < size;) {
        at = parse_one(bytes, size, at, &inside);
        if (at == 0)
            return 0;
        if (inside.type == GROUP)
            depth++;
        else if (inside.type == END_GROUP && --depth == 0)
            return at;
    }
    return 0;
}

/* Parses a field, which may be a whole group; returns its end, or 0 on failure. */
static size_t parse_field(const uint8_t *bytes, size_t size, size_t at, struct field *field) {
    size_t end = parse_one(bytes, size, at, field);
    if (end != 0 && field->type == GROUP)
        field->end = end = group_end(bytes, size, end);
    return end == 0 || field->type == END_GROUP ? 0 : end;
}

void message_parse(struct message *message, const uint8_t *bytes, size_t size) {
    message->bytes = bytes;
    message->size = size;
    message->count = message->tail = 0;
    while (message->tail < size && message->count < MAX_FIELDS) {
        size_t end = parse_field(bytes, size, message->tail, &message->fields[message->count]);
        if (end == 0)
            return;
        message->tail = end;
        message->count++;
    }
}

size_t message_begin(const struct message *message, size_t field) {
    return field < message->count ? message->fields[field].begin : message->tail;
}

bool message_is_whole(const uint8_t *bytes, size_t size) {
    struct field field;
    for (size_t at = 0; at < size;) {
        at = parse_field(bytes, size, at, &field);
        if (at == 0)
            return false;
    }
    return size > 0;
}

void put_bytes(struct buffer *out, const void *bytes, size_t size) {
    if (size > out->room - out->size) {
        out->full = true;
        return;
    }
    if (size > 0)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

void put_varint(struct buffer *out, uint64_t value, size_t length) {
    uint8_t bytes[16];
    size_t used = 0;
    while (value > 0x7f || (used + 1 < length && used + 1 < sizeof bytes)) {
        bytes[used++] = (uint8_t)(value & 0x7f) | 0x80;
        value >>= 7;
    }
    bytes[used++] = (uint8_t)value;
    put_bytes(out, bytes, used);
}

void put_tag(struct buffer *out, uint32_t number, unsigned type) {
    put_varint(out, (uint64_t)number << 3 | type, 0);
}

void put_length_field(struct buffer *out, uint32_t number, const void *bytes, size_t size) {
    put_tag(out, number, BYTES);
    put_varint(out, size, 0);
    put_bytes(out, bytes, size);
}

void put_before(const struct message *message, size_t field, struct buffer *out) {
    put_bytes(out, message->bytes, message_begin(message, field));
}

void put_from(const struct message *message, size_t field, struct buffer *out) {
    size_t begin = message_begin(message, field);
    put_bytes(out, message->bytes + begin, message->size - begin);
}

size_t below(uint64_t *dice, size_t limit) {
    return (size_t)(sb__draw(dice) % limit);
}
