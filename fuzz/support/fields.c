#include "fields.h"

#include "fuzz.h"

#include <stdlib.h>

#define MAX_GROUPS 100

struct cursor {
    const uint8_t *next, *end;
    bool is_too_deep;
};

void *must(void *memory) {
    fuzz_check(memory, "the harness is out of memory");
    return memory;
}

void *one_more(void *list, size_t count, size_t *room, size_t item_size) {
    if (count < *room)
        return list;
    *room = *room ? *room * 2 : 8;
    return must(realloc(list, *room * item_size));
}

size_t varint_read(const uint8_t *bytes, size_t size, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < size && i < 10; i++) {
        *out |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80)
            return i < 9 || bytes[i] <= 1 ? i + 1 : 0;
    }
    return 0;
}

static bool take_varint(struct cursor *cursor, uint64_t *out) {
    const size_t length = varint_read(cursor->next, (size_t)(cursor->end - cursor->next), out);
    cursor->next += length;
    return length > 0;
}

static bool take_bytes(struct cursor *cursor, uint64_t size) {
    if (size > (uint64_t)(cursor->end - cursor->next))
        return false;
    cursor->next += size;
    return true;
}

static bool take_field(struct cursor *cursor, struct field *field, int depth);

static bool take_group(struct cursor *cursor, uint32_t number, int depth) {
    struct field inside;
    cursor->is_too_deep = depth > MAX_GROUPS;
    while (!cursor->is_too_deep && take_field(cursor, &inside, depth))
        if (inside.type == END_GROUP)
            return inside.number == number;
    return false;
}

static bool take_value(struct cursor *cursor, struct field *field, int depth) {
    uint64_t length;
    switch (field->type) {
    case VARINT:
        return take_varint(cursor, &field->value);
    case FIXED64:
        return take_bytes(cursor, 8);
    case BYTES:
        if (!take_varint(cursor, &length))
            return false;
        field->bytes = cursor->next;
        return take_bytes(cursor, length);
    case GROUP:
        return take_group(cursor, field->number, depth + 1);
    case END_GROUP:
        return depth > 0;
    case FIXED32:
        return take_bytes(cursor, 4);
    default:
        return false;
    }
}

static bool take_field(struct cursor *cursor, struct field *field, int depth) {
    const uint8_t *begin = cursor->next;
    uint64_t tag;
    if (!take_varint(cursor, &tag) || tag > UINT32_MAX || tag < 8)
        return false;
    *field = (struct field){(uint32_t)tag >> 3, tag & 7, 0, begin, cursor->next, 0};
    if (!take_value(cursor, field, depth))
        return false;
    field->size = (size_t)(cursor->next - field->bytes);
    return true;
}

struct fields fields_parse(const uint8_t *bytes, size_t size) {
    struct fields fields = {.bytes = bytes, .rest = bytes, .end = bytes + size};
    struct cursor cursor = {bytes, fields.end, false};
    while (fields.rest != fields.end) {
        fields.list = one_more(fields.list, fields.count, &fields.room, sizeof *fields.list);
        if (!take_field(&cursor, &fields.list[fields.count], 0))
            break;
        fields.count++;
        fields.rest = cursor.next;
    }
    fields.is_too_deep = cursor.is_too_deep;
    return fields;
}
